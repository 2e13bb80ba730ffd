//! `zpool list` and `zfs list`: how full pools are, and which data sets have no room left.
//!
//! In: headings and rows. Out: a statement for each pool that is nearly full or not in order, and for each data set without room; else that the fullest
//! pool has room.

use super::size;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("zfs-list", Family::Host, recognise)
    .about("zpool list, zfs list")
    .openings(&["NAME SIZE ALLOC FREE ", "NAME USED AVAIL REFER "]);

/// Percent of a pool from which ZFS searches for the best place of each write, which is slow: less than `metaslab_df_free_pct` (4 %) is free then.
const FULL_PERCENT: f64 = 96.0;

/// The same from which it is worth a warning.
const NEAR_PERCENT: f64 = 90.0;

/// What the column of health says of a pool that is not in order (zpoolconcepts(7)).
const TROUBLES: [&str; 5] = ["DEGRADED", "FAULTED", "UNAVAIL", "SUSPENDED", "REMOVED"];

/// Rows that are told at most.
const MAX_TOLD: usize = 20;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    Sureness::certain_if(head.lines().any(|line| columns(line).is_some()))
}

/// The columns of either heading.
fn columns(line: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let pools = words.starts_with(&["NAME", "SIZE", "ALLOC", "FREE"]) && words.contains(&"CAP");
    let sets = words.starts_with(&["NAME", "USED", "AVAIL", "REFER"]);
    (pools || sets).then(|| words.into_iter().map(str::to_owned).collect())
}

#[derive(Debug, Default)]
struct Reader {
    columns: Vec<String>,
    told: usize,
    well: Option<(f64, String, Quote)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(columns) = columns(text) {
            self.columns = columns;
            return Understood::Evidence;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if self.columns.is_empty() || words.len() != self.columns.len() {
            return Understood::No;
        }
        let cell = |name: &str| {
            let place = self.columns.iter().position(|column| column == name)?;
            words.get(place).copied()
        };
        let name = cell("NAME").unwrap_or_default();
        let judged = match cell("CAP") {
            Some(percent) => self.pool(name, percent, cell("FREE"), cell("HEALTH"), out.here()),
            None => data_set(name, cell("AVAIL"), cell("USED"), cell("MOUNTPOINT")),
        };
        if let Some((kind, share, text)) = judged {
            self.told += 1;
            if self.told <= MAX_TOLD {
                out.statement(Statement {
                    share,
                    ..statements::one(kind, None, out.here(), text)
                });
            } else {
                out.account().left_out += 1;
            }
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let Some((percent, name, quote)) = self.well.take().filter(|_| self.told == 0) {
            let text = format!("the pool {name} is the fullest of ZFS: {percent} %");
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
    }
}

type Judged = Option<(StatementKind, Option<f64>, String)>;

impl Reader {
    fn pool(
        &mut self,
        name: &str,
        cap: &str,
        free: Option<&str>,
        health: Option<&str>,
        quote: Quote,
    ) -> Judged {
        // A pool that is not there has no figures.
        if let Some(health) = health.filter(|health| TROUBLES.contains(health)) {
            let text = format!("the ZFS pool {name} is {health}");
            return Some((StatementKind::Failed, None, text));
        }
        let percent = decimal(cap.strip_suffix('%').unwrap_or(cap).as_bytes())?;
        let free = free.unwrap_or("-");
        let (kind, what) = match percent {
            FULL_PERCENT.. => (
                StatementKind::Exhausted,
                "almost no space is left, and writes search long for a place",
            ),
            NEAR_PERCENT.. => (StatementKind::Warned, "it is nearly full, and writes become slow"),
            _ => {
                if self.well.as_ref().is_none_or(|(other, ..)| percent > *other) {
                    self.well = Some((percent, name.to_owned(), quote));
                }
                return None;
            }
        };
        let text = format!("the ZFS pool {name} is {percent} % full ({free} free): {what}");
        Some((kind, Some(percent / 100.0), text))
    }
}

fn data_set(name: &str, available: Option<&str>, used: Option<&str>, mounted: Option<&str>) -> Judged {
    // A snapshot has none, and a volume that is not mounted has what it reserves.
    let none = size(available?, 1.0)? <= 0.0;
    let mounted = mounted.filter(|place| place.starts_with('/'))?;
    none.then(|| {
        let used = used.unwrap_or("-");
        let text = format!(
            "the ZFS data set {name} has no space left ({used} are used): writes to {mounted} fail, by its quota or as the pool is full"
        );
        (StatementKind::Exhausted, Some(1.0), text)
    })
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let observed = read_text("z", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "zfs-list");
        observed
            .statements
            .into_iter()
            .map(|one| (one.kind, one.text))
            .collect()
    }

    const HEADING: &str =
        "NAME    SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT\n";

    #[test]
    fn a_full_pool_one_that_is_nearly_full_and_one_with_room() {
        let row = |cap: &str, health: &str| {
            said(&format!(
                "{HEADING}tank   7.25T  7.12T   133G        -         -    71%    {cap}  1.00x    {health}  -\n"
            ))
        };
        assert_eq!(row("98%", "ONLINE")[0].0, StatementKind::Exhausted);
        assert!(
            row("98%", "ONLINE")[0]
                .1
                .starts_with("the ZFS pool tank is 98 % full (133G free)")
        );
        assert_eq!(row("91%", "ONLINE")[0].0, StatementKind::Warned);
        assert_eq!(row("60%", "ONLINE")[0].0, StatementKind::WithinNorm);
        assert_eq!(row("60%", "DEGRADED")[0].0, StatementKind::Failed);
        assert_eq!(row("60%", "whatever")[0].0, StatementKind::WithinNorm);
        assert!(!row("98%", "ONLINE")[0].1.contains("fail"));
    }

    #[test]
    fn a_pool_that_is_not_there_has_no_figures() {
        let all = said(&format!(
            "{HEADING}rpool   220G    60G   160G        -         -    12%    27%  1.00x    ONLINE  -\n\
             tank       -      -      -        -         -      -      -      -   UNAVAIL  -\n"
        ));
        assert_eq!(
            all,
            [(StatementKind::Failed, "the ZFS pool tank is UNAVAIL".to_owned())]
        );
        let exported = said(&format!(
            "{HEADING}tank       -      -      -        -         -      -      -      -   -  -\n"
        ));
        assert_eq!(exported, []);
    }

    #[test]
    fn a_data_set_without_room() {
        let all = said(
            "NAME            USED  AVAIL  REFER  MOUNTPOINT\ntank            7.0T    12G    96K  /tank\ntank/home       100G     0B   100G  /home\ntank@a     1K      -   100G  -\n",
        );
        assert_eq!(all.len(), 1);
        assert!(
            all[0]
                .1
                .starts_with("the ZFS data set tank/home has no space left"),
            "{all:?}"
        );
    }
}
