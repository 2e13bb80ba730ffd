//! What does not belong into a file that is kept and sent around.
//!
//! In: a segment as it was observed. Out: the same with secrets masked ([`mask`], always), or with whatever tells of people and places taken
//! out too ([`redact`], when asked for). What a secret is, `holdup-secrets` knows.

use crate::Segment;
use holdup_model::report::{Report, SubjectKind};
use holdup_secrets::{MASKED, each_text, mask_value, mask_words};

/// Masks secrets wherever a text stands.
pub fn mask(segment: &mut Segment) {
    segment.head.command = mask_words(&segment.head.command);
    for jvm in &mut segment.facts.jvms {
        jvm.options = mask_words(&jvm.options);
    }
    mask_value(&mut segment.head);
    mask_value(&mut segment.attributed);
    mask_value(&mut segment.facts);
    mask_value(&mut segment.look);
}

/// Masks secrets, and takes out all arguments, what is called by a home directory, the paths of requests, and the host's name.
pub fn redact(segment: &mut Segment) {
    mask(segment);
    let host = segment.head.host.take();
    let head = &mut segment.head;
    head.redacted = true;
    without_arguments(&mut head.command, head.kind);
    for jvm in &mut segment.facts.jvms {
        jvm.options.clear();
        jvm.main = None;
    }
    let slow = segment
        .attributed
        .requests
        .as_mut()
        .and_then(|of| of.slow.as_mut());
    if let Some(line) = slow.and_then(|slow| slow.line.as_mut()) {
        without_path(line);
    }
    let clean = cleaner(host);
    each_text(&mut segment.head, &clean);
    each_text(&mut segment.attributed, &clean);
    each_text(&mut segment.facts, &clean);
    each_text(&mut segment.look, &clean);
}

/// The same of a report, for whoever sends one to somebody else.
pub fn redact_report(report: &mut Report) {
    report.subject.command = mask_words(&report.subject.command);
    without_arguments(&mut report.subject.command, report.subject.kind);
    let host = report
        .machine
        .as_mut()
        .map(|machine| std::mem::take(&mut machine.host));
    for jvm in &mut report.jvms {
        jvm.options.clear();
        jvm.main = None;
    }
    let slow = report.requests.as_mut().and_then(|of| of.slow.as_mut());
    if let Some(line) = slow.and_then(|slow| slow.request.as_mut()) {
        without_path(line);
    }
    mask_value(report);
    each_text(report, &cleaner(host));
}

/// Of a command that was run only its name stays.
fn without_arguments(command: &mut Vec<String>, kind: SubjectKind) {
    let left = command.len().saturating_sub(1);
    if left > 0 && kind == SubjectKind::Run {
        command.truncate(1);
        command.push(format!("[{left} arguments taken out]"));
    }
}

/// Of a request's line only its method stays.
fn without_path(line: &mut String) {
    let method = line.split_whitespace().next().unwrap_or_default();
    *line = format!("{method} {MASKED}");
}

/// Takes out what is called by a home directory, and the host's name.
fn cleaner(host: Option<String>) -> impl Fn(&str) -> String {
    let host = host.filter(|host| host.len() >= SHORTEST_HOST);
    move |text| without_host(&without_home(text), host.as_deref())
}

/// A shorter host name is a part of too many words.
const SHORTEST_HOST: usize = 3;

/// Where homes are.
const HOMES: &[&str] = &["/home/", "/Users/", "/root/"];

/// `/home/al/mail/x` becomes `/home/***`.
fn without_home(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut left = text;
    while let Some((at, home)) = HOMES
        .iter()
        .filter_map(|home| Some((left.find(home)?, *home)))
        .min()
    {
        let (before, after) = left.split_at(at + home.len());
        clean.push_str(before);
        clean.push_str(MASKED);
        let ends = |character: char| character.is_whitespace() || "\"',;:()[]{}".contains(character);
        left = after.find(ends).map_or("", |end| &after[end..]);
    }
    clean + left
}

fn without_host(text: &str, host: Option<&str>) -> String {
    match host {
        Some(host) if text.contains(host) => text.replace(host, MASKED),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_home;

    #[test]
    fn a_home_is_told_without_whose() {
        assert_eq!(
            without_home("reads /home/al/mail, and /root/x (y)"),
            "reads /home/***, and /root/*** (y)"
        );
        assert_eq!(without_home("/var/lib/x"), "/var/lib/x");
    }
}
