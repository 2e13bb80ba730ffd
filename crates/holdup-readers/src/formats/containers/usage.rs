//! `docker stats`, `podman stats`, `crictl stats` and `kubectl top`: how much CPU time and memory containers, pods and nodes use.
//!
//! In: a heading, and rows of which the figures tell what they are, so that a copy needs no columns. Out: who has used up its memory or a
//! node's CPUs, else who uses most; of containers far from their limits, that they are.
//! Source: `cli/command/container/formatter_stats.go` of Docker, `pkg/cmd/top` of kubectl, `cmd/crictl/stats.go` of cri-tools.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, name_of, number, percent, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::bytes;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("container-usage", Family::Host, recognise)
    .about("docker stats, crictl stats, kubectl top");

/// The part of a memory limit from which the kernel soon kills: of the limit itself nothing is left to reclaim but files in use.
const FULL: f64 = 0.95;

/// The part of one CPU from which a container is busy: the rest of the time one thread could not fill.
const BUSY_CPUS: f64 = 0.9;

/// Words of a row, and rows.
const MAX_WORDS: usize = 60;
const MAX_ROWS: u64 = 100_000;

/// Rows whose trouble is told; of more, those that come first.
const MAX_TOLD: usize = 20;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(any_line(head, |line| Heading::of(line).is_some()))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Heading {
    /// CPU, memory and its limit.
    Containers,
    /// Of the container runtime itself, without limits.
    Cri,
    /// Figures behind so many names.
    Pods(usize),
    Nodes,
}

impl Heading {
    fn of(line: &str) -> Option<Heading> {
        let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
        let first = *words.first()?;
        let has = |name: &str| words.contains(&name);
        let of_memory = words
            .windows(4)
            .any(|four| four == ["MEM", "USAGE", "/", "LIMIT"]);
        if of_memory && has("CPU") {
            return Some(Heading::Containers);
        }
        if first == "CONTAINER" && has("CPU") && has("MEM") && has("INODES") {
            return Some(Heading::Cri);
        }
        let cores = words.iter().position(|word| *word == "CPU(cores)")?;
        if !has("MEMORY(bytes)") || cores == 0 {
            return None;
        }
        match has("CPU%") || has("CPU(%)") {
            true => Some(Heading::Nodes),
            false => Some(Heading::Pods(cores)),
        }
    }
}

/// A row.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    /// In CPUs.
    cpus: Option<f64>,
    /// The part of all CPUs of a node.
    cpu_share: Option<f64>,
    memory: Option<f64>,
    memory_limit: Option<f64>,
    memory_share: Option<f64>,
}

impl Row {
    fn of(heading: Heading, line: &str) -> Option<Row> {
        let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
        match heading {
            Heading::Containers => Row::of_docker(&words),
            Heading::Cri => {
                let [.., name, cpu, memory, _disk, _inodes] = words.as_slice() else {
                    return None;
                };
                Some(Row {
                    cpus: Some(number(cpu)? / 100.0),
                    memory: Some(size(memory)?),
                    ..Row::named(name)
                })
            }
            Heading::Pods(cores) => {
                let names = words.get(..cores)?;
                let (cpu, memory) = (words.get(cores)?, words.get(cores + 1)?);
                Some(Row {
                    cpus: Some(cores_of(cpu)?),
                    memory: Some(size(memory)?),
                    ..Row::named(&names.join("/"))
                })
            }
            Heading::Nodes => {
                let [name, cpu, cpu_percent, memory, memory_percent, ..] = words.as_slice() else {
                    return None;
                };
                Some(Row {
                    cpus: Some(cores_of(cpu)?),
                    cpu_share: percent(cpu_percent).map(|share| share / 100.0),
                    memory: Some(size(memory)?),
                    memory_share: percent(memory_percent).map(|share| share / 100.0),
                    ..Row::named(name)
                })
            }
        }
    }

    fn named(name: &str) -> Row {
        Row {
            name: name_of(name),
            cpus: None,
            cpu_share: None,
            memory: None,
            memory_limit: None,
            memory_share: None,
        }
    }

    /// `f00d  web-1  98.48%  336.3MiB / 2.691GiB  12.20%  …`: the slash between two sizes is the memory's, with its share behind.
    fn of_docker(words: &[&str]) -> Option<Row> {
        // Older versions have a blank between a size and its unit.
        let joined: Vec<String> = joined(words);
        let words: Vec<&str> = joined.iter().map(String::as_str).collect();
        let slash = words.iter().position(|word| *word == "/")?;
        let used = size(words.get(slash.checked_sub(1)?)?)?;
        let limit = size(words.get(slash + 1)?)?;
        let share = percent(words.get(slash + 2)?);
        let cpu = percent(words.get(slash.checked_sub(2)?)?)?;
        let names = words.get(..slash.checked_sub(2)?)?;
        // An id stands before the name, where both are there.
        let name = names.get(1).or(names.first())?;
        // Some versions round the share; the sizes have three digits or more.
        let exact = (limit > 0.0)
            .then(|| used / limit)
            .or(share.map(|share| share / 100.0));
        Some(Row {
            cpus: Some(cpu / 100.0),
            memory: Some(used),
            memory_limit: Some(limit).filter(|limit| *limit > 0.0),
            memory_share: exact,
            ..Row::named(name)
        })
    }
}

/// The words of a row, with each size and its unit as one.
fn joined(words: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        let is_unit = unit(word).is_some();
        match all.last_mut().filter(|last| is_unit && number(last).is_some()) {
            Some(last) => last.push_str(word),
            None => all.push((*word).to_owned()),
        }
    }
    all
}

/// CPUs of `1500m` or `2`.
fn cores_of(word: &str) -> Option<f64> {
    match word.strip_suffix('m') {
        Some(thousandths) => Some(number(thousandths)? / 1e3),
        None => number(word),
    }
}

/// Bytes of `336.3MiB`, `12.7MB`, `512Mi`, `0B`.
fn size(word: &str) -> Option<f64> {
    let at = word.find(|char: char| char.is_ascii_alphabetic())?;
    let (figure, name) = word.split_at_checked(at)?;
    Some(number(figure)? * unit(name)?)
}

/// How many bytes a unit has.
fn unit(name: &str) -> Option<f64> {
    Some(match name {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" | "Ki" => 1024.0,
        "MiB" | "Mi" => 1_048_576.0,
        "GiB" | "Gi" => 1_073_741_824.0,
        "TiB" | "Ti" => 1_099_511_627_776.0,
        _ => return None,
    })
}

#[derive(Debug, Default)]
struct Reader {
    heading: Option<Heading>,
    rows: u64,
    cpus: Largest,
    memory: Largest,
    /// The part of its limit that the fullest uses, and which.
    fullest: Option<(f64, String)>,
    told: Vec<Statement>,
    quote: Option<Quote>,
}

impl Reader {
    fn add(&mut self, row: &Row, heading: Heading, out: &Out<'_>) {
        let here = out.here();
        self.cpus.take(row.cpus.unwrap_or(0.0), &row.name, here.clone());
        self.memory
            .take(row.memory.unwrap_or(0.0), &row.name, here.clone());
        let full = row.memory_share.filter(|share| *share >= FULL);
        if let Some(share) = row.memory_share
            && self.fullest.as_ref().is_none_or(|(most, _)| share > *most)
        {
            self.fullest = Some((share, row.name.clone()));
        }
        let mut tell = |share: f64, text: String| {
            if self.told.len() < MAX_TOLD {
                self.told.push(Statement {
                    share: Some(share),
                    ..statements::one(StatementKind::Exhausted, None, here.clone(), text)
                });
            }
        };
        let of_node = heading == Heading::Nodes;
        if let Some((share, used)) = full.zip(row.memory) {
            let of = match row.memory_limit {
                Some(limit) => format!(
                    "the container {} uses {} % of its memory limit: {} of {}",
                    row.name,
                    rounded(share * 100.0),
                    bytes(used as u64),
                    bytes(limit as u64)
                ),
                None => format!(
                    "the node {} uses {} % of its memory: {}",
                    row.name,
                    rounded(share * 100.0),
                    bytes(used as u64)
                ),
            };
            let busy = row.cpus.filter(|cpus| *cpus >= BUSY_CPUS);
            let busy = busy.map_or_else(String::new, |cpus| format!(", and {} CPUs", rounded(cpus)));
            tell(share, format!("{of}{busy}"));
        }
        if let Some(share) = row.cpu_share.filter(|share| of_node && *share >= FULL) {
            let cpus = rounded(row.cpus.unwrap_or(0.0));
            let text = format!(
                "the node {} uses {} % of its CPUs: {cpus}",
                row.name,
                rounded(share * 100.0)
            );
            tell(share, text);
        }
    }

    /// Who uses most.
    fn most(&self, heading: Heading) -> String {
        let what = match heading {
            Heading::Containers | Heading::Cri => "container",
            Heading::Pods(_) => "pod",
            Heading::Nodes => "node",
        };
        let mut parts = Vec::new();
        if let Some((cpus, name, _)) = &self.cpus.first {
            parts.push(format!(
                "of {} {what}s {name} uses most CPU time: {} CPUs",
                self.rows,
                rounded(*cpus)
            ));
        }
        if let Some((used, name, _)) = &self.memory.first {
            parts.push(format!("most memory: {name}, {}", bytes(*used as u64)));
        }
        match &self.fullest {
            Some((share, name)) if heading == Heading::Containers => parts.push(format!(
                "nearest to its memory limit: {name}, {} % of it",
                rounded(share * 100.0)
            )),
            Some(_) => {}
            None => parts.push("their limits are not in this list".to_owned()),
        }
        parts.join("; ")
    }

    fn close(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let (Some(heading), Some(quote)) = (read.heading, read.quote.clone()) else {
            return;
        };
        let busy = read
            .cpus
            .first
            .as_ref()
            .is_some_and(|(cpus, ..)| *cpus >= BUSY_CPUS);
        let is_ordinary = heading == Heading::Nodes || heading == Heading::Containers && !busy;
        let kind = match is_ordinary {
            true => StatementKind::WithinNorm,
            false => StatementKind::Took,
        };
        if read.told.is_empty() {
            let mut text = read.most(heading);
            if kind == StatementKind::WithinNorm {
                text.push_str(&format!("; from {:.0} % on memory is used up", FULL * 100.0));
            }
            let of_cpu = read.cpus.first.as_ref().map(|(cpus, ..)| *cpus);
            out.statement(Statement {
                share: of_cpu.filter(|_| kind == StatementKind::Took),
                ..statements::one(kind, None, quote, text)
            });
        }
        read.told.into_iter().for_each(|one| out.statement(one));
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(heading) = Heading::of(&text) {
            self.close(out);
            self.heading = Some(heading);
            return Understood::Evidence;
        }
        let Some(heading) = self.heading else {
            return Understood::No;
        };
        if self.rows >= MAX_ROWS {
            out.account().left_out += 1;
            return Understood::Evidence;
        }
        let Some(row) = Row::of(heading, &text) else {
            // A container that does not run has no figures.
            return match text.contains("--") {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        self.rows += 1;
        if self.quote.is_none() {
            self.quote = Some(out.here());
        }
        self.add(&row, heading, out);
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

    fn said(text: &str) -> Vec<(K, String)> {
        let reading = read_text("c", text.as_bytes());
        assert!(
            reading
                .observed
                .sources
                .iter()
                .any(|source| source.format == "container-usage"),
            "{text}"
        );
        let all = reading.observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    const DOCKER: &str = "root@h:~# docker stats --no-stream\n\
        CONTAINER ID   NAME      CPU %     MEM USAGE / LIMIT     MEM %     NET I/O         BLOCK I/O        PIDS\n\
        88a37faa25b0   search    0.27%     2.6GiB / 2.691GiB     96.62%    1.63kB / 942B   312MB / 1.77MB   43\n\
        bb4e15b456b2   web       43.48%    336.3MiB / 2.691GiB   12.20%    656B / 0B       16.4kB / 0B      26\n\
        cc4e15b456b2   gone      --        -- / --               --        --              --               --\n";

    #[test]
    fn sizes_with_a_blank_before_their_unit_are_read() {
        let text = "CONTAINER           CPU %               MEM USAGE / LIMIT   MEM %               NET I/O             BLOCK I/O           PIDS\n\
            5c1f0a3b9d77        0.37%               870 MiB / 1 GiB     84.96%              2.15 MB / 2.18 MB   0 B / 3.31 MB       0\n";
        let reading = read_text("d", text.as_bytes());
        assert_eq!(reading.accounts[0].not_understood, 0);
        let said = reading.texts().join(" ");
        assert!(
            said.contains("nearest to its memory limit: 5c1f0a3b9d77, 85 % of it"),
            "{said}"
        );
    }

    #[test]
    fn a_container_at_its_limit_and_one_far_from_it() {
        assert_eq!(
            said(DOCKER),
            [(
                K::Exhausted,
                "the container search uses 96.6 % of its memory limit: 2.6 GiB of 2.7 GiB".to_owned()
            )]
        );
        let well = DOCKER.replace("2.6GiB /", "1.2GiB /");
        assert_eq!(
            said(&well),
            [(
                K::WithinNorm,
                "of 2 containers web uses most CPU time: 0.43 CPUs; most memory: search, 1.2 GiB; nearest to its memory limit: search, \
                 44.6 % of it; from 95 % on memory is used up"
                    .to_owned()
            )]
        );
    }

    #[test]
    fn pods_nodes_and_the_runtime() {
        let text = "NAME        CPU(cores)   MEMORY(bytes)\nweb-6d-x    1500m        120Mi\ndb-0        20m          2048Mi\n";
        assert_eq!(
            said(text),
            [(
                K::Took,
                "of 2 pods web-6d-x uses most CPU time: 1.5 CPUs; most memory: db-0, 2.0 GiB; their limits are not in this list".to_owned()
            )]
        );
        let text = "NAME   CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%\nn1     3920m        98%    7000Mi          45%\n";
        assert_eq!(said(text)[0].1, "the node n1 uses 98 % of its CPUs: 3.92");
        let text = "CONTAINER           NAME      CPU %     MEM       DISK     INODES\nf00dfacef00df       etcd      2.10      120.4MB   33.1kB   12\n";
        assert!(
            said(text)[0]
                .1
                .starts_with("of 1 containers etcd uses most CPU time: 0.02 CPUs"),
            "{text}"
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "CPU MEM USAGE / LIMIT\n/ / /\n% / 1\n1% 1XB / 2B 3%\n",
            "NAME CPU(cores) MEMORY(bytes)\na b c\na 1e999 1Mi\n",
        ] {
            assert!(
                read_text("c", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
