//! What looks were too few for.
//!
//! In: a finding about a program that was looked at now and then. Out: the same; where its time is within two standard errors of nothing, it
//! is a suspicion, and says so: a pause that two looks met may have been short both times.

use super::percent;
use holdup_model::finding::{Confidence, Evidence, Finding, Severity};

/// Standard errors by which a time must be more than nothing.
const ERRORS: u64 = 2;

/// Doubts a finding whose time is hardly more than its error.
pub(super) fn too_few_samples(mut finding: Finding) -> Finding {
    let Some(ns) = finding.ns.filter(|ns| *ns > 0) else {
        return finding;
    };
    if finding.error.saturating_mul(ERRORS) < ns || finding.severity == Severity::Note {
        return finding;
    }
    let error = percent(finding.error as f64 / ns as f64);
    finding.severity = Severity::Note;
    finding.confidence(Confidence::Suspect).and(Evidence::new(
        format!("too few samples: the error is {error} of it. Observe for longer, or trace as root"),
        "number of samples",
    ))
}

#[cfg(test)]
mod tests {
    use super::too_few_samples;
    use holdup_evidence::Cause;
    use holdup_model::finding::{Confidence, Evidence, Finding, Severity};

    fn doubted(error: u64) -> (Severity, Confidence, usize) {
        let first = Evidence::new("581 waits", "looks");
        let mut finding = Finding::new(
            "lock-convoy",
            Severity::Warning,
            "a queue",
            Cause::LockFutex,
            1_000,
            first,
        )
        .confidence(Confidence::Proved);
        finding.error = error;
        let mut finding = too_few_samples(finding);
        (finding.severity, finding.confidence, finding.evidence_mut().len())
    }

    #[test]
    fn what_is_hardly_more_than_its_error_is_a_suspicion() {
        assert_eq!(doubted(870), (Severity::Note, Confidence::Suspect, 2));
        assert_eq!(doubted(500), (Severity::Note, Confidence::Suspect, 2));
        assert_eq!(doubted(499), (Severity::Warning, Confidence::Proved, 1));
        assert_eq!(doubted(0), (Severity::Warning, Confidence::Proved, 1));
    }
}
