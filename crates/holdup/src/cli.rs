//! The command line: one definition, from which parser, help and man pages are made.

mod boot;
mod budget;
mod bug;
mod experiment;
mod explain;
mod gate;
mod host;
mod mcp;
mod recording;
mod report;
mod scale;
mod top;
mod user;

pub(crate) use boot::BootArgs;
pub(crate) use budget::BudgetArgs;
pub(crate) use bug::BugArgs;
pub(crate) use experiment::TryArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use gate::GateArgs;
pub(crate) use host::HostArgs;
pub(crate) use mcp::McpArgs;
pub(crate) use recording::{RecordArgs, RecordingArgs, ShowArgs};
pub(crate) use report::{Format, ReportArgs};
pub(crate) use scale::ScaleArgs;
pub(crate) use top::TopArgs;
pub(crate) use user::UserArgs;

use crate::usage;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use holdup_bpf::{LARGEST_BUFFER, SMALLEST_BUFFER};
use holdup_collect::Ask;
use holdup_comparison::comparison::Per;
use holdup_comparison::gate::Conditions;
use std::ffi::OsString;
use std::path::PathBuf;

/// Finds what a slow or stuck program is waiting for: the cause, the function that waits, the blocker and what to
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
  sudo holdup run -- sshd -t             what does sshd wait for?
  sudo holdup run --user al -- make      the same, as user al
  sudo holdup attach -p 4711 -d 10       what does running process 4711 wait for?
  holdup read dump.txt iostat.log        what do these files say about last night?
  holdup show rec/ --at 13:05            what did the machine wait for at 13:05?
  sudo holdup top                        who waits now, and behind whom?
  sudo holdup host                       which resource of the machine is short, and who uses it?
  sudo holdup boot                       why was the boot slow?
  holdup diff before.json after.json     what got slower, and is that more than noise?
  sudo holdup scale --read /dev/urandom  do parallel readers contend?
  sudo holdup try --without disk.sync -- ./blast   how much time would faster syncs save?
  sudo holdup record                     record in the background, to look back later
  holdup fleet show s3://ops/holdup      which of all hosts waited, and for what?
  holdup explain disk.sync               what does this cause mean?
  sudo holdup mcp                        serve an agent on stdin and stdout
  sudo holdup doctor                     does holdup work here?";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run CMD and report where its time went
    ///
    /// Runs CMD and reports where its wall-clock time went: each wait, the function that waited, the blocker and
    /// what to change. CMD's stdin, stdout, stderr, signals and exit status are not changed. The report goes to
    /// stderr when CMD ends. The first Ctrl-C goes to CMD. The second one ends the observation and prints the
    /// report so far.
    Run(RunArgs),
    /// Observe running processes: a stuck process, a service, a container
    ///
    /// Observes running processes and reports what they waited for and what they wait for now. Waits that began before the
    /// observation are included. Each blocker is followed from process to process to the root cause. No process is stopped or
    /// changed. The report goes to stdout when the time is over, when the observed processes have ended, or on Ctrl-C.
    Attach(AttachArgs),
    /// Diagnose from artefacts: thread dumps, iostat, strace, kernel and boot logs …
    ///
    /// Reads files from a slow or stuck machine and reports what the machine was waiting for. The report quotes the lines
    /// that prove it. Formats are recognised from the content. Give any number of files, in any mix. No data leaves this machine.
    Read(ReadArgs),
    /// Look back: report on recordings
    ///
    /// Reads recordings and reports on any part of them, as a live observation would. `record` makes recordings, and so does `-o FILE`
    /// of `run`, `attach` and `host`. A segment is reported whole or not at all. Times are in this machine's time zone.
    Show(ShowArgs),
    /// Watch live: who waits now, for what, how long already, and behind whom
    ///
    /// A screen that shows who waits now, how long already, the chain of blockers up to the root and what that one does, what the machine is
    /// short of, and what to do. Idle threads are one line. Enter shows a row's chain, stack and evidence; Left and Right go back and forth
    /// in time; ? lists all keys. With --dir, shows recordings on the same screen. Observes less often where an observation is dear, so that
    /// it takes 1% of one CPU.
    Top(TopArgs),
    /// Observe the whole machine: which resource is short, who uses it, who waits for it
    ///
    /// Observes the whole machine for some seconds, from files in /proc and /sys only. Reports what the load average consists of, how
    /// busy CPUs, memory, disks and file systems are, who uses them, which threads are blocked, and which limits are close. Without
    /// root it observes less, and lists what is missing.
    Host(HostArgs),
    /// Report what the machine waited for while it booted
    ///
    /// Without options, reads the kernel log of this boot. Where systemd is the init system, it also reads the journal and the
    /// critical chain. With options, reads only the named files, which may come from another machine. A kernel log alone is enough.
    Boot(BootArgs),
    /// Compare two runs, recordings or artefacts of one kind: what got slower, and is it more than noise?
    ///
    /// Compares the time per unit of work. The unit is a request where requests were counted, else a run, or the unit of --per.
    /// Every change is AFTER minus BEFORE, so a positive change is slower. One run each shows a difference. To know whether it is
    /// more than noise, give at least four runs of each, or --noise.
    Diff(DiffArgs),
    /// Remove a wait from CMD and measure the time that it saves
    ///
    /// Runs CMD unchanged and without the wait, in turn. Reports the predicted and the measured time, the confidence interval, the next
    /// bottleneck and the risk of a remedy of this kind. The wait is removed for CMD only, in its own namespaces or by a filter on its
    /// system calls. The rest of the machine is not changed. CMD uses the real files and the real network.
    Try(TryArgs),
    /// Record continuously, one file a minute, to look back with `holdup show`
    ///
    /// Observes the whole machine, or a unit, until Ctrl-C or SIGTERM. Writes one Parquet file a minute to a directory. Any Parquet
    /// engine can query it. Old recordings are removed. Each recording has its own cost and losses in it.
    Record(RecordArgs),
    /// Report on many hosts, whose recordings are in object storage
    ///
    /// Runs the program holdup-fleet, from the directory of holdup or from PATH. `holdup fleet show URL` reports on all hosts,
    /// `holdup fleet diff URL` compares two times, `holdup fleet sql URL QUERY` runs a query, and `holdup fleet compact URL` makes one
    /// object of the segments of an hour. `holdup record --to URL` uploads recordings.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Fleet {
        /// What holdup-fleet does: show, diff, sql, compact or upload, and its options
        #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Measure how throughput and latency change as workers are added, and whether the workers contend
    ///
    /// Runs CMD, or a built-in operation, in 1, 2, 4 and more workers at once. Each point is measured several times, and beside a
    /// control that shares nothing. The verdict is one of: it scales, it is short of CPUs, or the workers contend for a resource. The
    /// verdict uses the kernel's counters for each operation, not only elapsed time.
    Scale(ScaleArgs),
    /// Lead the workers of a measurement
    #[command(hide = true)]
    ScaleWork {
        /// The plan that holdup scale wrote
        #[arg(value_name = "PLAN")]
        plan: String,
    },
    /// Print the page of a rule or cause, or list all of them
    Explain(ExplainArgs),
    /// Report what holdup can observe here, what it cannot, and what to change
    ///
    /// Depends on the kernel and on the privileges of the caller. Also reports where this machine's randomness comes from, and whether
    /// a program can block on it.
    Doctor(DoctorArgs),
    /// Write what a bug report needs to one file; nothing is sent
    ///
    /// Writes the version, the kernel, the output of `holdup doctor`, and a report if one is given. Arguments, paths below home
    /// directories, the host name, passwords, tokens and keys are taken out. Read the file before you send it to anybody.
    ReportBug(BugArgs),
    /// Serve agents over the Model Context Protocol on stdin and stdout
    ///
    /// Six tools: observe, show, explain, diff, read and drill_down. Each answer has at most 12,000 bytes, with IDs for the rest. Each call
    /// runs holdup as a process of its own, with a deadline. No tool starts a program of the user or changes the machine.
    Mcp(McpArgs),
    /// Print a completion script for a shell
    ///
    /// The script goes to stdout. bash: `holdup completions bash > /etc/bash_completion.d/holdup`. zsh: `> DIR/_holdup`, where DIR is in
    /// $fpath. fish: `> ~/.config/fish/completions/holdup.fish`.
    Completions(CompletionsArgs),
    /// Generate files from the definitions of this program
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
    /// Predict the elapsed time of CMD without each cause
    ///
    /// Simulates the run on the CPUs that CMD may use, with all waits of one cause removed. For the largest causes, also with these waits
    /// halved. Needs every wait in memory: up to a million waits, about 100 MB. A run with more waits gets no prediction.
    #[arg(long)]
    pub(crate) predict: bool,
    /// Observe CMD and its children only, not those that block them
    ///
    /// By default, processes on this machine that a wait is for, such as a server, the other end of a pipe or a lock holder, are observed
    /// too, so that the report says what they wait for. Their time is not added to the totals.
    #[arg(long)]
    pub(crate) alone: bool,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    #[command(flatten)]
    pub(crate) observation: ObservationArgs,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = ATTACH_STATUS)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["pid", "name", "unit", "cgroup"]))]
pub(crate) struct AttachArgs {
    /// Process ID, or the ID of one of its threads: the process and all processes below it; repeat the option or separate IDs with commas
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = process_id)]
    pub(crate) pid: Vec<u32>,
    /// With --pid, observe that process and what it starts from now on, not the processes that are below it already
    #[arg(long, requires = "pid")]
    pub(crate) only: bool,
    /// All processes with this name, as `ps -eo comm` prints it
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// All processes of a systemd unit
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Vec<String>,
    /// All processes of a cgroup and its descendants, by path
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// How long to observe; default: until Ctrl-C
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<f64>,
    /// Observe the selected processes only, not those that block them
    ///
    /// By default, processes on this machine that a wait is for, such as a server, the other end of a pipe or a lock holder, are observed
    /// too, so that the report says what they wait for. Their time is not added to the totals.
    #[arg(long)]
    pub(crate) alone: bool,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    #[command(flatten)]
    pub(crate) observation: ObservationArgs,
}

/// How to observe what runs, and where what is seen goes.
#[derive(Debug, Args)]
pub(crate) struct ObservationArgs {
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// How to observe threads
    #[arg(long, value_enum, default_value_t)]
    pub(crate) backend: Backend,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    /// Size of the buffer between the kernel and holdup
    ///
    /// A power of two from 64K to 1G, with an optional suffix K, M or G. While the buffer is full, records are dropped and counted as lost.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = buffer_size, hide_short_help = true)]
    pub(crate) buffer: u32,
    /// Also write the events that enter attribution to FILE, for `cargo xtask replay` and bug reports
    ///
    /// JSON lines, compressed with gzip. Names, paths and arguments of programs are not masked in it.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) events: Option<PathBuf>,
    /// Do not read the logs of observed processes
    ///
    /// By default, the end of each log file that an observed process has open is read: what was written meanwhile, and at most 64 KiB before.
    /// A line that explains why work waits or is refused, such as a limit that is reached, is quoted in the report.
    #[arg(long)]
    pub(crate) no_logs: bool,
    #[command(flatten)]
    pub(crate) jvm: JvmArgs,
}

/// What holdup may do to Java virtual machines.
#[derive(Debug, Args)]
pub(crate) struct JvmArgs {
    /// When to request a thread dump from a JVM
    ///
    /// holdup reads Java frames and locks from the JVM's memory, at no cost to the JVM. Where it cannot read them and a thread waits, auto
    /// requests a thread dump, as jstack does. A dump pauses the JVM. All pauses together take at most 0.1 % of the observed time. The
    /// report lists each dump and its pause.
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
    /// Only if the JVM's memory cannot be read
    #[default]
    Auto,
    /// Never
    Never,
}

const ATTACH_STATUS: &str = "Exit status: 0 if a process was observed; with --fail-on, 1 if a condition holds, 3 if that cannot be determined; 125 if holdup itself failed or no such process exists, \
                             2 for bad usage.";

#[derive(Debug, Args)]
#[command(after_help = READ_STATUS)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    /// Print a shell script that collects artefacts on a machine without holdup: run `sh SCRIPT > FILE` there, then read FILE
    #[arg(long, exclusive = true)]
    pub(crate) collect_script: bool,
    /// Artefacts: files, compressed files, directories or archives; - is stdin
    #[arg(value_name = "FILE", required_unless_present = "collect_script")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = DIFF_STATUS, override_usage = DIFF_USAGE)]
pub(crate) struct DiffArgs {
    /// BEFORE and AFTER: reports of `--json`, recordings, artefacts of one kind, or directories of several runs
    #[arg(value_name = "BEFORE AFTER", num_args = 2, conflicts_with_all = ["before", "after"], required_unless_present_all = ["before", "after"])]
    pub(crate) both: Vec<PathBuf>,
    /// Runs of BEFORE, one file each
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "after")]
    pub(crate) before: Vec<PathBuf>,
    /// Runs of AFTER, one file each
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "before")]
    pub(crate) after: Vec<PathBuf>,
    /// More runs like BEFORE, to measure how much runs vary
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) noise: Vec<PathBuf>,
    /// Unit of work: request, run or second. Or the number of units in each run: 500, 500,400 for BEFORE,AFTER, or
    /// message=500,400
    #[arg(long, value_name = "UNIT", value_parser = per)]
    pub(crate) per: Option<Per>,
    /// In profiles and thread dumps, compare only stacks below a function with this text in its name
    #[arg(long, value_name = "FUNCTION")]
    pub(crate) under: Option<String>,
    /// Exit with 1 if AFTER is slower than BEFORE, and with 3 if that cannot be determined
    ///
    /// regression: the change is more than noise. regression>5%: the change is more than noise and, with 95 % confidence, above 5 % of
    /// BEFORE. One line on stderr has the figures and, where more runs are needed, how many.
    #[arg(long, value_name = "CONDITION", value_parser = gate::of_comparison)]
    pub(crate) fail_on: Option<Conditions>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

const DIFF_USAGE: &str = "holdup diff [OPTIONS] BEFORE AFTER\n       holdup diff [OPTIONS] --before FILE... --after FILE... [--noise FILE...]";

const DIFF_STATUS: &str = "Exit status: 0 if both were compared, whatever the result; 1 if one cannot be read; with --fail-on, 1 for a regression, 3 if \
                           that cannot be determined, 125 if one cannot be read; 2 for bad usage, for files \
                           of different kinds, or without a common unit of work; 125 if holdup itself failed.";

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

const READ_STATUS: &str = "Exit status: 0 if any input was recognised, with or without findings; 1 if none was; with --fail-on, 1 if a \
                           condition holds, 3 if that cannot be determined or no input was recognised; 125 if holdup itself failed, 2 for bad usage.";

/// Longest observation: a day. `holdup record` is for longer ones.
const MAX_OBSERVATION_SECONDS: f64 = 86_400.0;

/// Reads the id of a process or thread.
fn process_id(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|pid| *pid > 0)
        .ok_or_else(|| "the ID of a process or thread (`ps -e` lists them)".to_owned())
}

/// Reads a length of time in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds| (0.0..=MAX_OBSERVATION_SECONDS).contains(seconds))
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
                           126 if it could not be executed, 125 if holdup itself failed, 2 for bad usage. With --fail-on, if \
                           CMD succeeded: 1 if a condition holds, 3 if that cannot be determined.";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_STATUS)]
pub(crate) struct DoctorArgs {
    /// Only run the block tests of FIPS 140-2 on random bytes from PATH; - is stdin
    ///
    /// Detects a source that is broken, stuck or regular. Does not detect a source that can be predicted. With perfect randomness, 8 of
    /// 10,000 blocks fail, so the verdict depends on the number of failures. Reads 2,500 bytes per block, for at most 30 s.
    #[arg(long, value_name = "PATH")]
    pub(crate) test_randomness: Option<PathBuf>,
    /// Number of blocks
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "test_randomness",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) blocks: u64,
}

const DOCTOR_STATUS: &str = "Exit status: 0 if holdup run can trace here (with --test-randomness: if the number of failed blocks is as \
                             expected), 1 if not, 125 if holdup itself failed, 2 for bad usage.";

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Write the man pages to DIR
    Man {
        /// An existing directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the JSON Schema of the report
    Schema,
    /// Print the HTML page of a JSON report
    Page {
        /// Report written by --json
        #[arg(value_name = "FILE")]
        report: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// If the output is a terminal with colours
    #[default]
    Auto,
    /// Always, even into a file
    Always,
    /// Never
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Backend {
    /// The best that works here
    #[default]
    Auto,
    /// Trace with BPF
    Bpf,
    /// Sample /proc: needs no privileges for your own processes, and reports less
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
            "holdup run -vv ls -q --color=x",
        ] {
            let Command::Run(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
                panic!()
            };
            assert!(args.observation.report.verbose && !args.observation.report.quiet);
            assert_eq!(args.command, ["ls", "-q", "--color=x"]);
        }
    }
}
