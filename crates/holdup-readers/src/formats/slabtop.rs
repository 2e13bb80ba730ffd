//! `slabtop -o` and `/proc/slabinfo`: memory of the kernel by what it is for.
//!
//! In: totals, a heading, rows. Out: a statement about the largest cache. How much of it can be given back is not known.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::bytes;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("slabtop", Family::Host, recognise)
    .about("slabtop, /proc/slabinfo")
    .openings(&["Active / Total Objects", "slabinfo - version"]);

const NAME: usize = 60;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let known = |line: &str| {
        line.starts_with("Active / Total Objects")
            || line.starts_with("slabinfo - version")
            || is_heading(line)
    };
    Sureness::certain_if(
        text.lines().any(|line| known(line.trim_start()))
            || text.lines().filter(|line| is_row(line)).take(MIN_ROWS).count() == MIN_ROWS,
    )
}

/// Rows that are no chance, without a heading.
const MIN_ROWS: usize = 2;

/// A row without doubt: `OBJS ACTIVE 99% 0.19K SLABS PER-SLAB 804488K NAME`, or of `/proc/slabinfo`.
fn is_row(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(20).collect();
    let whole = |word: &str| crate::numbers::whole(word.as_bytes()).is_some();
    match words.as_slice() {
        [objects, active, used, size, slabs, each, all, _] => {
            let kib = |word: &str| {
                word.strip_suffix('K')
                    .is_some_and(|kib| decimal(kib.as_bytes()).is_some())
            };
            let percent = used.strip_suffix('%').is_some_and(whole);
            [objects, active, slabs, each].iter().all(|word| whole(word)) && percent && kib(size) && kib(all)
        }
        [_, active, objects, size, ..] if words.contains(&":") => {
            [active, objects, size].iter().all(|word| whole(word))
                && words.contains(&"tunables")
                && words.contains(&"slabdata")
        }
        _ => false,
    }
}

fn is_heading(line: &str) -> bool {
    line.contains("OBJ/SLAB") && line.contains("CACHE SIZE")
        || line.contains("<active_objs>") && line.contains("<objsize>")
}

#[derive(Debug, Default)]
struct Reader {
    /// KiB.
    sum: f64,
    largest: Option<(f64, f64, String, Quote)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..400).unwrap_or(line));
        let words: Vec<&str> = text.split_whitespace().take(20).collect();
        if words.is_empty() || is_heading(&text) || text.trim_start().starts_with(['#', 'A', 'M']) {
            return Understood::Ignorable;
        }
        let number = |word: &str| decimal(word.as_bytes()).filter(|number| *number >= 0.0);
        let row = match words.as_slice() {
            // OBJS ACTIVE USE SIZE SLABS PER-SLAB CACHE-SIZE NAME
            [objects, _, _, _, _, _, size, name] => {
                let kib = size.strip_suffix('K').and_then(number);
                number(objects)
                    .zip(kib)
                    .map(|(objects, kib)| (objects, kib, *name))
            }
            // name, active, all, bytes of one
            [name, _, objects, size, _, _, ":", ..] => {
                let all = number(objects).zip(number(size));
                all.map(|(objects, size)| (objects, objects * size / 1024.0, *name))
            }
            _ => None,
        };
        let Some((objects, kib, name)) = row else {
            return Understood::No;
        };
        self.sum += kib;
        if self.largest.as_ref().is_none_or(|(largest, ..)| kib > *largest) {
            let name = name.trim_matches('*');
            self.largest = Some((kib, objects, name.chars().take(NAME).collect(), out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let Some((kib, objects, name, quote)) = self.largest.take() else {
            return;
        };
        let size = |kib: f64| bytes((kib * 1024.0) as u64);
        let text = format!(
            "the kernel's {name} take {} in {objects:.0} objects, the most of {} in all caches here",
            size(kib),
            size(self.sum)
        );
        out.statement(Statement {
            share: Some(kib / self.sum.max(1.0)),
            ..statements::one(StatementKind::Took, None, quote, text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_largest_cache_of_either_form() {
        let text = " Active / Total Objects (% used)    : 2122 / 2211 (96.0%)\n\n  OBJS ACTIVE  USE OBJ SIZE  SLABS OBJ/SLAB CACHE SIZE NAME\n\
            201122 200112  99%    0.19K 4788621       42  38308968K dentry\n 881221  812211  92%    0.57K  31472       28    503552K radix_tree_node\n";
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "slabtop");
        assert_eq!(
            reading.observed.statements[0].text,
            "the kernel's dentry take 36.5 GiB in 201122 objects, the most of 37.0 GiB in all caches here"
        );
        let excerpt = "# name <active_objs> <num_objs> <objsize>\nids 9 9 344 23 2 : tunables 0 0 0 : slabdata 6 6 0\n\
            **infos 4147038 4147038 176 23 1 : tunables 0 0 0 : slabdata 180306 180306 0**\n";
        let said = read_text("s", excerpt.as_bytes()).observed.statements;
        assert!(
            said[0]
                .text
                .starts_with("the kernel's infos take 696 MiB in 4147038 objects"),
            "{said:?}"
        );
        let rows = "201122 200112  99%    0.19K 4788621       42  38308968K dentry\n 881221  812211  92%    0.57K  31472       28    503552K \
            radix_tree_node\n";
        assert!(
            read_text("s", rows.as_bytes()).observed.statements[0]
                .text
                .starts_with("the kernel's dentry take 36.5 GiB")
        );
        let other = "1 2 99% 3K 4 5 6M dentry\n1 2 99% 3K 4 5 6M dentry\n";
        assert_ne!(
            read_text("s", other.as_bytes()).observed.sources[0].format,
            "slabtop"
        );
        let text = "slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize>\ndentry 100 2048 192 21 1 : tunables 0 0 0 : slabdata 5 5 0\n";
        assert_eq!(
            read_text("s", text.as_bytes()).observed.statements[0].text,
            "the kernel's dentry take 384 KiB in 2048 objects, the most of 384 KiB in all caches here"
        );
    }
}
