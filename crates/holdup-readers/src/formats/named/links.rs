//! `ethtool INTERFACE`, and the state of a bond in `/proc/net/bonding`.
//!
//! Out: whether a link is up, and whether it is as fast as both the card and its duplex allow; which member of a bond is down, and
//! how often its link failed; whether a bond of 802.3ad has a partner, and its members agree with theirs. Source: the kernel's
//! documentation, "Linux Ethernet Bonding Driver".

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
    |head| has(head, OF_BONDS, 2),
    Shape::Lines(|| Reader::once("Slave Interface", member)),
)
.about("/proc/net/bonding")
.openings(&["Ethernet Channel Bonding Driver"]);

/// Names of the state of a bond and of its members.
const OF_BONDS: &[&str] = &[
    "Ethernet Channel Bonding Driver",
    "Bonding Mode",
    "MII Status",
    "Link Failure Count",
    "Partner Mac Address",
    "Actor Churn State",
    "Partner Churn State",
];

/// The partner's address where none has answered.
const NOBODY: &str = "00:00:00:00:00:00";

/// What a port is that has not come to agree with its partner for a minute (IEEE 802.1AX, `Churn_Detection_Time`).
const CHURNED: &str = "churned";

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

/// What is said of the bond as a whole, above its first member.
fn bond(names: &Names) -> Option<Statement> {
    let own = names
        .all
        .iter()
        .take_while(|(name, _, _)| name != "Slave Interface");
    let of = |wanted: &str| {
        let mut own = own.clone();
        own.find(|(name, _, _)| name == wanted)
            .map_or("", |(_, value, _)| value.as_str())
    };
    let mode = of("Bonding Mode");
    if mode.is_empty() && of("Partner Mac Address").is_empty() {
        return None;
    }
    if of("MII Status") == "down" {
        let text = format!("the bond ({mode}) is down: none of its members has a link");
        return Some(names.say(StatementKind::Unreachable, "MII Status", text));
    }
    if of("Partner Mac Address") != NOBODY {
        return None;
    }
    let ports = match of("Number of ports") {
        "" => String::new(),
        ports => format!("; ports in its active aggregator: {ports}"),
    };
    let text = format!(
        "the bond (802.3ad) has no partner: nobody answers its LACP packets (Partner Mac Address {NOBODY}){ports}"
    );
    Some(names.say(StatementKind::Failed, "Partner Mac Address", text))
}

fn member(names: &Names) -> Vec<Statement> {
    let mut said: Vec<Statement> = bond(names).into_iter().collect();
    let name = names.text("Slave Interface");
    if name.is_empty() {
        return said;
    }
    // The bond itself has a state too, above its first member.
    let own = names
        .all
        .iter()
        .skip_while(|(name, _, _)| name != "Slave Interface");
    let of = |wanted: &str| {
        let mut own = own.clone();
        own.find(|(name, _, _)| name == wanted)
            .map_or("", |(_, value, _)| value.as_str())
    };
    let failed = names.number("Link Failure Count").unwrap_or(0.0);
    let often = format!("its link failed {failed:.0} times");
    let sides: Vec<&str> = [("Actor Churn State", "actor"), ("Partner Churn State", "partner")]
        .into_iter()
        .filter_map(|(state, side)| (of(state) == CHURNED).then_some(side))
        .collect();
    let (kind, text) = match of("MII Status") {
        "up" | "" if !sides.is_empty() => (
            StatementKind::Failed,
            format!(
                "{name} of the bond does not come to agree with its LACP partner ({} churned); {often}",
                sides.join(" and ")
            ),
        ),
        "" => return said,
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
    said.push(names.say(kind, "Slave Interface", text));
    said
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

    #[test]
    fn a_bond_of_802_3ad_without_a_partner() {
        let text = "Ethernet Channel Bonding Driver: v5.15.0\n\nBonding Mode: IEEE 802.3ad Dynamic link aggregation\nMII Status: up\n\n\
            802.3ad info\nLACP rate: slow\nActive Aggregator Info:\n\tAggregator ID: 1\n\tNumber of ports: 1\n\
            \tPartner Mac Address: 00:00:00:00:00:00\n\nSlave Interface: eno1\nMII Status: up\nLink Failure Count: 0\n\
            Actor Churn State: none\nPartner Churn State: churned\ndetails actor lacp pdu:\n    port state: 77\n\n\
            Slave Interface: eno2\nMII Status: up\nLink Failure Count: 2\nActor Churn State: churned\nPartner Churn State: churned\n";
        let reading = read_text("b", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "bonding");
        assert_eq!(
            reading.texts(),
            [
                "the bond (802.3ad) has no partner: nobody answers its LACP packets (Partner Mac Address 00:00:00:00:00:00); ports in its \
                 active aggregator: 1",
                "eno1 of the bond does not come to agree with its LACP partner (partner churned); its link failed 0 times",
                "eno2 of the bond does not come to agree with its LACP partner (actor and partner churned); its link failed 2 times",
            ]
        );
        let well = text
            .replace("00:00:00:00:00:00", "02:11:22:33:44:55")
            .replace("churned", "none");
        assert!(
            of(&well).iter().all(|one| one.kind == StatementKind::WithinNorm),
            "{:?}",
            of(&well)
        );
    }
}
