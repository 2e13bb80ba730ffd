//! Who waits for room: in a pipe or a socket whose reader does not read.
//!
//! In: a way. Out: the reader as its end. To read what others write is what a reader is there for: unlike one that is waited for because it
//! may have something to say, it holds them up whatever it does meanwhile. It does not where it works on what it has read, or shows it to
//! a person.

use super::ends::{End, Key, depends, is_elsewhere};
use super::path::{Graph, Step};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::AttributedWait;

/// Whether these waits are for room.
pub(super) fn is_for_room(row: &AttributedWait) -> bool {
    match row.cause {
        Cause::NetSend => true,
        Cause::IpcPipe | Cause::IpcUnix => {
            system_calls::is_named(row.call.as_deref(), Kind::Writes | Kind::Sends | Kind::MovesData)
        }
        _ => false,
    }
}

/// The end of a way on which somebody waits for room: the last one who does not read.
pub(super) fn reader<'a>(graph: &Graph<'a>, way: &[Step<'a>]) -> Option<End<'a>> {
    let last = way.len().checked_sub(1)?;
    let row = |step: &Step<'a>| step.cause.and_then(|cause| graph.row(step.id(), cause));
    let at = way.iter().rposition(|step| match step.cause {
        // Of several threads that are one row nobody knows the call; for nothing but room is this waited for.
        Some(Cause::NetSend) => true,
        _ => row(step).is_some_and(is_for_room),
    })?;
    let (writer, end) = (way.get(at)?, way.get(last)?);
    if end
        .cause
        .is_some_and(|cause| cause.on_cpu() || cause == Cause::IpcTty)
    {
        return None;
    }
    let resource = row(writer).map(|row| &row.resource);
    let asked = |at: usize| way.get(at).and_then(|step| step.cause).is_some_and(depends);
    let asked = at.checked_sub(1).is_some_and(asked);
    let known = End {
        key: Key::Reader(0),
        name: writer.name,
        cause: writer.cause,
        resource,
        lock: None,
        steps: at,
        beyond: None,
        onward: None,
        awaited: writer.cause,
        ns: writer.ns,
        asked,
    };
    let Some(reader) = way.get(at + 1) else {
        let row = row(writer).filter(|row| is_elsewhere(row))?;
        let key = Key::Unread(row.resource.name.clone());
        return Some(End { key, ..known });
    };
    Some(End {
        key: Key::Reader(reader.name.pid),
        name: reader.name,
        cause: reader.cause,
        steps: at + 1,
        beyond: way.get(at + 2).copied(),
        onward: super::onward::of(graph, way, at + 1),
        ns: reader.ns,
        ..known
    })
}
