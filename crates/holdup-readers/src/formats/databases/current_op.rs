//! `db.currentOp()` of MongoDB.
//!
//! In: documents as its shells print them, with names in quotation marks or without, on many lines or on one. Out: the operation that has
//! run longest, and how many wait for a lock. Names and values are taken as they come: `opid` begins another operation.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("current-op", Family::Databases, recognise).about("db.currentOp() of MongoDB");

/// Bytes of a value that are kept, and pairs of one line.
const VALUE: usize = 100;
const PAIRS: usize = 20_000;

const SECOND: Ns = 1_000_000_000;

/// Seconds from which an operation is slow by the server's own log it is 0.1; a list that was asked for by hand shows those of seconds.
const SLOW_OPERATION_NS: Ns = SECOND;

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &[u8]| memchr::memmem::find(head, name).is_some();
    let runs = has(b"secs_running") || has(b"microsecs_running") || has(b"waitingForLock");
    Sureness::certain_if(runs && has(b"opid"))
}

/// One operation.
#[derive(Debug, Default)]
struct Operation {
    id: String,
    active: bool,
    ns: Option<Ns>,
    kind: String,
    collection: String,
    connection: String,
    client: String,
    plan: String,
    waits: bool,
    quote: Quote,
}

impl Operation {
    /// What the server does for itself without end.
    fn is_own(&self) -> bool {
        self.kind == "none"
            || self.collection.starts_with("local.oplog")
            || self.client.is_empty() && self.connection.is_empty()
    }

    fn described(&self) -> String {
        let mut text = format!("operation {}", self.id);
        let mut parts = Vec::new();
        if !self.kind.is_empty() {
            parts.push(match self.collection.as_str() {
                "" => self.kind.clone(),
                collection => format!("{} on {collection}", self.kind),
            });
        }
        parts.extend(
            [&self.connection, &self.client]
                .into_iter()
                .filter(|part| !part.is_empty())
                .cloned(),
        );
        if !parts.is_empty() {
            text.push_str(&format!(" ({})", parts.join(", ")));
        }
        text
    }
}

#[derive(Debug, Default)]
struct Reader {
    operation: Option<Operation>,
    /// Of the description, which stands before the number.
    connection: Option<String>,
    longest: Option<Operation>,
    waiting: u64,
    longest_waiting: Option<Operation>,
    count: u64,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        let mut known = false;
        for (name, value) in Pairs(&text).take(PAIRS) {
            known |= self.pair(name, value, out);
        }
        match known || text.trim().chars().all(|char| char.is_ascii_punctuation()) {
            true => Understood::Evidence,
            false => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let longest_waiting = self.longest_waiting.take();
        let waiting = longest_waiting.as_ref().map(|one| {
            let for_so_long = one
                .ns
                .map(|ns| format!(", for {} at most", duration(ns)))
                .unwrap_or_default();
            format!("; {} wait for a lock{for_so_long}", self.waiting)
        });
        let Some(longest) = self.longest.take().or(longest_waiting) else {
            return;
        };
        let ns = longest.ns.unwrap_or(0);
        let (kind, norm) = match () {
            () if self.waiting > 0 => (StatementKind::Stalled, String::new()),
            () if ns >= SLOW_OPERATION_NS => (StatementKind::Took, String::new()),
            () => (
                StatementKind::WithinNorm,
                format!(
                    ", the longest of {} (from {} on it is long)",
                    self.count,
                    duration(SLOW_OPERATION_NS)
                ),
            ),
        };
        let plan = match longest.plan.as_str() {
            "" => String::new(),
            "COLLSCAN" => ", reads the whole collection (COLLSCAN)".to_owned(),
            plan => format!(", plan {plan}"),
        };
        let text = format!(
            "{} has run for {}{plan}{norm}{}",
            longest.described(),
            duration(ns),
            waiting.unwrap_or_default()
        );
        out.statement(Statement {
            ns: Some(ns),
            ..statements::one(kind, None, longest.quote, text)
        });
    }
}

impl Reader {
    fn pair(&mut self, name: &str, value: &str, out: &Out<'_>) -> bool {
        let cut = || value.chars().take(VALUE).collect::<String>();
        let number = || value.parse::<u64>().ok();
        match name {
            "desc" => {
                self.close();
                self.connection = Some(cut());
                return true;
            }
            "opid" => {
                if self.operation.as_ref().is_some_and(|one| !one.id.is_empty()) {
                    self.close();
                }
                self.current(out).id = cut();
                return true;
            }
            _ => {}
        }
        let operation = match name {
            "active" | "secs_running" | "microsecs_running" | "op" | "ns" | "client" | "planSummary"
            | "waitingForLock" => self.current(out),
            _ => return false,
        };
        match name {
            "active" => operation.active = value == "true",
            "secs_running" => operation.ns = operation.ns.max(number().and_then(|s| s.checked_mul(SECOND))),
            "microsecs_running" => {
                operation.ns = operation.ns.max(number().and_then(|us| us.checked_mul(1_000)))
            }
            "op" if operation.kind.is_empty() => operation.kind = cut(),
            "ns" if operation.collection.is_empty() => operation.collection = cut(),
            "client" if operation.client.is_empty() => operation.client = cut(),
            "planSummary" => operation.plan = cut(),
            "waitingForLock" => operation.waits = value == "true",
            _ => {}
        }
        true
    }

    fn current(&mut self, out: &Out<'_>) -> &mut Operation {
        let connection = &mut self.connection;
        self.operation.get_or_insert_with(|| Operation {
            active: true,
            connection: connection.take().unwrap_or_default(),
            quote: out.here(),
            ..Operation::default()
        })
    }

    fn close(&mut self) {
        let Some(operation) = self.operation.take().filter(|one| !one.is_own()) else {
            return;
        };
        self.count += 1;
        if operation.waits {
            self.waiting += 1;
            if self
                .longest_waiting
                .as_ref()
                .is_none_or(|most| operation.ns > most.ns)
            {
                self.longest_waiting = Some(operation);
            }
        } else if operation.active
            && operation.ns.is_some()
            && self.longest.as_ref().is_none_or(|most| operation.ns > most.ns)
        {
            self.longest = Some(operation);
        }
    }
}

/// Names with a colon behind them, and the value behind that, of a line.
pub(super) struct Pairs<'a>(pub(super) &'a str);

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$');
        loop {
            let begin = self.0.find(is_part)?;
            let rest = self.0.get(begin..)?;
            let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
            let (name, behind) = rest.split_at_checked(end)?;
            let bare = behind.trim_start_matches(['"', '\'']).trim_start();
            let Some(value) = bare.strip_prefix(':') else {
                self.0 = behind;
                continue;
            };
            let value = value.trim_start();
            if let Some(string) = value.strip_prefix(['"', '\'']) {
                let end = string.find(['"', '\'']).unwrap_or(string.len());
                let (text, rest) = string.split_at_checked(end)?;
                self.0 = rest;
                return Some((name, text));
            }
            // `NumberLong(1843)`, `NumberLong("1843")`, `Long('1843')`.
            let inner = value
                .strip_prefix("NumberLong(")
                .or_else(|| value.strip_prefix("Long("))
                .unwrap_or(value)
                .trim_start_matches(['"', '\'']);
            let end = inner
                .find(|char: char| !(char.is_alphanumeric() || matches!(char, '.' | '_' | '-')))
                .unwrap_or(inner.len());
            let (word, rest) = inner.split_at_checked(end)?;
            self.0 = rest;
            return Some((name, word));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "current-op");
        let all = reading.observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    const LIST: &str = "{\n  inprog: [\n    {\n      desc: 'conn44',\n      client: '10.1.2.3:51144',\n      active: true,\n      opid: 881,\n      \
        secs_running: Long('1843'),\n      op: 'command',\n      ns: 'shop.orders',\n      planSummary: 'COLLSCAN',\n      waitingForLock: false\n    },\n    \
        {\n      desc: 'conn45',\n      active: true,\n      opid: 882,\n      secs_running: Long('21'),\n      op: 'update',\n      ns: 'shop.orders',\n      \
        waitingForLock: true\n    }\n  ],\n  ok: 1\n}\n";

    #[test]
    fn the_operation_that_has_run_longest_and_who_waits() {
        let text = "operation 881 (command on shop.orders, conn44, 10.1.2.3:51144) has run for 30 min 43 s, reads the whole collection \
            (COLLSCAN); 1 wait for a lock, for 21.00 s at most";
        assert_eq!(said(LIST), [(StatementKind::Stalled, text.to_owned())]);
        let line = LIST.replace('\n', " ");
        assert_eq!(said(&line), [(StatementKind::Stalled, text.to_owned())]);
    }

    #[test]
    fn short_operations_are_well_and_rubbish_says_nothing() {
        let well = LIST
            .replace("1843", "0")
            .replace("'21'", "'0'")
            .replace("waitingForLock: true", "waitingForLock: false");
        assert_eq!(said(&well)[0].0, StatementKind::WithinNorm);
        for end in 0..LIST.len() {
            let _ = read_text("m", LIST.as_bytes().get(..end).unwrap_or_default());
        }
        let _ = read_text(
            "m",
            b"opid opid: secs_running: : \" NumberLong( ' waitingForLock:::{{{",
        );
    }
}
