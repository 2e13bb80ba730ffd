//! `atop` and `atop -r`: lines of a resource each, with signs between the figures.
//!
//! In: `CPU | sys 20% | …`, `DSK | sda | busy 98% | …`. Out: series, a report for each heading. Figures of `CPU` are of one CPU each: all
//! of them together are as many hundreds as there are.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use holdup_evidence::observed::Metric;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("atop", Family::Host, recognise)
    .about("atop")
    .openings(&["ATOP - "]);

/// Figures of a line.
const FIGURES: usize = 24;

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let kinds = text.lines().filter(|line| line_of(line).is_some()).count();
    Sureness::certain_if(kinds >= 2 || text.lines().any(|line| line.trim_start().starts_with("ATOP - ")))
}

/// The kind of a line and its figures.
fn line_of(line: &str) -> Option<(&str, Vec<&str>)> {
    let mut cells = line.trim().split('|').map(str::trim);
    let kind = cells.next()?;
    let known = matches!(
        kind,
        "PRC" | "CPU" | "CPL" | "MEM" | "SWP" | "PAG" | "DSK" | "LVM" | "MDD" | "NET" | "cpu"
    );
    let cells: Vec<&str> = cells.take(FIGURES).filter(|cell| !cell.is_empty()).collect();
    (known && cells.len() >= 2).then_some((kind, cells))
}

/// The figure of a name: `busy     98%`.
fn figure<'a>(cells: &[&'a str], name: &str) -> Option<&'a str> {
    let cell = cells
        .iter()
        .find_map(|cell| cell.strip_prefix(name)?.strip_prefix(' '))?;
    Some(cell.trim())
}

/// `98%`, `1.83 ms`, `22.12`.
fn number(text: &str) -> Option<f64> {
    let number = text.split([' ', '%']).next()?;
    decimal(number.as_bytes()).filter(|number| *number >= 0.0)
}

/// `412.1M` in KiB.
fn kib(text: &str) -> Option<f64> {
    let last = text.chars().next_back()?;
    let factor = match last {
        'K' => 1.0,
        'M' => 1024.0,
        'G' => 1024.0 * 1024.0,
        'T' => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(decimal(text.trim_end_matches(last).as_bytes())? * factor)
}

#[derive(Debug, Default)]
struct Reader {
    begun: bool,
    reports: u64,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..600).unwrap_or(line));
        if text.trim_start().starts_with("ATOP - ") {
            self.reports += 1;
            // The first of several is since boot, and says so; of one alone it says how long it covers.
            out.report(None, None, text.contains("since boot"));
            self.begun = true;
            return Understood::Evidence;
        }
        let Some((kind, cells)) = line_of(&text) else {
            return Understood::Ignorable;
        };
        if !self.begun {
            out.report(None, None, false);
            self.begun = true;
        }
        let look_up = |name: &str| figure(&cells, name).and_then(number);
        let size = |name: &str| figure(&cells, name).and_then(kib);
        let mut put = |metric, of: &str, value: Option<f64>| {
            if let Some(value) = value {
                out.figure(metric, of, value);
            }
        };
        use Metric as M;
        match kind {
            "CPU" => {
                let parts = ["sys", "user", "irq", "idle", "wait", "steal"].map(look_up);
                let sum: f64 = parts.iter().flatten().sum();
                // Rounded, and guests are counted twice.
                let cpus = (sum / 100.0).round().max(1.0);
                let metrics = [
                    M::CpuSystemPercent,
                    M::CpuUserPercent,
                    M::CpuIrqPercent,
                    M::CpuIdlePercent,
                    M::CpuIowaitPercent,
                    M::CpuStealPercent,
                ];
                for (metric, part) in metrics.into_iter().zip(parts) {
                    put(metric, "", part.map(|part| (part / cpus).min(100.0)));
                }
            }
            "CPL" => {
                put(M::LoadAverage1, "", look_up("avg1"));
                put(M::LoadAverage5, "", look_up("avg5"));
                put(M::LoadAverage15, "", look_up("avg15"));
            }
            "PRC" => put(M::ProcessesZombie, "", look_up("#zombie")),
            "MEM" => {
                put(M::MemoryTotalKib, "", size("tot"));
                put(M::MemoryFreeKib, "", size("free"));
                put(M::MemoryCachedKib, "", size("cache"));
                put(M::MemoryBuffersKib, "", size("buff"));
            }
            "SWP" => {
                let (all, free) = (size("tot"), size("free"));
                put(M::SwapTotalKib, "", all);
                put(
                    M::SwapUsedKib,
                    "",
                    all.zip(free).map(|(all, free)| (all - free).max(0.0)),
                );
            }
            "DSK" | "LVM" | "MDD" => {
                let Some(name) = cells.first() else {
                    return Understood::Ignorable;
                };
                put(M::DiskUtilPercent, name, look_up("busy"));
                put(
                    M::DiskWaitMs,
                    name,
                    figure(&cells, "avio")
                        .filter(|text| text.ends_with("ms"))
                        .and_then(number),
                );
            }
            _ => return Understood::Ignorable,
        }
        Understood::Evidence
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::Metric;

    #[test]
    fn lines_of_resources_are_figures() {
        let text = "ATOP - db1  2021/05/11  10:10:10  ------  10s elapsed\nPRC | sys    2.12s | user   1.88s | #proc    312 | #zombie    0 |\n\
            CPU | sys      20% | user     18% | irq       1% | idle     12% | wait    349% |\nMEM | tot    16.0G | free  412.1M | cache   9.1G |\n\
            DSK |          sda | busy     98% | read    1221 | write   4122 | avio 1.83 ms |\n";
        let reading = read_text("a", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "atop");
        let most = |metric| reading.greatest(metric);
        assert_eq!(most(Metric::CpuIowaitPercent), Some(87.25));
        assert_eq!(most(Metric::DiskUtilPercent), Some(98.0));
        assert_eq!(most(Metric::DiskWaitMs), Some(1.83));
        assert_eq!(most(Metric::MemoryTotalKib), Some(16_777_216.0));
        let _ = read_text(
            "a",
            b"CPU |||\nCPU | sys x% | user |\nDSK | a | b\nMEM | tot G | free K |\n",
        );
    }
}
