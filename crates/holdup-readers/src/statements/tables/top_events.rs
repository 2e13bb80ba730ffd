//! The events that a database spent most time in, as Oracle's reports list them: `Top 5 Timed Events`.
//!
//! In: lines. Out: of each list the event with the largest share. Pages wrap its rows and lose its blanks, so that a row is a name, then numbers,
//! on whatever lines they stand: how often, seconds, perhaps a mean, and last its share of the time in per cent. Time on the CPU has no count.

use super::Fact;
use super::wait_events::meaning;
use crate::gather::text_of;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;

/// Events of one list.
const EVENTS: usize = 20;

/// Numbers of one event, and bytes of its name.
const NUMBERS: usize = 6;
const NAME: usize = 60;

/// Lines of the heading.
const HEADING: u32 = 6;

#[derive(Debug, Default)]
struct Event {
    name: String,
    numbers: Vec<f64>,
    line: u64,
}

/// Follows one list.
#[derive(Debug, Default)]
pub(in crate::statements) struct TopEvents {
    /// Lines of the heading that may still come; none where no list is being read.
    heading: u32,
    in_list: bool,
    events: Vec<Event>,
    facts: Vec<Fact>,
}

/// `Top 5 Timed Events`, `Top 10 Foreground Events by Total Wait Time`.
fn begins(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"Top ") else {
        return false;
    };
    let text = text_of(rest.get(..NAME).unwrap_or(rest));
    let mut words = text.split_whitespace();
    let number = words.next().is_some_and(|word| word.parse::<u32>().is_ok());
    number
        && text.contains("Event")
        && (text.contains("Timed") || text.contains("Foreground") || text.contains("Wait"))
}

/// A number, perhaps with thousands or with a unit: `2,598`, `.99`, `1.2K`, `4.51ms`.
fn number(word: &str) -> Option<f64> {
    let end = word
        .find(|char: char| !(char.is_ascii_digit() || matches!(char, ',' | '.')))
        .unwrap_or(word.len());
    let (digits, unit) = word.split_at_checked(end)?;
    let factor = match unit {
        "" | "ms" | "us" | "s" | "ns" | "%" => 1.0,
        "K" => 1e3,
        "M" => 1e6,
        _ => return None,
    };
    let plain: String = digits.chars().filter(|char| *char != ',').collect();
    Some(plain.parse::<f64>().ok()? * factor)
}

impl TopEvents {
    /// Whether no list is being read.
    pub(in crate::statements) fn is_idle(&self) -> bool {
        self.heading == 0 && !self.in_list
    }

    /// Takes a line; whether it is of such a list.
    pub(in crate::statements) fn line(&mut self, line: &[u8], at: u64) -> bool {
        if begins(line) {
            self.close();
            self.heading = HEADING;
            return true;
        }
        if self.is_idle() {
            return false;
        }
        let rule = line.starts_with(b"---");
        if self.heading > 0 {
            self.heading -= 1;
            if rule {
                self.heading = 0;
                self.in_list = true;
            }
            return true;
        }
        if rule || line.is_empty() && !self.events.is_empty() || self.events.len() > EVENTS {
            self.close();
            return rule;
        }
        if rule_of_another(line) {
            return true;
        }
        self.row(line, at);
        true
    }

    fn row(&mut self, line: &[u8], at: u64) {
        let text = text_of(line.get(..200).unwrap_or(line));
        let mut named = false;
        for word in text.split_whitespace() {
            match number(word) {
                Some(number) => {
                    if let Some(event) = self
                        .events
                        .last_mut()
                        .filter(|event| event.numbers.len() < NUMBERS)
                    {
                        event.numbers.push(number);
                        named = true;
                    }
                }
                // Behind the numbers stands the class of the event.
                None if named => {}
                None => {
                    let open = self.events.last_mut().filter(|event| event.numbers.is_empty());
                    match open {
                        Some(event) if event.name.len() < NAME => {
                            event.name.push(' ');
                            event.name.push_str(word);
                        }
                        Some(_) => {}
                        None => self.events.push(Event {
                            name: word.to_owned(),
                            numbers: Vec::new(),
                            line: at,
                        }),
                    }
                }
            }
        }
    }

    fn close(&mut self) {
        self.heading = 0;
        self.in_list = false;
        let mut shares: Vec<(f64, &Event)> = self
            .events
            .iter()
            .filter_map(|event| Some((*event.numbers.last().filter(|_| event.numbers.len() > 1)?, event)))
            .filter(|(share, _)| (0.0..=100.0).contains(share))
            .collect();
        shares.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        if let Some((share, event)) = shares.first() {
            let (count, seconds) = match event.numbers.as_slice() {
                [seconds, _] => (None, *seconds),
                [count, seconds, ..] => (Some(*count), *seconds),
                _ => (None, 0.0),
            };
            let mut text = format!("{}: {share} % of the database's time, {seconds} s", event.name);
            if let Some(count) = count {
                let mean = (seconds / count.max(1.0) * 1e9).clamp(0.0, super::MOST_NS) as Ns;
                text.push_str(&format!(" in {count} waits of {} at the mean", duration(mean)));
            }
            if let Some(meaning) = meaning(&event.name) {
                text.push_str(&format!(" ({meaning})"));
            }
            if let Some((share, next)) = shares.get(1) {
                text.push_str(&format!("; next {}, {share} %", next.name));
            }
            self.facts.push(Fact {
                kind: StatementKind::Took,
                share: Some(share / 100.0),
                ns: Some((seconds * 1e9).clamp(0.0, super::MOST_NS) as Ns),
                line: event.line,
                text,
            });
        }
        self.events.clear();
    }

    /// Everything that was said.
    pub(in crate::statements) fn end(&mut self) -> Vec<Fact> {
        self.close();
        std::mem::take(&mut self.facts)
    }
}

/// A line of signs alone: below a title.
fn rule_of_another(line: &[u8]) -> bool {
    !line.iter().any(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn said(text: &str) -> String {
        let all = read_text("t", text.as_bytes()).observed.statements;
        all.into_iter().map(|one| one.text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn wrapped_rows_and_rows_with_a_class() {
        let wrapped = "Top 5 Timed Events\n~~~~ % Total\nEvent\nWaits Time (s) Ela Time\n--------- -----\nlog file\nsync\n7,001 900\n61.5\nCPU time\n200 13.7\nlatch free\n9 1\n.99\n";
        assert!(
            said(wrapped).contains(
                "log file sync: 61.5 % of the database's time, 900 s in 7001 waits of 129 ms at the mean (commits wait for the log writer); next CPU time, 13.7 %"
            ),
            "{}",
            said(wrapped)
        );
        let classes = "Top 10 Foreground Events by Total Wait Time\n~~~~~~~~~~\n                 Total Wait       Wait   % DB Wait\nEvent    Waits Time (sec)    Avg(ms)   time Class\n------- ------ ---------- ---------- ------ ------\nenq: TX - row lock contention   1,204   2.5K   2076.40   71.2 Applicatio\nDB CPU    800.1      22.8\n";
        assert!(
            said(classes).contains("enq: TX - row lock contention: 71.2 % of the database's time, 2500 s in 1204 waits of 2.08 s at the mean (sessions wait for rows that other transactions have locked); next DB CPU, 22.8 %"),
            "{}",
            said(classes)
        );
    }

    #[test]
    fn other_lists_and_rubbish_are_none() {
        for text in [
            "Top 5 songs\n---\na 1 2\n",
            "Top 3 Timed Events\n",
            "Top 3 Timed Events\n---\n1 2\n\n",
        ] {
            assert!(!said(text).contains("database"), "{}", said(text));
        }
    }
}
