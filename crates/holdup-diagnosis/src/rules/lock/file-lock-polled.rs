//! A lock on a file is waited for by sleeping and trying again.

use crate::rules::{MATTERS, Rule, RuleId, Run, Waits, fires, percent, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::facts::LockedFile;
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::{lock_names, user_code};
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// Sleeps from which it tries again and again.
const MIN_SLEEPS: u64 = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::FileLockPolled, check)
    .about("a file's lock is waited for by sleeping and trying again")
    .causes(&[Cause::TimerSleep]);

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let tries = waits.only(|wait| asks(wait).is_some());
    let groups = tries.map_or_else(Vec::new, |all| all.split(|wait| wait.asker.name.pid));
    let mut slept = 0;
    for group in &groups {
        if group.count() < MIN_SLEEPS || !run.matters(group.cost(), MATTERS) {
            continue;
        }
        slept = slept.max(group.count());
        let locks = locks(run, group);
        if !locks.is_empty() {
            return fires(finding(run, group, &locks));
        }
    }
    Verdict::Clear(format!(
        "sleep took {} of the elapsed time: {slept} sleeps were in functions that ask for a lock, and no other process had a lock on a file \
         that the sleeper has open",
        percent(run.share(waits.cost()))
    ))
}

/// The function about a lock in which a thread sleeps: the program's own, or one of a library that it called. Those that have rules of their
/// own are none.
fn asks(wait: &AttributedWait) -> Option<&Frame> {
    let stack = &wait.asker.stack;
    if user_code::sqlite_waits(stack) || user_code::apt_waits(stack) {
        return None;
    }
    let place = chosen_frame(stack)?;
    let last = stack.iter().position(|frame| std::ptr::eq(frame, place))?;
    let about = |frame: &&Frame| frame.symbol.as_deref().is_some_and(lock_names::is_about_a_lock);
    stack.get(..=last)?.iter().find(about)
}

/// The locks of others on files that the sleeper has open.
fn locks<'a>(run: &Run<'a>, group: &Waits<'_>) -> Vec<&'a LockedFile> {
    let pid = group.main().asker.name.pid;
    let known = run.facts.locked_files.iter();
    known.filter(|lock| lock.users.contains(&pid)).collect()
}

/// `perl tidy.pl (pid 7)`.
fn holder(run: &Run<'_>, lock: &LockedFile) -> String {
    let name = say::script(run, lock.holder).unwrap_or(&lock.process);
    format!("{} (pid {})", say::name_or(name, "a process"), lock.holder)
}

fn finding(run: &Run<'_>, group: &Waits<'_>, locks: &[&LockedFile]) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let (first, tried) = (locks[0], asks(main));
    let has = holder(run, first);
    let stopped = if first.stopped { ", which is stopped" } else { "" };
    let title = match locks {
        [_] => format!(
            "{who} waits for the lock on file {}, held by {has}{stopped}, and sleeps between its tries",
            first.file
        ),
        _ => format!(
            "{who} waits for a lock on a file, and sleeps between its tries: {has}{stopped} holds that on {}, and others hold {}",
            first.file,
            say::several(locks.len() as u64 - 1, "other lock")
        ),
    };
    let tried = tried
        .and_then(|frame| frame.symbol.as_deref())
        .unwrap_or_default();
    let mut finding = RULE
        .finding(Severity::Warning, title, group)
        .and(Evidence::new(
            format!("it slept {} times in {tried}", group.count()),
            "user stacks",
        ))
        .confidence(match locks {
            [_] => Confidence::Strong,
            _ => Confidence::Suspect,
        });
    for lock in locks {
        finding = finding.and(Evidence::new(
            format!(
                "{} has a lock on {}, which {who} has open",
                holder(run, lock),
                lock.file
            ),
            "/proc/locks and /proc/PID/fdinfo, as observation ended",
        ));
    }
    finding.resource = Resource::named(ResourceKind::Lock, format!("the lock on {}", first.file));
    let finding = match first.stopped {
        true => finding.remedy(
            Remedy::changing(
                format!("let {has} run on"),
                "somebody may have stopped it on purpose",
            )
            .with_command(format!("kill -CONT {}", first.holder)),
        ),
        false => finding.remedy(
            Remedy::safe(format!("find out what {has} does with the lock, or end it"))
                .with_command(format!("holdup attach -p {}", first.holder)),
        ),
    };
    finding
        .remedy(Remedy::safe(
            "set a time limit for the lock (of bbolt, Options.Timeout; of filelock, timeout=), so that the program says what it lacks",
        ))
        .remedy(Remedy::pointless("trying more often: the lock is held all the time"))
}
