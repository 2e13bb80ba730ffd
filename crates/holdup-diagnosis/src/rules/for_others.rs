//! Who waits for what a finding is about, in words for its first sentence.
//!
//! The problem: of `make` that waits for a shell that waits for `sleep`, the finding is about `sleep`, and whoever asked about `make` reads a
//! sentence without it; and of a program that runs `curl` the sentence is about `curl`, whose own functions say nothing of where the
//! program started it. In: waits with the way from each waiter to where its time went. Out: the waiter at the beginning of that way, and the
//! place in the code of the one that is next to these threads.

use super::{Waits, asked};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{AttributedWait, ThreadName};
use holdup_model::title::Title;
use std::collections::{BTreeMap, BTreeSet};

/// Of what the finding costs, the part that a waiter must have waited for it to be named: one half. Less is another trouble's.
const MIN_SHARE_ONE_IN: Ns = 2;

/// A title, with the process that waits for these threads to go on, where it is another one and the title does not name it.
pub(super) fn with_waiters(title: Title, waits: &Waits<'_>) -> Title {
    let (run, root) = (&waits.run, &waits.main().asker.name);
    if run.machine || run.observed.is_some() {
        return title;
    }
    let behind = behind(waits);
    let between: BTreeSet<u32> = behind.iter().flat_map(|(wait, _)| further(wait)).collect();
    let mut first: Vec<&ThreadName> = behind.iter().map(|(wait, _)| &wait.asker.name).collect();
    first.retain(|name| !between.contains(&name.pid));
    first.sort_by_key(|name| name.pid);
    first.dedup_by_key(|name| name.pid);
    let (process, place) = (&root.process, place(&behind));
    let by = |name: &ThreadName, place: Option<&str>| {
        let place = place.unwrap_or_default();
        if place.is_empty() && (name.process == root.process || title.contains(&name.process)) {
            // Without a place it says no more than that there is another process of that name.
            return None;
        }
        Some(format!(
            "{} waits for {process}{place}",
            told(&title, root, name)?
        ))
    };
    let said = match (first.as_slice(), &place) {
        ([], _) => Vec::new(),
        ([one], Some((asker, place))) if one.pid == asker.pid => vec![by(one, Some(place))],
        // Two of one name are told as the one that has the place.
        ([one], Some((asker, place))) if one.process == asker.process => vec![by(asker, Some(place))],
        ([one], Some((asker, place))) => vec![by(one, None), by(asker, Some(place))],
        ([one], None) => vec![by(one, None)],
        (several, place) => {
            let count = format!("{} processes wait for {process}", several.len());
            let same = several.iter().all(|name| name.process == root.process);
            let place = place.as_ref().and_then(|(asker, place)| by(asker, Some(place)));
            vec![(!same).then_some(count), place]
        }
    };
    let said = said.into_iter().flatten();
    said.fold(title.clone(), |title, clause| title.with(format!("; {clause}")))
}

/// Waits of others whose way leads through what these threads wait for, with how far it is to there.
fn behind<'run>(waits: &Waits<'run>) -> Vec<(&'run AttributedWait, usize)> {
    let roots: BTreeSet<u32> = waits.iter().map(|wait| wait.asker.name.pid).collect();
    let least = (waits.cost() / MIN_SHARE_ONE_IN).max(1);
    let all = waits.run.attributed.waits.iter();
    let of_threads = waits.run.attributed.of_threads;
    let behind = |wait: &AttributedWait| match of_threads {
        true if is_for_started(wait.cause) => wait.ns,
        true => 0,
        false => wait.handed_on_ns,
    };
    let others: Vec<&AttributedWait> = all
        .filter(|wait| behind(wait) > 0 && !roots.contains(&wait.asker.name.pid))
        .collect();
    // A process that waits for one child after the other has a row for each.
    let mut by_process: BTreeMap<u32, Ns> = BTreeMap::new();
    for wait in &others {
        let sum = by_process.entry(wait.asker.name.pid).or_default();
        *sum = sum.saturating_add(behind(wait));
    }
    let others = others.into_iter();
    others
        .filter(|wait| {
            by_process
                .get(&wait.asker.name.pid)
                .is_some_and(|sum| *sum >= least)
        })
        .filter_map(|wait| {
            let last = wait.chain.len().checked_sub(1)?;
            let of_roots = |at: &usize| {
                let link = wait.chain.get(*at);
                link.is_some_and(|link| {
                    roots.contains(&link.name.pid) && (link.cause == waits.cause() || *at == last)
                })
            };
            (0..=last).find(of_roots).map(|at| (wait, at))
        })
        .collect()
}

/// Whether a wait may be for the end or the output of what somebody has started. Among processes that run already the time of each thread is its
/// own, and others wait for each other all the time; whoever started a program and waits for it is the one that asked.
fn is_for_started(cause: Cause) -> bool {
    matches!(cause, Cause::ProcessChild | Cause::IpcPipe | Cause::IpcUnix)
}

/// Where the code of the waiter that is next to these threads, of those whose code is known, asked for them: ` in upload (backup.py:41)`, and who that is.
fn place<'run>(behind: &[(&'run AttributedWait, usize)]) -> Option<(&'run ThreadName, String)> {
    let mut far: Vec<usize> = behind.iter().map(|(_, far)| *far).collect();
    far.sort_unstable();
    far.dedup();
    // Of a shell between the two nobody knows where in its code it waits.
    far.into_iter().find_map(|far| {
        let next = behind.iter().filter(|(_, other)| *other == far);
        let all: Ns = next.clone().map(|(wait, _)| wait.ns).fold(0, Ns::saturating_add);
        // Some waits of a program may have been too short for a look at its frames: what is known of the others stands for them.
        let known = next.filter_map(|(wait, _)| Some((*wait, asked::place_of(wait)?)));
        let known: Vec<(&AttributedWait, String)> = known.collect();
        let (first, place) = known.first()?;
        let same = known.iter().all(|(_, other)| other == place);
        let of_known: Ns = known.iter().map(|(wait, _)| wait.ns).fold(0, Ns::saturating_add);
        let enough = of_known.saturating_mul(MIN_SHARE_ONE_IN) >= all;
        Some((same && enough).then(|| (&first.asker.name, place.clone())))
    })?
}

/// A waiter by its name, with its number where the title has another process of that name; `None` where the title names that very process.
fn told(title: &Title, root: &ThreadName, name: &ThreadName) -> Option<String> {
    let number = format!("(pid {})", name.pid);
    if title.contains(&number) {
        return None;
    }
    let another = title.contains(&name.process) || name.process == root.process;
    Some(if another {
        format!("{} {number}", name.process)
    } else {
        name.process.clone()
    })
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
    use holdup_evidence::{Cause, Frame, Language, Ns, SystemFacts};
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

    /// The wait of one process for the others on the way, asked for in a function of its own.
    fn asked_for(mut wait: AttributedWait, function: &str, line: u32) -> AttributedWait {
        wait.asker.stack = vec![Frame {
            symbol: Some(function.to_owned()),
            file: Some("/srv/backup.py".to_owned()),
            line: Some(line),
            language: Language::Python,
            ..Frame::default()
        }];
        wait
    }

    #[test]
    fn where_the_program_asked_is_said_of_what_it_started() {
        let (backup, sleep) = (name(1, "backup"), name(3, "sleep"));
        let waiting = [asked_for(behind(&backup, &[&sleep], SECOND), "upload", 12)];
        let title = title(&sleep, &waiting);
        assert!(
            title.ends_with("; backup waits for sleep in upload (backup.py:12)"),
            "{title}"
        );
    }

    #[test]
    fn one_child_after_the_other_is_waited_for_in_one_place_through_shells() {
        let (backup, shell, sleep) = (name(1, "backup"), name(2, "sh"), name(3, "sleep"));
        let part = || behind(&backup, &[&shell, &sleep], SECOND / 4);
        let waiting = [
            asked_for(part(), "upload", 12),
            asked_for(part(), "upload", 12),
            part(),
            behind(&shell, &[&sleep], SECOND),
        ];
        let title = title(&sleep, &waiting);
        assert!(
            title.ends_with("; backup waits for sleep in upload (backup.py:12)"),
            "{title}"
        );
        // In two places it was asked for by both.
        let waiting = [
            asked_for(part(), "upload", 12),
            asked_for(part(), "verify", 30),
            behind(&shell, &[&sleep], SECOND / 2),
        ];
        let title = self::title(&sleep, &waiting);
        assert!(!title.contains("backup.py"), "{title}");
    }

    #[test]
    fn of_several_on_the_way_the_next_one_has_the_place() {
        let (make, script, sleep) = (name(1, "make"), name(2, "backup"), name(3, "sleep"));
        let waiting = [
            behind(&make, &[&script, &sleep], SECOND),
            asked_for(behind(&script, &[&sleep], SECOND), "upload", 12),
        ];
        let title = title(&sleep, &waiting);
        let end = "; make waits for sleep; backup waits for sleep in upload (backup.py:12)";
        assert!(title.ends_with(end), "{title}");
    }

    #[test]
    fn a_process_of_the_same_name_has_its_number() {
        let (outer, sleep) = (name(1, "sleep"), name(3, "sleep"));
        let plain = [behind(&outer, &[&sleep], SECOND)];
        assert!(!title(&sleep, &plain).contains("pid 1"));
        let placed = [asked_for(behind(&outer, &[&sleep], SECOND), "upload", 12)];
        let title = title(&sleep, &placed);
        assert!(
            title.ends_with("; sleep (pid 1) waits for sleep in upload (backup.py:12)"),
            "{title}"
        );
    }

    #[test]
    fn of_programs_that_run_already_who_started_it_is_named_and_not_who_asked_it() {
        let (backup, sleep) = (name(1, "backup"), name(3, "sleep"));
        let waits = |cause| {
            let mut wait = asked_for(behind(&backup, &[&sleep], SECOND), "upload", 12);
            (wait.cause, wait.handed_on_ns) = (cause, 0);
            let mut run: Attributed = mostly(Cause::TimerSleep, 1, 1.0, SECOND);
            run.of_threads = true;
            run.waits[0].asker.name = sleep.clone();
            run.waits.push(wait);
            let judged = judge(&Run::new(&run, &SystemFacts::default()));
            let of_sleep = judged.findings.iter().find(|one| one.rule == "sleeps-on-purpose");
            of_sleep.map(|one| one.title.to_string()).unwrap_or_default()
        };
        let place = "; backup waits for sleep in upload (backup.py:12)";
        for cause in [Cause::ProcessChild, Cause::IpcPipe] {
            let title = waits(cause);
            assert!(title.ends_with(place), "{title}");
        }
        let title = waits(Cause::NetReceive);
        assert!(!title.contains("upload"), "{title}");
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
