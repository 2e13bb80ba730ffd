//! Waits of several segments: those of one thread with one cause, resource and asker become one.

use super::percentile;
use super::threads::{Threads, Which};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;
use holdup_model::attributed::{AttributedWait, Holder, How, Pace, Queue, Resource};
use holdup_model::connections::TcpSeen;
use std::collections::{HashMap, HashSet};

/// Rows that are distinguished; of more, the smallest are one a process and cause. A day of an ordinary server comes to some
/// thousands, and a row takes about a kilobyte.
const MAX_ROWS: usize = 20_000;

/// Holders of a row that are kept.
const MOST_HOLDERS: usize = 16;

/// By what waits are one row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    thread: Which,
    cause: Cause,
    call: Option<String>,
    resource: Resource,
    frame: Option<String>,
    module: Option<String>,
    why_unknown: Option<String>,
    deadlock: bool,
    read_at: String,
}

/// All rows so far.
#[derive(Debug, Default)]
pub(super) struct Waits {
    rows: HashMap<Key, Row>,
}

/// A row, and the percentiles of its parts with how many waits each is of.
#[derive(Debug)]
struct Row {
    wait: AttributedWait,
    p50: Vec<(Ns, u64)>,
    p99: Vec<(Ns, u64)>,
}

impl Waits {
    /// Takes those of the first segment.
    pub(super) fn begin(&mut self, first: &mut Attributed, threads: &Threads) {
        self.add(std::mem::take(&mut first.waits), 0, threads);
    }

    /// Adds those of the next; `shift` brings its instants to the first one's clock.
    pub(super) fn add(&mut self, next: Vec<AttributedWait>, shift: i64, threads: &Threads) {
        // A process whose threads all stood as a segment ended, and which does something in the next, did not stand for good.
        let stands =
            |wait: &AttributedWait| wait.orphaned.as_ref().is_some_and(|orphaned| orphaned.all_of > 0);
        let seen: HashSet<u32> = next.iter().map(|wait| wait.asker.name.pid).collect();
        let standing: HashSet<u32> = next
            .iter()
            .filter(|wait| stands(wait))
            .map(|wait| wait.asker.name.pid)
            .collect();
        for row in self.rows.values_mut() {
            row.wait.open = false;
            let pid = row.wait.asker.name.pid;
            if seen.contains(&pid) && !standing.contains(&pid) && stands(&row.wait) {
                row.wait.orphaned = None;
            }
        }
        for mut wait in next {
            for at in [&mut wait.max_started, &mut wait.max_ended] {
                if *at > 0 {
                    *at = at.saturating_add_signed(shift);
                }
            }
            let key = Key {
                thread: threads.which(&wait.asker.name),
                cause: wait.cause,
                call: wait.call.clone(),
                resource: wait.resource.clone(),
                frame: wait.asker.frame.clone(),
                module: wait.asker.module.clone(),
                why_unknown: wait.why_unknown.clone(),
                deadlock: wait.deadlock,
                read_at: wait.read_at.clone(),
            };
            let (p50, p99) = ((wait.p50, wait.count), (wait.p99, wait.count));
            match self.rows.get_mut(&key) {
                Some(row) => {
                    row.p50.push(p50);
                    row.p99.push(p99);
                    add(&mut row.wait, wait);
                }
                None => {
                    let (p50, p99) = (vec![p50], vec![p99]);
                    self.rows.insert(key, Row { wait, p50, p99 });
                }
            }
        }
    }

    /// Longest first.
    pub(super) fn finish(self) -> Vec<AttributedWait> {
        let mut rows: Vec<AttributedWait> = self
            .rows
            .into_values()
            .map(|mut row| {
                row.wait.p50 = percentile(&mut row.p50, 50);
                row.wait.p99 = percentile(&mut row.p99, 99);
                row.wait
            })
            .collect();
        rows.sort_by(|one, other| order(one).cmp(&order(other)));
        if rows.len() > MAX_ROWS {
            // What rests is alike, and there is most of it.
            rows.sort_by_key(|row| row.cause.rests());
            let rest = rows.split_off(MAX_ROWS);
            rows.sort_by(|one, other| order(one).cmp(&order(other)));
            rows.extend(folded(rest));
        }
        rows
    }
}

/// Longest first, and always in the same order.
fn order(
    wait: &AttributedWait,
) -> (
    std::cmp::Reverse<Ns>,
    u32,
    u32,
    Cause,
    &str,
    Option<&str>,
    Option<&str>,
) {
    (
        std::cmp::Reverse(wait.ns),
        wait.asker.name.pid,
        wait.asker.name.tid,
        wait.cause,
        &wait.resource.name,
        wait.asker.frame.as_deref(),
        wait.call.as_deref(),
    )
}

/// One row a process and cause.
fn folded(rest: Vec<AttributedWait>) -> Vec<AttributedWait> {
    let mut rows: HashMap<(u32, String, Cause), AttributedWait> = HashMap::new();
    for mut wait in rest {
        let name = &mut wait.asker.name;
        let key = (name.pid, name.process.clone(), wait.cause);
        name.tid = 0;
        name.thread.clear();
        wait.resource = Resource {
            kind: wait.resource.kind,
            name: wait.resource.kind.many().to_owned(),
            ..Resource::default()
        };
        match rows.get_mut(&key) {
            Some(row) => add(row, wait),
            None => drop(rows.insert(key, wait)),
        }
    }
    let mut rows: Vec<AttributedWait> = rows.into_values().collect();
    rows.sort_by(|one, other| order(one).cmp(&order(other)));
    rows
}

/// Adds a row to one that is reported before it.
pub(crate) fn add(whole: &mut AttributedWait, next: AttributedWait) {
    let sum = |sum: &mut u64, part: u64| *sum = sum.saturating_add(part);
    if next.max > whole.max {
        whole.max = next.max;
        whole.max_started = next.max_started;
        whole.max_ended = next.max_ended;
        whole.bytes = next.bytes;
        whole.judged_by = next.judged_by;
    }
    if next.ns > whole.ns {
        // What is reported once is reported of the part that is most of it.
        whole.asker.stack = next.asker.stack;
        whole.kernel_stack = next.kernel_stack;
        whole.chain = next.chain;
    }
    whole.asker.name = next.asker.name;
    whole.outstanding = whole.outstanding.max(next.outstanding);
    sum(&mut whole.ns, next.ns);
    sum(&mut whole.path_ns, next.path_ns);
    sum(&mut whole.handed_on_ns, next.handed_on_ns);
    sum(&mut whole.count, next.count);
    sum(&mut whole.held_open_ns, next.held_open_ns);
    sum(&mut whole.timed_out, next.timed_out);
    // Independent samples: variances add up.
    whole.error = (whole.error as f64).hypot(next.error as f64) as Ns;
    if next.how == How::Sampled {
        whole.how = How::Sampled;
    }
    whole.open = next.open;
    if whole.pace != next.pace {
        whole.pace = Pace::Unknown;
    }
    whole.orphaned = whole.orphaned.take().or(next.orphaned);
    holders(&mut whole.holders, next.holders);
    for (name, ns) in next.ran_instead {
        match whole.ran_instead.iter_mut().find(|ran| ran.0 == name) {
            Some(ran) => sum(&mut ran.1, ns),
            None => whole.ran_instead.push((name, ns)),
        }
    }
    whole.ran_instead.sort_by_key(|ran| std::cmp::Reverse(ran.1));
    whole.queue = match (whole.queue.take(), next.queue) {
        (Some(one), Some(other)) => Some(queue(one, other)),
        (one, other) => one.or(other),
    };
    whole.tcp = match (whole.tcp.take(), next.tcp) {
        (Some(one), Some(other)) => Some(tcp(one, other)),
        (one, other) => one.or(other),
    };
}

fn holders(whole: &mut Vec<Holder>, next: Vec<Holder>) {
    for holder in next {
        let same = |one: &&mut Holder| one.name == holder.name && one.how_known == holder.how_known;
        match whole.iter_mut().find(same) {
            Some(sum) => {
                if holder.ns > sum.ns {
                    sum.stack = holder.stack;
                    sum.place = holder.place;
                    sum.doing = holder.doing.or(sum.doing);
                }
                sum.ns = sum.ns.saturating_add(holder.ns);
            }
            None => whole.push(holder),
        }
    }
    whole.sort_by_key(|holder| std::cmp::Reverse(holder.ns));
    whole.truncate(MOST_HOLDERS);
}

fn queue(one: Queue, other: Queue) -> Queue {
    let union = |mut cpus: Vec<u32>, more: Vec<u32>| {
        cpus.extend(more);
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    };
    Queue {
        known: one.known.saturating_add(other.known),
        real_time: one.real_time.saturating_add(other.real_time),
        outranked: one.outranked.saturating_add(other.outranked),
        nice: other.nice,
        idle_class: other.idle_class,
        allowed_count: other.allowed_count,
        allowed: other.allowed,
        queued_on: union(one.queued_on, other.queued_on),
    }
}

fn tcp(one: TcpSeen, other: TcpSeen) -> TcpSeen {
    let sum = u64::saturating_add;
    TcpSeen {
        seen: sum(one.seen, other.seen),
        seen_ns: sum(one.seen_ns, other.seen_ns),
        held_back: sum(one.held_back, other.held_back),
        held_back_ns: sum(one.held_back_ns, other.held_back_ns),
        unanswered: sum(one.unanswered, other.unanswered),
        unanswered_ns: sum(one.unanswered_ns, other.unanswered_ns),
        repeated: one.repeated.max(other.repeated),
        retransmitted: sum(one.retransmitted, other.retransmitted),
        retransmitted_ns: sum(one.retransmitted_ns, other.retransmitted_ns),
        no_room: sum(one.no_room, other.no_room),
        no_room_ns: sum(one.no_room_ns, other.no_room_ns),
        throttled: sum(one.throttled, other.throttled),
        throttled_ns: sum(one.throttled_ns, other.throttled_ns),
        device: other.device.or(one.device),
    }
}

#[cfg(test)]
mod tests {
    use super::{Threads, Waits};
    use holdup_evidence::Cause;
    use holdup_model::attributed::{AttributedWait, Orphaned};

    fn wait(pid: u32, all_of: u64) -> AttributedWait {
        let all_else_has_defaults =
            serde_json::json!({"cause": Cause::LockFutex, "count": 1, "ns": 1_000_000_000});
        let mut wait: AttributedWait = serde_json::from_value(all_else_has_defaults).unwrap();
        wait.asker.name.pid = pid;
        wait.asker.name.tid = pid;
        wait.orphaned = (all_of > 0).then(|| Orphaned {
            all_of,
            ..Orphaned::default()
        });
        wait
    }

    /// How many threads are said to stand, of process 7, after two segments.
    fn stand(next: Vec<AttributedWait>) -> Option<u64> {
        let mut waits = Waits::default();
        let threads = Threads::default();
        waits.add(vec![wait(7, 4)], 0, &threads);
        waits.add(next, 0, &threads);
        let rows = waits.finish();
        let row = rows.iter().find(|row| row.asker.name.pid == 7)?;
        row.orphaned.as_ref().map(|orphaned| orphaned.all_of)
    }

    #[test]
    fn who_goes_on_in_the_next_segment_did_not_stand_for_good() {
        assert_eq!(stand(vec![wait(7, 0)]), None);
        assert_eq!(stand(vec![wait(7, 4)]), Some(4));
        // It may have been killed for it.
        assert_eq!(stand(vec![wait(8, 0)]), Some(4));
    }
}
