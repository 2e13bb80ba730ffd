//! The log of a Zabbix server or proxy: slow queries, and hosts that do not answer.
//!
//! In: `  812:20240405:100000.123 slow query: 41.203 sec, "select …"`, `Zabbix agent item "…" on host "…" failed: first network error`. Out: a
//! statement about the longest query, and one about the host that did not answer most often. Source: `db.c` and `poller.c` of Zabbix.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{Largest, any_line, holds, name_of, ns_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{counted, duration};
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("zabbix-log", Family::Logs, recognise).about("the log of Zabbix");

/// Hosts that are counted.
const MAX_HOSTS: usize = 5_000;

fn recognise(head: &[u8]) -> Sureness {
    let marks = holds(head, "slow query: ")
        || holds(head, "network error, wait for ")
        || holds(head, "became not supported");
    match marks
        && any_line(head, |line| {
            message(line).is_some_and(|message| Said::of(message).is_some())
        }) {
        true => Sureness::Certain,
        false => Sureness::No,
    }
}

/// What stands behind `812:20240405:100000.123 `.
fn message(line: &str) -> Option<&str> {
    let (stamp, rest) = line.split_once(' ')?;
    let mut parts = stamp.split(':');
    let (process, day, time) = (parts.next()?, parts.next()?, parts.next()?);
    let digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (parts.next().is_none() && day.len() == 8 && [process, day, time].into_iter().all(digits))
        .then_some(rest.trim())
}

#[derive(Debug, PartialEq)]
enum Said<'a> {
    Slow {
        seconds: f64,
        query: &'a str,
    },
    /// A host that could not be reached, and the item.
    Network {
        host: &'a str,
        item: &'a str,
    },
}

impl<'a> Said<'a> {
    fn of(message: &'a str) -> Option<Said<'a>> {
        if let Some(rest) = message.strip_prefix("slow query: ") {
            let (seconds, query) = rest.split_once(" sec, ")?;
            return Some(Said::Slow {
                seconds: number(seconds)?,
                query: query.trim_matches('"'),
            });
        }
        let (before, _) = message.split_once("network error")?;
        let (item, rest) = before.split_once("item \"")?.1.split_once('"')?;
        let host = rest.split_once("on host \"")?.1.split('"').next()?;
        Some(Said::Network { host, item })
    }
}

#[derive(Debug, Default)]
struct Reader {
    queries: Largest,
    hosts: BTreeMap<String, (u64, String, Quote)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        match message(&text).and_then(Said::of) {
            Some(Said::Slow { seconds, query }) => {
                self.queries.take(seconds, query, out.here());
            }
            Some(Said::Network { host, item }) => {
                if let Some(known) = self.hosts.get_mut(host) {
                    known.0 = known.0.saturating_add(1);
                } else if self.hosts.len() < MAX_HOSTS {
                    self.hosts.insert(name_of(host), (1, name_of(item), out.here()));
                } else {
                    out.account().left_out += 1;
                }
            }
            None => return Understood::Ignorable,
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        if let Some((seconds, query, quote)) = &read.queries.first {
            let ns = ns_of(*seconds);
            let count = read.queries.count;
            let all = match count {
                1 => String::new(),
                count => format!(
                    "; all {count} slow queries took {}",
                    duration(ns_of(read.queries.sum))
                ),
            };
            let text = format!(
                "a query of Zabbix to its database took {}: `{query}`{all}",
                duration(ns)
            );
            out.statement(Statement {
                times: count,
                ..statements::one(StatementKind::Stalled, Some(ns), quote.clone(), text)
            });
        }
        let most = read.hosts.iter().max_by_key(|(_, (times, ..))| *times);
        if let Some((host, (times, item, quote))) = most {
            let text = format!(
                "host {host} did not answer Zabbix {times} times, first for item {item}; {} did not answer",
                counted(read.hosts.len() as u64, "host", "hosts")
            );
            out.statement(Statement {
                times: *times,
                ..statements::one(StatementKind::Unreachable, None, quote.clone(), text)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn the_longest_query_and_the_host_that_does_not_answer() {
        let text = "  812:20240405:100000.123 slow query: 41.200000 sec, \"select itemid from history where clock<9\"\n\
            \x20 812:20240405:100100.001 slow query: 5.100000 sec, \"commit;\"\n\
            \x20 815:20240405:100101.500 Zabbix agent item \"system.uptime\" on host \"web1\" failed: first network error, wait for 15 seconds\n\
            \x20 815:20240405:100116.500 Zabbix agent item \"system.load\" on host \"web1\" failed: another network error, wait for 15 seconds\n";
        let reading = read_text("z", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "zabbix-log");
        assert_eq!(
            reading.texts(),
            [
                "a query of Zabbix to its database took 41.20 s: `select itemid from history where clock<9`; all 2 slow queries took 46.30 s",
                "host web1 did not answer Zabbix 2 times, first for item system.uptime; 1 host did not answer",
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Stalled);
    }

    #[test]
    fn other_logs_are_none() {
        let text = "10:00:00 slow query: 3 sec, \"x\"\n1:2:3 slow query: 4 sec, \"y\"\n";
        assert_ne!(
            read_text("z", text.as_bytes()).observed.sources[0].format,
            "zabbix-log"
        );
    }
}
