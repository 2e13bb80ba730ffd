//! `fleet show` on three hosts for real: network namespaces with a bridge between them, each recorded by `holdup record` under a name of its own.
//!
//! It needs root, nginx and a kernel that can be traced; without them there is nothing to test. holdup stands beside this program once the
//! workspace is built.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use holdup_model::report::{FleetPath, ReachedBy, Report};
use std::path::Path;
use std::process::{Command, Output};

const FLEET: &str = env!("CARGO_BIN_EXE_holdup-fleet");

/// What the stage is made of, beside bash.
const PROGRAMS: [&str; 6] = ["nginx", "python3", "ip", "ss", "unshare", "findmnt"];

/// Where programs of root stand that a user's `PATH` may not have.
const PLACES: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

fn is_possible() -> bool {
    let is_there = |name: &&str| PLACES.iter().any(|place| Path::new(place).join(name).is_file());
    nix::unistd::geteuid().is_root()
        && Path::new("/sys/kernel/btf/vmlinux").is_file()
        && PROGRAMS.iter().all(is_there)
}

fn show(url: &str, holdup: &Path) -> Output {
    let arguments = ["show", url, "--last", "1h", "--json", "-"];
    Command::new(FLEET)
        .args(arguments)
        .env("HOLDUP", holdup)
        .output()
        .unwrap()
}

#[test]
fn the_report_names_the_host_where_the_wait_began() {
    if !is_possible() {
        eprintln!(
            "SKIPPED: it needs root, a kernel that can be traced, and {}",
            PROGRAMS.join(", ")
        );
        return;
    }
    let holdup = Path::new(FLEET).with_file_name("holdup");
    assert!(holdup.is_file(), "build it: cargo build -p holdup");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/three_hosts");
    let place = tempfile::tempdir().unwrap();
    let staged = Command::new("unshare")
        .args(["--mount", "--net", "--propagation", "private", "bash"])
        .arg(scripts.join("stage.sh"))
        .args([&scripts, place.path(), &holdup])
        .env("PATH", PLACES.join(":"))
        .output()
        .unwrap();
    assert!(
        staged.status.success(),
        "{}",
        String::from_utf8_lossy(&staged.stderr)
    );

    let shown = show(&format!("file://{}/store", place.path().display()), &holdup);
    let report: Report = serde_json::from_slice(&shown.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&shown.stderr)));
    let first = &report.findings[0];
    assert_eq!(first.rule, FleetPath::RULE, "{}", first.title);
    assert!(
        first
            .host
            .as_deref()
            .is_some_and(|host| host.starts_with("db-3.")),
        "{:?}",
        first.host
    );
    assert!(
        first.title.starts_with("nginx on web-1 waits for "),
        "{}",
        first.title
    );
    for part in [
        " on app-1 (10.0.2.8:8080), ",
        " on db-3 (10.0.4.17:5432), ",
        "waiting for a file lock (",
    ] {
        assert!(first.title.contains(part), "{}", first.title);
    }
    let steps = &report.paths[0].steps;
    assert!(
        steps[1..3]
            .iter()
            .all(|step| step.reached.by != ReachedBy::Start && step.reached.address.is_some())
    );
    assert_eq!(
        steps.last().map(|step| step.reached.by),
        Some(ReachedBy::Host),
        "the backup has the lock"
    );
}
