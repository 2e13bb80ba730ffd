//! The function within which a thread computes, where the functions that it runs are many.
//!
//! The problem: a thread that runs a script, sorts, or answers one client runs hundreds of functions, none of them for long, and the one that was seen most often
//! says nothing of what it computes. The choice: the stacks from their outer end as a tree, followed for as long as nearly all of the time
//! goes the same way. Where they part begins what changes from moment to moment; the last common function is what takes the time. In: CPU time with stacks. Out:
//! that function and its caller, in words.

use super::{Waits, say};
use holdup_evidence::{Frame, Ns};
use holdup_knowledge::embedded;
use holdup_knowledge::user_code::of_c_library;
use std::collections::BTreeMap;

/// Part of the time that goes through the function.
const MIN_SHARE: f64 = 0.8;

/// Part of the time that the function seen most often has, from which it is the place itself.
const MAX_INNERMOST_SHARE: f64 = 0.5;

/// Frames followed.
const MAX_DEPTH: usize = 128;

/// Where a program begins: all it does is within these, and within functions of the C library, as a thread's.
const BEGINS: [&str; 2] = ["main", "_start"];

/// What tells one function from another.
fn function(frame: &Frame) -> (Option<&str>, Option<&str>, u64) {
    let module = frame.module.as_deref();
    match frame.symbol.as_deref() {
        Some(symbol) => (module, Some(symbol), 0),
        None => (module, None, frame.offset),
    }
}

/// The frames that nearly all of the time goes through, from the outermost on.
fn common<'a>(stacks: &[(&'a [Frame], Ns)], all: Ns) -> Vec<&'a Frame> {
    let mut left: Vec<(&'a [Frame], Ns)> = stacks.to_vec();
    let mut found = Vec::new();
    for depth in 1..=MAX_DEPTH {
        let mut ways: BTreeMap<_, (Ns, &'a Frame)> = BTreeMap::new();
        for (stack, ns) in &left {
            if let Some(frame) = stack.len().checked_sub(depth).and_then(|at| stack.get(at)) {
                ways.entry(function(frame)).or_insert((0, frame)).0 += ns;
            }
        }
        let Some((which, (ns, frame))) = ways.into_iter().max_by_key(|(_, (ns, _))| *ns) else {
            break;
        };
        if (ns as f64) < MIN_SHARE * all as f64 {
            break;
        }
        left.retain(|(stack, _)| {
            let frame = stack.len().checked_sub(depth).and_then(|at| stack.get(at));
            frame.is_some_and(|frame| function(frame) == which)
        });
        found.push(frame);
    }
    found
}

/// `lua_pcall, which runs a script in Lua, called by luaCallFunction`: the last named function that nearly all of this CPU time is within; `None` where one
/// function has most of it, or only the beginning of the thread is common.
pub(super) fn place(rows: &Waits<'_>) -> Option<String> {
    let all = rows.own();
    let groups = rows.split(|wait| wait.asker.frame.clone());
    let innermost = groups.iter().map(Waits::own).max().unwrap_or(0);
    if innermost as f64 >= MAX_INNERMOST_SHARE * all as f64 {
        return None;
    }
    let stacks: Vec<(&[Frame], Ns)> = rows
        .iter()
        .map(|wait| (wait.asker.stack.as_slice(), wait.ns))
        .collect();
    let common = common(&stacks, all);
    let mut named = common.iter().rev().filter(|frame| {
        let symbol = frame.symbol.as_deref();
        symbol.is_some_and(|symbol| !BEGINS.contains(&symbol)) && !of_c_library(frame)
    });
    let (last, caller) = (named.next()?, named.next()?);
    let runs = last.symbol.as_deref().and_then(embedded::runs);
    let runs = runs.map_or_else(String::new, |what| format!(", which runs {what},"));
    Some(format!(
        "{}{runs} called by {}",
        say::place(last),
        say::place(caller)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::examples::mostly;
    use super::super::run::Run;
    use super::place;
    use holdup_evidence::{Cause, Frame, SystemFacts};

    /// Where a thread computes whose stacks, innermost function first, were seen as often.
    fn within(stacks: &[&[&str]]) -> Option<String> {
        let mut run = mostly(Cause::CpuUser, stacks.len() as u64, 1.0, 1_000_000_000);
        for (wait, stack) in run.waits.iter_mut().zip(stacks) {
            let frame = |symbol: &&str| Frame {
                symbol: (!symbol.is_empty()).then(|| (*symbol).to_owned()),
                module: Some("server".to_owned()),
                ..Frame::default()
            };
            wait.asker.frame = stack.first().map(|symbol| (*symbol).to_owned());
            wait.asker.stack = stack.iter().map(frame).collect();
        }
        let facts = SystemFacts::default();
        place(&Run::new(&run, &facts).of(Cause::CpuUser)?)
    }

    #[test]
    fn what_nearly_all_of_the_time_is_within_is_named_with_its_caller() {
        let outer = [
            "",
            "lua_pcall",
            "runScript",
            "processCommand",
            "eventLoop",
            "main",
        ];
        let stack = |inner: &[&'static str]| [inner, &outer[..]].concat();
        let stacks = [
            stack(&["dictFind", "lookupKey"]),
            stack(&["round", "lua_isnumber"]),
            stack(&["scan"]),
            stack(&["gettimeofday", "call"]),
        ];
        let stacks: Vec<&[&str]> = stacks.iter().map(Vec::as_slice).collect();
        assert_eq!(
            within(&stacks).as_deref(),
            Some("lua_pcall, which runs a script in Lua, called by runScript")
        );
    }

    #[test]
    fn one_function_that_has_most_of_it_needs_no_other() {
        assert_eq!(
            within(&[
                &["hash", "join", "main"],
                &["hash", "group", "main"],
                &["read", "join", "main"]
            ]),
            None
        );
    }

    #[test]
    fn a_program_that_does_one_thing_after_the_other_is_within_nothing() {
        let stacks: [&[&str]; 4] = [
            &["parse", "load", "main", "_start"],
            &["sort", "order", "main", "_start"],
            &["write", "store", "main", "_start"],
            &["hash", "check", "main", "_start"],
        ];
        assert_eq!(within(&stacks), None);
    }
}
