//! The examples in the rules' pages, run as tests.
//!
//! In: the fenced blocks ```` ```toml fires ````, ```` ```toml near-miss ```` and ```` ```toml cannot-tell ```` of every
//! page. An example is a run in short: `elapsed`, `[[wait]]` tables with the fields of `AttributedWait`, and `facts` and `[[connections]]`.
//! Lengths may be written as text (`"1.5s"`). `process` names the waiter (and its thread, unless `thread` does), `pid` and `tid` number it; `ns`, `p50`, `p99`,
//! `max` and `count` may be left out. `[[thread]]` tables are threads that the report lists together. `expect` are texts that the finding must contain;
//! An example with `[observed]` is of artefacts instead, with the fields of `Observed`; it needs no `elapsed`. `severity` and `confidence`
//! are what it must be; `also` are the other rules that call this run trouble, all of them.

use super::{RuleId, Run, judge};
use holdup_evidence::{Cause, Ns, Observed, SystemFacts};
use holdup_model::attributed::{Attributed, AttributedWait, Source, Tally, ThreadLedger, ThreadName};
use holdup_model::finding::{Confidence, Finding, Severity};
use serde::{Deserialize, Serialize};
use std::path::Path;
use toml::{Table, Value};

/// What an example says should happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Fires,
    NearMiss,
    CannotTell,
}

/// The part of an example that is not evidence.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    elapsed: Length,
    wait: Vec<Table>,
    connections: Vec<Table>,
    thread: Vec<Listed>,
    /// Tasks of runtimes, with the fields of `Task`.
    task: Vec<Table>,
    /// How many looks met tasks, and queues of tasks, with the fields of `TaskQueue`.
    task_looks: u64,
    task_queue: Vec<Table>,
    /// Event loops that were kept from their events.
    event_loop: Vec<Table>,
    /// Pools of threads of runtimes.
    pool: Vec<Table>,
    /// How long threads that ran already were watched.
    watched: Length,
    facts: Table,
    /// CPU time that holdup itself used.
    own_cost: Length,
    /// Whether it is of threads that ran already.
    attached: bool,
    /// Whether it is of all that ran on a machine.
    machine: bool,
    /// How the evidence was taken.
    #[serde(rename = "sampled")]
    source: Source,
    /// What those made anew.
    churn: Option<Table>,
    /// The requests that those answered.
    requests: Option<Table>,
    /// Clients without an answer since before observation.
    unanswered: Option<Table>,
    datagrams: Option<Table>,
    /// What artefacts show, instead of a run: `observed.series`, `observed.happenings` and so on.
    observed: Option<Table>,
    expect: Vec<String>,
    severity: Option<Severity>,
    confidence: Option<Confidence>,
    also: Vec<String>,
}

/// Threads that the report lists together.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Listed {
    process: String,
    pid: u32,
    threads: u32,
    wall: Length,
}

/// A length, as text or as a number of nanoseconds.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
struct Length(String);

/// The examples of a page, in order.
pub(super) fn of_page(page: &str) -> Vec<(Expected, String)> {
    let mut examples = Vec::new();
    let mut open: Option<(Expected, String)> = None;
    for line in page.lines() {
        open = match (open, line.trim_end()) {
            (Some(example), "```") => {
                examples.push(example);
                None
            }
            (Some((kind, text)), line) => Some((kind, text + line + "\n")),
            (None, "```toml fires") => Some((Expected::Fires, String::new())),
            (None, "```toml near-miss") => Some((Expected::NearMiss, String::new())),
            (None, "```toml cannot-tell") => Some((Expected::CannotTell, String::new())),
            (None, _) => None,
        };
    }
    assert!(open.is_none(), "an example has no end");
    examples
}

fn length(text: &str) -> Option<Ns> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..unit].trim().parse().ok()?;
    let ns = match &text[unit..] {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        _ => return None,
    };
    Some((number * ns) as Ns)
}

/// Text that is a length becomes a number under the keys that hold lengths.
fn lengths(value: &mut Value) {
    const KEYS: [&str; 40] = [
        "stood",
        "ns",
        "path_ns",
        "handed_on_ns",
        "held_open_ns",
        "outstanding",
        "max",
        "p50",
        "p99",
        "max_started",
        "max_ended",
        "error",
        "seeded",
        "ran_instead",
        "cpu_throttled",
        "boot_minus_monotonic",
        "elapsed",
        "waited",
        "told",
        "real_time",
        "outranked",
        "idle",
        "stolen",
        "seen_ns",
        "held_back_ns",
        "unanswered_ns",
        "retransmitted_ns",
        "no_room_ns",
        "throttled_ns",
        "slept_ns",
        "slept_without_port_ns",
        "refused_until",
        "usual",
        "longest",
        "oldest_open",
        "watched",
        "silent",
        "open_ns",
        "setup_ns",
        "doing_ns",
    ];
    fn all(value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(ns) = length(text) {
                    *value = Value::Integer(ns as i64);
                }
            }
            Value::Array(list) => list.iter_mut().for_each(all),
            _ => {}
        }
    }
    match value {
        Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                if KEYS.contains(&key.as_str()) {
                    all(value)
                } else {
                    lengths(value)
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(lengths),
        _ => {}
    }
}

/// Every key of `given` must be in `understood`, or an example says something that nobody reads.
fn nothing_lost(given: &Value, understood: &Value, place: &str) {
    match (given, understood) {
        (Value::Table(given), Value::Table(understood)) => {
            for (key, value) in given {
                let there = understood.get(key);
                let there = there.unwrap_or_else(|| panic!("{place}: nobody reads `{key}`"));
                nothing_lost(value, there, &format!("{place}.{key}"));
            }
        }
        (Value::Array(given), Value::Array(understood)) => {
            for (given, understood) in given.iter().zip(understood) {
                nothing_lost(given, understood, place);
            }
        }
        _ => {}
    }
}

fn typed<T: serde::de::DeserializeOwned + Serialize>(table: Table, place: &str) -> T {
    let mut value = Value::Table(table);
    lengths(&mut value);
    let typed: T = value
        .clone()
        .try_into()
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    nothing_lost(
        &value,
        &Value::try_from(&typed).expect("what was read can be written"),
        place,
    );
    typed
}

/// One wait, with what is left out filled in.
fn wait(mut table: Table, place: &str) -> AttributedWait {
    let mut take = |key: &str| table.remove(key);
    let process = take("process").map_or_else(|| "prog".to_owned(), |name| name.as_str().unwrap().to_owned());
    let number =
        |value: Option<Value>, otherwise| value.map_or(otherwise, |v| v.as_integer().unwrap() as u32);
    let thread = take("thread").map_or_else(|| process.clone(), |name| name.as_str().unwrap().to_owned());
    let pid = number(take("pid"), 100);
    let tid = number(take("tid"), pid);
    let mut wait: AttributedWait = typed(table, place);
    let name = &mut wait.asker.name;
    (name.pid, name.tid, name.process, name.thread) = (pid, tid, process, thread);
    let fill = |field: &mut u64, value: u64| {
        if *field == 0 {
            *field = value;
        }
    };
    let cost = wait.cost_ns();
    fill(&mut wait.ns, cost);
    fill(&mut wait.count, 1);
    let each = wait.ns / wait.count;
    for field in [&mut wait.p50, &mut wait.p99, &mut wait.max] {
        fill(field, each);
    }
    wait
}

/// The run and the machine that an example describes: its path is what its waits say is on it, and own code for the
/// rest.
fn run_of(wanted: &Wanted, place: &str) -> (Attributed, SystemFacts) {
    let elapsed = length(&wanted.elapsed.0).unwrap_or_else(|| panic!("{place}: elapsed is no length"));
    let mut waits: Vec<AttributedWait> = wanted
        .wait
        .iter()
        .map(|table| wait(table.clone(), place))
        .collect();
    let on_path: Ns = waits.iter().map(|wait| wait.path_ns).sum();
    assert!(on_path <= elapsed, "{place}: more on the path than elapsed");
    let mut rest = Table::new();
    rest.insert("cause".into(), "cpu.user".into());
    rest.insert("path_ns".into(), Value::Integer((elapsed - on_path) as i64));
    waits.push(wait(rest, place));
    let mut attributed = Attributed {
        elapsed,
        ..Attributed::default()
    };
    attributed.coverage.own_cost = length(&wanted.own_cost.0).unwrap_or_default();
    for wait in &waits {
        let tally: &mut Tally = attributed.path.entry(wait.cause).or_default();
        tally.ns += wait.path_ns;
        tally.count += wait.count;
        tally.max = tally.max.max(wait.max);
    }
    for wait in &waits {
        let name = wait.asker.name.clone();
        if !attributed.threads.iter().any(|thread| thread.name == name) {
            attributed.threads.push(ThreadLedger {
                name,
                threads: 1,
                wall: elapsed,
                // Several that are listed together are those that came and went.
                open: wait.asker.name.pid != 0,
                ..ThreadLedger::default()
            });
        }
    }
    for listed in &wanted.thread {
        attributed.threads.push(ThreadLedger {
            name: ThreadName {
                pid: listed.pid,
                process: listed.process.clone(),
                ..ThreadName::default()
            },
            threads: listed.threads,
            wall: length(&listed.wall.0).unwrap_or_else(|| panic!("{place}: wall is no length")),
            ..ThreadLedger::default()
        });
    }
    attributed.waits = waits;
    attributed.of_threads = wanted.attached;
    if wanted.machine {
        attributed.wall = elapsed;
    }
    attributed.source = wanted.source;
    attributed.churn = wanted.churn.as_ref().map(|table| typed(table.clone(), place));
    attributed.requests = wanted.requests.as_ref().map(|table| typed(table.clone(), place));
    attributed.datagrams = wanted.datagrams.as_ref().map(|table| typed(table.clone(), place));
    if let Some(table) = &wanted.unanswered {
        attributed.unanswered = typed(table.clone(), place);
    }
    attributed.tasks = wanted
        .task
        .iter()
        .map(|table| typed(table.clone(), place))
        .collect();
    attributed.task_looks = wanted.task_looks;
    let queues = wanted.task_queue.iter();
    attributed.task_queues = queues.map(|table| typed(table.clone(), place)).collect();
    attributed.event_loops = wanted
        .event_loop
        .iter()
        .map(|table| typed(table.clone(), place))
        .collect();
    attributed.pools = wanted
        .pool
        .iter()
        .map(|table| typed(table.clone(), place))
        .collect();
    if let Some(watched) = length(&wanted.watched.0) {
        attributed.wall = watched;
    }
    attributed.connections = wanted
        .connections
        .iter()
        .map(|table| typed(table.clone(), place))
        .collect();
    let facts = typed(wanted.facts.clone(), place);
    (attributed, facts)
}

fn words(finding: &Finding) -> String {
    let mut words = vec![finding.title.to_string()];
    words.extend(finding.evidence().iter().map(|evidence| evidence.text.clone()));
    for remedy in &finding.remedies {
        words.push(remedy.text.clone());
        words.extend(remedy.command.clone());
        words.extend(remedy.risk.clone());
    }
    words.push(finding.resource.name.clone());
    words.join("\n")
}

fn check(rule: RuleId, expected: Expected, text: &str, place: &str) {
    let wanted: Wanted = toml::from_str(text).unwrap_or_else(|error| panic!("{place}: {error}"));
    let judgement = match &wanted.observed {
        Some(table) => {
            let observed: Observed = typed(table.clone(), place);
            let facts = typed(wanted.facts.clone(), place);
            let attributed = holdup_artefacts::attribute(&observed);
            judge(&Run::of_artefacts(&attributed, &facts, &observed))
        }
        None => {
            let (attributed, facts) = run_of(&wanted, place);
            let run = match wanted.machine {
                true => Run::of_machine(&attributed, &facts),
                false => Run::new(&attributed, &facts),
            };
            judge(&run)
        }
    };
    let mine: Vec<&Finding> = judgement
        .findings
        .iter()
        .filter(|f| f.rule == rule.id())
        .collect();
    let clear = judgement.ruled_out.iter().find(|(id, _)| *id == rule);
    let missing = judgement.cannot_tell.iter().find(|(id, _)| *id == rule);
    match expected {
        Expected::Fires => {
            assert!(
                !mine.is_empty(),
                "{place}: it does not fire: {clear:?} {missing:?}"
            );
            assert!(
                !wanted.expect.is_empty(),
                "{place}: an example that fires says what it expects"
            );
            let said: Vec<String> = mine.iter().map(|finding| words(finding)).collect();
            for text in &wanted.expect {
                assert!(
                    said.iter().any(|words| words.contains(text)),
                    "{place}: no `{text}` in:\n{}",
                    said.join("\n\n")
                );
            }
            if let Some(severity) = wanted.severity {
                assert_eq!(mine[0].severity, severity, "{place}");
            }
            if let Some(confidence) = wanted.confidence {
                assert_eq!(mine[0].confidence, confidence, "{place}");
            }
        }
        Expected::NearMiss => {
            let (_, why) = clear.unwrap_or_else(|| panic!("{place}: not ruled out: {mine:?} {missing:?}"));
            assert!(
                why.contains(|c: char| c.is_ascii_digit()),
                "{place}: no number in: {why}"
            );
            assert!(
                wanted.expect.iter().all(|text| why.contains(text)),
                "{place}: {why}"
            );
        }
        Expected::CannotTell => {
            let (_, why) = missing.unwrap_or_else(|| panic!("{place}: it can tell: {mine:?} {clear:?}"));
            assert!(
                wanted.expect.iter().all(|text| why.contains(text)),
                "{place}: {why}"
            );
        }
    }
    let mut others: Vec<&str> = judgement
        .findings
        .iter()
        .filter(|finding| finding.rule != rule.id() && finding.severity > Severity::Note)
        .map(|finding| finding.rule.as_str())
        .collect();
    others.sort_unstable();
    others.dedup();
    assert_eq!(
        others, wanted.also,
        "{place}: the other rules that call this trouble"
    );
    for finding in &judgement.findings {
        well_made(finding, place);
    }
}

/// What holds for every finding.
pub(super) fn well_made(finding: &Finding, place: &str) {
    let rule = &finding.rule;
    let helps = finding.remedies.iter().any(|remedy| !remedy.pointless);
    assert!(helps, "{place}: {rule} says nothing that helps");
    assert!(
        finding.remedies.iter().all(|r| r.safe || r.risk.is_some()),
        "{place}: {rule} names no risk"
    );
    for evidence in finding.evidence() {
        assert!(
            !evidence.text.is_empty() && !evidence.source.is_empty(),
            "{place}: {rule}: {evidence:?}"
        );
    }
    assert!(
        !finding.title.is_empty() && !finding.title.ends_with('.'),
        "{place}: {}",
        finding.title
    );
}

/// The headings of every page, in order.
const HEADINGS: [&str; 5] = [
    "What it means",
    "How we know",
    "What to do",
    "When this is wrong",
    "Examples",
];

/// Holds a rule's page, `path` below the rules' folder, to all that is true of pages: its headings, an example of each verdict, and that each
/// example gets the verdict that it says. The page is read when the test runs, so that an edit of it builds nothing.
pub(super) fn check_page(id: RuleId, code: &str) {
    let rule = id.rule();
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules").join(code);
    let page = std::fs::read_to_string(code.with_extension("md")).unwrap();
    let id = rule.id.id();
    let title = page.lines().next().unwrap_or_default();
    assert_eq!(title, format!("# {id}: {}", rule.about));
    let found: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(found, HEADINGS, "{id}.md");
    let examples = of_page(&page);
    let has = |kind| examples.iter().any(|(expected, _)| *expected == kind);
    assert!(has(Expected::Fires), "{id}.md has no example that fires");
    assert!(has(Expected::NearMiss), "{id}.md has no near miss");
    // Where nothing can hide the cause, the page says so.
    let never = page.contains("This rule can always tell");
    assert_ne!(
        has(Expected::CannotTell),
        never,
        "{id}.md: cannot tell, or say that it always can"
    );
    for (number, (expected, text)) in examples.into_iter().enumerate() {
        let place = format!("{id}.md, example {} ({expected:?})", number + 1);
        check(rule.id, expected, &text, &place);
    }
}

/// For the other tests: a run that spends `share` of a second in one wait of this cause.
pub(super) fn mostly(cause: Cause, pieces: u64, share: f64, elapsed: Ns) -> Attributed {
    let wanted = Wanted {
        elapsed: Length(format!("{elapsed}ns")),
        wait: (0..pieces)
            .map(|piece| {
                let mut table = Table::new();
                table.insert("cause".into(), cause.id().into());
                let ns = (elapsed as f64 * share / pieces as f64) as i64;
                table.insert("path_ns".into(), Value::Integer(ns));
                table.insert("pid".into(), Value::Integer(100 + piece as i64));
                let mut resource = Table::new();
                resource.insert("name".into(), format!("thing {piece}").into());
                table.insert("resource".into(), resource.into());
                table
            })
            .collect(),
        ..Wanted::default()
    };
    run_of(&wanted, "mostly").0
}
