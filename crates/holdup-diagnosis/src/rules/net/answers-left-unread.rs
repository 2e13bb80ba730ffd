//! A program leaves answers of its servers unread, and the connections that they came on stay taken.

use crate::rules::{Rule, RuleId, Run, duration, language, live_sessions, say, tasks};
use holdup_attribution::attribution::{chosen_frame, is_applications};
use holdup_evidence::facts::LeftUnread;
use holdup_evidence::{Cause, Language, TaskRuntime, units};
use holdup_model::attributed::{Asker, AttributedWait, Resource, ResourceKind, Task, TaskState, ThreadName};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::AnswersLeftUnread, check)
    .about("a program leaves answers of its servers unread")
    .causes(&[Cause::NetReceive, Cause::LockFutex])
    .from(0.0)
    .explains(&[RuleId::CallStaysAtAwait]);

/// What stands on a connection from which it is an answer, bytes: less may be a server's word that it closes, or a ticket for later sessions.
const MIN_BYTES: u64 = 2048;

fn check(run: &Run<'_>) -> Verdict {
    let Some(all) = &run.facts.left_unread else {
        return Verdict::CannotTell(
            "whether it reads what it is sent: what was unread on its connections".to_owned(),
        );
    };
    let mut left: Vec<&LeftUnread> = all.iter().filter(|one| one.most >= MIN_BYTES).collect();
    // A process that does nothing at all has other troubles.
    left.retain(|one| !is_kept(run, one.pid));
    left.sort_by_key(|one| std::cmp::Reverse(one.connections));
    if left.is_empty() {
        let most = all.iter().map(|one| one.most).max().unwrap_or(0);
        return Verdict::Clear(format!(
            "{} stood unread on a connection that it has made from the start of the observation to its end, at most",
            units::bytes(most)
        ));
    }
    Verdict::Fires(left.into_iter().map(|one| finding(run, one)).collect())
}

/// Whether the thread that would read is kept from it: the first one computes, is stopped, or stands in a call of its own.
fn is_kept(run: &Run<'_>, pid: u32) -> bool {
    let of_first = |wait: &&AttributedWait| (wait.asker.name.pid, wait.asker.name.tid) == (pid, pid);
    let waits = run.attributed.waits.iter().filter(of_first);
    let Some(main) = waits.max_by_key(|wait| wait.ns) else {
        return true;
    };
    main.cause.on_cpu()
        || matches!(
            main.cause,
            Cause::ProcessStopped | Cause::ProcessFrozen | Cause::SchedRunqueue
        )
}

/// Who waits in a process meanwhile.
struct Waiting {
    /// In words, and where.
    text: String,
    asker: Asker,
    /// Whether it is known to have waited for some time.
    stands: bool,
}

fn waiting(run: &Run<'_>, pid: u32) -> Option<Waiting> {
    let inside = |task: &&Task| {
        let waits = task.state == TaskState::Waiting && task.place.is_some();
        let inside = task.cause == Cause::LockFutex && (task.pool || task.runtime == TaskRuntime::Node);
        task.pid == pid && waits && inside
    };
    let all: Vec<&Task> = run.attributed.tasks.iter().filter(inside).collect();
    let standing: Vec<&Task> = all.iter().copied().filter(|task| task.stood > 0).collect();
    let stands = !standing.is_empty();
    let shown = if stands { standing } else { all };
    if let Some(first) = shown.first() {
        let many = say::several(shown.len() as u64, tasks::name(first));
        let wait = if shown.len() == 1 { "waits" } else { "wait" };
        let places = tasks::say_places(&tasks::places(&shown, tasks::place));
        let stood = shown.iter().map(|task| task.stood).max().unwrap_or_default();
        let text = match stands {
            true => format!("{many} {wait} in {places}, for at least {}", duration(stood)),
            // What V8 has moved meanwhile is taken for another one.
            false => format!("{many} waited in {places} as observation ended"),
        };
        let name = ThreadName {
            pid,
            tid: pid,
            process: first.process.clone(),
            thread: first.process.clone(),
        };
        let frame = first.place.as_ref().and_then(|frame| frame.symbol.clone());
        let asker = Asker {
            name,
            frame,
            ..Asker::default()
        };
        return Some(Waiting { text, asker, stands });
    }
    let stands = |wait: &&AttributedWait| {
        let place = chosen_frame(&wait.asker.stack);
        let inside = wait.cause == Cause::LockFutex && wait.holders.is_empty() && wait.open;
        wait.asker.name.pid == pid && inside && place.is_some_and(is_applications)
    };
    let longest = run
        .attributed
        .waits
        .iter()
        .filter(stands)
        .max_by_key(|wait| wait.ns)?;
    let place = chosen_frame(&longest.asker.stack)?;
    Some(Waiting {
        text: format!("a thread of it waits in {}", say::place(place)),
        asker: longest.asker.clone(),
        stands: true,
    })
}

/// How a program in this language gives an answer up, and what its setting for more connections is called.
fn by_language(language: Option<Language>) -> (&'static str, &'static str) {
    match language {
        Some(Language::JavaScript) => (": call res.resume() or res.destroy()", " (maxSockets)"),
        Some(Language::Python) => (
            ": read or close the response (with … as response)",
            " (pool_maxsize, limit)",
        ),
        Some(Language::Go) => (
            ": close the response's Body or the Rows on each path (defer … Close())",
            " (MaxConnsPerHost, SetMaxOpenConns)",
        ),
        Some(Language::Java) => (
            ": close the response or the result set (try-with-resources)",
            " (maximumPoolSize, maxTotal)",
        ),
        _ => ("", ""),
    }
}

fn finding(run: &Run<'_>, left: &LeftUnread) -> Finding {
    let who = say::name_or(&left.process, "a program");
    let connections = say::several(left.connections.into(), "connection");
    let address = left
        .server
        .map_or_else(|| "a server".to_owned(), |address| address.to_string());
    let server = match left.server_pid {
        Some(pid) => {
            let name = say::script(run, pid).unwrap_or(&left.server_process);
            format!("{} at {address}", live_sessions::process(name, pid))
        }
        None => address.clone(),
    };
    let waiting = waiting(run, left.pid);
    let clause = waiting
        .as_ref()
        .map_or_else(String::new, |one| format!("; meanwhile {}", one.text));
    let title = Title::from(format!(
        "{who} does not read the answers on {connections} to {server}, where up to {} stand unread",
        units::bytes(left.most)
    ))
    .with(clause);
    // Who passes an answer on to a client that does not read pauses it for that one.
    let passes_on = run
        .facts
        .unread_answers
        .iter()
        .flatten()
        .any(|one| one.pid == left.pid);
    let severity = match waiting.as_ref().is_some_and(|one| one.stands) && !passes_on {
        true => Severity::Warning,
        false => Severity::Note,
    };
    let stood = Evidence::new(
        format!(
            "at the start and at the end of the observation the same bytes were unread on {connections}, and none had been read meanwhile"
        ),
        "/proc/net/tcp",
    );
    let resource = Resource::named(ResourceKind::Socket, address);
    let unnamed = Asker {
        name: ThreadName {
            pid: left.pid,
            tid: left.pid,
            process: left.process.clone(),
            thread: left.process.clone(),
        },
        ..Asker::default()
    };
    let language = language::of(run, left.pid);
    let asker = waiting.map_or(unnamed, |one| one.asker);
    Finding::new(
        RULE.id.id(),
        severity,
        title,
        Cause::NetReceive,
        run.attributed.wall,
        stood,
    )
    .about(resource, asker)
    .confidence(Confidence::Strong)
    .remedy(Remedy::safe(format!(
        "read each answer to its end, or give its connection up{}, also on the path that needs only its head",
        by_language(language).0
    )))
    .remedy(Remedy::changing(
        format!("allow more connections{}", by_language(language).1),
        "it only takes longer until all are taken, where answers are left unread",
    ))
    .remedy(Remedy::pointless("a faster server: it has answered"))
}

#[cfg(test)]
mod tests {
    use super::by_language;
    use holdup_evidence::Language;

    #[test]
    fn advice_is_of_the_programs_own_language() {
        assert!(by_language(Some(Language::Go)).0.contains("Body"));
        assert!(by_language(Some(Language::Python)).1.contains("pool_maxsize"));
        assert!(by_language(Some(Language::JavaScript)).0.contains("resume"));
    }

    #[test]
    fn where_the_language_is_not_known_no_other_ones_calls_are_named() {
        for language in [None, Some(Language::Native), Some(Language::Perl)] {
            assert_eq!(by_language(language), ("", ""));
        }
    }
}
