//! A package manager waits because another one is at work.

use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, fires, percent, say};
use holdup_evidence::{Cause, Frame};
use holdup_knowledge::user_code;
use holdup_model::attributed::{AttributedWait, Resource, ResourceKind};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::PackageManagerLocked, check)
    .about("another package manager is running")
    .needs(&[Need::SchedulerEvents, Need::LockHolders])
    .causes(&[Cause::LockFile, Cause::TimerSleep])
    .explains(&[RuleId::SleepPolling, RuleId::WaitsForLockHolder]);

/// What is known of package managers that share their locks.
struct Manager {
    /// Ends of the paths of the files that they lock: they are also used below another root.
    locks: &'static [&'static str],
    /// Whether a sleep between two tries shows in a stack. The kernel does not say for which lock that is.
    sleeps: Option<fn(&[Frame]) -> bool>,
    /// Whose job is often the other one.
    other: &'static str,
    /// How a script waits with a limit, or does not wait.
    limit: &'static str,
}

/// Package managers that wait for their lock. Of others there is nothing to see: pacman refuses at once while `db.lck` exists, and pip
/// and npm lock nothing.
const MANAGERS: &[Manager] = &[
    Manager {
        locks: &[
            "/dpkg/lock",
            "/dpkg/lock-frontend",
            "/dpkg/triggers/Lock",
            "/apt/lists/lock",
            "/apt/archives/lock",
            "/debconf/config.dat",
        ],
        sleeps: Some(user_code::apt_waits),
        other: "wait for the other one: unattended upgrades and the first start of a new machine take minutes",
        limit: "set a timeout in scripts (apt-get -o DPkg::Lock::Timeout=120), or start them after those jobs",
    },
    // rpm itself, and dnf, yum, microdnf and zypper through it.
    Manager {
        locks: &["/rpm/.rpm.lock"],
        sleeps: None,
        other: "wait for the other one: dnf-automatic, PackageKit and the first start of a new machine take minutes",
        limit: "set a timeout in scripts (timeout 120 dnf install ...), or start them after those jobs",
    },
    Manager {
        locks: &["/lib/apk/db/lock"],
        sleeps: None,
        other: "wait for the other one",
        limit: "set a timeout in scripts (apk --wait 120), or let one build step install everything",
    },
    Manager {
        locks: &[
            "/.cargo/.package-cache",
            "/.cargo/.package-cache-mutate",
            "/.cargo-lock",
            "/.cargo-build-lock",
            "/.cargo-artifact-lock",
        ],
        sleeps: None,
        other: "wait for the other one: an editor's rust-analyzer builds in the same folder as you do",
        limit: "give the other one a folder of its own (CARGO_TARGET_DIR, or rust-analyzer.cargo.targetDir), and in CI a CARGO_HOME of its own",
    },
    Manager {
        locks: &["/pkg/mod/cache/lock"],
        sleeps: None,
        other: "wait for the other one: it downloads modules",
        limit: "download once before jobs run side by side (go mod download), or give each job a GOMODCACHE of its own",
    },
    Manager {
        locks: &["/nix/var/nix/db/big-lock", "/nix/var/nix/gc.lock"],
        sleeps: None,
        other: "wait for the other one: a garbage collection takes minutes",
        limit: "run nix-collect-garbage at a time when nothing is built",
    },
];

/// How a person sees who has Debian's locks.
const WHO_HAS_THEM: &str = "fuser -v /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock";

/// The package manager for whose lock a wait is.
fn manager(wait: &AttributedWait) -> Option<&'static Manager> {
    MANAGERS.iter().find(|manager| match wait.cause {
        Cause::LockFile => manager
            .locks
            .iter()
            .any(|lock| wait.resource.name.ends_with(lock)),
        _ => manager.sleeps.is_some_and(|sleeps| sleeps(&wait.asker.stack)),
    })
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let locked = waits
        .only(|wait| manager(wait).is_some())
        .filter(|locked| run.matters(locked.cost(), MATTERS));
    let manager = locked.as_ref().and_then(|locked| manager(locked.main()));
    match locked.zip(manager) {
        Some((locked, manager)) if waits.cause() == Cause::LockFile => fires(blocked(&locked, manager)),
        Some((locked, manager)) => fires(tries_again(&locked, manager)),
        None => Verdict::Clear(format!(
            "of {} of the elapsed time in {}, almost none was for the lock of a package manager",
            percent(run.share(waits.cost())),
            waits.cause()
        )),
    }
}

/// It sleeps in the call that takes the lock, so that the kernel says who has it.
fn blocked(locked: &Waits<'_>, manager: &Manager) -> Finding {
    let main = locked.main();
    let who = say::who(&main.asker.name);
    let file = &main.resource.name;
    let holders = locked.holders();
    let title = match holders.first() {
        Some(holder) => format!(
            "{who} waits for the package lock of {} ({file})",
            say::who_with_pid(&holder.name)
        ),
        None => format!("{who} waits for the package lock of another package manager ({file})"),
    };
    let finding = RULE
        .finding(Severity::Warning, title, locked)
        .and_if(holders.first().map(say::meanwhile))
        .proved_if(!holders.is_empty());
    remedies(finding, manager, format!("fuser -v {}", say::quoted(file)))
}

/// apt asks for the lock, is refused, sleeps, and asks again: only its stack tells.
fn tries_again(locked: &Waits<'_>, manager: &Manager) -> Finding {
    let title = format!(
        "{} polls the package lock of another package manager",
        say::who(&locked.main().asker.name)
    );
    let mut finding = RULE
        .finding(Severity::Warning, title, locked)
        .and(Evidence::new(
            "the library of apt sleeps only where it takes the lock of the package database",
            "user stacks",
        ))
        .confidence(Confidence::Strong);
    finding.resource = Resource {
        kind: ResourceKind::Lock,
        name: "the lock of the package database".to_owned(),
        ..Resource::default()
    };
    remedies(finding, manager, WHO_HAS_THEM.to_owned())
}

fn remedies(finding: Finding, manager: &Manager, who_has_it: String) -> Finding {
    finding
        .remedy(Remedy::safe(manager.other).with_command(who_has_it))
        .remedy(Remedy::safe(manager.limit))
        .remedy(Remedy::pointless(
            "removing the lock file: two package managers at the same time damage the database",
        ))
}
