//! A JVM starts a thread after each TLS handshake, to tell those who asked that it is over.

use crate::rules::{Extend, Rule, RuleId, Run, duration, fires, percent, say};
use holdup_evidence::observed::{Samples, Snapshot, SnapshotKind};
use holdup_evidence::{Cause, Frame, Language, Observed};
use holdup_model::attributed::AttributedWait;
use holdup_model::churn::{Births, Born, Churn, Conversations};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_churn(RuleId::ThreadPerHandshake, live, seen)
    .about("a JVM starts a thread after each TLS handshake")
    .causes(&[Cause::CpuKernel])
    .from(0.0);

/// What the JDK calls that thread,
const NAME: &str = "HandshakeCompletedNotify-Thread";

/// and what is left of that in the kernel's 15 bytes: its beginning, or, as newer JVMs shorten names, its ends.
const SHORT_NAMES: [&str; 2] = ["HandshakeComple", "Handsha..Thread"];

/// Such threads from which each handshake has one, and not one of a few that a pool of connections begins with.
const MIN_THREADS: u64 = 20;

/// Where the JDK starts it.
const STARTED_IN: &str = "sun.security.ssl.TransportContext.finishHandshake";

/// Functions of a profile of what starts threads.
const STARTS: [&str; 4] = [
    "java.lang.Thread.start",
    "java.lang.Thread.start0",
    "JVM_StartThread",
    "Java_java_lang_Thread_start0",
];

const KEEP: &str = "reuse connections, so that there are few handshakes: enable keep-alive in the server, \
 and a connection pool in the client";
const OTHER_CLIENT: &str = "use an HTTP client that registers no HandshakeCompletedListener \
 (java.net.http.HttpClient, Apache's): it saves the thread, but check that it also resumes sessions, because \
 a full handshake costs more than the thread";

fn live(run: &Run<'_>, churn: &Churn) -> Verdict {
    let of_kind = |one: &Births| -> u64 {
        let names = one.names.iter();
        let notify = names.filter(|called| SHORT_NAMES.contains(&called.name.as_str()));
        notify.map(|called| called.count).sum()
    };
    let threads = churn.made.iter().filter(|one| one.what == Born::Thread);
    let most = threads.max_by_key(|one| of_kind(one));
    let pid = most.map_or(0, |one| one.by.name.pid);
    let of_process = || {
        let threads = churn.made.iter();
        threads.filter(|one| one.what == Born::Thread && one.by.name.pid == pid)
    };
    let count: u64 = of_process().map(of_kind).sum();
    let Some(most) = most.filter(|_| count >= MIN_THREADS) else {
        return Verdict::Clear(format!(
            "{} called {NAME} started and ended",
            say::several(count, "thread")
        ));
    };
    let who = say::name_or(&most.by.name.process, "A JVM").to_owned();
    let title = format!(
        "{who} starts a thread after each TLS handshake: {:.0} a second",
        churn.per_second(count)
    );
    let lived = Evidence::new(
        format!(
            "{count} threads called {NAME} started and ended, median lifetime {}",
            duration(most.p50)
        ),
        "process and thread starts and exits",
    );
    let handshakes = churn.connections.iter().filter(|one| one.by.name.pid == pid);
    let handshakes: u64 = handshakes.map(|one: &Conversations| one.tls.all()).sum();
    let beside = (handshakes > 0).then(|| {
        let text = format!("{} in the same time", say::several(handshakes, "TLS handshake"));
        Evidence::new(text, "first records of each connection")
    });
    let begins = run.of(Cause::LockFutex).and_then(|waits| {
        let starter =
            |wait: &AttributedWait| wait.asker.name.pid == pid && awaits_beginning(&wait.asker.stack);
        waits.only(starter).map(|waits| waits.own())
    });
    let begins = begins.map(|ns| {
        let text = format!(
            "the starting thread waits until the new one has begun: at least {}",
            duration(ns)
        );
        Evidence::new(text, "user stacks of waits")
    });
    let place = Evidence::new(started_in(most), "user stacks at clone");
    let id = RULE.id.id();
    // What starting threads costs is known by many-short-threads, where it matters.
    let finding = Finding::without_duration(id, Severity::Note, title, Cause::CpuKernel, lived);
    let mut finding = finding
        .and_if(beside)
        .and_if(begins)
        .and(place)
        .confidence(Confidence::Proved);
    finding.asker = most.by.clone();
    fires(with_remedies(finding))
}

/// Whether somebody waits in the JVM's function that starts a thread.
fn awaits_beginning(stack: &[Frame]) -> bool {
    let mut symbols = stack.iter().filter_map(|frame| frame.symbol.as_deref());
    symbols.any(|symbol| symbol.starts_with("os::create_thread("))
}

/// Where in Java most of them are started.
fn started_in(most: &Births) -> String {
    let who = say::who(&most.by.name);
    let java = || {
        most.by
            .stack
            .iter()
            .filter(|frame| frame.language == Language::Java)
    };
    let symbols = || java().filter_map(|frame| frame.symbol.as_deref());
    let of_handshake = symbols().any(|symbol| symbol.starts_with(STARTED_IN));
    let asker = most.by.frame.as_deref();
    let asker = asker.filter(|asker| symbols().any(|symbol| symbol.starts_with(asker)));
    match (of_handshake, asker) {
        (true, Some(asker)) => format!("started in {STARTED_IN}, under {asker}, by {who}"),
        (true, None) => format!("started in {STARTED_IN}, by {who}"),
        (false, Some(asker)) => format!("started in {asker}, by {who}"),
        (false, None) => {
            format!("started by {who}; the Java code is not known: its frames could not be read")
        }
    }
}

fn with_remedies(finding: Finding) -> Finding {
    finding.remedy(Remedy::safe(KEEP)).remedy(Remedy::changing(
        OTHER_CLIENT,
        "without session resumption each request may become slower than before",
    ))
}

/// By a profile of what starts threads, or by a dump in which such threads are.
fn seen(run: &Run<'_>, observed: &Observed) -> Verdict {
    let mut starts = 0u64;
    let mut most: Option<(&Samples, u64, u64)> = None;
    for samples in &observed.samples {
        let (all, ours) = starting(observed, samples);
        starts = starts.saturating_add(all);
        if ours > 0 && most.is_none_or(|(.., before)| ours > before) {
            most = Some((samples, all, ours));
        }
    }
    if let Some((samples, all, ours)) = most {
        let share = percent(ours as f64 / all.max(1) as f64);
        let title = format!(
            "A JVM starts a thread after each TLS handshake: {share} of the starts of threads in the profile"
        );
        let text = format!("{ours} of {all} samples under Thread.start are in {STARTED_IN}");
        let first = Evidence::new(text, observed.place(&samples.quote));
        let finding = Finding::without_duration(RULE.id.id(), Severity::Note, title, Cause::CpuKernel, first);
        return fires(with_remedies(finding.confidence(Confidence::Strong)));
    }
    let mut dumps = observed
        .snapshots
        .iter()
        .filter(|one| one.kind == SnapshotKind::Jvm)
        .peekable();
    if dumps.peek().is_none() && starts == 0 {
        return Verdict::CannotTell(
            "who starts threads: a profile of JVM_StartThread, or `holdup attach`".to_owned(),
        );
    }
    let notifies = |dump: &&Snapshot| dump.threads.iter().filter(|thread| thread.name == NAME).count();
    let count: usize = dumps.clone().map(|dump| notifies(&dump)).sum();
    let Some(dump) = dumps.find(|dump| notifies(dump) > 0) else {
        return Verdict::Clear(match starts {
            0 => format!("0 threads called {NAME} in the dumps, which show an instant"),
            starts => format!("0 of {starts} samples of threads' starts are in {STARTED_IN}"),
        });
    };
    let title = format!("A JVM starts a thread after each TLS handshake: {count} of them in the dumps");
    let first = Evidence::new(
        format!(
            "a thread called {NAME}: one is started after each handshake with a listener, and ends at once"
        ),
        run.observed.unwrap_or(observed).place(&dump.quote),
    );
    let finding = Finding::without_duration(RULE.id.id(), Severity::Note, title, Cause::CpuKernel, first);
    fires(with_remedies(finding.confidence(Confidence::Suspect)))
}

/// Of a profile: the weight of stacks that start threads, and of those that do so after a handshake.
fn starting(observed: &Observed, samples: &Samples) -> (u64, u64) {
    let mut sums = (0u64, 0u64);
    for (stack, weight) in &samples.stacks {
        // Profilers write Java's names with dots or slashes, and may add an argument list or a suffix.
        let is = |frame: &str, name: &str| {
            let frame = frame.replace('/', ".");
            let rest = frame.strip_prefix(name).map(str::to_owned);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '$'))
        };
        let starts = observed
            .stacks
            .frames(*stack)
            .any(|frame| STARTS.iter().any(|name| is(frame, name)));
        if !starts {
            continue;
        }
        sums.0 = sums.0.saturating_add(*weight);
        if observed.stacks.frames(*stack).any(|frame| is(frame, STARTED_IN)) {
            sums.1 = sums.1.saturating_add(*weight);
        }
    }
    sums
}
