//! What stands around the verdict: the header, what lives on, what was lost or not seen, the tables of `-v`,
//! and the accounting line at the end.

use super::entry::beside_the_phrase;
use super::picture::{Entry, picture, too_little_seen, unresolved};
use super::who::thread;
use crate::budget;
use crate::headline::Headline;
use crate::sheet::{Paint, Piece, Row, Sheet};
use crate::unanswered;
use crate::units::{counted, duration, duration_beside, percent};
use holdup_evidence::{Cause, Ns};
use holdup_model::finding::Severity;
use holdup_model::report::{CauseShare, Report, Thread, Wait};

/// Column at which the words after a label begin.
const WORDS: usize = 16;

/// Column at which the command begins in the header, and blanks before each figure after it.
pub(super) const HEADER: usize = 10;
const FIGURES: usize = 3;

/// Processes named that live on; more are counted.
const LIVING_NAMED: usize = 5;

/// One part in this many unknown is coloured: what is less hardly changes the picture, as no entry is smaller.
const DOUBTFUL: u64 = 20;

/// The rule that says who waits behind whom.
const OTHERS_WAIT: &str = "others-wait-behind";

/// What stands at the edge of the first line.
const TOOL: &str = " holdup";

/// The first line: the one sentence that a colleague would say. Of a sentence with several clauses each further one has a line of its own: the
/// first line is for who waits for what.
pub(super) fn headline(sheet: &mut Sheet, headline: &Headline) {
    let paint = match headline.severity {
        None | Some(Severity::Note) => Paint::Bold,
        Some(Severity::Warning) => Paint::Yellow,
        Some(Severity::Critical) => Paint::Red,
    };
    let remark = headline.remark.as_ref().map(|remark| format!("{remark}:"));
    let mut body: Vec<Piece> = remark.iter().map(|remark| sheet.words(remark)).collect();
    let (first, further) = match &headline.parts {
        Some(parts) => (&parts.main, parts.further.as_slice()),
        None => (&headline.sentence, [].as_slice()),
    };
    body.push(sheet.words(first).paint(paint));
    if let Some(size) = &headline.size {
        body.push(sheet.words(&format!("({size})")));
    }
    sheet.led(vec![sheet.name(TOOL).paint(Paint::Dim)], HEADER, body);
    for clause in further {
        sheet.line(HEADER, vec![sheet.words(clause)]);
    }
}

/// Words of a command, or names of what was observed, that a header has.
const COMMAND_WORDS: usize = 40;

/// ` holdup   sshd -t   1.04 s elapsed   0.02 s on a CPU`; without the tool's name where a headline is before it.
pub(super) fn header(sheet: &mut Sheet, report: &Report, below_headline: bool) {
    let elapsed = report.subject.wall_ns;
    let on_cpu: Ns = report.threads.iter().map(|thread| on_cpu(&thread.causes)).sum();
    let all = &report.subject.command;
    let shown = all.iter().take(COMMAND_WORDS);
    let mut command = if report.of_threads() {
        shown.map(String::as_str).collect::<Vec<_>>().join(", ")
    } else {
        shown.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    };
    if all.len() > COMMAND_WORDS {
        command.push_str(&format!(" … {} more", all.len() - COMMAND_WORDS));
    }
    let command = sheet.name(&command).paint(Paint::Bold);
    let figure = |text: &str| sheet.name(text).after(FIGURES);
    let looked = if report.of_threads() {
        "observed"
    } else {
        "elapsed"
    };
    let mut figures = vec![
        figure(&format!("{} {looked}", duration(elapsed))).paint(Paint::Bold),
        figure(&format!("{} on a CPU", duration_beside(on_cpu, elapsed))),
    ];
    if report.of_threads() {
        let threads: u64 = report
            .threads
            .iter()
            .map(|thread| u64::from(thread.threads))
            .sum();
        figures.insert(1, figure(&counted(threads, "thread", "threads")));
    }
    if let Some(status) = report.subject.exit.filter(|status| *status != 0) {
        figures.push(figure(&format!("exit {status}")).paint(Paint::Yellow));
    }
    let lead = match below_headline {
        true => vec![],
        false => vec![sheet.name(TOOL).paint(Paint::Dim)],
    };
    let (indent, columns) = (HEADER, sheet.columns());
    let width: usize = figures.iter().map(|figure| FIGURES + figure.width()).sum();
    // The figures stay together: beside the command if it leaves room for them all, else below it.
    let (first, second) = if indent + command.width() + width <= columns {
        (std::iter::once(command).chain(figures).collect(), vec![])
    } else {
        (vec![command], figures)
    };
    for (lead, body) in [(lead, first), (vec![], second)] {
        if !body.is_empty() {
            sheet.led(lead, indent, body);
        }
    }
}

/// An argument so that its ends can be seen.
pub(crate) fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains(char::is_whitespace) {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}

/// That too little was seen, in a sentence.
pub(crate) fn no_verdict_words(report: &Report) -> String {
    format!(
        "No verdict: the cause of {} of the elapsed time is unknown.",
        percent(unresolved(report), report.whole_ns())
    )
}

/// Says that too little was seen, where that is so: before anything else is said.
pub(super) fn no_verdict(sheet: &mut Sheet, report: &Report) {
    statement(sheet, &no_verdict_words(report), Paint::Red);
    beside_no_verdict(sheet);
}

/// What the entries are worth when too little was seen.
pub(super) fn beside_no_verdict(sheet: &mut Sheet) {
    statement(
        sheet,
        "The entries below are what was observed. The rest may have other causes.",
        Paint::Plain,
    );
}

/// Elapsed time that people feel as "at once": a tenth of a second, from studies of response times.
const AT_ONCE: Ns = 100_000_000;

/// Lines below the header: these, and how many of `all` there are more.
pub(super) fn lines(
    sheet: &mut Sheet,
    first: impl ExactSizeIterator<Item = String>,
    all: usize,
    more: impl Fn(u64) -> String,
) {
    let left = all.saturating_sub(first.len());
    let left = u64::try_from(left).unwrap_or(u64::MAX);
    let last = (left > 0).then(|| more(left));
    for words in first.chain(last) {
        let body = vec![sheet.words(&words)];
        sheet.line(HEADER, body);
    }
}

/// Whether nothing held it up. Either it was over at once, and no rule has more than a note to say; or no
/// rule found anything, it was on a CPU or waiting for work for half of the time or more, and no thread stood in another wait
/// for all of it; and no request has been unanswered for long. Else it waited, even if no rule
/// knows what to say of it.
pub(crate) fn healthy(report: &Report) -> bool {
    let elapsed = report.subject.wall_ns;
    let only_notes = report
        .findings
        .iter()
        .all(|finding| finding.severity == Severity::Note);
    let at_once = elapsed <= AT_ONCE && only_notes && !report.of_threads();
    let ran =
        report.findings.is_empty() && !stands(report) && at_work(report) >= report.whole_ns().div_ceil(2);
    let machine = of_machine(report) && only_notes && !much_unknown(report);
    !too_little_seen(report) && unanswered::words(report).is_none() && (at_once || ran || machine)
}

/// Whether it tells of all that ran on a machine.
pub(crate) fn of_machine(report: &Report) -> bool {
    report
        .recording
        .as_ref()
        .is_some_and(|recording| recording.machine)
}

/// Whether too much is unknown for any verdict. Of a machine a root says who waited behind what, and for how long, by their own waits,
/// whatever the unknown time of others was.
pub(crate) fn has_no_verdict(report: &Report) -> bool {
    let first = report.findings.first();
    let root = first.is_some_and(|first| of_machine(report) && first.severity != Severity::Note);
    too_little_seen(report) && !root
}

/// Whether no time of any thread was observed: a recorder's segment that could not be written looks so.
fn saw_nothing(report: &Report) -> bool {
    report.coverage.observed_ns == Some(0)
}

/// Whether so much is unknown that nothing can be said to be well.
fn much_unknown(report: &Report) -> bool {
    saw_nothing(report)
        || report.coverage.unknown_ns.unwrap_or(0).saturating_mul(DOUBTFUL)
            > report.coverage.observed_ns.unwrap_or(0)
}

/// Whether no finding stands for what is to be said first: then it is said that there is none, or that this cannot be determined.
pub(crate) fn says_nothing_found(report: &Report) -> bool {
    let only_notes = report
        .findings
        .iter()
        .all(|finding| finding.severity == Severity::Note);
    let first = report.findings.first();
    // Who waits for whom is to be said first even where it is not known why.
    let behind = first.is_some_and(|first| first.rule == OTHERS_WAIT && of_machine(report));
    let nothing = healthy(report) || (of_machine(report) && only_notes);
    report.findings.is_empty() || (nothing && !behind)
}

/// Whether, of processes that were watched, a thread's whole time was a wait for something else than work: whether anybody lacks what it
/// would do is not known, but that nothing holds it up is not true of that one.
fn stands(report: &Report) -> bool {
    let whole = report.subject.wall_ns / 10 * 9;
    let waits = |cause: Cause| !cause.on_cpu() && !matches!(cause, Cause::Idle | Cause::SchedRunqueue);
    report.of_threads()
        && whole > 0
        && report
            .waits
            .iter()
            .any(|wait| waits(wait.cause) && wait.open && wait.ns >= whole)
}

/// Time in which nothing held it up: on a CPU, or waiting for work.
fn at_work(report: &Report) -> Ns {
    let idle = report.causes.iter().filter(|share| share.cause == Cause::Idle);
    on_cpu(&report.causes) + idle.map(|share| share.ns).sum::<Ns>()
}

/// Time in which it waited for work.
fn waiting_for_work(report: &Report) -> Ns {
    at_work(report) - on_cpu(&report.causes)
}

/// Time on a CPU.
pub(crate) fn on_cpu(causes: &[CauseShare]) -> Ns {
    causes
        .iter()
        .filter(|share| share.cause.on_cpu())
        .map(|share| share.ns)
        .sum()
}

/// What is said when no rule found anything, or nothing that matters.
pub(super) fn nothing_found(sheet: &mut Sheet, report: &Report) {
    statement(sheet, &nothing_found_words(report), Paint::Bold);
    beside_nothing_found(sheet, report);
}

/// Whether a request from before may be unanswered: nobody looked for those.
pub(crate) fn doubts_earlier(report: &Report) -> bool {
    let requests = report.requests.as_ref();
    let told = requests.is_some_and(|requests| requests.earlier_told);
    report.of_threads() && waiting_for_work(report) > 0 && !told
}

/// What could not be determined when no rule found anything.
pub(super) fn beside_nothing_found(sheet: &mut Sheet, report: &Report) {
    if doubts_earlier(report) {
        let words =
            "A request that was read before observation began and is still unanswered looks the same.";
        statement(sheet, words, Paint::Dim);
    }
    let open = report.cannot_tell.len() as u64;
    if open > 0 && !sheet.style().quiet {
        let words = format!(
            "{} cannot tell. -v lists what is missing.",
            counted(open, "rule", "rules")
        );
        statement(sheet, &words, Paint::Dim);
    }
}

/// The same, in a sentence.
pub(crate) fn nothing_found_words(report: &Report) -> String {
    let elapsed = report.subject.wall_ns;
    let running = on_cpu(&report.causes);
    let whole = report.whole_ns();
    let idle = waiting_for_work(report);
    let unknown = report.coverage.unknown_ns.unwrap_or(0);
    if of_machine(report) && saw_nothing(report) {
        "Nothing was observed, so that nothing is known of that time. What is missing is listed below."
            .to_owned()
    } else if let Some(words) = unanswered::words(report) {
        words
    } else if of_machine(report) && much_unknown(report) {
        format!(
            "No hold-up found, and none is ruled out: the cause of {} of the threads' time is unknown.",
            percent(unknown, report.coverage.observed_ns.unwrap_or(0))
        )
    } else if of_machine(report) && healthy(report) {
        // Not that nothing held anybody up: many short waits, and what no observed thread ends, are no ground for that.
        "No thread waited behind another one for a second. Shorter waits, and waits that no observed thread ends, are not included."
            .to_owned()
    } else if healthy(report) && !report.findings.is_empty() {
        format!(
            "Finished in {}. Too short for the rest to matter.",
            duration(elapsed)
        )
    } else if healthy(report) {
        let all_seen = report.coverage.lost.is_empty() && report.coverage.not_measured.is_empty();
        let scope = if all_seen { "" } else { " in what was observed" };
        let because = if elapsed <= AT_ONCE {
            format!("Finished in {}.", duration(elapsed))
        } else if idle == whole {
            "All threads were idle, waiting for work.".to_owned()
        } else if idle > 0 {
            format!(
                "Threads were idle for {} of their time, waiting for work, and ran for {}.",
                percent(idle, whole),
                percent(running, whole)
            )
        } else {
            format!("It ran for {} of the time.", percent(running, whole))
        };
        format!(
            "No hold-up found{scope}. {because}{}",
            unanswered::untaken(report)
        )
    } else {
        format!(
            "It waited for {} of the time{}. No rule reports a problem.",
            percent(whole.saturating_sub(running + idle), whole),
            mostly_for(report)
        )
    }
}

/// The same in a word or two, and how a page colours it.
pub(crate) fn nothing_found_mood(report: &Report) -> (&'static str, &'static str) {
    match (of_machine(report), healthy(report)) {
        (true, true) => ("good", "No wait of a second"),
        (true, false) => ("note", "Not known"),
        (false, true) => ("good", "No hold-up found"),
        (false, false) => ("note", "No rule reports a problem"),
    }
}

/// For what it waited longest: `, mostly waiting for a page of a mapped file: /usr/bin/cc1`.
fn mostly_for(report: &Report) -> String {
    let picture = picture(report, false);
    let waits = |entry: &&Entry| !entry.cause.on_cpu() && entry.cause != Cause::Idle;
    let Some(longest) = picture.tiles.iter().find(waits) else {
        return String::new();
    };
    let name = longest.largest().filter(|_| !longest.several_places);
    let name = name.and_then(beside_the_phrase);
    let name = name.map_or_else(String::new, |name| format!(": {name}"));
    format!(", mostly {}{name}", longest.cause.phrase())
}

fn statement(sheet: &mut Sheet, words: &str, paint: Paint) {
    let body = vec![sheet.words(words).paint(paint)];
    sheet.line(2, body);
}

/// Descendants that were alive when CMD had ended, by process.
pub(super) fn living(sheet: &mut Sheet, report: &Report) {
    // What ran before is expected to.
    if report.of_threads() {
        return;
    }
    let mut processes: Vec<&Thread> = Vec::new();
    let mut open: Vec<&Thread> = report.threads.iter().filter(|thread| thread.open).collect();
    open.sort_by_key(|thread| (thread.pid, thread.pid != thread.tid, thread.tid));
    for thread in open {
        if !processes
            .iter()
            .any(|known| known.pid == thread.pid && known.process == thread.process)
        {
            processes.push(thread);
        }
    }
    for (at, process) in processes.iter().take(LIVING_NAMED).enumerate() {
        let who = thread(
            sheet,
            report,
            (process.pid, process.pid),
            (&process.process, ""),
            None,
        );
        let mut body = vec![sheet.words(&format!("{who},")).paint(Paint::Bold)];
        let of_it =
            |wait: &&Wait| wait.open && (wait.asker.pid, wait.asker.tid) == (process.pid, process.tid);
        let last = report.waits.iter().filter(of_it).max_by_key(|wait| wait.max_ns);
        match last {
            Some(wait) => {
                let phrase = wait.cause.phrase();
                body.push(sheet.words(&format!("{phrase} for ≥ {}", duration(wait.max_ns))));
            }
            None => {
                let known = process.causes.iter().find(|share| share.open);
                let phrase = known.map_or("busy", |share| share.cause.phrase());
                body.push(sheet.words(phrase));
            }
        }
        labelled(sheet, if at == 0 { "still running" } else { "" }, body);
    }
    if processes.len() > LIVING_NAMED {
        let more = counted(
            (processes.len() - LIVING_NAMED) as u64,
            "more process",
            "more processes",
        );
        labelled(sheet, "", vec![sheet.words(&format!("and {more}"))]);
    }
}

/// Losses and what could not be seen: always said, whatever else is left out.
pub(crate) fn gaps(sheet: &mut Sheet, report: &Report) {
    for (at, lost) in report.coverage.lost.iter().enumerate() {
        let mut words = format!("{}: {}", lost.what, lost.count);
        if lost.ns > 0 {
            words.push_str(&format!(", {} of thread time", duration(lost.ns)));
        }
        let body = vec![sheet.words(&words).paint(Paint::Yellow)];
        labelled(sheet, if at == 0 { "dropped" } else { "" }, body);
    }
    for (at, gap) in report.coverage.not_measured.iter().enumerate() {
        let mut body = vec![sheet.words(&format!("{}: {}", gap.what, gap.why))];
        if !gap.fix.is_empty() {
            body.push(sheet.words(&format!("→ {}", gap.fix)).after(2));
        }
        labelled(sheet, if at == 0 { "not observed" } else { "" }, body);
    }
}

/// Each thread's own time in a line: ids, life, share on a CPU, name, and where most of the rest went.
pub(super) fn threads(sheet: &mut Sheet, report: &Report) {
    heading(sheet, "Time of each thread");
    let lead = format!("{:>8} {:>8} {:>9} {:>7}", "pid", "tid", "lifetime", "on CPU");
    table_row(sheet, &lead, "name", "mostly", Paint::Dim);
    for thread in &report.threads {
        let on_cpu = on_cpu(&thread.causes);
        let (pid, tid) = (id(thread.pid), id(thread.tid));
        let lived = duration(thread.wall_ns);
        let lead = format!(
            "{pid:>8} {tid:>8} {lived:>9} {:>7}",
            percent(on_cpu, thread.wall_ns)
        );
        let mut name = thread.process.clone();
        if thread.tid != thread.pid && thread.name != thread.process {
            name = format!("{name}: {}", thread.name);
        }
        if thread.threads > 1 {
            name = format!("{name}, {} threads", thread.threads);
        }
        let most = thread
            .causes
            .first()
            .map_or(String::new(), |share| mostly(share, thread.wall_ns));
        table_row(sheet, &lead, &name, &most, Paint::Plain);
    }
}

/// An id; 0 stands for several.
fn id(id: u32) -> String {
    if id == 0 { "-".to_owned() } else { id.to_string() }
}

fn mostly(share: &CauseShare, wall: Ns) -> String {
    format!("{} {:>7}", share.cause, percent(share.ns, wall))
}

fn table_row(sheet: &mut Sheet, lead: &str, name: &str, edge: &str, paint: Paint) {
    let row = Row {
        lead: vec![sheet.name(lead).paint(paint)],
        indent: lead.len() + 2,
        hang: Some(4),
        body: vec![sheet.name(name).paint(paint)],
        edge: Some(sheet.name(edge).paint(Paint::Dim)),
    };
    sheet.row(row);
}

/// Rules that are clear and rules that could not tell.
pub(super) fn other_rules(sheet: &mut Sheet, report: &Report) {
    if !report.ruled_out.is_empty() {
        heading(sheet, "Ruled out");
        for rule in &report.ruled_out {
            rule_row(sheet, &rule.rule, &rule.why);
        }
    }
    if !report.cannot_tell.is_empty() {
        heading(sheet, "Cannot tell");
        for rule in &report.cannot_tell {
            rule_row(sheet, &rule.rule, &rule.missing);
        }
    }
}

fn rule_row(sheet: &mut Sheet, rule: &str, why: &str) {
    let lead = vec![sheet.name(&format!("    {rule}")).paint(Paint::Dim)];
    let body = vec![sheet.words(why).after(2)];
    sheet.row(Row {
        lead,
        indent: 30,
        hang: Some(30),
        body,
        ..Row::default()
    });
}

fn heading(sheet: &mut Sheet, words: &str) {
    sheet.blank();
    statement(sheet, words, Paint::Bold);
}

/// `accounted 100.0 %   unknown 0.0 %   dropped 0   overhead 0.03 s CPU     holdup explain …`.
pub(super) fn accounting(sheet: &mut Sheet, report: &Report, explain: Option<&str>) {
    let coverage = &report.coverage;
    let mut body: Vec<Piece> = Vec::new();
    if let Some(observed) = coverage.observed_ns {
        let accounted = percent(coverage.attributed_ns.unwrap_or(0), observed);
        let unknown = coverage.unknown_ns.unwrap_or(0);
        body.push(sheet.name(&format!("accounted {accounted}")));
        let doubt = if unknown > observed / DOUBTFUL {
            Paint::Yellow
        } else {
            Paint::Plain
        };
        body.push(
            sheet
                .name(&format!("unknown {}", percent(unknown, observed)))
                .paint(doubt),
        );
    }
    let lost: u64 = coverage.lost.iter().map(|lost| lost.count).sum();
    let loss = if lost > 0 { Paint::Yellow } else { Paint::Plain };
    body.push(sheet.name(&format!("dropped {lost}")).paint(loss));
    let own = duration_beside(coverage.own_cost_ns, report.subject.wall_ns);
    body.push(sheet.name(&format!("overhead {own} CPU")));
    let budget = coverage.budget.as_ref().and_then(budget::words);
    body.extend(budget.map(|words| sheet.words(&words)));
    let mut body: Vec<Piece> = body.into_iter().map(|piece| piece.after(3)).collect();
    if let Some(id) = explain {
        body.push(
            sheet
                .name(&format!("holdup explain {id}"))
                .after(5)
                .paint(Paint::Dim),
        );
    }
    sheet.line(2, body);
}

/// The page to read next: that of the first finding, else that of the largest cause.
pub(super) fn page_to_read(report: &Report) -> Option<&str> {
    let seen = !too_little_seen(report);
    let rule = report
        .findings
        .first()
        .filter(|_| seen)
        .map(|finding| finding.rule.as_str());
    rule.or_else(|| {
        let largest: Option<Cause> = report.causes.first().map(|share| share.cause);
        largest.map(Cause::id)
    })
}

fn labelled(sheet: &mut Sheet, label: &str, body: Vec<Piece>) {
    let lead = sheet.name(&format!("  {label}")).paint(Paint::Dim);
    sheet.led(vec![lead], WORDS, body);
}
