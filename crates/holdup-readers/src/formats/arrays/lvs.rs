//! `lvs`: volumes of LVM. A thin pool or a snapshot whose room is used up stops or loses what is written.
//!
//! In: a heading and rows whose empty cells are blanks: a cell belongs to the column above it. Out: a statement for each pool or snapshot that is full,
//! nearly full or in a bad state; of healthy ones the fullest. A thin volume may be full of its own data: only what it lies in counts.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("lvs", Family::Host, recognise)
    .about("lvs")
    .openings(&["LV VG Attr "]);

/// Percent of its room from which a pool counts as full: the tool prints two digits behind the point.
const FULL_PERCENT: f64 = 99.9;

/// The same from which it is nearly full, as `thin_pool_autoextend_threshold` is set to at most in practice.
const NEAR_PERCENT: f64 = 90.0;

/// Volumes that are told at most.
const MAX_TOLD: usize = 20;

/// Where in the attributes the kind, the state and the health of a volume stand (lvs(8)).
const KIND: usize = 0;
const STATE: usize = 4;
const HEALTH: usize = 8;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    Sureness::certain_if(head.lines().any(|line| columns(line).is_some()))
}

/// The columns of a heading: names with where they begin.
fn columns(line: &str) -> Option<Vec<(String, usize)>> {
    let all = placed(line);
    let has = |name: &str| all.iter().any(|(word, _)| *word == name);
    let is = has("LV") && has("VG") && has("Attr");
    is.then(|| all.into_iter().map(|(word, at)| (word.to_owned(), at)).collect())
}

/// The words of a line with the place of each.
fn placed(line: &str) -> Vec<(&str, usize)> {
    line.split_whitespace()
        .map(|word| (word, word.as_ptr() as usize - line.as_ptr() as usize))
        .collect()
}

#[derive(Debug, Default)]
struct Reader {
    columns: Vec<(String, usize)>,
    told: usize,
    /// The fullest of those that are well.
    well: Option<(f64, String, Quote)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        if text.trim().is_empty() {
            return Understood::Ignorable;
        }
        if let Some(columns) = columns(&text) {
            self.columns = columns;
            return Understood::Evidence;
        }
        let cell = |name: &str| self.cell(&text, name);
        let (Some(name), Some(attr)) = (cell("LV"), cell("Attr")) else {
            return Understood::No;
        };
        if attr.len() <= STATE || attr.bytes().any(|byte| byte.is_ascii_digit()) {
            return Understood::No;
        }
        let group = cell("VG").unwrap_or_default();
        let name = format!("{group}/{}", name.trim_matches(['[', ']']));
        let percent = |name: &str| cell(name).and_then(|value| decimal(value.as_bytes()));
        let data = percent("Data%").or_else(|| percent("Snap%"));
        let seen = Volume {
            name,
            attr: attr.into_bytes(),
            data,
            meta: percent("Meta%"),
            size: cell("LSize").unwrap_or_default(),
        };
        self.volume(&seen, out);
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if let Some((percent, name, quote)) = self.well.take().filter(|_| self.told == 0) {
            let text = format!("{name} is the fullest pool or snapshot of LVM: {percent} %");
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
    }
}

/// What a row tells.
struct Volume {
    name: String,
    attr: Vec<u8>,
    data: Option<f64>,
    meta: Option<f64>,
    size: String,
}

impl Reader {
    /// The word below a column's name.
    fn cell(&self, line: &str, name: &str) -> Option<String> {
        let place = self.columns.iter().position(|(column, _)| column == name)?;
        let (_, begin) = self.columns.get(place)?;
        let end = self.columns.get(place + 1).map_or(usize::MAX, |(_, next)| *next);
        let words = placed(line);
        let (word, _) = words.into_iter().find(|(_, at)| (*begin..end).contains(at))?;
        Some(word.to_owned())
    }

    fn volume(&mut self, volume: &Volume, out: &mut Out<'_>) {
        if self.told >= MAX_TOLD {
            out.account().left_out += 1;
            return;
        }
        if let Some((kind, text, share)) = judged(volume) {
            self.told += 1;
            out.statement(Statement {
                share,
                ..statements::one(kind, None, out.here(), text)
            });
            return;
        }
        let of_room = matches!(volume.attr.first(), Some(b't' | b's' | b'S'));
        let parts = [volume.data, volume.meta].into_iter().flatten();
        let most = parts.max_by(f64::total_cmp).filter(|_| of_room);
        if let Some(percent) = most
            && self.well.as_ref().is_none_or(|(other, ..)| percent > *other)
        {
            self.well = Some((percent, volume.name.clone(), out.here()));
        }
    }
}

/// What is wrong with a volume.
fn judged(volume: &Volume) -> Option<(StatementKind, String, Option<f64>)> {
    let at = |place: usize| volume.attr.get(place).copied().unwrap_or(b'-');
    let Volume { name, size, .. } = volume;
    let share = |percent: f64| Some(percent / 100.0);
    let (pool, snapshot) = (at(KIND) == b't', matches!(at(KIND), b's' | b'S'));
    let data = volume.data.unwrap_or(0.0);
    if pool && (at(HEALTH) == b'D' || data >= FULL_PERCENT) {
        let text = format!(
            "the LVM thin pool {name} is full: {data} % of its data space ({size}) is used, no space is left; writes to its volumes wait or fail"
        );
        return Some((StatementKind::Exhausted, text, share(data)));
    }
    if let Some(meta) = volume.meta.filter(|meta| pool && *meta >= FULL_PERCENT) {
        let text = format!(
            "the metadata of the LVM thin pool {name} is full ({meta} %): it takes no more writes until it is repaired or extended"
        );
        return Some((StatementKind::Exhausted, text, share(meta)));
    }
    if snapshot && (matches!(at(STATE), b'I' | b'S') || data >= FULL_PERCENT) {
        let text =
            format!("the LVM snapshot {name} is full and no longer valid: {data} % of its room is used");
        return Some((StatementKind::Exhausted, text, share(data)));
    }
    let state = match at(HEALTH) {
        b'M' if pool => "takes no more writes: its metadata is read-only",
        b'F' if pool => "has failed: nothing can be read or written",
        b'p' => "lacks one of its disks (partial)",
        b'r' => "needs a refresh: one of its disks failed for a time",
        b'm' => "has places at which its copies differ",
        _ => "",
    };
    if !state.is_empty() {
        return Some((
            StatementKind::Failed,
            format!("the LVM volume {name} {state}"),
            None,
        ));
    }
    let (what, most) = match volume.meta.filter(|meta| *meta > data) {
        Some(meta) => ("metadata", meta),
        None => ("data space", data),
    };
    ((pool || snapshot) && most >= NEAR_PERCENT).then(|| {
        let kind = if pool { "thin pool" } else { "snapshot" };
        let text = format!("the LVM {kind} {name} is nearly full: {most} % of its {what} is used");
        (StatementKind::Warned, text, share(most))
    })
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(rows: &str) -> Vec<(StatementKind, String)> {
        let text = format!(
            "  LV      VG  Attr       LSize   Pool  Origin Data%  Meta%  Move Log Cpy%Sync Convert\n{rows}"
        );
        let observed = read_text("l", text.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "lvs");
        observed
            .statements
            .into_iter()
            .map(|one| (one.kind, one.text))
            .collect()
    }

    #[test]
    fn a_full_pool_stops_writes() {
        let all = said(
            "  pool0   vg0 twi-aotzD- 400.00g              100.00 31.20\n  disk-1  vg0 Vwi-aotz--  80.00g pool0        99.99\n",
        );
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].0, StatementKind::Exhausted);
        assert!(
            all[0]
                .1
                .starts_with("the LVM thin pool vg0/pool0 is full: 100 % of its data space (400.00g)"),
            "{all:?}"
        );
    }

    #[test]
    fn full_metadata_and_a_full_snapshot() {
        let all = said("  pool0   vg0 twi-aotz-- 400.00g               61.00 100.00\n");
        assert!(
            all[0]
                .1
                .starts_with("the metadata of the LVM thin pool vg0/pool0 is full"),
            "{all:?}"
        );
        let all = said("  nightly vg0 swi-I-s---   5.00g       root   100.00\n");
        assert!(
            all[0]
                .1
                .starts_with("the LVM snapshot vg0/nightly is full and no longer valid"),
            "{all:?}"
        );
    }

    #[test]
    fn pools_with_room_and_full_thin_volumes_are_well() {
        let all = said(
            "  pool0   vg0 twi-aotz-- 400.00g               45.10 12.00\n  disk-1  vg0 Vwi-aotz--  80.00g pool0        100.00\n  root    vg0 -wi-ao----  20.00g\n",
        );
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].0, StatementKind::WithinNorm);
    }
}
