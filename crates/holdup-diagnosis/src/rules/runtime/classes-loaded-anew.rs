//! A JVM spends its start on loading classes, most of them from files, where an archive has them ready.

use crate::rules::{Rule, RuleId, Run, Waits, duration, fires, percent, say};
use holdup_evidence::{Cause, Jvm, Ns};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::ClassesLoadedAnew, check)
    .about("a JVM loads, verifies and links thousands of classes at each start")
    .causes(&[Cause::CpuUser]);

/// Part of the machine's life, or of the time in which it was watched, that loading takes from which it is what its start
/// consists of: a program that prints one line spends 7 of its 40 ms so on JDK 17 and 25 (`sun.cls.time`), from the archive that comes with them.
const MIN_SHARE: f64 = 0.25;

/// The same in nanoseconds: what a person waits for.
const MIN_NS: Ns = 200_000_000;

/// Classes from files from which an archive is worth its making; one that is whole leaves some dozens.
const MIN_CLASSES: u64 = 500;

/// A machine that was no older when it was first looked at is seen from its start, nanoseconds.
const MAX_AGE_NS: Ns = 1_000_000_000;

/// What a machine loaded while it was watched.
struct Loaded {
    /// Loading, checking and linking, of all threads together.
    took: Ns,
    /// From files.
    classes: u64,
    /// From an archive.
    shared: u64,
    /// The time that this is of.
    of: Ns,
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let of_jvm = |pid: u32| run.facts.jvms.iter().find(|jvm| jvm.pid == pid);
    let Some(busy) = waits.only(|wait| of_jvm(wait.asker.name.pid).is_some()) else {
        return Verdict::Clear("0 of the threads that run are of a JVM".to_owned());
    };
    let pid = busy.main().asker.name.pid;
    let Some(jvm) = of_jvm(pid) else {
        return Verdict::Clear("0 of the threads that run are of a JVM".to_owned());
    };
    let Some(loaded) = loaded(run, jvm) else {
        return Verdict::CannotTell("what the JVM counts: it shares no performance data (-XX:-UsePerfData, -XX:+PerfDisableSharedMem)".to_owned());
    };
    let part = loaded.took as f64 / loaded.of.max(1) as f64;
    if part < MIN_SHARE || loaded.took < MIN_NS || loaded.classes < MIN_CLASSES {
        return Verdict::Clear(format!(
            "loading {} took {} of {} of the JVM",
            say::several(loaded.classes, "class"),
            duration(loaded.took),
            duration(loaded.of)
        ));
    }
    fires(finding(&busy, jvm, &loaded))
}

/// `None` where the machine tells no figures.
fn loaded(run: &Run<'_>, jvm: &Jvm) -> Option<Loaded> {
    let after = &jvm.after;
    let (took, classes) = (after.loading?, after.classes?);
    let shared = after.shared_classes.unwrap_or(0);
    let young = jvm
        .uptime
        .is_some_and(|age| age.saturating_sub(jvm.between) <= MAX_AGE_NS);
    if young || !run.attributed.of_threads {
        let mut threads = run.attributed.threads.iter();
        let first = threads.find(|one| one.name.pid == jvm.pid && one.name.tid == jvm.pid);
        let life = first.map_or(run.attributed.elapsed, |first| first.wall);
        return Some(Loaded {
            took,
            classes,
            shared,
            of: life,
        });
    }
    let before = &jvm.before;
    Some(Loaded {
        took: took.saturating_sub(before.loading?),
        classes: classes.saturating_sub(before.classes?),
        shared: shared.saturating_sub(before.shared_classes.unwrap_or(0)),
        of: jvm.between,
    })
}

fn finding(busy: &Waits<'_>, jvm: &Jvm, loaded: &Loaded) -> Finding {
    let who = say::name_or(&busy.main().asker.name.process, "a JVM");
    let title = format!(
        "{who} spends {} of {} on loading {} classes from files",
        duration(loaded.took),
        duration(loaded.of),
        loaded.classes
    );
    let counted = format!(
        "{} took {} to load, check and link, which is {} of the time; {} came from an archive",
        say::several(loaded.classes, "class"),
        duration(loaded.took),
        percent((loaded.took as f64 / loaded.of.max(1) as f64).min(1.0)),
        loaded.shared
    );
    let release = jvm.version.as_deref().and_then(release);
    RULE.finding(Severity::Warning, title, busy)
        .confidence(Confidence::Strong)
        .and(Evidence::new(
            counted,
            "the JVM's performance data (what jstat -class prints)",
        ))
        .remedy(Remedy::safe(archive(release)))
        .remedy(Remedy::safe(
            "load less: a shorter class path, no annotation scanning, and lazy loading",
        ))
}

/// The feature release of a version: 8 of `1.8.0_402`, 17 of `17.0.15`.
fn release(version: &str) -> Option<u32> {
    let version = version.strip_prefix("1.").unwrap_or(version);
    let digits = version.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// How this release keeps classes ready. The options came with JDK 10, 13, 19 and 25 (JEP 310, 350, JDK-8261455, JEP 514).
fn archive(release: Option<u32>) -> String {
    let how = match release {
        Some(25..) => {
            "run it once with -XX:AOTCacheOutput=app.aot, and from then on with -XX:AOTCache=app.aot: classes are linked already, and \
             what is worth compiling is known"
        }
        Some(19..) => {
            "-XX:+AutoCreateSharedArchive -XX:SharedArchiveFile=app.jsa writes an archive at the first exit, and uses it from then on"
        }
        Some(13..) => {
            "run it once with -XX:ArchiveClassesAtExit=app.jsa, and from then on with -XX:SharedArchiveFile=app.jsa"
        }
        _ => {
            "newer JDKs keep the program's own classes ready in an archive: from 13 with -XX:ArchiveClassesAtExit, from 25 with \
             -XX:AOTCacheOutput"
        }
    };
    format!("keep them ready in an archive: {how}")
}
