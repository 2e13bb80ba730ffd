//! `nfsstat`: how many requests of NFS were sent again, or were bad, and of which kind most are.
//!
//! In: names of counters, and below them their values, of a client, of a server, and of each version; with shares in per cent or
//! without. Out: a statement about the client's requests, and one about the server's. Source: `utils/nfsstat/nfsstat.c` of nfs-utils.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, number, percent, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("nfsstat", Family::Host, recognise)
    .about("nfsstat")
    .openings(&["Client rpc stats:", "Server rpc stats:"]);

/// The part of a client's requests from which those that were sent again are many: "more than 5 percent" of the calls, by Oracle's
/// system administration guide on `nfsstat -c`.
const MUCH_SENT_AGAIN: f64 = 0.05;

/// Columns of a heading.
const MAX_COLUMNS: usize = 20;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(any_line(head, |line| Section::of(line).is_some()))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Section {
    ClientCalls,
    ServerCalls,
    /// Kinds of requests of one version.
    Client,
    Server,
    /// Packets, the cache of answers, file handles.
    Other,
}

impl Section {
    fn of(line: &str) -> Option<Section> {
        let name = line.strip_suffix(':')?;
        match name {
            "Client rpc stats" => return Some(Section::ClientCalls),
            "Server rpc stats" => return Some(Section::ServerCalls),
            "Server packet stats"
            | "Server reply cache"
            | "Server file handle cache"
            | "Server read ahead cache"
            | "Client packet stats" => return Some(Section::Other),
            _ => {}
        }
        // `Client nfs v3:`, `Server nfs v4 operations:`.
        match name.split_once(" nfs v")? {
            ("Client", _) => Some(Section::Client),
            ("Server", _) => Some(Section::Server),
            _ => None,
        }
    }
}

/// Of a client or a server.
#[derive(Debug, Default)]
struct Side {
    calls: Option<(f64, Quote)>,
    again: f64,
    bad: f64,
    /// The kind of request that there is most of, with its part in per cent.
    most: Option<(f64, f64, String)>,
}

#[derive(Debug, Default)]
struct Reader {
    section: Option<Section>,
    columns: Vec<String>,
    client: Side,
    server: Side,
}

impl Reader {
    fn values(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let section = self.section?;
        let words: Vec<&str> = text.split_whitespace().take(3 * MAX_COLUMNS).collect();
        let values: Vec<f64> = words
            .iter()
            .filter(|word| !word.ends_with('%'))
            .map_while(|word| number(word))
            .collect();
        let shares: Vec<f64> = words.iter().filter_map(|word| percent(word)).collect();
        if values.is_empty() || values.len() != self.columns.len() {
            return None;
        }
        let side = match section {
            Section::ClientCalls | Section::Client => &mut self.client,
            Section::ServerCalls | Section::Server => &mut self.server,
            Section::Other => return Some(()),
        };
        for (at, (name, value)) in self.columns.iter().zip(values).enumerate() {
            match (section, name.as_str()) {
                (Section::ClientCalls | Section::ServerCalls, "calls") => {
                    side.calls = Some((value, out.here()))
                }
                (Section::ClientCalls, "retrans") => side.again = value,
                (Section::ServerCalls, "badcalls") => side.bad = value,
                (Section::Client | Section::Server, name) if name != "null" => {
                    let share = shares.get(at).copied().unwrap_or(0.0);
                    if side.most.as_ref().is_none_or(|(most, ..)| value > *most) {
                        side.most = Some((value, share, name.to_owned()));
                    }
                }
                _ => {}
            }
        }
        Some(())
    }
}

impl Side {
    fn put(self, is_client: bool, out: &mut Out<'_>) {
        let Some((calls, quote)) = self.calls else { return };
        if calls <= 0.0 {
            return;
        }
        let (who, bad, what) = match is_client {
            true => ("client", self.again, "were sent again"),
            false => ("server", self.bad, "were refused as bad"),
        };
        let share = bad / calls;
        let mut text = format!(
            "of {calls:.0} requests of the NFS {who} {bad:.0} {what} ({} %)",
            rounded(100.0 * share)
        );
        if let Some((count, part, name)) = self.most.filter(|(count, ..)| *count > 0.0) {
            let part = match part > 0.0 {
                true => format!(" ({part:.0} %)"),
                false => String::new(),
            };
            text.push_str(&format!("; most of them are {name}: {count:.0}{part}"));
        }
        let kind = match share >= MUCH_SENT_AGAIN {
            true if is_client => StatementKind::TimedOut,
            true => StatementKind::Failed,
            false => {
                text.push_str(&format!(
                    "; from {:.0} % on that is much",
                    100.0 * MUCH_SENT_AGAIN
                ));
                StatementKind::WithinNorm
            }
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(section) = Section::of(&text) {
            let again = section == Section::ClientCalls && self.client.calls.is_some();
            if again || section == Section::ServerCalls && self.server.calls.is_some() {
                self.end(out);
            }
            self.section = Some(section);
            self.columns.clear();
            return Understood::Evidence;
        }
        if self.section.is_none() {
            return Understood::No;
        }
        let is_heading = text
            .split_whitespace()
            .all(|word| word.starts_with(|first: char| first.is_ascii_alphabetic()));
        if is_heading {
            self.columns = text
                .split_whitespace()
                .take(MAX_COLUMNS)
                .map(str::to_owned)
                .collect();
            return Understood::Evidence;
        }
        match self.values(&text, out) {
            Some(()) => Understood::Evidence,
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        read.client.put(true, out);
        read.server.put(false, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    const TEXT: &str = "Client rpc stats:\ncalls      retrans    authrefrsh\n1500000    120000     1500010\n\n\
        Client nfs v3:\nnull             getattr          setattr          lookup           access\n\
        0             0% 812000       54% 11000         0% 90000         6% 250000       16%\n\
        read             write\n300000       20% 37000         2%\n";

    #[test]
    fn requests_that_were_sent_again() {
        let reading = read_text("n", TEXT.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "nfsstat");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "of 1500000 requests of the NFS client 120000 were sent again (8 %); most of them are getattr: 812000 (54 %)"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, K::TimedOut);
        let well = TEXT.replace("120000 ", "12 ");
        assert_eq!(
            read_text("n", well.as_bytes()).observed.statements[0].kind,
            K::WithinNorm
        );
    }

    #[test]
    fn a_server() {
        let text = "Server rpc stats:\ncalls      badcalls   badfmt     badauth    badclnt\n1000       100        0          100        0\n";
        assert_eq!(
            read_text("n", text.as_bytes()).texts(),
            ["of 1000 requests of the NFS server 100 were refused as bad (10 %)"]
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "Client rpc stats:\ncalls retrans\n1\n",
            "Client rpc stats:\ncalls retrans authrefrsh\nx y z\n0 0 0\n",
            "Client nfs vx:\n1% 2%\n",
        ] {
            assert!(
                read_text("n", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
