//! `ethtool INTERFACE`, and the state of a bond in `/proc/net/bonding`.
//!
//! Out: whether a link is up, and whether it is as fast as both the card and its duplex allow; which member of a bond is down, and
//! how often its link failed.

use super::{Names, Reader, has};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};

pub(crate) static ETHTOOL: Format = Format::new(
    "ethtool",
    Family::Host,
    |head| has(head, &["Speed", "Duplex", "Auto-negotiation", "Link detected"], 2),
    Shape::Lines(|| Reader::once("Settings for ", settings)),
)
.about("ethtool's settings of a link")
.openings(&["Settings for "]);

pub(crate) static BONDING: Format = Format::new(
    "bonding",
    Family::Host,
    |head| has(head, &["Bonding Mode", "MII Status", "Link Failure Count"], 2),
    Shape::Lines(|| Reader::once("Slave Interface", member)),
)
.about("/proc/net/bonding")
.openings(&["Ethernet Channel Bonding Driver"]);

/// Failures of a link from which it is unsteady: one or two are a cable that was moved and a switch that was restarted.
const UNSTEADY: f64 = 5.0;

/// Megabits a second below which a card that can do more has a fault of its cable or its far end.
const SLOW: u64 = 1_000;

/// The speeds that stand in a text: `1000baseT/Full`.
fn fastest(text: &str) -> Option<u64> {
    let words = text.split_whitespace();
    words
        .filter_map(|word| word.split_once("base")?.0.parse().ok())
        .max()
}

/// The fastest that a list of link modes has, which goes on over several lines.
fn of_list(names: &Names, list: &str) -> Option<u64> {
    let mut within = false;
    let mut most = None;
    for (name, value, _) in &names.all {
        within = name == list || within && fastest(name).is_some();
        if within {
            most = most.max(fastest(name)).max(fastest(value));
        }
    }
    most
}

fn settings(names: &Names) -> Vec<Statement> {
    let heading = names
        .all
        .iter()
        .find_map(|(name, _, _)| name.strip_prefix("Settings for "));
    let link = heading.unwrap_or("the link");
    if names.text("Link detected") == "no" {
        let text = format!("{link} has no link (Link detected: no)");
        return vec![names.say(StatementKind::Unreachable, "Link detected", text)];
    }
    let told = names.text("Speed");
    let Some(speed) = told
        .strip_suffix("Mb/s")
        .and_then(|speed| speed.parse::<u64>().ok())
    else {
        return Vec::new();
    };
    let duplex = names.text("Duplex");
    let can = of_list(names, "Supported link modes");
    let peer = of_list(names, "Link partner advertised link modes");
    let of_peer = peer.map_or_else(String::new, |peer| format!(", the other end up to {peer} Mb/s"));
    let half = duplex.eq_ignore_ascii_case("half");
    let slower = can.filter(|can| speed < *can);
    let kind = match slower {
        _ if half => StatementKind::Stalled,
        Some(_) if speed < SLOW => StatementKind::Stalled,
        Some(_) => StatementKind::Warned,
        None => StatementKind::WithinNorm,
    };
    let card = can.map_or_else(String::new, |can| format!("; it can do {can} Mb/s"));
    let text = format!(
        "{link} runs at {told}, {} duplex{card}{of_peer}",
        duplex.to_lowercase()
    );
    vec![names.say(kind, "Speed", text)]
}

fn member(names: &Names) -> Vec<Statement> {
    let name = names.text("Slave Interface");
    if name.is_empty() {
        return Vec::new();
    }
    // The bond itself has a state too, above its first member.
    let own = names
        .all
        .iter()
        .skip_while(|(name, _, _)| name != "Slave Interface");
    let state = own
        .clone()
        .find(|(name, _, _)| name == "MII Status")
        .map_or("", |(_, value, _)| value.as_str());
    let failed = names.number("Link Failure Count").unwrap_or(0.0);
    let often = format!("its link failed {failed:.0} times");
    let (kind, text) = match state {
        "" => return Vec::new(),
        "up" if failed < UNSTEADY => (
            StatementKind::WithinNorm,
            format!("{name} of the bond is up; {often} (from {UNSTEADY:.0} on it is unsteady)"),
        ),
        "up" => (
            StatementKind::Warned,
            format!("{name} of the bond is up and unsteady: {often}"),
        ),
        state => (
            StatementKind::Unreachable,
            format!("{name} of the bond is {state}; {often}"),
        ),
    };
    vec![names.say(kind, "MII Status", text)]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Statement, StatementKind};

    fn of(text: &str) -> Vec<Statement> {
        read_text("e", text.as_bytes()).observed.statements
    }

    fn link(speed: &str, duplex: &str, detected: &str) -> Statement {
        let text = format!(
            "Settings for eth0:\n\tSupported ports: [ TP ]\n\tSupported link modes:   10baseT/Half 10baseT/Full\n\t                        \
             100baseT/Half 100baseT/Full\n\t                        1000baseT/Full\n\tSpeed: {speed}\n\tDuplex: {duplex}\n\t\
             Auto-negotiation: on\n\tLink detected: {detected}\n"
        );
        of(&text).remove(0)
    }

    #[test]
    fn a_link_that_is_slower_than_its_card() {
        let slow = link("100Mb/s", "Half", "yes");
        assert_eq!(slow.kind, StatementKind::Stalled);
        assert_eq!(
            slow.text,
            "eth0 runs at 100Mb/s, half duplex; it can do 1000 Mb/s"
        );
        assert_eq!(link("1000Mb/s", "Full", "yes").kind, StatementKind::WithinNorm);
        assert_eq!(
            link("Unknown!", "Unknown! (255)", "no").kind,
            StatementKind::Unreachable
        );
    }

    #[test]
    fn each_member_of_a_bond_is_judged() {
        let text = "Ethernet Channel Bonding Driver: v5.15.0\n\nBonding Mode: fault-tolerance (active-backup)\nMII Status: up\n\n\
            Slave Interface: eno1\nMII Status: down\nLink Failure Count: 37\n\nSlave Interface: eno2\nMII Status: up\n\
            Link Failure Count: 1\n";
        let found = of(text);
        assert_eq!(found[0].kind, StatementKind::Unreachable);
        assert_eq!(
            found[0].text,
            "eno1 of the bond is down; its link failed 37 times"
        );
        assert_eq!(found[1].kind, StatementKind::WithinNorm);
    }
}
