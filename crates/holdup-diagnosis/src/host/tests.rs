//! Machines in a few figures.

use super::{mark_short, of};
use crate::rules::RuleId;
use holdup_evidence::host::{DeletedFile, HostSight};
use holdup_evidence::observed::{Metric, Point, SeenThread, Series, Snapshot, SnapshotKind, State};
use holdup_evidence::{Cause, Observed, SystemFacts};
use holdup_model::finding::{Evidence, Finding, Severity};
use holdup_model::report::Host;

fn figure(metric: Metric, of: &str, value: f64) -> Series {
    Series {
        metric,
        of: of.to_owned(),
        source: 0,
        points: vec![Point {
            value,
            ..Point::default()
        }],
        count: 1,
        sum: value,
    }
}

fn list(tasks: &[(&str, State, &str)]) -> Snapshot {
    let threads = tasks.iter().map(|(name, state, function)| SeenThread {
        name: (*name).to_owned(),
        state: *state,
        kernel_function: Some((*function).to_owned()).filter(|name| !name.is_empty()),
        ..SeenThread::default()
    });
    Snapshot {
        threads: threads.collect(),
        total: Some(100),
        of_threads: Some(true),
        ..Snapshot::new(SnapshotKind::Kernel, Default::default())
    }
}

fn host(series: Vec<Series>, snapshots: Vec<Snapshot>) -> Host {
    let observed = Observed {
        series,
        snapshots,
        ..Observed::default()
    };
    let facts = SystemFacts {
        cpus: Some(2),
        ..SystemFacts::default()
    };
    of(&observed, &facts, &HostSight::default())
}

#[test]
fn load_that_is_not_cpu_is_said_with_who_and_what() {
    let blocked = list(&[("sendmail", State::Uninterruptible, "rq_qos_wait"); 34]);
    let series = vec![
        figure(Metric::LoadAverage1, "", 36.9),
        figure(Metric::CpuIdlePercent, "", 69.0),
    ];
    let host = host(series, vec![blocked.clone(), blocked]);
    assert!(
        host.verdict.starts_with("Load 37 on 2 CPUs, of it 34 in disk."),
        "{}",
        host.verdict
    );
    assert!(
        host.verdict.ends_with("by sendmail; CPU 69 % idle"),
        "{}",
        host.verdict
    );
    assert_eq!((host.blocked[0].tasks, host.blocked[0].share), (34.0, 1.0));
}

#[test]
fn a_load_of_the_past_is_told_from_that_of_now() {
    let series = || vec![figure(Metric::LoadAverage1, "", 12.0)];
    let quiet = host(series(), vec![list(&[])]);
    assert_eq!(
        quiet.verdict,
        "Load 12 on 2 CPUs, of the last minute; now nothing runs or is blocked"
    );
    // Without a list nothing is said of now.
    assert_eq!(host(series(), Vec::new()).verdict, "Load 12 on 2 CPUs");
}

#[test]
fn an_idle_machine_is_idle() {
    let series = vec![
        figure(Metric::LoadAverage1, "", 0.04),
        figure(Metric::CpuIdlePercent, "", 99.2),
    ];
    let mut idle = host(series, vec![list(&[])]);
    mark_short(&mut idle, &[]);
    assert_eq!(
        idle.verdict,
        "Load 0.0 on 2 CPUs; CPU 99 % idle: nothing is short"
    );
    assert!(idle.facts.is_empty() && idle.blocked.is_empty());
}

#[test]
fn a_resource_is_short_if_a_rule_says_so_and_only_that_disk() {
    let series = vec![
        figure(Metric::DiskUtilPercent, "sda", 98.0),
        figure(Metric::DiskUtilPercent, "sdb", 20.0),
        figure(Metric::ProcessesBlocked, "", 1.0),
    ];
    let mut host = host(series, Vec::new());
    let finding = |severity| {
        let evidence = Evidence::new("x", "y");
        let rule = RuleId::DiskBusy.id();
        let mut finding =
            Finding::without_duration(rule, severity, "busy".to_owned(), Cause::DiskWrite, evidence);
        finding.resource.name = "sda".to_owned();
        finding
    };
    mark_short(&mut host, &[finding(Severity::Warning)]);
    let short = |host: &Host| -> Vec<String> {
        let short = host.resources.iter().filter(|one| one.short);
        short.map(|one| one.name.to_string()).collect()
    };
    assert_eq!(short(&host), ["disk sda"]);
    assert_eq!(host.resources.len(), 2);
    mark_short(&mut host, &[finding(Severity::Note)]);
    assert!(short(&host).is_empty());
}

#[test]
fn what_waits_to_hurt_is_told_and_small_things_are_not() {
    let file = |path: &str, size| DeletedFile {
        path: path.to_owned(),
        process: "rsyslogd".to_owned(),
        pid: 7,
        size,
    };
    let sight = HostSight {
        frozen: vec!["/box".to_owned()],
        deleted: vec![
            file("/var/log/old", Some(5 << 30)),
            file("/tmp/small", Some(4096)),
            file("/srv/unknown", None),
        ],
        ..HostSight::default()
    };
    let observed = Observed {
        series: vec![
            figure(Metric::OpenFiles, "", 900.0),
            figure(Metric::OpenFilesLimit, "", 1000.0),
        ],
        ..Observed::default()
    };
    let host = of(&observed, &SystemFacts::default(), &sight);
    let kinds: Vec<&str> = host.facts.iter().map(|fact| fact.kind.as_str()).collect();
    assert_eq!(kinds, ["frozen-cgroup", "deleted-file-open", "limit-near"]);
    assert!(host.facts[1].text.contains("5 GiB") || host.facts[1].text.contains("5.0 GiB"));
}
