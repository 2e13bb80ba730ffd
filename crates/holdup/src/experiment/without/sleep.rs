//! Without `timer.sleep`: nanosleep and clock_nanosleep return at once.
//!
//! Programs also sleep in futex, poll, select and their kin with a time limit (Go and Java always do). Those calls can't be answered so:
//! they also wait for others, and "the time is up" at once is not what they would have said. Seen in the first run, they are the reason
//! to refuse.

use super::{Means, Way};
use holdup_evidence::units::share as percent;
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;
use holdup_subject::filter::Call;

/// The calls.
pub(in crate::experiment) const CALLS: &[Call] = &[
    Call::new("nanosleep", 35, 162).on_arm(101, 162),
    Call::new("clock_nanosleep", 230, 267).on_arm(115, 265),
    Call::of_32_bit("clock_nanosleep_time64", 407, 407),
];

/// Of all sleeping: what other calls may have. As much may be left of a wait that was taken away.
const MOST_ELSEWHERE: f64 = 0.10;

pub(super) const WAY: Way = Way {
    name: "timer.sleep",
    causes: &[Cause::TimerSleep],
    means: Means::Calls(CALLS),
    how: "nanosleep and clock_nanosleep return at once",
    risk: "ordering and load: CMD may continue before the event that a sleep waited for; a loop that polls with sleeps uses a whole CPU \
           and polls as often as it can",
    escapes: "sleeps in other calls: futex, poll, select and epoll with a time limit",
    settles: false,
    refuses,
};

/// Why what this run slept in can't be taken away; `None` if it can.
fn refuses(as_is: &Attributed) -> Option<String> {
    let mut elsewhere: Vec<(&str, Ns)> = Vec::new();
    let mut all = 0;
    for wait in as_is.waits.iter().filter(|wait| wait.cause == Cause::TimerSleep) {
        all += wait.ns;
        let call = wait.call.as_deref().unwrap_or("an unknown call");
        if !CALLS.iter().any(|known| known.name == call) {
            elsewhere.push((call, wait.ns));
        }
    }
    let sum: Ns = elsewhere.iter().map(|(_, ns)| ns).sum();
    let share = sum as f64 / (all as f64).max(1.0);
    let (call, _) = elsewhere.into_iter().max_by_key(|(_, ns)| *ns)?;
    (share > MOST_ELSEWHERE).then(|| {
        format!(
            "{} of its sleep is in {call} with a time limit, as in Go, Java and event loops; such a call also waits for events, so \
             removing it would change what CMD does; `holdup run --predict` estimates the effect of a change",
            percent(share)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::refuses;
    use holdup_evidence::Ns;
    use holdup_model::attributed::Attributed;
    use serde_json::json;

    fn slept(calls: &[(&str, Ns)]) -> Attributed {
        let waits = calls.iter().map(|(call, ns)| {
            let wait = json!({"cause": "timer.sleep", "call": call, "ns": ns});
            serde_json::from_value(wait).unwrap()
        });
        Attributed {
            waits: waits.collect(),
            ..Attributed::default()
        }
    }

    #[test]
    fn sleeps_in_other_calls_are_refused_with_the_call() {
        assert_eq!(
            refuses(&slept(&[("clock_nanosleep", 100), ("nanosleep", 9)])),
            None
        );
        assert_eq!(refuses(&slept(&[("clock_nanosleep", 91), ("poll", 9)])), None);
        let why = refuses(&slept(&[("clock_nanosleep", 50), ("futex", 40), ("poll", 10)])).unwrap();
        assert!(why.starts_with("50") && why.contains("futex"), "{why}");
        assert_eq!(refuses(&slept(&[])), None);
    }
}
