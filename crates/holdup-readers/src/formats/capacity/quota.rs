//! `quota` and `repquota`: users who have used up what they may.
//!
//! In: headings and rows, of one user by file system, or of one file system by user. Out: a statement for each user at a limit, and for what; a user
//! above the soft limit alone has a time of grace.

use super::size;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::StatementKind;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("quota", Family::Host, recognise)
    .about("quota, repquota")
    .openings(&["Disk quotas for ", "*** Report for "]);

/// Bytes that a count of blocks is in.
const BLOCK: f64 = 1024.0;

/// Users that are told at most, and bytes of a name.
const MAX_TOLD: usize = 20;
const MAX_BYTES: usize = 80;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    Sureness::certain_if(head.lines().any(|line| {
        let line = line.trim();
        line.starts_with("Disk quotas for ")
            || line.starts_with("*** Report for ") && line.contains("quotas on device")
    }))
}

#[derive(Debug, Default)]
struct Reader {
    /// The user, or the file system, of the rows below.
    of: String,
    /// Whether that is the file system, and each row a user's.
    by_user: bool,
    /// A name that was too long for its column: its figures stand in the next line.
    wrapped: Option<String>,
    told: usize,
}

/// What one row says of blocks or of files.
struct Use<'a> {
    used: &'a str,
    soft: &'a str,
    hard: &'a str,
    grace: Option<&'a str>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(rest) = text.strip_prefix("Disk quotas for ") {
            let name = rest.split(" (").next().unwrap_or(rest).trim_end_matches(':');
            self.of = name.chars().take(MAX_BYTES).collect();
            self.by_user = false;
            self.wrapped = None;
            return Understood::Evidence;
        }
        if let Some((_, device)) = text.split_once("quotas on device ") {
            self.of = device.trim().chars().take(MAX_BYTES).collect();
            self.by_user = true;
            self.wrapped = None;
            return Understood::Evidence;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if let (&[name], false, false) = (words.as_slice(), self.by_user, self.of.is_empty()) {
            self.wrapped = Some(name.chars().take(MAX_BYTES).collect());
            return Understood::Evidence;
        }
        let wrapped = self.wrapped.take();
        let (who, cells) = match (&wrapped, words.split_first()) {
            (Some(name), _) => (name.as_str(), words.as_slice()),
            (None, Some((who, cells))) => (*who, cells),
            (None, None) => return Understood::No,
        };
        // `+-`: over the limit of blocks, and not of files.
        let cells = match cells.split_first() {
            Some((flags, rest)) if flags.len() == 2 && flags.bytes().all(|byte| b"+-".contains(&byte)) => {
                rest
            }
            _ => cells,
        };
        let (Some((blocks, rest)), false) = (taken(cells), self.of.is_empty()) else {
            return Understood::Ignorable;
        };
        let what = match self.by_user {
            true => format!("user {who} on {}", self.of),
            false => format!("{} on {who}", self.of),
        };
        for (usage, unit, things) in [
            (Some(blocks), BLOCK, Things::Space),
            (taken(rest).map(|(files, _)| files), 1.0, Things::Files),
        ] {
            if let Some((kind, said)) = usage.and_then(|usage| usage.judged(unit, things)) {
                self.told += 1;
                if self.told <= MAX_TOLD {
                    out.statement(statements::one(kind, None, out.here(), format!("{what} {said}")));
                } else {
                    out.account().left_out += 1;
                }
            }
        }
        Understood::Evidence
    }
}

/// Used, soft and hard limit at the beginning, with the grace where there is one; and what follows.
fn taken<'a>(cells: &'a [&'a str]) -> Option<(Use<'a>, &'a [&'a str])> {
    let &[used, soft, hard, ..] = cells else {
        return None;
    };
    let used = used.trim_end_matches('*');
    [used, soft, hard]
        .iter()
        .all(|cell| size(cell, 1.0).is_some())
        .then_some(())?;
    let rest = cells.get(3..)?;
    let grace = rest.first().copied().filter(|word| size(word, 1.0).is_none());
    let rest = if grace.is_some() { rest.get(1..)? } else { rest };
    Some((
        Use {
            used,
            soft,
            hard,
            grace,
        },
        rest,
    ))
}

/// What a quota limits.
#[derive(Debug, Clone, Copy)]
enum Things {
    Space,
    Files,
}

impl Things {
    fn are(self) -> &'static str {
        match self {
            Things::Space => "space",
            Things::Files => "files",
        }
    }

    /// What no longer works at the limit.
    fn ends(self) -> &'static str {
        match self {
            Things::Space => "writes fail (EDQUOT)",
            Things::Files => "no file can be created (EDQUOT)",
        }
    }

    fn goes_on(self) -> &'static str {
        match self {
            Things::Space => "writes go on",
            Things::Files => "files can be created",
        }
    }
}

impl Use<'_> {
    fn judged(&self, unit: f64, things: Things) -> Option<(StatementKind, String)> {
        let (are, ends) = (things.are(), things.ends());
        let of = |text: &str| size(text, unit).unwrap_or(0.0);
        let (used, soft, hard) = (of(self.used), of(self.soft), of(self.hard));
        if hard > 0.0 && used >= hard {
            let said = format!(
                "is at the hard limit of the quota for {are} ({} of {}): {ends}",
                self.used, self.hard
            );
            return Some((StatementKind::Exhausted, said));
        }
        if soft <= 0.0 || used <= soft {
            return None;
        }
        let over = format!("is over the quota for {are} ({} of {})", self.used, self.soft);
        Some(match self.grace {
            Some("none") => (
                StatementKind::Exhausted,
                format!("{over} and its time of grace is over: {ends}"),
            ),
            Some(grace) => (
                StatementKind::Warned,
                format!("{over}, {} for {grace} more", things.goes_on()),
            ),
            None => (StatementKind::Warned, over),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let observed = read_text("q", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "quota");
        observed
            .statements
            .into_iter()
            .map(|one| (one.kind, one.text))
            .collect()
    }

    const QUOTA: &str = "Disk quotas for user alice (uid 1001):\n     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n";

    #[test]
    fn a_user_at_the_hard_limit() {
        let all = said(&format!(
            "{QUOTA}      /dev/sdb1 5242880* 5000000 5242880   6days   14321       0       0\n"
        ));
        assert_eq!(
            all,
            [(
                StatementKind::Exhausted,
                "user alice on /dev/sdb1 is at the hard limit of the quota for space (5242880 of 5242880): writes fail (EDQUOT)".to_owned()
            )]
        );
    }

    #[test]
    fn of_all_users_those_over_a_limit() {
        let all = said(
            "*** Report for user quotas on device /dev/sdb1\nBlock grace time: 7days; Inode grace time: 7days\n                        Block limits    \
             File limits\nUser            used    soft    hard  grace    used  soft  hard  grace\n----------\nroot      --   20480       0       0    \
             5     0     0\nbob       +- 5100000 5000000 5242880  6days  14321     0     0\ncarol     -+     100       0       0            900   800  \
             1000  none\n",
        );
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(all[0].0, StatementKind::Warned);
        assert!(all[0].1.contains("user bob on /dev/sdb1 is over the quota for space (5100000 of 5000000), writes go on for 6days more"), "{all:?}");
        assert_eq!(all[1].0, StatementKind::Exhausted);
        assert!(all[1].1.ends_with("no file can be created (EDQUOT)"), "{all:?}");
    }

    #[test]
    fn a_long_name_stands_above_its_figures() {
        let row = |used: &str| {
            said(&format!(
                "{QUOTA}nfs1.example.com:/export/home\n                 {used}  5000000 5242880           14321       0       0\n"
            ))
        };
        assert_eq!(row("120000"), []);
        let all = row("5242880*");
        assert!(
            all[0]
                .1
                .starts_with("user alice on nfs1.example.com:/export/home is at the hard limit"),
            "{all:?}"
        );
    }

    #[test]
    fn users_with_room_are_silent() {
        assert!(
            said(&format!(
                "{QUOTA}      /dev/sdb1  120000  5000000 5242880           14321       0       0\n"
            ))
            .is_empty()
        );
    }
}
