//! HAProxy: its log of requests and connections, and `show stat`.
//!
//! In: log lines with the times of each phase in milliseconds (`0/0/30/69/109`) and the state in which a session ended, or the table
//! of `show stat`. Out: a statement about the slowest request, with the phase that took most of it; for each way in which sessions
//! ended badly how many did; for each server that is down, and each queue, what the table says of it.

use crate::format::{Family, Format, LineReader, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static LOG: Format =
    Format::lines::<LogReader>("haproxy-log", Family::Logs, is_log).about("HAProxy's log");

pub(crate) static STATS: Format = Format::lines::<StatReader>("haproxy-stat", Family::Host, is_table)
    .about("HAProxy's show stat")
    .openings(&["# pxname,svname,"]);

const MS: Ns = 1_000_000;

/// A request that takes so long keeps a person waiting.
const SLOW_MS: u64 = 1_000;

/// Pairs of a server and a way to end that are kept.
const ENDS: usize = 200;

/// Servers at their limit that are kept, those that are down, and of the last those that are named.
const MAX_FULL: usize = 200;
const MAX_NAMED: usize = 4;

/// Bytes of a name, and of a request.
const NAME: usize = 80;
const REQUEST: usize = 120;

/// Lines that are looked at to recognise it.
const LOOKED_AT: usize = 40;

/// The phases of a request, and of a connection.
const OF_REQUEST: [&str; 4] = [
    "waiting for the client's request (Tq)",
    "in the queue (Tw)",
    "connecting to the server (Tc)",
    "waiting for the server's answer (Tr)",
];
const OF_CONNECTION: [&str; 2] = ["in the queue (Tw)", "connecting to the server (Tc)"];
const TRANSFER: &str = "in the transfer of data";

fn is_log(head: &[u8]) -> Sureness {
    let lines = head.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let (mut sessions, mut seen) = (0, 0);
    for line in lines.take(LOOKED_AT) {
        seen += 1;
        sessions += usize::from(Session::of(&text_of(line)).is_some());
    }
    match sessions {
        0 => Sureness::No,
        _ if sessions * 2 >= seen => Sureness::Certain,
        _ => Sureness::No,
    }
}

/// A request or connection that ended.
struct Session<'a> {
    client: &'a str,
    /// Backend and server.
    server: &'a str,
    /// In ms; `None` where the phase was not reached.
    phases: Vec<Option<u64>>,
    total: u64,
    status: Option<u16>,
    /// Who ended it, and in which phase.
    ended: &'a str,
    request: &'a str,
}

impl<'a> Session<'a> {
    /// `10.0.0.1:33317 [06/Feb/2026:12:14:14.655] front back/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"`.
    fn of(line: &'a str) -> Option<Session<'a>> {
        let begin = line.find(" [")?;
        let client = line.get(..begin)?.rsplit(' ').next()?;
        client.contains(':').then_some(())?;
        let (date, rest) = line.get(begin + 2..)?.split_once("] ")?;
        let dated = date.len() >= 20 && date.get(2..3) == Some("/") && date.contains('.');
        if !dated {
            return None;
        }
        let mut words = rest.split_whitespace();
        let _frontend = words.next()?;
        let server = words.next().filter(|server| server.contains('/'))?;
        let mut times: Vec<Option<u64>> = words
            .next()?
            .split('/')
            .map(|time| time.trim_start_matches('+').parse::<i64>().ok())
            .map(|time| time.map(|time| u64::try_from(time).ok()))
            .collect::<Option<_>>()?;
        let total = times.pop()??;
        let request = match times.len() {
            4 => true,
            2 => false,
            _ => return None,
        };
        let status = request.then(|| words.next()?.parse().ok()).flatten();
        let mut words = words.skip(if request { 3 } else { 1 });
        let ended = words.next().unwrap_or_default();
        let asked = rest
            .split_once('"')
            .map_or("", |(_, asked)| asked.trim_end_matches('"'));
        Some(Session {
            client,
            server,
            phases: times,
            total,
            status,
            ended,
            request: asked,
        })
    }

    /// The phase that took most, and how long.
    fn longest(&self) -> (&'static str, u64) {
        let names: &[&str] = match self.phases.len() {
            4 => &OF_REQUEST,
            _ => &OF_CONNECTION,
        };
        let known: u64 = self
            .phases
            .iter()
            .flatten()
            .fold(0, |sum, ms| sum.saturating_add(*ms));
        let open = self.phases.iter().position(Option::is_none);
        let rest = self.total.saturating_sub(known);
        // A phase that was not left took the rest.
        let rest_in = match open.and_then(|open| names.get(open)) {
            Some(phase) => *phase,
            None => TRANSFER,
        };
        let phases = names
            .iter()
            .copied()
            .zip(self.phases.iter().map(|ms| ms.unwrap_or(0)));
        let all = phases.chain([(rest_in, rest)]);
        all.max_by_key(|(_, ms)| *ms).unwrap_or((TRANSFER, rest))
    }

    /// What its end says: two letters, who ended it and when.
    fn trouble(&self) -> Option<(StatementKind, &'static str)> {
        let mut letters = self.ended.chars();
        let (who, phase) = (letters.next()?, letters.next()?);
        Some(match (who, phase) {
            ('s', 'C') => (
                StatementKind::TimedOut,
                "no connection to the server came about in time (timeout connect)",
            ),
            ('s', 'Q') => (
                StatementKind::TimedOut,
                "no server had a connection free in time (timeout queue)",
            ),
            ('s', 'H') => (
                StatementKind::TimedOut,
                "the server took the request and did not answer in time (timeout server)",
            ),
            ('s', _) => (StatementKind::TimedOut, "the server fell silent until a timeout"),
            ('S', 'C') => (
                StatementKind::Unreachable,
                "the server refused the connection or is down",
            ),
            ('S', _) => (
                StatementKind::Unreachable,
                "the server closed the connection too early",
            ),
            ('P', 'R' | 'T') | ('C' | 'c', _) | ('-' | 'L' | 'D', _) => return None,
            ('P', _) => (StatementKind::Failed, "the proxy ended the session"),
            ('R', _) => (
                StatementKind::Exhausted,
                "the proxy had no connection, memory or port left",
            ),
            ('I', _) => (StatementKind::Failed, "the proxy found an error of its own"),
            _ => return None,
        })
    }
}

/// Sessions that ended badly in the same way.
struct End {
    server: String,
    kind: StatementKind,
    said: &'static str,
    count: u64,
    longest: u64,
    quote: Quote,
}

#[derive(Default)]
struct LogReader {
    sessions: u64,
    slow: u64,
    failed: u64,
    ends: Vec<End>,
    slowest: Option<(u64, String, Quote)>,
}

impl LineReader for LogReader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let Some(session) = Session::of(&text) else {
            return Understood::Ignorable;
        };
        self.sessions += 1;
        self.slow += u64::from(session.total >= SLOW_MS);
        self.failed += u64::from(session.status.is_some_and(|status| status >= 500));
        if let Some((kind, said)) = session.trouble() {
            let room = self.ends.len() < ENDS;
            let known = self
                .ends
                .iter()
                .position(|end| end.said == said && end.server == session.server);
            match known.and_then(|known| self.ends.get_mut(known)) {
                Some(end) => {
                    end.count += 1;
                    end.longest = end.longest.max(session.total);
                }
                None if room => self.ends.push(End {
                    server: cut(session.server, NAME),
                    kind,
                    said,
                    count: 1,
                    longest: session.total,
                    quote: out.here(),
                }),
                None => out.account().left_out += 1,
            }
        }
        if self.slowest.as_ref().is_none_or(|(ms, _, _)| session.total > *ms) {
            let (phase, ms) = session.longest();
            let asked = match session.request {
                "" => "a connection".to_owned(),
                request => format!("`{}`", cut(request, REQUEST)),
            };
            let said = format!(
                "{asked} of {} to {} took {} ms, of which {ms} ms {phase}",
                cut(session.client, NAME),
                cut(session.server, NAME),
                session.total
            );
            self.slowest = Some((session.total, said, out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        for end in all.ends {
            let text = format!(
                "{}: {}, {} of {} sessions, the longest after {}",
                end.server,
                end.said,
                end.count,
                all.sessions,
                duration(end.longest.saturating_mul(MS))
            );
            out.statement(statements::one(
                end.kind,
                Some(end.longest.saturating_mul(MS)),
                end.quote,
                text,
            ));
        }
        if let Some((ms, said, quote)) = all.slowest {
            let mut text = said;
            if all.sessions > 1 {
                let slow = duration(SLOW_MS * MS);
                text.push_str(&format!("; {} of {} took {slow} or more", all.slow, all.sessions));
            }
            if all.failed > 0 {
                text.push_str(&format!(
                    ", {} were answered with an error of the server (5xx)",
                    all.failed
                ));
            }
            let ns = Some(ms.saturating_mul(MS)).filter(|ns| *ns > 0);
            out.statement(statements::one(StatementKind::Took, ns, quote, text));
        }
    }
}

fn is_table(head: &[u8]) -> Sureness {
    match memchr::memmem::find(head, b"# pxname,svname,") {
        Some(_) => Sureness::Certain,
        None => Sureness::No,
    }
}

#[derive(Default)]
struct StatReader {
    columns: Vec<String>,
    /// The limit that is nearest: share, sentence, where.
    nearest: Option<(f64, String, Quote)>,
    /// What is at its limit, with its proxy, and what of which proxy is down: the others have its work.
    full: Vec<(String, String, Quote)>,
    down: Vec<(String, String)>,
}

impl TextReader for StatReader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some(heading) = text
            .strip_prefix("# ")
            .filter(|heading| heading.starts_with("pxname,"))
        {
            self.columns = heading.split(',').map(str::to_owned).collect();
            return Understood::Evidence;
        }
        let cells: Vec<&str> = text.split(',').collect();
        if self.columns.is_empty() || cells.len() < 3 {
            return Understood::No;
        }
        let cell = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            cells.get(at).copied().filter(|cell| !cell.is_empty())
        };
        let count = |name: &str| cell(name).and_then(|cell| cell.parse::<u64>().ok());
        let (Some(proxy), Some(server)) = (cell("pxname"), cell("svname")) else {
            return Understood::No;
        };
        let name = cut(&format!("{proxy}/{server}"), NAME);
        let status = cell("status").unwrap_or_default();
        if status.starts_with("DOWN") {
            if self.down.len() < MAX_FULL {
                self.down.push((proxy.to_owned(), name.clone()));
            }
            let checks = cell("check_status").map_or_else(String::new, |check| format!(", check {check}"));
            let since = count("lastchg").map_or_else(String::new, |seconds| {
                format!(" for {}", duration(seconds.saturating_mul(1_000 * MS)))
            });
            let text = format!("{name} is {status}{since}{checks}");
            out.statement(statements::one(
                StatementKind::Unreachable,
                None,
                out.here(),
                cut(&text, 2 * NAME),
            ));
        }
        if let Some(queued) = count("qcur").filter(|queued| *queued > 0) {
            let most = count("qmax").unwrap_or(queued);
            let text = format!("{queued} requests wait in the queue of {name}, at most {most} at once");
            out.statement(statements::one(StatementKind::Stalled, None, out.here(), text));
        }
        if let (Some(now), Some(limit)) = (count("scur"), count("slim").filter(|limit| *limit > 0)) {
            let share = now as f64 / limit as f64;
            let text = format!("{name} has {now} of {limit} sessions");
            if now >= limit {
                let queued = count("qcur").filter(|queued| *queued > 0);
                let wait = match queued {
                    Some(queued) => format!("{queued} wait in its queue"),
                    None => "more have to wait".to_owned(),
                };
                let text = format!("{text}, which is its limit: {wait}");
                if self.full.len() < MAX_FULL {
                    self.full.push((proxy.to_owned(), text, out.here()));
                }
            } else if self
                .nearest
                .as_ref()
                .is_none_or(|(nearest, _, _)| share > *nearest)
            {
                self.nearest = Some((share, text, out.here()));
            }
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let down = std::mem::take(&mut self.down);
        for (proxy, text, quote) in std::mem::take(&mut self.full) {
            let mut down: Vec<&str> = down
                .iter()
                .filter(|(of, _)| *of == proxy)
                .map(|(_, name)| name.as_str())
                .collect();
            let more = down.len().saturating_sub(MAX_NAMED);
            down.truncate(MAX_NAMED);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let text = match down.as_slice() {
                [] => text,
                [one] => format!("{text}; {one} of the same backend is DOWN"),
                some => format!("{text}; {}{more} of the same backend are DOWN", some.join(", ")),
            };
            out.statement(statements::one(StatementKind::Exhausted, None, quote, text));
        }
        if let Some((_, text, quote)) = self.nearest.take() {
            out.statement(statements::one(StatementKind::Took, None, quote, text));
        }
        self.columns.clear();
    }
}

/// The beginning of a text, in characters.
fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let reading = read_text("proxy", text.as_bytes());
        let format = &reading.observed.sources[0].format;
        assert!(format.starts_with("haproxy"), "{format}");
        let statements = reading.observed.statements.into_iter();
        statements.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn the_slowest_request_with_the_phase_that_took_most() {
        let text = "Mar  1 10:00:01 lb haproxy[7]: 10.9.0.1:5001 [01/Mar/2026:10:00:01.000] web app/app2 0/0/1/40/41 200 900 - - ---- 1/1/0/0/0 0/0 \"GET /a HTTP/1.1\"\n\
            Mar  1 10:00:09 lb haproxy[7]: 10.9.0.2:5002 [01/Mar/2026:10:00:01.500] web app/app1 3/7000/1/96/7100 200 900 - - ---- 9/9/8/4/0 3/5 \"POST /pay HTTP/1.1\"\n\
            Mar  1 10:00:39 lb haproxy[7]: 10.9.0.3:5003 [01/Mar/2026:10:00:09.000] web app/app1 2/0/1/-1/30003 504 190 - - sH-- 9/9/8/4/0 0/0 \"GET /slow HTTP/1.1\"\n";
        assert_eq!(
            said(text),
            [
                (
                    StatementKind::TimedOut,
                    "app/app1: the server took the request and did not answer in time (timeout server), 1 of 3 sessions, the longest after 30.00 s".to_owned()
                ),
                (
                    StatementKind::Took,
                    "`GET /slow HTTP/1.1` of 10.9.0.3:5003 to app/app1 took 30003 ms, of which 30000 ms waiting for the server's \
                     answer (Tr); 2 of 3 took 1.00 s or more, 1 were answered with an error of the server (5xx)"
                        .to_owned()
                ),
            ]
        );
    }

    #[test]
    fn connections_of_the_log_without_requests() {
        let text =
            "haproxy[7]: 10.9.0.1:5001 [01/Mar/2026:10:00:01.000] db pg/pg1 0/-1/3005 0 SC 1/1/0/0/3 0/0\n";
        let said = said(text);
        assert_eq!(said[0].0, StatementKind::Unreachable);
        assert!(
            said[1].1.starts_with(
                "a connection of 10.9.0.1:5001 to pg/pg1 took 3005 ms, of which 3005 ms connecting"
            ),
            "{said:?}"
        );
    }

    #[test]
    fn servers_that_are_down_and_queues() {
        let text = "# pxname,svname,qcur,qmax,scur,smax,slim,stot,status,lastchg,check_status\n\
            web,FRONTEND,,,3,9,2000,100,OPEN,,\napp,app1,4,12,50,50,50,900,UP,60,L7OK\napp,app2,0,0,0,3,50,7,DOWN,125,L4TOUT\n";
        assert_eq!(
            said(text),
            [
                (
                    StatementKind::Stalled,
                    "4 requests wait in the queue of app/app1, at most 12 at once".to_owned()
                ),
                (
                    StatementKind::Unreachable,
                    "app/app2 is DOWN for 2 min 5 s, check L4TOUT".to_owned()
                ),
                (
                    StatementKind::Exhausted,
                    "app/app1 has 50 of 50 sessions, which is its limit: 4 wait in its queue; app/app2 of the same backend is DOWN"
                        .to_owned()
                ),
                (
                    StatementKind::Took,
                    "web/FRONTEND has 3 of 2000 sessions".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn rubbish_is_no_session() {
        for text in [
            "a:1 [",
            "a:1 [01/Mar/2026:10:00:01.000] ",
            "a:1 [01/Mar/2026:10:00:01.000] f b/s 1/2/3 ",
            "a:1 [01/Mar/2026:10:00:01.000] f b/s -1/-1/-1/-1/99999999999999999999 200",
            "# pxname,svname,\n,,,\n# pxname,svname,qcur\na,b,18446744073709551616",
        ] {
            assert!(
                read_text("proxy", text.as_bytes()).observed.statements.len() <= 2,
                "{text}"
            );
        }
    }
}
