//! Much of what TCP sends has to be sent again.

use crate::rules::figures::{Intervals, often, span};
use crate::rules::{Extend, Rule, RuleId, Run, figures, fires, say};
use holdup_evidence::observed::Metric;
use holdup_evidence::{Cause, Observed};
use holdup_model::attributed::Asker;
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// Of the segments sent, the share from which sending them again slows connections down: with one in a hundred lost, a
/// connection with a round trip of some 10 ms gets only a few MiB/s.
pub(crate) const MIN_RETRANSMITTED_SHARE: f64 = 0.01;

/// What was sent again, what was sent, and how much of the first says something: one segment a second; of counters between
/// two readings ten.
const PAIRS: [(Metric, Metric, f64); 2] = [
    (
        Metric::TcpRetransmitsPerSecond,
        Metric::TcpSegmentsSentPerSecond,
        1.0,
    ),
    (Metric::TcpSegmentsSentAgain, Metric::TcpSegmentsSent, 10.0),
];

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::SegmentsSentAgain, check)
    .about("TCP retransmits much of its data")
    .causes(&[Cause::NetSend]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let mut most: Option<(f64, usize)> = None;
    let pairs = PAIRS.iter().flat_map(|(again, sent, some)| {
        figures::of(observed, *again).map(move |again| (again, *sent, *some))
    });
    for (again, sent, some) in pairs {
        let Some(sent) = again.other(sent, "") else {
            continue;
        };
        let shares = shares(&again, &sent, some);
        let high: Vec<f64> = shares
            .iter()
            .copied()
            .filter(|share| *share >= MIN_RETRANSMITTED_SHARE)
            .collect();
        if often(high.len(), shares.len()) {
            return fires(finding(&again, &shares));
        }
        let here = shares.iter().copied().fold(0.0, f64::max);
        most = Some(most.map_or((here, shares.len()), |(most, count)| {
            (most.max(here), count + shares.len())
        }));
    }
    match most {
        Some((share, count)) => Verdict::Clear(format!(
            "at most {} of the segments are sent again in {}",
            say::percent(share),
            say::several(count as u64, "interval")
        )),
        None => {
            let what = "how much TCP retransmits, and of how much (`sar -n TCP,ETCP`)";
            let metric = match observed.of(Metric::TcpSegmentsSentAgain).next() {
                Some(_) => Metric::TcpSegmentsSentAgain,
                None => Metric::TcpRetransmitsPerSecond,
            };
            Verdict::CannotTell(figures::missing(observed, metric, what))
        }
    }
}

/// Of each interval the share that was sent again, 0..1.
fn shares(again: &Intervals<'_>, sent: &Intervals<'_>, some: f64) -> Vec<f64> {
    let of = |report| sent.in_reports(&[report]).first().copied();
    let both = again
        .points()
        .filter_map(|point| Some((point.value, of(point.report)?)));
    both.map(|(again, sent)| match again >= some {
        true => again / (sent + again).max(1.0),
        false => 0.0,
    })
    .collect()
}

fn finding(again: &Intervals<'_>, shares: &[f64]) -> Finding {
    let percent: Vec<f64> = shares.iter().map(|share| share * 100.0).collect();
    let percent = span(&percent, 1);
    let drops = figures::leader(again.observed, Metric::NetworkReceiveDropsPerSecond)
        .filter(|drops| drops.most() > 0.0);
    let drops = drops.map(|drops| {
        drops.evidence(format!(
            "{} drops {} received packets/s",
            drops.of(),
            span(&drops.values(), 0)
        ))
    });
    let unit = match again.series.metric {
        Metric::TcpSegmentsSentAgain => "segments",
        _ => "segments/s",
    };
    let first = again.evidence(format!("{} {unit} are sent again", span(&again.values(), 0)));
    let title = format!("TCP retransmits {percent} % of its segments: packets are lost");
    Finding::without_duration(RULE.id.id(), Severity::Warning, title, Cause::NetSend, first)
        .about(Default::default(), Asker::default())
        .and_if(drops)
        .remedy(Remedy::safe("list the connections that lose them").with_command("ss -tin state established"))
        .remedy(Remedy::safe("check whether a queue of this machine drops them").with_command("tc -s qdisc"))
        .remedy(Remedy::safe("check for errors on the link and its switch").with_command("ip -s link"))
        .remedy(Remedy::pointless(
            "larger socket buffers: packets are lost in the network all the same",
        ))
}
