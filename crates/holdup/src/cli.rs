//! The command line: one definition, from which parser, help and man pages are made.

mod experiment;
mod recording;
mod report;
mod scale;
mod user;

pub(crate) use experiment::TryArgs;
pub(crate) use recording::{RecordArgs, RecordingArgs, ShowArgs};
pub(crate) use report::{Format, ReportArgs};
pub(crate) use scale::ScaleArgs;
pub(crate) use user::UserArgs;

use crate::usage;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use holdup_bpf::{LARGEST_BUFFER, SMALLEST_BUFFER};
use holdup_collect::Ask;
use holdup_comparison::comparison::Per;
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
  sudo holdup attach -p 4711 -d 10       what does it wait for that runs already?
  holdup read dump.txt iostat.log        what did they wait for last night?
  holdup show rec/ --at 13:05            what did it wait for then?
  sudo holdup host                       which resource of the machine is short, and who uses it?
  sudo holdup boot                       why did it take so long to come up?
  holdup diff before.json after.json     what got slower, and is that more than noise?
  sudo holdup scale --read /dev/urandom  do many readers get in each other's way?
  sudo holdup try --without disk.sync -- ./blast   what would faster syncs bring?
  sudo holdup record                     keep looking, to be asked tomorrow
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
    /// Say the same of what runs already: a stuck process, a service, a container
    ///
    /// Looks at processes that run already for a while and says what they waited for, and what they wait for now, with what
    /// began before; who is in the way is followed from process to process to the end. Nothing is stopped, started or
    /// changed. The report goes to stdout when the time is over, what was observed has ended, or Ctrl-C is pressed.
    Attach(AttachArgs),
    /// Say the same of artefacts: thread dumps, iostat, strace, kernel and boot logs …
    ///
    /// Reads what people already have of a slow or stuck machine, and says what it was waiting for, with the lines that
    /// say so. Formats are recognised from the content; any mix, any number. Nothing is sent anywhere.
    Read(ReadArgs),
    /// Look back: say the same of what was recorded
    ///
    /// Reads recordings, which `-o FILE` of `run`, `attach` and `host` writes and `record` keeps, and says what they say of any part of them, as if one had
    /// been there. Segments are told of whole or not at all; times are in this machine's zone.
    Show(ShowArgs),
    /// Say how the whole machine does: what is short, who uses it, who waits for it
    ///
    /// Looks at the whole machine for some seconds, from the kernel's files alone: what the load average is made of, how busy CPUs,
    /// memory, disks and file systems are and with whom, who is blocked in what, what waits to hurt. Without root it sees less,
    /// and says what.
    Host(HostArgs),
    /// Say what the machine waited for while it came up
    ///
    /// This boot: the kernel's log and, where systemd is the init, the journal of this boot and its critical chain. Or another
    /// machine's, from the files that are named; then nothing of this machine is looked at. A kernel log alone is enough.
    Boot(BootArgs),
    /// Say what got slower between two runs, recordings or artefacts of one kind, and whether that is more than chance
    ///
    /// Compares for each unit of work: a request where they were counted, a run, or what --per says. Above zero is slower:
    /// every change is AFTER less BEFORE. One run each shows a difference; whether it is more than chance needs four and four
    /// runs, or --noise.
    Diff(DiffArgs),
    /// Take a wait away and measure what that brings, before it is paid for
    ///
    /// Runs CMD as it is and without that wait, in turn, and says what was predicted, what was measured, how sure that is, what is in the
    /// way next and what a remedy of that kind would give up. The wait is taken away from CMD alone, in namespaces of its own or by a
    /// filter on its system calls; nothing on the machine is changed. CMD's files and its network are real.
    Try(TryArgs),
    /// Keep looking: a recording of each minute, to look back at with `holdup show`
    ///
    /// Watches the whole machine, or a unit, until it is told to end, and writes what it saw of each minute to a folder, as a
    /// file that every engine for Parquet can query. Old recordings are removed. Each says what it cost and what it lost.
    Record(RecordArgs),
    /// Say how throughput and latency change as workers are added, and whether they are in each other's way
    ///
    /// Runs CMD, or a reader of holdup's own, in 1, 2, 4 and more workers at once, each point several times and beside a control that
    /// shares nothing. It scales, or is short of CPUs, or contends, and for what: told by what grows for each operation, as the kernel
    /// counts it, not by the clock alone.
    Scale(ScaleArgs),
    /// Be the leader of workers
    #[command(hide = true)]
    ScaleWork {
        /// What to do, as holdup scale wrote it
        #[arg(value_name = "PLAN")]
        plan: String,
    },
    /// Print the page of a rule or cause, or list them all
    Explain(ExplainArgs),
    /// Say what can be seen here with these privileges, what cannot, and what to change
    ///
    /// And where this machine's randomness comes from, and whether anybody can be made to wait for it.
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    ///
    /// The script goes to stdout. bash: `holdup completions bash > /etc/bash_completion.d/holdup`; zsh: `> FOLDER/_holdup`, where FOLDER
    /// is in $fpath; fish: `> ~/.config/fish/completions/holdup.fish`.
    Completions(CompletionsArgs),
    /// Write what is generated from this program's own definitions
    #[command(subcommand, hide = true)]
    Generate(Generate),
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// A shell that completion scripts are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS, override_usage = "holdup run [OPTIONS] -- CMD [ARG]...")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) user: UserArgs,
    /// Predict what CMD would take without each cause
    ///
    /// Replays the whole run, on the CPUs that CMD may use, with the waits for one cause taken away, and at half for those that cost most.
    /// Keeps every wait in memory for that: up to a million, some 100 MB; a longer run is not predicted.
    #[arg(long)]
    pub(crate) predict: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// Where the evidence comes from
    #[arg(long, value_enum, default_value_t)]
    pub(crate) backend: Backend,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    /// Size of the buffer between the kernel and holdup
    ///
    /// A power of two, with K, M or G: 64K to 1G. Records that find it full are dropped and counted as lost.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = buffer_size, hide_short_help = true)]
    pub(crate) buffer: u32,
    /// Write the events that enter attribution to FILE too, for `cargo xtask replay` and reports of bugs
    ///
    /// Lines of JSON, packed with gzip. Names, paths and arguments of programs stand in it as they are.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) events: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) jvm: JvmArgs,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = ATTACH_STATUS)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["pid", "name", "unit", "cgroup"]))]
pub(crate) struct AttachArgs {
    /// Process, by its id or that of one of its threads; may be given several times, or with commas between them
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = process_id)]
    pub(crate) pid: Vec<u32>,
    /// Every process of this name, as `ps -eo comm` has it
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// All processes of a systemd unit
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Vec<String>,
    /// All processes of a cgroup and of those below it, by its path
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// How long to look; else until Ctrl-C
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<f64>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// Where the evidence comes from
    #[arg(long, value_enum, default_value_t)]
    pub(crate) backend: Backend,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    /// Size of the buffer between the kernel and holdup
    ///
    /// A power of two, with K, M or G: 64K to 1G. Records that find it full are dropped and counted as lost.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = buffer_size, hide_short_help = true)]
    pub(crate) buffer: u32,
    /// Write the events that enter attribution to FILE too, for `cargo xtask replay` and reports of bugs
    ///
    /// Lines of JSON, packed with gzip. Names, paths and arguments of programs stand in it as they are.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) events: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) jvm: JvmArgs,
}

/// What may be done to Java virtual machines.
#[derive(Debug, Args)]
pub(crate) struct JvmArgs {
    /// Whether a JVM may be asked for a thread dump
    ///
    /// Java frames and locks are read from the JVM's memory, which costs it nothing. Where that can't be read, and a thread waits, auto
    /// asks the JVM, as jstack does. It stands still meanwhile: for a thousandth of the observed time at most, in all. The report has
    /// each dump, and its pause.
    #[arg(
        long = "jvm-attach",
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_short_help = true
    )]
    attach: JvmAttach,
}

impl JvmArgs {
    /// What that means.
    pub(crate) fn ask(&self) -> Ask {
        match self.attach {
            JvmAttach::Auto => Ask::LastResort,
            JvmAttach::Never => Ask::Never,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum JvmAttach {
    /// Where nothing else tells
    #[default]
    Auto,
    /// Not at all
    Never,
}

const ATTACH_STATUS: &str = "Exit status: 0 if something was observed; 125 if holdup itself failed or what was named is \
                             not there, 2 for bad usage.";

#[derive(Debug, Args)]
#[command(after_help = READ_STATUS)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// Print a shell script that collects artefacts on a machine without holdup; `sh SCRIPT > FILE` there, then read FILE
    #[arg(long, exclusive = true)]
    pub(crate) collect_script: bool,
    /// Artefacts: files, packed or not, folders, archives; - is stdin
    #[arg(value_name = "FILE", required_unless_present = "collect_script")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = DIFF_STATUS, override_usage = DIFF_USAGE)]
pub(crate) struct DiffArgs {
    /// BEFORE and AFTER: reports of `--json`, recordings, or artefacts of one kind; or folders of several runs
    #[arg(value_name = "BEFORE AFTER", num_args = 2, conflicts_with_all = ["before", "after"], required_unless_present_all = ["before", "after"])]
    pub(crate) both: Vec<PathBuf>,
    /// BEFORE, each file a run
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "after")]
    pub(crate) before: Vec<PathBuf>,
    /// AFTER, each file a run
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "before")]
    pub(crate) after: Vec<PathBuf>,
    /// More runs like BEFORE, to tell how much runs vary
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) noise: Vec<PathBuf>,
    /// The unit of work: request, run, second; or how many there were in each run: 500, or 500,400 for BEFORE,AFTER, or
    /// message=500,400
    #[arg(long, value_name = "UNIT", value_parser = per)]
    pub(crate) per: Option<Per>,
    /// Of profiles and thread dumps: only what was called by a function with this in its name
    #[arg(long, value_name = "FUNCTION")]
    pub(crate) under: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

const DIFF_USAGE: &str = "holdup diff [OPTIONS] BEFORE AFTER\n       holdup diff [OPTIONS] --before FILE... --after FILE... [--noise FILE...]";

const DIFF_STATUS: &str = "Exit status: 0 if they were compared, whatever came of it; 2 if they can't be: of different kinds, or \
                           without a unit of work in common; 1 if one can't be read; 125 if holdup itself failed.";

/// Reads a unit of work: a word, numbers, or both.
fn per(text: &str) -> Result<Per, String> {
    let wanted = || {
        "a word such as request, or numbers of units in each run: 500, 500,400 or message=500,400".to_owned()
    };
    let (unit, numbers) = match text.split_once('=') {
        Some((unit, numbers)) => (unit, numbers),
        None if text.starts_with(|first: char| first.is_ascii_digit()) => ("unit", text),
        None => (text, ""),
    };
    let word = |unit: &str| {
        !unit.is_empty()
            && unit
                .chars()
                .all(|letter| letter.is_alphanumeric() || letter == '-')
    };
    if !word(unit) || (numbers.is_empty() && text.contains('=')) {
        return Err(wanted());
    }
    if numbers.is_empty() {
        return Ok(Per::Counted(unit.to_owned()));
    }
    let numbers: Option<Vec<f64>> = numbers
        .split(',')
        .map(|number| {
            number
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite() && *number > 0.0)
        })
        .collect();
    let (before, after) = match numbers.as_deref() {
        Some([both]) => (*both, *both),
        Some([before, after]) => (*before, *after),
        _ => return Err(wanted()),
    };
    Ok(Per::Given {
        unit: unit.to_owned(),
        before,
        after,
    })
}

#[derive(Debug, Args)]
#[command(after_help = HOST_STATUS)]
pub(crate) struct HostArgs {
    /// How long to look; Ctrl-C ends it earlier
    #[arg(short, long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    pub(crate) duration: f64,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
}

const HOST_STATUS: &str =
    "Exit status: 0 with findings or none; 125 if holdup itself failed, 2 for bad usage.";

#[derive(Debug, Args)]
#[command(after_help = BOOT_STATUS)]
pub(crate) struct BootArgs {
    /// The kernel's log: dmesg, journalctl -k; may be given several times, as the others; - is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel_log: Vec<PathBuf>,
    /// The service manager's log: journalctl -b, in any of its formats
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Vec<PathBuf>,
    /// What systemd-analyze critical-chain printed; also time, blame, dump, plot
    #[arg(long, value_name = "FILE")]
    pub(crate) critical_chain: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

const BOOT_STATUS: &str = "Exit status: 0 if something was understood, with findings or none; 1 if nothing was; 125 if \
                           holdup itself failed, 2 for bad usage.";

const READ_STATUS: &str = "Exit status: 0 if something was understood, with findings or none; 1 if nothing was; 125 if \
                           holdup itself failed, 2 for bad usage.";

/// Longest observation, seconds: a day. Longer ones are a recorder's business.
const LONGEST: f64 = 86_400.0;

/// Reads a length of time in seconds.
fn process_id(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|pid| *pid > 0)
        .ok_or_else(|| "the number of a process or thread (`ps -e` lists them)".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds| (0.0..=LONGEST).contains(seconds))
        .ok_or_else(|| "seconds, from 0 to 86400".to_owned())
}

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

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_STATUS)]
pub(crate) struct DoctorArgs {
    /// Only put random bytes from PATH to the block tests of FIPS 140-2; - is stdin
    ///
    /// Finds a source that is broken, stuck or regular, and not one that can be guessed. Of perfect randomness 8 blocks in
    /// 10,000 fail, so only their number is judged. Reads 2,500 bytes a block and ends after 30 s, whatever came.
    #[arg(long, value_name = "PATH")]
    pub(crate) test_randomness: Option<PathBuf>,
    /// How many blocks
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "test_randomness",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) blocks: u64,
}

const DOCTOR_STATUS: &str = "Exit status: 0 if holdup run works here (with --test-randomness: if the rejections are as many as \
                             they should be), 1 if not, 125 if holdup itself failed, 2 for bad usage.";

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
    /// The page of a report that is given as JSON, to stdout
    Page {
        /// The report, as --json wrote it
        #[arg(value_name = "FILE")]
        report: PathBuf,
    },
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
pub(crate) enum Backend {
    /// The best that works here
    #[default]
    Auto,
    /// Trace with BPF
    Bpf,
    /// Look at /proc now and then: needs no privilege for processes of one's own, and tells less
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
            assert!(args.report.verbose && !args.report.quiet);
            assert_eq!(args.command, ["ls", "-q", "--color=x"]);
        }
    }
}
