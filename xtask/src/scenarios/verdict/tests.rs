//! Reports and truths that are right, and one thing at a time that is not.

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
        first: false,
        beside: vec!["waits-for-child".to_owned()],
        says: vec!["cron|flock".to_owned()],
        host_says: Vec::new(),
        ruled_out: Vec::new(),
        not_measured: Vec::new(),
        tolerance: 5.0,
        tolerance_reason: None,
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
fn what_people_suspect_must_be_ruled_out_with_a_figure() {
    let expect = Expect {
        ruled_out: vec!["random-reads-dominate".to_owned()],
        ..expect()
    };
    let judged = |why: &str| {
        let mut with = report();
        with["ruled_out"] = json!([{"rule": "random-reads-dominate", "why": why}]);
        let mut twin = with.clone();
        twin["findings"] = json!([]);
        wrong(&judge(&expect, &observed(with), &observed(twin)))
    };
    assert_eq!(judged("making random bytes took 3 ms"), Vec::<&str>::new());
    assert_eq!(judged("none was made"), ["false alarms"]);
    assert_eq!(
        wrong(&judge(&expect, &observed(report()), &twin())),
        ["false alarms"]
    );
}

#[test]
fn what_could_not_be_measured_must_be_said() {
    let expect = Expect {
        not_measured: vec!["it is stopped".to_owned()],
        ..expect()
    };
    let judged = |why: &str| {
        let mut with = report();
        let missing = json!([{"what": "Java frames", "why": why, "fix": "let it go on"}]);
        with["coverage"]["not_measured"] = missing;
        wrong(&judge(&expect, &observed(with), &twin()))
    };
    assert_eq!(judged("asked for nothing: it is stopped"), Vec::<&str>::new());
    assert_eq!(judged("it is frozen"), ["false alarms"]);
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
    let add = |other: Value| move |report: &mut Value| report["findings"].as_array_mut().unwrap().push(other);
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
fn what_must_be_the_first_finding_is_right_only_there() {
    let expect = Expect {
        first: true,
        ..expect()
    };
    let right = wrong(&judge(&expect, &observed(report()), &twin()));
    assert_eq!(right, Vec::<&str>::new());
    let mut behind = report();
    let mut other = behind["findings"][0].clone();
    other["rule"] = json!("waits-for-child");
    behind["findings"].as_array_mut().unwrap().insert(0, other);
    assert_eq!(wrong(&judge(&expect, &observed(behind), &twin())), ["finding"]);
}

#[test]
fn of_a_whole_machine_the_finding_and_its_own_words_are_judged() {
    let with = |fact: &str| {
        let mut report = report();
        report["host"] =
            json!({"verdict": "Load 37", "facts": [{"kind": "x", "text": fact}], "resources": []});
        report["findings"][0]["share"] = json!(null);
        report["causes"] = json!([]);
        report
    };
    let expect = Expect {
        host_says: vec!["is frozen".to_owned()],
        ..expect()
    };
    let judged = |stall: &str, twin: &str| {
        let mut healthy = with(twin);
        healthy["findings"] = json!([]);
        wrong(&judge(&expect, &observed(with(stall)), &observed(healthy)))
    };
    assert_eq!(judged("/a is frozen", "none"), Vec::<&str>::new());
    assert_eq!(judged("none", "none"), ["finding"]);
    assert_eq!(judged("/a is frozen", "/b is frozen"), ["finding"]);
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

#[test]
fn a_row_is_loose_when_it_needs_its_tolerance_or_an_allowance() {
    let stall = observed(report());
    let row = judge(&expect(), &stall, &twin());
    assert!(row.right() && !row.loose());
    assert!(
        row.off.is_some_and(|off| (off - 1.0).abs() < 0.01),
        "{:?}",
        row.off
    );

    let mut wide = expect();
    wide.tolerance = 15.0;
    let mut far = observed(report());
    far.truth.waited_ns = 900_000_000;
    let row = judge(&wide, &far, &twin());
    assert!(row.right() && row.loose());

    let mut beside = report();
    let mut second = beside["findings"][0].clone();
    second["rule"] = json!("waits-for-child");
    beside["findings"].as_array_mut().unwrap().push(second);
    let row = judge(&expect(), &observed(beside), &twin());
    assert!(row.right() && row.loose());

    // What is not right is not loosely right.
    let row = judge(&expect(), &far, &twin());
    assert!(!row.right() && !row.loose());
}

#[test]
fn of_a_recorded_machine_findings_are_judged_beside_others_that_rightly_say_that_it_was_busy() {
    let mut stall = report();
    stall["recording"] = json!({"machine": true});
    stall["causes"] = json!([]);
    stall["findings"][0]["share"] = json!(null);
    let mut busy = stall["findings"][0].clone();
    busy["cause"] = json!("sched.runqueue");
    busy["title"] = json!("a build had the CPUs");
    let mut twin = stall.clone();
    twin["findings"] = json!([busy]);
    stall["findings"] = json!([busy, stall["findings"][0]]);
    let expect = Expect {
        first: true,
        says: vec!["flock holds the lock".to_owned()],
        ..expect()
    };
    let judged = |queued: u64| {
        let of = |report: &Value| Observed {
            machine_queued_ns: queued,
            ..observed(report.clone())
        };
        wrong(&judge(&expect, &of(&stall), &of(&twin)))
    };
    assert_eq!(judged(500_000_000), Vec::<&str>::new());
    assert_eq!(judged(0), ["cause", "finding", "false alarms"]);
}
