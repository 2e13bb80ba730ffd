//! Processes are over, and their parent does not take note of it.

use crate::rules::list::cpu_waits_for_disk;
use crate::rules::{Rule, RuleId, Run, blocked, figures, fires, say};
use holdup_evidence::observed::{Metric, SeenThread, Snapshot, SnapshotKind, State};
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// Zombies from which they are worth a note: one or two are between their end and the next turn of their parent.
const MIN_ZOMBIES: usize = 5;

/// Zombies of one parent from which it does not see to them: each takes a process id, of which older kernels have 32768.
const MIN_ZOMBIES_OF_WARNING: usize = 50;

/// More of them in the last list than in the first from which they grow.
const MIN_GROWTH: usize = 10;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::ZombiesNotReaped, check)
    .about("zombie processes pile up because their parent does not wait for them")
    .causes(&[Cause::ProcessChild])
    .intermediate();

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let lists: Vec<&Snapshot> = observed
        .snapshots
        .iter()
        .filter(|snapshot| snapshot.kind == SnapshotKind::Kernel)
        .filter(|snapshot| {
            (snapshot.states && blocked::is_whole(observed, snapshot)) || zombies(snapshot).next().is_some()
        })
        .collect();
    let worst = lists.iter().max_by_key(|snapshot| zombies(snapshot).count());
    let counted = figures::of(observed, Metric::ProcessesZombie);
    let counted = counted.max_by(|a, b| a.most().total_cmp(&b.most()));
    match (worst, counted) {
        (Some(worst), _) if zombies(worst).count() >= MIN_ZOMBIES => fires(listed(observed, &lists, worst)),
        (_, Some(counted)) if counted.most() >= MIN_ZOMBIES as f64 => match parents_wait(observed) {
            Some(iowait) => Verdict::CannotTell(format!(
                "whose {:.0} zombies there are: the CPUs wait for disks {iowait:.0} % of the time, and a parent that waits for \
                 one cannot wait for its children",
                counted.most()
            )),
            None => fires(by_number(&counted)),
        },
        (Some(worst), _) => Verdict::Clear(format!(
            "at most {} zombie processes in {}",
            zombies(worst).count(),
            say::several(lists.len() as u64, "list")
        )),
        (None, Some(counted)) => Verdict::Clear(format!("at most {:.0} zombies", counted.most())),
        (None, None) => {
            Verdict::CannotTell("which processes are zombies (Z): `ps -eo pid,ppid,stat,comm`".to_owned())
        }
    }
}

/// The share of time for which the CPUs wait for disks, where it is so large that parents may be among what waits.
fn parents_wait(observed: &Observed) -> Option<f64> {
    let shares = figures::of(observed, Metric::CpuIowaitPercent).map(|iowait| iowait.most());
    shares
        .max_by(f64::total_cmp)
        .filter(|most| *most >= cpu_waits_for_disk::WAITS)
}

fn zombies(snapshot: &Snapshot) -> impl Iterator<Item = &SeenThread> {
    let zombie = |task: &&SeenThread| task.state == State::Zombie;
    snapshot.threads.iter().filter(zombie)
}

fn listed(observed: &Observed, lists: &[&Snapshot], worst: &Snapshot) -> Finding {
    let mut parents: BTreeMap<Option<u32>, Vec<&SeenThread>> = BTreeMap::new();
    for zombie in zombies(worst) {
        parents.entry(zombie.parent).or_default().push(zombie);
    }
    let all = zombies(worst).count();
    let most = parents
        .iter()
        .max_by_key(|(parent, children)| (children.len(), parent.is_some()));
    let (parent, children) = most.map_or((None, Vec::new()), |(parent, children)| {
        (*parent, children.clone())
    });
    let name = parent.and_then(|pid| {
        let mut tasks = worst.threads.iter();
        tasks.find(|task| task.pid.or(task.tid) == Some(pid))
    });
    let who = match (parent, name) {
        (Some(pid), Some(task)) => Some(format!("{} (pid {pid})", task.name)),
        (Some(pid), None) => Some(format!("pid {pid}")),
        (None, _) => None,
    };
    let title = match &who {
        Some(who) => format!(
            "{} children of {who} are zombies: it does not wait for them",
            children.len()
        ),
        None => format!("{all} processes are zombies: their parents do not wait for them"),
    };
    let growth = growth(lists);
    let severity = match children.len() >= MIN_ZOMBIES_OF_WARNING || growth.is_some() {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let place = children
        .first()
        .map_or_else(String::new, |task| blocked::read_at(observed, &task.quote));
    let names = blocked::names(&children);
    let first = Evidence::new(
        format!("{all} tasks are in state Z; of this parent: {names}"),
        place,
    );
    let mut finding = Finding::without_duration(RULE.id.id(), severity, title, Cause::ProcessChild, first);
    if let Some(task) = name {
        finding = finding.and(Evidence::new(
            format!("{} is the parent", task.name),
            blocked::read_at(observed, &task.quote),
        ));
    }
    if let Some((from, to)) = growth {
        let text = format!(
            "their number grows: {from} in the first list, {to} in the last of {}",
            lists.len()
        );
        finding = finding.and(Evidence::new(text, blocked::read_at(observed, &worst.quote)));
    }
    let resource = Resource {
        kind: ResourceKind::Process,
        name: who.clone().unwrap_or_else(|| "an unknown parent".to_owned()),
        ..Resource::default()
    };
    remedies(finding.about(resource, Asker::default()), who.as_deref()).confidence(match who {
        Some(_) => Confidence::Strong,
        None => Confidence::Suspect,
    })
}

/// How many there were in the first list and in the last, where they grow.
fn growth(lists: &[&Snapshot]) -> Option<(usize, usize)> {
    let same = |snapshot: &&&Snapshot| {
        lists
            .first()
            .is_some_and(|first| first.quote.source == snapshot.quote.source)
    };
    let counts: Vec<usize> = lists
        .iter()
        .filter(same)
        .map(|snapshot| zombies(snapshot).count())
        .collect();
    let (first, last) = (*counts.first()?, *counts.last()?);
    (counts.is_sorted() && last >= first + MIN_GROWTH).then_some((first, last))
}

fn by_number(counted: &figures::Intervals<'_>) -> Finding {
    let most = counted.most();
    let title = format!("{most:.0} processes are zombies: their parents do not wait for them");
    let first = counted.evidence(format!("{} zombies", figures::span(&counted.values(), 0)));
    // A number alone does not say whether it grows, and zombies that only stand there hold nothing up.
    let finding = Finding::without_duration(RULE.id.id(), Severity::Note, title, Cause::ProcessChild, first);
    remedies(finding, None).confidence(Confidence::Suspect)
}

fn remedies(finding: Finding, parent: Option<&str>) -> Finding {
    let finding = match parent {
        Some(parent) => finding
            .remedy(Remedy::safe(format!(
                "fix {parent}: it must wait for its children, or ignore SIGCHLD; find out what it waits for"
            )))
            .remedy(Remedy::changing(
                format!("restart {parent}: init then waits for its dead children at once"),
                "its current work is interrupted",
            )),
        None => finding
            .remedy(Remedy::safe("list their parents").with_command("ps -eo pid,ppid,stat,comm | grep ' Z'")),
    };
    finding
        .remedy(Remedy::safe(
            "run an init in a container, which waits for orphans (`docker run --init`)",
        ))
        .remedy(Remedy::pointless(
            "killing the zombies: they have exited, and use only a process id each",
        ))
}
