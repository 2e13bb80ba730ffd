//! The times that `curl -w` prints.
//!
//! In: `time_namelookup` and its kin, each counted from the beginning. Out: how long the request took, and which phase took most of it.

use super::{Names, Reader, has};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::new(
    "curl-times",
    Family::Times,
    |head| has(head, NAMES, 3),
    Shape::Lines(|| Reader::boxed(judge)),
)
.about("times of curl -w");

const NAMES: &[&str] = &[
    "time_namelookup",
    "time_connect",
    "time_appconnect",
    "time_pretransfer",
    "time_redirect",
    "time_starttransfer",
    "time_total",
];

/// Instants in their order, and what happens until each.
const PHASES: [(&str, &str); 6] = [
    ("time_namelookup", "the lookup of the name"),
    ("time_connect", "the connection (TCP)"),
    ("time_appconnect", "the handshake (TLS)"),
    ("time_pretransfer", "what comes before the request"),
    ("time_starttransfer", "the wait for the first byte of the answer"),
    ("time_total", "the transfer of the answer"),
];

/// Seconds from which a request is long: up to one, people do not lose their thread (Nielsen, Usability Engineering, 1993).
const LONG_S: f64 = 1.0;

fn judge(names: &Names) -> Vec<Statement> {
    let mut before = 0.0;
    let mut phases: Vec<(f64, &str, &str)> = Vec::new();
    for (name, what) in PHASES {
        // What did not happen (no TLS) is 0.
        let Some(at) = names.some(name) else { continue };
        if at > before {
            phases.push((at - before, name, what));
            before = at;
        }
    }
    let longest = phases.into_iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let Some((took, name, what)) = longest else {
        return Vec::new();
    };
    let (ns, total) = (super::seconds(took), super::seconds(before));
    let (kind, norm) = match before >= LONG_S {
        true => (StatementKind::Took, String::new()),
        false => (
            StatementKind::WithinNorm,
            format!(
                " (from {} on a request is long)",
                duration(super::seconds(LONG_S))
            ),
        ),
    };
    let text = format!(
        "{what} took {} of {} ({name}){norm}",
        duration(ns),
        duration(total)
    );
    vec![Statement {
        ns: Some(ns),
        share: Some(took / before),
        ..names.say(kind, name, text)
    }]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let reading = read_text("c", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "curl-times");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let one = &reading.observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn the_longest_phase_is_told_of_the_whole() {
        let text = "    time_namelookup:  5.012\n       time_connect:  5.030\n    time_appconnect:  0.000\n time_starttransfer:  5.100s\n         ----------\n         time_total:  5.101\n";
        assert_eq!(
            said(text),
            (
                StatementKind::Took,
                "the lookup of the name took 5.01 s of 5.10 s (time_namelookup)".to_owned()
            )
        );
        let text = text.replace("5.", "0.");
        assert_eq!(said(&text).0, StatementKind::WithinNorm);
    }
}
