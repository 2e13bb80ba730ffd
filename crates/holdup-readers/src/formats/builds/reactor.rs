//! Maven's summary of a build of several modules: `Reactor Summary`.
//!
//! In: rows `[INFO] shop-core ........ SUCCESS [ 12.345 s]` or `[02:03 min]`, and `Total time:`. Out: a statement about the module that
//! failed, or else about the one that took longest, with its share. Source: `ExecutionEventLogger` of Maven.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, clock, holds, length, name_of, ns_of, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{counted, duration, whole_percent};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("maven-reactor", Family::Logs, recognise).about("Maven's summary of modules");

fn recognise(head: &[u8]) -> Sureness {
    let titled = holds(head, "Reactor Summary") || holds(head, "SUCCESS [") || holds(head, "FAILURE [");
    Sureness::certain_if(titled && any_line(head, |line| Row::of(line).is_some()))
}

#[derive(Debug, PartialEq)]
struct Row<'a> {
    name: &'a str,
    state: &'a str,
    seconds: f64,
}

/// What stands behind `[INFO] `, and a time before it.
fn message(line: &str) -> &str {
    let behind = line.split_once("[INFO]").or_else(|| line.split_once("[ERROR]"));
    behind.map_or(line, |(_, rest)| rest).trim()
}

/// `12.345 s`, `02:03 min`, `01:02 h`; of versions before 3.1 `12.345s` and `12:37.724s`.
fn time(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some(minutes) = text.strip_suffix("min") {
        return clock(minutes.trim());
    }
    if let Some(minutes) = text.strip_suffix('s').filter(|rest| rest.contains(':')) {
        return clock(minutes.trim());
    }
    match text.strip_suffix('h') {
        Some(hours) => clock(hours.trim()).map(|seconds| seconds * 60.0),
        None => length(text),
    }
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Row<'a>> {
        let text = message(line);
        let (rest, bracket) = text.split_once(" [")?;
        let inner = bracket.split(']').next()?;
        let (name, state) = rest.trim_end().rsplit_once(' ')?;
        if !matches!(state, "SUCCESS" | "FAILURE") {
            return None;
        }
        // Dots fill the room between the name and the state.
        let name = name.trim().trim_end_matches('.').trim_end();
        (!name.is_empty() && name.len() < 200).then_some(Row {
            name,
            state,
            seconds: time(inner)?,
        })
    }
}

#[derive(Debug, Default)]
struct Reader {
    modules: Largest,
    failed: Option<(f64, String, Quote)>,
    skipped: u64,
    whole: Option<f64>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(row) = Row::of(&text) {
            self.modules.take(row.seconds, row.name, out.here());
            if row.state == "FAILURE" && self.failed.is_none() {
                self.failed = Some((row.seconds, name_of(row.name), out.here()));
            }
            return Understood::Evidence;
        }
        let message = message(&text);
        if message.starts_with("Reactor Summary") {
            if self.modules.count > 0 {
                self.end(out);
            }
            return Understood::Evidence;
        }
        if self.modules.count > 0 && message.ends_with(" SKIPPED") {
            self.skipped = self.skipped.saturating_add(1);
            return Understood::Evidence;
        }
        if let Some(whole) = message.strip_prefix("Total time:") {
            let whole = whole.split('(').next().unwrap_or_default();
            self.whole = time(whole);
            return Understood::Evidence;
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let told = |seconds: f64| duration(ns_of(seconds));
        if let Some((seconds, name, quote)) = &read.failed {
            let skipped = match read.skipped {
                0 => String::new(),
                count => format!(
                    "; {} skipped behind it",
                    counted(count, "module was", "modules were")
                ),
            };
            let text = format!("module {name} failed after {}{skipped}", told(*seconds));
            let ns = Some(ns_of(*seconds));
            out.statement(statements::one(StatementKind::Failed, ns, quote.clone(), text));
        }
        let Some((seconds, name, quote)) = &read.modules.first else {
            return;
        };
        let sum = read.modules.sum;
        let mut text = format!(
            "module {name} took {}, {} of all {} modules' time",
            told(*seconds),
            whole_percent(ns_of(*seconds), ns_of(sum)),
            read.modules.count
        );
        text.push_str(&read.modules.and_next(told));
        if let Some(whole) = read.whole {
            text.push_str(&format!("; the build took {}", told(whole)));
        }
        out.statement(Statement {
            share: Some(seconds / sum).filter(|share| share.is_finite()),
            ..statements::one(StatementKind::Took, Some(ns_of(*seconds)), quote.clone(), text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const SUMMARY: &str = "[INFO] Reactor Summary for shop 2.0:\n[INFO] \n\
        [INFO] shop ............................................... SUCCESS [  0.500 s]\n\
        [INFO] shop-core .......................................... SUCCESS [ 29.500 s]\n\
        [INFO] shop-web ........................................... SUCCESS [02:30 min]\n\
        [INFO] ------------------------------------------------------------------------\n\
        [INFO] BUILD SUCCESS\n[INFO] Total time:  03:01 min\n";

    #[test]
    fn the_module_that_took_longest() {
        let reading = read_text("m", SUMMARY.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "maven-reactor");
        assert_eq!(
            reading.texts(),
            [
                "module shop-web took 2 min 30 s, 83 % of all 3 modules' time; next shop-core, 29.50 s; the build took 3 min 1 s"
            ]
        );
    }

    #[test]
    fn the_module_that_failed_comes_first() {
        let text = "[INFO] shop-core ... FAILURE [  3.500 s]\n[INFO] shop-web ... SKIPPED\n";
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Failed);
        assert_eq!(
            reading.texts()[0],
            "module shop-core failed after 3.50 s; 1 module was skipped behind it"
        );
    }

    #[test]
    fn other_logs_are_none() {
        for text in [
            "test a SUCCESS [see the log]\n",
            "[INFO] BUILD SUCCESS\n[INFO] Total time: 3 s\n",
        ] {
            assert_ne!(
                read_text("m", text.as_bytes()).observed.sources[0].format,
                "maven-reactor"
            );
        }
    }

    #[test]
    fn minutes_of_older_versions_are_no_unreadable_row() {
        let old = SUMMARY.replace("[02:30 min]", "[2:30.000s]");
        let found = read_text("m", old.as_bytes()).observed;
        assert!(
            found.statements[0]
                .text
                .starts_with("module shop-web took 2 min 30 s"),
            "{:?}",
            found.statements[0]
        );
    }
}
