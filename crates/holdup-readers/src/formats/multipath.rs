//! `multipath -ll`: which paths to a disk have failed, and whether requests wait because none is left.
//!
//! In: for each disk a line with its name, one with its size and features, and lines of groups of paths and of paths. Out: a statement for
//! each disk with failed paths; else that all paths are up. Source: multipath(8), multipath.conf(5) (`no_path_retry`, `queue_if_no_path`).

use super::report::{any_line, name_of, text_in};
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("multipath", Family::Host, recognise).about("multipath -ll");

/// Disks that are told, and names of paths of one.
const MAX_DISKS: usize = 500;
const MAX_NAMED: usize = 8;

/// What lines of a tree have before their text.
const TREE: [char; 8] = ['|', '`', '-', '+', '_', ' ', '\\', '='];

fn recognise(head: &[u8]) -> Sureness {
    let sizes = any_line(head, is_features);
    let paths = any_line(head, |line| Path::of(line).is_some());
    Sureness::certain_if(sizes && paths)
}

/// `size=100G features='1 queue_if_no_path' hwhandler='1 alua' wp=rw`, and with blanks or brackets as older versions have it.
fn is_features(line: &str) -> bool {
    line.contains("features=") && line.contains("hwhandler=")
}

/// A path to a disk.
#[derive(Debug, PartialEq)]
struct Path {
    device: String,
    has_failed: bool,
    /// What it says of the path's state.
    state: String,
}

impl Path {
    /// `| `- 8:0:0:1 sdd 8:48 active ready running`, `\_ 3:0:0:0 sdb 8:16 [active][ready]`.
    fn of(line: &str) -> Option<Path> {
        let bare = line.trim_start_matches(TREE).replace(['[', ']'], " ");
        let words: Vec<&str> = bare.split_whitespace().take(8).collect();
        let [address, device, numbers, states @ ..] = words.as_slice() else {
            return None;
        };
        let parts = |text: &str, many: usize| {
            let parts = text.split(':');
            parts.clone().count() == many
                && parts
                    .clone()
                    .all(|part| part.parse::<u64>().is_ok() || part == "#")
        };
        // Paths to disks that are gone have signs for their numbers.
        if !parts(address, 4) || !(parts(numbers, 2) || *numbers == "-") || states.is_empty() {
            return None;
        }
        let bad = ["failed", "faulty", "offline", "shaky", "undef", "i/o", "delayed"];
        Some(Path {
            device: name_of(device),
            has_failed: states.iter().any(|state| bad.contains(state)),
            state: states.join(" "),
        })
    }
}

/// A disk and its paths.
#[derive(Debug, Default)]
struct Disk {
    name: String,
    queues: bool,
    paths: u64,
    failed: Vec<String>,
    failed_count: u64,
    state: String,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    /// The last line that is none of the others: a disk's name stands above its features.
    heading: String,
    disk: Option<Disk>,
    disks: u64,
    paths: u64,
    told: Vec<Statement>,
    quote: Option<Quote>,
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(disk) = self.disk.take() else { return };
        self.disks += 1;
        self.paths += disk.paths;
        if disk.failed_count == 0 {
            return;
        }
        let left = disk.paths - disk.failed_count;
        let mut text = format!(
            "{} of {} paths to {} have failed ({}): {}",
            disk.failed_count,
            disk.paths,
            disk.name,
            disk.state,
            disk.failed.join(", ")
        );
        let kind = match (left, disk.queues) {
            (0, true) => {
                text.push_str("; none is left, and requests wait until one comes back (queue_if_no_path)");
                StatementKind::Stalled
            }
            (0, false) => {
                text.push_str("; none is left, and requests fail");
                StatementKind::Unreachable
            }
            _ => StatementKind::Failed,
        };
        match self.told.len() < MAX_DISKS {
            true => self.told.push(statements::one(kind, None, disk.quote, text)),
            false => out.account().left_out += 1,
        }
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if is_features(&text) {
            self.close(out);
            let name = self.heading.split(" dm-").next().unwrap_or_default();
            self.disk = Some(Disk {
                name: name_of(name),
                queues: text.contains("queue_if_no_path"),
                ..Disk::default()
            });
            self.quote.get_or_insert_with(|| out.here());
            return Understood::Evidence;
        }
        if let Some(path) = Path::of(&text) {
            let here = out.here();
            let Some(disk) = &mut self.disk else {
                return Understood::No;
            };
            disk.paths += 1;
            if path.has_failed {
                disk.failed_count += 1;
                if disk.failed.is_empty() {
                    disk.quote = here;
                    disk.state = path.state;
                }
                if disk.failed.len() < MAX_NAMED {
                    disk.failed.push(path.device);
                }
            }
            return Understood::Evidence;
        }
        let group = text.contains("policy=") || text.contains("round-robin") || text.contains("prio=");
        if !group {
            self.heading = text;
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
        let read = std::mem::take(self);
        let Some(quote) = read.quote else { return };
        if read.told.is_empty() && read.paths > 0 {
            let text = format!("all {} paths to {} disks are up", read.paths, read.disks);
            out.statement(statements::one(StatementKind::WithinNorm, None, quote, text));
        }
        read.told.into_iter().for_each(|one| out.statement(one));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    const SOME: &str = "mpatha (360a98000324669436c2b45666c567942) dm-2 NETAPP,LUN\n\
        size=100G features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n\
        |-+- policy='service-time 0' prio=50 status=active\n\
        | |- 7:0:0:1 sdc 8:32 failed faulty running\n\
        | `- 8:0:0:1 sdd 8:48 active ready running\n\
        `-+- policy='service-time 0' prio=10 status=enabled\n\
        \x20 `- 7:0:1:1 sde 8:64 failed faulty running\n";

    #[test]
    fn paths_that_have_failed() {
        let reading = read_text("m", SOME.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "multipath");
        assert_eq!(
            reading.texts(),
            [
                "2 of 3 paths to mpatha (360a98000324669436c2b45666c567942) have failed (failed faulty running): sdc, sde"
            ]
        );
        let all = SOME.replace("active ready", "failed faulty");
        let reading = read_text("m", all.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, K::Stalled);
        assert!(reading.texts()[0].ends_with("requests wait until one comes back (queue_if_no_path)"));
        let well = SOME.replace("failed faulty", "active ready");
        let reading = read_text("m", well.as_bytes());
        assert_eq!(reading.texts(), ["all 3 paths to 1 disks are up"]);
    }

    #[test]
    fn as_older_versions_print_it() {
        let text = "mpath1 (3600d0230003228bc000339414edb8100) dm-3 SUN,LCSM100\n[size=10G][features=0][hwhandler=0]\n\
            \\_ round-robin 0 [prio=6][active]\n \\_ 5:0:0:6 sdb 8:16 [active][ready]\n\\_ round-robin 0 [prio=1][enabled]\n \\_ 3:0:0:6 sdc 8:32 [failed][faulty]\n";
        assert_eq!(
            read_text("m", text.as_bytes()).texts(),
            ["1 of 2 paths to mpath1 (3600d0230003228bc000339414edb8100) have failed (failed faulty): sdc"]
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "features= hwhandler=\n1:2:3 sda 1:2 failed\n",
            "1:2:3:4 sda 8:0 failed\n",
            "features= hwhandler=\n1:2:3:4 a b\n",
        ] {
            let reading = read_text("m", text.as_bytes());
            assert_ne!(reading.observed.sources[0].format, "multipath", "{text}");
        }
    }
}
