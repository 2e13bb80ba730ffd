//! `chronyc tracking`: how far a machine's clock is from its source.
//!
//! Out: the distance, and whether the clock follows its source at all.

use super::{Names, Reader, has, seconds};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::new(
    "chrony-tracking",
    Family::Host,
    |head| {
        has(
            head,
            &["Reference ID", "Stratum", "System time", "Leap status"],
            3,
        )
    },
    Shape::Lines(|| Reader::once("Reference ID", judge)),
)
.about("chronyc tracking");

/// The distance from which tickets, certificates and the order of writes suffer; a synchronised clock is within some milliseconds.
const FAR: f64 = 0.5;

fn judge(names: &Names) -> Vec<Statement> {
    let told = names.text("System time");
    let Some(off) = names.number("System time") else {
        return Vec::new();
    };
    let direction = told
        .split_whitespace()
        .find(|word| matches!(*word, "slow" | "fast"))
        .unwrap_or("away");
    let ns = seconds(off);
    let follows = names.text("Leap status") != "Not synchronised";
    let (kind, ending) = match follows {
        false => (StatementKind::Failed, ", and it is not synchronised"),
        true if off >= FAR => (StatementKind::Failed, ""),
        true => (StatementKind::WithinNorm, " (from 500 ms on it is wrong)"),
    };
    let text = format!("the clock is {} {direction} of its source{ending}", duration(ns));
    vec![Statement {
        ns: Some(ns),
        ..names.say(kind, "System time", text)
    }]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn a_clock_that_is_wrong_and_one_that_is_right() {
        let of = |off: &str, leap: &str| {
            let text = format!(
                "Reference ID    : 0A000001 (ntp1)\nStratum         : 3\nSystem time     : {off} seconds slow of NTP time\n\
                 Leap status     : {leap}\n"
            );
            read_text("c", text.as_bytes()).observed.statements.remove(0)
        };
        let wrong = of("3612.123123", "Not synchronised");
        assert_eq!(wrong.kind, StatementKind::Failed);
        assert_eq!(
            wrong.text,
            "the clock is 60 min 12 s slow of its source, and it is not synchronised"
        );
        assert_eq!(of("0.000012", "Normal").kind, StatementKind::WithinNorm);
    }
}
