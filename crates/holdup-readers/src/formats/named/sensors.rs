//! `sensors`: temperatures with their limits.
//!
//! Out: the sensor that is nearest to or above its limit.

use super::{Names, Reader};
use crate::find::find;
use crate::format::{Family, Format, Shape, Sureness};
use holdup_evidence::observed::{Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::new(
    "sensors",
    Family::Host,
    |head| {
        let limits = find(head, b"(high = ").is_some() || find(head, b"(crit = ").is_some();
        Sureness::certain_if(limits && find(head, "\u{b0}C".as_bytes()).is_some())
    },
    Shape::Lines(|| Reader::boxed(judge)),
)
.about("sensors");

/// A temperature that stands behind a name, in degrees Celsius.
fn degrees(text: &str, name: &str) -> Option<f64> {
    let rest = text
        .get(text.find(name)? + name.len()..)?
        .trim_start_matches([' ', '=', '+']);
    let digits = rest.split('\u{b0}').next()?;
    crate::numbers::decimal(digits.trim().as_bytes()).filter(|value| (1.0..200.0).contains(value))
}

fn judge(names: &Names) -> Vec<Statement> {
    let of = |(name, value, _): &(String, String, holdup_evidence::observed::Quote)| {
        let now = degrees(value, "")?;
        let limit = degrees(value, "high").or_else(|| degrees(value, "crit"))?;
        Some((now - limit, now, limit, name.clone()))
    };
    let nearest = names
        .all
        .iter()
        .filter_map(of)
        .max_by(|(one, ..), (other, ..)| one.total_cmp(other));
    let Some((over, now, limit, name)) = nearest else {
        return Vec::new();
    };
    let (kind, ending) = match over >= 0.0 {
        true => (
            StatementKind::Stalled,
            format!(", and its limit is {limit:.0} \u{b0}C: what gets too hot is slowed down"),
        ),
        false => (
            StatementKind::WithinNorm,
            format!(", the nearest to its limit (from {limit:.0} \u{b0}C on it is too hot)"),
        ),
    };
    vec![names.say(kind, &name, format!("{name} is at {now:.0} \u{b0}C{ending}"))]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn a_hot_processor_and_a_cool_one() {
        let of = |now: &str| {
            let text = format!(
                "coretemp-isa-0000\nAdapter: ISA adapter\nPackage id 0:  +{now}\u{b0}C  (high = +80.0\u{b0}C, crit = +100.0\u{b0}C)\n\
                 Core 0:        +38.0\u{b0}C  (high = +80.0\u{b0}C, crit = +100.0\u{b0}C)\n"
            );
            read_text("s", text.as_bytes()).observed.statements.remove(0)
        };
        let hot = of("99.0");
        assert_eq!(hot.kind, StatementKind::Stalled);
        assert!(
            hot.text
                .starts_with("Package id 0 is at 99 \u{b0}C, and its limit is 80 \u{b0}C"),
            "{}",
            hot.text
        );
        assert_eq!(of("41.0").kind, StatementKind::WithinNorm);
    }
}
