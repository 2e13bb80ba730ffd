//! The part of the command line that is about the user CMD runs as.

use clap::Args;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct UserArgs {
    /// Run CMD as this user (holdup itself must be root)
    ///
    /// CMD gets this user's groups and a new environment. HOME, SHELL, USER, LOGNAME and PATH are set. TERM, COLORTERM, NO_COLOR, TZ,
    /// LANG, LANGUAGE and LC_* are kept. CMD inherits only the descriptors stdin, stdout and stderr. It keeps the working directory,
    /// umask, limits and signal mask. CMD can read from and write to the terminal while it runs. It cannot inject input (TIOCSTI) for
    /// the shell that started holdup.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// With --user, keep the environment of holdup except HOME, USER and LOGNAME
    #[arg(long, requires = "user")]
    pub(crate) preserve_env: bool,
}
