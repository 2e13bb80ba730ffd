//! One entry of where the time went: the share, the plain words, the call, who asked, who is in the way.
//!
//! In: an [`Entry`]. Out: rows on the sheet. Stacks and further numbers on `-v`.

use super::picture::{Entry, LEAST_PER_MILLE};
use super::way::in_the_way;
use super::who::members;
use crate::sheet::{Paint, Piece, Row, Sheet};
use crate::units::{counted, duration, duration_beside, percent, seconds, to_milliseconds};
use holdup_evidence::{Cause, Language, Ns};
use holdup_model::attributed::{Common, Disk, JudgedBy};
use holdup_model::attributed::{How, Resource, ResourceKind};
use holdup_model::report::{Report, StackFrame, Wait};

/// Column at which the words of an entry begin: the share and the time stand before it.
const WORDS: usize = 20;

/// The same for an entry's further lines in a terminal with fewer columns than [`ROOMY`].
const WORDS_NARROW: usize = 4;

/// Columns from which lines have room for [`WORDS`] blanks in front.
const ROOMY: usize = 72;

/// Columns that the share ends at, and those that the time takes after it.
const SHARE: usize = 8;
const TIME: usize = 8;

/// Blanks before the name and the id in an entry's first line.
const NAME_GAP: usize = 2;

/// Columns of the label of an entry's further lines.
const LABEL: usize = 10;

/// Callers shown after the asker: enough to see which part of the program it is.
const CALLERS: usize = 3;

/// Names shown where many share one entry.
pub(super) const NAMES: usize = 3;

/// How much is reported of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Its first line.
    Line,
    /// What a person needs to act.
    Full,
    /// Stacks and all numbers too.
    Stacks,
}

/// Writes an entry. `elsewhere` is for waits that passed the time on: they always say whose they are.
pub(crate) fn write(sheet: &mut Sheet, report: &Report, entry: &Entry, depth: Depth, elsewhere: bool) {
    let Some(wait) = entry.largest().filter(|_| depth != Depth::Line) else {
        first_line(sheet, report, entry, false);
        return;
    };
    let mut id = first_line(sheet, report, entry, !entry.several_places);
    if let Some(who) = members(sheet, report, entry, elsewhere) {
        labelled_beside(sheet, "in", vec![sheet.words(&who)], id.take());
    }
    if entry.several_places {
        mostly(sheet, report, entry);
    } else {
        on_what(sheet, entry, wait, id);
        asked_by(sheet, wait);
    }
    in_the_way(sheet, report, entry);
    if let Some(why) = wait.why_unknown.as_deref() {
        labelled(sheet, "because", vec![sheet.words(why)]);
    }
    if depth == Depth::Stacks {
        numbers(sheet, entry);
        stacks(sheet, wait);
    }
}

/// The line of everything that has no entry.
pub(super) fn write_rest(sheet: &mut Sheet, elapsed: Ns, rest: &[(Cause, Ns)]) {
    let ns: Ns = rest.iter().map(|(_, ns)| ns).sum();
    let Some((most, _)) = rest.first().filter(|_| ns > 0) else {
        return;
    };
    let large = |ns: Ns| u128::from(ns) * 1_000 >= u128::from(elapsed) * u128::from(LEAST_PER_MILLE);
    let by_cause: Vec<String> = rest
        .iter()
        .take_while(|(_, ns)| large(*ns))
        .take(NAMES)
        .map(|(cause, ns)| format!("{} {}", percent(*ns, elapsed), cause.phrase()))
        .collect();
    let words = match rest.len() {
        1 => format!("everything else, all of it {}", most.phrase()),
        _ if by_cause.is_empty() => format!("everything else, mostly {}", most.phrase()),
        _ => format!("everything else: {}", by_cause.join(", ")),
    };
    let share = percent(ns, elapsed);
    let lead = share_and_time(&share, "", (ns, ns), elapsed);
    let lead = vec![sheet.name(&lead).paint(Paint::Dim)];
    let body = vec![sheet.words(&words).paint(Paint::Dim)];
    row(sheet, lead, body, None);
}

/// Share, time, what for, on what; the cause's id at the edge. Where the words fill the line and `more` lines
/// follow, the id is handed back, for the edge of the next.
fn first_line(sheet: &mut Sheet, report: &Report, entry: &Entry, more: bool) -> Option<Piece> {
    let elapsed = report.whole_ns();
    let lead = vec![
        sheet
            .name(&share_and_time(
                &entry.share(elapsed),
                entry.qualified(),
                (entry.ns, entry.so_far()),
                elapsed,
            ))
            .paint(Paint::Bold),
    ];
    let mut body = vec![sheet.words(entry.cause.phrase())];
    let largest = entry.largest().filter(|_| !entry.several_places);
    if let Some(name) = largest.and_then(beside_the_phrase) {
        body.push(sheet.name(name).after(NAME_GAP).paint(Paint::Bold));
    }
    let id = sheet.name(entry.cause.id()).paint(Paint::Dim);
    let words = WORDS + body.iter().map(|piece| piece.width() + NAME_GAP).sum::<usize>() - NAME_GAP;
    let hands_on = more && (words + NAME_GAP + id.width() > sheet.columns()) && words <= sheet.columns();
    let (edge, id) = if hands_on {
        (None, Some(id))
    } else {
        (Some(id), None)
    };
    row(sheet, lead, body, edge);
    id
}

/// What the entry's first line names after the cause's phrase.
pub(crate) fn beside_the_phrase(wait: &Wait) -> Option<&str> {
    // What these causes wait for is in their phrase; a lock's address is for the line of the call.
    let found = match wait.cause {
        Cause::RandomUnseeded | Cause::TimerSleep | Cause::CpuUser => true,
        Cause::LockFutex => is_address(wait),
        _ => false,
    };
    telling(&wait.resource).filter(|_| !found)
}

/// Whether the resource's name is the call's and an address: `futex 0x7f00`.
fn is_address(wait: &Wait) -> bool {
    wait.call.as_deref() == Some("futex") && wait.resource.is_futex_alone()
}

/// The resource's name where it says more than the cause's phrase does.
fn telling(resource: &Resource) -> Option<&str> {
    match resource.common() {
        Some(Common::Timer | Common::Child | Common::Program) => None,
        _ => Some(resource.name.as_str()).filter(|name| !name.is_empty()),
    }
}

/// `  97.3 %   1.01 s`: a share, and how long it is, with what is to be said before that; `so_far` of what has begun before
/// observation.
fn share_and_time(share: &str, qualified: &str, (ns, so_far): (Ns, Ns), elapsed: Ns) -> String {
    let time = match so_far > ns {
        true => duration(so_far),
        false => duration_beside(ns, elapsed),
    };
    let time = format!("{qualified}{time}");
    // A time that is longer than its column keeps its distance.
    format!("{share:>SHARE$} {time:>TIME$}  ")
}

/// The call, what it was asked for and how often: `getrandom, 32 bytes`. `wait` is the largest of the entry;
/// `edge` is what the first line had no room for.
fn on_what(sheet: &mut Sheet, entry: &Entry, wait: &Wait, edge: Option<Piece>) {
    let (count, timed_out) = (entry.sum(|wait| wait.count), entry.sum(|wait| wait.timed_out));
    let mut parts: Vec<String> = Vec::new();
    match wait.call.as_deref() {
        // An address is for who looks into the process.
        Some(_) if is_address(wait) && sheet.style().verbose => parts.push(wait.resource.name.clone()),
        // Of running in the kernel the call is often all that is known, and the first line has it.
        Some(call) if beside_the_phrase(wait) != Some(call) => parts.push(call.to_owned()),
        _ => {}
    }
    parts.extend(wait.bytes.map(|bytes| counted(bytes, "byte", "bytes")));
    if wait.cause == Cause::TimerSleep {
        parts.extend(telling(&wait.resource).map(str::to_owned));
    }
    if !wait.cause.on_cpu() && count > 1 {
        parts.push(format!("{count} times"));
        // Medians of several threads can't be made into one, and two waits have none worth the name.
        if entry.members.len() == 1 && count > 2 {
            parts.push(format!("median {}", duration(wait.p50_ns)));
        }
        parts.push(format!("longest {}", duration(entry.longest().max_ns)));
    }
    if timed_out > 0 && wait.cause != Cause::TimerSleep {
        parts.push(match timed_out {
            1 if count == 1 => "timed out".to_owned(),
            many => format!("{many} timed out"),
        });
    }
    if entry.open() {
        parts.push("still waiting at the end".to_owned());
    }
    if entry.cause.on_cpu() && wait.how == How::Sampled && wait.error_ns > 0 {
        parts.push(format!("sampled, ± {}", duration(wait.error_ns)));
    }
    if wait.resource.kind == ResourceKind::File {
        // Which disk: what a person looks for next.
        let detail = &wait.resource.detail;
        // A number without a device behind it (an overlay, a tmpfs) says nothing to a person.
        let virtual_device = |disk: &&Disk| disk.number().is_some_and(|number| number.major == 0);
        let number = detail.device.as_ref().filter(|disk| !virtual_device(disk));
        let device = detail.device_name.clone().or(number.map(Disk::to_string));
        match (device.as_deref(), detail.mount.as_deref()) {
            (Some(device), Some(mount)) => parts.push(format!("on {device} ({mount})")),
            (Some(place), None) | (None, Some(place)) => parts.push(format!("on {place}")),
            (None, None) => {}
        }
    }
    let mut body = Vec::new();
    if entry.error > 0 {
        parts.push("an estimate".to_owned());
        // A number stays in the line of its sign.
        body.push(sheet.name(&format!("± {}", duration(entry.error))));
    }
    body.insert(0, sheet.words(&parts.join(", ")));
    if !parts.is_empty() || edge.is_some() {
        row(sheet, vec![], body, edge);
    }
}

/// `asked by  RAND_status  libcrypto.so.3  ←  sshd+0x2f31c  ←  __libc_start_main`; of a script `asked by  Shop.prices  prices.py:41`.
fn asked_by(sheet: &mut Sheet, wait: &Wait) {
    let Some(frame) = wait.asker.frame.as_deref() else {
        return;
    };
    // Code without a symbol is named by its module already.
    let within = |module: &&str| {
        let rest = frame.strip_prefix(*module);
        !rest.is_some_and(|rest| rest.starts_with("+0x"))
    };
    let module = wait.asker.module.as_deref().filter(within);
    let mut body = vec![sheet.name(frame).paint(Paint::Bold)];
    body.extend(module.map(|module| sheet.name(module).after(2)));
    body.extend(source_line(&wait.asker.stack, frame).map(|line| sheet.name(&line).after(2)));
    for name in callers(&wait.asker.stack, frame) {
        body.push(sheet.name(&format!("←  {name}")).after(2));
    }
    labelled(sheet, "asked by", body);
}

/// Whether frames of such code stand between native ones that say nothing of the program.
fn is_script(language: Language) -> bool {
    matches!(
        language,
        Language::Java
            | Language::Python
            | Language::JavaScript
            | Language::Ruby
            | Language::Php
            | Language::Perl
            | Language::Bash
            | Language::Go
    )
}

/// File and line of an asker, where its source is known.
fn source_line(stack: &[StackFrame], asker: &str) -> Option<String> {
    let mut frames = stack.iter();
    let frame = frames.find(|frame| frame.symbol.as_deref() == Some(asker))?;
    let file = frame.file.as_deref()?.rsplit('/').next()?;
    Some(match frame.line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    })
}

/// Who called the asker, nearest first: as many as tell something new.
fn callers(stack: &[StackFrame], asker: &str) -> Vec<String> {
    let is_asker = |frame: &StackFrame| {
        frame.symbol.as_deref() == Some(asker) || unnamed(frame).as_deref() == Some(asker)
    };
    let Some(at) = stack.iter().position(is_asker) else {
        return Vec::new();
    };
    // Between functions of a script are those of the interpreter.
    let script = is_script(stack[at].language);
    let outwards: Vec<&StackFrame> = stack[at..]
        .iter()
        .filter(|frame| !script || is_script(frame.language))
        .collect();
    let mut callers: Vec<String> = Vec::new();
    for pair in outwards.windows(2) {
        let [callee, caller] = pair else { break };
        // Recursion, and unnamed code that calls unnamed code of the same module, say nothing new.
        let again = (&callee.symbol, &callee.module) == (&caller.symbol, &caller.module);
        if !again && !runtime(caller) {
            callers.extend(caller.symbol.clone().or_else(|| unnamed(caller)));
        }
        let start = caller.symbol.as_deref().is_some_and(starts_thread);
        if start || callers.len() == CALLERS {
            break;
        }
    }
    callers
}

/// Whether it is a function that a thread begins with: what is above is the same in every program.
fn starts_thread(symbol: &str) -> bool {
    const STARTS: [&str; 4] = [
        "__libc_start_main",
        "__libc_start_call_main",
        "start_thread",
        "_start",
    ];
    STARTS.iter().any(|start| symbol.starts_with(start))
}

/// Whether a frame is the C library's or the loader's and has no name: it says nothing of the program.
fn runtime(frame: &StackFrame) -> bool {
    let module = frame.module.as_deref().unwrap_or_default();
    frame.symbol.is_none()
        && ["libc.so", "libc-", "libpthread", "ld-"]
            .iter()
            .any(|name| module.starts_with(name))
}

/// `sshd+0x2f31c`: code without a symbol.
fn unnamed(frame: &StackFrame) -> Option<String> {
    let module = frame.module.as_deref()?;
    Some(format!("{module}+{:#x}", frame.offset))
}

/// The places that share an entry, largest first.
fn mostly(sheet: &mut Sheet, report: &Report, entry: &Entry) {
    // Who queued for a CPU says little; who ran instead is reported.
    if entry.cause == Cause::SchedRunqueue {
        return;
    }
    let mut named = entry.by(|wait| place(entry.cause, wait));
    named.retain(|(name, _)| name.is_some());
    let mut body: Vec<Piece> = Vec::new();
    for (name, ns) in named.iter().take(NAMES) {
        body.push(
            sheet
                .name(name.as_deref().unwrap_or_default())
                .after(2)
                .paint(Paint::Bold),
        );
        body.push(figure_of(sheet, &percent(*ns, report.whole_ns())));
    }
    if named.len() > NAMES {
        body.push(sheet.words(&format!("and {} more", named.len() - NAMES)).after(2));
    }
    if entry.members.iter().any(|(wait, _)| wait.how == How::Sampled) {
        body.push(sheet.words("(sampled)").after(2).paint(Paint::Dim));
    }
    if !named.is_empty() {
        labelled(sheet, "mostly", body);
    }
}

/// A figure of what is before it, in the same line.
pub(super) fn figure_of(sheet: &Sheet, figure: &str) -> Piece {
    sheet.name(&format!(" {figure}")).after(0)
}

/// What tells the places of one cause apart: of running code the function, of waiting the resource.
fn place(cause: Cause, wait: &Wait) -> Option<String> {
    let function = wait
        .asker
        .frame
        .as_deref()
        .map(|frame| match wait.asker.module.as_deref() {
            Some(module) if module != wait.asker.process => format!("{frame} ({module})"),
            _ => frame.to_owned(),
        });
    let resource = telling(&wait.resource).map(str::to_owned);
    if cause == Cause::CpuUser {
        function.or(resource)
    } else {
        resource.or(function)
    }
}

/// What `-v` adds: all numbers, and everything known of the resource.
fn numbers(sheet: &mut Sheet, entry: &Entry) {
    let own = duration(entry.sum(|wait| wait.ns));
    let mut parts = vec![match entry.members.len() {
        1 => format!("{own} of this thread's time"),
        _ => format!("{own} of these threads' time"),
    }];
    let count = entry.sum(|wait| wait.count);
    let longest = entry.longest();
    if !entry.cause.on_cpu() && count > 1 {
        // Of one place it stands in the line of the call.
        if entry.several_places {
            parts.push(format!("{count} times"));
        }
        if entry.members.len() == 1 {
            parts.push(format!("99 % within {}", duration(longest.p99_ns)));
        }
    }
    if let Some(date) = &longest.max_started {
        let boot = longest.max_started_boot_ns;
        let boot = boot.map(|boot| format!(", {} after boot", seconds(boot)));
        let date = to_milliseconds(date);
        let boot = boot.unwrap_or_default();
        // Of a single wait the length has been reported.
        let which = match count {
            1 => String::new(),
            _ => format!("longest {} ", duration(longest.max_ns)),
        };
        parts.push(format!("{which}from {date}{boot}"));
    }
    labelled(sheet, "in total", vec![sheet.words(&parts.join(", "))]);
    judged_by(sheet, entry);
    if entry.several_places {
        return;
    }
    // The call stands in the line above.
    let details = longest.resource.detail.without_call().texts();
    for (at, (key, value)) in details.iter().enumerate() {
        let label = if at == 0 { "resource" } else { "" };
        let body = vec![sheet.words(key).paint(Paint::Dim), sheet.words(value).after(2)];
        labelled(sheet, label, body);
    }
}

/// Who judged the entry's waits and by what evidence, those of the most time first.
fn judged_by(sheet: &mut Sheet, entry: &Entry) {
    let mut judges: Vec<(JudgedBy, Ns)> = Vec::new();
    for (wait, ns) in &entry.members {
        let Some(by) = wait.judged_by else { continue };
        match judges.iter_mut().find(|known| known.0 == by) {
            Some(known) => known.1 = known.1.saturating_add(*ns),
            None => judges.push((by, *ns)),
        }
    }
    judges.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    for (at, (by, _)) in judges.iter().enumerate() {
        let label = if at == 0 { "judged by" } else { "" };
        let judge = sheet.words(by.judge.phrase());
        let why = sheet.words(by.reason.phrase()).paint(Paint::Dim).after(2);
        labelled(sheet, label, vec![judge, why]);
    }
}

/// User and kernel stack, one frame a line, innermost first.
fn stacks(sheet: &mut Sheet, wait: &Wait) {
    for (at, frame) in wait.asker.stack.iter().enumerate() {
        let name = match &frame.symbol {
            Some(symbol) => format!("{symbol}+{:#x}", frame.offset),
            None => unnamed(frame).unwrap_or_else(|| format!("[no name] {:#x}", frame.offset)),
        };
        let mut body = vec![sheet.name(&name)];
        if frame.symbol.is_some() {
            body.extend(
                frame
                    .module
                    .as_deref()
                    .map(|module| sheet.name(module).after(2).paint(Paint::Dim)),
            );
        }
        if let Some(file) = frame.file.as_deref() {
            let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
            body.push(sheet.name(&format!("{file}{line}")).after(2).paint(Paint::Dim));
        }
        if frame.inlined {
            body.push(sheet.words("inlined").after(2).paint(Paint::Dim));
        }
        labelled(sheet, if at == 0 { "user" } else { "" }, body);
    }
    for (at, frame) in wait.kernel_stack.iter().enumerate() {
        labelled(
            sheet,
            if at == 0 { "kernel" } else { "" },
            vec![sheet.name(frame)],
        );
    }
}

/// A row of an entry that begins with a word.
pub(super) fn labelled(sheet: &mut Sheet, label: &str, body: Vec<Piece>) {
    labelled_beside(sheet, label, body, None);
}

/// The same with something at the right edge.
fn labelled_beside(sheet: &mut Sheet, label: &str, body: Vec<Piece>, edge: Option<Piece>) {
    let words = words_column(sheet);
    let lead = sheet.name(&format!("{:words$}{label}", "")).paint(Paint::Dim);
    sheet.row(Row {
        lead: vec![lead],
        indent: words + LABEL,
        body,
        edge,
        ..Row::default()
    });
}

/// A row of an entry.
fn row(sheet: &mut Sheet, lead: Vec<Piece>, body: Vec<Piece>, edge: Option<Piece>) {
    let words = words_column(sheet);
    sheet.row(Row {
        indent: if lead.is_empty() { words } else { WORDS },
        lead,
        hang: Some(words),
        body,
        edge,
    });
}

fn words_column(sheet: &Sheet) -> usize {
    if sheet.columns() < ROOMY {
        WORDS_NARROW
    } else {
        WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::{callers, source_line};
    use holdup_evidence::Language;
    use holdup_model::report::StackFrame;

    #[test]
    fn a_function_of_python_is_shown_with_its_place_and_its_callers_in_python() {
        let frame = |symbol: &str, file: Option<&str>| StackFrame {
            symbol: Some(symbol.to_owned()),
            module: Some("python3.11".to_owned()),
            offset: 0,
            file: file.map(str::to_owned),
            line: file.map(|_| 41),
            language: if file.is_some() {
                Language::Python
            } else {
                Language::Native
            },
            inlined: false,
        };
        let stack = [
            frame("sock_recv", None),
            frame("Shop.prices", Some("/srv/shop/prices.py")),
            frame("_PyFunction_Vectorcall", None),
            frame("main", Some("/srv/shop/app.py")),
            frame("PyEval_EvalCode", None),
        ];
        assert_eq!(
            source_line(&stack, "Shop.prices").as_deref(),
            Some("prices.py:41")
        );
        assert_eq!(source_line(&stack, "sock_recv"), None);
        assert_eq!(callers(&stack, "Shop.prices"), ["main"]);
        assert_eq!(callers(&stack, "sock_recv")[0], "Shop.prices");
    }

    #[test]
    fn a_method_of_java_is_shown_with_its_place() {
        let frame = |symbol: &str, language, line| StackFrame {
            symbol: Some(symbol.to_owned()),
            module: None,
            offset: 0,
            file: Some("Feed.java".to_owned()),
            line,
            language,
            inlined: false,
        };
        let stack = [
            frame("ObjectMonitor::enter(JavaThread*)", Language::Native, None),
            frame("Feed.item", Language::Java, Some(16)),
            frame("Feed.main", Language::Java, Some(24)),
            frame("JavaCalls::call_helper(JavaValue*)", Language::Native, None),
        ];
        assert_eq!(source_line(&stack, "Feed.item").as_deref(), Some("Feed.java:16"));
        assert_eq!(callers(&stack, "Feed.item"), ["Feed.main"]);
    }
}
