//! What `--events` keeps is all that a report is made of: judged again it gives the same report.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::Command;

const PIPELINE: &str = "sleep 0.1; seq 20000 | (sleep 0.05; sort -n) | tail -1 >/dev/null";

/// Runs holdup with these words before the command's, and gives back its own report and that of its events.
fn both(words: &[&str], command: &[&str]) -> (Value, Value) {
    let folder = tempfile::TempDir::new().unwrap();
    let (report, events) = (folder.path().join("r.json"), folder.path().join("e.gz"));
    let status = Command::new(support::HOLDUP)
        .args(words)
        .arg("--json")
        .arg(&report)
        .arg("--events")
        .arg(&events)
        .args(command)
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
    let mut own: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    // On which machine it was: no matter of events.
    own.as_object_mut().unwrap().remove("machine");
    (own, again(&events))
}

fn again(events: &Path) -> Value {
    let mut text = Vec::new();
    holdup_views::json::write(&holdup_replay::report(events).unwrap(), &mut text).unwrap();
    let mut report: Value = serde_json::from_slice(&text).unwrap();
    report.as_object_mut().unwrap().remove("machine");
    report
}

/// Of two reports the parts that are not the same.
fn different(one: &Value, other: &Value) -> Vec<String> {
    let (one, other) = (one.as_object().unwrap(), other.as_object().unwrap());
    let keys = one
        .keys()
        .chain(other.keys().filter(|key| !one.contains_key(*key)));
    keys.filter(|key| one.get(*key) != other.get(*key))
        .map(|key| format!("{key}: {:?} / {:?}", one.get(key), other.get(key)))
        .collect()
}

#[test]
fn the_events_of_a_traced_run_give_its_report() {
    let (own, again) = both(&["run"], &["--", "sh", "-c", PIPELINE]);
    assert_eq!(different(&own, &again), Vec::<String>::new());
}

#[test]
fn the_events_of_a_traced_python_program_give_its_report() {
    let program = "import time\nfor _ in range(5): time.sleep(0.2)";
    let (own, again) = both(&["run"], &["--", "/usr/bin/python3", "-c", program]);
    assert_eq!(different(&own, &again), Vec::<String>::new());
    let waits = own["waits"].as_array().unwrap();
    assert!(
        waits.iter().any(|wait| wait["asker"]["frame"] == "<module>"),
        "{waits:#?}"
    );
}

#[test]
fn the_events_of_a_sampled_run_give_its_report() {
    let (own, again) = both(&["run", "--backend", "proc"], &["--", "sh", "-c", PIPELINE]);
    assert_eq!(different(&own, &again), Vec::<String>::new());
}

#[test]
fn the_events_of_an_attach_give_its_report() {
    let sleeper = support::Guarded::spawn(Command::new("sleep").arg("1000"));
    let pid = sleeper.0.id().to_string();
    for backend in ["bpf", "proc"] {
        let (own, again) = both(
            &["attach", "--backend", backend, "-d", "0.3", "-p", pid.as_str()],
            &[],
        );
        assert_eq!(different(&own, &again), Vec::<String>::new());
    }
}
