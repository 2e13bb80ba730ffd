//! Which goroutine a poll of Go's scheduler is for.
//!
//! The problem: one thread polls for all goroutines. A poll that a timer ended, or that goes on, has the stack of a goroutine that sleeps, or of
//! none, while the descriptor that it was for is another one's. The choice: where the wait is told of one descriptor, who waits for that
//! descriptor has asked. In: polls, and for each descriptor the goroutines that waited for it when observation ended. Out: polls with the
//! frames of these goroutines in the place of those that were found there.
//!
//! In HTTP/2 one goroutine reads a connection for all requests, and refers to none of them. There, those that wait for an answer of that
//! library have asked; of several places that with most of them.

use super::asker;
use holdup_evidence::{AwaitedDescriptor, Cause, Finish, Frame, Language, TaskRuntime};
use holdup_knowledge::go;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, Peer, Task, TaskState};
use std::collections::BTreeMap;

/// A function of the application and the line in it.
type OwnedPlace = (Option<String>, Option<u32>);
type Place<'a> = (Option<&'a str>, Option<u32>);

/// Puts the frames of goroutines into the stacks of the polls that are for them.
pub(super) fn put_in_place(waits: &mut [AttributedWait], tasks: &[Task], finish: &Finish) {
    if finish.awaited_descriptors.is_empty() {
        return;
    }
    for wait in waits.iter_mut().filter(|wait| is_poll(wait)) {
        let Some(frames) = asked(wait, tasks, finish) else {
            continue;
        };
        let of_runtime = |frame: &&Frame| {
            let symbol = frame.symbol.as_deref().unwrap_or_default();
            frame.language == Language::Kernel || go::is_of_the_runtimes_code(symbol)
        };
        let own = wait.asker.stack.iter().take_while(of_runtime).count();
        wait.asker.stack.truncate(own);
        wait.asker.stack.extend(frames);
        let asking = asker::choose(&wait.asker.stack);
        (wait.asker.frame, wait.asker.module) = (asking.frame, asking.module);
    }
}

/// Whether a thread polled for something outside of its process.
fn is_poll(wait: &AttributedWait) -> bool {
    let outside = matches!(
        wait.cause,
        Cause::IpcPipe
            | Cause::IpcUnix
            | Cause::IpcTty
            | Cause::NetReceive
            | Cause::NetSend
            | Cause::NetConnect
            | Cause::PollWait
            | Cause::Unknown
    );
    outside && system_calls::is_named(wait.call.as_deref(), Kind::WaitsForEpoll)
}

/// The frames of who asked.
fn asked(wait: &AttributedWait, tasks: &[Task], finish: &Finish) -> Option<Vec<Frame>> {
    let pid = wait.asker.name.pid;
    let detail = &wait.resource.detail;
    let inode = detail.inode;
    let is_for = |one: &&AwaitedDescriptor| {
        let same_peer = || match (&detail.peer, one.peer) {
            (Some(Peer::Address(wanted)), Some(peer)) => *wanted == peer,
            _ => false,
        };
        one.pid == pid && (inode == Some(one.inode) || same_peer())
    };
    let frames = |one: &AwaitedDescriptor| finish.user_stacks.get(one.stack.0 as usize);
    let mut places: BTreeMap<OwnedPlace, (usize, &Vec<Frame>)> = BTreeMap::new();
    let mut readers = 0;
    for one in finish.awaited_descriptors.iter().filter(is_for) {
        let Some(frames) = frames(one) else { continue };
        let place = asker::place(frames).filter(|place| one.asks && asker::is_applications(place));
        match place {
            Some(place) => places.entry((place.symbol, place.line)).or_insert((0, frames)).0 += 1,
            None => readers += usize::from(go::reads_for_others(symbols(frames))),
        }
    }
    if let Some((_, frames)) = places.into_values().max_by_key(|(count, _)| *count) {
        return Some(frames.clone());
    }
    (readers > 0).then(|| of_streams(pid, tasks)).flatten()
}

fn symbols(frames: &[Frame]) -> impl Iterator<Item = &str> {
    frames.iter().filter_map(|frame| frame.symbol.as_deref())
}

/// The frames of the goroutines that wait for a connection that several requests share.
fn of_streams(pid: u32, tasks: &[Task]) -> Option<Vec<Frame>> {
    let waits = |task: &&Task| {
        task.pid == pid
            && task.runtime == TaskRuntime::Go
            && task.state == TaskState::Waiting
            && task.place.is_some()
            && symbols(&task.stack).any(go::shares_connection)
    };
    let mut places: BTreeMap<Place<'_>, (usize, &Task)> = BTreeMap::new();
    for task in tasks.iter().filter(waits) {
        let place = task.place.as_ref()?;
        places
            .entry((place.symbol.as_deref(), place.line))
            .or_insert((0, task))
            .0 += 1;
    }
    let most = places.into_values().max_by_key(|(count, _)| *count);
    most.map(|(_, task)| task.stack.clone())
}

#[cfg(test)]
mod tests {
    use super::put_in_place;
    use holdup_evidence::{AwaitedDescriptor, Cause, Finish, Frame, Language, UserStackId};
    use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};

    fn frame(symbol: &str) -> Frame {
        Frame {
            symbol: Some(symbol.to_owned()),
            file: Some(format!("/srv/{symbol}.go")),
            line: Some(7),
            language: Language::Go,
            ..Frame::default()
        }
    }

    fn frames(symbols: &[&str]) -> Vec<Frame> {
        symbols.iter().map(|symbol| frame(symbol)).collect()
    }

    fn poll(cause: Cause, inode: u64) -> AttributedWait {
        let wait = serde_json::json!({"cause": cause, "ns": 1, "call": "epoll_pwait", "asker": {"name": {"pid": 7, "tid": 8}}});
        let mut wait: AttributedWait = serde_json::from_value(wait).unwrap();
        wait.resource = Resource::named(ResourceKind::Socket, "/run/db.sock".to_owned())
            .with(|facts| facts.inode = Some(inode));
        wait.asker.stack = frames(&["runtime.netpoll", "runtime.gopark", "time.Sleep", "main.tick"]);
        wait
    }

    fn finish(stacks: &[&[&str]], asks: bool) -> Finish {
        let awaited = |at: usize| AwaitedDescriptor {
            pid: 7,
            inode: 50 + at as u64,
            peer: None,
            stack: UserStackId(u32::try_from(at).unwrap()),
            asks,
        };
        Finish {
            user_stacks: stacks.iter().map(|stack| frames(stack)).collect(),
            awaited_descriptors: (0..stacks.len()).map(awaited).collect(),
            ..Finish::default()
        }
    }

    #[test]
    fn a_poll_that_a_timer_ended_is_asked_for_by_who_waits_for_its_descriptor() {
        let finish = finish(&[&["runtime.gopark", "net.(*conn).Read", "main.fetch"]], true);
        let mut waits = [
            poll(Cause::IpcUnix, 50),
            poll(Cause::IpcUnix, 51),
            poll(Cause::TimerSleep, 50),
        ];
        put_in_place(&mut waits, &[], &finish);
        let asked = waits.each_ref().map(|wait| wait.asker.frame.as_deref());
        assert_eq!(asked, [Some("main.fetch"), None, None]);
        let symbols: Vec<_> = waits[0]
            .asker
            .stack
            .iter()
            .map(|frame| frame.symbol.as_deref())
            .collect();
        assert!(!symbols.contains(&Some("main.tick")) && symbols.contains(&Some("runtime.netpoll")));
    }

    #[test]
    fn what_has_no_work_asks_for_nothing() {
        let finish = finish(
            &[&["runtime.gopark", "internal/poll.(*FD).Accept", "main.serve"]],
            false,
        );
        let mut waits = [poll(Cause::IpcUnix, 50)];
        put_in_place(&mut waits, &[], &finish);
        assert_eq!(
            (waits[0].asker.frame.as_deref(), waits[0].asker.stack.len()),
            (None, 4)
        );
    }
}
