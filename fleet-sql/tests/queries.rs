//! Queries on a directory as a store: what they add up is what `holdup show` adds up, whatever compaction has done and whoever has damaged what.
//!
//! `holdup` and `holdup-fleet` are programs of another workspace: `cargo build -p holdup -p holdup-fleet` makes them. `HOLDUP_PROGRAMS` is their
//! directory where it is not that workspace's own.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use holdup_evidence::{Cause, SystemFacts};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Backend, SubjectKind};
use holdup_recording::hour::Joining;
use holdup_recording::{Head, Segment};
use holdup_store::layout::{self, Name};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MINUTE: u64 = 60_000_000_000;

/// 2026-11-29 08:00 UTC.
const EIGHT: i64 = 1_795_939_200_000_000_000;

fn segment(host: &str, minute: u64) -> Segment {
    let started = (
        1_000_000_000 + minute * MINUTE,
        EIGHT + (minute * MINUTE).cast_signed(),
    );
    let head = Head {
        host: Some(host.to_owned()),
        boot_id: Some(format!("{host}-boot")),
        kernel: Some("6.1".to_owned()),
        command: vec!["the whole machine".to_owned()],
        ..Head::new((SubjectKind::Attach, Backend::Bpf), started, MINUTE)
    };
    let name = serde_json::json!({"pid": 7, "tid": 7, "process": "db\u{1b}[2J", "thread": "db"});
    let attributed: Attributed = serde_json::from_value(serde_json::json!({
        "of_threads": true, "elapsed": MINUTE, "wall": MINUTE,
        "waits": [
            {"cause": Cause::DiskSync, "ns": 1_000_000_007 + minute, "count": 3, "max": 900_000_000,
             "resource": {"name": "nvme0n1"}, "asker": {"name": name}},
            {"cause": Cause::LockFutex, "ns": 30_000_003 + minute, "count": 9, "max": 10_000_000,
             "resource": {"name": "a lock"}, "asker": {"name": name}},
        ],
    }))
    .expect("only fields that exist");
    Segment {
        head,
        attributed,
        facts: SystemFacts::default(),
        look: None,
    }
}

/// What a segment's waits add up to, nanoseconds.
fn waits(segment: &Segment) -> u64 {
    segment.attributed.waits.iter().map(|wait| wait.ns).sum()
}

/// A store in a directory.
struct Store {
    place: tempfile::TempDir,
}

impl Store {
    /// Two hosts, an hour and a quarter each.
    fn filled() -> (Store, u64) {
        let store = Store {
            place: tempfile::tempdir().unwrap(),
        };
        let mut sum = 0;
        for (host, minutes) in [("db-3", 0..75), ("web-1", 10..70)] {
            for minute in minutes {
                let segment = segment(host, minute);
                sum += waits(&segment);
                store.put(&segment);
            }
        }
        (store, sum)
    }

    fn root(&self) -> PathBuf {
        self.place.path().join("store")
    }

    fn url(&self) -> String {
        format!("file://{}", self.root().display())
    }

    fn path(&self, segment: &Segment) -> PathBuf {
        let host = segment.head.host.as_deref().unwrap();
        let id = layout::host_id(Some(host), host);
        self.root().join(layout::place(&id, &Name::of(&segment.head)))
    }

    fn put(&self, segment: &Segment) -> PathBuf {
        let path = self.path(segment);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        holdup_recording::save(segment, &path).unwrap();
        path
    }

    /// One object of some minutes of a host; the segments stay.
    fn join(&self, host: &str, minutes: std::ops::Range<u64>) -> PathBuf {
        let segments: Vec<Segment> = minutes.map(|minute| segment(host, minute)).collect();
        let names: Vec<Name> = segments.iter().map(|one| Name::of(&one.head)).collect();
        let mut bytes = Vec::new();
        let mut joining = Joining::new(&mut bytes).unwrap();
        for (segment, name) in segments.iter().zip(&names) {
            joining.push(&name.text(), &self.path(segment)).unwrap();
        }
        joining.finish().unwrap();
        let folder = self.path(&segments[0]);
        let path = folder.with_file_name(Name::of_hour(&names).text());
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn remove(&self, host: &str, minutes: std::ops::Range<u64>) {
        for minute in minutes {
            std::fs::remove_file(self.path(&segment(host, minute))).unwrap();
        }
    }

    fn sql(&self, query: &str, more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_holdup-fleet-sql"))
            .args([&self.url(), query])
            .args(more)
            .output()
            .unwrap()
    }

    /// The rows of a query as CSV, without the names; and what was said.
    fn csv(&self, query: &str, more: &[&str]) -> (Vec<String>, String) {
        let output = self.sql(query, &[&["--format", "csv"], more].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{query}: {said}");
        let rows = String::from_utf8(output.stdout).unwrap();
        (rows.lines().skip(1).map(str::to_owned).collect(), said)
    }

    fn number(&self, query: &str, more: &[&str]) -> (u64, String) {
        let (rows, said) = self.csv(query, more);
        assert_eq!(rows.len(), 1, "{query}: {rows:?}");
        (rows[0].parse().unwrap(), said)
    }

    fn sum(&self) -> u64 {
        self.number("SELECT sum(ns) FROM waits", &[]).0
    }
}

/// The objects that were read, of those that were listed, and the bytes.
fn read(said: &str) -> (u64, u64, u64) {
    let line = said.lines().last().unwrap();
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|one| one.parse().ok())
        .collect();
    (numbers[0], numbers[1], numbers[2])
}

#[test]
fn sums_are_those_of_the_segments_whatever_compaction_has_done() {
    let (store, sum) = Store::filled();
    assert_eq!(store.sum(), sum);
    // It was written, and nothing was removed yet; then half of it was; then another run had begun anew; then all was.
    let hour = store.join("db-3", 0..60);
    assert_eq!(store.sum(), sum);
    store.remove("db-3", 0..30);
    assert_eq!(store.sum(), sum);
    store.join("web-1", 10..40);
    store.join("web-1", 10..60);
    store.remove("web-1", 10..60);
    assert_eq!(store.sum(), sum);
    store.remove("db-3", 30..60);
    assert_eq!(store.sum(), sum);
    let (rows, _) = store.csv("SELECT host, hour, count(DISTINCT segment_start), sum(ns) FROM waits GROUP BY host, hour ORDER BY host, hour", &[]);
    let of = |host: &str, minutes: std::ops::Range<u64>| -> u64 {
        minutes.map(|minute| waits(&segment(host, minute))).sum()
    };
    assert_eq!(
        rows,
        [
            format!("db-3,08,60,{}", of("db-3", 0..60)),
            format!("db-3,09,15,{}", of("db-3", 60..75)),
            format!("web-1,08,50,{}", of("web-1", 10..60)),
            format!("web-1,09,10,{}", of("web-1", 60..70)),
        ]
    );
    // A damaged object costs what only it has, and is said.
    let bytes = std::fs::read(&hour).unwrap();
    std::fs::write(&hour, &bytes[..bytes.len() - 5]).unwrap();
    let (left, said) = store.number("SELECT sum(ns) FROM waits", &[]);
    assert_eq!(left, sum - of("db-3", 0..60));
    assert!(
        said.contains("left out: day=2026-11-29/hour=08/host_id=db-3."),
        "{said}"
    );
}

#[test]
fn sums_are_those_of_holdup_show_and_of_fleet_show() {
    let (store, _) = Store::filled();
    store.join("web-1", 10..40);
    let programs = std::env::var_os("HOLDUP_PROGRAMS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/debug"),
        PathBuf::from,
    );
    let report = |arguments: &[&str]| -> serde_json::Value {
        let program = programs.join("holdup");
        assert!(
            program.is_file(),
            "build it: cargo build -p holdup -p holdup-fleet"
        );
        let output = Command::new(program)
            .args(arguments)
            .args(["--json", "-"])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let sum = |report: &serde_json::Value| -> u64 {
        let waits = report["waits"].as_array().unwrap().iter();
        waits.map(|wait| wait["ns"].as_u64().unwrap()).sum()
    };
    // The same segments of one host as a recorder keeps them.
    let directory = store.place.path().join("db-3");
    std::fs::create_dir(&directory).unwrap();
    for minute in 0..75 {
        let path = directory.join(format!("holdup-{minute:02}.parquet"));
        holdup_recording::save(&segment("db-3", minute), &path).unwrap();
    }
    let directory = directory.display().to_string();
    let of_host = store
        .number("SELECT sum(ns) FROM waits WHERE host = 'db-3'", &[])
        .0;
    assert_eq!(of_host, sum(&report(&["show", &directory])));
    let of_all = store.number("SELECT sum(ns) FROM waits", &["--last", "20m"]).0;
    assert_eq!(
        of_all,
        sum(&report(&["fleet", "show", &store.url(), "--last", "20m"]))
    );
    let at = ["--at", "2026-11-29T08:30:00Z", "--last", "5m"];
    let of_time = store.number("SELECT sum(ns) FROM waits", &at).0;
    let shown = report(&[&["fleet", "show", &store.url()], &at[..]].concat());
    assert_eq!(of_time, sum(&shown));
}

#[test]
fn only_the_objects_and_columns_of_the_question_are_read() {
    let (store, _) = Store::filled();
    let reads = |query: &str, more: &[&str]| read(&store.csv(query, more).1);
    let (objects, listed, all) = reads("SELECT sum(ns) FROM waits", &[]);
    assert_eq!((objects, listed), (135, 135));
    let (objects, listed, _) = reads("SELECT sum(ns) FROM waits WHERE hour = '09'", &[]);
    assert_eq!((objects, listed), (25, 25));
    let (objects, listed, _) = reads(
        "SELECT sum(ns) FROM waits WHERE day = '2026-11-29' AND hour = '09' AND host_id LIKE 'web-1.%'",
        &[],
    );
    assert_eq!((objects, listed), (10, 10));
    let (objects, listed, _) = reads("SELECT count(*) FROM waits WHERE day > '2026-11-29'", &[]);
    assert_eq!((objects, listed), (0, 0));
    let (objects, _, _) = reads(
        "SELECT sum(ns) FROM waits",
        &["--at", "2026-11-29T08:05:00Z", "--last", "3m"],
    );
    assert_eq!(objects, 3);
    // More columns are more bytes.
    let (_, _, wide) = reads("SELECT * FROM recordings", &["--last", "100d"]);
    assert!(all < wide, "{all} {wide}");
    // Of an object with many segments only those of the time are read.
    store.join("db-3", 0..60);
    store.remove("db-3", 0..60);
    let (rows, _) = store.csv(
        "SELECT count(DISTINCT segment_start) FROM waits WHERE host = 'db-3'",
        &["--at", "2026-11-29T08:05:00Z", "--last", "3m"],
    );
    assert_eq!(rows, ["3"]);
}

#[test]
fn whatever_is_damaged_is_left_out_and_said() {
    let (store, sum) = Store::filled();
    let minute = |minute: u64| waits(&segment("db-3", minute));
    let path = |minute: u64| store.path(&segment("db-3", minute));
    // No recording at all; another host's; another time's; and one whose columns are damaged while its footer is not.
    std::fs::write(path(1), "PAR1 nonsense").unwrap();
    let foreign = store.path(&segment("web-1", 12));
    std::fs::copy(&foreign, path(2)).unwrap();
    std::fs::copy(path(5), path(3)).unwrap();
    let mut bytes = std::fs::read(path(4)).unwrap();
    for byte in bytes.iter_mut().skip(4).take(2_000) {
        *byte = !*byte;
    }
    std::fs::write(path(4), bytes).unwrap();
    let (left, said) = store.number("SELECT sum(ns) FROM waits", &[]);
    assert_eq!(left, sum - (1..5).map(minute).sum::<u64>(), "{said}");
    assert_eq!(said.matches("left out: ").count(), 4, "{said}");
}

#[test]
fn each_format_has_all_rows_and_a_table_has_nothing_for_the_terminal() {
    let (store, _) = Store::filled();
    let query = "SELECT process, cause, stack FROM waits WHERE hour = '09' AND host = 'web-1' ORDER BY segment_start, cause LIMIT 2";
    let text = |format: &str| String::from_utf8(store.sql(query, &["--format", format]).stdout).unwrap();
    let table = text("table");
    assert!(
        table.contains("disk.sync") && table.contains("db\\u{1b}[2J") && !table.contains('\u{1b}'),
        "{table}"
    );
    let csv = text("csv");
    assert!(
        csv.starts_with("process,cause,stack\ndb\u{1b}[2J,disk.sync,"),
        "{csv}"
    );
    let json: serde_json::Value = serde_json::from_str(&text("json")).unwrap();
    assert_eq!(json[0]["process"], "db\u{1b}[2J");
    assert_eq!(json.as_array().unwrap().len(), 2);
    let (rows, _) = store.csv(
        "SELECT boot, service, container, host_id FROM waits WHERE false",
        &[],
    );
    assert!(rows.is_empty());
}

#[test]
fn a_query_that_makes_no_sense_is_one_sentence_and_exit_2() {
    let (store, _) = Store::filled();
    for query in [
        "SELEC 1",
        "SELECT nothing FROM waits",
        "SELECT * FROM nowhere",
        "SELECT 1; SELECT 2",
        "DROP TABLE recordings",
        "CREATE TABLE x AS SELECT 1",
        "COPY (SELECT 1) TO '/dev/null' STORED AS CSV",
        "SET datafusion.execution.batch_size = 1",
        "SELECT ns / 0 FROM waits",
        "",
    ] {
        let output = store.sql(query, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(2), 1),
            "{query}: {said}"
        );
        assert!(output.stdout.is_empty(), "{query}");
    }
}

#[test]
fn too_little_memory_is_one_sentence() {
    let (store, _) = Store::filled();
    let output = store.sql(
        "SELECT segment_start, host, cause, sum(ns) FROM waits GROUP BY segment_start, host, cause",
        &["--memory", "1K"],
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), said.lines().count()),
        (Some(125), 1),
        "{said}"
    );
    assert!(said.contains("--memory"), "{said}");
}

#[test]
fn a_store_that_is_not_there_or_empty_is_said() {
    let nowhere = Command::new(env!("CARGO_BIN_EXE_holdup-fleet-sql"))
        .args(["gopher://x", "SELECT 1"])
        .output()
        .unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
    let store = Store {
        place: tempfile::tempdir().unwrap(),
    };
    assert_eq!(store.sql("SELECT 1", &[]).status.code(), Some(125));
    std::fs::create_dir(store.root()).unwrap();
    assert_eq!(store.number("SELECT count(*) FROM waits", &[]).0, 0);
}
