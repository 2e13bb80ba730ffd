//! Tasks of a language runtime wait for the other end of a connection, at a first look and at a last: no thread waits for it.

use crate::rules::{Rule, RuleId, Run, tasks};
use holdup_evidence::Cause;
use holdup_knowledge::go;
use holdup_model::attributed::{AttributedWait, Peer, ResourceKind, Task};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::TasksWaitForPeer, check)
    .about("tasks of a runtime wait for a server, at a first look and at a last")
    .causes(&[Cause::NetReceive, Cause::IpcPipe])
    .from(0.0)
    .intermediate();

/// What the tasks wait for, where that is several servers.
const SERVERS: &str = "for servers to answer";

fn check(run: &Run<'_>) -> Verdict {
    let asked = tasks::judge(run, SERVERS, |task| asks(task) && !is_known(run, task), finding);
    let others = [
        tasks::judge(run, UNREAD, writes, unread),
        tasks::judge(run, OUTPUT, awaits_output, output_kept_open),
    ];
    others.into_iter().fold(asked, |known, more| match (known, more) {
        (Verdict::Fires(mut all), Verdict::Fires(more)) => {
            all.extend(more);
            Verdict::Fires(all)
        }
        (_, Verdict::Fires(more)) => Verdict::Fires(more),
        (known, _) => known,
    })
}

/// What goroutines wait for whose command has ended.
const OUTPUT: &str = "for the end of a command's output";

/// Whether the application's code waits for the rest of a command's output, although that has ended: another process has the pipe open.
fn awaits_output(task: &Task) -> bool {
    let symbols = task.stack.iter().filter_map(|frame| frame.symbol.as_deref());
    task.place.is_some() && !task.resource.name.is_empty() && go::awaits_output_of_ended(symbols)
}

fn output_kept_open(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    let pipes = tasks::places(waiting, |task| task.resource.name.clone());
    let outcome = format!(
        ": the command itself has ended, and the output is still open as {}",
        tasks::say_places(&pipes)
    );
    let mut finding = tasks::finding(run, RULE.id, Severity::Warning, waiting, [OUTPUT, &outcome]);
    (finding.cause, finding.resource.kind) = (Cause::IpcPipe, ResourceKind::Socket);
    finding
        .confidence(Confidence::Strong)
        .and(Evidence::new(
            format!(
                "they stand where Go waits after the command's end for those that copy its output, which read {}",
                tasks::say_places(&pipes)
            ),
            "the stacks of the goroutines, descriptors, and what other processes have open",
        ))
        .remedy(Remedy::safe(
            "let what the command leaves running write elsewhere: `>/dev/null 2>&1 &`, or close its output in it",
        ))
        .remedy(Remedy::safe(
            "give the output to a file instead of a buffer, or set `WaitDelay`: then the call ends soon after the command",
        ))
        .remedy(Remedy::changing(
            "end what has the pipe open",
            "whatever it was started for ends, too",
        ))
}

/// What tasks wait for that write to others, where those are several.
const UNREAD: &str = "for others to read what they are sent";

/// Whether the application's code waits for room in a pipe, or a Unix socket: whoever has its other end is on this machine, and reads nothing or too slowly.
fn writes(task: &Task) -> bool {
    task.cause == Cause::NetSend && task.resource.detail.peer.is_none() && task.place.is_some()
}

fn unread(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    let others = tasks::places(waiting, |task| task.resource.name.clone());
    let what = match others.as_slice() {
        [one] if !one.is_empty() => format!("for {one}"),
        _ => UNREAD.to_owned(),
    };
    let outcome = match others.as_slice() {
        [_] => String::new(),
        several => format!(": {}", tasks::say_places(several)),
    };
    tasks::finding(run, RULE.id, Severity::Warning, waiting, [&what, &outcome])
        .confidence(Confidence::Strong)
        .and(Evidence::new(
            format!("they wait for {}", tasks::say_places(&others)),
            "descriptors, and what other processes have open",
        ))
        .remedy(Remedy::safe(
            "find out why the other process does not read, or reads slowly: it may wait to write to this one, or may not use its input at all",
        ))
        .remedy(Remedy::safe(
            "write to a child and read from it at once (`communicate()`), with a time limit",
        ))
}

/// Whether the application's code waits for a server there.
fn asks(task: &Task) -> bool {
    let symbols = task.stack.iter().filter_map(|frame| frame.symbol.as_deref());
    // Who asks for a name has a rule of its own.
    let is_server = task.resource.detail.peer.is_some() && task.cause != Cause::NetDns;
    is_server && task.place.is_some() && !go::reads_for_others(symbols)
}

/// Whether a thread of its process is known to wait for the same server: then that is reported of the thread.
fn is_known(run: &Run<'_>, task: &Task) -> bool {
    let same = |wait: &AttributedWait| {
        let own = wait.asker.name.pid == task.pid && wait.cause != Cause::Idle;
        own && wait.resource.detail.peer == task.resource.detail.peer
    };
    run.attributed.waits.iter().any(same)
}

fn finding(run: &Run<'_>, waiting: &[&Task]) -> Finding {
    let peers: Vec<String> = tasks::places(waiting, |task| match &task.resource.detail.peer {
        Some(Peer::Address(address)) => address.to_string(),
        _ => "a server".to_owned(),
    });
    let sends = waiting.iter().all(|task| task.cause == Cause::NetSend);
    let what = match (peers.as_slice(), sends) {
        ([one], true) => format!("for {one} to read what it is sent"),
        (_, true) => UNREAD.to_owned(),
        ([one], false) => format!("for {one} to answer"),
        (_, false) => SERVERS.to_owned(),
    };
    let finding = tasks::finding(run, RULE.id, Severity::Note, waiting, [&what, ""])
        .confidence(Confidence::Strong)
        .and(Evidence::new(
            format!(
                "the other ends of their connections: {}",
                tasks::say_places(&peers)
            ),
            "descriptors, and the kernel's table of connections",
        ));
    finding
        .remedy(Remedy::safe("find out what the server waits for or does instead"))
        .remedy(Remedy::safe("give the request a time limit"))
}
