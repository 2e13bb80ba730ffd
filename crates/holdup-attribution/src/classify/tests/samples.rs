//! Real stacks to causes.
//!
//! `samples/*.txt` holds one wait an entry, in plain text: what it is, what it must become, the call and its
//! arguments (hex), the state, the object, the stack.

use super::{Case, object};
use holdup_evidence::{Cause, TaskState};

/// The entries of one sample file: title, expected cause, case.
fn samples(text: &str) -> Vec<(String, Cause, Case)> {
    let entry = |block: &str| {
        let field = |key: &str| {
            let line = block
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.map(str::trim)
        };
        let title = block.lines().next().unwrap_or_default().to_owned();
        let expected = field("expect").and_then(Cause::from_id);
        let expected = expected.unwrap_or_else(|| panic!("{title}: no such cause"));
        let mut call = field("call").expect("a call").split_whitespace();
        let name = call.next().expect("a name");
        let mut args = [0; 4];
        for (slot, arg) in args.iter_mut().zip(call) {
            *slot = u64::from_str_radix(arg, 16).expect("hex");
        }
        let mut case = Case::new(name, args);
        let state = field("state").expect("a state");
        case.state = match &state[..1] {
            "S" => TaskState::Interruptible,
            "D" => TaskState::Uninterruptible,
            "T" => TaskState::Stopped,
            "t" => TaskState::Traced,
            "F" => TaskState::Frozen,
            other => panic!("{title}: state {other}"),
        };
        case.iowait = state.ends_with("iowait");
        case.object = field("object").map(object);
        if let Some(path) = field("path") {
            case = case.path(path);
        }
        if let Some(stack) = field("stack") {
            case = case.stack(stack);
        }
        (title, expected, case)
    };
    text.split("\n\n")
        .filter_map(|block| block.trim().strip_prefix("== "))
        .map(entry)
        .collect()
}

#[test]
fn real_stacks_get_their_cause() {
    const FILES: &[(&str, &str)] = &[
        ("disk", include_str!("../samples/linux-6.18-disk.txt")),
        ("fs", include_str!("../samples/linux-6.18-fs.txt")),
        ("ipc", include_str!("../samples/linux-6.18-ipc.txt")),
        ("kernel", include_str!("../samples/linux-6.18-kernel.txt")),
        ("lock", include_str!("../samples/linux-6.18-lock.txt")),
        ("memory", include_str!("../samples/linux-6.18-memory.txt")),
        ("net", include_str!("../samples/linux-6.18-net.txt")),
        ("poll", include_str!("../samples/linux-6.18-poll.txt")),
        ("process", include_str!("../samples/linux-6.18-process.txt")),
        ("time", include_str!("../samples/linux-6.18-time.txt")),
        ("older", include_str!("../samples/older-kernels.txt")),
    ];
    let mut wrong = Vec::new();
    for (file, text) in FILES {
        let entries = samples(text);
        assert!(!entries.is_empty(), "{file}: no sample");
        for (title, expected, case) in entries {
            let got = case.classify();
            if got.cause != expected || got.resource.name.is_empty() {
                wrong.push(format!(
                    "{file}: {title}: {} ({}), not {expected}",
                    got.cause, got.resource.name
                ));
            }
            // Frames that the scheduler adds when a thread takes its own stack change nothing.
            let mut own = case;
            if let Some(stack) = &mut own.stack {
                stack.splice(
                    0..0,
                    ["__schedule", "schedule", "schedule_timeout"].map(str::to_owned),
                );
            }
            if own.cause() != expected {
                wrong.push(format!("{file}: {title}: with scheduler frames {}", own.cause()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
