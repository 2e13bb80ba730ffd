//! Three hosts and more, as their reports have them.

use crate::combine;
use crate::hosts::Judged;
use holdup_evidence::Cause;
use holdup_model::finding::{Confidence, Severity};
use holdup_model::report::{Finding, FleetHost, FleetPath, FleetStore, ReachedBy, Report, Wait};
use holdup_times::Window;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;

/// Who waits: process, pid, tid.
type Who = (&'static str, u32, u32);

const NGINX: Who = ("nginx", 10, 10);
const SHOP: Who = ("checkout", 20, 21);
const DB: Who = ("postgres", 30, 31);

pub(crate) fn empty() -> Report {
    combine::combine(vec![], FleetStore::default(), Window { from: 0, to: 1 })
}

pub(crate) fn wait(who: Who, cause: Cause, seconds: u64, resource: &Value) -> Wait {
    let (process, pid, tid) = who;
    serde_json::from_value(json!({
        "cause": cause, "ns": seconds * SECOND, "share": 0.0, "count": 3, "max_ns": SECOND, "p50_ns": 0, "p99_ns": 0,
        "max_started": null, "max_started_boot_ns": null, "how": "exact", "error_ns": 0, "open": false, "timed_out": 0,
        "path_ns": 0, "handed_on_ns": 0, "call": null, "resource": resource,
        "asker": {"pid": pid, "tid": tid, "process": process, "thread": process, "frame": null, "module": null, "stack": []},
        "held_by": null, "holders": [], "chain": [], "ran_instead": [], "kernel_stack": [], "why_unknown": null,
    }))
    .expect("only fields that exist")
}

/// A wait for an answer.
pub(crate) fn asks(who: Who, seconds: u64, local: &str, peer: &str) -> Wait {
    let detail = json!({"local": local, "peer": peer, "protocol": "tcp"});
    let resource = json!({"kind": "socket", "name": format!("{peer} (tcp)"), "detail": detail});
    wait(who, Cause::NetReceive, seconds, &resource)
}

/// A thread that is idle on a connection that it serves.
pub(crate) fn serves(who: Who, at: &str) -> Wait {
    let resource = json!({"kind": "name", "name": format!("the next request on {at}")});
    wait(who, Cause::Idle, 5, &resource)
}

fn listens(who: Who, at: &str) -> Wait {
    let resource = json!({"kind": "name", "name": format!("a client on {at}")});
    wait(who, Cause::Idle, 50, &resource)
}

/// A wait for a lock that another process of the host has.
pub(crate) fn locked(who: Who, seconds: u64) -> Wait {
    let resource = json!({"kind": "file", "name": "/srv/lock"});
    let mut wait = wait(who, Cause::LockFile, seconds, &resource);
    let link = |pid: u32, process: &str, cause: Cause| {
        serde_json::from_value(json!({"pid": pid, "tid": pid, "process": process, "cause": cause, "ns": 7}))
            .expect("only fields that exist")
    };
    wait.chain = vec![
        link(who.1, who.0, Cause::LockFile),
        link(66, "backup", Cause::TimerSleep),
    ];
    wait
}

pub(crate) fn found(who: Who, cause: Cause, resource: &Value) -> Finding {
    serde_json::from_value(json!({
        "rule": "others-wait-behind", "severity": "warning", "title": "backup has the lock", "cause": cause, "ns": SECOND,
        "share": null, "resource": resource,
        "asker": {"pid": who.1, "tid": who.2, "process": who.0, "thread": who.0, "frame": null, "module": null, "stack": []},
        "evidence": [], "remedies": [], "confidence": "proved",
    }))
    .expect("only fields that exist")
}

fn lock_is_found() -> Finding {
    found(
        ("backup", 66, 66),
        Cause::LockFile,
        &json!({"kind": "file", "name": "/srv/lock"}),
    )
}

/// Hosts as one report.
#[derive(Default)]
struct Fleet(BTreeMap<String, Report>, BTreeMap<String, [&'static str; 2]>);

impl Fleet {
    fn wait(mut self, host: &str, wait: Wait) -> Fleet {
        self.0
            .entry(host.to_owned())
            .or_insert_with(empty)
            .waits
            .push(wait);
        self
    }

    fn finding(mut self, host: &str, finding: Finding) -> Fleet {
        self.0
            .entry(host.to_owned())
            .or_insert_with(empty)
            .findings
            .push(finding);
        self
    }

    fn observed(mut self, host: &str, span: [&'static str; 2]) -> Fleet {
        self.1.insert(host.to_owned(), span);
        self
    }

    fn joined(self) -> Report {
        let always = ["2026-11-29T08:00:00Z", "2026-11-29T08:10:00Z"];
        let spans = self.1;
        let judged = self.0.into_iter().map(|(id, report)| {
            let span = spans
                .get(&id)
                .unwrap_or(&always)
                .map(|time| Some(time.to_owned()));
            let [from, to] = span;
            let host = FleetHost {
                id,
                from,
                to,
                ..FleetHost::default()
            };
            Judged {
                host,
                report: Some(report),
            }
        });
        combine::combine(judged.collect(), FleetStore::default(), Window { from: 0, to: 1 })
    }
}

/// nginx on a host waits for the shop on another one, which waits for a database on a third, which waits for a lock.
fn three(db: &str) -> Fleet {
    let (own, peer) = (|port: u16| format!("10.0.2.8:{port}"), format!("{db}:5432"));
    Fleet::default()
        .wait("web-1.aa", asks(NGINX, 22, "10.0.1.5:58000", "10.0.2.8:8080"))
        .wait("app-1.bb", serves(SHOP, "10.0.2.8:8080"))
        .wait("app-1.bb", asks(SHOP, 21, &own(40_001), &peer))
        .wait("db-3.cc", serves(DB, &peer))
        .wait("db-3.cc", locked(DB, 20))
        .finding("db-3.cc", lock_is_found())
}

/// Whether nothing leads to another host.
fn is_alone(report: &Report) -> bool {
    let chained = |wait: &Wait| wait.chain.iter().any(|link| link.host != wait.host);
    report.paths.is_empty()
        && !report.waits.iter().any(chained)
        && !report.findings.iter().any(|one| one.rule == FleetPath::RULE)
}

/// What the asker's wait leads to: host and cause.
fn chain<'a>(report: &'a Report, host: &str) -> Vec<(&'a str, Cause)> {
    let wait = report
        .waits
        .iter()
        .find(|wait| wait.host.as_deref() == Some(host) && wait.cause == Cause::NetReceive);
    let links = wait.expect("it waits").chain.iter();
    links
        .map(|link| (link.host.as_deref().unwrap_or_default(), link.cause))
        .collect()
}

#[test]
fn a_wait_is_followed_over_three_hosts_to_where_it_began() {
    let report = three("10.0.4.17").joined();
    let first = &report.findings[0];
    assert_eq!(
        (first.rule.as_str(), first.severity),
        (FleetPath::RULE, Severity::Warning)
    );
    assert_eq!(
        first.title,
        "nginx on web-1 waits for checkout on app-1 (10.0.2.8:8080), which waits for postgres on db-3 (10.0.4.17:5432), which was \
         waiting for a file lock (/srv/lock), behind backup (pid 66), which was sleeping on purpose"
    );
    assert_eq!(first.host.as_deref(), Some("db-3.cc"));
    // Who serves the address may have done it for others.
    assert_eq!(
        (first.cause, first.confidence),
        (Cause::LockFile, Confidence::Suspect)
    );
    assert_eq!(first.evidence.len(), 3, "{:?}", first.evidence);
    assert!(
        first.evidence[0].text.contains("by address and port"),
        "{:?}",
        first.evidence
    );
    assert_eq!(
        report.findings[1].title, "backup has the lock",
        "the single one stays"
    );
    assert_eq!(
        chain(&report, "web-1.aa"),
        [
            ("web-1.aa", Cause::NetReceive),
            ("app-1.bb", Cause::NetReceive),
            ("db-3.cc", Cause::LockFile),
            ("db-3.cc", Cause::TimerSleep)
        ]
    );
    let steps: Vec<ReachedBy> = report.paths[0].steps.iter().map(|step| step.reached.by).collect();
    let by = ReachedBy::AddressAndPort;
    assert_eq!(steps, [ReachedBy::Start, by, by, ReachedBy::Host]);
}

#[test]
fn the_same_connection_seen_from_both_ends_needs_no_listener() {
    let answers = asks(DB, 1, "10.0.4.17:5432", "10.0.2.8:40001");
    let fleet = Fleet::default()
        .wait("app-1.bb", asks(SHOP, 21, "10.0.2.8:40001", "10.0.4.17:5432"))
        .wait(
            "db-3.cc",
            Wait {
                cause: Cause::CpuKernel,
                ..answers
            },
        )
        .wait("db-3.cc", locked(DB, 20))
        .finding("db-3.cc", lock_is_found());
    let report = fleet.joined();
    assert_eq!(report.paths[0].steps[1].reached.by, ReachedBy::FourTuple);
    assert!(
        report.findings[0].evidence[0]
            .text
            .contains("the same connection")
    );
}

#[test]
fn connections_that_a_process_each_serves_are_one_program() {
    let ask = |port: u16, seconds: u64| asks(SHOP, seconds, &format!("10.0.2.8:{port}"), "10.0.4.17:5432");
    let answer = |pid: u32, port: u16| {
        let peer = format!("10.0.2.8:{port}");
        let wait = asks(("postgres", pid, pid), 1, "10.0.4.17:5432", &peer);
        Wait {
            cause: Cause::CpuKernel,
            ..wait
        }
    };
    let report = Fleet::default()
        .wait("app-1.bb", ask(40_001, 12))
        .wait("app-1.bb", ask(40_002, 11))
        .wait("db-3.cc", answer(30, 40_001))
        .wait("db-3.cc", answer(31, 40_002))
        .wait("db-3.cc", locked(("postgres", 30, 30), 9))
        .wait("db-3.cc", locked(("postgres", 31, 31), 8))
        .finding("db-3.cc", lock_is_found())
        .joined();
    let step = &report.paths[0].steps[1];
    assert_eq!((step.reached.by, step.ns), (ReachedBy::FourTuple, 17 * SECOND));
    assert!(report.findings[0].evidence[0].text.contains("2 connections"));
}

#[test]
fn others_that_wait_for_the_same_are_said() {
    let fleet = three("10.0.4.17").wait(
        "app-2.dd",
        asks(("report", 50, 50), 9, "10.0.2.9:41000", "10.0.4.17:5432"),
    );
    let report = fleet.joined();
    assert_eq!(report.paths.len(), 1);
    assert_eq!(report.paths[0].dependants[0].process, "report");
    assert!(
        report.findings[0]
            .evidence
            .iter()
            .any(|one| one.text.starts_with("report on app-2 waited 9.00 s"))
    );
}

#[test]
fn without_trouble_on_any_host_nothing_is_reported_and_chains_go_on_all_the_same() {
    let mut fleet = three("10.0.4.17");
    fleet.0.values_mut().for_each(|report| report.findings.clear());
    let report = fleet.joined();
    assert!(report.findings.is_empty() && report.paths.is_empty());
    assert_eq!(chain(&report, "app-1.bb").len(), 3);
    // Trouble of another kind is not about the path.
    let disk = found(
        ("cron", 7, 7),
        Cause::DiskSync,
        &json!({"kind": "device", "name": "sda"}),
    );
    let mut fleet = three("10.0.4.17");
    fleet.0.values_mut().for_each(|report| report.findings.clear());
    let report = fleet.finding("db-3.cc", disk).joined();
    assert!(report.paths.is_empty() && report.findings.len() == 1);
}

#[test]
fn an_address_of_two_hosts_or_of_none_is_followed_nowhere() {
    let twice = Fleet::default()
        .wait("app-1.bb", asks(SHOP, 21, "10.0.2.8:40001", "10.0.4.17:5432"))
        .wait("db-3.cc", serves(DB, "10.0.4.17:5432"))
        .wait("db-3.cc", locked(DB, 20))
        .wait(
            "db-4.dd",
            asks(("psql", 8, 8), 1, "10.0.4.17:50000", "10.0.9.9:1"),
        )
        .finding("db-3.cc", lock_is_found());
    assert!(is_alone(&twice.joined()), "two hosts have it");
    let translated = Fleet::default()
        .wait("app-1.bb", asks(SHOP, 21, "10.0.2.8:40001", "203.0.113.9:5432"))
        .wait("db-3.cc", serves(DB, "10.0.4.17:5432"))
        .wait("db-3.cc", locked(DB, 20))
        .finding("db-3.cc", lock_is_found());
    assert!(is_alone(&translated.joined()), "a translated address is nobody's");
}

#[test]
fn addresses_that_every_host_has_are_of_no_host() {
    for address in ["127.0.0.1", "169.254.1.1", "[::1]", "[fe80::1]", "0.0.0.0"] {
        let peer = format!("{address}:5432");
        let fleet = Fleet::default()
            .wait("app-1.bb", asks(SHOP, 21, &format!("{address}:40001"), &peer))
            .wait("db-3.cc", serves(DB, &peer))
            .wait("db-3.cc", locked(DB, 20))
            .finding("db-3.cc", lock_is_found());
        assert!(is_alone(&fleet.joined()), "{address}");
    }
}

#[test]
fn a_network_that_each_host_has_for_itself_joins_nothing_by_address_alone() {
    let fleet = |answer: Option<Wait>| {
        let fleet = Fleet::default()
            .wait("app-1.bb", asks(SHOP, 21, "172.17.0.5:40001", "172.17.0.2:5432"))
            .wait("db-3.cc", serves(DB, "172.17.0.2:5432"))
            .wait("db-3.cc", locked(DB, 20))
            .finding("db-3.cc", lock_is_found());
        match answer {
            Some(wait) => fleet.wait("db-3.cc", wait),
            None => fleet,
        }
    };
    assert!(is_alone(&fleet(None).joined()));
    let answer = asks(DB, 1, "172.17.0.2:5432", "172.17.0.5:40001");
    assert!(!is_alone(
        &fleet(Some(Wait {
            cause: Cause::CpuKernel,
            ..answer
        }))
        .joined()
    ));
    // From outside of such a network it is an address like others.
    let routed = Fleet::default()
        .wait("app-1.bb", asks(SHOP, 21, "10.0.2.8:40001", "192.168.7.2:5432"))
        .wait("db-3.cc", serves(DB, "192.168.7.2:5432"))
        .wait("db-3.cc", locked(DB, 20))
        .finding("db-3.cc", lock_is_found());
    assert!(!is_alone(&routed.joined()));
}

#[test]
fn the_same_port_on_two_hosts_is_the_one_that_was_asked() {
    let report = three("10.0.4.17")
        .wait("db-4.dd", serves(("mysqld", 40, 41), "10.0.4.18:5432"))
        .wait("db-4.dd", locked(("mysqld", 40, 41), 30))
        .joined();
    assert_eq!(chain(&report, "app-1.bb")[1].0, "db-3.cc");
}

#[test]
fn ipv6_and_ipv4_inside_it_are_addresses_too() {
    let six = three("[2001:db8::17]").joined();
    assert!(
        six.findings[0].title.contains("([2001:db8::17]:5432)"),
        "{}",
        six.findings[0].title
    );
    let report = three("[::ffff:10.0.4.17]").joined();
    assert!(
        report.findings[0].title.contains("(10.0.4.17:5432)"),
        "{}",
        report.findings[0].title
    );
}

#[test]
fn a_port_that_programs_of_two_names_serve_is_nobodys() {
    let by_two = three("10.0.4.17").wait("db-3.cc", serves(("pgbouncer", 44, 44), "10.0.4.17:5432"));
    let report = by_two.joined();
    assert_eq!(
        chain(&report, "app-1.bb"),
        [],
        "no wait for the database is followed"
    );
}

#[test]
fn a_listener_on_all_addresses_serves_those_of_its_own_network_namespace() {
    let listener = |who: Who| {
        Fleet::default()
            .wait("app-1.bb", asks(SHOP, 21, "10.0.2.8:40001", "10.0.4.17:5432"))
            .wait("db-3.cc", asks(who, 1, "10.0.4.17:33000", "10.0.9.1:53"))
            .wait("db-3.cc", listens(DB, "0.0.0.0:5432"))
            .wait("db-3.cc", locked(DB, 20))
            .finding("db-3.cc", lock_is_found())
    };
    assert!(!is_alone(&listener(DB).joined()));
    let other = ("resolver", 9, 9);
    assert!(is_alone(&listener(other).joined()), "it may be in a container");
    let second = ("haproxy", 44, 44);
    let two = listener(DB)
        .wait("db-3.cc", listens(second, "[::]:5432"))
        .wait("db-3.cc", asks(second, 1, "10.0.4.17:33001", "10.0.9.1:53"));
    assert!(is_alone(&two.joined()), "two programs listen");
    let same = ("postgres", 44, 44);
    let one = listener(DB).wait("db-3.cc", listens(same, "0.0.0.0:5432"));
    assert!(
        !is_alone(&one.joined()),
        "another container's listener does not count"
    );
}

#[test]
fn who_waits_for_each_other_began_nowhere() {
    let fleet = Fleet::default()
        .wait("app-1.bb", asks(SHOP, 21, "10.0.2.8:40001", "10.0.4.17:5432"))
        .wait("app-1.bb", serves(SHOP, "10.0.2.8:8080"))
        .wait("db-3.cc", serves(DB, "10.0.4.17:5432"))
        .wait("db-3.cc", asks(DB, 20, "10.0.4.17:40002", "10.0.2.8:8080"))
        .finding(
            "app-1.bb",
            found(
                SHOP,
                Cause::NetReceive,
                &json!({"kind": "socket", "name": "10.0.4.17:5432 (tcp)"}),
            ),
        );
    let report = fleet.joined();
    assert!(report.paths.is_empty() && report.findings.len() == 1);
    assert_eq!(
        chain(&report, "app-1.bb").len(),
        2,
        "it ends where it would come back"
    );
}

#[test]
fn a_long_way_ends_after_eight_hops() {
    let mut fleet = Fleet::default();
    for host in 0_u32..12 {
        let who = ("relay", 100 + host, 100 + host);
        let (id, own, next) = (
            format!("h{host}.aa"),
            format!("10.1.0.{host}"),
            format!("10.1.0.{}:80", host + 1),
        );
        fleet = fleet.wait(&id, serves(who, &format!("{own}:80"))).wait(
            &id,
            asks(who, 60 - u64::from(host), &format!("{own}:40000"), &next),
        );
    }
    assert_eq!(chain(&fleet.joined(), "h0.aa").len(), 9);
}

#[test]
fn hosts_that_were_not_observed_at_the_same_time_are_not_joined() {
    let fleet = three("10.0.4.17").observed("db-3.cc", ["2026-11-29T09:00:00Z", "2026-11-29T09:10:00Z"]);
    assert_eq!(chain(&fleet.joined(), "app-1.bb"), []);
}

#[test]
fn what_is_too_short_to_explain_a_wait_is_no_reason_for_it() {
    let fleet = Fleet::default()
        .wait("app-1.bb", asks(SHOP, 21, "10.0.2.8:40001", "10.0.4.17:5432"))
        .wait("db-3.cc", serves(DB, "10.0.4.17:5432"))
        .wait("db-3.cc", locked(DB, 2))
        .wait(
            "db-3.cc",
            wait(
                ("postgres", 30, 99),
                Cause::TimerSleep,
                60,
                &json!({"name": "timer"}),
            ),
        )
        .finding("db-3.cc", lock_is_found());
    let report = fleet.joined();
    assert_eq!(chain(&report, "app-1.bb")[1], ("db-3.cc", Cause::Unknown));
    assert!(
        report.paths.is_empty(),
        "what the host found is not shown to be the reason"
    );
}

#[test]
fn a_lock_whose_holder_waits_for_a_third_host_leads_there() {
    let holder = ("backup", 66, 66);
    let mut behind = locked(DB, 20);
    behind.chain[1].cause = Cause::NetReceive;
    let fleet = Fleet::default()
        .wait("app-1.bb", asks(SHOP, 21, "10.0.2.8:40001", "10.0.4.17:5432"))
        .wait("db-3.cc", serves(DB, "10.0.4.17:5432"))
        .wait("db-3.cc", behind)
        .wait("db-3.cc", asks(holder, 20, "10.0.4.17:41000", "10.0.7.7:22"))
        .wait("vault.ee", serves(("sshd", 70, 70), "10.0.7.7:22"))
        .wait(
            "vault.ee",
            wait(
                ("sshd", 70, 70),
                Cause::DiskSync,
                19,
                &json!({"kind": "device", "name": "sda"}),
            ),
        )
        .finding("db-3.cc", lock_is_found());
    let report = fleet.joined();
    assert_eq!(
        report.findings[0].title,
        "checkout on app-1 waits for postgres on db-3 (10.0.4.17:5432), which was waiting for a file lock (/srv/lock), behind backup \
         (pid 66), which waits for sshd on vault (10.0.7.7:22), which was waiting for data to be safe on disk (sda)"
    );
}
