//! Goroutines that are parked when observation ends.
//!
//! A parked goroutine has no thread: none of its waits is among those that are measured. In: processes that may be Go programs. Out:
//! of each that has such goroutines, a sentence of what they wait for by the runtime's own words. Reading can block, so a child
//! does it that can be left behind ([`super::behind`]).

use super::behind::{Answerer, Readers};
use holdup_evidence::NotMeasured;
use holdup_jvm::Running;
use holdup_knowledge::go;
use holdup_proc::{Root, memory, names};
use holdup_runtimes::go::{Place, Program, SYMBOLS, Status};
use holdup_symbols::{ProcessKey, UserStacks};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Processes that are asked; each takes a millisecond for a thousand goroutines.
const PROCESSES_MAX: usize = 64;

/// Reasons that a sentence has.
const REASONS_MAX: usize = 4;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Question {
    pid: u32,
    place: Place,
}

/// How many goroutines wait for what, in the runtime's words; nothing where they cannot be read.
type Answer = Option<BTreeMap<String, u64>>;

/// What the parked goroutines of these processes wait for.
pub(super) fn parked(
    stacks: &mut UserStacks,
    processes: impl IntoIterator<Item = (u32, ProcessKey)>,
) -> Vec<NotMeasured> {
    let mut readers: Readers<Question, Answer> = Readers::new(answerer);
    let mut told = Vec::new();
    for (pid, process) in processes.into_iter().take(PROCESSES_MAX) {
        let Some(found) = stacks.find_go(process, pid, &SYMBOLS) else {
            continue;
        };
        let mut addresses = found.addresses.into_iter();
        // A stripped file does not say where they are.
        let reasons = addresses.next().flatten().and_then(|goroutines| {
            let place = Place {
                goroutines,
                reasons: addresses.next().flatten(),
            };
            readers.ask(pid, Question { pid, place }).flatten()
        });
        let name = names::comm(&Root::system(), pid);
        told.extend(sentence(
            name.as_deref().unwrap_or(&found.file),
            pid,
            reasons.as_ref(),
        ));
    }
    told
}

fn sentence(name: &str, pid: u32, reasons: Option<&BTreeMap<String, u64>>) -> Option<NotMeasured> {
    let what = match reasons {
        None => format!("what parked goroutines of {name} (pid {pid}) wait for"),
        Some(reasons) => {
            let all: u64 = reasons.values().sum();
            if all == 0 {
                return None;
            }
            let mut order: Vec<(&String, &u64)> = reasons.iter().collect();
            order.sort_by_key(|(reason, count)| (Reverse(**count), *reason));
            let mut listed: Vec<String> = order
                .iter()
                .take(REASONS_MAX)
                .map(|(reason, count)| format!("{count} in \"{reason}\""))
                .collect();
            if order.len() > REASONS_MAX {
                listed.push("…".to_owned());
            }
            let goroutines = if all == 1 { "goroutine" } else { "goroutines" };
            format!(
                "waits of {all} parked {goroutines} of {name} (pid {pid}), {}",
                listed.join(", ")
            )
        }
    };
    Some(NotMeasured {
        what,
        why: "holdup measures waits of threads, and a parked goroutine has none".into(),
        fix: "give `holdup read` a dump of the goroutines (`/debug/pprof/goroutine?debug=2`)".into(),
    })
}

/// What a child does.
fn answerer() -> Answerer<Question, Answer> {
    Box::new(answer)
}

fn answer(Question { pid, place }: Question) -> Answer {
    // Where reading memory would end this process, it is not tried.
    if memory::is_refused(pid, place.goroutines) {
        return None;
    }
    let read = Program::find(Running(pid), place).ok()?.goroutines().ok()?;
    let mut reasons = BTreeMap::new();
    for goroutine in read.all {
        let reason = goroutine.reason.unwrap_or_else(|| "unknown".to_owned());
        if goroutine.status == Status::Waiting && !go::is_of_the_runtime(&reason) {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    Some(reasons)
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use std::collections::BTreeMap;

    #[test]
    fn parked_goroutines_are_counted_by_reason_most_first() {
        let reasons = [
            ("IO wait", 1),
            ("sync.Mutex.Lock", 3),
            ("chan send", 1),
            ("select", 2),
            ("sleep", 1),
        ];
        let reasons: BTreeMap<String, u64> = reasons.map(|(reason, count)| (reason.to_owned(), count)).into();
        assert_eq!(
            sentence("shop", 7, Some(&reasons)).unwrap().what,
            "waits of 8 parked goroutines of shop (pid 7), 3 in \"sync.Mutex.Lock\", 2 in \"select\", \
             1 in \"IO wait\", 1 in \"chan send\", …"
        );
        assert_eq!(sentence("shop", 7, Some(&BTreeMap::new())), None);
        assert_eq!(
            sentence("shop", 7, None).unwrap().what,
            "what parked goroutines of shop (pid 7) wait for"
        );
    }
}
