//! `networkctl`: the links, and how far systemd-networkd is with each. The boot waits for those that it sets up.
//!
//! In: a heading and rows: number, link, type, operational state, state of the set-up. Out: a statement of the links whose set-up is not finished or
//! failed; else one that all are as they should be. A link that is not managed is nobody's concern; of one without a carrier beside one that is set
//! up nobody knows whether it has a cable.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("networkctl", Family::Host, recognise)
    .about("networkctl")
    .openings(&["IDX LINK TYPE OPERATIONAL SETUP"]);

const HEADING: [&str; 5] = ["IDX", "LINK", "TYPE", "OPERATIONAL", "SETUP"];

/// Operational states of a link whose cable is not plugged in, or whose peer is off.
const NO_CABLE: [&str; 2] = ["no-carrier", "off"];

/// Links that are kept, and those that are named.
const KEPT: usize = 500;
const NAMED: usize = 4;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    Sureness::certain_if(head.lines().any(is_heading))
}

fn is_heading(line: &str) -> bool {
    line.split_whitespace().eq(HEADING)
}

#[derive(Debug, Default)]
struct Reader {
    /// Links at which it is still at work, and at which it failed.
    unfinished: Vec<String>,
    failed: Vec<String>,
    configured: usize,
    /// Whether one of the unfinished has a carrier.
    alive: bool,
    quote: Option<(bool, Quote)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if is_heading(text) {
            return Understood::Evidence;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[number, link, kind, operational, setup] = words.as_slice() else {
            return match text.ends_with(" listed.") {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Understood::No;
        }
        let list = match setup {
            "configuring" | "pending" | "initialized" => {
                self.alive |= !NO_CABLE.contains(&operational);
                &mut self.unfinished
            }
            "failed" => &mut self.failed,
            "configured" => {
                self.configured += 1;
                self.quote.get_or_insert_with(|| (false, out.here()));
                return Understood::Evidence;
            }
            _ => return Understood::Evidence,
        };
        if list.len() < KEPT {
            list.push(format!("{link} ({kind}, {operational}): {setup}"));
        }
        if self.quote.as_ref().is_none_or(|(trouble, _)| !trouble) {
            self.quote = Some((true, out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some((_, quote)) = all.quote else { return };
        let listed = |links: &[String]| {
            let named = links.get(..links.len().min(NAMED)).unwrap_or_default();
            match links.len() - named.len() {
                0 => named.join(", "),
                more => format!("{} and {more} more", named.join(", ")),
            }
        };
        let (kind, text) = match (all.failed.as_slice(), all.unfinished.as_slice()) {
            ([], []) => (
                StatementKind::WithinNorm,
                match all.configured {
                    1 => "the one link that systemd-networkd manages is configured".to_owned(),
                    more => format!("all {more} links that systemd-networkd manages are configured"),
                },
            ),
            ([], unfinished) if all.configured > 0 && !all.alive => (
                StatementKind::Warned,
                format!(
                    "systemd-networkd has not finished {}, which has no carrier; if systemd-networkd-wait-online waits for all links, the boot waits \
                     for that",
                    listed(unfinished)
                ),
            ),
            ([], unfinished) => (
                StatementKind::Stalled,
                format!(
                    "systemd-networkd has not finished {}; systemd-networkd-wait-online waits for that, and with it what needs the network at \
                     boot",
                    listed(unfinished)
                ),
            ),
            (failed, _) => (
                StatementKind::Failed,
                format!("systemd-networkd could not set up {}", listed(failed)),
            ),
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(setup: &str) -> (StatementKind, String) {
        of(&format!(
            "  2 lan0   ether    routable    configured\n  3 wlan0  wlan     degraded    {setup}\n"
        ))
    }

    fn of(rows: &str) -> (StatementKind, String) {
        let text = format!(
            "IDX LINK   TYPE     OPERATIONAL SETUP\n  1 lo     loopback carrier     unmanaged\n{rows}\n3 links listed.\n"
        );
        let observed = read_text("n", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "networkctl");
        let one = &observed.statements[0];
        (one.kind, one.text.clone())
    }

    #[test]
    fn a_link_that_is_not_set_up_is_waited_for() {
        let (kind, text) = said("configuring");
        assert_eq!(kind, StatementKind::Stalled);
        assert!(
            text.starts_with("systemd-networkd has not finished wlan0 (wlan, degraded): configuring"),
            "{text}"
        );
        assert_eq!(said("pending").0, StatementKind::Stalled);
        assert_eq!(said("failed").0, StatementKind::Failed);
    }

    #[test]
    fn links_that_are_set_up_or_not_managed_are_well() {
        assert_eq!(said("configured").0, StatementKind::WithinNorm);
        assert_eq!(said("unmanaged").0, StatementKind::WithinNorm);
        let one = "  2 eno1   ether    routable    configured\n";
        let told = "the one link that systemd-networkd manages is configured";
        assert_eq!(of(one), (StatementKind::WithinNorm, told.to_owned()));
    }

    #[test]
    fn a_second_link_without_a_cable_is_told_as_a_doubt() {
        let second = "  3 eno2   ether    no-carrier  configuring\n";
        let both = format!("  2 eno1   ether    routable    configured\n{second}");
        assert_eq!(of(&both).0, StatementKind::Warned);
        // Nothing is up.
        assert_eq!(of(second).0, StatementKind::Stalled);
        let alive = both.replace("no-carrier", "carrier");
        assert_eq!(of(&alive).0, StatementKind::Stalled);
    }
}
