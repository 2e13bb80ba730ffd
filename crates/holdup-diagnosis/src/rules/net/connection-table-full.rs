//! The kernel's table of connections is full, and packets of new ones are dropped.

use crate::rules::{Rule, RuleId, Run, fires, levels, logs};
use holdup_evidence::observed::{KernelEvent, Metric};
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// Share of the table from which the next burst is dropped: a tenth is left.
pub(crate) const MIN_USED_SHARE: f64 = 0.90;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::ConnectionTableFull, check)
    .about("the kernel's table of connections is full")
    .causes(&[Cause::NetConnect]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let lines = logs::happenings(observed, |event| {
        matches!(event, KernelEvent::ConntrackFull).then_some(())
    });
    let Some((first, ())) = lines.first() else {
        return by_figures(observed);
    };
    let finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Critical,
        "The kernel's connection tracking table (nf_conntrack) was full, and packets of new connections were dropped",
        Cause::NetConnect,
        logs::quote(observed, first),
    )
    .and(logs::about(
        observed,
        first,
        format!(
            "the kernel reported it {}, and does not report every packet",
            logs::times(lines.len())
        ),
    ));
    fires(
        finding
            .remedy(
                Remedy::safe("check how full it is, and list its connections").with_command(
                    "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max; conntrack -L",
                ),
            )
            .remedy(Remedy::changing(
                "raise net.netfilter.nf_conntrack_max, or exclude traffic that needs no tracking (notrack)",
                "each entry costs some 300 bytes of memory that cannot be swapped",
            )),
    )
}

/// How full it is, where no log says that it was.
fn by_figures(observed: &Observed) -> Verdict {
    let all = levels::with(observed, Metric::ConntrackEntries).filter_map(|level| {
        let entries = level.point(Metric::ConntrackEntries)?;
        let most = level.value(Metric::ConntrackLimit).filter(|most| *most > 0.0)?;
        Some((level, entries, most))
    });
    let Some((level, entries, most)) = all.max_by(|a, b| (a.1.value / a.2).total_cmp(&(b.1.value / b.2)))
    else {
        return logs::kernel_silent(observed, "a full connection table");
    };
    let (count, share) = (entries.value, 100.0 * entries.value / most);
    if count < MIN_USED_SHARE * most {
        return Verdict::Clear(format!(
            "{count:.0} connections are tracked, of at most {most:.0}"
        ));
    }
    let title = format!(
        "The kernel's connection tracking table (nf_conntrack) is {share:.0} % full: packets of new connections will be dropped"
    );
    fires(
        Finding::without_duration(
            RULE.id.id(),
            Severity::Warning,
            title,
            Cause::NetConnect,
            level.evidence(
                format!("{count:.0} of {most:.0} connections are tracked"),
                entries,
            ),
        )
        .confidence(Confidence::Strong)
        .remedy(Remedy::safe("list its connections").with_command("conntrack -L; conntrack -S"))
        .remedy(Remedy::changing(
            "raise net.netfilter.nf_conntrack_max, or exclude traffic that needs no tracking (notrack)",
            "each entry costs some 300 bytes of memory that cannot be swapped",
        )),
    )
}
