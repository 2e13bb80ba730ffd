//! Jobs of queues that began and did not end: Celery, Sidekiq, Delayed Job.
//!
//! In: the line by which a worker says that it took a job, the line by which it says that the job is over, and what ends or restarts the worker.
//! Out: of jobs that are still open when the worker is ended or silent, the one that is open longest, and how long jobs of its name take.

use super::{Line, behind, leading_number};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::{StatementKind, When};
use holdup_evidence::units::duration;
use std::collections::HashMap;

/// Jobs that are open at a time, names with a length, and bytes of a name.
const MAX_OPEN: usize = 5_000;
const MAX_NAMES: usize = 2_000;
const MAX_CHARS: usize = 120;

/// Nanoseconds from which an open job is told: what proxies and brokers give up at, by default.
const MIN_OPEN: Ns = 60_000_000_000;

/// Jobs that took long and ended that are kept.
const MAX_SLOW: usize = 1_000;

/// So many times as long as such jobs take.
const MANY_TIMES: f64 = 30.0;

/// A job that was taken.
#[derive(Debug, Clone)]
struct Job {
    name: String,
    at: When,
    number: u64,
    order: u64,
    received: bool,
}

/// What a line says of a job.
#[derive(Debug, PartialEq)]
enum Says<'a> {
    Begins {
        name: &'a str,
        id: &'a str,
        /// Whether it was only fetched, ahead of its turn.
        received: bool,
    },
    /// It was given up before it ran.
    Dropped { id: &'a str },
    Ends {
        name: &'a str,
        id: &'a str,
        seconds: Option<f64>,
    },
    /// The worker is ended, or restarted.
    Worker,
}

#[derive(Debug, Default)]
pub(super) struct Jobs {
    open: HashMap<String, Job>,
    /// The longest that a job of a name took, nanoseconds.
    usual: HashMap<String, Ns>,
    ended: u64,
    taken: u64,
    /// Of jobs that took long which one in order it was, and when it ended: what was fetched behind it waited for it.
    slow: Vec<(u64, When)>,
    /// The last line that was seen, and the first at which the worker was ended while a job was open.
    last: Option<When>,
    stopped: Option<(When, String)>,
}

/// `name[id]` at the end of a text or before some words.
fn with_id(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('[')?;
    let (id, _) = rest.split_once(']')?;
    let name = name.trim();
    (!name.is_empty() && !name.contains(' ') && id.len() >= 8 && !id.contains(' ')).then_some((name, id))
}

/// The word behind some words.
fn word<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let word = behind(text, words)?.split([' ', ',', ')']).next()?;
    (!word.is_empty()).then_some(word)
}

fn celery(text: &str) -> Option<Says<'_>> {
    if let Some(rest) = behind(text, "revoked task: ") {
        return with_id(rest).map(|(_, id)| Says::Dropped { id });
    }
    let begins = behind(text, "Received task: ").or_else(|| {
        let rest = behind(text, "Task ")?;
        rest.ends_with("] received").then_some(rest)
    });
    if let Some(rest) = begins {
        let (name, id) = with_id(rest)?;
        // It is to run later.
        return (!rest.contains("ETA:") && !rest.contains("eta:")).then_some(Says::Begins {
            name,
            id,
            received: true,
        });
    }
    let rest = behind(text, "Task ")?;
    let over = [
        "] succeeded in ",
        "] raised ",
        "] retry:",
        "] failed",
        "] ignored",
    ];
    let over = over
        .iter()
        .find_map(|words| behind(rest, words).map(|more| (*words, more)))?;
    let (name, id) = with_id(rest)?;
    let seconds = match over {
        ("] succeeded in ", more) => leading_number(more).map(|(seconds, _)| seconds),
        _ => None,
    };
    Some(Says::Ends { name, id, seconds })
}

/// `MyWorker JID-1b2c INFO: start`, `pid=1 tid=2 class=MyWorker jid=1b2c INFO: done: 0.12 sec`.
fn sidekiq(text: &str) -> Option<Says<'_>> {
    let (name, id) = match behind(text, " jid=") {
        Some(_) => (word(text, "class=")?, word(text, " jid=")?),
        None => {
            let (before, _) = text.split_once(" JID-")?;
            (before.rsplit(' ').next()?, word(text, " JID-")?)
        }
    };
    let said = text.rsplit_once("INFO: ").map(|(_, said)| said)?;
    if said.trim() == "start" {
        return Some(Says::Begins {
            name,
            id,
            received: false,
        });
    }
    let seconds = said.strip_prefix("done").or_else(|| said.strip_prefix("fail"))?;
    let seconds = leading_number(seconds.trim_start_matches([':', ' '])).map(|(seconds, _)| seconds);
    Some(Says::Ends { name, id, seconds })
}

/// `[Worker(host:a pid:1)] Job Report#make (id=12) (queue=x) RUNNING`.
fn delayed(text: &str) -> Option<Says<'_>> {
    let rest = behind(text, "Job ")?;
    let (name, more) = rest.split_once(" (id=")?;
    let id = more.split(')').next()?;
    let end = text.trim_end();
    if end.ends_with("RUNNING") {
        return Some(Says::Begins {
            name,
            id,
            received: false,
        });
    }
    let seconds = behind(more, "COMPLETED after ").and_then(leading_number);
    let over = seconds.is_some() || more.contains(" FAILED");
    over.then_some(Says::Ends {
        name,
        id,
        seconds: seconds.map(|(seconds, _)| seconds),
    })
}

fn of_worker(text: &str) -> Option<Says<'_>> {
    const ENDS: [&str; 6] = [
        "Restarting",
        "SIGTERM",
        "SIGKILL",
        "Warm shutdown",
        "Cold shutdown",
        "State changed from up",
    ];
    ENDS.iter()
        .any(|words| text.contains(words))
        .then_some(Says::Worker)
}

fn says(text: &str) -> Option<Says<'_>> {
    celery(text)
        .or_else(|| sidekiq(text))
        .or_else(|| delayed(text))
        .or_else(|| of_worker(text))
}

impl Jobs {
    pub(super) fn line(&mut self, line: Line<'_>) {
        // Copies set lines in, and a part of a program's own log may stand in front.
        let Some(at) = line.at.or_else(|| bracketed(line.text)) else {
            return;
        };
        match says(line.text) {
            Some(Says::Begins { name, id, received }) if self.open.len() < MAX_OPEN => {
                self.taken += 1;
                let job = Job {
                    name: name.chars().take(MAX_CHARS).collect(),
                    at,
                    number: line.number,
                    order: self.taken,
                    received,
                };
                self.open.insert(id.to_owned(), job);
            }
            Some(Says::Ends { name, id, seconds }) => self.over(at, name, id, seconds),
            Some(Says::Dropped { id }) => {
                self.open.remove(id);
            }
            Some(Says::Worker) if !self.open.is_empty() && self.stopped.is_none() => {
                let words = line.text.chars().rev().take(MAX_CHARS).collect::<String>();
                let words: String = words.chars().rev().collect();
                self.stopped = Some((at, words.rsplit(": ").next().unwrap_or_default().to_owned()));
            }
            Some(_) => {}
            None => return,
        }
        self.last = Some(at);
    }

    /// A job is over.
    fn over(&mut self, at: When, name: &str, id: &str, seconds: Option<f64>) {
        self.ended += 1;
        let job = self.open.remove(id);
        let between = job.as_ref().and_then(|job| at.since(job.at));
        let between = between.and_then(|ns| Ns::try_from(ns).ok());
        let stated = seconds.map(|seconds| (seconds.clamp(0.0, 1e9) * 1e9) as Ns);
        let Some(ns) = stated.or(between) else { return };
        if let Some(job) = job.filter(|_| ns >= MIN_OPEN && self.slow.len() < MAX_SLOW) {
            self.slow.push((job.order, at));
        }
        if self.usual.len() < MAX_NAMES || self.usual.contains_key(name) {
            let usual = self.usual.entry(name.to_owned()).or_default();
            *usual = ns.max(*usual);
        }
    }

    /// Whether a job was fetched while one that took long ran before it: it may have had no turn since.
    fn had_no_turn(&self, job: &Job) -> bool {
        let behind = |(order, ended): &(u64, When)| {
            job.order > *order && ended.since(job.at).is_some_and(|later| later >= 0)
        };
        job.received && (self.slow.len() >= MAX_SLOW || self.slow.iter().any(behind))
    }

    pub(super) fn end(self, told: &mut Told) -> Option<Fact> {
        let until = self.stopped.as_ref().map(|(at, _)| *at).or(self.last)?;
        let had_turn = self.open.iter().filter(|(_, job)| !self.had_no_turn(job));
        let open = had_turn.filter_map(|(id, job)| {
            let ns = Ns::try_from(until.since(job.at)?).ok()?;
            let usual = self.usual.get(&job.name).copied();
            let long = usual.is_some_and(|usual| ns as f64 >= usual.max(1_000_000) as f64 * MANY_TIMES);
            // Where nothing is known of such jobs, an end by force behind a long silence tells it.
            let forced = self.stopped.is_some() && self.ended > 0;
            (ns >= MIN_OPEN && (long || usual.is_none() && forced)).then_some((ns, id, job, usual))
        });
        let (ns, id, job, usual) = open.max_by_key(|(ns, _, job, _)| (*ns, job.order))?;
        told.add(job.number);
        let before = usual.map_or_else(String::new, |usual| {
            format!(", where others of its name took {} at most", duration(usual))
        });
        let end = match &self.stopped {
            Some((_, words)) => format!(", until the worker was ended ({words})"),
            None => String::new(),
        };
        Some(Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: Some(ns),
            line: job.number,
            text: format!(
                "the worker took the job {}[{id}] and did not end it in {}{before}{end}: it hangs in it",
                job.name,
                duration(ns)
            ),
        })
    }
}

/// The time in `[2015-08-07 16:50:40,140: INFO/MainProcess]`, as Celery writes it.
fn bracketed(text: &str) -> Option<When> {
    let inner = behind(text, "[")?.split(']').next()?;
    let date = inner.get(..19)?;
    let (stamp, _) = crate::stamp::leading(date.as_bytes())?;
    stamp.at
}
