//! `nvidia-smi`: the table of graphics processors.
//!
//! In: of each processor a line with its number and name, and one with temperature, memory and use. Out: a statement about the busiest one,
//! and about one whose memory is full.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("nvidia-smi", Family::Host, recognise)
    .about("nvidia-smi")
    .openings(&["| NVIDIA-SMI"]);

const NAME: usize = 60;
/// Processors that are kept.
const MAX_PROCESSORS: usize = 1_000;

/// Parts of the time and of the memory from which either is used up.
const BUSY: f64 = 0.9;
const FULL: f64 = 0.95;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    Sureness::certain_if(
        text.contains("NVIDIA-SMI") || text.contains("GPU-Util") && text.contains("Memory-Usage"),
    )
}

#[derive(Debug, Default, Clone)]
struct Processor {
    number: String,
    name: String,
    /// Parts of the time and of the memory.
    busy: f64,
    used: f64,
    memory: String,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    named: Option<(String, String)>,
    all: Vec<Processor>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..400).unwrap_or(line));
        let Some(row) = text.trim().strip_prefix('|') else {
            return Understood::Ignorable;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let memory = cells
            .iter()
            .position(|cell| cell.contains("MiB /") || cell.contains("MB /"));
        if let Some(at) = memory {
            if let (Some(cell), Some(use_cell)) = (cells.get(at), cells.get(at + 1)) {
                let number = |text: &str| {
                    let digits = text.trim().split(|char: char| !char.is_ascii_digit()).next()?;
                    digits.parse::<f64>().ok()
                };
                let busy = use_cell
                    .split('%')
                    .next()
                    .and_then(number)
                    .filter(|_| use_cell.contains('%'));
                let part = cell
                    .split_once('/')
                    .and_then(|(used, all)| Some(number(used)? / number(all)?.max(1.0)));
                let (number, name) = self.named.take().unwrap_or_default();
                if self.all.len() < MAX_PROCESSORS {
                    self.all.push(Processor {
                        number,
                        name,
                        busy: busy.unwrap_or(0.0) / 100.0,
                        used: part.unwrap_or(0.0),
                        memory: cell.split_whitespace().collect::<Vec<_>>().join(" "),
                        quote: out.here(),
                    });
                }
            }
            return Understood::Evidence;
        }
        let first = cells.first().copied().unwrap_or_default();
        let (number, rest) = first.split_once(' ').unwrap_or((first, ""));
        if cells.len() >= 3 && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            let name: Vec<&str> = rest
                .split_whitespace()
                .filter(|word| !matches!(*word, "On" | "Off"))
                .collect();
            self.named = Some((number.to_owned(), name.join(" ").chars().take(NAME).collect()));
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(&mut self.all);
        let busiest = all.iter().max_by(|one, other| {
            (one.busy, one.used)
                .partial_cmp(&(other.busy, other.used))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let Some(busiest) = busiest else { return };
        let idle = all.iter().filter(|one| one.busy == 0.0).count();
        let text = |one: &Processor| {
            format!(
                "GPU {} ({}) is busy {:.0} % of the time, {} of its memory are used",
                one.number,
                one.name,
                one.busy * 100.0,
                one.memory
            )
        };
        let others = match idle {
            0 => String::new(),
            idle => format!("; {idle} of {} are idle", all.len()),
        };
        let kind = match busiest.busy >= BUSY || busiest.used >= FULL {
            true => StatementKind::Took,
            false => StatementKind::WithinNorm,
        };
        let norm = match kind {
            StatementKind::WithinNorm => format!(" (from {:.0} % on it is used up)", BUSY * 100.0),
            _ => String::new(),
        };
        out.statement(Statement {
            share: Some(busiest.busy),
            ..statements::one(
                kind,
                None,
                busiest.quote.clone(),
                format!("{}{norm}{others}", text(busiest)),
            )
        });
        let fullest = all
            .iter()
            .filter(|one| one.used >= FULL && one.number != busiest.number);
        if let Some(fullest) = fullest.max_by(|one, other| one.used.total_cmp(&other.used)) {
            out.statement(Statement {
                share: Some(fullest.used),
                ..statements::one(StatementKind::Took, None, fullest.quote.clone(), text(fullest))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_busiest_processor_with_its_memory() {
        let text = "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |\n\
            |   0  Tesla V100-SXM2...  On   | 00000000:1A:00.0 Off |                    0 |\n\
            | N/A   81C    P0   298W / 300W |  32011MiB / 32510MiB |    100%      Default |\n\
            |   1  Tesla V100-SXM2...  On   | 00000000:1B:00.0 Off |                    0 |\n\
            | N/A   35C    P0    42W / 300W |      3MiB / 32510MiB |      0%      Default |\n";
        let reading = read_text("n", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "nvidia-smi");
        assert_eq!(
            reading.observed.statements[0].text,
            "GPU 0 (Tesla V100-SXM2...) is busy 100 % of the time, 32011MiB / 32510MiB of its memory are used; 1 of 2 are idle"
        );
        let _ = read_text("n", b"| NVIDIA-SMI |\n||||\n| MiB / | % |\n| 0 |\n");
    }
}
