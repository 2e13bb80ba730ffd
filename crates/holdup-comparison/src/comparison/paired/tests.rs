//! The truth is planted: hosts of very different load that change alike, by chance, or alone.

use super::{Observed, Pair, compare, signed};
use holdup_evidence::Cause;
use std::collections::BTreeMap;

const MS: f64 = 1e6;

fn observed(disk_ms: f64, cpu_ms: f64) -> Observed {
    let key = |name: &str, cause| (Some(name.to_owned()), cause);
    Observed {
        seconds: 10.0,
        amounts: BTreeMap::from([
            (key("db", Cause::DiskSync), disk_ms * MS * 10.0),
            (key("web", Cause::CpuUser), cpu_ms * MS * 10.0),
            (key("web", Cause::Idle), 9e9),
        ]),
    }
}

/// Hosts of very different load, all of which got slower by much the same.
fn fleet(hosts: usize, slower_ms: f64) -> Vec<Pair> {
    (0..hosts)
        .map(|number| {
            let load = 10.0 * (1 << (number % 6)) as f64;
            let wobble = (number % 3) as f64 - 1.0;
            Pair {
                host: format!("host-{number}"),
                before: observed(load, load),
                after: observed(load + slower_ms + wobble, load - wobble / 2.0),
            }
        })
        .collect()
}

fn names() -> [String; 2] {
    ["then".to_owned(), "now".to_owned()]
}

#[test]
fn each_host_is_its_own_control() {
    let found = compare(names(), &fleet(12, 5.0), vec![]).unwrap();
    // Loads differ by a factor of thirty, the change is a tenth of them: hosts dealt out at random would never show it.
    assert_eq!(found.significant, Some(true), "{found:?}");
    assert_eq!(found.change_ns, Some(5_000_000));
    assert_eq!((found.before_n, found.unit.as_str()), (12, "second"));
    let [from, to] = found.interval_ns.unwrap();
    assert!(from > 4_000_000 && to < 6_000_000, "{from} {to}");
    let first = &found.programs[0];
    assert_eq!(
        (first.process.as_deref(), first.cause),
        (Some("db"), Cause::DiskSync)
    );
    assert_eq!(
        (first.change_ns, first.more_on, first.significant),
        (5_000_000, 12, Some(true))
    );
    let web = found
        .programs
        .iter()
        .find(|one| one.process.as_deref() == Some("web"));
    assert_eq!(web.unwrap().significant, Some(false));
    assert!(found.causes.iter().all(|one| one.cause != Cause::Idle));
    assert!(
        found.verdict[0].starts_with("AFTER is slower than BEFORE: +5.0"),
        "{:?}",
        found.verdict
    );
    assert!(found.hosts.iter().all(|one| one.unlike == Some(false)));
}

#[test]
fn what_is_within_the_hosts_own_spread_is_no_change() {
    let found = compare(names(), &fleet(12, 0.0), vec![]).unwrap();
    assert_eq!(found.significant, Some(false), "{found:?}");
    assert!(found.programs.iter().all(|one| one.significant != Some(true)));
}

#[test]
fn few_hosts_cannot_tell() {
    for hosts in 1..6 {
        let found = compare(names(), &fleet(hosts, 5.0), vec![]).unwrap();
        assert_eq!(
            (found.significant, found.p, found.interval_ns),
            (None, None, None)
        );
        assert!(
            found.verdict.iter().any(|one| one.contains("may be noise")),
            "{:?}",
            found.verdict
        );
    }
    assert_eq!(
        compare(names(), &fleet(6, 5.0), vec![]).unwrap().significant,
        Some(true)
    );
}

#[test]
fn one_host_that_changed_alone_is_named() {
    let mut pairs = fleet(9, 0.0);
    pairs[4].after = observed(900.0, 160.0);
    let found = compare(names(), &pairs, vec![]).unwrap();
    let unlike: Vec<&str> = found
        .hosts
        .iter()
        .filter(|one| one.unlike == Some(true))
        .map(|one| one.host.as_str())
        .collect();
    assert_eq!(unlike, ["host-4"]);
    assert_eq!(found.hosts[0].cause, Some(Cause::DiskSync));
    assert!(
        found.verdict.iter().any(|one| one.contains("host-4")),
        "{:?}",
        found.verdict
    );
}

#[test]
fn a_host_of_one_time_alone_is_no_pair() {
    let mut pairs = fleet(1, 5.0);
    pairs[0].after.seconds = 0.0;
    assert!(compare(names(), &pairs, vec![]).is_err());
}

#[test]
fn all_signs_are_tried() {
    assert!((signed(&[1.0; 6]) - 2.0 / 64.0).abs() < 1e-12);
    assert!((signed(&[1.0, -1.0]) - 1.0).abs() < 1e-12);
    assert!((signed(&[0.0; 3]) - 1.0).abs() < 1e-12);
}

#[test]
fn many_hosts_are_judged_in_no_time() {
    let found = compare(names(), &fleet(500, 5.0), vec![]).unwrap();
    assert_eq!(found.significant, Some(true));
}
