//! Units that did not stop within their limit, by what systemd says of them.
//!
//! In: events of units. Out: a line for each unit whose stop timed out: in which step, and whether it was killed for that. The rules judge how long
//! a unit takes to start; a stop has no rule, because the log does not tell for what the unit waited.

use super::{Rank, Ranked};
use holdup_evidence::Observed;
use holdup_evidence::observed::{Happening, UnitEvent, What};

/// Units that become lines.
const MAX_UNITS: usize = 3;

/// How the names of the steps of a stop begin, as systemd has them: `stop`, `stop-sigterm`, `final-sigterm`; before 246 `stopping`.
const STEPS: [&str; 4] = ["stop", "final-sig", "deactivating", "stopping"];

/// What systemd says at the end of such a line when it goes on to kill.
const KILLS: &str = ". Killing";

/// Adds the lines.
pub(super) fn add(observed: &Observed, all: &mut Vec<Ranked>) {
    let mut known: Vec<(&str, &str, &Happening, u64)> = Vec::new();
    for happening in &observed.happenings {
        let What::Unit(UnitEvent::TimedOut { unit, step }) = &happening.what else {
            continue;
        };
        if !STEPS.iter().any(|begin| step.starts_with(begin)) {
            continue;
        }
        if let Some((_, _, _, times)) = known.iter_mut().find(|(name, ..)| name == unit) {
            *times += 1;
        } else if known.len() < MAX_UNITS {
            known.push((unit.as_str(), step.as_str(), happening, 1));
        }
    }
    all.extend(known.into_iter().map(|(unit, step, happening, times)| {
        let killed = happening.text.contains(KILLS);
        let then = match killed {
            true => "; systemd killed its processes with SIGKILL",
            false => "",
        };
        let often = match times {
            1 => String::new(),
            times => format!(", {times} times"),
        };
        let text = format!("{unit} did not stop in time: its step {step} timed out{often}{then}");
        // Its processes were killed: that is why they are reported as killed.
        let rank = if killed { Rank::Stops } else { Rank::Waits };
        Ranked::new(rank, unit, text, (observed, &happening.quote))
    }));
}

#[cfg(test)]
mod tests {
    use crate::account::account;
    use holdup_evidence::Observed;
    use holdup_evidence::observed::{Happening, Quote, Source, UnitEvent, What};

    fn timed_out(step: &str, text: &str) -> Observed {
        Observed {
            sources: vec![Source::default()],
            happenings: vec![Happening {
                what: What::Unit(UnitEvent::TimedOut {
                    unit: "shop.service".to_owned(),
                    step: step.to_owned(),
                }),
                at: None,
                since_boot: None,
                quote: Quote { source: 0, line: 3 },
                text: text.to_owned(),
            }],
            ..Observed::default()
        }
    }

    #[test]
    fn a_unit_that_did_not_stop_is_told_with_how_it_ended() {
        let lines = account(&timed_out(
            "stop-sigterm",
            "shop.service: State 'stop-sigterm' timed out. Killing.",
        ));
        assert_eq!(
            lines[0].text,
            "shop.service did not stop in time: its step stop-sigterm timed out; systemd killed its processes with SIGKILL"
        );
        let lines = account(&timed_out(
            "stopping",
            "shop.service: Stopping timed out. Terminating.",
        ));
        assert_eq!(
            lines[0].text,
            "shop.service did not stop in time: its step stopping timed out"
        );
    }

    #[test]
    fn a_start_is_none() {
        let lines = account(&timed_out(
            "start-pre",
            "shop.service: start-pre operation timed out.",
        ));
        assert!(
            lines.iter().all(|line| !line.text.contains("did not stop")),
            "{lines:?}"
        );
    }
}
