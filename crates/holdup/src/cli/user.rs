//! The part of the command line that is about whom CMD runs as.

use clap::Args;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct UserArgs {
    /// Run CMD as this user (holdup itself must be root)
    ///
    /// CMD gets this user's groups and a fresh environment: HOME, SHELL, USER, LOGNAME and PATH are set, TERM, COLORTERM, NO_COLOR, TZ,
    /// LANG, LANGUAGE and LC_* stay. Of descriptors it gets stdin, stdout and stderr. Working directory, umask, limits and signal mask
    /// stay as they are. CMD shares the terminal: it can read and write there while it runs, but it can't push input into it for the
    /// shell that holdup was started from.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Give CMD of --user all of holdup's environment, but for HOME, USER and LOGNAME
    #[arg(long, requires = "user")]
    pub(crate) preserve_env: bool,
}
