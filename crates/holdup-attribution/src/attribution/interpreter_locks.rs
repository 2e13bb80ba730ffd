//! Who was in the way of waits for an interpreter's global lock.
//!
//! The problem: no wait shows it. A thread that waits for the lock wakes every few milliseconds to ask for it, and whoever wakes it at last
//! has just let go of it. The choice: looks at the lock, while others wait for it, say who had it. In: waits, and what looks found. Out:
//! the holders of waits for such locks; each was in the way for its part of the looks, which makes that an estimate.

use holdup_evidence::{Cause, Finish, Frame, InterpreterLock, InterpreterLockHolder, Ns};
use holdup_model::attributed::{Attributed, AttributedWait, Holder, HowKnown, ThreadName};
use std::collections::BTreeMap;

/// Holders that a wait names.
const HOLDERS_MAX: usize = 8;

/// Names the holders of all waits for global locks.
pub(super) fn name_holders(whole: &mut Attributed, finish: &Finish) {
    for lock in &finish.interpreter_locks {
        let of_lock = |row: &&AttributedWait| row.asker.name.pid == lock.pid;
        let known: Vec<Holder> = merged(lock, finish)
            .into_iter()
            .map(|(tid, looks, stack)| Holder {
                name: name(whole, lock.pid, tid),
                how_known: HowKnown::Interpreter,
                doing: doing(whole.waits.iter().filter(of_lock), tid),
                ns: looks,
                place: super::asker::place(&stack),
                stack,
                others_busy: 0,
            })
            .collect();
        let rows = whole
            .waits
            .iter_mut()
            .filter(|row| row.asker.name.pid == lock.pid);
        for row in rows.filter(|row| row.cause == Cause::RuntimeInterpreter) {
            let others = |holder: &&Holder| holder.name.tid != row.asker.name.tid;
            let all: u64 = known.iter().filter(others).map(|holder| holder.ns).sum();
            if all == 0 {
                continue;
            }
            let part = |looks: u64| Ns::try_from(u128::from(row.ns) * u128::from(looks) / u128::from(all));
            let mut holders: Vec<Holder> = (known.iter().filter(others).cloned())
                .map(|holder| Holder {
                    ns: part(holder.ns).unwrap_or(Ns::MAX),
                    ..holder
                })
                .collect();
            holders.truncate(HOLDERS_MAX);
            row.holders = holders;
        }
        place_owners(whole, lock, finish);
    }
}

/// Says where in the program the owners of other locks ran: who runs has no wait in whose stack it stands, and has the global lock meanwhile.
fn place_owners(whole: &mut Attributed, lock: &InterpreterLock, finish: &Finish) {
    let ran = merged(lock, finish);
    let of_process = whole
        .waits
        .iter_mut()
        .filter(|row| row.asker.name.pid == lock.pid);
    let holders = of_process.flat_map(|row| &mut row.holders);
    let runs = |cause: Cause| cause.on_cpu() || cause == Cause::SchedRunqueue;
    for owner in holders.filter(|holder| holder.name.pid == lock.pid && holder.doing.is_some_and(runs)) {
        if owner.place.is_none()
            && let Some((_, _, stack)) = ran.iter().find(|(tid, ..)| *tid == owner.name.tid)
        {
            owner.place = super::asker::place(stack);
        }
    }
}

/// A thread, and the function and file in which it had the lock.
type Place<'a> = (u32, Option<&'a str>, Option<&'a str>);

/// Threads that had the lock, most looks first, each in the place of the program in which it had it most often.
fn merged(lock: &InterpreterLock, finish: &Finish) -> Vec<(u32, u64, Vec<Frame>)> {
    let stack_of = |one: &InterpreterLockHolder| {
        let stack = finish.user_stacks.get(one.stack.0 as usize);
        stack.map(Vec::as_slice).unwrap_or_default()
    };
    let mut places: BTreeMap<Place<'_>, (u64, &InterpreterLockHolder)> = BTreeMap::new();
    for one in &lock.holders {
        let asker = super::asker::frame(stack_of(one));
        let symbol = asker.and_then(|frame| frame.symbol.as_deref());
        let file = asker.and_then(|frame| frame.file.as_deref());
        let place = places.entry((one.tid, symbol, file)).or_insert((0, one));
        place.0 += one.looks;
        if one.looks > place.1.looks {
            place.1 = one;
        }
    }
    let mut threads: BTreeMap<u32, (u64, u64, &InterpreterLockHolder)> = BTreeMap::new();
    for ((tid, ..), (looks, one)) in places {
        let thread = threads.entry(tid).or_insert((0, 0, one));
        thread.0 += looks;
        if looks > thread.1 {
            (thread.1, thread.2) = (looks, one);
        }
    }
    let mut merged: Vec<(u32, u64, Vec<Frame>)> = threads
        .into_iter()
        .map(|(tid, (looks, _, one))| (tid, looks, stack_of(one).to_vec()))
        .collect();
    merged.sort_by_key(|(_, looks, _)| std::cmp::Reverse(*looks));
    merged
}

/// What a thread did the most of, beside waiting for the lock.
fn doing<'a>(rows: impl Iterator<Item = &'a AttributedWait>, tid: u32) -> Option<Cause> {
    let own = rows.filter(|row| row.asker.name.tid == tid);
    let own = own.filter(|row| !matches!(row.cause, Cause::RuntimeInterpreter | Cause::SchedRunqueue));
    own.max_by_key(|row| row.ns).map(|row| row.cause)
}

fn name(whole: &Attributed, pid: u32, tid: u32) -> ThreadName {
    let listed = whole.threads.iter().map(|thread| &thread.name);
    let mut of_process = listed.filter(|name| name.pid == pid);
    let process = of_process.clone().next().map(|name| name.process.clone());
    of_process
        .find(|name| name.tid == tid)
        .cloned()
        .unwrap_or_else(|| ThreadName {
            pid,
            tid,
            process: process.unwrap_or_default(),
            ..ThreadName::default()
        })
}

#[cfg(test)]
mod tests {
    use super::name_holders;
    use holdup_evidence::{
        Cause, Finish, Frame, InterpreterLock, InterpreterLockHolder, Language, UserStackId,
    };
    use holdup_model::attributed::{Attributed, AttributedWait, HowKnown};

    fn row(tid: u32, cause: Cause, ns: u64) -> AttributedWait {
        let row = serde_json::json!({"cause": cause, "ns": ns, "asker": {"name": {"pid": 7, "tid": tid}}});
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn a_wait_names_the_others_that_had_the_lock_by_how_often_they_had_it() {
        let frame = |symbol: &str, line| Frame {
            symbol: Some(symbol.to_owned()),
            file: Some("/srv/app.py".to_owned()),
            line: Some(line),
            language: Language::Python,
            ..Frame::default()
        };
        let held = |tid, looks, stack| InterpreterLockHolder {
            tid,
            looks,
            stack: UserStackId(stack),
        };
        let finish = Finish {
            user_stacks: vec![
                vec![frame("crunch", 12)],
                vec![frame("crunch", 13)],
                vec![frame("log", 40)],
            ],
            interpreter_locks: vec![InterpreterLock {
                pid: 7,
                looks: 20,
                holders: vec![
                    held(8, 4, 0),
                    held(8, 5, 1),
                    held(8, 6, 2),
                    held(9, 5, 0),
                    held(7, 3, 0),
                ],
            }],
            ..Finish::default()
        };
        let mut whole = Attributed {
            waits: vec![
                row(7, Cause::RuntimeInterpreter, 2_000),
                row(7, Cause::LockFutex, 500),
                row(8, Cause::CpuUser, 900),
            ],
            ..Attributed::default()
        };
        name_holders(&mut whole, &finish);
        let listed: Vec<_> = whole.waits[0]
            .holders
            .iter()
            .map(|holder| (holder.name.tid, holder.ns, holder.doing, holder.stack[0].line))
            .collect();
        // Two lines of one function together are more than the other function.
        assert_eq!(
            listed,
            [
                (8, 1_500, Some(Cause::CpuUser), Some(13)),
                (9, 500, None, Some(12))
            ]
        );
        assert!(
            whole.waits[0]
                .holders
                .iter()
                .all(|holder| holder.how_known == HowKnown::Interpreter)
        );
        assert!(whole.waits[1].holders.is_empty(), "it is for another lock");
    }
}
