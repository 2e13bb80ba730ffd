//! `holdup completions SHELL`: a completion script, made from the definition of the command line.
//!
//! In: the shell. Out: the script on stdout. `cargo xtask gen` keeps the scripts of all shells in `packaging/completions`.

use crate::cli::{Cli, Shell};
use crate::output;
use clap_complete::{Shell as Dialect, generate};

/// Prints the script.
///
/// # Errors
/// When stdout can't be written.
pub(crate) fn run(shell: Shell) -> anyhow::Result<u8> {
    output::print(&script(shell))?;
    Ok(0)
}

fn script(shell: Shell) -> Vec<u8> {
    let dialect = match shell {
        Shell::Bash => Dialect::Bash,
        Shell::Zsh => Dialect::Zsh,
        Shell::Fish => Dialect::Fish,
    };
    let mut text = Vec::new();
    generate(dialect, &mut Cli::definition(), "holdup", &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::script;
    use crate::cli::{Cli, Shell};
    use clap::ValueEnum;

    #[test]
    fn each_shell_completes_every_command_that_help_shows() {
        let definition = Cli::definition();
        let shown: Vec<&str> = definition
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        assert!(shown.len() > 10, "{shown:?}");
        for shell in Shell::value_variants() {
            let text = String::from_utf8(script(*shell)).unwrap();
            for command in &shown {
                assert!(text.contains(command), "{shell:?} lacks {command}");
            }
            assert!(text.contains("backend"), "{shell:?} lacks an option");
        }
    }
}
