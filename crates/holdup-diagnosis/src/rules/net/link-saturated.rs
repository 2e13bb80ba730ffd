//! A network interface carries as much as its link can.

use crate::rules::figures::{Intervals, mean, often, span};
use crate::rules::{Extend, Rule, RuleId, Run, figures, fires, say};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::{Asker, Resource, ResourceKind};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// Percent of the link's speed, as the mean of an interval, from which bursts within it find the link full.
pub(crate) const MIN_USED_PERCENT: f64 = 80.0;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::LinkSaturated, check)
    .about("a network interface carries as much as its link can")
    .causes(&[Cause::NetSend, Cause::NetReceive]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let mut links: Vec<Intervals<'_>> = figures::of(observed, Metric::NetworkUtilPercent).collect();
    links.sort_by(|a, b| b.most().total_cmp(&a.most()));
    let Some(busiest) = links.first() else {
        let what = "how much of its speed an interface uses (`sar -n DEV`, %ifutil)";
        return Verdict::CannotTell(figures::missing(observed, Metric::NetworkUtilPercent, what));
    };
    match links
        .iter()
        .find(|link| often(link.from(MIN_USED_PERCENT).len(), link.count()))
    {
        Some(link) => fires(finding(link)),
        None => Verdict::Clear(format!(
            "{} uses at most {:.1} % of its speed in {}",
            busiest.of(),
            busiest.most(),
            say::several(busiest.count() as u64, "interval")
        )),
    }
}

fn finding(link: &Intervals<'_>) -> Finding {
    let (name, used) = (link.of(), span(&link.values(), 0));
    let rate = |metric| {
        link.beside(metric)
            .map(|rate| mean(&rate.values()))
            .unwrap_or(0.0)
    };
    let (received, sent) = (
        rate(Metric::NetworkReceivedKibPerSecond),
        rate(Metric::NetworkSentKibPerSecond),
    );
    let (cause, verb) = match sent > received {
        true => (Cause::NetSend, "sends"),
        false => (Cause::NetReceive, "receives"),
    };
    let drops = link
        .beside(Metric::NetworkReceiveDropsPerSecond)
        .filter(|drops| drops.most() > 0.0);
    let drops = drops.map(|drops| {
        drops.evidence(format!(
            "{name} drops {} received packets/s",
            span(&drops.values(), 0)
        ))
    });
    let resource = Resource {
        kind: ResourceKind::Device,
        name: name.to_owned(),
        ..Resource::default()
    };
    let first = link.evidence(format!(
        "{name} uses {used} % of its link; it receives {received:.0} and sends {sent:.0} KiB/s"
    ));
    let title = format!("{name} {verb} at the limit of its link: {used} % of its speed");
    Finding::without_duration(RULE.id.id(), Severity::Warning, title, cause, first)
        .about(resource, Asker::default())
        .and_if(drops)
        .remedy(
            Remedy::safe("list the connections with the most traffic")
                .with_command("ss -tin state established"),
        )
        .remedy(Remedy::safe("check the speed of the link").with_command("ethtool INTERFACE"))
        .remedy(Remedy::changing(
            "spread or limit traffic that can wait (backups, replication), or use a faster link",
            "limited traffic takes longer",
        ))
}
