//! Who waits for what a finding is about, in words for its first sentence.
//!
//! The problem: of `make` that waits for a shell that waits for `sleep`, the finding is about `sleep`, and whoever asked about `make` reads a
//! sentence without it. In: waits with the way from each waiter to where its time went. Out: the waiter at the beginning of that way.

use super::Waits;
use holdup_evidence::Ns;
use holdup_model::attributed::{AttributedWait, ThreadName};
use holdup_model::title::Title;
use std::collections::BTreeSet;

/// Of what the finding costs, the part that a waiter must have waited for it to be named: one half. Less is another trouble's.
const MIN_SHARE_ONE_IN: Ns = 2;

/// A title, with the process that waits for these threads to go on, where it is another one and the title does not name it.
pub(super) fn with_waiters(title: Title, waits: &Waits<'_>) -> Title {
    let (run, root) = (&waits.run, &waits.main().asker.name);
    if run.machine || run.observed.is_some() {
        return title;
    }
    let roots: BTreeSet<u32> = waits.iter().map(|wait| wait.asker.name.pid).collect();
    let behind: Vec<&AttributedWait> = run
        .attributed
        .waits
        .iter()
        .filter(|wait| wait.handed_on_ns >= (waits.cost() / MIN_SHARE_ONE_IN).max(1))
        .filter(|wait| is_behind(wait, &roots))
        .collect();
    let between: BTreeSet<u32> = behind.iter().flat_map(|wait| further(wait)).collect();
    let mut first: Vec<&ThreadName> = behind.iter().map(|wait| &wait.asker.name).collect();
    first.retain(|name| !between.contains(&name.pid) && !title.contains(&name.process));
    first.sort_by_key(|name| name.pid);
    first.dedup_by_key(|name| name.pid);
    first.retain(|name| name.process != root.process);
    match first.as_slice() {
        [] => title,
        [one] => title.with(format!("; {} waits for {}", one.process, root.process)),
        several => title.with(format!("; {} processes wait for {}", several.len(), root.process)),
    }
}

/// Whether the way from a wait ends in one of these processes, and begins in another.
fn is_behind(wait: &AttributedWait, roots: &BTreeSet<u32>) -> bool {
    !roots.contains(&wait.asker.name.pid)
        && wait
            .chain
            .last()
            .is_some_and(|last| roots.contains(&last.name.pid))
}

/// The processes on the way from a wait, without its own.
fn further(wait: &AttributedWait) -> impl Iterator<Item = u32> + '_ {
    let own = wait.asker.name.pid;
    wait.chain
        .iter()
        .map(|link| link.name.pid)
        .filter(move |pid| *pid != own)
}

#[cfg(test)]
mod tests {
    use super::super::examples::mostly;
    use super::super::judge;
    use super::super::run::Run;
    use holdup_evidence::{Cause, Ns, SystemFacts};
    use holdup_model::attributed::{Attributed, AttributedWait, Link, ThreadName};

    const SECOND: Ns = 1_000_000_000;

    fn name(pid: u32, process: &str) -> ThreadName {
        ThreadName {
            pid,
            tid: pid,
            process: process.to_owned(),
            thread: process.to_owned(),
        }
    }

    /// The wait of one process for the others on the way.
    fn behind(of: &ThreadName, way: &[&ThreadName], ns: Ns) -> AttributedWait {
        let mut wait = mostly(Cause::ProcessChild, 1, 1.0, SECOND).waits.remove(0);
        wait.asker.name = of.clone();
        (wait.ns, wait.path_ns, wait.handed_on_ns) = (ns, 0, ns);
        let link = |name: &ThreadName| Link {
            name: name.clone(),
            cause: Cause::ProcessChild,
            ns,
            frame: None,
        };
        let on_way = std::iter::once(of).chain(way.iter().copied());
        wait.chain = on_way.map(link).collect();
        wait
    }

    /// What is said first where `sleep` sleeps for a second, and these wait.
    fn title(sleeper: &ThreadName, waiting: &[AttributedWait]) -> String {
        let mut run: Attributed = mostly(Cause::TimerSleep, 1, 1.0, SECOND);
        run.waits[0].asker.name = sleeper.clone();
        run.waits.extend_from_slice(waiting);
        let judged = judge(&Run::new(&run, &SystemFacts::default()));
        judged.findings[0].title.to_string()
    }

    #[test]
    fn who_was_asked_about_is_named_and_not_who_is_between() {
        let (make, shell, sleep) = (name(1, "make"), name(2, "sh"), name(3, "sleep"));
        let waiting = [
            behind(&make, &[&shell, &sleep], SECOND),
            behind(&shell, &[&sleep], SECOND),
        ];
        let title = title(&sleep, &waiting);
        assert!(title.ends_with("; make waits for sleep"), "{title}");
    }

    #[test]
    fn several_are_counted() {
        let sleep = name(9, "sleep");
        let waiting = [(1, "make"), (2, "git")].map(|(pid, of)| behind(&name(pid, of), &[&sleep], SECOND));
        let title = title(&sleep, &waiting);
        assert!(title.ends_with("; 2 processes wait for sleep"), "{title}");
    }

    #[test]
    fn who_waits_for_a_small_part_of_it_is_not_named() {
        let (make, sleep) = (name(1, "make"), name(3, "sleep"));
        let title = title(&sleep, &[behind(&make, &[&sleep], SECOND / 10)]);
        assert!(!title.contains("make"), "{title}");
    }
}
