//! What a look says of a report.

use super::{Look, MAX_BYTES_OF_LINE};
use crate::html::tests::report;
use holdup_evidence::Cause;
use holdup_model::report::{Link, Report, SubjectKind, Wait};

/// A report of what runs, with these waits: process, cause, resource, time and who is in the way.
fn of_waits(waits: &[(u32, Cause, &str, u64)]) -> Report {
    let mut report = report();
    let sample: Wait = report.waits[0].clone();
    report.subject.kind = SubjectKind::Attach;
    report.findings.clear();
    report.waits = waits
        .iter()
        .map(|(pid, cause, name, ns)| {
            let mut wait = sample.clone();
            (wait.cause, wait.ns, wait.max_ns) = (*cause, *ns, *ns);
            (wait.asker.pid, wait.asker.tid) = (*pid, *pid);
            wait.asker.process = format!("p{pid}");
            wait.asker.frame = None;
            wait.resource.name = (*name).to_owned();
            wait.chain.clear();
            wait.held_by = None;
            wait
        })
        .collect();
    report
}

#[test]
fn who_waits_longest_is_first_and_what_rests_is_last() {
    let report = of_waits(&[
        (7, Cause::Idle, "", 90_000),
        (8, Cause::DiskSync, "/a", 1_000),
        (9, Cause::LockFutex, "futex 0x1", 2_000),
    ]);
    let look = Look::of(&report);
    let rows: Vec<(Cause, bool)> = look.rows.iter().map(|row| (row.cause, row.rests)).collect();
    assert_eq!(
        rows,
        [
            (Cause::LockFutex, false),
            (Cause::DiskSync, false),
            (Cause::Idle, true)
        ]
    );
}

#[test]
fn the_first_sentence_is_the_reports_own_and_its_waits_are_first() {
    let report = report();
    let look = Look::of(&report);
    assert_eq!(look.sentence, report.findings[0].title);
    assert_eq!(look.rows[0].cause, report.findings[0].cause);
    assert!(!look.rows[0].findings.is_empty());
    assert!(look.remedy.is_some());
}

#[test]
fn a_row_is_a_process_and_a_thing_and_keeps_its_key() {
    let waits = [
        (7, Cause::DiskSync, "/a", 5_000),
        (7, Cause::DiskSync, "/b", 4_000),
        (8, Cause::DiskSync, "/a", 3_000),
        (7, Cause::DiskSync, "/a", 1_000),
    ];
    let look = Look::of(&of_waits(&waits));
    let rows: Vec<u64> = look.rows.iter().map(|row| row.ns).collect();
    assert_eq!(rows, [6_000, 4_000, 3_000]);
    let later = Look::of(&of_waits(&waits[2..]));
    assert_eq!(later.rows[0].key, look.rows[2].key);
}

#[test]
fn the_chain_leads_to_the_root_and_leaves_out_who_asks() {
    let mut report = of_waits(&[(7, Cause::IpcPipe, "pipe 3", 5_000)]);
    let link = |pid: u32, cause| Link {
        host: None,
        pid,
        tid: pid,
        process: format!("p{pid}"),
        cause,
        ns: 4_000,
    };
    report.waits[0].chain = vec![
        link(7, Cause::IpcPipe),
        link(8, Cause::LockFile),
        link(9, Cause::TimerSleep),
    ];
    let look = Look::of(&report);
    let chain: Vec<(&str, Option<Cause>)> = (look.rows[0].behind.iter())
        .map(|step| (step.who.as_str(), step.doing))
        .collect();
    assert_eq!(
        chain,
        [
            ("p8 (pid 8)", Some(Cause::LockFile)),
            ("p9 (pid 9)", Some(Cause::TimerSleep))
        ]
    );
}

#[test]
fn a_circle_of_holders_ends() {
    let mut report = of_waits(&[
        (7, Cause::LockFile, "/a", 5_000),
        (8, Cause::LockFile, "/b", 5_000),
    ]);
    let holder = |pid: u32| {
        serde_json::from_value(serde_json::json!({
            "pid": pid, "tid": pid, "process": format!("p{pid}"), "thread": "", "how_known": "file-lock",
            "doing": "lock.file", "ns": 1, "stack": [],
        }))
        .unwrap()
    };
    report.waits[0].held_by = Some(holder(8));
    report.waits[1].held_by = Some(holder(7));
    let look = Look::of(&report);
    assert_eq!((look.rows[0].behind.len(), look.rows[1].behind.len()), (1, 1));
}

#[test]
fn what_a_program_is_called_has_bounds() {
    let long = "x".repeat(1 << 20);
    let look = Look::of(&of_waits(&[(7, Cause::DiskSync, &long, 5_000)]));
    assert!(look.rows[0].what.len() <= MAX_BYTES_OF_LINE + '…'.len_utf8());
    assert!(look.rows[0].key.len() <= MAX_BYTES_OF_LINE + '…'.len_utf8());
    assert!(
        look.rows[0]
            .lines
            .iter()
            .all(|(_, words)| words.len() <= MAX_BYTES_OF_LINE + 3)
    );
}

#[test]
fn it_is_the_same_after_a_pipe() {
    let look = Look::of(&report());
    let text = serde_json::to_vec(&look).unwrap();
    assert_eq!(serde_json::from_slice::<Look>(&text).unwrap(), look);
}
