//! A process sleeps and looks again, and a lock file beside it names another process that lives.

use crate::rules::{MATTERS, Rule, RuleId, Run, Waits, fires, live_sessions, percent, say};
use holdup_evidence::Cause;
use holdup_evidence::facts::LockFile;
use holdup_model::attributed::{Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeSet;

/// Sleeps from which it looks again and again.
const MIN_SLEEPS: u64 = 2;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::LockFileNamesMaker, check)
    .about("a process sleeps beside a lock file that another one made")
    .causes(&[Cause::TimerSleep])
    .explains(&[RuleId::ProgramFailsAgain]);

/// The program that shells sleep with.
const SLEEPER: &str = "sleep";

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    for pid in run
        .facts
        .lock_files
        .iter()
        .map(|one| one.beside)
        .collect::<BTreeSet<u32>>()
    {
        let own = |wait: &holdup_model::attributed::AttributedWait| {
            wait.asker.name.pid == pid || wait.asker.name.process == SLEEPER
        };
        let Some(group) = waits.only(own) else { continue };
        if group.count() < MIN_SLEEPS || !run.matters(group.cost(), MATTERS) {
            continue;
        }
        let files: Vec<&LockFile> = run
            .facts
            .lock_files
            .iter()
            .filter(|one| one.beside == pid)
            .collect();
        return fires(finding(run, &group, &files));
    }
    Verdict::Clear(format!(
        "sleep took {} of the elapsed time, and no lock file beside a process that slept named another one",
        percent(run.share(waits.cost()))
    ))
}

/// `hg (pid 7)`.
fn named(run: &Run<'_>, name: &str, pid: u32) -> String {
    live_sessions::process(say::script(run, pid).unwrap_or(name), pid)
}

/// What the holder waits for, for the end of a title.
fn stands(run: &Run<'_>, one: &LockFile) -> String {
    let last = one.last.as_ref().and_then(|last| Some((last, last.pid?)));
    let end = last.map(|(last, pid)| named(run, &last.process, pid));
    match (one.stopped, &end, one.awaits.as_str()) {
        (true, ..) => ", which is stopped".to_owned(),
        (false, Some(end), "") if last.is_some_and(|(last, _)| last.stopped) => {
            format!("; below that, {end} is stopped")
        }
        (false, Some(end), "") => format!("; below that runs {end}"),
        (false, Some(end), awaits) => format!("; below that, {end} waits for {awaits} to answer"),
        (false, None, "") => String::new(),
        (false, None, awaits) => format!(", which waits for {awaits} to answer"),
    }
}

/// Whether the maker, or who it waits for, can do nothing.
fn is_stuck(one: &LockFile) -> bool {
    one.stopped || one.last.as_ref().is_some_and(|last| last.stopped) || !one.awaits.is_empty()
}

fn finding(run: &Run<'_>, group: &Waits<'_>, files: &[&LockFile]) -> Finding {
    let first = files[0];
    let holders: BTreeSet<u32> = files.iter().map(|one| one.holder).collect();
    let main = group.main();
    let who = match main.asker.name.pid == first.beside {
        true => say::who(&main.asker.name),
        false => say::script(run, first.beside).map_or_else(|| say::who(&main.asker.name), str::to_owned),
    };
    let holder = named(run, &first.process, first.holder);
    // That it waits for this file is not observed. A maker that stands itself makes it likely; one that works does not.
    let (severity, seems) = match is_stuck(first) {
        true => (Severity::Warning, "seems to"),
        false => (Severity::Note, "may"),
    };
    let title = format!(
        "{who} {seems} wait for lock file {}, held by {holder}{}",
        first.path,
        stands(run, first)
    );
    let mut finding = RULE
        .finding(severity, title, group)
        .confidence(Confidence::Suspect);
    for one in files {
        finding = finding.and(Evidence::new(
            format!(
                "lock file {} names {}, which lives",
                one.path,
                named(run, &one.process, one.holder)
            ),
            "the file, in the working directory of the process that sleeps or in one that its arguments name",
        ));
    }
    if holders.len() > 1 {
        finding = finding.and(Evidence::new(
            format!(
                "which of these {} processes it waits for is not known",
                holders.len()
            ),
            "lock files beside the process that sleeps",
        ));
    }
    finding.resource = Resource::named(ResourceKind::Lock, first.path.clone());
    let finding = match first.stopped {
        true => finding.remedy(live_sessions::go_on(&holder, first.holder)),
        false => finding.remedy(
            Remedy::safe(format!("find out what {holder} does with the lock"))
                .with_command(format!("holdup attach -p {}", first.holder)),
        ),
    };
    finding
        .remedy(Remedy::safe("set a time limit for what its maker waits for"))
        .remedy(Remedy::pointless(
            "removing the file: its maker still works, and both would write at the same time",
        ))
}
