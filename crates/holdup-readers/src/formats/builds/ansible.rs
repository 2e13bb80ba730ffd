//! Ansible's list of the slowest tasks: the callbacks `profile_tasks`, `profile_roles` and `timer`.
//!
//! In: below a line of `=` rows `install packages ------------------ 45.12s`, with the file of the task below in newer versions; and `Playbook run
//! took 0 days, 0 hours, 3 minutes, 4 seconds`; and without that list, below each heading `TASK [name] ***` the time that the task before took, `Tuesday 08
//! January 2019  17:17:41 +0800 (0:00:28.810)  0:00:28.904 ***`. Out: a statement about the longest task, with its share of the listed or of the whole.
//! Source: `profile_tasks.py` and `timer.py` of `ansible.posix`.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{Largest, any_line, clock, holds, length, name_of, ns_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::{duration, whole_percent};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("ansible-tasks", Family::Times, recognise).about("the slowest tasks of Ansible");

/// Dashes that fill the room between a name and its time, at least.
const FILL: &str = " ---";

/// Rows without a line of `=` from which it is no chance.
const MIN_ROWS: usize = 2;

fn recognise(head: &[u8]) -> Sureness {
    if has_clocks(head) {
        return Sureness::Certain;
    }
    if !holds(head, FILL) || !any_line(head, |line| row(line).is_some()) {
        return Sureness::No;
    }
    let rows = head
        .split(|byte| *byte == b'\n')
        .filter(|line| row(&text_in(line)).is_some());
    let enough = rows.take(MIN_ROWS).count() >= MIN_ROWS;
    Sureness::certain_if(enough || any_line(head, is_line))
}

/// Whether headings of tasks have clocks below them.
fn has_clocks(head: &[u8]) -> bool {
    holds(head, "TASK [") && any_line(head, |line| before(line).is_some())
}

/// Seconds that the task before took, by the clock below a heading: `(0:00:28.810)` with the whole behind it.
fn before(line: &str) -> Option<f64> {
    whole(line)?;
    let (_, rest) = line.split_once('(')?;
    let (time, _) = rest.split_once(')')?;
    (time.matches(':').count() == 2).then(|| clock(time)).flatten()
}

/// The name in a heading: `TASK [install packages] ****`.
fn heading(line: &str) -> Option<&str> {
    let (name, stars) = line.strip_prefix("TASK [")?.rsplit_once(']')?;
    stars.trim().bytes().all(|byte| byte == b'*').then_some(name)
}

/// The line of `=` above the rows.
fn is_line(line: &str) -> bool {
    line.len() >= 40 && line.bytes().all(|byte| byte == b'=')
}

/// `install packages ------------------ 45.12s`.
fn row(line: &str) -> Option<(&str, f64)> {
    let (rest, time) = line.rsplit_once(' ')?;
    let seconds = number(time.strip_suffix('s')?)?;
    let name = rest.trim_end_matches('-');
    (rest.len() >= name.len() + 3 && name.ends_with(' ') && !name.trim().is_empty())
        .then_some((name.trim(), seconds))
}

/// The whole: `Friday 04 April 2024  10:00:00 +0000 (0:00:01.500)       0:03:20.100 *****`, `Playbook run took 0 days, 0 hours, …`.
fn whole(line: &str) -> Option<f64> {
    if let Some(rest) = line.strip_prefix("Playbook run took ") {
        return length(rest);
    }
    let (_, rest) = line.split_once(')')?;
    let mut words = rest.split_whitespace();
    let time = words.next()?;
    // `0:03:20.100`.
    let is_fill = words
        .next()
        .is_none_or(|fill| fill.bytes().all(|byte| byte == b'*'));
    (is_fill && time.matches(':').count() == 2)
        .then(|| clock(time))
        .flatten()
}

#[derive(Debug, Default)]
struct Reader {
    tasks: Largest,
    /// The same by the clocks below the headings, with the task whose heading came last and the one that its clock is about.
    by_clock: Largest,
    headed: Option<String>,
    running: Option<(String, Quote)>,
    whole: Option<f64>,
    /// Where the longest task is written: the line below it.
    file: String,
    file_follows: bool,
    /// Hosts that a recap says something failed on.
    failed: Option<(String, Quote)>,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some((name, seconds)) = row(&text) {
            self.file_follows = self.tasks.take(seconds, name, out.here());
            if self.file_follows {
                self.file.clear();
            }
            return Understood::Evidence;
        }
        if std::mem::take(&mut self.file_follows) && text.ends_with('-') && text.starts_with('/') {
            self.file = name_of(text.trim_end_matches('-').trim());
            return Understood::Evidence;
        }
        if let Some(name) = heading(&text) {
            self.headed = Some(name_of(name));
            return Understood::Evidence;
        }
        if let Some(seconds) = before(&text) {
            if let Some((name, quote)) = self.running.take() {
                self.by_clock.take(seconds, &name, quote);
            }
            self.running = self.headed.take().map(|name| (name, out.here()));
        }
        if let Some(seconds) = whole(&text) {
            self.whole = self.whole.map(|known| known.max(seconds)).or(Some(seconds));
            return Understood::Evidence;
        }
        // `db1  : ok=9 changed=1 unreachable=0 failed=1`.
        if let Some((host, rest)) = text
            .split_once(':')
            .filter(|(_, rest)| rest.trim_start().starts_with("ok="))
        {
            let bad = ["failed=", "unreachable="].iter().any(|name| {
                let count = rest.split_once(name).map_or("0", |(_, count)| count);
                !count.starts_with('0')
            });
            if bad && self.failed.is_none() {
                let counts: Vec<&str> = rest.split_whitespace().take(12).collect();
                self.failed = Some((format!("{}: {}", name_of(host), counts.join(" ")), out.here()));
            }
            return Understood::Evidence;
        }
        match is_line(&text) {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let mut read = std::mem::take(self);
        if read.tasks.first.is_none() {
            read.tasks = read.by_clock;
        }
        if let Some((text, quote)) = read.failed {
            let text = format!("Ansible failed on {text}");
            out.statement(statements::one(StatementKind::Failed, None, quote, text));
        }
        let Some((seconds, name, quote)) = &read.tasks.first else {
            return;
        };
        let told = |seconds: f64| duration(ns_of(seconds));
        let whole = read.whole.filter(|whole| whole >= seconds);
        let (of, sum) = match whole {
            Some(whole) => (format!("of the playbook's {}", told(whole)), whole),
            None => (
                format!("of the {} tasks listed", read.tasks.count),
                read.tasks.sum,
            ),
        };
        let mut text = format!(
            "task {name} took {}, {} {of}",
            told(*seconds),
            whole_percent(ns_of(*seconds), ns_of(sum))
        );
        text.push_str(&read.tasks.and_next(told));
        if !read.file.is_empty() {
            text.push_str(&format!("; it is in {}", read.file));
        }
        out.statement(Statement {
            share: Some(seconds / sum).filter(|share| (0.0..=1.0).contains(share)),
            ..statements::one(StatementKind::Took, Some(ns_of(*seconds)), quote.clone(), text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const RECAP: &str = "PLAY RECAP *****\nweb1                       : ok=12   changed=3    unreachable=0    failed=0\n\n\
        Friday 05 April 2024  10:00:00 +0000 (0:00:01.500)       0:03:20.000 *********\n\
        ===============================================================================\n\
        shop : install packages ------------------------------------------------ 150.00s\n\
        /srv/play/roles/shop/tasks/main.yml:3 ----------------------------------------\n\
        Gathering Facts ---------------------------------------------------------- 8.50s\n";

    #[test]
    fn the_longest_task_and_its_file() {
        let reading = read_text("a", RECAP.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "ansible-tasks");
        assert_eq!(
            reading.texts(),
            [
                "task shop : install packages took 2 min 30 s, 75 % of the playbook's 3 min 20 s; next Gathering Facts, 8.50 s; it is in \
                 /srv/play/roles/shop/tasks/main.yml:3"
            ]
        );
    }

    #[test]
    fn a_host_that_failed_and_an_excerpt() {
        let failed = RECAP.replace("failed=0", "failed=1");
        let reading = read_text("a", failed.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Failed);
        assert!(
            reading.texts()[0].starts_with("Ansible failed on web1: ok=12"),
            "{reading:?}"
        );
        let rows = "copy files ----------------------------- 6.00s\nrestart it ----------------------------- 2.00s\n";
        assert_eq!(
            read_text("a", rows.as_bytes()).texts(),
            ["task copy files took 6.00 s, 75 % of the 2 tasks listed; next restart it, 2.00 s"]
        );
    }

    #[test]
    fn other_texts_are_none() {
        for text in ["--- FAIL: TestA (3.00s)\n", "a - b - 3s\n", "x -- 12s\ny -- 3s\n"] {
            assert_ne!(
                read_text("a", text.as_bytes()).observed.sources[0].format,
                "ansible-tasks"
            );
        }
    }

    #[test]
    fn clocks_below_headings_are_of_the_task_before() {
        let text = "PLAY [db] *****\n\nTASK [Gathering Facts] *****\nTuesday 08 January 2019  17:17:12 +0800 (0:00:00.094)       0:00:00.094 *******\n\
            ok: [10.0.0.7]\n\nTASK [restore the dump] *****\nTuesday 08 January 2019  17:17:14 +0800 (0:00:02.810)       0:00:02.904 *******\n\
            changed: [10.0.0.7]\n\nTASK [ping] *****\nTuesday 08 January 2019  17:18:14 +0800 (0:01:00.096)       0:01:03.000 *******\n\
            PLAY RECAP *****\n10.0.0.7               : ok=2    changed=1    unreachable=0    failed=0\n";
        let found = read_text("a", text.as_bytes()).observed;
        let all: Vec<&str> = found.statements.iter().map(|one| one.text.as_str()).collect();
        assert!(
            all.iter().any(|text| text
                .starts_with("task restore the dump took 1 min 0 s, 95 % of the playbook's 1 min 3 s")),
            "{all:?}"
        );
    }
}
