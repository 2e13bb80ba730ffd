//! `numastat`: which part of the memory was given by another node than it was wanted from.
//!
//! In: a heading of nodes, and a row for each counter. Out: a statement about the node with the largest part.
//! Source: `Documentation/admin-guide/numastat.rst` of the kernel.

use super::report::{any_line, number, rounded, text_in};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("numastat", Family::Host, recognise).about("numastat");

/// Nodes of a machine.
const MAX_NODES: usize = 1_024;

fn recognise(head: &[u8]) -> Sureness {
    // `/proc/vmstat` has the same names, of all nodes together and without a heading.
    let begins = |name: &str| any_line(head, |line| values(line, name).is_some());
    Sureness::certain_if(any_line(head, is_heading) && begins("numa_hit") && begins("numa_miss"))
}

/// `node0  node1`.
fn is_heading(line: &str) -> bool {
    let is_node = |word: &str| {
        word.strip_prefix("node")
            .is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    !line.is_empty() && line.split_whitespace().all(is_node)
}

/// The values behind a name.
fn values(line: &str, name: &str) -> Option<Vec<f64>> {
    let rest = line.strip_prefix(name)?;
    if !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let values: Vec<f64> = rest
        .split_whitespace()
        .take(MAX_NODES)
        .map_while(number)
        .collect();
    (!values.is_empty()).then_some(values)
}

#[derive(Debug, Default)]
struct Reader {
    nodes: Vec<String>,
    hit: Vec<f64>,
    miss: Option<(Vec<f64>, Quote)>,
    foreign: Vec<f64>,
    other: Vec<f64>,
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some((miss, quote)) = read.miss else { return };
        let of = |node: usize| {
            let (hit, missed) = (*read.hit.get(node)?, *miss.get(node)?);
            let all = hit + missed;
            (all > 0.0).then(|| (missed / all, missed, node))
        };
        let worst = (0..miss.len())
            .filter_map(of)
            .max_by(|one, other| one.0.total_cmp(&other.0));
        let Some((share, missed, node)) = worst else {
            return;
        };
        let name = read
            .nodes
            .get(node)
            .map_or_else(|| format!("node{node}"), Clone::clone);
        if share <= 0.0 {
            let text = format!(
                "all memory came from the node that it was wanted from (numa_miss 0 on {} nodes)",
                miss.len()
            );
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
            return;
        }
        let mut text = format!(
            "{} % of the pages that {name} gave were wanted from another node, which had none (numa_miss {missed:.0})",
            rounded(100.0 * share)
        );
        let full = read
            .foreign
            .iter()
            .enumerate()
            .max_by(|one, other| one.1.total_cmp(other.1));
        if let Some((full, count)) = full.filter(|(_, count)| **count > 0.0) {
            let full = read
                .nodes
                .get(full)
                .map_or_else(|| format!("node{full}"), Clone::clone);
            text.push_str(&format!(
                "; {full} was short of memory most often (numa_foreign {count:.0})"
            ));
        }
        if let Some(other) = read.other.get(node).filter(|other| **other > 0.0) {
            text.push_str(&format!(
                "; {other:.0} pages of {name} went to programs on CPUs of other nodes"
            ));
        }
        out.statement(statements::one(StatementKind::Took, None, quote, text));
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if is_heading(&text) {
            if self.miss.is_some() {
                self.close(out);
            }
            self.nodes = text
                .split_whitespace()
                .take(MAX_NODES)
                .map(str::to_owned)
                .collect();
            return Understood::Evidence;
        }
        if let Some(hit) = values(&text, "numa_hit") {
            if self.miss.is_some() {
                self.close(out);
            }
            self.hit = hit;
        } else if let Some(miss) = values(&text, "numa_miss") {
            self.miss = Some((miss, out.here()));
        } else if let Some(foreign) = values(&text, "numa_foreign") {
            self.foreign = foreign;
        } else if let Some(other) = values(&text, "other_node") {
            self.other = other;
        } else {
            let ignorable = ["interleave_hit", "local_node"]
                .iter()
                .any(|name| text.starts_with(name));
            return match ignorable {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    const TEXT: &str = "                           node0           node1\nnuma_hit               900000000        75000000\n\
        numa_miss                      0        25000000\nnuma_foreign            25000000               0\n\
        interleave_hit             32000           32000\nlocal_node             900000000        70000000\n\
        other_node                  1000        30000000\n";

    #[test]
    fn memory_of_another_node() {
        let reading = read_text("n", TEXT.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "numastat");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "25 % of the pages that node1 gave were wanted from another node, which had none (numa_miss 25000000); node0 was short of \
                 memory most often (numa_foreign 25000000); 30000000 pages of node1 went to programs on CPUs of other nodes"
            ]
        );
        let well = TEXT.replace("        25000000\nnuma_foreign", "               0\nnuma_foreign");
        assert_eq!(
            read_text("n", well.as_bytes()).observed.statements[0].kind,
            K::WithinNorm
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in ["node0\nnuma_hit\nnuma_miss\n", "node0\nnuma_hit 0\nnuma_miss 0\n"] {
            assert!(
                read_text("n", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
