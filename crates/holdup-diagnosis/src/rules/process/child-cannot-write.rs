//! A process waits for its child to end, and the child waits for that process to read its output.

use crate::rules::{MATTERS, Rule, RuleId, Run, Waits, duration, fires, java_waits, percent, say};
use holdup_attribution::attribution::chosen_frame;
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::system_calls::Kind;
use holdup_knowledge::{java, system_calls};
use holdup_model::attributed::{AttributedWait, Link};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ChildCannotWrite, check)
    .about("a process waits for a child whose output it does not read")
    .causes(&[Cause::ProcessChild, Cause::IpcUnix])
    .explains(&[RuleId::NobodyCompletes, RuleId::PipePeerSlow]);

/// A parent's wait and the wait of the child that it is for, which only the parent could end.
struct Deadlock<'a> {
    parent: &'a AttributedWait,
    child: &'a AttributedWait,
    /// For how long both lasted at once, in nanoseconds.
    both: Ns,
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    if waits.cause() == Cause::IpcUnix {
        return unread(run, waits);
    }
    match longest(run, waits, cannot_write) {
        Some(pair) if run.matters(pair.both, MATTERS) => {
            let asks = asks_for_end(run, pair.parent).unwrap_or(pair.parent);
            let own = run.waits(|wait| std::ptr::eq(wait, asks));
            Verdict::Fires(own.map(|waits| finding(&waits, &pair)).into_iter().collect())
        }
        other => {
            if let Some(third) = waits.iter().find_map(|wait| through_another(run, wait))
                && let Some(own) = run.waits(|wait| std::ptr::eq(wait, third.reader))
                && run.matters(own.cost(), MATTERS)
            {
                return fires(of_three(run, &own, &third));
            }
            let circle = waits.only(|wait| circle(wait).is_some());
            if let Some(circle) = circle.filter(|circle| run.matters(circle.cost(), MATTERS)) {
                return fires(of_circle(&circle));
            }
            Verdict::Clear(format!(
                "of {} of the elapsed time in waits for children, {} was for one that wanted to write to its parent",
                percent(run.share(waits.cost())),
                duration(other.map_or(0, |pair| pair.both)),
            ))
        }
    }
}

/// The pair of one of these waits and a wait of a child that `cannot` go on meanwhile, that lasted longest.
fn longest<'a>(
    run: &'a Run<'_>,
    waits: &Waits<'a>,
    cannot: impl Fn(&AttributedWait, &AttributedWait) -> bool,
) -> Option<Deadlock<'a>> {
    let pairs = waits.iter().flat_map(|parent| {
        let children = run.attributed.waits.iter().filter(|child| cannot(child, parent));
        let pair = |child| Deadlock {
            parent,
            child,
            both: overlap(parent, child),
        };
        children.map(pair).collect::<Vec<_>>()
    });
    pairs.max_by_key(|pair| pair.both)
}

/// By the waits of an event loop: it has a pair of sockets for the output of its child, and waits for something else of that child.
fn unread(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    match longest(run, waits, is_not_read) {
        Some(pair) if run.matters(pair.both, MATTERS) => {
            let own = waits.only(|wait| std::ptr::eq(wait, pair.parent));
            Verdict::Fires(own.map(|waits| not_read(&waits, &pair)).into_iter().collect())
        }
        other => Verdict::Clear(format!(
            "for {} a process waited at a socket for one that wanted to write to it",
            duration(other.map_or(0, |pair| pair.both))
        )),
    }
}

/// Whether this is a wait for room in a socket that only `parent` reads, while that one waits for the writer.
fn is_not_read(writer: &AttributedWait, parent: &AttributedWait) -> bool {
    let other = writer.asker.name.pid != parent.asker.name.pid;
    let writes = |wait: &AttributedWait| system_calls::is_named(wait.call.as_deref(), Kind::Writes);
    let waits_for =
        |wait: &AttributedWait, pid: u32| wait.holders.iter().any(|holder| holder.name.pid == pid);
    other
        && writer.cause == Cause::IpcUnix
        && writer.open
        && parent.open
        && writes(writer)
        && !writes(parent)
        && waits_for(writer, parent.asker.name.pid)
        && waits_for(parent, writer.asker.name.pid)
}

fn not_read(waits: &Waits<'_>, pair: &Deadlock<'_>) -> Finding {
    let (parent, child) = (
        say::who(&pair.parent.asker.name),
        say::who_with_pid(&pair.child.asker.name),
    );
    let place = chosen_frame(&pair.parent.asker.stack)
        .map_or_else(String::new, |frame| format!(" in {}", say::place(frame)));
    let title =
        format!("{parent} waits for {child}{place}, and does not read its output, in which there is no room");
    let text = format!(
        "for {} both waited: {child} in {} for room in a Unix socket of {parent}, and {parent} in {} for {child}",
        duration(pair.both),
        pair.child.call.as_deref().unwrap_or("write"),
        pair.parent.call.as_deref().unwrap_or("poll"),
    );
    let mut finding = RULE
        .finding(Severity::Critical, title, waits)
        .and(Evidence::new(text, say::SCHEDULER))
        .confidence(Confidence::Proved);
    finding.ns = Some(pair.both);
    finding
        .remedy(Remedy::safe(
            "read the output of the child: in Node.js give its stream a listener for data, pipe it, or call resume()",
        ))
        .remedy(Remedy::safe(
            "or make none: send it to a file or to /dev/null (stdio: 'ignore')",
        ))
        .remedy(Remedy::pointless("waiting longer: neither can continue"))
}

/// The child, where it was not observed itself, and waits at a pipe for the very thread that waits for it to end.
fn circle(parent: &AttributedWait) -> Option<&Link> {
    let [_, child, last] = parent.chain.as_slice() else {
        return None;
    };
    let waits = parent.open && child.cause == Cause::IpcPipe && last.name == parent.asker.name;
    (waits && child.name.pid != parent.asker.name.pid).then_some(child)
}

/// A process that reads one pipe of a child, while a child of that one wants to write to another of its pipes.
struct Third<'a> {
    reader: &'a AttributedWait,
    parent: &'a AttributedWait,
    writer: &'a AttributedWait,
}

/// The circle of three, where a wait for a child is part of one: a shell waits for its command, the command for room in a pipe of whoever started
/// the shell, and that one reads the other pipe.
fn through_another<'a>(run: &Run<'a>, parent: &'a AttributedWait) -> Option<Third<'a>> {
    let [_, child, other, last] = parent.chain.as_slice() else {
        return None;
    };
    let back = last.name.pid == parent.asker.name.pid;
    let pipes = child.cause == Cause::IpcPipe && other.cause == Cause::IpcPipe;
    if !parent.open || !back || !pipes {
        return None;
    }
    let of = |pid: u32, kind: Kind| {
        let mut waits = run.attributed.waits.iter();
        waits.find(|wait| {
            wait.asker.name.pid == pid
                && wait.open
                && wait.cause == Cause::IpcPipe
                && system_calls::is_named(wait.call.as_deref(), kind)
        })
    };
    Some(Third {
        reader: of(other.name.pid, Kind::Reads)?,
        parent,
        writer: of(child.name.pid, Kind::Writes)?,
    })
}

fn of_three(run: &Run<'_>, waits: &Waits<'_>, third: &Third<'_>) -> Finding {
    let reader = say::who(&third.reader.asker.name);
    let parent = say::program(run, &third.parent.asker.name);
    let writer = say::who_with_pid(&third.writer.asker.name);
    let title = format!(
        "{reader} reads one pipe of {parent}, and not the one to which its child {writer} waits to write: neither can continue"
    );
    let text = format!(
        "{writer} waits for room in {}, which {reader} has open; {reader} waits for data in {}, which {parent} has open, and that one waits for {writer} to end",
        say::name_or(&third.writer.resource.name, "a pipe"),
        say::name_or(&third.reader.resource.name, "another pipe"),
    );
    RULE.finding(Severity::Critical, title, waits)
        .and(Evidence::new(text, "descriptors, and the calls that all three are in"))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "read both pipes at once (poll or select; in Python communicate(), in Ruby Open3.capture3), or send both to one pipe (2>&1)",
        ))
        .remedy(Remedy::safe("or send the output that is not read to a file, or to /dev/null"))
        .remedy(Remedy::pointless(
            "waiting longer: neither can continue, because a pipe holds only 64 KiB",
        ))
}

/// Which way the pipe goes is not known of a child that was not observed.
fn of_circle(waits: &Waits<'_>) -> Finding {
    let main = waits.main();
    let parent = say::who(&main.asker.name);
    let child = circle(main).map_or_else(|| "its child".to_owned(), |child| say::who_with_pid(&child.name));
    let title =
        format!("{parent} waits for {child} to end, and {child} waits for {parent} at a pipe between them");
    RULE.finding(Severity::Critical, title, waits)
        .and(Evidence::new(
            format!("{parent} has the other end of the pipe at which {child} waits"),
            "descriptors, and the calls that both are in",
        ))
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe(
            "read the output of the child until it ends, and then wait for it (in Python: communicate() or \
             run(), not wait())",
        ))
        .remedy(Remedy::safe(
            "close the input of the child when all is written, if the child reads",
        ))
        .remedy(Remedy::pointless("waiting longer: neither can continue"))
}

/// Whether this is a wait for room in a pipe, by the child that `parent` waits for, and it ended by what that very
/// thread did: it read at last, or it was killed and the pipe closed. A thread of a runtime that collects children does so for others of its
/// process: of those, both must stand.
fn cannot_write(child: &AttributedWait, parent: &AttributedWait) -> bool {
    let stands = |wait: &AttributedWait| wait.open && wait.max >= java_waits::STANDS_NS;
    let collects = java_waits::frames(parent).into_iter().any(java::collects_child);
    let by_others = collects && stands(child) && stands(parent);
    child.cause == Cause::IpcPipe
        && system_calls::is_named(child.call.as_deref(), Kind::Writes)
        && parent.resource.detail.pid == Some(child.asker.name.pid)
        && child.holders.iter().any(|holder| {
            holder.name.tid == parent.asker.name.tid || by_others && holder.name.pid == parent.asker.name.pid
        })
}

/// The thread that wants to know of the end of a child, if a thread of the runtime collects it: the only one of the process that does.
fn asks_for_end<'a>(run: &'a Run<'_>, parent: &AttributedWait) -> Option<&'a AttributedWait> {
    let asks = |wait: &&AttributedWait| {
        wait.open
            && wait.asker.name.pid == parent.asker.name.pid
            && wait.asker.name.tid != parent.asker.name.tid
            && java_waits::frames(wait).into_iter().any(java::waits_for_child)
    };
    let mut all = run.attributed.waits.iter().filter(asks);
    all.next().filter(|_| all.next().is_none())
}

fn overlap(one: &AttributedWait, other: &AttributedWait) -> Ns {
    let end = one.max_ended.min(other.max_ended);
    end.saturating_sub(one.max_started.max(other.max_started))
}

fn finding(waits: &Waits<'_>, pair: &Deadlock<'_>) -> Finding {
    // Of a runtime that collects children in a thread of its own, that thread is none of the program's.
    let (asks, run) = (&waits.main().asker.name, &waits.run);
    let itself = asks.tid == pair.parent.asker.name.tid;
    let parent = match itself {
        true => say::who(asks),
        false => asks.process.clone(),
    };
    let child = say::who(&pair.child.asker.name);
    let named = say::program(run, &pair.child.asker.name);
    let title = format!(
        "{parent} waits for its child {named} to end, and {child} waits for {parent} to read its output from a pipe"
    );
    let text = format!(
        "for {} both waited: {child} for room in {}, {parent} in {} for {child}",
        duration(pair.both),
        say::name_or(&pair.child.resource.name, "a pipe"),
        pair.parent.call.as_deref().unwrap_or("wait4"),
    );
    let mut finding = RULE
        .finding(Severity::Critical, title, waits)
        .and(Evidence::new(text, "sched_switch and sched_waking"))
        .confidence(match itself {
            true => Confidence::Proved,
            // Whether another of its threads would read is not known.
            false => Confidence::Strong,
        });
    finding.ns = Some(pair.both);
    finding
        .remedy(Remedy::safe(
            "read the output of the child until it ends, and then wait for it (in Python: communicate() or \
             run(), not wait())",
        ))
        .remedy(Remedy::safe("or send its output to a file, or to /dev/null"))
        .remedy(Remedy::pointless(
            "waiting longer: neither can continue, because a pipe holds only 64 KiB",
        ))
}
