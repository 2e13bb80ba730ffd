//! The command line: one definition, from which parser, help and man pages are made.

use crate::usage;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use holdup_bpf::{LARGEST_BUFFER, SMALLEST_BUFFER};
use std::ffi::OsString;
use std::path::PathBuf;

/// Says in plain words what a slow or stuck program is waiting for, who asked, who is in the way and what to
/// change.
#[derive(Debug, Parser)]
#[command(
    name = "holdup",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = EXAMPLES
)]
pub(crate) struct Cli {
    /// Colour the output
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "Examples:
  sudo holdup run -- sshd -t             what does it wait for?
  sudo holdup run --user al -- make      the same, as user al
  holdup read dump.txt iostat.log        what did they wait for last night?
  holdup explain disk.sync               what a cause or rule is
  sudo holdup doctor                     does it work here?";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run CMD and say where its time went
    ///
    /// Runs CMD and says where its wall-clock time went: what was waited for, who asked, who was in the way and
    /// what to change. CMD's stdin, stdout, stderr, signals and exit status are untouched; the report goes to
    /// stderr when CMD has ended. Ctrl-C goes to CMD; a second one ends the observation and prints the report so
    /// far.
    Run(RunArgs),
    /// Say the same of artefacts: thread dumps, iostat, strace, kernel and boot logs …
    ///
    /// Reads what people already have of a slow or stuck machine, and says what it was waiting for, with the lines that
    /// say so. Formats are recognised from the content; any mix, any number. Nothing is sent anywhere.
    Read(ReadArgs),
    /// Print the page of a rule or cause, or list them all
    Explain(ExplainArgs),
    /// Say what can be seen here with these privileges, what cannot, and what to change
    Doctor,
    /// Write what is generated from this program's own definitions
    #[command(subcommand, hide = true)]
    Generate(Generate),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS, override_usage = "holdup run [OPTIONS] -- CMD [ARG]...")]
pub(crate) struct RunArgs {
    /// Run CMD as this user (holdup itself must be root)
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Write the report as JSON to FILE too; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Format of the report on stderr
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Where the evidence comes from
    #[arg(long, value_enum, default_value_t)]
    pub(crate) backend: Backend,
    /// Size of the buffer between the kernel and holdup
    ///
    /// A power of two, with K, M or G: 64K to 1G. Records that find it full are dropped and counted as lost.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = buffer_size, hide_short_help = true)]
    pub(crate) buffer: u32,
    /// Print only the verdict's first lines
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print stacks, every wait, and what was ruled out
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = READ_STATUS)]
pub(crate) struct ReadArgs {
    /// Write the report as JSON to FILE too; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Format of the report on stdout
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Print only the verdict's first lines
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print sources, lines that were not understood, and what was ruled out
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print a shell script that collects artefacts on a machine without holdup; `sh SCRIPT > FILE` there, then read FILE
    #[arg(long, exclusive = true)]
    pub(crate) collect_script: bool,
    /// Artefacts: files, packed or not, folders, archives; - is stdin
    #[arg(value_name = "FILE", required_unless_present = "collect_script")]
    pub(crate) files: Vec<PathBuf>,
}

const READ_STATUS: &str = "Exit status: 0 if something was understood, with findings or none; 1 if nothing was; 125 if \
                           holdup itself failed, 2 for bad usage.";

/// Reads a size such as `256K`.
fn buffer_size(text: &str) -> Result<u32, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let bytes = digits
        .parse::<u32>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| bytes.is_power_of_two() && (SMALLEST_BUFFER..=LARGEST_BUFFER).contains(bytes))
        .ok_or_else(|| "a power of two from 64K to 1G".to_owned())
}

const EXIT_STATUS: &str = "Exit status: that of CMD, 128+N if signal N ended it; 127 if CMD was not found, \
                           126 if it could not be executed, 125 if holdup itself failed, 2 for bad usage.";

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The id of a rule or cause, such as crng-not-seeded or disk.sync
    #[arg(value_name = "RULE|CAUSE")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// The man pages, into DIR
    Man {
        /// An existing directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// The JSON Schema of the report, to stdout
    Schema,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal that can
    #[default]
    Auto,
    /// Even into a file
    Always,
    /// Not at all
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For a person
    #[default]
    Terminal,
    /// For a program
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Backend {
    /// The best that works here
    #[default]
    Auto,
    /// Trace with BPF
    Bpf,
    /// Sample /proc: not in this version
    #[value(hide = true)]
    Proc,
}

impl Cli {
    /// Reads holdup's own command line.
    ///
    /// # Errors
    /// [`usage::Usage`]: bad usage, or help that was asked for.
    pub(crate) fn read() -> anyhow::Result<Cli> {
        Ok(Cli::try_parse().map_err(usage::Usage::from)?)
    }

    /// The definition, for man pages.
    pub(crate) fn definition() -> clap::Command {
        Cli::command()
    }
}

#[cfg(test)]
mod tests {
    use super::{Cli, Command, buffer_size};
    use clap::Parser;

    #[test]
    fn the_definition_is_sound() {
        Cli::definition().debug_assert();
    }

    #[test]
    fn a_buffer_is_a_power_of_two_within_bounds() {
        let of = |size: &str| buffer_size(size).ok();
        assert_eq!(of("64K"), Some(64 << 10));
        assert_eq!(of("16m"), Some(16 << 20));
        assert_eq!(of("1G"), Some(1 << 30));
        assert_eq!(of("131072"), Some(131_072));
        for wrong in [
            "",
            "K",
            "0",
            "32K",
            "65K",
            "3M",
            "2G",
            "4G",
            "99999999999",
            "-1M",
            "1 M",
            "1é",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_follows_cmd_is_cmds() {
        for line in [
            "holdup run -v -- ls -q --color=x",
            "holdup run -v ls -q --color=x",
        ] {
            let Command::Run(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
                panic!()
            };
            assert!(args.verbose && !args.quiet);
            assert_eq!(args.command, ["ls", "-q", "--color=x"]);
        }
    }
}
