//! `jcmd Thread.dump_to_file -format=json`, of JDK 21 to 25.
//!
//! Before JDK 24 it tells names and stacks only; since then states, the locks that are held and the one that is waited for.

use super::frames::plain;
use super::{moment, name_owners, settle, state_of};
use crate::format::{Family, Format, Shape, Sureness};
use crate::gather::Out;
use crate::json;
use holdup_evidence::observed::{LockRef, LockWait, SeenThread, Snapshot, SnapshotKind};
use memchr::memmem::find;
use serde_json::Value;

pub(crate) static FORMAT: Format = Format::new(
    "thread-dump-json",
    Family::Threads,
    recognise,
    Shape::Document(read),
)
.about("a JVM's thread dump as JSON");

fn recognise(head: &[u8]) -> Sureness {
    let opens = head.trim_ascii_start().starts_with(b"{");
    if opens && find(head, b"\"threadDump\"").is_some() {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

fn read(document: &[u8], out: &mut Out<'_>) {
    let whole: Value = match json::value(document) {
        Ok(whole) => whole,
        Err(error) => {
            out.problem(format!("it is cut off or damaged: {error}"));
            return;
        }
    };
    let dump = &whole["threadDump"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Numbers are written as text so that no reader rounds them.
    let number = |value: &Value| match value {
        Value::String(digits) => digits.parse::<u64>().ok(),
        other => other.as_u64(),
    };
    let pid = number(&dump["processId"]).and_then(|pid| u32::try_from(pid).ok());
    let containers = dump["threadContainers"].as_array().map_or(&[][..], Vec::as_slice);
    let mut threads = Vec::new();
    for thread in containers
        .iter()
        .filter_map(|container| container["threads"].as_array())
        .flatten()
    {
        out.account().lines += 1;
        let Some(name) = thread["name"].as_str() else {
            out.account().not_understood += 1;
            continue;
        };
        out.account().evidence += 1;
        if threads.len() >= super::THREADS {
            out.account().left_out += 1;
            continue;
        }
        let frames: Vec<String> = thread["stack"]
            .as_array()
            .map(|frames| frames.iter().filter_map(Value::as_str).map(plain).collect())
            .unwrap_or_default();
        let mut seen = SeenThread {
            name: name.to_owned(),
            pid,
            number: number(&thread["tid"]),
            state: state_of(text(&thread["state"]).as_bytes()),
            stack: (!frames.is_empty()).then(|| out.stack(frames.iter().map(String::as_str))),
            waits_for: waits_for(thread),
            holds: holds(thread),
            is_virtual: thread["virtual"].as_bool().unwrap_or(false),
            quote: out.here(),
            ..SeenThread::default()
        };
        settle(&mut seen);
        threads.push(seen);
    }
    if threads.is_empty() {
        return;
    }
    let mut snapshot = Snapshot {
        at: moment::parse(text(&dump["time"]).as_bytes()),
        program: dump["runtimeVersion"]
            .as_str()
            .map(|version| format!("JVM {version}")),
        threads,
        ..Snapshot::new(SnapshotKind::Jvm, out.here())
    };
    name_owners(&mut snapshot);
    out.snapshot(snapshot);
}

fn waits_for(thread: &Value) -> Option<LockRef> {
    let lock = |object: &str, wait| LockRef {
        id: object.to_owned(),
        class: class_of(object),
        wait: Some(wait),
        owner: None,
    };
    if let Some(object) = thread["blockedOn"].as_str() {
        return Some(lock(object, LockWait::Enter));
    }
    if let Some(object) = thread["waitingOn"].as_str() {
        return Some(lock(object, LockWait::Wait));
    }
    let blocker = &thread["parkBlocker"];
    let owner = blocker["owner"].as_str().map(|number| format!("#{number}"));
    let object = blocker["object"].as_str()?;
    Some(LockRef {
        owner,
        ..lock(object, LockWait::Park)
    })
}

fn holds(thread: &Value) -> Vec<LockRef> {
    let owned = thread["monitorsOwned"].as_array().into_iter().flatten();
    let objects = owned.filter_map(|at| at["locks"].as_array()).flatten();
    objects
        .filter_map(Value::as_str)
        .map(|object| LockRef {
            id: object.to_owned(),
            class: class_of(object),
            ..LockRef::default()
        })
        .collect()
}

fn class_of(object: &str) -> String {
    object.split('@').next().unwrap_or_default().to_owned()
}
