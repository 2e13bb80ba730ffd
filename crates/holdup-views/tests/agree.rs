//! The report's own arithmetic, and that what a person reads is what a program reads.

mod samples;

use holdup_model::report::Report;
use holdup_views::{Format, Style, json, terminal};
use serde_json::Value;

fn json(report: &Report) -> Value {
    let mut out = Vec::new();
    json::write(report, &mut out).expect("a vector takes everything");
    serde_json::from_slice(&out).expect("what is written is JSON")
}

fn text(report: &Report) -> String {
    let mut out = Vec::new();
    terminal::write(report, &Style::default(), &mut out).expect("a vector takes everything");
    String::from_utf8(out).expect("only text is written")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().expect("every list is there")
}

#[test]
fn shares_add_up_and_are_sorted() {
    let whole = samples::all().into_iter();
    // A comparison observed nothing, nor did what only measured.
    let observed = |report: &Report| report.comparison.is_none() && !report.waits.is_empty();
    for (name, report) in whole.filter(|(_, report)| observed(report)) {
        let json = json(&report);
        let shares: Vec<f64> = list(&json, "causes")
            .iter()
            .filter_map(|cause| cause["share"].as_f64())
            .collect();
        let sum: f64 = shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{name}: {sum}");
        assert!(shares.is_sorted_by(|a, b| a >= b), "{name}: {shares:?}");
        let ns: u64 = list(&json, "causes")
            .iter()
            .filter_map(|cause| cause["ns"].as_u64())
            .sum();
        assert_eq!(Some(ns), json["subject"]["wall_ns"].as_u64(), "{name}");
    }
}

#[test]
fn large_causes_have_the_same_share_in_both() {
    // Of workers that were measured the text has what grew, in the place of what they waited for.
    let found = samples::all()
        .into_iter()
        .filter(|(_, report)| report.scaling.is_none());
    for (name, report) in found {
        let (json, text) = (json(&report), text(&report));
        for cause in list(&json, "causes") {
            let share = cause["share"].as_f64().expect("a number");
            if share < 0.05 {
                continue;
            }
            let id = cause["cause"].as_str().expect("an id");
            let percent = format!("{:.1} %", share * 100.0);
            // The id is at the edge of the next line where the words fill the first.
            let lines: Vec<&str> = text.lines().collect();
            let entry = |pair: &[&str]| {
                let [first, next] = pair else { return false };
                let full = !first.contains("  ".repeat(8).as_str()) && next.ends_with(id);
                first.trim_start().starts_with(&percent) && (first.ends_with(id) || full)
            };
            assert!(
                lines.windows(2).any(entry),
                "{name}: no entry with {percent} and {id} in\n{text}"
            );
        }
    }
}

#[test]
fn findings_are_the_same_in_both_unless_too_little_was_seen() {
    for (name, report) in samples::all() {
        let (json, text) = (json(&report), text(&report));
        for finding in list(&json, "findings") {
            let rule = finding["rule"].as_str().expect("an id");
            let shown = text
                .lines()
                .any(|line| !line.contains("holdup explain") && line.ends_with(rule));
            assert_eq!(shown, name != "low coverage", "{name}: {rule} in\n{text}");
        }
        assert_eq!(text.contains("No verdict"), name == "low coverage", "{name}");
    }
}

/// The page holds the report itself; these are what people read of it.
fn written(report: &Report) -> [String; 2] {
    let markdown = {
        let mut out = Vec::new();
        Format::Markdown
            .write(report, &mut out)
            .expect("a vector takes everything");
        String::from_utf8(out).expect("only text is written")
    };
    [text(report), markdown]
}

#[test]
fn an_experiment_has_the_same_figures_everywhere_and_its_causes_are_its_elapsed_time() {
    let report = samples::experiment::in_memory();
    let json = json(&report);
    let found = &json["experiment"];
    let figure = |name: &str| found[name].as_f64().expect("a number");
    assert!((figure("speedup") - figure("baseline_ns") / figure("measured_ns")).abs() < 1e-6);
    for (arm, elapsed) in [("baseline_ns", 0), ("measured_ns", 1)] {
        let causes: f64 = list(found, "causes")
            .iter()
            .filter_map(|one| one[arm].as_f64())
            .sum();
        let pairs = list(found, "pairs");
        let mean = pairs
            .iter()
            .filter_map(|pair| pair[elapsed].as_f64())
            .sum::<f64>()
            / pairs.len() as f64;
        // Means of each cause are rounded by themselves.
        assert!(
            (causes - mean).abs() <= list(found, "causes").len() as f64,
            "{arm}: {causes} and {mean}"
        );
    }
    for text in written(&report) {
        // Lines are broken, and figures and units are not.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let factor = format!("{:.2} times as fast", figure("speedup"));
        for words in [factor.as_str(), "1.07 s", "3.7 ms of disk", "disk.sync"] {
            assert!(text.contains(words), "no {words} in\n{text}");
        }
        assert!(
            text.contains("durability: a crash or a reboot clears memory"),
            "{text}"
        );
    }
}

#[test]
fn a_scaling_has_the_same_verdict_everywhere_observed_or_not() {
    for report in [samples::scale::contends(), samples::scale::observed()] {
        let json = json(&report);
        assert_eq!(json["scaling"]["verdict"], "contends");
        let on = json["scaling"]["contends_on"].as_str().expect("a name");
        for text in written(&report) {
            assert!(text.contains(on), "no {on} in\n{text}");
            for point in list(&json["scaling"], "points") {
                let workers = point["workers"].to_string();
                let row = |line: &str| {
                    line.split(|other: char| !other.is_ascii_digit())
                        .any(|word| word == workers)
                };
                assert!(text.lines().any(row), "no {workers} workers in\n{text}");
            }
        }
    }
}

#[test]
fn the_longest_holder_is_the_one_named() {
    let mut sample = samples::hostile();
    let holders = &mut sample.attributed.waits[0].holders;
    let mut longer = holders[0].clone();
    longer.name.pid = 77;
    longer.ns += 1;
    holders.push(longer);
    let json = json(&sample.report());
    assert_eq!(json["waits"][0]["held_by"]["pid"], 77);
    assert_eq!(json["waits"][0]["holders"].as_array().map(Vec::len), Some(2));
}

#[test]
fn instants_are_dates_with_a_zone_and_times_since_boot() {
    let json = json(&samples::sshd().report());
    assert_eq!(json["subject"]["started"], "2023-11-14T22:13:21.8Z");
    assert_eq!(json["waits"][0]["max_started"], "2023-11-14T22:13:21.8Z");
    assert_eq!(json["waits"][0]["max_started_boot_ns"], 1_800 * samples::MS);
    assert_eq!(json["waits"][1]["max_started"], Value::Null);
}
