//! `holdup doctor`: what can be seen here with these privileges, what is lost without the rest, and the fix.
//!
//! In: raw facts of the machine and the tracer's own trials. Out: a table, and 0 when `holdup run` works here, 1
//! when it does not. [`decide`] is pure; reading and printing are at the ends.

mod sights;
mod table;

use crate::{collect, output};
use holdup_proc::Root;
use holdup_proc::capability::{self, Machine};
use sights::Sight;

/// `holdup run` does not work here.
const CANNOT_RUN: u8 = 1;

/// Something that the tracer tried: what, and why it failed.
pub(crate) type Trial = (String, Result<(), String>);

/// What was found about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// It is there; a word about it.
    Yes(String),
    /// It is not, and why.
    No(String),
    /// It could not be found out, and why.
    NotTold(String),
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    what: String,
    state: State,
    /// Without it nothing is seen at all.
    essential: bool,
    /// What can't be told without it.
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
            (true, true) => "holdup run works here and sees all it can.".to_owned(),
            (true, false) => format!(
                "holdup run works here, but with less to see: {}.",
                missing.join(", ")
            ),
            (false, _) => format!("holdup run does not work here: {}.", missing.join(", ")),
        }
    }
}

/// Looks, decides and prints.
///
/// # Errors
/// When stdout can't be written to.
pub(crate) fn run() -> anyhow::Result<u8> {
    let mut problems = Vec::new();
    let machine = capability::read(&Root::system(), &mut problems);
    let checkup = decide(&machine, &collect::try_out());
    let mut text = table::text(&checkup, &machine);
    for problem in problems {
        text.push_str(&format!("  {problem}\n"));
    }
    output::print(text.as_bytes())?;
    Ok(if checkup.works() { 0 } else { CANNOT_RUN })
}

/// What this machine or these privileges lack for `holdup run` to work, as far as files tell; `None` when nothing.
pub(crate) fn lacking() -> Option<String> {
    let checkup = decide(&capability::read(&Root::system(), &mut Vec::new()), &[]);
    let lacking: Vec<&str> = checkup
        .rows
        .iter()
        .filter(|row| row.essential)
        .filter_map(|row| match &row.state {
            State::No(why) => Some(why.as_str()),
            State::Yes(_) | State::NotTold(_) => None,
        })
        .collect();
    (!lacking.is_empty()).then(|| lacking.join(", "))
}

/// What the facts mean. A trial beats a fact: it is the thing itself.
fn decide(machine: &Machine, trials: &[Trial]) -> Checkup {
    let mut rows: Vec<Row> = Sight::all().map(|sight| sight.row(machine)).collect();
    for (what, result) in trials {
        rows.push(Row {
            what: what.clone(),
            state: match result {
                Ok(()) => State::Yes("tried".to_owned()),
                Err(why) => State::No(why.clone()),
            },
            essential: true,
            lost: "everything: holdup run does not work".to_owned(),
            fix: "what is missing above; if nothing is, the sentence of the kernel here tells why".to_owned(),
        });
    }
    Checkup { rows }
}

#[cfg(test)]
mod tests {
    use super::{Checkup, State, decide, table};
    use holdup_proc::capability::{Lockdown, Machine, TRACEPOINTS};
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
            btf: Some(true),
            tracepoints: TRACEPOINTS.map(|name| (name, true)).into(),
            task_work: Some(true),
            tracefs: None,
            kptr_restrict: Some(0),
            kernel_symbols: Some(true),
            perf_event_paranoid: Some(2),
            unprivileged_bpf_disabled: Some(2),
            kernel_log: Some(true),
        }
    }

    fn missing(checkup: &Checkup) -> Vec<&str> {
        checkup
            .rows
            .iter()
            .filter(|row| matches!(row.state, State::No(_)))
            .map(|row| row.what.as_str())
            .collect()
    }

    /// Takes one thing away and expects exactly that to be missing.
    fn without(take: impl FnOnce(&mut Machine), what: &[&str], works: bool) {
        let mut machine = able();
        take(&mut machine);
        let checkup = decide(&machine, &[]);
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

    #[test]
    fn with_everything_nothing_is_missing() {
        without(|_| (), &[], true);
        assert_eq!(
            decide(&able(), &[]).sentence(),
            "holdup run works here and sees all it can."
        );
    }

    #[test]
    fn each_thing_taken_away_is_named_and_nothing_else() {
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
            &["others' libraries"],
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
        without(
            |machine| machine.task_work = Some(false),
            &["woken threads' memory"],
            true,
        );
        without(
            |machine| machine.perf_event_paranoid = None,
            &["CPU samples"],
            true,
        );
        without(|machine| machine.kernel_log = Some(false), &["kernel log"], true);
        for (name, works) in [
            ("sched_switch", false),
            ("sched_waking", false),
            ("sched_process_fork", false),
            ("sched_process_exec", false),
            ("task_rename", true),
            ("signal_generate", true),
            ("sk_data_ready", true),
        ] {
            let what = format!("tracepoint {name}");
            without(
                |machine| _ = machine.tracepoints.insert(name, false),
                &[&what],
                works,
            );
        }
    }

    #[test]
    fn without_type_information_nothing_is_said_of_what_hangs_on_it() {
        without(
            |machine| {
                machine.btf = Some(false);
                machine.tracepoints.clear();
                machine.task_work = None;
            },
            &["kernel type information"],
            false,
        );
    }

    #[test]
    fn a_machine_that_tells_nothing_is_not_condemned() {
        let checkup = decide(&Machine::default(), &[]);
        assert_eq!(missing(&checkup), ["CPU samples"]);
    }

    #[test]
    fn a_trial_that_fails_is_the_last_word() {
        let trials = [("BPF programs".to_owned(), Err("the verifier refused".to_owned()))];
        let checkup = decide(&able(), &trials);
        assert!(!checkup.works());
        assert_eq!(checkup.sentence(), "holdup run does not work here: BPF programs.");
    }

    #[test]
    fn the_table_is_plain_and_fits() {
        let mut machine = able();
        machine.task_work = Some(false);
        machine.tracepoints.insert("sk_data_ready", false);
        machine.status.effective = Some(0);
        machine.kernel_release = Some("6.1\x1b[2J".into());
        let text = table::text(
            &decide(&machine, &[("x".into(), Err("y\nz\x1b".into()))]),
            &machine,
        );
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && !line.contains('\x1b'), "{line:?}");
        }
        assert!(text.contains("lost"), "{text}");
    }
}
