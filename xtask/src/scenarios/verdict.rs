//! Compares what holdup said with what the workload measured itself.
//!
//! In: what a scenario expects, and for the stall and its twin a report and a truth. Out: a row of the table.
//! Pure: no I/O, no clock.

use super::report::{Finding, Report, Resource, Truth, Wait, of};
use super::scenario::{Expect, Measure};

/// What holdup's share of queueing may be above what the kernel counted, 0..1: the two clocks do not begin at the
/// same instant.
const CLOCKS_DIFFER: f64 = 0.03;

/// What says that the machine was busy with others; which of them, is a matter of how this run itself was started.
const CONTENDED: [&str; 3] = ["cpu-contended", "low-priority", "pinned-to-busy-cpu"];

/// What says that a command waits for nothing; on a busy machine it waits for a CPU.
const NEVER_WAITS: &str = "cpu-bound";

/// Where CMD's time goes when the machine is busy with others; never what a scenario's verdict hangs on, but
/// in the one that is about it.
const QUEUEING: &str = "sched.runqueue";

/// One observed run.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    /// What holdup said.
    pub(crate) report: Report,
    /// What the workload measured.
    pub(crate) truth: Truth,
    /// For how long some thread of this machine was ready and had no CPU, in nanoseconds, by the kernel's own
    /// account; 0 where it keeps none.
    pub(crate) machine_queued_ns: u64,
}

impl Observed {
    /// Whether holdup called the CPU contended, and the machine was: as much queueing as holdup speaks of was
    /// counted by the workload itself, or by the kernel for the whole machine (the workload counts its main
    /// thread alone).
    fn truly_contended(&self) -> bool {
        let machine = of(self.machine_queued_ns, self.report.subject.wall_ns);
        CONTENDED
            .iter()
            .filter_map(|rule| find(&self.report, rule)?.share)
            .reduce(f64::max)
            .is_some_and(|share| share <= self.truth.queued().max(machine) + CLOCKS_DIFFER)
    }
}

/// One cell: what was seen, and whether it was right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    /// Whether it is right.
    pub(crate) right: bool,
    /// What was seen, for the person.
    pub(crate) seen: String,
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The cause.
    pub(crate) cause: Check,
    /// What was waited for.
    pub(crate) resource: Check,
    /// Who asked.
    pub(crate) asker: Check,
    /// Who was in the way; `None` where the scenario does not say.
    pub(crate) holder: Option<Check>,
    /// The share against the truth.
    pub(crate) share: Check,
    /// The finding.
    pub(crate) finding: Check,
    /// Findings that should not be there.
    pub(crate) alarms: Check,
}

impl Row {
    /// Whether everything is right.
    pub(crate) fn right(&self) -> bool {
        self.cells().iter().all(|(_, check)| check.right)
    }

    /// The cells with their headings.
    pub(crate) fn cells(&self) -> Vec<(&'static str, &Check)> {
        let mut cells = vec![
            ("cause", &self.cause),
            ("resource", &self.resource),
            ("asker", &self.asker),
        ];
        cells.extend(self.holder.as_ref().map(|holder| ("holder", holder)));
        cells.extend([
            ("share", &self.share),
            ("finding", &self.finding),
            ("false alarms", &self.alarms),
        ]);
        cells
    }
}

/// Judges a stall and its twin.
pub(crate) fn judge(expect: &Expect, stall: &Observed, twin: &Observed) -> Row {
    let report = &stall.report;
    // A finding about where a followed wait's time went says nothing about that wait.
    let finding = expect.findings.first().and_then(|rules| find_any(report, rules));
    let finding = finding.filter(|finding| finding.cause == expect.cause);
    let wait = longest(report, &expect.cause, finding.map(|finding| &finding.resource));
    // The finding is what a person reads; without one, the longest wait is.
    let about = finding
        .map(|finding| (&finding.resource, &finding.asker))
        .or_else(|| wait.map(|wait| (&wait.resource, &wait.asker)));
    Row {
        cause: cause(expect, report, wait),
        resource: named(about.map(|(resource, _)| resource.words()), &expect.resource),
        asker: named(about.map(|(_, asker)| asker.words()), &expect.asker),
        holder: holder(expect, wait, &stall.truth),
        share: share(expect, stall, finding),
        finding: said(expect, stall),
        alarms: alarms(expect, stall, twin),
    }
}

fn find<'a>(report: &'a Report, rule: &str) -> Option<&'a Finding> {
    report.findings.iter().find(|finding| finding.rule == rule)
}

/// The first that is there of `one|another`.
fn find_any<'a>(report: &'a Report, rules: &str) -> Option<&'a Finding> {
    rules.split('|').find_map(|rule| find(report, rule))
}

/// The longest wait with a cause; of those about the same thing as the finding, where there are any.
fn longest<'a>(report: &'a Report, cause: &str, about: Option<&Resource>) -> Option<&'a Wait> {
    report
        .waits
        .iter()
        .filter(|wait| wait.cause == cause)
        .max_by_key(|wait| (about == Some(&wait.resource), wait.ns))
}

fn cause(expect: &Expect, report: &Report, wait: Option<&Wait>) -> Check {
    let wanted = expect.path_cause();
    let main = report
        .causes
        .iter()
        .filter(|share| share.cause != QUEUEING || wanted == QUEUEING)
        .max_by(|a, b| a.share.total_cmp(&b.share));
    let seen = main.map_or("nothing", |share| share.cause.as_str());
    let right = wanted.split('|').any(|wanted| wanted == seen);
    if right && wait.is_none() {
        return Check {
            right: false,
            seen: format!("{seen}, and no wait with {}", expect.cause),
        };
    }
    let seen = if seen == expect.cause {
        seen.to_owned()
    } else {
        format!("{} → {seen}", expect.cause)
    };
    Check { right, seen }
}

/// Whether a text has one of the patterns.
fn named(words: Option<String>, patterns: &[String]) -> Check {
    let seen = words.unwrap_or_else(|| "nothing".to_owned());
    Check {
        right: patterns.iter().any(|pattern| seen.contains(pattern)),
        seen,
    }
}

fn holder(expect: &Expect, wait: Option<&Wait>, truth: &Truth) -> Option<Check> {
    if expect.holder.is_empty() {
        return None;
    }
    let holders = wait.map_or(&[][..], |wait| &wait.holders);
    let right = holders.iter().any(|task| {
        let words = format!("{} {} {}", task.process, task.thread, task.how_known);
        expect.holder.iter().any(|pattern| words.contains(pattern))
            && truth.holder_pid.is_none_or(|pid| pid == task.pid)
    });
    let mut seen: Vec<String> = holders
        .iter()
        .map(|task| format!("{} {} {}", task.process, task.pid, task.how_known))
        .collect();
    if seen.is_empty() {
        seen.push("nobody".to_owned());
    }
    if let (false, Some(pid)) = (right, truth.holder_pid) {
        seen.push(format!("(it was {pid})"));
    }
    Some(Check {
        right,
        seen: seen.join(", "),
    })
}

fn share(expect: &Expect, stall: &Observed, finding: Option<&Finding>) -> Check {
    let report = &stall.report;
    let measured = match expect.measure {
        Measure::Path => report
            .causes
            .iter()
            .find(|one| one.cause == expect.path_cause())
            .map(|one| one.share),
        Measure::Finding => finding.and_then(|finding| finding.share),
        Measure::Waits => {
            let waits = report.waits.iter().filter(|wait| wait.cause == expect.cause);
            Some(of(waits.map(|wait| wait.ns).sum(), report.coverage.observed_ns))
        }
    };
    let measured = 100.0 * measured.unwrap_or(0.0);
    // The workload's clock starts when the program does; to holdup its loading is elapsed time too.
    let elapsed = match expect.measure {
        Measure::Path | Measure::Finding => stall.truth.elapsed_ns.max(report.subject.wall_ns),
        Measure::Waits => stall.truth.elapsed_ns,
    };
    let truth = 100.0 * of(stall.truth.waited_ns, elapsed);
    Check {
        right: report.subject.wall_ns > 0 && (measured - truth).abs() <= expect.tolerance,
        seen: format!("{measured:.1} / {truth:.1} %"),
    }
}

fn said(expect: &Expect, stall: &Observed) -> Check {
    let report = &stall.report;
    // On a busy machine it does wait: for a CPU.
    let queued = stall.truly_contended();
    for rule in &expect.findings {
        if rule == NEVER_WAITS && queued && find(report, rule).is_none() {
            return Check {
                right: true,
                seen: "busy machine".to_owned(),
            };
        }
        if find_any(report, rule).is_none() {
            return Check {
                right: false,
                seen: format!("no {rule}"),
            };
        }
    }
    let Some(first) = expect.findings.first() else {
        return Check {
            right: true,
            seen: "-".to_owned(),
        };
    };
    let words = find_any(report, first).map(Finding::words).unwrap_or_default();
    let missing = expect
        .says
        .iter()
        .find(|text| !text.split('|').any(|either| words.contains(either)));
    match missing {
        Some(text) => Check {
            right: false,
            seen: format!("{first} does not say {text}"),
        },
        None => Check {
            right: true,
            seen: first.clone(),
        },
    }
}

/// Of the stall every finding that is not allowed, of the twin every one that says that something is wrong.
fn alarms(expect: &Expect, stall: &Observed, twin: &Observed) -> Check {
    let excused = |observed: &Observed, rule: &str| CONTENDED.contains(&rule) && observed.truly_contended();
    let allowed = |rule: &String| {
        let mut expected = expect.findings.iter().flat_map(|rules| rules.split('|'));
        expected.any(|one| one == rule) || expect.beside.contains(rule)
    };
    let of_stall = stall
        .report
        .findings
        .iter()
        .filter(|finding| !allowed(&finding.rule) && !excused(stall, &finding.rule))
        .map(|finding| format!("stall: {}", finding.rule));
    let of_twin = twin
        .report
        .findings
        .iter()
        .filter(|finding| finding.severity != "note" && !excused(twin, &finding.rule))
        .map(|finding| format!("twin: {}", finding.rule));
    let seen: Vec<String> = of_stall.chain(of_twin).collect();
    Check {
        right: seen.is_empty(),
        seen: if seen.is_empty() {
            "none".to_owned()
        } else {
            seen.join(", ")
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Observed, Row, judge};
    use crate::scenarios::report::Truth;
    use crate::scenarios::scenario::{Expect, Measure};
    use serde_json::{Value, json};

    fn expect() -> Expect {
        Expect {
            cause: "lock.file".to_owned(),
            on_path: None,
            measure: Measure::Path,
            resource: vec!["/job.lock".to_owned()],
            asker: vec!["flock".to_owned()],
            holder: vec!["flock".to_owned()],
            findings: vec!["waits-for-lock-holder".to_owned()],
            beside: vec!["waits-for-child".to_owned()],
            says: vec!["cron|flock".to_owned()],
            tolerance: 5.0,
        }
    }

    /// A report of a second, 97 % of it a lock that flock 7 held.
    fn report() -> Value {
        let resource = json!({"kind": "file", "name": "/tmp/job.lock", "detail": {"device": "8:1"}});
        let asker = json!({
            "pid": 9, "tid": 9, "process": "flock", "thread": "flock", "frame": null, "module": "flock", "stack": []
        });
        json!({
            "schema": "holdup.report/1",
            "subject": {"kind": "run", "wall_ns": 1_000_000_000},
            "coverage": {"observed_ns": 2_000_000_000u64},
            "causes": [
                {"cause": "cpu.user", "ns": 30_000_000, "share": 0.03},
                {"cause": "lock.file", "ns": 970_000_000, "share": 0.97},
            ],
            "waits": [{
                "cause": "lock.file", "ns": 970_000_000, "share": 0.485, "resource": resource, "asker": asker,
                "held_by": null,
                "holders": [{"pid": 7, "tid": 7, "process": "flock", "thread": "flock", "how_known": "file-lock"}],
            }],
            "findings": [{
                "rule": "waits-for-lock-holder", "severity": "warning", "cause": "lock.file", "title": "flock holds the lock",
                "share": 0.97, "resource": resource, "asker": asker,
                "evidence": [{"text": "in the kernel's list", "source": "/proc/locks"}], "remedies": [],
            }],
        })
    }

    fn observed(report: Value) -> Observed {
        Observed {
            report: serde_json::from_value(report).unwrap(),
            truth: Truth {
                waited_ns: 960_000_000,
                elapsed_ns: 1_000_000_000,
                queued_ns: 0,
                holder_pid: Some(7),
            },
            machine_queued_ns: 0,
        }
    }

    /// A twin about which nothing is to be said.
    fn twin() -> Observed {
        let mut report = report();
        report["findings"] = json!([]);
        observed(report)
    }

    /// The headings of the cells that are wrong.
    fn wrong(row: &Row) -> Vec<&'static str> {
        row.cells()
            .into_iter()
            .filter(|(_, check)| !check.right)
            .map(|(heading, _)| heading)
            .collect()
    }

    /// What is wrong after one change to the right report.
    fn wrong_after(change: impl FnOnce(&mut Value)) -> Vec<&'static str> {
        let mut report = report();
        change(&mut report);
        wrong(&judge(&expect(), &observed(report), &twin()))
    }

    #[test]
    fn a_right_report_is_right() {
        let row = judge(&expect(), &observed(report()), &twin());
        assert_eq!(wrong(&row), Vec::<&str>::new());
        assert_eq!(row.share.seen, "97.0 / 96.0 %");
        assert!(row.right());
    }

    #[test]
    fn another_main_cause_is_wrong() {
        assert_eq!(
            wrong_after(|report| report["causes"][0]["share"] = json!(0.98)),
            ["cause"]
        );
    }

    #[test]
    fn queueing_on_a_busy_machine_is_no_other_cause() {
        let busy = json!({"cause": "sched.runqueue", "ns": 0, "share": 0.99});
        assert_eq!(
            wrong_after(|report| report["causes"][0] = busy),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn a_followed_wait_must_be_there_itself() {
        let expect = Expect {
            on_path: Some("lock.file".to_owned()),
            cause: "process.child".to_owned(),
            ..expect()
        };
        let row = judge(&expect, &observed(report()), &twin());
        assert_eq!(wrong(&row), ["cause", "resource", "asker", "holder"]);
    }

    #[test]
    fn the_finding_s_resource_and_asker_are_judged() {
        let rename = |report: &mut Value| {
            report["findings"][0]["resource"]["name"] = json!("/tmp/other.lock");
            report["findings"][0]["asker"]["process"] = json!("sh");
            report["findings"][0]["asker"]["thread"] = json!("sh");
            report["findings"][0]["asker"]["module"] = json!("dash");
        };
        assert_eq!(wrong_after(rename), ["resource", "asker"]);
    }

    #[test]
    fn without_an_expected_finding_the_wait_is_judged() {
        let expect = Expect {
            findings: Vec::new(),
            says: Vec::new(),
            ..expect()
        };
        let mut report = report();
        report["findings"] = json!([]);
        assert!(judge(&expect, &observed(report.clone()), &twin()).right());
        report["waits"][0]["resource"]["name"] = json!("/tmp/other.lock");
        assert_eq!(wrong(&judge(&expect, &observed(report), &twin())), ["resource"]);
    }

    #[test]
    fn the_right_name_with_another_process_id_is_another_holder() {
        assert_eq!(
            wrong_after(|report| report["waits"][0]["holders"][0]["pid"] = json!(8)),
            ["holder"]
        );
    }

    #[test]
    fn a_share_beyond_the_tolerance_is_wrong() {
        assert_eq!(
            wrong_after(|report| report["causes"][1]["share"] = json!(0.90)),
            ["share"]
        );
    }

    #[test]
    fn a_finding_s_share_can_be_the_one_compared() {
        let expect = Expect {
            measure: Measure::Finding,
            ..expect()
        };
        let mut report = report();
        report["findings"][0]["share"] = json!(0.5);
        assert_eq!(wrong(&judge(&expect, &observed(report), &twin())), ["share"]);
    }

    #[test]
    fn threads_waits_are_of_all_observed_time() {
        let expect = Expect {
            measure: Measure::Waits,
            ..expect()
        };
        let mut stall = observed(report());
        assert_eq!(wrong(&judge(&expect, &stall, &twin())), ["share"]);
        stall.truth.elapsed_ns = 2_000_000_000;
        assert_eq!(wrong(&judge(&expect, &stall, &twin())), Vec::<&str>::new());
    }

    #[test]
    fn a_missing_finding_and_a_missing_word_are_wrong() {
        assert_eq!(wrong_after(|report| report["findings"] = json!([])), ["finding"]);
        assert_eq!(
            wrong_after(|report| report["findings"][0]["title"] = json!("held")),
            ["finding"]
        );
    }

    #[test]
    fn a_finding_that_is_not_allowed_is_a_false_alarm_even_as_a_note() {
        let mut other = report()["findings"][0].clone();
        other["rule"] = json!("peer-slow");
        other["severity"] = json!("note");
        let add =
            |other: Value| move |report: &mut Value| report["findings"].as_array_mut().unwrap().push(other);
        assert_eq!(wrong_after(add(other.clone())), ["false alarms"]);
        other["rule"] = json!("waits-for-child");
        assert_eq!(wrong_after(add(other)), Vec::<&str>::new());
    }

    #[test]
    fn a_warning_about_the_twin_is_a_false_alarm_and_a_note_is_none() {
        let mut healthy = report();
        let row = judge(&expect(), &observed(report()), &observed(healthy.clone()));
        assert_eq!(wrong(&row), ["false alarms"]);
        healthy["findings"][0]["severity"] = json!("note");
        assert!(judge(&expect(), &observed(report()), &observed(healthy)).right());
    }

    #[test]
    fn a_busy_cpu_is_no_false_alarm_when_the_workload_saw_it_too() {
        let mut report = report();
        report["findings"][0]["rule"] = json!("cpu-contended");
        report["findings"][0]["share"] = json!(0.22);
        let mut twin = observed(report);
        let stall = observed(self::report());
        assert_eq!(wrong(&judge(&expect(), &stall, &twin)), ["false alarms"]);
        twin.truth.queued_ns = 100_000_000;
        assert_eq!(wrong(&judge(&expect(), &stall, &twin)), ["false alarms"]);
        twin.truth.queued_ns = 200_000_000;
        assert!(judge(&expect(), &stall, &twin).right());
        twin.truth.queued_ns = 0;
        twin.machine_queued_ns = 300_000_000;
        assert!(judge(&expect(), &stall, &twin).right());
    }

    #[test]
    fn a_busy_machine_excuses_the_verdict_that_nothing_is_waited_for_and_no_other() {
        let mut report = report();
        report["findings"][0]["rule"] = json!("cpu-contended");
        report["findings"][0]["share"] = json!(0.2);
        let finding_right = |rule: &str, queued_ns, report: &Value| {
            let mut expect = expect();
            expect.findings = vec![rule.to_owned()];
            let mut stall = observed(report.clone());
            stall.truth.queued_ns = queued_ns;
            let row = judge(&expect, &stall, &observed(self::report()));
            !wrong(&row).contains(&"finding")
        };
        assert!(finding_right("cpu-bound", 200_000_000, &report));
        assert!(!finding_right("cpu-bound", 0, &report));
        assert!(!finding_right("peer-slow", 200_000_000, &report));
        // holdup has to say what it was instead.
        assert!(!finding_right("cpu-bound", 200_000_000, &self::report()));
    }
}
