//! The kernel's table of connections is full, and packets of new ones are dropped.

use crate::finding::{Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, MATTERS, Need, Place, Rule, RuleId, Run, fires, logs};
use holdup_evidence::observed::KernelEvent;
use holdup_evidence::{Cause, Observed};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::ConnectionTableFull,
    about: "the kernel's table of connections is full",
    needs: &[Need::Artefacts],
    causes: &[Cause::NetConnect],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Artefacts(check),
};

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let told = logs::told(observed, |event| {
        matches!(event, KernelEvent::ConntrackFull).then_some(())
    });
    let Some((first, ())) = told.first() else {
        return logs::kernel_silent(observed, "a full connection table");
    };
    let finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Critical,
        "The kernel's connection table was full, and packets of new connections were dropped",
        Cause::NetConnect,
        logs::quote(observed, first),
    )
    .and(logs::about(
        observed,
        first,
        format!(
            "the kernel said so {}, and does not say so of every packet",
            logs::times(told.len())
        ),
    ));
    fires(
        finding
            .remedy(
                Remedy::safe("see how full it is, and of whose connections")
                    .with_command("sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max; conntrack -L"),
            )
            .remedy(Remedy::changing(
                "raise net.netfilter.nf_conntrack_max, or leave traffic that needs no tracking out of it (notrack)",
                "each entry costs some 300 bytes of memory that cannot be swapped",
            )),
    )
}
