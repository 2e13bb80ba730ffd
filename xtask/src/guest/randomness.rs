//! `sshd -t` as the first to need the generator of a kernel that has no randomness yet, and what must be true of the
//! report about it.

use super::table::Cell;
use crate::report::{Report, Wait};
use anyhow::Context;
use std::path::Path;

/// What the table calls it.
pub(super) const NAME: &str = "randomness-at-boot";

/// What the guest left.
#[derive(Debug, Default)]
struct Said {
    /// holdup's report as JSON.
    report: String,
    /// The kernel's log.
    kernel_log: String,
}

/// Something that must be true, and why it is not.
#[derive(Debug)]
struct Check {
    /// What must be true.
    name: &'static str,
    /// Why it is not; `None` when it is.
    failure: Option<String>,
}

/// The cause that this guest is about.
pub(super) const CAUSE: &str = "random.unseeded";

/// The cause of time in which sshd was ready and had no CPU.
const QUEUEING: &str = "sched.runqueue";

/// How long the wait must be at least, in nanoseconds, however busy the machine: the generator wants 256 bits and
/// gets one a tick of 4 ms, which is 1.02 s, less what interrupts gave since boot. What sshd itself takes under
/// emulation depends on the machine, so a share says less.
pub(super) const LEAST_NS: u64 = 800_000_000;

/// How far the wait's end may be from the kernel's line about it. The line is printed before the waiter runs
/// again, and the log's clock and the boot clock differ by 20 to 40 ms in these guests; the wait takes a second.
pub(super) const SAME_INSTANT_SECONDS: f64 = 0.1;

/// How far shares may be from 1 by rounding.
const ROUNDING: f64 = 1e-6;

/// Judges what the guest left in `out`.
pub(super) fn judge(out: &Path) -> anyhow::Result<Cell> {
    let read = |name: &str| {
        let file = out.join("randomness").join(name);
        let bytes = std::fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        anyhow::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let checks = check_all(&Said {
        // holdup may have written none; that is for the checks to say.
        report: read("report.json").unwrap_or_default(),
        kernel_log: read("kernel.log")?,
    });
    let wrong: Vec<String> = checks
        .iter()
        .filter_map(|check| Some(format!("{}: {}", check.name, check.failure.as_ref()?)))
        .collect();
    Ok(if wrong.is_empty() {
        Cell::Right(format!("{} checks", checks.len()))
    } else {
        Cell::Wrong(wrong)
    })
}

/// Checks everything.
fn check_all(said: &Said) -> Vec<Check> {
    let report: Report = match serde_json::from_str(&said.report) {
        Ok(report) => report,
        Err(error) => {
            return vec![check(
                "holdup wrote a report",
                Err(format!("{error} in {} bytes", said.report.len())),
            )];
        }
    };
    let wait = report
        .waits
        .iter()
        .filter(|wait| wait.cause == CAUSE)
        .max_by_key(|wait| wait.ns);
    vec![
        check("holdup wrote a report", equal(&report.schema, "holdup.report/1")),
        check("sshd -t is content", equal(&report.subject.exit, &Some(0))),
        check("the finding is crng-not-seeded", finding(&report)),
        check("most of the time is random.unseeded", most(&report)),
        check("the shares add up to 1", conserved(&report)),
        check("RAND_status of libcrypto.so.3 asked", asker(wait)),
        check(
            "the wait ended with the kernel's \"crng init done\"",
            same_instant(&report, wait, &said.kernel_log),
        ),
    ]
}

fn check(name: &'static str, outcome: Result<(), String>) -> Check {
    Check {
        name,
        failure: outcome.err(),
    }
}

fn equal<A: PartialEq<B> + std::fmt::Debug + ?Sized, B: std::fmt::Debug + ?Sized>(
    is: &A,
    must: &B,
) -> Result<(), String> {
    if is == must {
        Ok(())
    } else {
        Err(format!("{is:?} is not {must:?}"))
    }
}

fn finding(report: &Report) -> Result<(), String> {
    let rules: Vec<&str> = report
        .findings
        .iter()
        .map(|finding| finding.rule.as_str())
        .collect();
    equal(&rules.first(), &Some(&"crng-not-seeded")).map_err(|_| format!("the findings are {rules:?}"))
}

fn most(report: &Report) -> Result<(), String> {
    let most = report
        .causes
        .iter()
        .max_by_key(|cause| cause.ns)
        .ok_or("there are no causes")?;
    if most.cause == CAUSE && most.ns >= LEAST_NS {
        return Ok(());
    }
    let (seconds, percent) = (most.ns as f64 / 1e9, most.share * 100.0);
    Err(format!(
        "it is {} with {seconds:.3} s, {percent:.1} %",
        most.cause
    ))
}

fn conserved(report: &Report) -> Result<(), String> {
    let shares: f64 = report.causes.iter().map(|cause| cause.share).sum();
    if (shares - 1.0).abs() > ROUNDING {
        return Err(format!("they add up to {shares}"));
    }
    let sum: u64 = report.causes.iter().map(|cause| cause.ns).sum();
    equal(&sum, &report.subject.wall_ns).map_err(|difference| format!("in nanoseconds, {difference}"))
}

fn asker(wait: Option<&Wait>) -> Result<(), String> {
    let asker = &wait.ok_or("no wait has the cause")?.asker;
    equal(
        &(asker.frame.as_deref(), asker.module.as_deref()),
        &(Some("RAND_status"), Some("libcrypto.so.3")),
    )
}

fn same_instant(report: &Report, wait: Option<&Wait>, kernel_log: &str) -> Result<(), String> {
    let wait = wait.ok_or("no wait has the cause")?;
    let began = wait
        .max_started_boot_ns
        .ok_or("the wait has no time since boot")?;
    let ended = (began + wait.max_ns) as f64 / 1e9;
    let seeded = seeded_at(kernel_log).ok_or("the kernel's log does not say so")?;
    // Meanwhile it may have been ready to run, which is not in the wait's length: holdup itself takes its time.
    let queued = report.causes.iter().filter(|cause| cause.cause == QUEUEING);
    let queued: u64 = queued.map(|cause| cause.ns).sum();
    let latest = ended + queued as f64 / 1e9;
    if seeded >= ended - SAME_INSTANT_SECONDS && seeded <= latest + SAME_INSTANT_SECONDS {
        Ok(())
    } else {
        Err(format!(
            "it ended at {ended:.3} s, the kernel said so at {seeded:.3} s"
        ))
    }
}

/// When the kernel said that its generator is seeded, in seconds since boot.
pub(super) fn seeded_at(kernel_log: &str) -> Option<f64> {
    let line = kernel_log.lines().find(|line| line.contains("crng init done"))?;
    line.strip_prefix('[')?.split_once(']')?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Said, check_all, seeded_at};

    const KERNEL_LOG: &str = "[    0.000000] Linux version 6.1\n[    2.812345] random: crng init done\n";

    /// A report as it must be; tests change one thing at a time.
    const REPORT: &str = include_str!("sample.json");

    fn failures(report: &str, kernel_log: &str) -> Vec<&'static str> {
        let said = Said {
            report: report.to_owned(),
            kernel_log: kernel_log.to_owned(),
        };
        check_all(&said)
            .into_iter()
            .filter(|check| check.failure.is_some())
            .map(|check| check.name)
            .collect()
    }

    #[test]
    fn what_must_be_is_accepted() {
        assert_eq!(failures(REPORT, KERNEL_LOG), Vec::<&str>::new());
    }

    #[test]
    fn each_thing_that_must_be_is_missed_by_name() {
        let wrong = [
            (
                r#""holdup.report/1""#,
                r#""holdup.report/2""#,
                "holdup wrote a report",
            ),
            (r#""exit": 0"#, r#""exit": 1"#, "sshd -t is content"),
            ("crng-not-seeded", "cpu-bound", "the finding is crng-not-seeded"),
            ("RAND_status", "main", "RAND_status of libcrypto.so.3 asked"),
            ("libcrypto.so.3", "sshd", "RAND_status of libcrypto.so.3 asked"),
            (
                r#""wall_ns": 1040000000"#,
                r#""wall_ns": 1040000001"#,
                "the shares add up to 1",
            ),
            (
                r#""ns": 1010000000, "share""#,
                r#""ns": 710000000, "share""#,
                "most of the time is random.unseeded",
            ),
            (
                r#""max_started_boot_ns": 1800000000"#,
                r#""max_started_boot_ns": 1700000000"#,
                "the wait ended with the kernel's \"crng init done\"",
            ),
        ];
        for (right, wrong, name) in wrong {
            assert!(REPORT.contains(right), "{right} is in the sample");
            let failed = failures(&REPORT.replace(right, wrong), KERNEL_LOG);
            assert!(failed.contains(&name), "{wrong}: {failed:?}");
        }
    }

    #[test]
    fn another_cause_fails_all_that_rests_on_it() {
        let failed = failures(&REPORT.replace("random.unseeded", "unknown"), KERNEL_LOG);
        assert_eq!(failed.len(), 3, "{failed:?}");
    }

    #[test]
    fn no_report_is_a_failure() {
        assert_eq!(failures("", KERNEL_LOG), ["holdup wrote a report"]);
        assert_eq!(
            failures(&REPORT[..REPORT.len() / 2], KERNEL_LOG),
            ["holdup wrote a report"]
        );
    }

    #[test]
    fn the_kernels_line_is_read_and_missed() {
        assert_eq!(seeded_at(KERNEL_LOG), Some(2.812_345));
        assert_eq!(seeded_at("[    0.1] random: something else"), None);
        assert_eq!(
            failures(REPORT, ""),
            ["the wait ended with the kernel's \"crng init done\""]
        );
    }
}
