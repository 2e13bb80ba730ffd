//! The one sentence that stands first: what a colleague would say who has read the whole report.
//!
//! In: a report of what was watched. Out: the first finding's title with its size; where there is none, that nothing was found, or that too
//! little was seen.

use crate::terminal::margins::{
    self, has_no_verdict, no_verdict_words, nothing_found_words, says_nothing_found,
};
use crate::units::{duration, percent};
use holdup_evidence::Ns;
use holdup_model::finding::{Confidence, Severity};
use holdup_model::report::{Finding, Report, Wait};
use std::collections::BTreeMap;

/// The sentence, and how grave it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Headline {
    /// The sentence, as the report has it: names in it are not made printable yet.
    pub(crate) sentence: String,
    /// Its main clause and the further ones, where it has several: for views that have a line for each.
    pub(crate) parts: Option<Parts>,
    /// How grave and how sure it is, where that is not the usual: `note`, `critical, suspected`. Colour is lost in a pipe and in a chat.
    pub(crate) remark: Option<String>,
    /// How much of the time it is about: `91.2 % of 3.20 s`.
    pub(crate) size: Option<String>,
    /// The finding's, or that of having no verdict; `None` where nothing was found.
    pub(crate) severity: Option<Severity>,
    /// Whether it is the first finding's title.
    pub(crate) is_first_finding: bool,
}

/// A sentence of several clauses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Who waits for what.
    pub(crate) main: String,
    /// Why, where it was asked for, who waits behind it.
    pub(crate) further: Vec<String>,
}

impl Headline {
    /// That of a finding, whose title has its size.
    pub(crate) fn of(finding: &Finding) -> Headline {
        Headline {
            sentence: finding.title.clone(),
            parts: finding.headline.clone().map(|main| Parts {
                main,
                further: finding.clauses.clone(),
            }),
            remark: remark(finding),
            size: None,
            severity: Some(finding.severity),
            is_first_finding: true,
        }
    }
}

/// What is to be known of a finding beside its words, if that is not the usual case: a warning that is strong or proved.
pub(crate) fn remark(finding: &Finding) -> Option<String> {
    let severity = match finding.severity {
        Severity::Note => Some("note"),
        Severity::Warning => None,
        Severity::Critical => Some("critical"),
    };
    let doubt = (finding.confidence == Confidence::Suspect).then_some("suspected");
    let remarks: Vec<&str> = severity.into_iter().chain(doubt).collect();
    (!remarks.is_empty()).then(|| remarks.join(", "))
}

/// A finding's title as one line: what is to be known of it first.
pub(crate) fn line(finding: &Finding) -> String {
    remarked(remark(finding).as_deref(), &finding.title)
}

fn remarked(remark: Option<&str>, sentence: &str) -> String {
    match remark {
        Some(remark) => format!("{remark}: {sentence}"),
        None => sentence.to_owned(),
    }
}

/// Whether too much of the time has no known cause for any verdict: findings are then not shown either.
#[must_use]
pub fn undecided(report: &Report) -> bool {
    has_no_verdict(report)
}

/// The headline in words: for who lists many reports.
#[must_use]
pub fn sentence(report: &Report) -> String {
    let Headline {
        sentence,
        remark,
        size,
        ..
    } = headline(report);
    let sentence = remarked(remark.as_deref(), &sentence);
    match size {
        Some(size) => format!("{sentence} ({size})"),
        None => sentence,
    }
}

/// The headline of a report of what was watched.
pub(crate) fn headline(report: &Report) -> Headline {
    let without_finding = |sentence: String, severity: Option<Severity>| Headline {
        sentence,
        parts: None,
        remark: None,
        size: None,
        severity,
        is_first_finding: false,
    };
    if has_no_verdict(report) {
        return without_finding(no_verdict_words(report), Some(Severity::Critical));
    }
    match report.findings.first() {
        Some(first) if !says_nothing_found(report) => Headline {
            size: size(report, first),
            ..Headline::of(first)
        },
        _ => without_finding(nothing_found_words(report), None),
    }
}

/// How much of the time a finding is about. Of one thread that is a share of the elapsed time; of several, how long each of them waited at most.
/// Where that is not known there is none.
fn size(report: &Report, finding: &Finding) -> Option<String> {
    let ns: Ns = finding.ns.filter(|ns| *ns > 0)?;
    let elapsed = report.subject.wall_ns;
    if let Some(so_far) = standing(report, finding) {
        return Some(format!("for at least {}", duration(so_far)));
    }
    // Who waited behind what on a machine is said with its time, and what tasks wait for is no time of threads.
    if margins::of_machine(report) {
        return None;
    }
    let alone = !report.of_threads()
        || report
            .threads
            .iter()
            .map(|one| u64::from(one.threads))
            .sum::<u64>()
            == 1;
    if alone && ns <= elapsed {
        return Some(format!("{} of {}", percent(ns, elapsed), duration(elapsed)));
    }
    let each = each(report, finding);
    let most = each
        .values()
        .max()
        .copied()
        .filter(|most| *most > 0)?
        .min(elapsed);
    Some(match each.len() {
        1 => format!("{} of {}", duration(most), duration(elapsed)),
        _ => format!("each up to {} of {}", duration(most), duration(elapsed)),
    })
}

/// The time of a finding's waits, by thread. Threads wait side by side, so that their sum is nothing that anybody feels.
fn each(report: &Report, finding: &Finding) -> BTreeMap<(u32, u32), Ns> {
    let mut each: BTreeMap<(u32, u32), Ns> = BTreeMap::new();
    let of_it = |wait: &&Wait| wait.cause == finding.cause && wait.resource == finding.resource;
    for wait in report.waits.iter().filter(of_it) {
        let ns = each.entry((wait.asker.pid, wait.asker.tid)).or_default();
        *ns = ns.saturating_add(wait.ns);
    }
    each
}

/// For how long threads have stood in the finding's wait, which is not over and may have begun before they were watched: the longest, if those
/// that have stood so since account for most of what was found. Threads side by side wait no longer than one of them does.
fn standing(report: &Report, finding: &Finding) -> Option<Ns> {
    let of_it = |wait: &&Wait| wait.cause == finding.cause && wait.resource == finding.resource;
    let waits = || report.waits.iter().filter(of_it);
    let whole = |wait: &&Wait| wait.max_ns >= report.subject.wall_ns / 10 * 9;
    let one = waits().count() == 1;
    let stood = || waits().filter(|wait| wait.open && (whole(wait) || (one && wait.count == 1)));
    let most = stood().map(|wait| wait.ns).sum::<Ns>().saturating_mul(2) >= finding.ns?;
    stood().map(|wait| wait.max_ns).max().filter(|_| most)
}

#[cfg(test)]
mod tests {
    use super::{Headline, headline, line, sentence};
    use crate::html::tests::report;
    use holdup_model::finding::{Confidence, Severity};

    #[test]
    fn it_is_the_first_finding_with_its_part_of_the_elapsed_time() {
        let report = report();
        let found = headline(&report);
        assert_eq!(found.sentence, report.findings[0].title);
        assert_eq!(found.severity, Some(report.findings[0].severity));
        assert!(found.is_first_finding);
        assert!(found.size.is_some_and(|size| size.ends_with("of 1.04 s")));
    }

    #[test]
    fn threads_side_by_side_have_no_share_of_the_time_in_which_they_were_watched() {
        let mut report = report();
        report.subject.kind = holdup_model::report::SubjectKind::Attach;
        let first = report.threads[0].clone();
        report.threads.push(first);
        let size = headline(&report).size.unwrap_or_default();
        assert!(size.ends_with(" of 1.04 s"), "{size}");
        assert!(!size.contains('%'), "{size}");
    }

    #[test]
    fn of_threads_side_by_side_the_one_that_waited_longest_is_the_size() {
        let mut report = report();
        report.subject.kind = holdup_model::report::SubjectKind::Attach;
        let first = report.threads[0].clone();
        report.threads.push(first);
        let finding = report.findings[0].clone();
        report
            .waits
            .retain(|wait| wait.cause == finding.cause && wait.resource == finding.resource);
        report.waits.truncate(1);
        report.waits[0].ns = 400_000_000;
        let mut other = report.waits[0].clone();
        other.asker.tid += 1;
        other.ns = 700_000_000;
        report.waits.push(other);
        report.findings[0].ns = Some(1_100_000_000);
        assert_eq!(
            headline(&report).size.as_deref(),
            Some("each up to 700 ms of 1.04 s")
        );
    }

    #[test]
    fn what_no_thread_waits_for_has_no_size() {
        let mut report = report();
        report.subject.kind = holdup_model::report::SubjectKind::Attach;
        let first = report.threads[0].clone();
        report.threads.push(first);
        report.waits.clear();
        assert_eq!(headline(&report).size, None);
    }

    #[test]
    fn a_line_says_first_how_sure_and_how_grave_it_is() {
        let mut report = report();
        let title = report.findings[0].title.clone();
        let of = |severity, confidence, report: &mut holdup_model::report::Report| {
            report.findings[0].severity = severity;
            report.findings[0].confidence = confidence;
            line(&report.findings[0])
        };
        assert_eq!(of(Severity::Warning, Confidence::Strong, &mut report), title);
        assert_eq!(
            of(Severity::Note, Confidence::Proved, &mut report),
            format!("note: {title}")
        );
        assert_eq!(
            of(Severity::Critical, Confidence::Suspect, &mut report),
            format!("critical, suspected: {title}")
        );
        assert!(sentence(&report).starts_with("critical, suspected: "));
    }

    #[test]
    fn of_threads_that_stand_together_the_longest_time_is_the_size() {
        let mut report = report();
        report.subject.kind = holdup_model::report::SubjectKind::Attach;
        let (cause, resource) = (report.findings[0].cause, report.findings[0].resource.clone());
        report
            .waits
            .retain(|wait| wait.cause == cause && wait.resource == resource);
        report.waits.truncate(1);
        let wait = &mut report.waits[0];
        (wait.open, wait.count, wait.ns, wait.max_ns) = (true, 3, 3_900_000_000, 2_000_000_000);
        report.findings[0].ns = Some(3_900_000_000);
        assert_eq!(headline(&report).size.as_deref(), Some("for at least 2.00 s"));
        report.waits[0].max_ns = 300_000_000;
        let size = headline(&report).size.unwrap_or_default();
        assert!(!size.contains("at least"), "not all of them stood so: {size}");
    }

    #[test]
    fn without_a_finding_it_says_what_was_found_and_for_what_it_waited_longest() {
        let mut report = report();
        report.findings.clear();
        let found = headline(&report);
        let Headline {
            sentence,
            parts: _,
            remark,
            size,
            severity,
            is_first_finding,
        } = found;
        assert_eq!(
            (remark, size, severity, is_first_finding),
            (None::<String>, None::<String>, None::<Severity>, false)
        );
        assert!(
            sentence.contains("mostly waiting for the kernel's random generator"),
            "{sentence}"
        );
    }
}
