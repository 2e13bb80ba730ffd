//! What holds for the rule base as a whole.

use super::examples::{mostly, well_made};
use super::{ALL, Generality, Need, Rule, RuleId, Run, judge};
use holdup_evidence::facts::BlockDevice;
use holdup_evidence::{Cause, Ns, SystemFacts};
use holdup_model::attributed::{Attributed, AttributedWait, Link, ThreadName};
use holdup_model::finding::Severity;
use std::collections::BTreeSet;
use std::path::Path;

/// What `cargo xtask new rule` begins with.
#[path = "../../../../xtask/src/new/rule.rs.txt"]
mod template;

const SECOND: Ns = 1_000_000_000;

/// A wait of which nothing is known.
pub(super) fn wait() -> AttributedWait {
    serde_json::from_value(serde_json::json!({"cause": "lock.futex"})).expect("all else has a default")
}

#[test]
fn what_a_new_rule_begins_with_compiles_and_is_well_formed() {
    assert!(matches!(template::RULE.check, super::Check::Waits(_)));
    assert_eq!(template::RULE.from, super::MATTERS);
}

/// Stems of the files with this extension in the areas' folders, with their areas.
fn stems(extension: &str) -> BTreeSet<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules");
    let areas = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = areas
        .filter(|path| path.is_dir())
        .flat_map(|area| std::fs::read_dir(area).unwrap());
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|is| is == extension))
        .map(|path| (name(&path), name(path.parent().unwrap())))
        .collect()
}

#[test]
fn the_list_is_the_folder_and_every_rule_has_its_page() {
    let (rules, pages) = (stems("rs"), stems("md"));
    let lonely: Vec<_> = rules.symmetric_difference(&pages).collect();
    assert!(
        lonely.is_empty(),
        "a rule without a page, or a page without a rule: {lonely:?}"
    );
    let listed: Vec<&str> = ALL.iter().map(|rule| rule.id.id()).collect();
    let there: Vec<&str> = rules.iter().map(|(stem, _)| stem.as_str()).collect();
    assert_eq!(listed, there, "list.rs is out of date: cargo xtask gen");
}

#[test]
fn a_rule_says_what_it_looks_at_and_what_it_needs() {
    for rule in ALL {
        let id = rule.id.id();
        assert!(!rule.about.is_empty() && !rule.causes.is_empty(), "{id}");
        assert!(
            !rule.needs.is_empty() && rule.needs.is_sorted(),
            "{id}: needs are sorted and not empty"
        );
        assert_eq!(
            rule.needs.contains(&Need::Artefacts),
            rule.of_artefacts_only(),
            "{id}: needs artefacts where it never sees a live run"
        );
    }
    for need in Need::ALL {
        assert!(
            ALL.iter().any(|rule| rule.needs.contains(need)),
            "no rule needs {need:?}"
        );
    }
}

/// All rules that one explains, through others too; `path` is how it was reached.
fn explained(rule: &'static Rule, path: &[RuleId]) -> BTreeSet<RuleId> {
    assert!(!path.contains(&rule.id), "a circle: {path:?}");
    let path = [path, &[rule.id]].concat();
    let each = rule.explains.iter();
    each.flat_map(|other| {
        let mut all = explained(other.rule(), &path);
        all.insert(*other);
        all
    })
    .collect()
}

#[test]
fn explanations_are_no_circle_lead_to_more_general_rules_and_are_given_once() {
    for rule in ALL {
        let id = rule.id.id();
        assert_eq!(rule.id.rule().id, rule.id, "rules are in the order of their ids");
        assert!(rule.explains.is_sorted(), "{id}: sorted");
        explained(rule, &[]);
        for other in rule.explains {
            let general = other.rule();
            let consequence = [rule, general]
                .iter()
                .any(|rule| rule.generality == Generality::Consequence);
            assert!(
                consequence || general.generality <= rule.generality,
                "{id} explains {}, which is more specific",
                other.id()
            );
            let through = rule
                .explains
                .iter()
                .find(|third| *third != other && explained(third.rule(), &[]).contains(other));
            assert_eq!(through, None, "{id} explains {} through this one", other.id());
        }
    }
}

#[test]
fn any_cause_but_own_code_above_thirty_percent_has_a_finding() {
    let facts = SystemFacts::default();
    for &cause in Cause::ALL.iter().filter(|cause| **cause != Cause::CpuUser) {
        for pieces in [1, 3, 100] {
            for elapsed in [SECOND / 1000, SECOND, 1000 * SECOND] {
                let run = mostly(cause, pieces, 0.31, elapsed);
                let judgement = judge(&Run::new(&run, &facts));
                let place = format!("{cause}, {pieces} pieces, {elapsed} ns");
                assert!(
                    judgement.findings.iter().any(|finding| finding.cause == cause),
                    "{place}"
                );
                judgement
                    .findings
                    .iter()
                    .for_each(|finding| well_made(finding, &place));
            }
        }
    }
}

#[test]
fn nothing_is_called_trouble_that_takes_a_twentieth_or_a_moment() {
    let facts = SystemFacts::default();
    for &cause in Cause::ALL {
        for (share, elapsed) in [(0.05, 100 * SECOND), (0.9, SECOND / 10)] {
            let run = mostly(cause, 1, share, elapsed);
            let judgement = judge(&Run::new(&run, &facts));
            let trouble = judgement
                .findings
                .iter()
                .find(|finding| finding.severity > Severity::Note);
            assert_eq!(trouble, None, "{cause}, {share} of {elapsed} ns");
        }
    }
}

#[test]
fn a_chain_of_children_is_told_once_by_the_first() {
    let facts = SystemFacts::default();
    let name = |pid: u32, process: &str| ThreadName {
        pid,
        tid: pid,
        process: process.to_owned(),
        thread: process.to_owned(),
    };
    let link = |pid, process, cause| Link {
        name: name(pid, process),
        cause,
        ns: SECOND,
        frame: None,
    };
    let mut run = mostly(Cause::ProcessChild, 2, 0.9, SECOND);
    let (git, hook) = run.waits.split_at_mut(1);
    let (git, hook) = (&mut git[0], &mut hook[0]);
    (git.asker.name, hook.asker.name) = (name(1, "git"), name(2, "hook"));
    git.chain = vec![
        link(1, "git", Cause::ProcessChild),
        link(2, "hook", Cause::ProcessChild),
        link(3, "sleep", Cause::TimerSleep),
    ];
    hook.chain = git.chain[1..].to_vec();
    let waiters = |run: &Attributed| -> Vec<String> {
        let found = judge(&Run::new(run, &facts)).findings;
        let found = found
            .into_iter()
            .filter(|finding| finding.rule == "waits-for-child");
        found.map(|finding| finding.asker.name.process).collect()
    };
    assert_eq!(waiters(&run), ["git"]);
    // Where most of the inner wait is outside the outer one, each is reported.
    run.waits[1].path_ns *= 2;
    assert_eq!(waiters(&run), ["hook", "git"]);
}

#[test]
fn the_disk_of_a_guest_is_not_said_to_turn() {
    let mut run = mostly(Cause::DiskRead, 1, 0.9, 10 * SECOND);
    let wait = &mut run.waits[0];
    wait.count = 900;
    wait.p50 = 9_000_000;
    wait.resource.detail.device = Some("sda".into());
    let mut facts = SystemFacts {
        block_devices: vec![BlockDevice {
            name: "sda".into(),
            rotational: Some(true),
            ..BlockDevice::default()
        }],
        ..SystemFacts::default()
    };
    let turns = |facts: &SystemFacts| {
        let found = judge(&Run::new(&run, facts)).findings;
        let mut evidence = found.iter().flat_map(|finding| finding.evidence());
        evidence.any(|evidence| evidence.text.contains("is a rotating disk"))
    };
    assert!(turns(&facts));
    facts.random.virtual_machine = Some(true);
    assert!(!turns(&facts));
}

#[test]
fn every_rule_is_heard_exactly_once() {
    let facts = SystemFacts::default();
    for &cause in Cause::ALL {
        let run = mostly(cause, 1, 0.95, 10 * SECOND);
        let judgement = judge(&Run::new(&run, &facts));
        let mut heard: Vec<&str> = judgement
            .findings
            .iter()
            .map(|finding| finding.rule.as_str())
            .collect();
        heard.dedup();
        heard.extend(
            judgement
                .ruled_out
                .iter()
                .chain(&judgement.cannot_tell)
                .map(|(id, _)| id.id()),
        );
        heard.sort_unstable();
        let asked = ALL.iter().filter(|rule| rule.of_runs());
        let all: Vec<&str> = asked.map(|rule| rule.id.id()).collect();
        assert_eq!(heard, all, "{cause}");
    }
}

#[test]
fn an_empty_run_is_no_trouble() {
    let judgement = judge(&Run::new(&Default::default(), &SystemFacts::default()));
    assert_eq!(judgement.findings, []);
    let asked = ALL.iter().filter(|rule| rule.of_runs());
    assert_eq!(judgement.ruled_out.len(), asked.count());
}
