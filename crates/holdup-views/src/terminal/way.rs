//! Who is in the way of an entry's waits: who held it, who ran instead, or where the time went on to.
//!
//! In: an [`Entry`]. Out: rows on the sheet.

use super::entry::{NAMES, figure_of, labelled};
use super::picture::Entry;
use super::who::thread;
use crate::sheet::{Paint, Piece, Sheet};
use crate::units::{counted, duration_beside};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::HowKnown;
use holdup_model::report::{Holder, Link, Report, Wait};
use std::collections::BTreeMap;

/// Who held it, who ran instead, or where the time went on to.
pub(super) fn in_the_way(sheet: &mut Sheet, report: &Report, entry: &Entry) {
    let mut ran: BTreeMap<&str, Ns> = BTreeMap::new();
    let mut holders: Vec<(&Holder, Ns)> = Vec::new();
    for (wait, _) in &entry.members {
        for other in &wait.ran_instead {
            *ran.entry(&other.process).or_default() += other.ns;
        }
        for holder in &wait.holders {
            let same = |(known, _): &&mut (&Holder, Ns)| {
                (known.pid, known.tid, known.how_known) == (holder.pid, holder.tid, holder.how_known)
            };
            match holders.iter_mut().find(same) {
                Some((_, ns)) => *ns += holder.ns,
                None => holders.push((holder, holder.ns)),
            }
        }
    }
    holders.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let named_already = |holder: &Holder| {
        let wait = entry.largest();
        wait.is_some_and(|wait| wait.resource.detail.pid == Some(holder.pid))
    };
    if let Some((holder, _)) = holders.first().filter(|(holder, _)| named_already(holder)) {
        // The entry's first line names it as what is waited for.
        if let Some(doing) = holder.doing {
            labelled(sheet, "which was", vec![sheet.words(doing.phrase())]);
        }
    } else if let Some((holder, _)) = holders.first() {
        let (label, how) = relation(holder);
        let who = thread(
            sheet,
            report,
            (holder.pid, holder.tid),
            (&holder.process, &holder.thread),
            how,
        );
        let mut body = vec![sheet.words(&who).paint(Paint::Bold)];
        // The first thread of a peer takes in clients: which has the request is not known.
        let takes_in = |doing: Cause| matches!(doing, Cause::NetAccept | Cause::Idle);
        let peer = holder.how_known == HowKnown::SocketPeer;
        if let Some(doing) = holder.doing.filter(|doing| !(peer && takes_in(*doing))) {
            body = vec![sheet.words(&format!("{who},")).paint(Paint::Bold)];
            let end = if holders.len() > 1 { ";" } else { "" };
            let stands = stands(holder).filter(|_| doing != Cause::Idle);
            let stands = stands.map_or_else(String::new, |stands| format!(" in {stands}"));
            body.push(sheet.words(&format!("which was {}{stands}{end}", doing.phrase())));
        }
        if holders.len() > 1 {
            let others = counted(holders.len() as u64 - 1, "other", "others");
            body.push(sheet.words(&format!("and {others}")));
        }
        labelled(sheet, label, body);
    } else if let Some(link) = went_to(entry) {
        let who = thread(sheet, report, (link.pid, link.tid), (&link.process, ""), None);
        let body = vec![
            sheet.words(&format!("{who},")).paint(Paint::Bold),
            sheet.words(link.cause.phrase()),
        ];
        labelled(sheet, "leads to", body);
    }
    let mut ran: Vec<(&str, Ns)> = ran.into_iter().collect();
    ran.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let mut body: Vec<Piece> = Vec::new();
    for (name, ns) in ran.iter().take(NAMES) {
        body.push(sheet.name(name).after(2).paint(Paint::Bold));
        body.push(figure_of(sheet, &duration_beside(*ns, report.whole_ns())));
    }
    if !body.is_empty() {
        labelled(sheet, "CPU ran", body);
    }
}

/// One that is in the way of an entry's waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) process: &'a str,
    pub(crate) thread: &'a str,
    /// What it does meanwhile.
    pub(crate) doing: Option<Cause>,
    /// For how long.
    pub(crate) ns: Ns,
}

/// Steps that are followed from one to the next. A longer chain than this is read by nobody, and a circle has no end.
const MAX_STEPS: usize = 16;

/// Who is in the way of the entry's wait whose chain leads furthest, nearest first. Where attribution has made no chain, it is made of who
/// held each wait in turn, as the report has them.
pub(crate) fn steps<'a>(report: &'a Report, entry: &Entry<'a>) -> Vec<Step<'a>> {
    let furthest = entry.members.iter().map(|(wait, _)| *wait).rev();
    let Some(wait) = furthest.max_by_key(|wait| (wait.chain.len(), wait.held_by.is_some(), wait.ns)) else {
        return Vec::new();
    };
    let mut found: Vec<Step<'a>> = Vec::new();
    let of_link = |link: &'a Link| Step {
        pid: link.pid,
        tid: link.tid,
        process: &link.process,
        thread: "",
        doing: Some(link.cause),
        ns: link.ns,
    };
    let asks = (wait.asker.pid, wait.asker.tid);
    let links = wait.chain.iter().filter(|link| (link.pid, link.tid) != asks);
    found.extend(links.take(MAX_STEPS).map(of_link));
    let mut holder = match found.is_empty() {
        true => wait.held_by.as_ref(),
        false => None,
    };
    while let Some(one) = holder.take() {
        let known = |step: &Step<'_>| (step.pid, step.tid) == (one.pid, one.tid);
        if found.len() >= MAX_STEPS || (one.pid, one.tid) == asks || found.iter().any(known) {
            break;
        }
        found.push(Step {
            pid: one.pid,
            tid: one.tid,
            process: &one.process,
            thread: &one.thread,
            doing: one.doing,
            ns: one.ns,
        });
        let own = report.waits.iter().filter(|wait| {
            let same = wait.asker.pid == one.pid && (one.tid == 0 || wait.asker.tid == one.tid);
            same && !wait.cause.on_cpu() && one.doing.is_none_or(|doing| doing == wait.cause)
        });
        holder = own
            .max_by_key(|wait| wait.ns)
            .and_then(|wait| wait.held_by.as_ref());
    }
    found
}

/// The thread at which the time of an entry's largest wait arrived, where that is not one of those that wait.
fn went_to<'a>(entry: &Entry<'a>) -> Option<&'a Link> {
    let link = entry.largest()?.chain.last()?;
    let asks = |(wait, _): &(&Wait, Ns)| (wait.asker.pid, wait.asker.tid) == (link.pid, link.tid);
    (!entry.members.iter().any(asks)).then_some(link)
}

/// Where in its own code a holder stood: `Feed.load, Feed.java:11`. Of one that only ended a wait that says nothing.
fn stands(holder: &Holder) -> Option<String> {
    let frame = holder.frame.as_deref().filter(|_| holder.how_known.holds())?;
    let file = holder.file.as_deref()?.rsplit('/').next()?;
    Some(format!("{frame}, {file}:{}", holder.line?))
}

/// What the holder is to the waiter, as a label, and how that is known where the label does not say it.
fn relation(holder: &Holder) -> (&'static str, Option<&'static str>) {
    match holder.how_known {
        HowKnown::MutexOwner => ("held by", Some("mutex owner")),
        HowKnown::PiFutex => ("held by", Some("lock owner")),
        HowKnown::FileLock => ("held by", Some("file lock")),
        HowKnown::Semaphore => ("held by", Some("last user of the semaphore")),
        HowKnown::QueueReceiver => ("receives", Some("last receiver of the queue")),
        HowKnown::SessionLock => ("behind", Some("the database's table of locks")),
        HowKnown::KernelLock => ("held by", Some("kernel lock owner")),
        HowKnown::RobustList => ("held by", Some("lock owner, robust list")),
        HowKnown::Vmstructs => ("held by", Some("lock owner, JVM")),
        HowKnown::Dump => ("held by", Some("lock owner, thread dump")),
        HowKnown::Monitor => ("held by", Some("monitor owner")),
        HowKnown::Interpreter => ("held by", Some("lock owner, interpreter")),
        HowKnown::LastToStop => ("slowest", Some("last thread to reach the safepoint")),
        HowKnown::PipePeer | HowKnown::SocketPeer => ("peer", None),
        HowKnown::Child => ("child", None),
        HowKnown::FuseDaemon => ("served by", Some("FUSE daemon")),
        HowKnown::Tracer => ("traced by", None),
        HowKnown::Waker => ("woken by", None),
    }
}
