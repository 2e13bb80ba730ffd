//! Reports of backups: Bacula and Bareos, BorgBackup, restic, duplicity.
//!
//! Out: how a job ended, how long it took and how much it moved a second, and how many errors it had. Source: `dird/backup.c` of Bacula,
//! `archive.py` of Borg, `ui/backup/text.go` of restic, `stats.py` of duplicity.

use super::{Names, Reader, has, seconds};
use crate::format::{Family, Format, Shape};
use crate::formats::report::{clock, length, name_of, number};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::new(
    "backup-report",
    Family::Times,
    |head| {
        has(head, BACULA, 4)
            .max(has(head, BORG, 3))
            .max(has(head, RESTIC, 3))
            .max(has(head, DUPLICITY, 3))
    },
    Shape::Lines(|| Reader::boxed(judge)),
)
.about("reports of Bacula, Borg, restic, duplicity");

const BACULA: &[&str] = &[
    "JobId",
    "Job",
    "Backup Level",
    "Elapsed time",
    "FD Files Written",
    "SD Files Written",
    "FD Bytes Written",
    "SD Bytes Written",
    "Rate",
    "FD termination status",
    "SD termination status",
    "Non-fatal FD errors",
    "Termination",
];

const BORG: &[&str] = &[
    "Archive name",
    "Archive fingerprint",
    "Time (start)",
    "Time (end)",
    "Duration",
    "Number of files",
    "This archive",
];

const RESTIC: &[&str] = &[
    "Files",
    "Dirs",
    "Added to the repository",
    "Added to the repo",
    "Data Blobs",
    "Tree Blobs",
    "using parent snapshot",
];

const DUPLICITY: &[&str] = &[
    "ElapsedTime",
    "SourceFiles",
    "SourceFileSize",
    "NewFiles",
    "DeltaEntries",
    "RawDeltaSize",
    "TotalDestinationSizeChange",
];

/// What a report says of its job.
#[derive(Debug, Default)]
struct Job {
    name: String,
    elapsed: Option<f64>,
    /// What it moved, in its own words.
    moved: Vec<String>,
    errors: f64,
    /// The words of its end, where that is no success.
    ended: String,
    failed: bool,
    /// The name at which it stands.
    at: &'static str,
}

/// `5307 files, 1.720 GiB in 12:34`, which is cut at its colon.
fn restic(names: &Names) -> Option<Job> {
    let (name, value, _) = names
        .all
        .iter()
        .find(|(name, ..)| name.starts_with("processed ") && name.contains(" in "))?;
    let (moved, time) = name.strip_prefix("processed ")?.rsplit_once(" in ")?;
    let elapsed = match value.is_empty() {
        true => length(time),
        false => clock(&format!("{time}:{value}")),
    };
    let mut moved = vec![format!("processed {}", name_of(moved))];
    if let Some(added) = ["Added to the repository", "Added to the repo"]
        .iter()
        .find(|name| !names.text(name).is_empty())
    {
        moved.push(format!("added {}", names.text(added)));
    }
    Some(Job {
        name: "restic's backup".to_owned(),
        elapsed,
        moved,
        at: "Files",
        ..Job::default()
    })
}

fn bacula(names: &Names) -> Option<Job> {
    let termination = names.text("Termination");
    let elapsed = length(names.text("Elapsed time"));
    if termination.is_empty() && elapsed.is_none() {
        return None;
    }
    let mut job = Job {
        elapsed,
        at: "Termination",
        ..Job::default()
    };
    job.name = match names.text("Job") {
        "" => "Bacula's job".to_owned(),
        name => format!("job {name}"),
    };
    let bytes = ["SD Bytes Written", "FD Bytes Written"]
        .iter()
        .find(|name| !names.text(name).is_empty());
    if let Some(bytes) = bytes {
        job.moved.push(format!("wrote {}", names.text(bytes)));
    }
    if !names.text("Rate").is_empty() {
        job.moved.push(format!("rate {}", names.text("Rate")));
    }
    job.errors = ["Non-fatal FD errors", "SD Errors"]
        .iter()
        .filter_map(|name| number(names.text(name)))
        .sum();
    let end = termination.trim_matches(['*', ' ']);
    if !end.is_empty() && (!end.ends_with("OK") || end.contains("warning")) {
        end.clone_into(&mut job.ended);
        job.failed = end.contains("Error") || end.contains("Fatal");
    }
    Some(job)
}

fn borg(names: &Names) -> Option<Job> {
    let elapsed = Some(length(names.text("Duration"))?);
    let mut job = Job {
        elapsed,
        at: "Duration",
        ..Job::default()
    };
    job.name = match names.text("Archive name") {
        "" => "Borg's archive".to_owned(),
        name => format!("archive {name}"),
    };
    if !names.text("Number of files").is_empty() {
        job.moved.push(format!("{} files", names.text("Number of files")));
    }
    // Original, compressed and deduplicated size.
    if !names.text("This archive").is_empty() {
        let sizes: Vec<&str> = names
            .text("This archive")
            .split("  ")
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .collect();
        job.moved.push(format!("sizes {}", sizes.join(", ")));
    }
    Some(job)
}

fn duplicity(names: &Names) -> Option<Job> {
    let elapsed = Some(number(names.text("ElapsedTime").split_whitespace().next()?)?);
    let mut job = Job {
        name: "duplicity's backup".to_owned(),
        elapsed,
        at: "ElapsedTime",
        ..Job::default()
    };
    for (name, what) in [
        ("SourceFileSize", "source"),
        ("TotalDestinationSizeChange", "written"),
    ] {
        let value = names.text(name);
        let value = value
            .split_once('(')
            .map_or(value, |(_, words)| words.trim_end_matches(')'));
        if !value.is_empty() {
            job.moved.push(format!("{what} {value}"));
        }
    }
    job.errors = number(names.text("Errors")).unwrap_or(0.0);
    Some(job)
}

fn judge(names: &Names) -> Vec<Statement> {
    let found = bacula(names)
        .or_else(|| restic(names))
        .or_else(|| duplicity(names))
        .or_else(|| borg(names));
    let Some(job) = found else { return Vec::new() };
    let ns: Option<Ns> = job.elapsed.map(seconds);
    let mut text = job.name.clone();
    let took = ns.map_or_else(String::new, |ns| format!(" took {}", duration(ns)));
    if job.ended.is_empty() {
        text.push_str(&took);
    } else {
        let after = ns.map_or_else(String::new, |ns| format!(" after {}", duration(ns)));
        text.push_str(&format!(" ended with `{}`{after}", job.ended));
    }
    if !job.moved.is_empty() {
        text.push_str(&format!(": {}", job.moved.join(", ")));
    }
    if job.errors > 0.0 {
        text.push_str(&format!("; {:.0} errors", job.errors));
    }
    let kind = if job.failed {
        StatementKind::Failed
    } else if job.errors > 0.0 || !job.ended.is_empty() {
        StatementKind::Warned
    } else {
        StatementKind::Took
    };
    let mut one = names.say(kind, job.at, text);
    one.ns = ns;
    vec![one]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn said(text: &str) -> (StatementKind, String) {
        let reading = read_text("b", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "backup-report");
        let one = reading.observed.statements.iter().find(|one| one.of_reader);
        one.map(|one| (one.kind, one.text.clone()))
            .unwrap_or_else(|| panic!("{reading:?}"))
    }

    const BACULA: &str = "  JobId:                  812\n  Job:                    nightly.2024-04-05_01\n  Backup Level:           Full\n\
        \x20 Elapsed time:           2 hours 1 min 5 secs\n  FD Files Written:       1,200\n  SD Bytes Written:       90,000,000 (90.0 MB)\n\
        \x20 Rate:                   12.4 KB/s\n  Non-fatal FD errors:    3\n  SD Errors:              0\n\
        \x20 Termination:            *** Backup Error ***\n";

    #[test]
    fn a_job_that_failed_and_one_that_is_well() {
        assert_eq!(
            said(BACULA),
            (
                StatementKind::Failed,
                "job nightly.2024-04-05_01 ended with `Backup Error` after 2 h 1 min: wrote 90,000,000 (90.0 MB), rate 12.4 KB/s; 3 errors"
                    .to_owned()
            )
        );
        let well = BACULA
            .replace("*** Backup Error ***", "Backup OK")
            .replace("    3\n", "    0\n");
        assert_eq!(said(&well).0, StatementKind::Took);
    }

    #[test]
    fn of_restic_borg_and_duplicity() {
        let restic = "Files:        5307 new,     0 changed,     0 unmodified\nDirs:         1867 new,     0 changed,     0 unmodified\n\
            Added to the repository: 1.200 GiB\n\nprocessed 5307 files, 1.720 GiB in 12:34\nsnapshot 40dc1520 saved\n";
        assert_eq!(
            said(restic).1,
            "restic's backup took 12 min 34 s: processed 5307 files, 1.720 GiB, added 1.200 GiB"
        );
        let borg = "Archive name: web-5\nTime (start): Fri, 2024-04-05 01:00:00\nTime (end):   Fri, 2024-04-05 01:05:10\n\
            Duration: 5 minutes 10.00 seconds\nNumber of files: 900\n";
        assert_eq!(said(borg).1, "archive web-5 took 5 min 10 s: 900 files");
        let duplicity = "--------------[ Backup Statistics ]--------------\nElapsedTime 1200.50 (20 minutes 0.50 seconds)\nSourceFiles 90\n\
            SourceFileSize 2000000 (1.91 MB)\nNewFiles 3\nErrors 2\n";
        let (kind, text) = said(duplicity);
        assert_eq!(
            (kind, text.as_str()),
            (
                StatementKind::Warned,
                "duplicity's backup took 20 min 1 s: source 1.91 MB; 2 errors"
            )
        );
    }

    #[test]
    fn other_lists_are_none() {
        let text = "Files: 3\nRate: 4\nDuration: 3 s\nJob: x\n";
        assert_ne!(
            read_text("b", text.as_bytes()).observed.sources[0].format,
            "backup-report"
        );
    }
}
