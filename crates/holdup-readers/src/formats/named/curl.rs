//! The times that `curl -w` prints.
//!
//! In: `time_namelookup` and its kin, each counted from the beginning. Out: how long the request took, and which phase took most of it.

use super::{Names, Reader, pair};
use crate::format::{Family, Format, Shape, Sureness};
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::new(
    "curl-times",
    Family::Times,
    recognise,
    Shape::Lines(|| Reader::boxed(judge)),
)
.about("times of curl -w");

/// Lines of the beginning in which the names are looked for.
const LOOKED_AT: usize = 60;

/// So many of the instants have to be there.
const MIN_INSTANTS: usize = 3;

/// Whether at least three instants have a number, by curl's own names or with the whole among them: a copy may lack that.
fn recognise(head: &[u8]) -> Sureness {
    let mut known: Vec<usize> = Vec::new();
    let mut own = 0;
    for line in head.split(|byte| *byte == b'\n').take(LOOKED_AT) {
        let Some((name, value)) = pair(line) else { continue };
        let Some(at) = instant(&name).filter(|at| !known.contains(at)) else {
            continue;
        };
        if seconds_of(&value).is_some() {
            known.push(at);
            own += usize::from(name.starts_with("time_"));
        }
    }
    let whole = known.contains(&(PHASES.len() - 1));
    Sureness::certain_if(known.len() >= MIN_INSTANTS && whole || own >= MIN_INSTANTS)
}

/// A value in seconds, with a dot or a comma.
fn seconds_of(value: &str) -> Option<f64> {
    let number = value
        .split_whitespace()
        .next()?
        .trim_end_matches('s')
        .replace(',', ".");
    number.parse().ok().filter(|value| *value >= 0.0)
}

/// Which instant a name is of: curl's own names, and those that people give them in their formats (`TTFB`, `Lookup time`,
/// `AppCon`, `StartXfer`): blanks, signs, case and the words around do not count.
fn instant(name: &str) -> Option<usize> {
    let mut bare: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    bare.make_ascii_lowercase();
    let bare = bare.strip_prefix("time").unwrap_or(&bare);
    let bare = bare.strip_suffix("time").unwrap_or(bare);
    NAMES.iter().position(|names| names.contains(&bare))
}

/// What the instants of [`PHASES`] are called.
const NAMES: [&[&str]; 6] = [
    &[
        "namelookup",
        "lookup",
        "dns",
        "dnslookup",
        "nslookup",
        "dnsresolution",
    ],
    &[
        "connect",
        "tcp",
        "tcpconnect",
        "tcpconnection",
        "connection",
        "tcphandshake",
    ],
    &[
        "appconnect",
        "appcon",
        "tls",
        "ssl",
        "tlshandshake",
        "sslhandshake",
        "handshake",
    ],
    &["pretransfer", "prexfer"],
    &["starttransfer", "startxfer", "ttfb", "firstbyte", "tofirstbyte"],
    &["total", "totaltime"],
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

/// What the text calls an instant, and when it was.
fn at_instant<'n>(names: &'n Names, of: &str) -> Option<(&'n str, f64)> {
    let wanted = PHASES.iter().position(|(known, _)| *known == of)?;
    let mut own = names.all.iter().map(|(name, _, _)| name.as_str());
    let name = own.find(|name| instant(name) == Some(wanted))?;
    let at = seconds_of(names.text(name)).filter(|at| *at > 0.0);
    at.map(|at| (name, at))
}

fn judge(names: &Names) -> Vec<Statement> {
    let mut before = 0.0;
    let mut phases: Vec<(f64, &str, &str)> = Vec::new();
    for (name, what) in PHASES {
        // What did not happen (no TLS) is 0.
        let Some((_, at)) = at_instant(names, name) else {
            continue;
        };
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
        ..names.say(kind, at_instant(names, name).map_or(name, |(own, _)| own), text)
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
    fn people_name_the_instants_as_they_like_and_write_commas() {
        let text = "Lookup time:\t0,004\nConnect time:\t0,005\nAppCon time:\t0,147\nRedirect time:\t0,000\nPreXfer time:\t0,147\nStartXfer time:\t6,637\n\nTotal time:\t6,643\n";
        let (kind, about) = said(text);
        assert_eq!(kind, StatementKind::Took);
        assert_eq!(
            about,
            "the wait for the first byte of the answer took 6.49 s of 6.64 s (time_starttransfer)"
        );
        let text = "DNS: 2.5s\nTCP: 2.6s\nTLS: 2.7s\nTTFB: 2.9s\nTotal: 3.0s\n";
        assert!(
            said(text)
                .1
                .starts_with("the lookup of the name took 2.50 s of 3.00 s")
        );
        let clipped =
            "    time_namelookup:  5.513\n       time_connect:  5.514\n time_starttransfer:  5.515\n";
        assert!(said(clipped).1.starts_with("the lookup of the name took 5.51 s"));
        let other = read_text("c", b"Total: 5\nConnect: done\nDNS: 10.0.0.1 ok\n");
        assert_ne!(other.observed.sources[0].format, "curl-times");
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
