//! `systemctl list-jobs`: what the manager is doing, and what waits for that.
//!
//! In: a number, a unit, what is done with it, and whether that runs or waits. Out: a statement: the jobs that run are what the waiting
//! ones wait for.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::manager::is_unit;
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("systemd-jobs", Family::Logs, recognise)
    .about("systemctl list-jobs")
    .openings(&["JOB UNIT TYPE STATE"]);

/// Jobs that are kept of each kind, and those that are named.
const KEPT: usize = 500;
const NAMED: usize = 4;

/// Lines that are looked at.
const LOOKED_AT: usize = 20;

const NOTHING: &str = "No jobs running.";

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let lines = || head.lines().take(LOOKED_AT).map(str::trim);
    let heading = |line: &str| line.split_whitespace().eq(["JOB", "UNIT", "TYPE", "STATE"]);
    Sureness::certain_if(lines().any(|line| heading(line) || line == NOTHING || job(line).is_some()))
}

/// A job: its unit, what is done with it, and whether that runs.
fn job(text: &str) -> Option<(&str, &str, bool)> {
    let mut words = text.split_whitespace();
    let number = words.next()?;
    let (unit, what, state) = (words.next()?, words.next()?, words.next()?);
    let runs = match state {
        "running" => true,
        "waiting" => false,
        _ => return None,
    };
    let numbered = number.bytes().all(|byte| byte.is_ascii_digit());
    (numbered && is_unit(unit.as_bytes()) && words.next().is_none()).then_some((unit, what, runs))
}

#[derive(Debug, Default)]
struct Reader {
    running: Vec<String>,
    waiting: Vec<String>,
    quote: Option<Quote>,
    nothing: bool,
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if text == NOTHING {
            self.nothing = true;
            self.quote.get_or_insert_with(|| out.here());
            return Understood::Evidence;
        }
        let Some((unit, what, runs)) = job(text) else {
            let heading =
                text.starts_with("JOB ") || text.ends_with(" listed.") || text.ends_with(" jobs listed");
            return match heading {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        };
        let jobs = if runs {
            &mut self.running
        } else {
            &mut self.waiting
        };
        if jobs.len() >= KEPT {
            out.account().left_out += 1;
            return Understood::Evidence;
        }
        // The place of the first that runs.
        if runs && jobs.is_empty() || self.quote.is_none() {
            self.quote = Some(out.here());
        }
        jobs.push(match what {
            "start" => unit.to_owned(),
            what => format!("{unit} ({what})"),
        });
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(self);
        let Some(quote) = all.quote else { return };
        let (kind, text) = match (all.running.as_slice(), all.waiting.as_slice()) {
            ([], []) if all.nothing => (
                StatementKind::WithinNorm,
                "systemd has no job that runs or waits".to_owned(),
            ),
            ([], []) => return,
            (running, []) => (
                StatementKind::Took,
                format!(
                    "systemd is still at {}: the job is running{}",
                    listed(running),
                    absent(running)
                ),
            ),
            ([], waiting) => (
                StatementKind::Stalled,
                format!(
                    "{} of systemd wait and none runs: {}",
                    jobs(waiting.len()),
                    listed(waiting)
                ),
            ),
            (running, waiting) => (
                StatementKind::Stalled,
                format!(
                    "systemd waits for {}, whose job is running{}; {} wait for that: {}",
                    listed(running),
                    absent(running),
                    jobs(waiting.len()),
                    listed(waiting)
                ),
            ),
        };
        out.statement(statements::one(kind, None, quote, text));
    }
}

/// What it means that such jobs run. A device's unit has nothing to start: its job runs until the device is there.
fn absent(running: &[String]) -> &'static str {
    let are = |kind: &str| !running.is_empty() && running.iter().all(|unit| unit.ends_with(kind));
    match () {
        () if are(".device") => {
            " (the device does not appear: it is missing, or its driver does not find it)"
        }
        () if are(".mount") => " (the file system is not mounted yet)",
        () if are(".swap") => " (the swap area is not switched on yet)",
        () if running.iter().all(|unit| unit.starts_with("systemd-cryptsetup@")) => {
            " (an encrypted disk is not open yet: it waits for its password or key)"
        }
        () => "",
    }
}

fn jobs(count: usize) -> String {
    holdup_evidence::units::counted(count as u64, "job", "jobs")
}

fn listed(units: &[String]) -> String {
    let named = units.get(..units.len().min(NAMED)).unwrap_or_default();
    let more = units.len() - named.len();
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{rest}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn the_running_job_is_what_the_others_wait_for() {
        let text = "JOB UNIT                                 TYPE  STATE\n129 network-online.target                start waiting\n \
            87 systemd-networkd-wait-online.service start running\n  1 multi-user.target                    start waiting\n\n3 jobs listed.\n";
        let reading = read_text("j", text.as_bytes());
        let one = &reading.observed.statements[0];
        assert_eq!((one.kind, one.quote.line), (StatementKind::Stalled, 3));
        assert_eq!(
            one.text,
            "systemd waits for systemd-networkd-wait-online.service, whose job is running; 2 jobs wait for that: network-online.target, \
             multi-user.target"
        );
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn a_device_whose_job_runs_has_not_appeared() {
        let text = "# systemctl list-jobs\nJOB UNIT                                  TYPE  STATE  \n 81 dev-disk-by\\x2dlabel-data.device     start \
            running\n 80 srv.mount                             start waiting\n\n2 jobs listed\n";
        let one = &read_text("j", text.as_bytes()).observed.statements[0];
        assert_eq!(
            one.text,
            "systemd waits for dev-disk-by\\x2dlabel-data.device, whose job is running (the device does not appear: it is missing, or its \
             driver does not find it); 1 job wait for that: srv.mount"
        );
        // Long names are cut in the middle.
        let text = "JOB UNIT TYPE STATE\n7 systemd-cryptsetup@se\u{2026}home.service start running\n";
        let one = &read_text("j", text.as_bytes()).observed.statements[0];
        assert!(one.text.contains("waits for its password or key"), "{}", one.text);
    }

    #[test]
    fn none_is_healthy() {
        let reading = read_text("j", b"No jobs running.\n");
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
    }
}
