//! The kernel's table of open files is nearly full.

use crate::rules::levels;
use crate::rules::{Rule, RuleId, Run, fires};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// Share of the table from which the next burst fails: a tenth is left.
pub(crate) const MIN_USED_SHARE: f64 = 0.90;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::FileTableFull, check)
    .about("the number of open files is near the limit of the machine")
    .causes(&[Cause::NetConnect]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let shares = levels::with(observed, Metric::OpenFiles).filter_map(|level| {
        let open = level.point(Metric::OpenFiles)?;
        let most = level.value(Metric::OpenFilesLimit).filter(|most| *most > 0.0)?;
        Some((level, open, most))
    });
    let fullest = shares.max_by(|a, b| (a.1.value / a.2).total_cmp(&(b.1.value / b.2)));
    let Some((level, open, most)) = fullest else {
        return Verdict::CannotTell("how many files are open, of how many: /proc/sys/fs/file-nr".to_owned());
    };
    if open.value < MIN_USED_SHARE * most {
        return Verdict::Clear(format!("{:.0} files are open, of at most {most:.0}", open.value));
    }
    fires(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            format!("{:.0} files are open on this machine, of at most {most:.0}", open.value),
            Cause::NetConnect,
            level.evidence(format!("{:.0} of {most:.0} entries are used", open.value), open),
        )
        .confidence(Confidence::Proved)
        .remedy(
            Remedy::safe("find the process with the most, and check whether it closes them (sockets count \
             too)")
                .with_command("for p in /proc/[0-9]*; do echo \"$(ls $p/fd 2>/dev/null | wc -l) $p\"; done | sort -n | tail"),
        )
        .remedy(Remedy::changing(
            "raise fs.file-max",
            "each open file uses kernel memory; a program that never closes files also fills the larger \
             table",
        )),
    )
}
