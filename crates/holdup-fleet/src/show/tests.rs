//! The whole of `fleet show` over a store, with a program in holdup's place that has a report for each host ready.

use super::report;
use crate::cli::{Cli, Command, ShowArgs};
use crate::joins::tests::{asks, empty, found, locked, serves};
use crate::layout::{self, Name};
use crate::store::{Store, runtime};
use crate::testing::{EIGHT, memory, segment};
use crate::upload::{DROPPED_SCHEMA, DroppedObject};
use clap::Parser;
use holdup_evidence::Cause;
use holdup_model::report::{FleetPath, Report};
use holdup_recording::spool::Dropped;
use holdup_views::Style;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Puts the minutes of a host.
fn put(store: &Store, host: &str, minutes: std::ops::Range<u64>) -> String {
    let id = layout::host_id(Some(host), host);
    let place = tempfile::tempdir().unwrap();
    for minute in minutes {
        let segment = segment(host, minute);
        let path = place.path().join("holdup-x.parquet");
        holdup_recording::save(&segment, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let at = layout::place(&id, &Name::of(&segment.head));
        runtime().unwrap().block_on(store.put(&at, bytes.into())).unwrap();
    }
    id
}

/// A program that answers with the report of the host whose segments it is given: names of segments have the boot, and the boots of
/// [`segment`] the length of the host's name.
fn judge(place: &Path, reports: &[(&str, Report)]) -> PathBuf {
    let mut script = "#!/bin/sh\ncase \"$(ls \"$2\")\" in\n".to_owned();
    for (host, report) in reports {
        let file = place.join(host);
        std::fs::write(&file, serde_json::to_vec(report).unwrap()).unwrap();
        script += &format!("*_{:016x}-*) cat '{}' ;;\n", host.len(), file.display());
    }
    script += "esac\n";
    let program = place.join("judge");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    program
}

fn of(waits: Vec<holdup_model::report::Wait>) -> Report {
    Report { waits, ..empty() }
}

fn args() -> ShowArgs {
    let at = layout::rfc3339(EIGHT + 10 * 60_000_000_000);
    let all = ["holdup fleet", "show", "memory:", "--at", &at, "--last", "10m"];
    match Cli::parse_from(all).command {
        Command::Show(args) => args,
        other => panic!("{other:?}"),
    }
}

fn text(report: &Report) -> String {
    let style = Style {
        width: 110,
        colour: false,
        unicode: true,
        verbose: false,
        quiet: false,
    };
    let mut text = Vec::new();
    holdup_views::terminal::write(report, &style, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

const SHOP: (&str, u32, u32) = ("checkout", 20, 21);
const DB: (&str, u32, u32) = ("postgres", 30, 31);

/// Three hosts that wait for each other, one that stopped, and one that dropped a segment.
fn fleet(place: &Path) -> (Store, PathBuf) {
    let (store, _) = memory();
    let hosts = ["web-1", "app-01", "db-0003"];
    hosts.iter().for_each(|host| drop(put(&store, host, 0..10)));
    put(&store, "stopped-one", 0..2);
    let id = put(&store, "lossy-host", 0..9);
    let head = segment("lossy-host", 9).head;
    let dropped = DroppedObject {
        schema: DROPPED_SCHEMA.to_owned(),
        segments: vec![Dropped::of(&head)],
    };
    let at = layout::dropped_place(&id, &layout::hour(EIGHT), "0123456789abcdef");
    let bytes = serde_json::to_vec(&dropped).unwrap();
    runtime().unwrap().block_on(store.put(&at, bytes.into())).unwrap();

    let mut db = of(vec![serves(DB, "10.0.4.17:5432"), locked(DB, 20)]);
    let lock = json!({"kind": "file", "name": "/srv/lock"});
    db.findings = vec![found(("backup", 66, 66), Cause::LockFile, &lock)];
    let web = of(vec![asks(
        ("nginx", 10, 10),
        22,
        "10.0.1.5:58000",
        "10.0.2.8:8080",
    )]);
    let app = of(vec![
        serves(SHOP, "10.0.2.8:8080"),
        asks(SHOP, 21, "10.0.2.8:40001", "10.0.4.17:5432"),
    ]);
    let reports = [
        ("web-1", web),
        ("app-01", app),
        ("db-0003", db),
        ("stopped-one", empty()),
        ("lossy-host", empty()),
    ];
    (store, judge(place, &reports))
}

#[test]
fn the_first_line_names_the_root_and_hosts_that_stopped_or_lost_something_are_said_behind_it() {
    let place = tempfile::tempdir().unwrap();
    let (store, program) = fleet(place.path());
    let report = runtime().unwrap().block_on(report(&store, &args(), &program));
    let report = report.unwrap().expect("there are recordings");
    assert_eq!(report.hosts.len(), 5);
    assert_eq!(report.findings[0].rule, FleetPath::RULE);
    let title = "nginx on web-1 waits for checkout on app-01 (10.0.2.8:8080), which waits for postgres on db-0003 (10.0.4.17:5432)";
    assert!(
        report.findings[0].title.starts_with(title),
        "{}",
        report.findings[0].title
    );
    assert_eq!(report.findings[1].title, "backup has the lock");
    let links = report.waits.iter().find(|wait| wait.asker.process == "nginx");
    let hosts = links
        .unwrap()
        .chain
        .iter()
        .filter_map(|link| link.host.as_deref());
    let hosts: Vec<&str> = hosts.map(layout::name_in).collect();
    assert_eq!(hosts, ["web-1", "app-01", "db-0003", "db-0003"]);

    let text = text(&report);
    let order = [
        "nginx on web-1",
        "web-1, nginx (pid 10): 22.00 s waiting for a network peer to send: 10.0.2.8:8080",
        "  └ app-01, checkout (pid 20): 21.00 s",
        "    └ db-0003, postgres (pid 30): 20.00 s waiting for a file lock: /srv/lock",
        "      └ db-0003, backup (pid 66): sleeping on purpose",
        "backup has the lock",
        "1 segment dropped",
    ];
    let mut from = 0;
    for part in order {
        let at = text[from..].find(part);
        from += at.unwrap_or_else(|| panic!("{part:?} is not there, or too early:\n{text}"));
    }
    let stopped = text.find("silent since").unwrap_or_else(|| panic!("{text}"));
    assert!(stopped > text.find("backup has the lock").unwrap(), "{text}");
}

#[test]
fn without_a_wait_for_another_host_nothing_is_joined() {
    let place = tempfile::tempdir().unwrap();
    let (store, _) = memory();
    put(&store, "web-1", 0..10);
    let program = judge(place.path(), &[("web-1", of(vec![locked(DB, 20)]))]);
    let report = runtime().unwrap().block_on(report(&store, &args(), &program));
    let report = report.unwrap().expect("there are recordings");
    assert!(report.paths.is_empty() && report.findings.is_empty());
    assert_eq!(report.waits[0].chain.len(), 2);
}
