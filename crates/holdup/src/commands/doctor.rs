//! `holdup doctor`: what can be seen here with these privileges, what is lost without the rest, and the fix.
//!
//! In: raw facts of the machine and the tracer's own trials. Out: a table, the machine's randomness, and 0 when `holdup run`
//! works here, 1 when it does not. [`decide`] is pure; reading and printing are at the ends.

mod sights;
mod source_test;
mod table;

use crate::cli::{Color, DoctorArgs};
use crate::{output, terminal};
use holdup_collect as collect;
use holdup_diagnosis::randomness::aspects;
use holdup_proc::Root;
use holdup_proc::capability::{self, Machine};
use holdup_proc::randomness::{self, try_generator};
use holdup_views::Style;
use holdup_views::terminal::randomness::text as section;
use sights::Sight;

/// `holdup run` can't trace here.
const CANNOT_RUN: u8 = 1;

/// Something that the tracer tried.
type Trial = holdup_bpf::Capability;

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// It is there; a word about it.
    Yes(String),
    /// It is not, and why.
    No(String),
    /// It could not be found out, and why.
    Unknown(String),
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    what: String,
    state: State,
    /// Without it nothing is seen at all.
    essential: bool,
    /// What can't be reported without it.
    lost: String,
    /// What to change.
    fix: String,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Checkup {
    rows: Vec<Row>,
}

impl Checkup {
    /// Whether `holdup run` works.
    fn works(&self) -> bool {
        !self
            .rows
            .iter()
            .any(|row| row.essential && matches!(row.state, State::No(_)))
    }

    /// In one sentence.
    fn sentence(&self) -> String {
        let missing: Vec<&str> = self
            .rows
            .iter()
            .filter(|row| matches!(row.state, State::No(_)) && (row.essential || self.works()))
            .map(|row| row.what.as_str())
            .collect();
        match (self.works(), missing.is_empty()) {
            (true, true) => "holdup run can trace here, and nothing is missing.".to_owned(),
            (true, false) => format!(
                "holdup run can trace here, but reports less. Missing: {}.",
                missing.join(", ")
            ),
            (false, _) => format!(
                "holdup run cannot trace here. Missing: {}. It samples /proc instead, and reports less.",
                missing.join(", ")
            ),
        }
    }
}

/// Looks, decides and prints.
///
/// # Errors
/// When stdout can't be written to.
pub(crate) fn run(args: &DoctorArgs, color: Color) -> anyhow::Result<u8> {
    if let Some(path) = &args.test_randomness {
        return source_test::run(path, args.blocks);
    }
    let look = terminal::look(&std::io::stdout(), color);
    let (text, works) = text(&Style {
        width: look.width,
        colour: look.colour,
        unicode: look.unicode,
        ..Style::default()
    });
    output::print(text.as_bytes())?;
    Ok(if works { 0 } else { CANNOT_RUN })
}

/// All that it says, and whether `holdup run` works.
pub(crate) fn text(style: &Style) -> (String, bool) {
    let mut problems = Vec::new();
    let root = Root::system();
    let machine = capability::read(&root, &mut problems);
    let checkup = decide(&machine, &trials());
    let mut text = table::text(&checkup, &machine);
    let randomness = aspects(&randomness::read(&root, try_generator(), &mut problems));
    text.push('\n');
    text.push_str(&section(&randomness, style));
    for problem in problems {
        text.push_str(&format!("  {problem}\n"));
    }
    (text, checkup.works())
}

/// The first thing that this machine or these privileges lack for `holdup run` to work: what hangs on it fails
/// too. `None` when nothing is found to be lacking.
pub(crate) fn lacking() -> Option<String> {
    let checkup = decide(&capability::read(&Root::system(), &mut Vec::new()), &trials());
    checkup
        .rows
        .into_iter()
        .filter(|row| row.essential)
        .find_map(|row| match row.state {
            State::No(why) => Some(why),
            State::Yes(_) | State::Unknown(_) => None,
        })
}

/// What the tracer tries; where a filter would end holdup for that, nothing but this.
fn trials() -> Vec<Trial> {
    match collect::allowed_to_trace() {
        Ok(()) => holdup_bpf::probe(),
        Err(forbidden) => vec![Trial {
            name: "load".to_owned(),
            required: true,
            state: Err(forbidden.to_string()),
        }],
    }
}

/// What the facts and the trials mean.
fn decide(machine: &Machine, trials: &[Trial]) -> Checkup {
    Checkup {
        rows: Sight::all(trials)
            .map(|sight| sight.row(machine, trials))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Checkup, State, Trial, decide, table};
    use holdup_bpf::capability::{OPTIONAL_TRACEPOINTS, REQUIRED_TRACEPOINTS};
    use holdup_proc::capability::{Lockdown, Machine};
    use holdup_proc::status::Status;

    /// A machine on which everything works.
    fn able() -> Machine {
        Machine {
            kernel_release: Some("6.18.0".into()),
            status: Status {
                euid: Some(0),
                effective: Some(u64::MAX),
                seccomp: Some(0),
            },
            lockdown: Some(Lockdown::None),
            tracefs: None,
            kptr_restrict: Some(0),
            kernel_symbols: Some(true),
            perf_event_paranoid: Some(2),
            unprivileged_bpf_disabled: Some(2),
            kernel_log: Some(true),
        }
    }

    /// Trials that all worked but those named.
    fn trials(failed: &[&str]) -> Vec<Trial> {
        let tracepoints = |names: &'static [&str], required| {
            names
                .iter()
                .map(move |name| (format!("tracepoint:{name}"), required))
        };
        [
            ("process-numbers", true),
            ("btf", true),
            ("task-work", false),
            ("task-storage", false),
            ("task-registers", false),
            ("cpu-clock", false),
            ("load", true),
        ]
        .map(|(name, required)| (name.to_owned(), required))
        .into_iter()
        .chain(tracepoints(REQUIRED_TRACEPOINTS, true))
        .chain(tracepoints(OPTIONAL_TRACEPOINTS, false))
        .map(|(name, required)| Trial {
            state: if failed.contains(&name.as_str()) {
                Err("refused".into())
            } else {
                Ok(())
            },
            name,
            required,
        })
        .collect()
    }

    fn missing(checkup: &Checkup) -> Vec<&str> {
        checkup
            .rows
            .iter()
            .filter(|row| matches!(row.state, State::No(_)))
            .map(|row| row.what.as_str())
            .collect()
    }

    /// Expects exactly this to be missing, and every line of it to be complete.
    fn expect(machine: &Machine, trials: &[Trial], what: &[&str], works: bool) {
        let checkup = decide(machine, trials);
        assert_eq!(
            (missing(&checkup), checkup.works()),
            (what.to_vec(), works),
            "{}",
            checkup.sentence()
        );
        for row in &checkup.rows {
            if let State::No(why) = &row.state {
                assert!(
                    !why.is_empty() && !row.lost.is_empty() && !row.fix.is_empty(),
                    "{}",
                    row.what
                );
            }
        }
    }

    fn without(take: impl FnOnce(&mut Machine), what: &[&str], works: bool) {
        let mut machine = able();
        take(&mut machine);
        expect(&machine, &trials(&[]), what, works);
    }

    #[test]
    fn with_everything_nothing_is_missing() {
        without(|_| (), &[], true);
        let sentence = decide(&able(), &trials(&[])).sentence();
        assert_eq!(sentence, "holdup run can trace here, and nothing is missing.");
    }

    #[test]
    fn each_fact_taken_away_is_named_and_nothing_else() {
        const NO_BPF: u64 = !(1 << 39 | 1 << 21);
        const NO_PERFMON: u64 = !(1 << 38 | 1 << 21);
        const NO_PTRACE: u64 = !(1 << 19);
        without(
            |machine| machine.status.effective = Some(NO_BPF),
            &["privilege"],
            false,
        );
        without(
            |machine| machine.status.effective = Some(NO_PERFMON),
            &["privilege"],
            false,
        );
        without(|machine| machine.status.effective = Some(!(1 << 21)), &[], true);
        without(
            |machine| machine.status.effective = Some(NO_PTRACE),
            &["other users' libraries"],
            true,
        );
        without(
            |machine| machine.lockdown = Some(Lockdown::Confidentiality),
            &["no lockdown"],
            false,
        );
        without(|machine| machine.lockdown = Some(Lockdown::Integrity), &[], true);
        without(
            |machine| machine.kernel_symbols = Some(false),
            &["kernel symbols"],
            true,
        );
        without(|machine| machine.kernel_log = Some(false), &["kernel log"], true);
    }

    #[test]
    fn each_trial_that_fails_is_named_and_nothing_else() {
        expect(&able(), &trials(&["load"]), &["BPF programs"], false);
        expect(
            &able(),
            &trials(&["process-numbers"]),
            &["host PID namespace"],
            false,
        );
        expect(&able(), &trials(&["task-work"]), &["woken threads' memory"], true);
        expect(&able(), &trials(&["task-storage"]), &["BPF task storage"], true);
        expect(&able(), &trials(&["task-registers"]), &["saved registers"], true);
        expect(&able(), &trials(&["cpu-clock"]), &["CPU samples"], true);
        for (names, works) in [(REQUIRED_TRACEPOINTS, false), (OPTIONAL_TRACEPOINTS, true)] {
            for name in names {
                let failed = trials(&[&format!("tracepoint:{name}")]);
                expect(&able(), &failed, &[&format!("tracepoint {name}")], works);
            }
        }
    }

    #[test]
    fn without_type_information_nothing_is_said_of_what_hangs_on_it() {
        let hanging: Vec<String> = trials(&[]).into_iter().map(|trial| trial.name).collect();
        let hanging: Vec<&str> = hanging
            .iter()
            .map(String::as_str)
            .filter(|name| !["cpu-clock", "process-numbers"].contains(name))
            .collect();
        expect(
            &able(),
            &trials(&hanging),
            &["kernel type information", "BPF programs"],
            false,
        );
    }

    #[test]
    fn a_machine_that_tells_nothing_is_not_condemned() {
        expect(&Machine::default(), &[], &[], true);
    }

    #[test]
    fn the_table_is_plain_and_fits() {
        let mut machine = able();
        machine.status.effective = Some(0);
        machine.kernel_release = Some("6.1\x1b[2J".into());
        let mut failed = trials(&["tracepoint:sk_data_ready", "task-work", "cpu-clock"]);
        let load = failed.iter_mut().find(|trial| trial.name == "load").unwrap();
        load.state = Err(format!("y\nz\x1b{}", " word".repeat(40)));
        let text = table::text(&decide(&machine, &failed), &machine);
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && !line.contains('\x1b'), "{line:?}");
        }
        assert!(
            text.contains("lost") && text.contains("random-reads-dominate"),
            "{text}"
        );
    }
}
