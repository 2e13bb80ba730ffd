//! Reports to make pages of: those that are committed, a crowd, and one whose every name is an attack.

use crate::workspace;
use anyhow::Context;
use serde_json::{Value, json};

/// Threads of the crowd, pieces of its time line, and seconds that it was watched: the largest that a page has to hold.
const THREADS: u64 = 4_000;
const PIECES: u64 = 20_000;
const SECONDS: u64 = 3_600;

/// Windows of its time line, and causes of each of its threads.
const WINDOWS: u64 = 120;
const CAUSES: [&str; 5] = ["lock.futex", "disk.sync", "net.receive", "cpu.user", "idle"];

/// Stretches of its machine's figures.
const STRETCHES: u64 = 240;

/// Bytes of the longest name.
const LONG: usize = 10_000;

/// All of them, by name.
pub(super) fn all() -> anyhow::Result<Vec<(String, Value)>> {
    let folder = workspace::root().join("crates/holdup-views/tests/pages");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))?;
    let mut reports = Vec::new();
    for entry in entries {
        let path = entry
            .with_context(|| format!("list {}", folder.display()))?
            .path();
        let text = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let report: Value =
            serde_json::from_slice(&text).with_context(|| format!("read {}", path.display()))?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        reports.push((name, report));
    }
    reports.sort_by(|(one, _), (other, _)| one.cmp(other));
    let base = reports.first().context("no report is committed")?.1.clone();
    let crowd = crowd(&base, THREADS, PIECES);
    let mut hostile = self::crowd(&base, 12, 200);
    let mut nasty = nasty().into_iter().cycle();
    attack(&mut hostile, "", &mut nasty);
    reports.push(("crowd".to_owned(), crowd));
    reports.push(("attack".to_owned(), hostile));
    let compared = reports
        .iter()
        .find(|(_, report)| !report["comparison"].is_null())
        .context("no comparison is committed")?;
    let mut hostile = compared.1.clone();
    attack(&mut hostile, "", &mut nasty);
    reports.push(("attack-diff".to_owned(), hostile));
    Ok(reports)
}

/// A service of many threads for an hour: each with some waits, of which the next thread is in the way.
fn crowd(base: &Value, threads: u64, pieces: u64) -> Value {
    let second = 1_000_000_000;
    let wall = SECONDS * second;
    let each = pieces / threads;
    let slot = wall / each.max(1);
    let mut report = base.clone();
    let wait = base["waits"][0].clone();
    let name = |at: u64| format!("worker-{}", at % threads);
    let mut waits = Vec::new();
    let mut drawn = Vec::new();
    let mut tasks = Vec::new();
    let mut all_threads = Vec::new();
    let mut rest = Vec::new();
    for at in 0..threads {
        let tid = 5_000 + at;
        tasks.push(
            json!({"name": {"pid": 5_000, "tid": tid, "process": "shop", "thread": name(at)}, "thread": at}),
        );
        for piece in 0..each {
            let cause = (at + piece) % 4;
            let mut one = json!({"task": at, "start_ns": piece * slot + at % 7, "ns": slot * (1 + (at * 31 + piece) % 9) / 10,
                "cause": CAUSES[cause as usize], "ended_by": {"task": (at + 1) % threads}});
            if cause != 3 {
                // The first three causes of a thread are its rows among the waits.
                one["wait"] = (at * 3 + cause).into();
            }
            drawn.push(one);
        }
        let share = |cause: &str| json!({"cause": cause, "ns": wall / 5, "share": 0.2, "count": each, "max_ns": slot, "open": false});
        all_threads.push(
            json!({"pid": 5_000, "tid": tid, "process": "shop", "name": name(at), "wall_ns": wall,
            "causes": CAUSES.map(share), "threads": 1, "open": true}),
        );
        for cause in &CAUSES[..3] {
            let mut one = wait.clone();
            let next = 5_000 + (at + 1) % threads;
            one["cause"] = (*cause).into();
            one["ns"] = (wall / 5 - at).into();
            one["asker"]["pid"] = 5_000.into();
            one["asker"]["tid"] = tid.into();
            one["asker"]["process"] = "shop".into();
            one["asker"]["thread"] = name(at).into();
            if *cause == "lock.futex" {
                one["held_by"] = json!({"pid": 5_000, "tid": next, "process": "shop", "thread": name(at + 1),
                    "how_known": "mutex-owner", "doing": "disk.sync", "ns": 1_000, "stack": []});
                one["holders"] = json!([one["held_by"]]);
            }
            waits.push(one);
        }
        rest.push(
            json!({"thread": at, "cause": "idle", "first": 0, "ns": vec![second; WINDOWS as usize / 4]}),
        );
    }
    let length = wall / WINDOWS;
    let window = |at: u64| {
        json!({"from_ns": at * length, "ns": length, "requests": 10 + at % 5, "requests_ns": at, "path": {},
            "causes": {"lock.futex": length * (1 + at % 9), "disk.sync": length * 3, "idle": length * 50}})
    };
    let whole = wall * threads;
    let cause = |cause: &str| json!({"cause": cause, "ns": whole / 5, "share": 0.2, "count": pieces, "max_ns": slot, "open": false});
    report["subject"] = json!({"kind": "attach", "command": ["process 5000"], "pids": [5_000], "started": "2026-03-01T08:00:00Z",
        "wall_ns": wall, "exit": null, "elsewhere": []});
    report["machine"] = json!({"host": "shop-1", "kernel": "6.12.9"});
    report["threads"] = all_threads.into();
    report["waits"] = waits.into();
    report["causes"] = CAUSES.map(cause).to_vec().into();
    report["windows"] = (0..WINDOWS).map(window).collect::<Vec<_>>().into();
    report["timeline"] = json!({"tasks": tasks, "pieces": drawn, "rest": rest, "left_out": 12});
    report["host_figures"] = host_figures(wall);
    report["requests"] = json!({"count": 100, "p50_ns": 1_000_000, "p99_ns": 9_000_000, "max_ns": 10_000_000, "open": 1,
        "oldest_open_ns": second, "causes": CAUSES.map(cause), "listeners": [],
        "slow": {"count": 1, "mean_ns": 9_000_000, "usual_ns": 1_000_000, "more": [{"cause": "lock.futex", "ns": 8_000_000}],
            "request": "GET /cart"}});
    report
}

/// Figures of the machine over this time, with a gap in them.
fn host_figures(wall: u64) -> Value {
    let length = wall / STRETCHES;
    let observed: Vec<u64> = (0..STRETCHES).filter(|at| !(60..80).contains(at)).collect();
    let stretches: Vec<Value> = observed
        .iter()
        .map(|at| json!({"from_ns": at * length, "ns": length}))
        .collect();
    let line = |number: u64, figure: &str, of: &str| {
        let shares: Vec<Value> = observed
            .iter()
            .map(|at| match at % 97 == number {
                true => Value::Null,
                false => ((at * 37 + number * 211) % 1_000).into(),
            })
            .map(|value| {
                value
                    .as_u64()
                    .map_or(Value::Null, |share| json!(share as f64 / 1e3))
            })
            .collect();
        json!({"figure": figure, "of": of, "shares": shares})
    };
    let lines = [
        line(0, "cpu-busy", ""),
        line(1, "cpu-iowait", ""),
        line(2, "pressure-cpu", ""),
        line(3, "pressure-memory", ""),
        line(4, "pressure-io", ""),
        line(5, "disk-busy", "nvme0n1"),
        line(6, "disk-busy", "sda"),
    ];
    json!({"stretches": stretches, "lines": lines})
}

/// Texts that are to break out of where they stand.
fn nasty() -> Vec<String> {
    let texts = [
        "</script><img src=x onerror=\"document.title='broken'\">",
        "<!--<script>",
        "\"'`><svg onload=fetch('https://example.org')>",
        "\u{202e}gpj.exe\u{2066}\u{200f}",
        "line\nof\r\nits own\u{2028}\u{2029}\0",
        "{{SCRIPT}}${1+1}{{7*7}}",
        "javascript:alert(1)",
        "__proto__",
        "constructor",
        "",
        "全角👩‍👩‍👧‍👦",
    ];
    let mut all: Vec<String> = texts.map(str::to_owned).to_vec();
    all.push("W".repeat(LONG));
    all
}

/// Keys whose texts are ids of our own, not names.
const CLOSED: [&str; 14] = [
    "schema",
    "kind",
    "backend",
    "cause",
    "severity",
    "confidence",
    "how",
    "how_known",
    "doing",
    "language",
    "compared",
    "measure",
    "presence",
    "figure",
];

/// Puts such texts into every free text.
fn attack(value: &mut Value, key: &str, texts: &mut impl Iterator<Item = String>) {
    match value {
        Value::String(text) if !CLOSED.contains(&key) && !matches!(key, "ended_by" | "started") => {
            *text = texts.next().expect("they never end");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| attack(item, key, texts)),
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                attack(field, key, texts);
            }
            if key == "detail" {
                fields.insert(texts.next().expect("they never end"), "x".into());
            }
        }
        _ => {}
    }
}
