//! From what was collected to the report: the rules judge what attribution made of it, the report is built.

pub(crate) mod artefacts;
pub(crate) mod machine;

use holdup_collect::Collected;
use holdup_diagnosis::rules::{Run, judge};
use holdup_model::report::{Machine, Report, SubjectKind};
use holdup_recording::Segment;
use holdup_report::Subject as Observed;
use holdup_subject::subject::{Command, Ended, Subject};
use std::collections::BTreeSet;

/// What a run was.
pub(crate) fn subject_of_run(command: &Command, subject: &Subject, collected: &Collected) -> Observed {
    let attributed = &collected.attributed;
    let others: BTreeSet<u32> = attributed
        .threads
        .iter()
        .map(|thread| thread.name.pid)
        .filter(|pid| *pid != subject.pid() && *pid != 0)
        .collect();
    Observed {
        kind: SubjectKind::Run,
        backend: collected.backend,
        command: command
            .argv
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        pids: std::iter::once(subject.pid()).chain(others).collect(),
        started: collected.started,
        exit: collected.ended.map(Ended::status).map(i32::from),
        elsewhere: vec![],
    }
}

/// What was looked at of what ran already; `asked` says what was asked about, as the command line has it.
pub(crate) fn subject_of_attach(asked: Vec<String>, collected: &Collected) -> Observed {
    let threads = collected.attributed.threads.iter();
    let pids: BTreeSet<u32> = threads
        .map(|thread| thread.name.pid)
        .filter(|pid| *pid != 0)
        .collect();
    Observed {
        kind: SubjectKind::Attach,
        backend: collected.backend,
        command: asked,
        pids: pids.into_iter().collect(),
        started: collected.started,
        exit: None,
        elsewhere: collected.elsewhere.clone(),
    }
}

/// The machine that this runs on.
pub(crate) fn this_machine() -> Option<Machine> {
    let name = nix::sys::utsname::uname().ok()?;
    Some(Machine {
        host: name.nodename().to_string_lossy().into_owned(),
        kernel: name.release().to_string_lossy().into_owned(),
    })
}

/// The report of what was collected.
pub(crate) fn of(observed: Observed, collected: &Collected) -> Report {
    let run = Run::new(&collected.attributed, &collected.facts);
    judged(observed, &run, this_machine())
}

/// The report of what was recorded: the same rules over the same evidence.
/// `machine`: of all that ran there, where nobody named what to look at.
pub(crate) fn of_segment(segment: &Segment, machine: bool) -> Report {
    let head = &segment.head;
    let observed = Observed {
        kind: head.kind,
        backend: head.backend,
        command: head.command.clone(),
        pids: head.pids.clone(),
        started: head.started,
        exit: head.exit,
        elsewhere: head.elsewhere.clone(),
    };
    let host = head.host.clone().zip(head.kernel.clone());
    let host = host.map(|(host, kernel)| Machine { host, kernel });
    match &segment.look {
        Some(look) => Report {
            machine: host,
            ..machine::report(observed, &segment.attributed, &segment.facts, look)
        },
        None => {
            let (attributed, facts) = (&segment.attributed, &segment.facts);
            let run = match machine {
                true => Run::of_machine(attributed, facts),
                false => Run::new(attributed, facts),
            };
            judged(observed, &run, host)
        }
    }
}

fn judged(observed: Observed, run: &Run<'_>, machine: Option<Machine>) -> Report {
    let report = holdup_report::build(
        observed,
        run.attributed,
        judge(run).into(),
        run.facts,
        env!("CARGO_PKG_VERSION"),
    );
    Report { machine, ..report }
}
