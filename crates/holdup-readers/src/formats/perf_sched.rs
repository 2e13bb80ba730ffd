//! `perf sched latency` and `perf sched timehist`: how long tasks waited for a CPU.
//!
//! In: tables of either, recognised by their headings. Out: a statement for the task that waited longest for a CPU, with its average where the
//! table has one, and how long it ran.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("perf-sched", Family::Host, recognise).about("perf sched latency and timehist");

/// Nanoseconds of a millisecond, in which all columns are.
const MS: f64 = 1e6;

/// The longest time that is believed, milliseconds: a year.
const MOST_MS: f64 = 3e10;

/// Bytes of a name that are kept.
const NAME: usize = 80;

/// Which of the tables it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    Latency,
    History,
}

fn heading(line: &str) -> Option<Table> {
    if line.contains("Task") && line.contains("Runtime ms") && line.contains("delay ms") {
        return Some(Table::Latency);
    }
    (line.contains("task name") && line.contains("sch delay") && line.contains("run time"))
        .then_some(Table::History)
}

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(text_of(head).lines().any(|line| heading(line).is_some()))
}

/// What a row says of a task.
#[derive(Debug, PartialEq)]
struct Row {
    task: String,
    /// The longest wait for a CPU, milliseconds.
    longest: f64,
    average: Option<f64>,
    switches: Option<u64>,
    ran: f64,
}

/// Milliseconds; none of what can be none.
fn ms(text: &str) -> Option<f64> {
    let text = text.trim();
    let text = text.rsplit_once(':').map_or(text, |(_, value)| value);
    let number = text.split_whitespace().next()?;
    let value = crate::numbers::decimal(number.as_bytes())?;
    (0.0..MOST_MS).contains(&value).then_some(value)
}

impl Row {
    /// `worker:(12) | 2203.456 ms | 8341 | avg: 0.812 ms | max: 94.217 ms | …`.
    fn of_latency(line: &str) -> Option<Row> {
        let mut cells = line.split('|').map(str::trim);
        let task = cells.next().filter(|task| !task.is_empty())?;
        let ran = ms(cells.next()?)?;
        let switches = cells.next()?.parse().ok()?;
        let average = ms(cells.next()?)?;
        let longest = ms(cells.next()?)?;
        Some(Row {
            task: task.chars().take(NAME).collect(),
            longest,
            average: Some(average),
            switches: Some(switches),
            ran,
        })
    }

    /// `79371.874591 [0010]  gcc[31951]  0.000  84.200  0.024`.
    fn of_history(line: &str) -> Option<Row> {
        let (front, ran) = line.trim_end().rsplit_once(' ')?;
        let (front, delay) = front.trim_end().rsplit_once(' ')?;
        let (front, _) = front.trim_end().rsplit_once(' ')?;
        let (_, task) = front.split_once("] ")?;
        let task = task.trim();
        (!task.is_empty() && !task.starts_with("<idle>")).then_some(())?;
        Some(Row {
            task: task.chars().take(NAME).collect(),
            longest: ms(delay)?,
            average: None,
            switches: None,
            ran: ms(ran)?,
        })
    }

    fn sentence(&self) -> String {
        let of = |ms: f64| duration((ms * MS) as Ns);
        let average = self
            .average
            .map_or_else(String::new, |average| format!(", {} on average", of(average)));
        let switches = self
            .switches
            .map_or_else(String::new, |count| format!(" in {count} switches"));
        format!(
            "{} waited for a CPU for up to {}{average}{switches}; it ran for {}",
            self.task,
            of(self.longest),
            of(self.ran)
        )
    }
}

#[derive(Debug, Default)]
struct Reader {
    table: Option<Table>,
    longest: Option<(Row, Quote)>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line);
        if !text.contains(char::is_alphanumeric) {
            return Understood::Ignorable;
        }
        if let Some(table) = heading(&text) {
            self.table = Some(table);
            return Understood::Evidence;
        }
        let row = match self.table {
            Some(Table::Latency) => Row::of_latency(&text),
            Some(Table::History) => Row::of_history(&text),
            None => return Understood::No,
        };
        let Some(row) = row else {
            let known = ["TOTAL:", "[tid/pid]", "<idle>", "Samples do not have"];
            return match known.iter().any(|known| text.contains(known)) {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        if self
            .longest
            .as_ref()
            .is_none_or(|(longest, _)| row.longest > longest.longest)
        {
            self.longest = Some((row, out.here()));
        }
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let Some((row, quote)) = self.longest.take() else {
            return;
        };
        let ns = (row.longest * MS) as Ns;
        out.statement(statements::one(
            StatementKind::Took,
            Some(ns),
            quote,
            row.sentence(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_task_that_waited_longest_is_told() {
        let text = " ---------\n  Task                  |   Runtime ms  | Switches | Average delay ms | Maximum delay ms | Maximum delay at       |\n \
            ---------\n  nginx:1523            |    120.010 ms |      210 | avg:    0.020 ms | max:    1.100 ms | max at:   8120.001234 s\n  \
            worker:(12)           |   2203.456 ms |     8341 | avg:    0.812 ms | max:   94.217 ms | max at:   8123.441234 s\n \
            ---------\n  TOTAL:                |   2326.566 ms |     8635 |\n";
        let reading = read_text("l", text.as_bytes());
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(
            one.text,
            "worker:(12) waited for a CPU for up to 94.2 ms, 812 µs on average in 8341 switches; it ran for 2.20 s"
        );
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn of_a_history_the_longest_delay() {
        let text = "           time    cpu  task name                       wait time  sch delay   run time\n                        \
            [tid/pid]                          (msec)     (msec)     (msec)\n--------------- ------  ----  ---------\n  \
            79371.874569 [0011]  gcc[31949]                          0.014      0.000      1.148\n  \
            79371.874591 [0010]  cc one[31951/31950]                 0.000     84.200      0.024\n  \
            79371.874604 [0011]  <idle>                              1.148     99.000      0.035\n";
        let reading = read_text("h", text.as_bytes());
        let one = &reading.observed.statements[0];
        assert_eq!(one.ns, Some(84_200_000));
        assert!(
            one.text
                .starts_with("cc one[31951/31950] waited for a CPU for up to 84.2 ms"),
            "{}",
            one.text
        );
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn rubbish_says_nothing() {
        let heading = "Task | Runtime ms | delay ms";
        for text in ["|||||", "a|1e999 ms|1|avg: nan|max: -1|", "\u{0}|\u{0}"] {
            let reading = read_text("l", format!("{heading}\n{text}\n").as_bytes());
            assert!(reading.observed.statements.is_empty(), "{text}");
        }
    }
}
