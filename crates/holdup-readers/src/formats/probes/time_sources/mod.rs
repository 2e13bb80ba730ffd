//! `ntpq -p` and `chronyc sources`: the servers that a machine takes its time from.
//!
//! In: a heading, a row for each server, with a sign in front that says what became of it. Out: one statement: that none is used or
//! answers, or the one that is used, how far the clock is from it, and which others do not answer. Sources: the manuals of ntpq and
//! chronyc, and ntpd's, by which a clock that is 128 ms away is stepped.

use super::cut;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::decimal;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("time-sources", Family::Host, recognise)
    .about("ntpq -p, chronyc sources")
    .openings(&["MS Name/IP address"]);

/// Servers that are kept, and that a statement names.
const MAX_SERVERS: usize = 200;
const MAX_NAMED: usize = 4;

/// Bytes of a name.
const NAME_BYTES: usize = 120;

/// The distance at which ntpd steps the clock instead of leading it back (`tinker step`).
const STEP_NS: Ns = 128_000_000;

/// The last eight questions, where all were answered.
const ALL_ANSWERED: u32 = 0o377;

/// Milliseconds and nanoseconds that are believed.
const MAX_MS: f64 = 1e13;

/// What stands in the place of a server where there is none: a pool to be asked, a group that is listened to.
const NO_SERVERS: [&str; 5] = [".POOL.", ".BCST.", ".MCST.", ".ACST.", ".XFAC."];

fn recognise(head: &[u8]) -> Sureness {
    let text = text_of(head);
    let mut rows = 0;
    for line in text.lines() {
        if Table::of(line).is_some() {
            return Sureness::Certain;
        }
        rows += usize::from(
            Server::of_ntpq(line.trim())
                .or_else(|| Server::of_chronyc(line.trim()))
                .is_some(),
        );
    }
    // Rows alone: one may be chance.
    Sureness::certain_if(rows >= 2)
}

/// Which of the tools prints such a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    Ntpq,
    Chronyc,
}

impl Table {
    fn of(heading: &str) -> Option<Table> {
        let mut words = heading.split_whitespace();
        match (words.next()?, words.next()?) {
            ("remote", "refid") => Some(Table::Ntpq),
            ("MS", "Name/IP") => Some(Table::Chronyc),
            _ => None,
        }
    }
}

/// What became of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// The clock follows it.
    Followed,
    /// It is good, or may become so.
    Spare,
    /// Its time is wrong by what the others say, or varies too much.
    Refused,
}

/// A row.
#[derive(Debug, Clone)]
struct Server {
    name: String,
    used: Use,
    /// Whether what became of it is told: a copy may have lost the sign in front, and who answers each time has one.
    signed: bool,
    answers: bool,
    /// How far the clock is from it.
    offset: Option<Ns>,
}

impl Server {
    /// `*ntp1.example  .GPS.  1 u  35  64  377  0.512  0.123  0.051`: delay, offset and jitter in milliseconds.
    fn of_ntpq(line: &str) -> Option<Server> {
        let words: Vec<&str> = line.split_whitespace().take(12).collect();
        // A long name may be joined to what stands behind it, or stand on a line of its own.
        let tail = words.get(words.len().checked_sub(9)?..)?;
        let [refid, stratum, kind, when, poll, reach, delay, offset, jitter] = tail else {
            return None;
        };
        let name = words.first().filter(|_| words.len() == 10)?;
        let number = |word: &str| decimal(word.trim_end_matches(['m', 'h', 'd']).as_bytes());
        let octal = u32::from_str_radix(reach, 8).ok()?;
        let fits = number(stratum).is_some()
            && matches!(
                *kind,
                "u" | "l" | "s" | "b" | "m" | "p" | "a" | "A" | "B" | "M" | "S" | "-"
            )
            && (*when == "-" || number(when).is_some())
            && number(poll).is_some()
            && number(delay).is_some()
            && number(jitter).is_some();
        if !fits || NO_SERVERS.contains(refid) {
            return None;
        }
        // A name may begin with an `o` or an `x` of its own; an address does not.
        let letter = |sign: &str| {
            let rest = name.strip_prefix(sign)?;
            rest.starts_with(|next: char| next.is_ascii_digit()).then_some(())
        };
        let followed = name.starts_with('*') || letter("o").is_some();
        let refused = letter("x").is_some();
        let signed = name.starts_with(['*', '#', '+', '-', '.', '~']) || followed || refused;
        let offset = decimal(offset.as_bytes())?;
        Some(Server {
            name: cut(name.get(usize::from(signed)..)?),
            used: match () {
                () if followed => Use::Followed,
                () if refused => Use::Refused,
                () => Use::Spare,
            },
            signed: signed || octal != ALL_ANSWERED,
            answers: octal != 0,
            offset: Some((offset.abs().min(MAX_MS) * 1e6) as Ns),
        })
    }

    /// `^* ntp1.example  2  6  377  34  +12us[ +15us] +/-  10ms`.
    fn of_chronyc(line: &str) -> Option<Server> {
        let mut words = line.split_whitespace();
        let mut signs = words.next()?.chars();
        let (mode, state, more) = (signs.next()?, signs.next()?, signs.next());
        if !"^=#".contains(mode) || !"*+-?x~".contains(state) || more.is_some() {
            return None;
        }
        let name = words.next()?;
        let (_stratum, _poll) = (
            decimal(words.next()?.as_bytes())?,
            decimal(words.next()?.as_bytes())?,
        );
        let reach = u32::from_str_radix(words.next()?, 8).ok()?;
        let _last = words.next()?;
        let sample = words.next()?;
        Some(Server {
            name: cut(name),
            used: match state {
                '*' => Use::Followed,
                'x' | '~' => Use::Refused,
                _ => Use::Spare,
            },
            signed: true,
            answers: reach != 0,
            offset: length(sample.split('[').next().unwrap_or_default()),
        })
    }
}

/// `+12us`, `-3406ns`, `+1.2s`.
fn length(word: &str) -> Option<Ns> {
    let word = word.trim_start_matches(['+', '-']);
    let digits = word.find(|char: char| char.is_ascii_alphabetic())?;
    let (number, unit) = word.split_at_checked(digits)?;
    let unit = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let value = decimal(number.as_bytes()).filter(|value| (0.0..MAX_MS).contains(value))?;
    Some((value * unit) as Ns)
}

#[derive(Debug, Default)]
struct Reader {
    servers: Vec<(Server, Quote)>,
    /// A line that is one word: a long name, whose row follows (`ntpq -pw`).
    long_name: Option<String>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if Table::of(text).is_some() {
            // The same is asked again and again while somebody waits for it to get better: the last stands.
            self.servers.clear();
            return Understood::Evidence;
        }
        let long_name = self.long_name.take().map(|name| format!("{name} {text}"));
        let server = Server::of_ntpq(text)
            .or_else(|| Server::of_chronyc(text))
            .or_else(|| Server::of_ntpq(&long_name?));
        if let Some(server) = server {
            if self.servers.len() < MAX_SERVERS {
                self.servers.push((server, out.here()));
            }
            return Understood::Evidence;
        }
        let is_name =
            text.len() <= NAME_BYTES && !text.contains(char::is_whitespace) && text.contains(['.', ':']);
        if is_name {
            self.long_name = Some(text.to_owned());
        }
        // `chronyc sources -v` explains its signs in a drawing.
        let says_nothing = is_name
            || text.starts_with(['.', '/', '|', '`', '\\'])
            || text.contains("Number of sources")
            || text.bytes().all(|byte| byte == b'=')
            || NO_SERVERS.iter().any(|name| text.contains(name));
        match says_nothing {
            true => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let servers = std::mem::take(&mut self.servers);
        if let Some(statement) = judge(&servers) {
            out.statement(statement);
        }
    }
}

fn judge(servers: &[(Server, Quote)]) -> Option<Statement> {
    let (_, first) = servers.first()?;
    let listed = |which: &dyn Fn(&Server) -> bool| {
        let found = servers.iter().map(|(server, _)| server);
        let found: Vec<&str> = found
            .filter(|server| which(server))
            .map(|server| server.name.as_str())
            .collect();
        let end = if found.len() > MAX_NAMED { ", …" } else { "" };
        let named = found.iter().take(MAX_NAMED).copied().collect::<Vec<_>>();
        (found.len(), format!("{}{end}", named.join(", ")))
    };
    let all = servers.len();
    let (silent, silent_names) = listed(&|server| !server.answers);
    let (refused, refused_names) = listed(&|server| server.answers && server.used == Use::Refused);
    let mut others = String::new();
    if silent > 0 {
        others.push_str(&format!(
            "; {silent} of {all} do not answer (reach 0): {silent_names}"
        ));
    }
    if refused > 0 {
        others.push_str(&format!(
            "; {refused} of {all} are refused, their time is off or varies: {refused_names}"
        ));
    }
    let followed = servers.iter().find(|(server, _)| server.used == Use::Followed);
    if followed.is_none() && !servers.iter().any(|(server, _)| server.signed) {
        return None;
    }
    let Some((server, quote)) = followed else {
        let (kind, text) = match silent == all {
            true => (
                StatementKind::Unreachable,
                format!("no time server answers (reach 0): {silent_names}"),
            ),
            false => (
                StatementKind::Failed,
                format!("the clock follows none of its {all} time servers{others}"),
            ),
        };
        return Some(statements::one(kind, None, first.clone(), text));
    };
    let off = server.offset.unwrap_or(0);
    let kind = match () {
        () if off >= STEP_NS || !server.answers => StatementKind::Failed,
        () if silent + refused > 0 => StatementKind::Warned,
        () => StatementKind::WithinNorm,
    };
    let text = format!(
        "the clock is {} from {}, which it follows (from {} on it is wrong){others}",
        duration(off),
        server.name,
        duration(STEP_NS)
    );
    Some(statements::one(kind, Some(off), quote.clone(), text))
}

#[cfg(test)]
mod tests;
