//! What a command would take without a wait, in words.
//!
//! In: a report's predictions. Out: a line for each cause, with what is not sure about it.

use crate::units::duration;
use holdup_evidence::Ns;
use holdup_model::prediction::{Doubt, Prediction};
use holdup_model::report::{Finding, Report};

/// What stands above the lines.
pub(crate) const TITLE: &str = "Predicted from a replay of all observed waits:";

/// A gain below this share of the elapsed time is none.
const NOTHING: f64 = 0.03;

/// A cause, and what is said of it.
pub(crate) struct Line {
    /// `without disk.sync: 3.1 s → about 0.9 s; with half of it about 2.0 s`
    pub(crate) words: String,
    /// Why it may be otherwise.
    pub(crate) doubts: Vec<&'static str>,
}

/// The lines, worth most first.
pub(crate) fn lines(report: &Report) -> Vec<Line> {
    let all = report.prediction.as_deref().unwrap_or_default();
    let elapsed = report.subject.wall_ns;
    let mut wholes: Vec<&Prediction> = all.iter().filter(|one| one.factor == 0.0).collect();
    // What is no remedy by itself comes last.
    wholes.sort_by_key(|one| (one.doubts.contains(&Doubt::OthersWork), one.elapsed_ns));
    let line = |one: &Prediction| {
        let half = all
            .iter()
            .find(|half| half.without == one.without && half.factor > 0.0);
        Line {
            words: words(one, half, elapsed),
            doubts: one.doubts.iter().map(|doubt| doubt.phrase()).collect(),
        }
    };
    wholes.into_iter().map(line).collect()
}

fn words(one: &Prediction, half: Option<&Prediction>, elapsed: Ns) -> String {
    let gain = elapsed.saturating_sub(one.elapsed_ns);
    if (gain as f64) < NOTHING * elapsed as f64 {
        return format!("without {}: no gain", one.without);
    }
    let half = half.map(|half| format!("; with half of it about {}", duration(half.elapsed_ns)));
    format!(
        "without {}: {} → about {}{}",
        one.without,
        duration(elapsed),
        duration(one.elapsed_ns),
        half.unwrap_or_default()
    )
}

/// What a remedy that takes a finding's cause away altogether would come to.
pub(crate) fn gain(finding: &Finding, elapsed: Ns) -> Option<String> {
    let then = finding.predicted_ns?;
    let gain = elapsed.saturating_sub(then) as f64;
    Some(match gain < NOTHING * elapsed as f64 {
        true => format!("predicted: no gain without any {}", finding.cause),
        false => format!(
            "{} → about {}, predicted without any {}",
            duration(elapsed),
            duration(then),
            finding.cause
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::{gain, lines};
    use holdup_evidence::Cause;
    use holdup_model::prediction::{Doubt, Prediction};
    use holdup_model::report::Report;

    #[test]
    fn what_is_gained_is_said_and_what_is_not_sure() {
        let text = include_str!("../tests/pages/sshd.json");
        let mut report: Report = serde_json::from_str(text).expect("a committed report");
        report.subject.wall_ns = 3_100_000_000;
        let one = |without, factor, elapsed_ns, doubts: &[Doubt]| Prediction {
            without,
            factor,
            elapsed_ns,
            doubts: doubts.to_vec(),
        };
        report.prediction = Some(vec![
            one(Cause::ProcessChild, 0.0, 100_000_000, &[Doubt::OthersWork]),
            one(Cause::DiskSync, 0.0, 900_000_000, &[]),
            one(Cause::CpuUser, 0.0, 3_090_000_000, &[]),
            one(Cause::DiskSync, 0.5, 2_000_000_000, &[]),
        ]);
        let said: Vec<String> = lines(&report).into_iter().map(|line| line.words).collect();
        assert_eq!(
            said,
            [
                "without disk.sync: 3.10 s → about 900 ms; with half of it about 2.00 s",
                "without cpu.user: no gain",
                "without process.child: 3.10 s → about 100 ms",
            ]
        );
        let finding = &mut report.findings[0];
        assert_eq!(gain(finding, 3_100_000_000), None);
        finding.predicted_ns = Some(900_000_000);
        let gain = gain(finding, 3_100_000_000).expect("predicted");
        assert!(gain.starts_with("3.10 s → about 900 ms, predicted"), "{gain}");
    }
}
