//! Compares what holdup said with what the workload measured itself.
//!
//! In: what a scenario expects, and for the stall and its twin a report and a truth. Out: a row of the table.
//! Pure: no I/O, no clock.

use super::report::{Experiment, Finding, Host, NotMeasured, Report, Resource, Truth, Wait, of};
use super::scenario::{Expect, Measure, TOLERANCE};

/// What holdup's share of queueing may be above what the kernel counted, 0..1: the two clocks do not begin at the
/// same instant.
const CLOCKS_DIFFER: f64 = 0.03;

/// What says that the machine was busy with others; which of them, is a matter of how this run itself was started.
const CONTENDED: [&str; 3] = ["cpu-contended", "low-priority", "pinned-to-busy-cpu"];

/// Part of the time in which somebody waited for a CPU, by the kernel, from which a look at the whole machine may say so.
const BUSY: f64 = 0.1;

/// What says that a command waits for nothing; on a busy machine it waits for a CPU.
const NEVER_WAITS: &str = "cpu-bound";

/// Where CMD's time goes when the machine is busy with others; never what a scenario's verdict hangs on, but
/// in the one that is about it.
const QUEUEING: &str = "sched.runqueue";

/// The cause of threads that wait for work.
const IDLE: &str = "idle";

/// One observed run.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    /// What holdup said.
    pub(crate) report: Report,
    /// What the workload measured.
    pub(crate) truth: Truth,
    /// For how long some thread of this machine was ready and had no CPU, in nanoseconds, by the kernel's own
    /// account; 0 where it keeps none.
    pub(crate) machine_queued_ns: u64,
}

impl Observed {
    /// Whether holdup called the CPU contended, and the machine was: as much queueing as holdup speaks of was
    /// counted by the workload itself, or by the kernel for the whole machine (the workload counts its main
    /// thread alone).
    fn truly_contended(&self) -> bool {
        let machine = of(self.machine_queued_ns, self.report.subject.wall_ns);
        if self.report.of_machine() {
            return machine >= BUSY;
        }
        CONTENDED
            .iter()
            .filter_map(|rule| find(&self.report, rule)?.share)
            .reduce(f64::max)
            .is_some_and(|share| self.truly_queued(share))
    }

    /// Whether so much of the elapsed time was queueing, by the workload's own count or by that of the machine.
    fn truly_queued(&self, share: f64) -> bool {
        let machine = of(self.machine_queued_ns, self.report.subject.wall_ns);
        share <= self.truth.queued().max(machine) + CLOCKS_DIFFER
    }
}

/// One cell: what was seen, and whether it was right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    /// Whether it is right.
    pub(crate) right: bool,
    /// What was seen, for the person.
    pub(crate) seen: String,
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The cause.
    pub(crate) cause: Check,
    /// What was waited for.
    pub(crate) resource: Check,
    /// Who asked.
    pub(crate) asker: Check,
    /// Who was in the way; `None` where the scenario does not say.
    pub(crate) holder: Option<Check>,
    /// Whether nobody is named, and the report says so of that wait, and what would name them.
    pub(crate) says_unseen: bool,
    /// The share against the truth.
    pub(crate) share: Check,
    /// The finding.
    pub(crate) finding: Check,
    /// Findings that should not be there.
    pub(crate) alarms: Check,
    /// Percentage points between the two shares; `None` where there are none to compare.
    pub(crate) off: Option<f64>,
    /// Percentage points by which they may differ.
    pub(crate) tolerance: f64,
    /// Findings that may be there beside those expected.
    pub(crate) allowed: Vec<Allowed>,
    /// What stands first.
    pub(crate) headline: Headline,
}

/// Whether the sentence that a person reads first is the one expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Headline {
    /// It is, or no finding is expected.
    Expected,
    /// Another finding's stands there, of this rule.
    Other(String),
}

/// A finding that may be there beside those expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Its rule.
    pub(crate) rule: String,
    /// Whether it is there.
    pub(crate) found: bool,
}

impl Row {
    /// Whether everything is right.
    pub(crate) fn right(&self) -> bool {
        self.cells().iter().all(|(_, check)| check.right)
    }

    /// Whether it is right by a wide tolerance, by allowing a finding, or further down the page.
    pub(crate) fn loose(&self) -> bool {
        let wide = self.off.is_some_and(|off| off > TOLERANCE);
        let buried = self.headline != Headline::Expected;
        self.right() && (wide || buried || self.allowed.iter().any(|allowed| allowed.found))
    }

    /// The cells with their headings.
    pub(crate) fn cells(&self) -> Vec<(&'static str, &Check)> {
        let mut cells = vec![
            ("cause", &self.cause),
            ("resource", &self.resource),
            ("asker", &self.asker),
        ];
        cells.extend(self.holder.as_ref().map(|holder| ("holder", holder)));
        cells.extend([
            ("share", &self.share),
            ("finding", &self.finding),
            ("false alarms", &self.alarms),
        ]);
        cells
    }
}

/// Judges a stall and its twin.
pub(crate) fn judge(expect: &Expect, stall: &Observed, twin: &Observed) -> Row {
    let report = &stall.report;
    // A finding about where a followed wait's time went says nothing about that wait.
    let rules = expect.findings.first();
    let finding = rules.and_then(|rules| match report.of_machine() {
        true => ours(expect, stall).find(|finding| rules.split('|').any(|rule| rule == finding.rule)),
        false => find_any(report, rules),
    });
    let finding = finding.filter(|finding| report.of_machine() || expect.is_cause(&finding.cause));
    let wait = longest(report, expect, finding.map(|finding| &finding.resource));
    // The finding is what a person reads; without one, the longest wait is.
    let about = finding
        .map(|finding| (&finding.resource, &finding.asker))
        .or_else(|| wait.map(|wait| (&wait.resource, &wait.asker)));
    let (share, off) = share(expect, stall, finding);
    Row {
        cause: cause(expect, report, finding, wait.is_some()),
        resource: named(about.map(|(resource, _)| resource.words()), &expect.resource),
        asker: named(about.map(|(_, asker)| asker.words()), &expect.asker),
        holder: holder(expect, wait, &stall.truth),
        says_unseen: wait.is_some_and(|wait| says_unseen(report, wait)),
        share,
        finding: said(expect, stall, twin),
        alarms: alarms(expect, stall, twin),
        off,
        tolerance: expect.tolerance,
        allowed: allowed(expect, report),
        headline: headline(expect, stall),
    }
}

/// What stands first. A machine that was busy with others is no fault of holdup's, and nobody's surprise.
fn headline(expect: &Expect, stall: &Observed) -> Headline {
    let busy = stall.truly_contended();
    let of_machine = |finding: &&Finding| busy && CONTENDED.contains(&finding.rule.as_str());
    let first = stall.report.findings.iter().find(|finding| !of_machine(finding));
    let mut expected = expect.findings.iter().flat_map(|rules| rules.split('|'));
    match first {
        Some(first) if !expect.findings.is_empty() && !expected.any(|rule| rule == first.rule) => {
            Headline::Other(first.rule.clone())
        }
        _ => Headline::Expected,
    }
}

/// What may be there beside what is expected, and whether it is. What is expected as well needs no allowance.
fn allowed(expect: &Expect, report: &Report) -> Vec<Allowed> {
    let expected = |rule: &String| {
        let mut all = expect.findings.iter().flat_map(|rules| rules.split('|'));
        all.any(|one| one == rule)
    };
    let beside = expect.beside.iter().filter(|rule| !expected(rule));
    beside
        .map(|rule| Allowed {
            rule: rule.clone(),
            found: find(report, rule).is_some(),
        })
        .collect()
}

fn find<'a>(report: &'a Report, rule: &str) -> Option<&'a Finding> {
    report.findings.iter().find(|finding| finding.rule == rule)
}

/// Findings but those of a whole machine that say rightly that others had its CPUs.
fn ours<'a>(expect: &'a Expect, observed: &'a Observed) -> impl Iterator<Item = &'a Finding> {
    let busy = observed.report.of_machine() && !expect.is_cause(QUEUEING) && observed.truly_contended();
    let all = observed.report.findings.iter();
    all.filter(move |finding| !busy || finding.cause != QUEUEING)
}

/// The first that is there of `one|another`.
fn find_any<'a>(report: &'a Report, rules: &str) -> Option<&'a Finding> {
    rules.split('|').find_map(|rule| find(report, rule))
}

/// The longest wait with the cause; of those about the same thing as the finding, where there are any.
fn longest<'a>(report: &'a Report, expect: &Expect, about: Option<&Resource>) -> Option<&'a Wait> {
    report
        .waits
        .iter()
        .filter(|wait| expect.is_cause(&wait.cause))
        .max_by_key(|wait| (about == Some(&wait.resource), wait.ns))
}

/// `has_cause`: a wait or the finding itself has the cause. What adds up from many waits and from time on a CPU, as making
/// connections does, has no wait of its own.
fn cause(expect: &Expect, report: &Report, finding: Option<&Finding>, has_wait: bool) -> Check {
    let has_cause = has_wait || finding.is_some();
    if report.of_machine() {
        // Of a whole machine no cause has a length; what a finding is about has one.
        let seen = finding.map_or("nothing", |finding| finding.cause.as_str());
        return Check {
            right: expect.is_cause(seen),
            seen: seen.to_owned(),
        };
    }
    if expect.is_cause(IDLE) {
        // Who is idle has no path: what little there is beside that is not the trouble.
        return Check {
            right: has_cause,
            seen: IDLE.to_owned(),
        };
    }
    let wanted = expect.path_cause();
    let busy = match expect.measure {
        Measure::Requests => report.in_requests(),
        Measure::Path | Measure::Finding | Measure::Waits => report.busy(),
    };
    let main = busy
        .iter()
        .filter(|share| share.cause != QUEUEING || wanted == QUEUEING)
        .max_by(|a, b| a.share.total_cmp(&b.share));
    let seen = main.map_or("nothing", |share| share.cause.as_str());
    let right = wanted.split('|').any(|cause| cause == seen);
    if right && !has_cause {
        return Check {
            right: false,
            seen: format!("{seen}, and no wait with {}", expect.cause),
        };
    }
    let seen = if expect.is_cause(seen) {
        seen.to_owned()
    } else {
        format!("{} → {seen}", expect.cause)
    };
    Check { right, seen }
}

/// Whether a text has one of the patterns.
fn named(words: Option<String>, patterns: &[String]) -> Check {
    let seen = words.unwrap_or_else(|| "nothing".to_owned());
    Check {
        right: patterns.iter().any(|pattern| seen.contains(pattern)),
        seen,
    }
}

/// Whether a report says of a wait that it can't tell who is in its way.
fn says_unseen(report: &Report, wait: &Wait) -> bool {
    let said = |line: &NotMeasured| {
        line.what.starts_with("the blocker of ")
            && line.what.contains(&wait.asker.process)
            && line.what.ends_with(&format!("({})", wait.cause))
            && !line.fix.is_empty()
    };
    wait.holders.iter().all(|holder| holder.process.is_empty())
        && report.coverage.not_measured.iter().any(said)
}

fn holder(expect: &Expect, wait: Option<&Wait>, truth: &Truth) -> Option<Check> {
    if expect.holder.is_empty() {
        return None;
    }
    let holders = wait.map_or(&[][..], |wait| &wait.holders);
    let right = holders.iter().any(|task| {
        let words = format!("{} {} {}", task.process, task.thread, task.how_known);
        expect.holder.iter().any(|pattern| words.contains(pattern))
            && truth.holder_pid.is_none_or(|pid| pid == task.pid)
    });
    let mut seen: Vec<String> = holders
        .iter()
        .map(|task| format!("{} {} {}", task.process, task.pid, task.how_known))
        .collect();
    if seen.is_empty() {
        seen.push("nobody".to_owned());
    }
    if let (false, Some(pid)) = (right, truth.holder_pid) {
        seen.push(format!("(it was {pid})"));
    }
    Some(Check {
        right,
        seen: seen.join(", "),
    })
}

/// The share beside the truth, and by how many points they differ.
fn share(expect: &Expect, stall: &Observed, finding: Option<&Finding>) -> (Check, Option<f64>) {
    let report = &stall.report;
    if report.of_machine() {
        let nothing = Check {
            right: true,
            seen: "-".to_owned(),
        };
        return (nothing, None);
    }
    if let Some(experiment) = &report.experiment {
        return saved(expect, experiment, &stall.truth);
    }
    let measured = match expect.measure {
        Measure::Path => report
            .busy()
            .iter()
            .find(|one| expect.path_cause().split('|').any(|cause| cause == one.cause))
            .map(|one| one.share),
        Measure::Finding => finding.and_then(|finding| finding.share),
        Measure::Requests => {
            let ns = finding.and_then(|finding| finding.ns);
            ns.map(|ns| of(ns, report.requests_ns()))
        }
        Measure::Waits => {
            let waits = report.waits.iter().filter(|wait| expect.is_cause(&wait.cause));
            Some(of(
                waits.map(|wait| wait.ns).sum(),
                report.coverage.observed_ns.unwrap_or(0),
            ))
        }
    };
    let measured = 100.0 * measured.unwrap_or(0.0);
    // The workload's clock starts when the program does; to holdup its loading is elapsed time too.
    let elapsed = match expect.measure {
        // The truth of what ran already is a share: how long holdup looked is holdup's.
        _ if report.subject.kind == "attach" => stall.truth.elapsed_ns,
        Measure::Path | Measure::Finding => stall.truth.elapsed_ns.max(report.subject.wall_ns),
        Measure::Waits | Measure::Requests => stall.truth.elapsed_ns,
    };
    let truth = 100.0 * of(stall.truth.waited_ns, elapsed);
    let off = (measured - truth).abs();
    let check = Check {
        right: report.subject.wall_ns > 0 && off <= expect.tolerance,
        seen: format!("{measured:.1} / {truth:.1} %"),
    };
    (check, Some(off))
}

/// What holdup saved by taking the wait away, beside what was saved by hand.
fn saved(expect: &Expect, experiment: &Experiment, by_hand: &Truth) -> (Check, Option<f64>) {
    let (measured, truth) = (experiment.saved(), by_hand.share());
    // As a factor, which is what a person asks for.
    let factor = |saved: f64| 1.0 / (1.0 - saved).max(f64::EPSILON);
    let off = 100.0 * (measured - truth).abs();
    let check = Check {
        right: off <= expect.tolerance,
        seen: format!(
            "{:.1} / {:.1} % saved, {:.2} / {:.2} times",
            100.0 * measured,
            100.0 * truth,
            factor(measured),
            factor(truth)
        ),
    };
    (check, Some(off))
}

/// A text of `one|another` that words should have and lack, or the other way round.
fn amiss<'a>(texts: &'a [String], words: &str, wanted: bool) -> Option<&'a String> {
    let has = |text: &&String| text.split('|').any(|either| words.contains(either));
    texts.iter().find(|text| has(text) != wanted)
}

fn said(expect: &Expect, stall: &Observed, twin: &Observed) -> Check {
    let report = &stall.report;
    for (host, wanted, lacks) in [
        (&report.host, true, "does not say"),
        (&twin.report.host, false, "'s twin says"),
    ] {
        let words = host.as_ref().map(Host::words).unwrap_or_default();
        if let Some(text) = amiss(&expect.host_says, &words, wanted) {
            return Check {
                right: false,
                seen: format!("host {lacks} {text}"),
            };
        }
    }
    // On a busy machine it does wait: for a CPU.
    let queued = stall.truly_contended();
    for rule in &expect.findings {
        if rule == NEVER_WAITS && queued && find(report, rule).is_none() {
            return Check {
                right: true,
                seen: "busy machine".to_owned(),
            };
        }
        if find_any(report, rule).is_none() {
            return Check {
                right: false,
                seen: format!("no {rule}"),
            };
        }
    }
    let Some(first) = expect.findings.first() else {
        return Check {
            right: true,
            seen: "-".to_owned(),
        };
    };
    let leads = ours(expect, stall)
        .next()
        .map_or("nothing", |finding| finding.rule.as_str());
    if expect.first && !first.split('|').any(|rule| rule == leads) {
        return Check {
            right: false,
            seen: format!("{first} stands behind {leads}"),
        };
    }
    let named = ours(expect, stall).find(|finding| first.split('|').any(|rule| rule == finding.rule));
    let words = named.map(Finding::words).unwrap_or_default();
    match amiss(&expect.says, &words, true) {
        Some(text) => Check {
            right: false,
            seen: format!("{first} does not say {text}"),
        },
        None => Check {
            right: true,
            seen: first.clone(),
        },
    }
}

/// Of the stall every finding that is not allowed (of a whole machine notes are), of the twin every one that says that something is wrong.
fn alarms(expect: &Expect, stall: &Observed, twin: &Observed) -> Check {
    let excused = |observed: &Observed, finding: &Finding| {
        let of_machine = observed.report.of_machine() && finding.cause == QUEUEING;
        let of_rule =
            (of_machine || CONTENDED.contains(&finding.rule.as_str())) && observed.truly_contended();
        let queued = finding.share.filter(|_| finding.cause == QUEUEING);
        of_rule || queued.is_some_and(|share| observed.truly_queued(share))
    };
    let allowed = |rule: &String| {
        let mut expected = expect.findings.iter().flat_map(|rules| rules.split('|'));
        expected.any(|one| one == rule) || expect.beside.contains(rule)
    };
    let of_stall = stall
        .report
        .findings
        .iter()
        .filter(|finding| !allowed(&finding.rule) && !excused(stall, finding))
        .filter(|finding| !stall.report.of_machine() || finding.severity != "note")
        .map(|finding| format!("stall: {}", finding.rule));
    let of_twin = twin
        .report
        .findings
        .iter()
        .filter(|finding| finding.severity != "note" && !excused(twin, finding))
        .map(|finding| format!("twin: {}", finding.rule));
    let doubts = [("stall", stall), ("twin", twin)]
        .into_iter()
        .flat_map(|(side, observed)| not_ruled_out(expect, side, &observed.report));
    let untold = untold(expect, &stall.report);
    let seen: Vec<String> = of_stall.chain(of_twin).chain(doubts).chain(untold).collect();
    Check {
        right: seen.is_empty(),
        seen: if seen.is_empty() {
            "none".to_owned()
        } else {
            seen.join(", ")
        },
    }
}

/// What should have been ruled out with a figure, and was not.
fn not_ruled_out(expect: &Expect, side: &str, report: &Report) -> Vec<String> {
    let with_figure = |rule: &String| {
        let mut all = report.ruled_out.iter();
        all.any(|out| out.rule == *rule && out.why.contains(|c: char| c.is_ascii_digit()))
    };
    let left = expect.ruled_out.iter().filter(|rule| !with_figure(rule));
    left.map(|rule| format!("{side}: {rule} not ruled out")).collect()
}

/// What the report should have said it could not measure, and did not.
fn untold(expect: &Expect, report: &Report) -> Vec<String> {
    let all = report.coverage.not_measured.iter();
    let words = all.map(|one| format!("{}: {}; {}\n", one.what, one.why, one.fix));
    let words: String = words.collect();
    let said = |text: &&String| text.split('|').any(|one| words.contains(one));
    let left = expect.not_measured.iter().filter(|text| !said(text));
    left.map(|text| format!("stall: {text:?} not among what was not measured"))
        .collect()
}

#[cfg(test)]
mod tests;
