//! The health of a Ceph cluster: `ceph health detail`, `ceph status`.
//!
//! In: the health, its checks with their details, and what the status says of placement groups and of the recovery. Out: one statement
//! with all of that, of the gravest kind that its checks have; nothing of a cluster that is well.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::prompt::{self, Prompt};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("ceph-health", Family::Host, recognise)
    .about("ceph health detail and ceph status");

/// Parts that are reported, and bytes of each.
const MAX_PARTS: usize = 10;
const MAX_PART_BYTES: usize = 140;

/// Details of one check that are reported; the rest are of the same kind.
const DETAILS: usize = 2;

/// Lines that are looked at to recognise it.
const LOOKED_AT: usize = 60;

/// What checks and states say, gravest first.
const KINDS: [(&[&str], StatementKind); 3] = [
    (
        &["_FULL", "full osd", "toofull", " full", "no free"],
        StatementKind::Exhausted,
    ),
    (
        &[
            "inactive",
            "down",
            "unavailable",
            "unknown",
            "incomplete",
            "offline",
            "out of quorum",
        ],
        StatementKind::Unreachable,
    ),
    (
        &[
            "slow",
            "blocked",
            "stuck",
            "degraded",
            "behind",
            "misplaced",
            "undersized",
            "lag",
        ],
        StatementKind::Stalled,
    ),
];

/// What a line of the status is that goes into the statement: states of placement groups and work on them.
const STATES: [&str; 14] = [
    "degraded",
    "misplaced",
    "unfound",
    "inactive",
    "down",
    "peering",
    "backfill",
    "recover",
    "undersized",
    "stale",
    "incomplete",
    "unknown",
    "inconsistent",
    "remapped",
];

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let mut health = false;
    let mut more = false;
    for line in head.lines().take(LOOKED_AT).map(str::trim) {
        let value = health_of(line);
        let stands = ["HEALTH_OK", "HEALTH_WARN", "HEALTH_ERR"]
            .iter()
            .any(|word| value.starts_with(word));
        health |= stands;
        more |= stands && value.contains(' ')
            || check(line).is_some()
            || ["cluster:", "mon:", "osd:", "pgs:", "monmap", "osdmap", "pgmap"]
                .iter()
                .any(|key| line.starts_with(key));
    }
    match (health, more) {
        (true, true) => Sureness::Certain,
        (true, false) => Sureness::Likely,
        (false, _) => Sureness::No,
    }
}

/// What stands behind `health:`, or `health` of older versions.
fn health_of(line: &str) -> &str {
    let value = line.strip_prefix("health").unwrap_or(line);
    value.strip_prefix(':').unwrap_or(value).trim_start()
}

/// Lines of the status of older versions that are no checks.
const OLD: [&str; 9] = [
    "monmap",
    "osdmap",
    "mdsmap",
    "fsmap",
    "mgrmap",
    "election",
    "flags",
    "client io",
    "recovery io",
];

/// `[WRN] OSD_DOWN: 1 osds down`, `OSD_DOWN 1 osds down`.
fn check(line: &str) -> Option<&str> {
    let line = line
        .strip_prefix("[WRN] ")
        .or_else(|| line.strip_prefix("[ERR] "))
        .unwrap_or(line);
    let name = line.split([':', ' ']).next()?;
    let capitals = name.contains('_') && name.chars().all(|char| char.is_ascii_uppercase() || char == '_');
    (capitals && name.len() > 4 && !name.starts_with("HEALTH_")).then_some(line)
}

/// The longest wait that is believed, seconds: ten years.
const MOST_SECONDS: f64 = 3e8;

/// How long requests have been blocked at least, seconds: `1 ops are blocked > 1048.58 sec on osd.2`, `17 slow metadata IOs are blocked
/// > 30 secs, oldest blocked for 3065 secs`, `256 slow ops, oldest one blocked for 3285 sec, osd.29 has slow ops`.
fn blocked(text: &str) -> Option<f64> {
    let rest = match text.split_once(" ops are blocked > ") {
        Some((count, rest)) => count.parse::<u64>().ok().map(|_| rest)?,
        None => text.split_once("oldest ")?.1.split_once("blocked for ")?.1,
    };
    let seconds: f64 = rest.split(' ').next()?.parse().ok()?;
    (0.0..MOST_SECONDS).contains(&seconds).then_some(seconds)
}

#[derive(Debug, Default)]
struct Reader {
    health: Option<(String, Quote)>,
    parts: Vec<String>,
    /// Details of the last check.
    details: usize,
    /// Which section of the status it is in.
    section: Section,
    /// Whether an empty line came since the last check.
    apart: bool,
    /// The longest that a request has been blocked, and by whom.
    blocked: Option<(f64, String, Quote)>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Below the health or a check.
    #[default]
    Checks,
    /// Below `pgs:`, `recovery:`.
    Groups,
    Other,
}

impl Reader {
    fn tell(&mut self, text: &str) {
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String = text.chars().take(MAX_PART_BYTES).collect();
        if text.starts_with("```") || !matches!(prompt::of(text.as_bytes()), Prompt::No) {
            return;
        }
        if self.parts.len() < MAX_PARTS && !text.is_empty() && !self.parts.contains(&text) {
            self.parts.push(text);
        }
    }
}

impl Reader {
    /// Keeps what says how long requests have been blocked; whether it does.
    fn waits(&mut self, text: &str, out: &Out<'_>) -> bool {
        let Some(seconds) = blocked(text) else {
            return false;
        };
        let longest = self.blocked.as_ref().map(|(longest, ..)| *longest);
        // Of equally long ones the last says which daemon it is.
        if longest.is_none_or(|longest| seconds >= longest) {
            self.blocked = Some((seconds, text.chars().take(MAX_PART_BYTES).collect(), out.here()));
        }
        true
    }

    fn wait_or_tell(&mut self, text: &str, out: &Out<'_>) {
        if !self.waits(text, out) {
            self.tell(text);
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let text = text.trim();
        if text.is_empty() {
            self.apart = true;
            return Understood::Ignorable;
        }
        let value = health_of(text);
        if value.starts_with("HEALTH_") {
            // Another report of the same cluster.
            if self.health.is_some() {
                self.end(out);
            }
            let (word, rest) = value.split_once(' ').unwrap_or((value, ""));
            self.health = Some((word.chars().take(MAX_PART_BYTES).collect(), out.here()));
            for piece in rest.split("; ") {
                self.wait_or_tell(piece, out);
            }
            self.section = Section::Checks;
            self.apart = false;
            return Understood::Evidence;
        }
        if let Some(check) = check(text) {
            self.details = 0;
            self.section = Section::Checks;
            let said = check.split_once(": ").map_or(check, |(_, said)| said);
            // The first line has the words of each check already.
            let holds = |part: &String| part.contains(said);
            let of_wait = self.blocked.as_ref().is_some_and(|(_, who, _)| holds(who));
            if !of_wait && !self.parts.iter().any(holds) {
                self.wait_or_tell(check, out);
            }
            self.apart = false;
            return Understood::Evidence;
        }
        if text.starts_with("(MUTED)") {
            self.details = DETAILS;
            return Understood::Evidence;
        }
        let key = text.split_once(':').map(|(key, value)| (key.trim(), value));
        if let Some((key, value)) = key.filter(|(key, _)| !key.contains(' ')) {
            let section = match key {
                "pgs" | "recovery" => Section::Groups,
                "cluster" | "id" | "services" | "data" | "io" | "client" | "mon" | "mgr" | "mds" | "osd"
                | "rgw" | "pools" | "objects" | "usage" | "volumes" | "rbd-mirror" | "progress" => {
                    Section::Other
                }
                _ => self.section,
            };
            if section != Section::Checks {
                self.section = section;
                if self.section == Section::Groups || key == "osd" && value.contains("down") {
                    self.tell(text);
                }
                return Understood::Evidence;
            }
        }
        if text.starts_with("pgmap") {
            self.section = Section::Groups;
            return Understood::Evidence;
        }
        if OLD.iter().any(|begin| text.starts_with(begin)) {
            self.section = Section::Other;
            return Understood::Evidence;
        }
        if self.waits(text, out) {
            return Understood::Evidence;
        }
        // Behind an empty line somebody may go on in words of his own.
        if self.apart
            && self.section == Section::Checks
            && !line.starts_with(b" ")
            && !line.starts_with(b"\t")
        {
            return Understood::No;
        }
        match self.section {
            Section::Checks if self.health.is_some() => {
                self.details += 1;
                if self.details <= DETAILS {
                    self.tell(text);
                }
            }
            Section::Groups if STATES.iter().any(|state| text.contains(state)) => self.tell(text),
            _ => {}
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some((health, quote)) = all.health else { return };
        if health == "HEALTH_OK" {
            return;
        }
        let mut said = all.parts.join("; ");
        let mut ns = None;
        if let Some((seconds, who, _)) = &all.blocked {
            // What has waited longest is what to look at.
            said = format!("{who}; {said}");
            ns = Some((seconds * 1e9) as holdup_evidence::Ns);
        }
        let quote = all.blocked.map_or(quote, |(.., quote)| quote);
        let kind = KINDS
            .iter()
            .find(|(words, _)| words.iter().any(|word| said.contains(word)))
            .map_or(StatementKind::Failed, |(_, kind)| *kind);
        out.statement(statements::one(kind, ns, quote, format!("{health}: {said}")));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn the_checks_with_their_details_and_the_groups() {
        let text = "  cluster:\n    id:     0000-1111\n    health: HEALTH_WARN\n            1 osds down\n            \
            Degraded data redundancy: 120/900 objects degraded (13.333%), 8 pgs degraded\n\n  services:\n    mon: 3 daemons, quorum a,b,c\n    \
            osd: 6 osds: 5 up, 6 in\n\n  data:\n    pools:   1 pools, 32 pgs\n    usage:   3 GiB used\n    pgs:     120/900 objects degraded (13.333%)\n             \
            24 active+clean\n             8 active+undersized+degraded\n";
        let reading = read_text("c", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "ceph-health");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(one.kind, StatementKind::Unreachable);
        assert_eq!(
            one.text,
            "HEALTH_WARN: 1 osds down; Degraded data redundancy: 120/900 objects degraded (13.333%), 8 pgs degraded; pgs: \
             120/900 objects degraded (13.333%); 8 active+undersized+degraded"
        );
    }

    #[test]
    fn details_of_a_check_and_a_cluster_that_is_well() {
        let text = "HEALTH_ERR 1 full osd(s); (muted: POOL_NO_REDUNDANCY)\n[ERR] OSD_FULL: 1 full osd(s)\n    osd.4 is full\n\
            (MUTED) [WRN] POOL_NO_REDUNDANCY: 1 pool(s) have no replicas configured\n    pool 'x' has no replicas configured\n";
        let reading = read_text("c", text.as_bytes());
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(one.kind, StatementKind::Exhausted);
        assert_eq!(
            one.text,
            "HEALTH_ERR: 1 full osd(s); (muted: POOL_NO_REDUNDANCY); osd.4 is full"
        );
        let reading = read_text(
            "c",
            b"  cluster:\n    id: 1\n    health: HEALTH_OK\n  services:\n    mon: 1 daemons\n",
        );
        assert_eq!(reading.observed.statements, []);
        assert_eq!(reading.observed.sources[0].format, "ceph-health");
    }

    #[test]
    fn what_has_been_blocked_longest_is_first_and_prose_behind_it_is_none_of_it() {
        let text = "HEALTH_WARN 1 clients failing to respond to capability release; 40 slow ops, oldest one blocked for 812 sec, osd.5 has slow ops\n\
            [WRN] MDS_SLOW_METADATA_IO: 1 MDSs report slow metadata IOs\n    mds.a(mds.0): 17 slow metadata IOs are blocked > 30 secs, \
            oldest blocked for 300 secs\n\nThe disk is well, I think.\n";
        let reading = read_text("c", text.as_bytes());
        let one = &reading.observed.statements[0];
        assert_eq!(
            (one.ns, one.text.as_str()),
            (
                Some(812_000_000_000),
                "HEALTH_WARN: 40 slow ops, oldest one blocked for 812 sec, osd.5 has slow ops; 1 clients failing to respond to \
                capability release; MDS_SLOW_METADATA_IO: 1 MDSs report slow metadata IOs"
            )
        );
    }

    #[test]
    fn a_status_of_an_older_version() {
        let text = "    cluster 0000-1111\n     health HEALTH_WARN\n            7 pgs degraded\n            2 requests are blocked > 32 sec\n     \
            monmap e1: 3 mons at {a=10.0.0.1:6789/0}\n            election epoch 8, quorum 0,1,2 a,b,c\n     osdmap e39: 6 osds: 5 up, 6 in\n      \
            pgmap v9: 64 pgs, 1 pools\n            12/900 objects degraded (1.333%)\n                  57 active+clean\n";
        let reading = read_text("c", text.as_bytes());
        assert_eq!(
            reading.observed.statements[0].text,
            "HEALTH_WARN: 7 pgs degraded; 2 requests are blocked > 32 sec; 12/900 objects degraded (1.333%)"
        );
    }

    #[test]
    fn rubbish_states_at_most_one_thing() {
        for text in [
            "HEALTH_",
            "HEALTH_WARN \n[WRN] \n:::\npgs:",
            "HEALTH_ERR\nA_B_C\n\u{0}",
        ] {
            assert!(
                read_text("c", text.as_bytes()).observed.statements.len() <= 1,
                "{text}"
            );
        }
    }
}
