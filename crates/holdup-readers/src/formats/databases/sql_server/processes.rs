//! Processes of SQL Server as its deadlock graphs and its reports of blocked processes print them: who waits for which lock, for how long.
//!
//! In: XML or lines of the error log with `process id=… waitresource=… waittime=…`, the statements of their input buffers, and who owns which
//! lock. Out: a statement about each ring, or about the longest wait. Source: Microsoft's "Deadlocks guide" and `blocked process report`.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{holds, name_of, number};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("sql-server-processes", Family::Databases, recognise)
        .about("deadlock graphs and blocked process reports of SQL Server");

/// Processes that are kept, those that are told one by one, and bytes of a line.
const MAX_PROCESSES: usize = 500;
const NAMED: usize = 4;
const LINE_BYTES: usize = 16 << 10;

/// Milliseconds from which a wait for a lock is told as one: shorter ones are ordinary on a busy server.
const LONG_MS: f64 = 1_000.0;

/// Modes of locks that have a name of their own.
const MODES: [(&str, &str); 6] = [
    ("S", "a shared lock"),
    ("U", "an update lock"),
    ("X", "an exclusive lock"),
    ("Sch-M", "the lock for a change of the schema"),
    ("Sch-S", "the lock for a look at the schema"),
    ("IX", "an intent lock for a change"),
];

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(holds(head, "process id=") && holds(head, "waitresource=") && holds(head, "spid="))
}

#[derive(Debug, Default)]
struct Process {
    id: String,
    session: String,
    resource: String,
    mode: String,
    ms: f64,
    database: String,
    does: String,
    /// The place of the process that blocks it, as its own report says.
    by: Option<usize>,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    processes: Vec<Process>,
    /// Whether the lines of an input buffer are read.
    of_statement: bool,
    /// Whether the processes that follow block others.
    blocks: bool,
    /// The place of the process of this report that is blocked.
    blocked: Option<usize>,
    deadlock: Option<Quote>,
    victim: String,
}

/// The value of an attribute, with quotation marks or, in the error log, up to the next name.
fn attribute<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let at = text.match_indices(name).map(|(at, _)| at).find(|at| {
        text.get(..*at)
            .is_some_and(|before| before.ends_with([' ', '\t']))
    })?;
    let rest = text.get(at + name.len()..)?.strip_prefix('=')?;
    if let Some(quoted) = rest.strip_prefix('"') {
        return quoted.split('"').next().map(str::trim);
    }
    let end = rest.find('=').map_or(rest.len(), |next| {
        rest.get(..next)
            .and_then(|before| before.rfind(' '))
            .unwrap_or(next)
    });
    rest.get(..end).map(str::trim)
}

/// `PAGE: 6:1:32764` as words.
fn resource(text: &str) -> String {
    let Some((kind, of)) = text.split_once(':') else {
        return name_of(text);
    };
    let kind = match kind.trim() {
        "RID" => "row".to_owned(),
        "TAB" => "table".to_owned(),
        kind => kind.to_ascii_lowercase(),
    };
    format!("{kind} {}", name_of(of))
}

fn mode(text: &str) -> String {
    let known = MODES.iter().find(|(mode, _)| *mode == text);
    match known {
        Some((_, words)) => (*words).to_owned(),
        None if text.is_empty() => "a lock".to_owned(),
        None => format!("a lock ({text})"),
    }
}

impl Process {
    fn of(text: &str, quote: Quote) -> Option<Process> {
        let get = |name: &str| attribute(text, name).unwrap_or_default();
        let session = get("spid");
        (!session.is_empty()).then(|| Process {
            id: name_of(get("id")),
            session: name_of(session),
            resource: resource(get("waitresource")),
            mode: name_of(get("lockMode")),
            ms: number(get("waittime")).unwrap_or(0.0),
            database: name_of(get("currentdbname")),
            does: String::new(),
            by: None,
            quote,
        })
    }

    fn waits(&self) -> bool {
        !self.resource.is_empty()
    }

    fn ns(&self) -> Ns {
        (self.ms.clamp(0.0, 1e13) * 1e6) as Ns
    }

    fn said(&self) -> String {
        let of = match self.database.as_str() {
            "" => String::new(),
            database => format!(" of {database}"),
        };
        let does = match self.does.as_str() {
            "" => String::new(),
            does => format!(": `{does}`"),
        };
        let long = match self.ns() {
            0 => String::new(),
            ns => format!(" for {}", duration(ns)),
        };
        format!(
            "session {}{of} waits{long} for {} on {} that another session holds{does}",
            self.session,
            mode(&self.mode),
            self.resource
        )
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        let ring = text.contains("<deadlock") || text.contains("deadlock-list");
        // Another one, or its graph below reports of blocked processes.
        if ring && !self.processes.is_empty() {
            self.tell(out);
        }
        if ring {
            self.deadlock.get_or_insert_with(|| out.here());
        }
        let victim = attribute(&text, "victim").or_else(|| {
            text.contains("<victimProcess")
                .then(|| attribute(&text, "id"))
                .flatten()
        });
        if let Some(victim) = victim {
            self.deadlock.get_or_insert_with(|| out.here());
            self.victim = name_of(victim);
        }
        if text.contains("blocking-process") {
            self.blocks = !text.contains("</blocking-process");
        }
        if text.contains("<blocked-process-report") {
            self.blocked = None;
        }
        if text.contains("process id=") {
            self.of_statement = false;
            if let Some(one) = Process::of(&text, out.here()).filter(|_| self.processes.len() < MAX_PROCESSES)
            {
                let place = self.processes.len();
                match (self.blocks, self.blocked) {
                    (true, Some(blocked)) => {
                        if let Some(blocked) = self.processes.get_mut(blocked) {
                            blocked.by = Some(place);
                        }
                    }
                    (true, None) => {}
                    (false, _) => self.blocked = Some(place),
                }
                self.processes.push(one);
            }
            return Understood::Evidence;
        }
        let behind = text.split_once("<inputbuf>").map(|(_, behind)| behind);
        let begins = behind.is_some() || text.trim_end().ends_with("inputbuf");
        if begins || self.of_statement {
            let words = behind.unwrap_or(if begins { "" } else { text.as_str() });
            let ends = words.contains("</inputbuf");
            let words = words.split("</inputbuf").next().unwrap_or_default().trim();
            if let Some(one) = self
                .processes
                .last_mut()
                .filter(|one| one.does.is_empty() && !words.is_empty())
            {
                one.does = name_of(words);
            }
            self.of_statement = !ends;
            return Understood::Evidence;
        }
        match ring || victim.is_some() || text.contains('<') || text.contains("mode=") {
            true => Understood::Evidence,
            false => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.tell(out);
    }
}

impl Reader {
    /// Tells a ring, or the longest wait, and begins anew.
    fn tell(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let waiting: Vec<&Process> = read.processes.iter().filter(|one| one.waits()).collect();
        let longest = waiting.iter().max_by(|one, other| one.ms.total_cmp(&other.ms));
        let Some(longest) = longest else { return };
        if let Some(quote) = read.deadlock.filter(|_| waiting.len() > 1) {
            let named: Vec<String> = waiting.iter().take(NAMED).map(|one| one.said()).collect();
            let victim = read.processes.iter().find(|one| one.id == read.victim);
            let ended = victim.map_or_else(String::new, |one| {
                format!("; session {} was ended for it", one.session)
            });
            let text = format!(
                "deadlock of {} sessions: each holds a lock that another needs: {}{ended}",
                waiting.len(),
                named.join("; ")
            );
            out.statement(statements::one(StatementKind::Deadlock, None, quote, text));
            return;
        }
        let by = longest.by.and_then(|at| read.processes.get(at));
        let by = by
            .filter(|by| by.session != longest.session)
            .map_or_else(String::new, |by| {
                let does = if by.does.is_empty() {
                    String::new()
                } else {
                    format!(" (`{}`)", by.does)
                };
                format!("; session {}{does} blocks it", by.session)
            });
        let kind = match longest.ms >= LONG_MS {
            true => StatementKind::Stalled,
            false => StatementKind::Took,
        };
        out.statement(Statement {
            ns: Some(longest.ns()),
            ..statements::one(
                kind,
                None,
                longest.quote.clone(),
                format!("{}{by}", longest.said()),
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::attribute;
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "sql-server-processes");
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        (one.kind, one.text.clone())
    }

    const WAITER: &str = "<process id=\"process1a\" logused=\"0\" waitresource=\"KEY: 7:72057594 (8194443284a0)\" waittime=\"5125000\" lockMode=\"U\" \
        status=\"suspended\" spid=\"71\" sbid=\"0\" currentdbname=\"shop\">\n <executionStack>\n  <frame line=\"1\">\n unknown </frame>\n </executionStack>\n \
        <inputbuf>\nupdate basket set total = 3 where id = 9   </inputbuf>\n</process>\n";

    #[test]
    fn one_that_waits() {
        let told = "session 71 of shop waits for 85 min 25 s for an update lock on key 7:72057594 (8194443284a0) that another session holds: \
                    `update basket set total = 3 where id = 9`";
        assert_eq!(said(WAITER), (StatementKind::Stalled, told.to_owned()));
    }

    #[test]
    fn one_that_is_blocked_by_a_session_that_sleeps() {
        let text = format!(
            "<blocked-process-report monitorLoop=\"7\">\n<blocked-process>\n{WAITER}</blocked-process>\n<blocking-process>\n\
             <process status=\"sleeping\" spid=\"88\" waitresource=\"\" id=\"process2b\" currentdbname=\"shop\">\n<inputbuf>\nselect 1</inputbuf>\n</process>\n\
             </blocking-process>\n"
        );
        let (kind, told) = said(&text.replace("<process status", "<process id=\"process2b\" status"));
        assert_eq!(kind, StatementKind::Stalled);
        assert!(told.ends_with("; session 88 (`select 1`) blocks it"), "{told}");
    }

    #[test]
    fn each_report_has_its_own_blocker() {
        let report = |waiter: u32, ms: u32, blocker: u32| {
            format!(
                "<blocked-process-report>\n<blocked-process>\n<process id=\"p{waiter}\" waitresource=\"KEY: 7:72057594 (81)\" waittime=\"{ms}\" \
                 lockMode=\"U\" spid=\"{waiter}\">\n<inputbuf>\nupdate t set a = 1</inputbuf>\n</process>\n</blocked-process>\n<blocking-process>\n\
                 <process id=\"p{blocker}\" status=\"sleeping\" spid=\"{blocker}\" waitresource=\"\">\n<inputbuf>\nselect {blocker}</inputbuf>\n\
                 </process>\n</blocking-process>\n</blocked-process-report>\n"
            )
        };
        let (kind, told) = said(&format!("{}{}", report(71, 5_125_000, 88), report(90, 6_000, 12)));
        assert_eq!(kind, StatementKind::Stalled);
        assert!(
            told.starts_with("session 71 waits") && told.ends_with("; session 88 (`select 88`) blocks it"),
            "{told}"
        );
    }

    #[test]
    fn each_ring_is_one() {
        let ring = |one: u32, other: u32| {
            format!(
                "deadlock-list\n deadlock victim=p{one}\n  process-list\n   process id=p{one} waitresource=PAGE: 6:1:7 waittime=3203 ownerId=9 lockMode=S \
                 spid={one} ecid=0\n    inputbuf\nselect {one}\n   process id=p{other} waitresource=RID: 6:1:70:3 waittime=1187 ownerId=8 lockMode=X \
                 spid={other} ecid=0\n    inputbuf\ndelete {other}\n"
            )
        };
        let text = format!("{}{}{}", ring(55, 61), ring(70, 72), ring(80, 81));
        let all = read_text("s", text.as_bytes()).observed.statements;
        assert_eq!(all.len(), 3);
        for (one, session) in all.iter().zip([55, 70, 80]) {
            assert!(
                one.text.starts_with("deadlock of 2 sessions")
                    && one
                        .text
                        .ends_with(&format!("; session {session} was ended for it")),
                "{all:?}"
            );
        }
    }

    #[test]
    fn a_ring_in_the_error_log() {
        let text = "deadlock-list\n deadlock victim=process1a\n  process-list\n   process id=process1a waitresource=PAGE: 6:1:70133 waittime=3203 \
            ownerId=9 lockMode=S spid=55 ecid=0 currentdb=6\n    inputbuf\nselect * from basket\n   process id=process2b waitresource=RID: 6:1:70:3 waittime=1187 \
            ownerId=8 lockMode=X spid=61 ecid=0\n    inputbuf\ndelete from basket\n";
        let (kind, told) = said(text);
        assert_eq!(kind, StatementKind::Deadlock);
        assert!(
            told.starts_with(
                "deadlock of 2 sessions: each holds a lock that another needs: session 55 waits for 3.20 s for a shared lock on page 6:1:70133 that \
                 another session holds: `select * from basket`; session 61 waits for 1.19 s for an exclusive lock on row 6:1:70:3"
            ),
            "{told}"
        );
        assert!(told.ends_with("; session 55 was ended for it"), "{told}");
    }

    #[test]
    fn one_that_waits_for_nothing_says_nothing() {
        let text =
            "<process id=\"p1\" waitresource=\"\" waittime=\"0\" spid=\"5\" status=\"sleeping\"></process>\n";
        assert!(read_text("s", text.as_bytes()).observed.statements.is_empty());
        assert_eq!(attribute("a xid=3 id=\"7 8\" c", "id"), Some("7 8"));
        assert_eq!(attribute("id=1", "id"), None);
        for text in [
            "process id= waitresource= spid=",
            "process id=\" waitresource=\": spid=\"",
            "<victimProcess process id= waitresource==spid= ",
        ] {
            let _ = read_text("s", text.as_bytes());
        }
    }
}
