//! The rule base: from what a run waited for to what is wrong with it.
//!
//! In: [`Attributed`] and [`SystemFacts`]. Out: a [`Judgement`]: findings worst first, what was ruled out
//! (each with its number) and what could not be determined (each with what is missing).
//!
//! A rule is three siblings: `<area>/<rule>.rs` (what it needs, as data, and one check), `<area>/<rule>.md` (the page
//! that `holdup explain` prints; its examples are the rule's tests) and a scenario that makes the trouble for real. The list of
//! rules is generated from the folders: a new rule is two new files and `cargo xtask gen`. It says itself which more general rules
//! have nothing to add where it fires ([`Generality`], [`explains`](field@Rule::explains)), so that no other rule changes.

mod asked;
mod asked_behind;
mod awaited;
mod awaited_disks;
mod awaited_instead;
mod awaited_said;
mod awaited_short;
mod awaited_sleepers;
mod awaited_standby;
mod awaited_threads;
mod awaited_withheld;
mod beside;
pub(crate) mod blocked;
mod calls;
mod clocks;
mod commands;
mod connected;
mod connections;
mod counted;
mod database_sessions;
mod decisions;
mod devices;
mod doubt;
mod dumps;
#[cfg(test)]
mod examples;
pub(crate) mod figures;
mod flows;
mod for_nobody;
mod for_others;
mod frozen;
mod full_pool;
mod halted;
mod head;
mod held;
mod held_meanwhile;
mod in_queue;
mod java_seeds;
mod java_waits;
pub(crate) mod kernel_places;
mod language;
mod leads;
mod levels;
mod libuv_pool;
mod limit_settings;
mod tokio_pool;
#[macro_use]
mod listed;
pub(crate) mod list;
mod listeners;
mod live_sessions;
mod lock_sessions;
mod lock_turns;
mod log_times;
pub(crate) mod logs;
mod made_anew;
mod memory;
mod mutual;
mod name_chain;
mod need;
mod on_machine;
mod own_io;
mod own_listener;
mod paging;
mod pools;
pub(crate) mod pressures;
mod queueing;
pub(crate) mod quota_users;
mod ranking;
mod root;
mod roots_said;
mod run;
pub(crate) mod saturated;
pub(crate) mod say;
mod sessions_served;
mod shares;
mod short_lives;
mod sockets;
mod sources;
mod streams;
mod tasks;
#[cfg(test)]
mod tests;
mod thread_sessions;
pub(crate) mod waiters;
mod within;

pub use clocks::clock_of;
pub use list::{ALL, RuleId};
pub use need::Need;
pub use run::{Run, Waits};
pub use say::{duration, percent};

use holdup_evidence::facts::OwnLog;
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::attributed::{Requests, Resource};
use holdup_model::churn::Churn;
use holdup_model::finding::{Confidence, Evidence, FINDINGS, Finding, Severity, Verdict, Verdicts};
use holdup_model::title::Title;

/// Share of the elapsed time from which trouble is worth a finding: a tenth is about what a person notices, and
/// about the noise of repeated runs of one command.
pub(crate) const MATTERS: f64 = 0.10;

/// Share from which something that is not trouble is worth a note. The contract wants every cause above 30 % to be
/// spoken of; a little less leaves room for rounding.
pub(crate) const WORTH_A_NOTE: f64 = 0.25;

/// Share above which the length does not count: of a command that takes 2 ms, people still ask where they went.
const ALWAYS: f64 = 0.30;

/// Nanoseconds below which no finding is made unless its share is above [`ALWAYS`]: 10 ms is the order of what a
/// scheduler tick or one slow disk request adds to any run.
const FLOOR: Ns = 10_000_000;

/// Nanoseconds below which nothing is called trouble: 0.1 s is the length up to which people take an answer as
/// immediate.
const HARM_FLOOR: Ns = 100_000_000;

/// Where along the chain of waits a rule looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Where the time really went.
    RootCause,
    /// On the way there: waiting for another thread or process whose own time is judged by other rules. Printed after
    /// the ends of the same severity that cost at least half as much.
    Intermediate,
}

/// How much a rule says about the waits that it judges. Of two findings about the same cause, the one that says more is
/// printed: a new rule says how specific it is, and the general ones yield without an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generality {
    /// Where the time went, not why.
    Describes,
    /// The kind of trouble.
    General,
    /// The one trouble that explains the waits.
    Specific,
    /// What the waits do to the program, whatever they are for. It stands beside the reason: of the same cause, it
    /// neither yields nor makes others yield.
    Consequence,
}

/// A rule: what it looks at, as data, and one check.
#[derive(Debug)]
pub struct Rule {
    /// Its id; the stem of its files.
    pub id: RuleId,
    /// The trouble in one line, for lists.
    pub about: &'static str,
    /// What it must be able to see.
    pub needs: &'static [Need],
    /// The causes it looks at, one at a time.
    pub causes: &'static [Cause],
    /// Share of the elapsed time (0..1) that one cause must have for the check to be made.
    pub from: f64,
    /// How much it says about the waits of one cause.
    pub generality: Generality,
    /// More general rules that have nothing to add where this one fires, and whose yielding does not follow from
    /// `generality`: they judge other causes, or artefacts. What those explain is explained, too.
    pub explains: &'static [RuleId],
    /// The root cause, or on the way to it.
    pub place: Place,
    /// How it judges.
    check: Check,
}

impl Rule {
    /// What holds for most rules. The head of a rule's file (`head`) names only what is different in it.
    const fn new(id: RuleId, about: &'static str, check: Check) -> Self {
        Self {
            id,
            about,
            needs: &[],
            causes: &[],
            from: MATTERS,
            generality: Generality::Specific,
            explains: &[],
            place: Place::RootCause,
            check,
        }
    }
}

/// How a rule judges.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Check {
    /// By the waits of one cause at a time, whose cost is known to matter.
    Waits(ByWaits),
    /// By what artefacts show: figures, log lines, thread dumps.
    Artefacts(ByArtefacts),
    /// By either, whichever there is; where both speak, the waits do.
    Both(ByWaits, ByArtefacts),
    /// By what was made anew while what runs already was watched, or by what artefacts show, whichever there is.
    Live(ByChurn, ByArtefacts),
    /// By the requests that were answered while what runs already was watched.
    Requests(ByRequests),
    /// By what was found out about processes that ran already.
    Attached(ByAttached),
    /// By tasks of runtimes, or by what runs them; not asked where the first says that there are none.
    Tasks(fn(&Run<'_>) -> bool, ByAttached),
    /// By file systems that were full when observation of processes that ran already ended; not asked where there were none.
    Full(ByAttached),
    /// By what observed processes wrote in their logs, where those were read.
    Logs(ByLogs),
    /// By whom the waits of a whole machine lead to, or by the kernel's own tables of who waits for whom, whichever there is.
    Machine(ByMachine, BySeen),
}

/// Judges the waits of one cause, whose cost is known to matter.
type ByWaits = fn(&Run<'_>, &Waits<'_>) -> Verdict;
/// Judges what was made anew.
type ByChurn = fn(&Run<'_>, &Churn) -> Verdict;
/// Judges requests.
type ByRequests = fn(&Run<'_>, &Requests) -> Verdict;
/// Judges processes that ran already.
type ByAttached = fn(&Run<'_>) -> Verdict;
/// Judges logs of observed processes.
type ByLogs = fn(&Run<'_>, &[OwnLog]) -> Verdict;
/// Judges a whole machine.
type ByMachine = fn(&Run<'_>) -> Verdict;
/// Judges what a look at a machine shows; `None` where nobody looked.
type BySeen = fn(&Observed) -> Option<Verdict>;
/// Judges what artefacts show.
type ByArtefacts = fn(&Run<'_>, &Observed) -> Verdict;

/// What a rule about requests lacks where none could be reported.
const NO_REQUESTS: &str = "what is sent and received on sockets: Linux 6.3 or later tells";

/// What a rule that needs waits lacks where the artefacts show none.
const NO_WAITS: &str = "how long threads waited for what: an strace log with times, or `holdup run`";

impl Rule {
    /// Whether a finding of this rule about one cause leaves nothing to add to a finding of `general` about another.
    fn covers(&self, cause: Cause, general: &Rule, other: Cause) -> bool {
        let same = cause == other;
        // Figures of a machine and waits of one program need not be of the same time, although the cause is the same.
        let of_waits = !self.of_artefacts_only() && !general.of_artefacts_only();
        let more = general.generality < self.generality && self.generality <= Generality::Specific;
        (same && of_waits && more)
            || (self.explains_at_last(general.id) && (same || !general.causes.contains(&cause)))
    }

    /// Whether it explains a rule, itself or through one that it explains. There is no circle: a test.
    fn explains_at_last(&self, id: RuleId) -> bool {
        self.explains
            .iter()
            .any(|explained| *explained == id || explained.rule().explains_at_last(id))
    }

    /// This rule's verdict: it fires, it is clear with the number that says so, or it can't tell. `None` where it is not
    /// asked, because it judges by artefacts and there are none.
    #[must_use]
    pub fn verdict(&self, run: &Run<'_>) -> Option<Verdict> {
        // Of all threads' time on a machine the whole time of one is next to nothing.
        let run = &Run {
            of_one_thread: run.machine && on_machine::judges_one_thread(self.id),
            ..*run
        };
        let (by_waits, by_artefacts) = match self.check {
            Check::Waits(check) => (Some(check), None),
            Check::Artefacts(check) => (None, Some(check)),
            Check::Both(waits, artefacts) => (Some(waits), Some(artefacts)),
            Check::Attached(check) => return run.attributed.of_threads.then(|| check(run)),
            Check::Tasks(any, check) => return any(run).then(|| check(run)),
            Check::Full(check) => {
                let any = !run.facts.full_file_systems.is_empty();
                return (run.attributed.of_threads && any).then(|| check(run));
            }
            Check::Logs(check) => {
                let logs = run.facts.own_logs.as_deref();
                return logs
                    .filter(|_| run.observed.is_none())
                    .map(|logs| check(run, logs));
            }
            Check::Machine(check, seen) => {
                return match run.observed {
                    Some(observed) => seen(observed),
                    None => run.machine.then(|| check(run)),
                };
            }
            Check::Live(live, artefacts) => {
                if let Some(observed) = run.observed {
                    return Some(artefacts(run, observed));
                }
                let churn = run
                    .attributed
                    .churn
                    .as_ref()
                    .filter(|_| run.attributed.of_threads);
                return churn.map(|churn| live(run, churn));
            }
            Check::Requests(check) => {
                return run.attributed.of_threads.then(|| match &run.attributed.requests {
                    Some(requests) => check(run, requests),
                    None => Verdict::CannotTell(NO_REQUESTS.to_owned()),
                });
            }
        };
        // Artefacts without any wait say nothing of waits, and nothing is ruled out by that.
        let waits_told = run.observed.is_none() || !run.attributed.waits.is_empty();
        let found = by_waits.map(|check| match waits_told {
            true => self.by_waits(run, check),
            false => Verdict::CannotTell(NO_WAITS.to_owned()),
        });
        match (found, by_artefacts.zip(run.observed)) {
            (Some(fires @ Verdict::Fires(_)), _) => Some(fires),
            (found, Some((check, observed))) => Some(match (check(run, observed), found) {
                // What the waits rule out stays so where other artefacts say nothing.
                (Verdict::CannotTell(_), Some(clear @ Verdict::Clear(_))) => clear,
                (seen, _) => seen,
            }),
            (found, None) => found,
        }
    }

    /// Whether it is asked of a command's run.
    #[must_use]
    pub fn of_runs(&self) -> bool {
        matches!(self.check, Check::Waits(_) | Check::Both(..))
    }

    /// Whether it judges by artefacts alone, and is not asked of a live run.
    #[must_use]
    pub fn of_artefacts_only(&self) -> bool {
        matches!(self.check, Check::Artefacts(_))
    }

    fn by_waits(&self, run: &Run<'_>, check: ByWaits) -> Verdict {
        let mut findings = Vec::new();
        let mut clear: Option<String> = None;
        for &cause in self.causes {
            let Some(waits) = run.of(cause).filter(|waits| run.matters(waits.cost(), self.from)) else {
                continue;
            };
            let waits = match self.without_idle(run, waits) {
                Ok(waits) => waits,
                Err(why) => {
                    clear = clear.or(Some(why));
                    continue;
                }
            };
            match check(run, &waits) {
                Verdict::Fires(found) => findings.extend(found),
                Verdict::Clear(why) => clear = clear.or(Some(why)),
                cannot @ Verdict::CannotTell(_) => return cannot,
            }
        }
        if !findings.is_empty() {
            return Verdict::Fires(findings.into_iter().map(harmless_if_short).collect());
        }
        if let Some(missing) = run
            .hidden(self.causes, self.from)
            .or_else(|| run.untold(self.causes))
        {
            return Verdict::CannotTell(missing);
        }
        Verdict::Clear(clear.unwrap_or_else(|| run.little(self.causes)))
    }

    /// For a general rule, the waits that somebody may wait for, and that are worth a word without the others; otherwise why there are none.
    fn without_idle<'a>(&self, run: &Run<'a>, waits: Waits<'a>) -> Result<Waits<'a>, String> {
        if !matches!(self.generality, Generality::Describes | Generality::General) {
            return Ok(waits);
        }
        let waits = for_nobody::without(run, waits)?;
        if let Some(why) = for_nobody::may_be_chance(run, &waits) {
            return Err(why);
        }
        match run.matters(waits.cost(), self.from) {
            true => Ok(waits),
            false => Err(run.little(&[waits.cause()])),
        }
    }

    /// A finding of this rule about some waits: their cost, the costliest one's resource and asker, and how often and
    /// how long, as its first evidence.
    pub(crate) fn finding(&self, severity: Severity, title: impl Into<Title>, waits: &Waits<'_>) -> Finding {
        self.finding_by(severity, title, waits, say::how_long(waits))
    }

    /// The same with a first evidence that says more.
    pub(crate) fn finding_by(
        &self,
        severity: Severity,
        title: impl Into<Title>,
        waits: &Waits<'_>,
        first: Evidence,
    ) -> Finding {
        let main = waits.main();
        let cost = waits.cost();
        let title = for_others::with_waiters(asked::with_place(title.into(), waits), waits);
        let mut finding = Finding::new(self.id.id(), severity, title, waits.cause(), cost, first);
        finding.error = waits.error().min(cost);
        finding.about(main.resource.clone(), main.asker.clone())
    }
}

/// Trouble that costs nobody anything worth mending is a note.
fn harmless_if_short(mut finding: Finding) -> Finding {
    if finding.ns.is_some_and(|ns| ns < HARM_FLOOR) {
        finding.severity = Severity::Note;
    }
    finding
}

/// What all rules say together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// What is wrong, worst first.
    pub findings: Vec<Finding>,
    /// Rules that say "not that", each with the number that says so.
    pub ruled_out: Vec<(RuleId, String)>,
    /// Rules that could not tell, each with what is missing.
    pub cannot_tell: Vec<(RuleId, String)>,
}

impl From<Judgement> for Verdicts {
    fn from(judgement: Judgement) -> Verdicts {
        let by_id = |said: Vec<(RuleId, String)>| {
            said.into_iter()
                .map(|(rule, why)| (rule.id().to_owned(), why))
                .collect()
        };
        Verdicts {
            findings: judgement.findings,
            ruled_out: by_id(judgement.ruled_out),
            cannot_tell: by_id(judgement.cannot_tell),
        }
    }
}

/// Asks every rule.
#[must_use]
pub fn judge(run: &Run<'_>) -> Judgement {
    let mut judgement = Judgement::default();
    let mut found: Vec<(&Rule, Finding)> = Vec::new();
    for rule in ALL {
        match rule.verdict(run) {
            Some(Verdict::Fires(findings)) => {
                found.extend(shown(findings).into_iter().map(|finding| (*rule, finding)));
            }
            Some(Verdict::Clear(why)) => judgement.ruled_out.push((rule.id, why)),
            Some(Verdict::CannotTell(missing)) => judgement.cannot_tell.push((rule.id, missing)),
            None => {}
        }
    }
    // A finding without a duration neither outweighs nor is outweighed: it yields to a better one in any case.
    let speakers: Vec<(&Rule, Cause, Option<Ns>)> =
        found.iter().map(|(rule, f)| (*rule, f.cause, f.ns)).collect();
    found.retain(|(rule, finding)| {
        let better = speakers.iter().find(|(better, cause, ns)| {
            // Half, so that a better rule that explains a small part does not silence the rest.
            let enough = match (ns, finding.ns) {
                (Some(better), Some(own)) => better.saturating_mul(2) >= own,
                _ => true,
            };
            enough && better.covers(*cause, rule, finding.cause)
        });
        let Some((better, _, ns)) = better else {
            return true;
        };
        if !judgement
            .ruled_out
            .iter()
            .any(|(ruled_out, _)| *ruled_out == rule.id)
        {
            let why = match ns {
                Some(ns) => format!("{} is reported by {}", duration(*ns), better.id.id()),
                None => format!("1 more specific rule reports it: {}", better.id.id()),
            };
            judgement.ruled_out.push((rule.id, why));
        }
        false
    });
    let joined = list::whole_pool_waits::join(run, &mut found);
    for (dropped, by) in joined
        .into_iter()
        .chain(list::own_log_explains::join(run, &mut found))
        .chain(held_meanwhile::join(run, &mut found))
        .chain(held_meanwhile::join_tasks(run, &mut found))
    {
        judgement
            .ruled_out
            .push((dropped, format!("1 more specific rule reports it: {}", by.id())));
    }
    counted::tell(run, &mut found);
    let still = |id: RuleId| found.iter().any(|(rule, _)| rule.id == id);
    judgement.ruled_out.retain(|(id, _)| !still(*id));
    judgement.ruled_out.sort_by_key(|(id, _)| *id);
    if run.machine {
        found = on_machine::judged(run, found);
    }
    if !run.attributed.source.records_each_wait() {
        let doubted = |(rule, finding)| (rule, doubt::too_few_samples(finding));
        found = found.into_iter().map(doubted).collect();
    }
    awaited_withheld::shortages_after(run, &mut found);
    let inside = awaited_sleepers::Inside::of(run, found.iter().map(|(_, finding)| finding));
    found.sort_by_key(|(rule, finding)| {
        let of_machine = matches!(rule.check, Check::Machine(..));
        // Roots come in an order of their own: a queue for the CPUs is longer than what one thread cannot get past, and less grave.
        let rank = if of_machine {
            None
        } else {
            ranking::rank(rule, finding, run.attributed.wall, inside.has(finding))
        };
        (
            std::cmp::Reverse(finding.severity),
            // Of a machine, the root comes before what waits for it.
            !of_machine,
            // A suspicion that nobody measured comes after what is known.
            finding.ns.is_none() && finding.confidence == Confidence::Suspect,
            std::cmp::Reverse(rank),
            rule.place,
        )
    });
    if run.machine {
        found = on_machine::ordered(found);
    }
    leads::waiters_first(run, &mut found);
    held_meanwhile::locks_first(run, &mut found);
    judgement.findings = found.into_iter().map(|(_, finding)| finding).collect();
    commands::keep_what_works(run, &mut judgement.findings);
    if !run.attributed.source.has_probes() {
        judgement.findings.iter_mut().for_each(sources::name_samples);
    }
    judgement
}

/// So many of a rule's findings as anybody reads: the longest of the worst, with the number of the others.
fn shown(mut findings: Vec<Finding>) -> Vec<Finding> {
    let others = findings.len().saturating_sub(FINDINGS);
    if others > 0 {
        findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.ns)));
        findings.truncate(FINDINGS);
    }
    let last = findings.len().saturating_sub(1);
    let with =
        |(place, finding): (usize, Finding)| finding.with_left_out(if place == last { others } else { 0 });
    findings.into_iter().enumerate().map(with).collect()
}

/// These findings, as a verdict.
fn fires_all(findings: Vec<Finding>) -> Verdict {
    Verdict::Fires(findings)
}

/// One finding, as a verdict.
fn fires(finding: Finding) -> Verdict {
    Verdict::Fires(vec![finding])
}

/// What a finding gets where there is some.
trait Extend: Sized {
    /// Another piece of evidence.
    fn and_if(self, evidence: Option<Evidence>) -> Self;

    /// *Proved* where the one in the way or the end of the wait is known, else *strong*.
    fn proved_if(self, known: bool) -> Self;

    /// What it is about, where the waits themselves name nothing.
    fn about_if_unnamed(self, resource: Option<Resource>) -> Self;
}

impl Extend for Finding {
    fn and_if(self, evidence: Option<Evidence>) -> Finding {
        match evidence {
            Some(evidence) => self.and(evidence),
            None => self,
        }
    }

    fn proved_if(self, known: bool) -> Finding {
        self.confidence(if known {
            Confidence::Proved
        } else {
            Confidence::Strong
        })
    }

    fn about_if_unnamed(mut self, resource: Option<Resource>) -> Finding {
        if let Some(resource) = resource.filter(|_| self.resource.name.is_empty()) {
            self.resource = resource;
        }
        self
    }
}
