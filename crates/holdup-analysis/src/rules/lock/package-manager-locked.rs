//! A package manager waits because another one is at work.

use crate::attributed::{AttributedWait, Resource, ResourceKind};
use crate::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use crate::rules::{Check, Extend, MATTERS, Need, Place, Rule, RuleId, Run, Waits, fires, percent, say};
use crate::user_code;
use holdup_evidence::Cause;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: RuleId::PackageManagerLocked,
    about: "another package manager is running",
    needs: &[Need::SchedulerEvents, Need::LockHolders],
    causes: &[Cause::LockFile, Cause::TimerSleep],
    from: MATTERS,
    gives_way_to: &[],
    place: Place::End,
    check: Check::Waits(check),
};

/// Ends of the paths of the files that package managers lock: the managers are also used below another root.
const LOCKS: &[&str] = &[
    "/dpkg/lock",
    "/dpkg/lock-frontend",
    "/dpkg/triggers/Lock",
    "/apt/lists/lock",
    "/apt/archives/lock",
    "/debconf/config.dat",
    "/rpm/.rpm.lock",
    "/lib/apk/db/lock",
];

/// How a person sees who has Debian's locks.
const WHO_HAS_THEM: &str = "fuser -v /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock";

fn for_a_lock(wait: &AttributedWait) -> bool {
    match wait.cause {
        Cause::LockFile => LOCKS.iter().any(|lock| wait.resource.name.ends_with(lock)),
        _ => user_code::apt_waits(&wait.asker.stack),
    }
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let locked = waits.only(for_a_lock);
    match locked.filter(|locked| run.matters(locked.cost(), MATTERS)) {
        Some(locked) if waits.cause() == Cause::LockFile => fires(blocked(&locked)),
        Some(locked) => fires(tries_again(&locked)),
        None => Verdict::Clear(format!(
            "of {} of the elapsed time in {}, almost none was for the lock of a package manager",
            percent(run.share(waits.cost())),
            waits.cause()
        )),
    }
}

/// It sleeps in the call that takes the lock, so that the kernel says who has it.
fn blocked(locked: &Waits<'_>) -> Finding {
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
    remedies(finding, format!("fuser -v {}", say::quoted(file)))
}

/// apt asks for the lock, is refused, sleeps, and asks again: only its stack tells.
fn tries_again(locked: &Waits<'_>) -> Finding {
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
    remedies(finding, WHO_HAS_THEM.to_owned())
}

fn remedies(finding: Finding, who_has_it: String) -> Finding {
    finding
        .remedy(
            Remedy::safe(
                "wait for the other one: unattended upgrades and the first start of a new machine take \
                 minutes",
            )
            .with_command(who_has_it),
        )
        .remedy(Remedy::safe(
            "set a timeout in scripts (apt-get -o DPkg::Lock::Timeout=120), or start them after those jobs",
        ))
        .remedy(Remedy::pointless(
            "removing the lock file: two package managers at the same time damage the database",
        ))
}
