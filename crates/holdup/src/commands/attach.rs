//! `holdup attach`: the same for what runs already.
//!
//! Nothing is stopped, started or changed; the report goes to stdout when the time is over, the subject has ended, or the
//! person presses Ctrl-C.

use crate::cli::{AttachArgs, Backend, Color};
use crate::commands::doctor;
use crate::commands::run::{keep_events, without_evidence};
use crate::gate::Gate;
use crate::output::{self, Outputs, Place, say};
use crate::progress::Progress;
use crate::recorded::{Recording, Scope};
use crate::verdict;
use holdup_collect as collect;
use holdup_collect::budget::Ceiling;
use holdup_collect::privileges::Part;
use holdup_collect::selection::Selection;
use holdup_subject::signals::Signals;
use holdup_subject::subject;
use std::time::Duration;

/// How long a person waits for a whole answer without wondering.
const PATIENCE: Duration = Duration::from_secs(2);

/// Observes, prints the report, and returns 0; with conditions, what they come to.
///
/// # Errors
/// When what was named is not there, or nothing could be observed.
pub(crate) fn run(args: &AttachArgs, color: Color) -> anyhow::Result<u8> {
    let selection = Selection::new(&args.pid, args.only, &args.name, &args.unit, &args.cgroup)?;
    anyhow::ensure!(subject::proc_is_ours(), subject::NotShown);
    selection.resolve()?;
    let gate = Gate::open(&args.gate)?;
    let outputs = Outputs::open(&args.observation.report, Place::Stdout, color)?;
    let scope = Scope {
        unit: args.unit.first().cloned(),
        cgroup: args.cgroup.first().map(|path| path.display().to_string()),
    };
    let recording = Recording::open(&args.observation.recording, scope)?;
    let events = output::events(args.observation.events.as_deref())?;
    let mut signals = Signals::watch()?;
    let how = collect::How {
        tracing: holdup_bpf::Options {
            buffer: args.observation.buffer,
            pace: holdup_bpf::Pace::Service,
        },
        keep: Some(Part::Trace),
        jvm_attach: args.observation.jvm.ask(),
        follow: !args.alone,
        logs: !args.observation.no_logs,
        predict: None,
        budget: args.observation.budget.budget.map(Ceiling::set),
    };
    let duration = args.duration.map(Duration::from_secs_f64);
    // Who asked for a second or two has the whole answer as soon.
    let wants_word = duration.is_none_or(|duration| duration > PATIENCE);
    let mut notice = |notice: collect::Notice<'_>| match notice {
        collect::Notice::FirstWord(so_far) if wants_word => {
            outputs.first_word(&verdict::of(
                verdict::subject_of_attach(asked(args), so_far),
                so_far,
            ));
        }
        collect::Notice::FirstWord(_) | collect::Notice::SoFar(_) | collect::Notice::Began => {}
    };
    let mut progress = Progress::begin(args.observation.report.quiet);
    let traced = (args.observation.backend != Backend::Proc).then(|| {
        let kept = collect::Kept {
            events: events.as_ref(),
            ..collect::Kept::default()
        };
        collect::attach(
            &selection,
            duration,
            &mut signals,
            how,
            kept,
            &mut progress,
            &mut notice,
        )
    });
    let mut sample = |why: Option<&str>| {
        collect::sample_attached(
            &selection,
            duration,
            &mut signals,
            collect::SampledHow {
                why,
                follow: !args.alone,
                logs: !args.observation.no_logs,
                budget: args.observation.budget.budget.map(Ceiling::set),
                pulse: None,
            },
            events.as_ref(),
            &mut progress,
            &mut notice,
        )
    };
    let collected = match traced {
        None => sample(None),
        Some(Err(error))
            if args.observation.backend == Backend::Auto && !error.is::<collect::EndedBefore>() =>
        {
            let why = doctor::lacking().unwrap_or_else(|| format!("{error:#}"));
            say(&format!(
                "/proc is sampled, because tracing does not work here: {why}; `holdup doctor` shows what to \
                 change"
            ));
            sample(Some(&why))
        }
        Some(collected) => collected,
    };
    drop(progress);
    let mut collected = match args.observation.backend {
        Backend::Bpf => collected.map_err(|error| without_evidence(error, "what runs"))?,
        // Sampling needs no privilege: what it says of itself is what is the matter.
        Backend::Auto | Backend::Proc => collected?,
    };
    if args.observation.report.verbose {
        collected
            .problems
            .iter()
            .for_each(|problem| say(&problem.to_string()));
    }
    let observed = verdict::subject_of_attach(asked(args), &collected);
    let status = outputs.write_judged(verdict::of(observed.clone(), &collected), gate.as_ref());
    keep_events(events, &mut collected, &observed);
    recording.map_or(Ok(()), |recording| recording.write(observed, collected))?;
    Ok(status)
}

/// Processes named in a row; of more their number is reported, and the first few.
const MOST_NAMED: usize = 6;
const FIRST_NAMED: usize = 3;

/// What was asked about, as it was said.
fn asked(args: &AttachArgs) -> Vec<String> {
    let pids = processes(&args.pid).into_iter();
    let names = args.name.iter().map(|name| format!("every {name}"));
    let units = args.unit.iter().map(|unit| format!("unit {unit}"));
    let cgroups = args
        .cgroup
        .iter()
        .map(|path| format!("cgroup {}", path.display()));
    pids.chain(names).chain(units).chain(cgroups).collect()
}

/// `process 7`, `processes 7, 8, 9`, `40 processes (7, 8, 9 …)`: never more than a line has room for.
fn processes(pids: &[u32]) -> Option<String> {
    let listed = |pids: &[u32]| pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match pids {
        [] => None,
        [pid] => Some(format!("process {pid}")),
        few if few.len() <= MOST_NAMED => Some(format!("processes {}", listed(few))),
        many => Some(format!(
            "{} processes ({} …)",
            many.len(),
            listed(&many[..FIRST_NAMED])
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::processes;

    #[test]
    fn many_processes_are_counted_and_a_few_named() {
        let pids: Vec<u32> = (101..=140).collect();
        assert_eq!(processes(&[]), None);
        assert_eq!(processes(&pids[..1]).as_deref(), Some("process 101"));
        assert_eq!(processes(&pids[..3]).as_deref(), Some("processes 101, 102, 103"));
        assert_eq!(
            processes(&pids).as_deref(),
            Some("40 processes (101, 102, 103 …)")
        );
    }
}
