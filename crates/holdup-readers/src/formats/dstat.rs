//! `dstat`: CPU, disks, network, paging and tasks, a row for each interval.
//!
//! In: a line of groups, a line of columns, rows; signs stand between groups. Out: series. The first row below a first heading is the
//! average since boot. Numbers have a unit behind them, and what is nothing is 0.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use holdup_evidence::observed::Metric;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("dstat", Family::Host, recognise)
    .about("dstat")
    .openings(&[
        "----total-cpu-usage----",
        "--total-cpu-usage--",
        "-----total-usage----",
    ]);

/// Columns that are read.
const COLUMNS: usize = 200;

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let mut lines = head.lines();
    let found =
        lines.any(|line| is_groups(line) && (line.contains("cpu-usage") || line.contains("total-usage")));
    Sureness::certain_if(found || head.lines().any(|line| line.contains("usr sys idl wai")))
}

/// `----total-cpu-usage---- -dsk/total- ---paging--`.
fn is_groups(line: &str) -> bool {
    let mut words = line.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| word.starts_with('-') && word.ends_with('-') && word.len() > 3)
}

/// What a column measures.
#[derive(Debug, Clone)]
enum Column {
    /// As it is.
    Plain(Metric),
    /// Bytes a second of a thing, as KiB.
    Bytes(Metric, String),
    Other,
}

fn column(group: &str, name: &str) -> Column {
    use Metric as M;
    let cpu = |metric| Column::Plain(metric);
    let disk = group.strip_prefix("dsk/");
    let net = group.strip_prefix("net/");
    match (name, group) {
        ("usr", _) => cpu(M::CpuUserPercent),
        ("sys", _) => cpu(M::CpuSystemPercent),
        ("idl", _) => cpu(M::CpuIdlePercent),
        ("wai", _) => cpu(M::CpuIowaitPercent),
        ("stl", _) => cpu(M::CpuStealPercent),
        ("hiq", _) => cpu(M::CpuIrqPercent),
        ("siq", _) => cpu(M::CpuSoftirqPercent),
        ("run", "procs") => Column::Plain(M::ProcessesRunnable),
        ("blk", "procs") => Column::Plain(M::ProcessesBlocked),
        ("1m", "load-avg") => Column::Plain(M::LoadAverage1),
        ("5m", "load-avg") => Column::Plain(M::LoadAverage5),
        ("15m", "load-avg") => Column::Plain(M::LoadAverage15),
        ("int", _) => Column::Plain(M::InterruptsPerSecond),
        ("csw", _) => Column::Plain(M::ContextSwitchesPerSecond),
        ("in", "paging") => Column::Bytes(M::SwapInKibPerSecond, String::new()),
        ("out", "paging") => Column::Bytes(M::SwapOutKibPerSecond, String::new()),
        ("read", _) if disk == Some("total") => Column::Bytes(M::BlocksInPerSecond, String::new()),
        ("writ", _) if disk == Some("total") => Column::Bytes(M::BlocksOutPerSecond, String::new()),
        ("read", _) if let Some(disk) = disk => Column::Bytes(M::DiskReadKibPerSecond, disk.to_owned()),
        ("writ", _) if let Some(disk) = disk => Column::Bytes(M::DiskWriteKibPerSecond, disk.to_owned()),
        ("recv", _) if let Some(net) = net.filter(|net| *net != "total") => {
            Column::Bytes(M::NetworkReceivedKibPerSecond, net.to_owned())
        }
        ("send", _) if let Some(net) = net.filter(|net| *net != "total") => {
            Column::Bytes(M::NetworkSentKibPerSecond, net.to_owned())
        }
        _ => Column::Other,
    }
}

/// `11M`, `4412B`, `0`, `1.5`, in units of one.
fn amount(word: &str) -> Option<f64> {
    let end = word
        .find(|char: char| !(char.is_ascii_digit() || matches!(char, '.' | ',')))
        .unwrap_or(word.len());
    let (number, unit) = word.split_at_checked(end)?;
    let factor = match unit {
        "" | "B" | "b" => 1.0,
        "k" | "K" => 1024.0,
        "M" => 1024.0 * 1024.0,
        "G" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(decimal(number.as_bytes())? * factor)
}

#[derive(Debug, Default)]
struct Reader {
    groups: Vec<String>,
    columns: Vec<Column>,
    rows: u64,
}

/// Signs that stand between groups.
fn is_sign(char: char) -> bool {
    matches!(char, '|' | ':' | '>' | '<' | '│')
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        if text.trim().is_empty() {
            return Understood::Ignorable;
        }
        if is_groups(&text) {
            let name = |word: &str| word.trim_matches('-').to_owned();
            self.groups = text.split_whitespace().take(COLUMNS).map(name).collect();
            return Understood::Evidence;
        }
        let words = || {
            text.split(|char: char| char.is_whitespace() || is_sign(char))
                .filter(|word| !word.is_empty())
        };
        if !text.contains(|char: char| char.is_ascii_digit()) || text.contains("usr sys idl") {
            if !text.contains("usr") && !text.contains("read") && !text.contains("csw") {
                return Understood::No;
            }
            let parts = text.split(['|', '│']);
            let named = parts.enumerate().flat_map(|(at, part)| {
                let group = self.groups.get(at).map_or("", String::as_str);
                let words = part.split_whitespace();
                words.map(|name| column(group, name)).collect::<Vec<_>>()
            });
            self.columns = named.take(COLUMNS).collect();
            return Understood::Evidence;
        }
        // Of times with colons nothing is known: a row that has them has more words than columns.
        let values: Vec<Option<f64>> = words().take(COLUMNS).map(amount).collect();
        if values.len() != self.columns.len() || values.is_empty() {
            return Understood::No;
        }
        self.rows += 1;
        out.report(None, None, self.rows == 1);
        for (column, value) in self.columns.iter().zip(values) {
            let Some(value) = value else { continue };
            match column {
                Column::Plain(metric) => out.figure(*metric, "", value),
                Column::Bytes(metric, of) => out.figure(*metric, of, value / 1024.0),
                Column::Other => {}
            }
        }
        Understood::Evidence
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::Metric;

    const TEXT: &str = "----total-cpu-usage---- -dsk/total- -net/total- ---paging-- ---system--\n\
        usr sys idl wai hiq siq| read  writ| recv  send|  in   out | int   csw \n\
        \x20 3   2  90   5   0   0|  11M  212k|   0     0 |   0     0 | 812  1644 \n\
        \x20 2   2   5  91   0   0|  12M  180k|4412B 1822B|   0    2048k| 901  1709 \n";

    #[test]
    fn rows_are_figures_and_the_first_is_since_boot() {
        let reading = read_text("d", TEXT.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "dstat");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let most = |metric| reading.greatest(metric);
        assert_eq!(most(Metric::CpuIowaitPercent), Some(91.0));
        assert_eq!(most(Metric::SwapOutKibPerSecond), Some(2048.0));
        assert_eq!(most(Metric::BlocksInPerSecond), Some(12_288.0));
        assert_eq!(most(Metric::ContextSwitchesPerSecond), Some(1709.0));
    }

    #[test]
    fn rubbish_is_survived() {
        let text = format!("{TEXT}missed 2 ticks\n1 2 3\n||||\n99999999999999999999G\n");
        assert!(read_text("d", text.as_bytes()).accounts[0].not_understood >= 2);
    }
}
