//! `cpu.stat` of a cgroup with a quota.
//!
//! Out: in how many of its periods it was stopped because it had used up its quota, and for how long.

use super::{Names, Reader, has};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::new(
    "cpu-stat",
    Family::Host,
    |head| has(head, &["nr_periods", "nr_throttled"], 2),
    Shape::Lines(|| Reader::once("nr_periods", judge)),
)
.about("cpu.stat of a cgroup")
.openings(&["nr_periods "]);

/// The part of its periods from which a quota is what holds a group up: in one of twenty it hits the slowest requests, which
/// people measure.
const OFTEN: f64 = 0.05;

fn judge(names: &Names) -> Vec<Statement> {
    let Some(periods) = names.number("nr_periods") else {
        return Vec::new();
    };
    let throttled = names.number("nr_throttled").unwrap_or(0.0);
    let part = throttled / periods.max(1.0);
    let us = names.some("throttled_usec").map(|us| us * 1e3);
    let ns = us.or(names.some("throttled_time")).map(|ns| ns.min(1e18) as u64);
    let how_long = ns
        .map(|ns| format!(", {} altogether", duration(ns)))
        .unwrap_or_default();
    let often = format!(
        "throttled in {throttled:.0} of {periods:.0} periods, {:.1} %{how_long}",
        part * 100.0
    );
    let norm = format!("(from {:.0} % on it is much)", OFTEN * 100.0);
    let kind = match part >= OFTEN {
        true => StatementKind::Stalled,
        false => StatementKind::WithinNorm,
    };
    vec![Statement {
        ns,
        share: Some(part),
        ..names.say(kind, "nr_throttled", format!("the CPU quota: {often} {norm}"))
    }]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn a_quota_that_is_used_up_in_most_periods() {
        let text = "usage_usec 900\nnr_periods 1000\nnr_throttled 910\nthrottled_usec 91000000\n";
        let reading = read_text("c", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "cpu-stat");
        let one = &reading.observed.statements[0];
        assert_eq!(one.kind, StatementKind::Stalled);
        assert_eq!(
            one.text,
            "the CPU quota: throttled in 910 of 1000 periods, 91.0 %, 1 min 31 s altogether (from 5 % on it is much)"
        );
        // Of two reports with something before them the second has what the first had, and more.
        let twice = format!("50000 100000\nusage_usec 3\nnr_periods 5\nnr_throttled 0\nburning\n{text}");
        let statements = read_text("c", twice.as_bytes()).observed.statements;
        assert_eq!(statements.len(), 2, "{statements:?}");
        assert_eq!(statements[1].kind, StatementKind::Stalled);
        let text = text.replace("910\n", "3\n");
        let reading = read_text("c", text.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
    }
}
