//! `sacct` of Slurm: jobs that their limit of time or of memory ended, or that failed.
//!
//! In: a heading with `JobID` and `State`, a line of dashes that shows the columns, and a row for each job and each of its steps; with `-P`
//! bars between the cells. Out: a statement for each state that is trouble, about the job that ran longest in it; else the longest job.
//! Source: the manual of `sacct`, job state codes.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::dash_table::DashTable;
use crate::formats::report::{any_line, clock, holds, name_of, ns_of, text_in};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::observed::{Quote, StatementKind};
use std::collections::BTreeMap;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("sacct", Family::Times, recognise).about("sacct of Slurm");

/// Bytes of a row.
const ROW_BYTES: usize = 4_096;

fn recognise(head: &[u8]) -> Sureness {
    Sureness::certain_if(holds(head, "JobID") && any_line(head, |line| heading(line).is_some()))
}

/// The table that a heading begins.
fn heading(line: &str) -> Option<DashTable> {
    let table = DashTable::of(line);
    let is_job = table.has("JobID") || table.has("JobIDRaw");
    (is_job && table.has("State")).then_some(table)
}

#[derive(Debug, Clone, Default)]
struct Job {
    id: String,
    name: String,
    state: String,
    elapsed: String,
    limit: String,
    exit: String,
    asked_memory: String,
    memory: String,
    quote: Quote,
}

/// What a state means; `None` of those that are no trouble.
fn trouble(state: &str) -> Option<(StatementKind, &'static str)> {
    Some(match state {
        "OUT_OF_MEMORY" | "OUT_OF_ME+" => (StatementKind::Exhausted, "was ended for its use of memory"),
        "TIMEOUT" => (StatementKind::TimedOut, "was ended by its limit of time"),
        "DEADLINE" => (StatementKind::TimedOut, "was ended at its deadline"),
        "NODE_FAIL" => (StatementKind::Failed, "ended because a node failed"),
        "BOOT_FAIL" => (StatementKind::Failed, "ended because a node did not start"),
        "FAILED" => (StatementKind::Failed, "failed"),
        _ => return None,
    })
}

#[derive(Debug, Default)]
struct Reader {
    table: Option<DashTable>,
    /// Jobs by their state: how many, and the one that ran longest.
    states: BTreeMap<String, (u64, f64, Job)>,
    jobs: u64,
    /// The job of the last row that was no step.
    last: Option<Job>,
}

impl Reader {
    /// A job is complete with its steps.
    fn close(&mut self) {
        let Some(job) = self.last.take() else { return };
        self.jobs = self.jobs.saturating_add(1);
        let elapsed = clock(&job.elapsed).unwrap_or(0.0);
        let known = trouble(&job.state).is_some() || matches!(job.state.as_str(), "COMPLETED" | "RUNNING");
        let state = if known {
            job.state.clone()
        } else {
            "other".to_owned()
        };
        let entry = self
            .states
            .entry(state)
            .or_insert_with(|| (0, -1.0, Job::default()));
        entry.0 = entry.0.saturating_add(1);
        if elapsed > entry.1 {
            (entry.1, entry.2) = (elapsed, job);
        }
    }

    fn row(&mut self, cells: &[String], out: &Out<'_>) -> bool {
        let Some(table) = &self.table else { return false };
        let cell = |name: &str| table.cell(cells, name);
        let id = [cell("JobID"), cell("JobIDRaw")]
            .into_iter()
            .find(|id| !id.is_empty());
        let id = id.filter(|id| id.starts_with(|first: char| first.is_ascii_digit()));
        // `CANCELLED by 1000`.
        let state = cell("State").split_whitespace().next().unwrap_or_default();
        let (Some(id), false) = (id, state.is_empty()) else {
            return false;
        };
        let job = Job {
            id: name_of(id),
            name: name_of(cell("JobName")),
            state: name_of(state),
            elapsed: name_of(cell("Elapsed")),
            limit: name_of(cell("Timelimit")),
            exit: name_of(cell("ExitCode")),
            asked_memory: name_of(cell("ReqMem")),
            memory: name_of(cell("MaxRSS")),
            quote: out.here(),
        };
        match id.split_once('.') {
            // The steps of a job know how much memory it used, and one may be what was ended.
            Some((of, _)) if self.last.as_ref().is_some_and(|last| last.id == of) => {
                if let Some(last) = &mut self.last {
                    if last.memory.is_empty() {
                        last.memory = job.memory;
                    }
                    if job.state.starts_with("OUT_OF_ME") && last.state == "FAILED" {
                        last.state = job.state;
                    }
                }
            }
            _ => {
                self.close();
                self.last = Some(job);
            }
        }
        true
    }
}

/// ` (train)`, and what else a job's row has.
fn of_job(job: &Job) -> String {
    let mut told = Vec::new();
    let mut part = |name: &str, value: &str| {
        if !value.is_empty() {
            told.push(format!("{name} {value}"));
        }
    };
    part("elapsed", &job.elapsed);
    part("limit", &job.limit);
    part("greatest memory", &job.memory);
    part("of", &job.asked_memory);
    if job.exit != "0:0" {
        part("exit code", &job.exit);
    }
    match told.is_empty() {
        true => String::new(),
        false => format!(": {}", told.join(", ")),
    }
}

fn title(job: &Job) -> String {
    match job.name.as_str() {
        "" => format!("job {}", job.id),
        name => format!("job {} ({name})", job.id),
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        // Columns are counted from the line's beginning.
        let text = text_of(line.get(..ROW_BYTES).unwrap_or(line));
        let trimmed = text_in(text.as_bytes());
        if trimmed.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(table) = heading(&trimmed) {
            self.table = Some(table);
            return Understood::Evidence;
        }
        if self
            .table
            .as_mut()
            .is_some_and(|table| table.dashes(text.trim_end()))
        {
            return Understood::Evidence;
        }
        let cells = self.table.as_ref().and_then(|table| table.row(text.trim_end()));
        match cells.is_some_and(|cells| self.row(&cells, out)) {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        let read = std::mem::take(self);
        let mut well = true;
        for (state, (count, elapsed, job)) in &read.states {
            let Some((kind, what)) = trouble(state) else {
                continue;
            };
            well = false;
            let more = match count {
                1 => String::new(),
                count => format!("; {count} of {} jobs are {state}", read.jobs),
            };
            let text = format!("{} {what} (state {state}){}{more}", title(job), of_job(job));
            let ns = (*elapsed > 0.0).then(|| ns_of(*elapsed));
            out.statement(statements::one(kind, ns, job.quote.clone(), text));
        }
        let done = read
            .states
            .get("COMPLETED")
            .or_else(|| read.states.get("RUNNING"));
        if let Some((_, elapsed, job)) = done.filter(|(_, elapsed, _)| well && *elapsed > 0.0) {
            let text = format!(
                "{} took {}, the longest of {} jobs; none of them timed out, was out of memory or failed",
                title(job),
                job.elapsed,
                read.jobs
            );
            let ns = Some(ns_of(*elapsed));
            out.statement(statements::one(StatementKind::Took, ns, job.quote.clone(), text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const TABLE: &str = "JobID           JobName    Elapsed  Timelimit     ReqMem     MaxRSS      State ExitCode \n\
        ------------ ---------- ---------- ---------- ---------- ---------- ---------- -------- \n\
        701               align   04:00:12   04:00:00        16G               TIMEOUT      0:0 \n\
        701.batch         batch   04:00:14                        15300112K  CANCELLED     0:15 \n\
        702                sort   00:10:00   01:00:00         2G             COMPLETED      0:0 \n";

    #[test]
    fn the_job_that_its_limit_ended() {
        let reading = read_text("s", TABLE.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "sacct");
        assert_eq!(reading.accounts[0].not_understood, 0);
        assert_eq!(
            reading.texts(),
            [
                "job 701 (align) was ended by its limit of time (state TIMEOUT): elapsed 04:00:12, limit 04:00:00, greatest memory \
                 15300112K, of 16G"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::TimedOut);
    }

    #[test]
    fn bars_and_jobs_that_are_done() {
        let text =
            "JobID|JobName|State|Elapsed|\n810|a b|OUT_OF_MEMORY|00:01:00|\n811|c|COMPLETED|00:02:00|\n";
        assert_eq!(
            read_text("s", text.as_bytes()).texts(),
            ["job 810 (a b) was ended for its use of memory (state OUT_OF_MEMORY): elapsed 00:01:00"]
        );
        let well = text.replace("OUT_OF_MEMORY", "COMPLETED");
        let reading = read_text("s", well.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Took);
        assert!(
            reading.texts()[0].starts_with("job 811 (c) took 00:02:00, the longest of 2 jobs"),
            "{reading:?}"
        );
    }

    #[test]
    fn other_tables_are_none() {
        for text in ["JobID Status\n1 FAILED\n", "Job ID: 3\nState: FAILED\n"] {
            assert_ne!(
                read_text("s", text.as_bytes()).observed.sources[0].format,
                "sacct"
            );
        }
    }
}
