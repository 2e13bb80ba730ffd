//! `seff` of Slurm: how much of the CPU time and the memory that a job had it used, and how it ended.
//!
//! Out: a job that its limit of time or of memory ended, or that failed; else how much it used of what it had. Source: `contribs/seff` of
//! Slurm, and the states in the manual of `sacct`.

use super::{Names, Reader, has, seconds};
use crate::format::{Family, Format, Shape};
use crate::formats::report::{clock, percent};
use holdup_evidence::observed::{Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::new(
    "seff",
    Family::Times,
    |head| has(head, NAMES, 3),
    Shape::Lines(|| Reader::once("Job ID", judge)),
)
.about("seff of Slurm");

const NAMES: &[&str] = &[
    "Job ID",
    "Array Job ID",
    "User/Group",
    "Cores per node",
    "CPU Utilized",
    "CPU Efficiency",
    "Job Wall-clock time",
    "Memory Utilized",
    "Memory Efficiency",
];

fn judge(names: &Names) -> Vec<Statement> {
    let part = |name: &str| percent(names.text(name).split_whitespace().next().unwrap_or_default());
    let cpu = part("CPU Efficiency");
    if cpu.is_none() && names.text("Memory Efficiency").is_empty() {
        return Vec::new();
    }
    let job = match names.text("Job ID") {
        "" => "the job".to_owned(),
        id => format!("job {id}"),
    };
    let wall = names.text("Job Wall-clock time");
    let after = match wall {
        "" => String::new(),
        wall => format!(" after {wall}"),
    };
    // `TIMEOUT (exit code 0)`.
    let state = names.text("State");
    let code = state.split_once('(').map(|(_, code)| code.trim_end_matches(')'));
    let word = state.split_whitespace().next().unwrap_or_default();
    let (kind, at, ended) = match word {
        "TIMEOUT" | "DEADLINE" => (
            StatementKind::TimedOut,
            "State",
            format!("was ended by its limit of time{after} (state {word})"),
        ),
        "OUT_OF_MEMORY" => (
            StatementKind::Exhausted,
            "State",
            format!("was ended for its use of memory{after} (state {word})"),
        ),
        "FAILED" | "NODE_FAIL" | "BOOT_FAIL" => {
            let code = code.map_or_else(String::new, |code| format!(", {code}"));
            (
                StatementKind::Failed,
                "State",
                format!("failed{after} (state {word}{code})"),
            )
        }
        "RUNNING" => (
            StatementKind::Took,
            "CPU Efficiency",
            format!("has run for {wall}"),
        ),
        "" => (StatementKind::Took, "CPU Efficiency", format!("took {wall}")),
        word => (
            StatementKind::Took,
            "CPU Efficiency",
            format!("took {wall} (state {word})"),
        ),
    };
    let mut text = format!("{job} {ended}");
    if cpu.is_some() {
        text.push_str(&format!("; CPU efficiency {}", names.text("CPU Efficiency")));
    }
    if !names.text("Memory Efficiency").is_empty() {
        let used = match names.text("Memory Utilized") {
            "" => String::new(),
            used => format!(" ({used})"),
        };
        text.push_str(&format!(
            "; memory efficiency {}{used}",
            names.text("Memory Efficiency")
        ));
    }
    let ns = clock(wall).map(seconds);
    let mut one = names.say(kind, at, text);
    one.ns = ns;
    one.share = cpu.filter(|_| kind == StatementKind::Took).map(|cpu| cpu / 100.0);
    vec![one]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const REPORT: &str = "Job ID: 88123\nCluster: north\nUser/Group: ada/lab\nState: TIMEOUT (exit code 0)\nNodes: 1\n\
        Cores per node: 16\nCPU Utilized: 12:05:10\nCPU Efficiency: 6.29% of 8-00:00:00 core-walltime\n\
        Job Wall-clock time: 12:00:00\nMemory Utilized: 3.10 GB\nMemory Efficiency: 9.69% of 32.00 GB\n";

    fn said(text: &str) -> Vec<(StatementKind, String)> {
        let reading = read_text("s", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "seff");
        let all = reading.observed.statements.into_iter();
        all.map(|one| (one.kind, one.text)).collect()
    }

    #[test]
    fn a_job_that_its_limit_ended() {
        assert_eq!(
            said(REPORT),
            [(
                StatementKind::TimedOut,
                "job 88123 was ended by its limit of time after 12:00:00 (state TIMEOUT); CPU efficiency 6.29% of \
                 8-00:00:00 core-walltime; memory efficiency 9.69% of 32.00 GB (3.10 GB)"
                    .to_owned()
            )]
        );
        let memory = REPORT.replace("TIMEOUT (exit code 0)", "OUT_OF_MEMORY (exit code 0)");
        assert_eq!(said(&memory)[0].0, StatementKind::Exhausted);
    }

    #[test]
    fn a_job_that_is_done_is_no_trouble_and_two_reports_are_two() {
        let done = REPORT.replace("TIMEOUT", "COMPLETED");
        assert_eq!(said(&done)[0].0, StatementKind::Took);
        assert_eq!(said(&format!("{done}\n{REPORT}")).len(), 2);
    }

    #[test]
    fn an_excerpt_and_what_looks_alike() {
        let excerpt = "CPU Utilized: 00:10:00\nCPU Efficiency: 99.10% of 00:10:05 core-walltime\nJob Wall-clock time: 00:10:05\n";
        assert_eq!(said(excerpt)[0].0, StatementKind::Took);
        let other = "CPU Efficiency: high\nMemory: low\nWall: red\n";
        assert_ne!(
            read_text("s", other.as_bytes()).observed.sources[0].format,
            "seff"
        );
    }
}
