//! A part of a report: one cause, or the time of requests.

use crate::usage::Usage;
use anyhow::bail;
use holdup_comparison::gate::causes_named;
use holdup_evidence::{Cause, Ns};
use holdup_model::report::{CauseShare, Report, SubjectKind};

/// The causes that were asked for.
#[derive(Debug)]
pub(super) struct Causes(Vec<Cause>);

impl Causes {
    /// By the id of one, or by that of an area, such as `disk`.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn named(name: &str) -> anyhow::Result<Causes> {
        let found = causes_named(name);
        if found.is_empty() {
            bail!(Usage::Wrong(format!(
                "there is no cause {name:?}; `holdup explain` lists them all"
            )));
        }
        Ok(Causes(found))
    }

    fn hold(&self, cause: Cause) -> bool {
        self.0.contains(&cause)
    }
}

/// Leaves the waits and findings of these causes. The sums by cause stay: a share is only one of the whole.
pub(super) fn only_causes(report: &mut Report, causes: &Causes) {
    report.waits.retain(|wait| causes.hold(wait.cause));
    report.findings.retain(|finding| causes.hold(finding.cause));
    for thread in &mut report.threads {
        thread.causes.retain(|share| causes.hold(share.cause));
    }
    report.threads.retain(|thread| !thread.causes.is_empty());
}

/// Leaves the time in which a thread had a request to answer; whether there is any. What a finding costs is then no more
/// than what its cause cost requests.
pub(super) fn only_requests(report: &mut Report) -> bool {
    let Some(requests) = report.requests.as_ref().filter(|of| of.count + of.open > 0) else {
        return false;
    };
    let causes = requests.causes.clone();
    let cost = |cause: Cause| causes.iter().find(|share: &&CauseShare| share.cause == cause);
    let whole: Ns = causes.iter().map(|share| share.ns).sum();
    report.findings.retain(|finding| cost(finding.cause).is_some());
    for finding in &mut report.findings {
        let most = cost(finding.cause).map_or(0, |share| share.ns);
        finding.ns = finding.ns.map(|ns| ns.min(most));
        finding.share = finding
            .ns
            .filter(|_| whole > 0)
            .map(|ns| ns as f64 / whole as f64);
    }
    report.waits.retain(|wait| cost(wait.cause).is_some());
    report.subject.kind = SubjectKind::Attach;
    report.causes = causes;
    true
}
