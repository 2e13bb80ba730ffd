//! `/proc/pressure/*` and a cgroup's `*.pressure`: for what share of the time tasks stood still for want of something.
//!
//! In: lines `some avg10=… avg60=… avg300=… total=…`, and `full …`. Out: percent over the last five minutes, minute and ten
//! seconds, as three intervals. The lines themselves do not say of what they are: that is in the file's name, as the heading,
//! the command or the artefact's name has it, or it is not known.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{decimal, words};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Metric, Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("pressure", Family::Host, recognise)
    .about("/proc/pressure")
    .openings(&["some avg10="]);

const SECOND: Ns = 1_000_000_000;

/// What the averages are of, longest first.
const AVERAGES: [(&[u8], Ns); 3] = [
    (b"avg300=", 300 * SECOND),
    (b"avg60=", 60 * SECOND),
    (b"avg10=", 10 * SECOND),
];

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    if lines.any(|line| averages(line).is_some()) {
        Sureness::Certain
    } else {
        Sureness::No
    }
}

/// Whether all stood still, and the shares.
fn averages(line: &[u8]) -> Option<(bool, [f64; 3])> {
    let mut words = words(line);
    let full = match words.next()? {
        b"some" => false,
        b"full" => true,
        _ => return None,
    };
    let mut shares = [None; 3];
    for word in words {
        for (share, (name, _)) in shares.iter_mut().zip(AVERAGES) {
            if let Some(number) = word.strip_prefix(name) {
                *share = decimal(number).filter(|share| (0.0..=100.0).contains(share));
            }
        }
    }
    let [Some(a), Some(b), Some(c)] = shares else {
        return None;
    };
    Some((full, [a, b, c]))
}

/// What there was too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resource {
    Cpu,
    Memory,
    Io,
}

/// What a path says of it, and the cgroup; empty for the machine.
fn of_path(path: &str) -> Option<(Resource, &str)> {
    let path = path.trim_end_matches([':', '\'', '"']);
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let of = |name: &str| match name {
        "cpu" => Some(Resource::Cpu),
        "memory" => Some(Resource::Memory),
        "io" => Some(Resource::Io),
        _ => None,
    };
    if let Some(name) = file.strip_suffix(".pressure") {
        let cgroup = folder.split_once("/cgroup").map_or(folder, |(_, cgroup)| cgroup);
        let cgroup = cgroup.strip_prefix("/unified").unwrap_or(cgroup);
        return Some((of(name)?, cgroup));
    }
    folder.ends_with("pressure").then(|| Some((of(file)?, "")))?
}

#[derive(Debug, Default)]
struct Reader {
    /// What the next lines are of, once that was looked for.
    of: Option<Option<(Resource, String)>>,
    dated: bool,
}

impl Reader {
    /// By the command or heading in front of it, if it names one file, or by the artefact's name.
    fn find(out: &mut Out<'_>) -> Option<(Resource, String)> {
        let source = out.source();
        let command = source.tool.clone().unwrap_or_default();
        let mut listed = command.split_whitespace().filter_map(of_path);
        let (first, second) = (listed.next(), listed.next());
        let found = match (first, second) {
            (Some(one), None) => Some(one),
            (Some(_), Some(_)) => None,
            (None, _) => of_path(&source.name),
        };
        found.map(|(resource, cgroup)| (resource, cgroup.to_owned()))
    }
}

/// Per cent of stall below which nothing is said of it.
const MIN_STALL_PERCENT: f64 = 10.0;

impl Reader {
    /// A line of which it is not known what it is of.
    fn untold(&self, full: bool, shares: [f64; 3], out: &mut Out<'_>) {
        let windows = ["5 minutes", "minute", "10 seconds"];
        let most = shares
            .into_iter()
            .zip(windows)
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        let Some((share, window)) = most.filter(|(share, _)| *share >= MIN_STALL_PERCENT) else {
            return;
        };
        let who = if full {
            "all tasks stall at once"
        } else {
            "tasks stall"
        };
        let text = format!(
            "{who} for {share:.1} % of the last {window}; of CPU, memory or I/O: the lines do not say"
        );
        out.statement(Statement {
            share: Some(share / 100.0),
            ..statements::one(StatementKind::Took, None, out.here(), text)
        });
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        let Some((full, shares)) = averages(line) else {
            // The file's name alone, as some lists of a cgroup's files have it.
            let mut words = words(line);
            let path = words.next().filter(|_| words.next().is_none()).map(text_of);
            let named = path.as_deref().and_then(of_path);
            return match named {
                Some((resource, cgroup)) => {
                    self.of = Some(Some((resource, cgroup.to_owned())));
                    Understood::Evidence
                }
                None => Understood::No,
            };
        };
        let Some((resource, cgroup)) = self.of.get_or_insert_with(|| Reader::find(out)) else {
            if !std::mem::replace(&mut self.dated, true) {
                out.problem(
                    "of CPU, memory or I/O? The lines of a pressure file do not say, its name does (`grep -H . /proc/pressure/*`)",
                );
            }
            self.untold(full, shares, out);
            return Understood::Evidence;
        };
        let metric = match (*resource, full) {
            (Resource::Cpu, false) => Metric::PressureCpuSomePercent,
            (Resource::Cpu, true) => Metric::PressureCpuFullPercent,
            (Resource::Memory, false) => Metric::PressureMemorySomePercent,
            (Resource::Memory, true) => Metric::PressureMemoryFullPercent,
            (Resource::Io, false) => Metric::PressureIoSomePercent,
            (Resource::Io, true) => Metric::PressureIoFullPercent,
        };
        for (share, (_, over)) in shares.into_iter().zip(AVERAGES) {
            out.report(None, Some(over), false);
            out.figure(metric, cgroup, share);
        }
        Understood::Evidence
    }
}

#[cfg(test)]
mod tests {
    use super::{Resource, of_path};
    use crate::read_text;
    use holdup_evidence::observed::Metric;

    #[test]
    fn the_name_says_what_it_is_of() {
        assert_eq!(of_path("/proc/pressure/io"), Some((Resource::Io, "")));
        assert_eq!(
            of_path("/sys/fs/cgroup/system.slice/a.service/memory.pressure"),
            Some((Resource::Memory, "/system.slice/a.service"))
        );
        assert_eq!(of_path("/proc/io"), None);
    }

    const IO: &str = "some avg10=1.50 avg60=20.25 avg300=4.00 total=1591326641\nfull avg10=0.36 avg60=0.23 avg300=1.62 total=9\n";

    #[test]
    fn named_by_the_artefact_a_heading_or_a_prefix() {
        let prefixed: String = IO
            .lines()
            .map(|line| format!("/proc/pressure/io:{line}\n"))
            .collect();
        for (name, text) in [
            ("sos/proc/pressure/io", IO.to_owned()),
            ("a", format!("$ cat /proc/pressure/io\n{IO}")),
            (
                "a",
                format!("==> /proc/pressure/io <==\n{IO}\n==> /proc/pressure/cpu <==\n{IO}"),
            ),
            ("a", prefixed),
        ] {
            let reading = read_text(name, text.as_bytes());
            let series = reading.observed.of(Metric::PressureIoSomePercent).next();
            let most = series.and_then(|series| series.greatest());
            assert_eq!(most.map(|point| point.value), Some(20.25), "{text}");
            assert_eq!(most.and_then(|point| point.over), Some(60_000_000_000));
        }
    }

    #[test]
    fn named_by_a_line_of_its_own_and_indented() {
        let text = "web/memory.max     max\nweb/memory.pressure\n    some avg10=1.50 avg60=20.25 avg300=4.00 total=7\n";
        let reading = read_text("a", text.as_bytes());
        let series = reading.observed.of(Metric::PressureMemorySomePercent).next();
        assert_eq!(
            series.map(|series| series.of.as_str()),
            Some("web"),
            "{reading:?}"
        );
        let text = "    /proc/pressure/io:some avg10=1.50 avg60=20.25 avg300=4.00 total=7\n";
        let reading = read_text("a", text.as_bytes());
        assert!(
            reading
                .observed
                .of(Metric::PressureIoSomePercent)
                .next()
                .is_some(),
            "{reading:?}"
        );
    }

    #[test]
    fn without_a_name_it_is_not_assumed() {
        let reading = read_text("a", IO.as_bytes());
        assert!(reading.observed.series.is_empty());
        assert_eq!(reading.accounts[0].problems.len(), 1);
    }
}
