//! What conditions come to, over reports made for it.

use super::{Conditions, Evidence, judge, runs_needed};
use holdup_model::report::{Check, GateOutcome, Report};
use serde_json::{Value, json};

fn report(change: impl FnOnce(&mut Value)) -> Report {
    let share = |cause: &str, ns: u64| json!({"cause": cause, "ns": ns, "share": ns as f64 / 1e9, "count": 1, "max_ns": ns, "open": false});
    let mut value = json!({
        "schema": "holdup.report/1",
        "holdup": {"version": "0"},
        "subject": {"kind": "run", "command": ["x"], "pids": [1], "started": "", "wall_ns": 1_000_000_000, "exit": 0},
        "coverage": {"backend": "bpf", "observed_ns": 1_000_000_000, "attributed_ns": 1_000_000_000, "unknown_ns": 0,
                     "lost": [], "not_measured": [], "own_cost_ns": 0},
        "causes": [share("disk.sync", 150_000_000), share("disk.read", 100_000_000), share("cpu.user", 750_000_000)],
        "requests": null, "threads": [], "waits": [], "findings": [],
        "ruled_out": [{"rule": "clear-rule", "why": "0"}],
        "cannot_tell": [{"rule": "open-rule", "missing": "no data"}]
    });
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

fn finding(rule: &str, severity: &str, resource: &str) -> Value {
    json!({"rule": rule, "severity": severity, "title": format!("{rule} of {resource}"), "cause": "disk.sync", "ns": 1, "share": 0.1,
           "resource": {"kind": "file", "name": resource, "detail": {}},
           "asker": {"pid": 1, "tid": 1, "process": "x", "thread": "x", "frame": null, "module": null, "stack": []},
           "evidence": [{"text": "t", "source": "s"}], "remedies": [], "confidence": "strong"})
}

fn checks(conditions: &str, report: &Report, baselines: &[Report]) -> Vec<Check> {
    let conditions = Conditions::parse(conditions, |_| true).unwrap();
    let with = Evidence {
        report,
        baselines,
        undecided: |report| {
            report
                .causes
                .iter()
                .any(|one| one.cause.id() == "unknown" && one.share > 0.5)
        },
    };
    judge(&conditions, with).checks
}

fn outcome(condition: &str, report: &Report, baselines: &[Report]) -> GateOutcome {
    let checks = checks(condition, report, baselines);
    assert_eq!(checks.len(), 1);
    assert!(!checks[0].text.is_empty());
    checks[0].outcome
}

use GateOutcome::{CannotTell, Failed, Passed};

#[test]
fn causes_and_areas_are_compared_with_shares_and_times() {
    let plain = report(|_| {});
    for (condition, expected) in [
        ("disk.sync>10%", Failed),
        ("disk.sync>20%", Passed),
        ("disk>20%", Failed),
        ("disk>25%", Passed),
        ("disk.sync>149ms", Failed),
        ("disk.sync>150ms", Passed),
        ("net.dns>0%", Passed),
    ] {
        assert_eq!(outcome(condition, &plain, &[]), expected, "{condition}");
    }
    let failed = &checks("disk>20%", &plain, &[])[0];
    assert_eq!(failed.text, "disk took 25.0 % of 1.00 s (250 ms), more than 20%");
    let measured = failed.measured.unwrap();
    assert_eq!(
        (measured.low, measured.value, measured.high),
        (0.25, 0.25, Some(0.25))
    );
}

#[test]
fn time_without_a_cause_may_be_any_cause() {
    let partly = report(|value| {
        value["causes"][2] = json!({"cause": "unknown", "ns": 750_000_000, "share": 0.75, "count": 1, "max_ns": 1, "open": false});
    });
    assert_eq!(
        outcome("disk.sync>10%", &partly, &[]),
        Failed,
        "what is known is enough"
    );
    assert_eq!(outcome("disk.sync>20%", &partly, &[]), CannotTell);
    assert_eq!(
        outcome("disk.sync>95%", &partly, &[]),
        Passed,
        "even with all that is not known"
    );
    assert_eq!(outcome("unknown>50%", &partly, &[]), Failed);
    for condition in ["finding:clear-rule", "severity>=note", "new-finding"] {
        assert_eq!(
            outcome(condition, &partly, &[report(|_| {})]),
            CannotTell,
            "{condition}"
        );
    }
}

#[test]
fn an_observation_that_was_cut_off_bounds_nothing() {
    let cut = report(|value| value["subject"]["exit"] = Value::Null);
    assert_eq!(
        outcome("disk.sync>100ms", &cut, &[]),
        Failed,
        "it took that already"
    );
    assert_eq!(outcome("disk.sync>200ms", &cut, &[]), CannotTell);
    assert_eq!(
        outcome("disk.sync>10%", &cut, &[]),
        CannotTell,
        "the whole is not known"
    );
    let nothing = report(|value| value["causes"] = json!([]));
    assert_eq!(outcome("disk.sync>10%", &nothing, &[]), CannotTell);
    assert_eq!(outcome("disk.sync>1ms", &nothing, &[]), CannotTell);
}

#[test]
fn files_prove_only_what_is_in_them() {
    let read = report(|value| {
        value["subject"]["kind"] = json!("read");
        value["coverage"]["backend"] = json!("artefact");
        value["coverage"]["observed_ns"] = Value::Null;
    });
    assert_eq!(outcome("disk.sync>100ms", &read, &[]), Failed);
    assert_eq!(outcome("net.dns>100ms", &read, &[]), CannotTell);
    assert_eq!(outcome("disk.sync>1%", &read, &[]), CannotTell);
}

#[test]
fn an_estimate_counts_with_its_error() {
    let sampled = report(|value| {
        value["waits"] = json!([{
            "cause": "disk.sync", "ns": 150_000_000, "share": 0.15, "count": 1, "max_ns": 1, "p50_ns": 1, "p99_ns": 1,
            "max_started": null, "max_started_boot_ns": null, "how": "sampled", "error_ns": 40_000_000, "open": false, "timed_out": 0,
            "path_ns": 150_000_000, "handed_on_ns": 0, "call": null,
            "resource": {"kind": "file", "name": "x", "detail": {}},
            "asker": {"pid": 1, "tid": 1, "process": "x", "thread": "x", "frame": null, "module": null, "stack": []},
            "held_by": null, "holders": [], "chain": [], "ran_instead": [], "kernel_stack": []
        }]);
    });
    assert_eq!(outcome("disk.sync>5%", &sampled, &[]), Failed);
    assert_eq!(outcome("disk.sync>10%", &sampled, &[]), CannotTell);
    assert_eq!(outcome("disk.sync>20%", &sampled, &[]), CannotTell);
    assert_eq!(outcome("disk.sync>25%", &sampled, &[]), Passed);
}

#[test]
fn a_rule_has_three_verdicts_and_so_has_a_condition() {
    let with = report(|value| value["findings"] = json!([finding("bad-rule", "note", "/a")]));
    for (condition, expected) in [
        ("finding:bad-rule", Failed),
        ("finding:clear-rule", Passed),
        ("finding:open-rule", CannotTell),
        ("finding:rule-for-something-else", CannotTell),
        ("severity>=note", Failed),
        ("severity>=warning", Passed),
    ] {
        assert_eq!(outcome(condition, &with, &[]), expected, "{condition}");
    }
    let worse = report(|value| {
        value["findings"] = json!([finding("a", "note", "/a"), finding("b", "critical", "/b")]);
    });
    let check = &checks("severity>=warning", &worse, &[])[0];
    assert_eq!((check.outcome, &check.findings[..]), (Failed, &[1][..]));
}

#[test]
fn a_finding_is_new_by_rule_cause_and_resource() {
    let of = |findings: Value| report(|value| value["findings"] = findings);
    let before = of(json!([finding("clear-rule", "warning", "/tmp/work-4711/queue")]));
    let again = of(json!([finding("clear-rule", "warning", "/tmp/work-9042/queue")]));
    assert_eq!(
        outcome("new-finding", &again, std::slice::from_ref(&before)),
        Passed,
        "names of one run"
    );
    let elsewhere = of(json!([finding("clear-rule", "warning", "/var/mail")]));
    assert_eq!(
        outcome("new-finding", &elsewhere, std::slice::from_ref(&before)),
        Failed
    );
    assert_eq!(
        outcome("new-finding", &elsewhere, &[before.clone(), elsewhere.clone()]),
        Passed,
        "known from one of them"
    );
    let note = of(json!([finding("clear-rule", "note", "/var/mail")]));
    assert_eq!(
        outcome("new-finding", &note, std::slice::from_ref(&before)),
        Passed
    );
    for rule in ["open-rule", "rule-of-a-later-version"] {
        let unjudged = of(json!([finding(rule, "warning", "/var/mail")]));
        assert_eq!(
            outcome("new-finding", &unjudged, std::slice::from_ref(&before)),
            CannotTell,
            "{rule}"
        );
    }
    let attach = report(|value| value["subject"]["kind"] = json!("attach"));
    assert_eq!(outcome("new-finding", &again, &[attach]), CannotTell);
}

/// A comparison of a change, with an interval, both as parts of BEFORE in thousandths.
fn compared(change: i64, interval: Option<[i64; 2]>, significant: Option<bool>) -> Report {
    report(|value| {
        value["comparison"] = json!({
            "before": "b", "after": "a", "unit": "run", "before_ns": 1_000_000, "after_ns": 1_000_000 + change * 1_000,
            "change_ns": change * 1_000, "interval_ns": interval.map(|ends| ends.map(|end| end * 1_000)),
            "significant": significant, "before_n": 4, "after_n": 4, "causes": [], "noise_n": 0, "compared": "recordings",
            "verdict": [], "trade": null, "method": "", "seed": 0, "p": null, "run_to_run": 0.05, "before_units": 4.0,
            "after_units": 4.0, "explained_ns": null, "unexplained_ns": null, "amounts": [], "made": [], "differences": [],
            "notes": []
        });
    })
}

#[test]
fn a_regression_is_one_only_where_it_is_more_than_chance() {
    for (condition, change, interval, significant, expected) in [
        ("regression", 100, Some([60, 140]), Some(true), Failed),
        ("regression", 20, Some([-30, 70]), Some(false), Passed),
        ("regression", -100, Some([-140, -60]), Some(true), Passed),
        ("regression", 100, None, None, CannotTell),
        ("regression", 100, Some([90, 110]), None, CannotTell),
        ("regression>5%", 100, Some([60, 140]), Some(true), Failed),
        ("regression>5%", 100, Some([30, 170]), Some(true), CannotTell),
        ("regression>5%", 20, Some([-30, 70]), Some(false), CannotTell),
        ("regression>10%", 20, Some([-30, 70]), Some(false), Passed),
        ("regression>5%", 100, None, Some(true), CannotTell),
        ("regression>5%", -100, None, Some(true), Passed),
    ] {
        let report = compared(change, interval, significant);
        assert_eq!(
            outcome(condition, &report, &[]),
            expected,
            "{condition} {change} {interval:?}"
        );
    }
    let said = &checks("regression", &compared(100, None, None), &[])[0].text;
    assert!(said.contains("runs of each"), "{said}");
    assert_eq!(outcome("regression", &report(|_| {}), &[]), CannotTell);
}

#[test]
fn more_variation_needs_more_runs() {
    assert_eq!(runs_needed(0.001, 0.10), 4, "never fewer than the test can use");
    assert!(runs_needed(0.05, 0.10) < runs_needed(0.10, 0.10));
    assert_eq!(runs_needed(f64::NAN, 0.10), 1_000);
    assert_eq!(runs_needed(0.05, 0.0), 1_000);
}
