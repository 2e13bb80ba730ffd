//! Workers of a server all of whom wait for an answer that only one of them could give.
//!
//! The problem: such workers ask a proxy, or their own port, and the request comes back into their own queue. No wait of the kernel joins the
//! proxy to them: it has asked nobody in particular. In: waits for answers, and the kernel's tables. Out: who asks there, waits for the process
//! that the workers belong to, because all of its workers wait. A worker has one thread, which sleeps in a call for one thing: an event loop
//! that has asked something goes on.

use super::looked_up::named;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Awaited, Quote, SeenPool, SeenProcess, SeenWait, Short};
use holdup_knowledge::functions;
use holdup_proc::conversations::{self, Connection};
use holdup_proc::led_back::{self, Led, Tables};
use holdup_proc::listen_queues::ListenQueue;
use holdup_proc::root::text_if_there;
use holdup_proc::sockets::{self, Sockets};
use holdup_proc::{Root, descriptors, names, tasks};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// For how long each worker has waited at least.
const MIN_NS: Ns = 1_000_000_000;

/// Listeners that are looked at, those with most clients first.
const LISTENERS_MAX: usize = 16;

/// The function in which an event loop sleeps.
const LOOP: &str = "ep_poll";

/// A listener with clients in its queue.
struct Door {
    inode: u64,
    at: String,
    waiting: u32,
}

/// Adds those waits.
pub(super) fn add(
    root: &Root,
    own: u32,
    connections: &[Connection],
    queues: &[ListenQueue],
    quote: &Quote,
    waits: &mut Vec<SeenWait>,
) {
    // Nobody waits for itself who waits for nobody.
    let asks: BTreeSet<u32> = waits
        .iter()
        .filter(|wait| asks(wait))
        .map(|wait| wait.waiter.pid)
        .collect();
    if asks.is_empty() {
        return;
    }
    let sockets = sockets::read(root, own);
    let doors = doors(queues, &sockets);
    if doors.is_empty() {
        return;
    }
    let holders = descriptors::socket_holders(root, own);
    // Of a part of the connections or of the descriptors nothing follows.
    if !holders.whole || conversations::read_whole().is_none() {
        return;
    }
    let holders = holders.of;
    let tables = Tables {
        connections,
        queues,
        sockets: &sockets,
    };
    for door in doors {
        let Some(pool) = Pool::of(root, &door, &holders, &asks) else {
            continue;
        };
        let first = |inode: u64| holders.get(&inode)?.first().copied();
        let led = led_back::to(root, door.inode, &pool.workers, tables, first);
        let found = pool.waits(root, &door, &led, waits);
        waits.extend(found.into_iter().map(|wait| SeenWait {
            quote: quote.clone(),
            ..wait
        }));
    }
}

/// Whether somebody waits for an answer, for long enough.
fn asks(wait: &SeenWait) -> bool {
    wait.on == Awaited::Answer && wait.ns >= MIN_NS && wait.holder.is_some()
}

/// Listeners at which clients wait.
fn doors(queues: &[ListenQueue], sockets: &Sockets) -> Vec<Door> {
    let tcp = queues.iter().map(|queue| Door {
        inode: queue.inode,
        at: queue.address.to_string(),
        waiting: queue.waiting,
    });
    let unix = sockets.unix.iter().filter(|(_, one)| one.listens);
    let unix = unix.map(|(inode, one)| Door {
        inode: *inode,
        at: one.path.clone(),
        waiting: one.waiting.unwrap_or(0),
    });
    let mut doors: Vec<Door> = tcp.chain(unix).filter(|door| door.waiting > 0).collect();
    doors.sort_by(|one, other| (other.waiting, &one.at).cmp(&(one.waiting, &other.at)));
    doors.truncate(LISTENERS_MAX);
    doors
}

/// The workers of a listener.
struct Pool {
    workers: BTreeSet<u32>,
    /// Who has started them, or the first of them.
    server: u32,
}

impl Pool {
    /// Those that take clients there, if all of them wait for an answer.
    fn of(root: &Root, door: &Door, holders: &HashMap<u64, Vec<u32>>, asks: &BTreeSet<u32>) -> Option<Pool> {
        let all = holders.get(&door.inode)?;
        let parents: BTreeSet<u32> = all.iter().filter_map(|pid| names::parent(root, *pid)).collect();
        // A parent whose children take clients takes none itself.
        let workers: BTreeSet<u32> = all.iter().copied().filter(|pid| !parents.contains(pid)).collect();
        let waits = |pid: &u32| asks.contains(pid) && stands(root, *pid);
        if workers.is_empty() || !workers.iter().all(waits) {
            return None;
        }
        let server = all.iter().find(|pid| parents.contains(pid)).or(all.first())?;
        Some(Pool {
            workers,
            server: *server,
        })
    }

    /// What follows: each worker waits for one of those that lead back.
    fn waits(&self, root: &Root, door: &Door, led: &[Led], waits: &[SeenWait]) -> Vec<SeenWait> {
        let mut through: BTreeMap<u32, &SeenWait> = BTreeMap::new();
        let mut longest = 0;
        for worker in &self.workers {
            let own = waits
                .iter()
                .filter(|wait| wait.waiter.pid == *worker && wait.ns >= MIN_NS);
            let back = |wait: &&SeenWait| {
                let holder = wait.holder.as_ref().map(|holder| holder.pid);
                asks(wait) && holder.is_some_and(|pid| led.iter().any(|one| one.pid == pid))
            };
            // Who waits for somebody else, too, or for another machine, may wait for that.
            let (back, others): (Vec<&SeenWait>, Vec<&SeenWait>) = own.partition(back);
            let Some(wait) = back
                .into_iter()
                .max_by_key(|wait| wait.ns)
                .filter(|_| others.is_empty())
            else {
                return Vec::new();
            };
            longest = wait.ns.max(longest);
            through.insert(wait.holder.as_ref().map_or(0, |holder| holder.pid), wait);
        }
        let Some(asked) = through.values().next() else {
            return Vec::new();
        };
        let pids = led.iter().map(|one| one.pid).chain([self.server]).collect();
        let known = named(root, pids);
        let process = |pid: u32| SeenProcess {
            pid,
            name: known.get(&pid).cloned().unwrap_or_default(),
            ..SeenProcess::default()
        };
        let queued = led.iter().map(|one| one.queued).fold(0, u32::saturating_add);
        let pool = SeenPool {
            workers: u32::try_from(self.workers.len()).unwrap_or(u32::MAX),
            queued,
            through: asked
                .holder
                .as_ref()
                .map(|holder| holder.name.clone())
                .unwrap_or_default(),
            at: asked.name.clone(),
        };
        let at_door = led.iter().filter(|one| one.queued > 0);
        let wait = |one: &Led| SeenWait {
            waiter: process(one.pid),
            on: Awaited::OwnPool,
            name: door.at.clone(),
            holder: Some(process(self.server)),
            ns: longest,
            alone: true,
            short: Short::Pool(pool.clone()),
            ..SeenWait::default()
        };
        at_door.map(wait).collect()
    }
}

/// Whether a process has one thread, which sleeps in a call for one thing.
fn stands(root: &Root, pid: u32) -> bool {
    let text = text_if_there(&root.proc.join(format!("{pid}/wchan"))).unwrap_or_default();
    let function = functions::plain(text.trim());
    tasks::threads(root, pid).len() == 1 && !function.is_empty() && function != "0" && function != LOOP
}

#[cfg(test)]
mod tests {
    use super::{Door, Pool};
    use holdup_evidence::observed::{Awaited, SeenProcess, SeenWait, Short};
    use holdup_proc::Root;
    use holdup_proc::led_back::Led;
    use std::collections::{BTreeSet, HashMap};
    use std::path::Path;

    const S: u64 = 1_000_000_000;

    fn process(folder: &Path, pid: u32, parent: u32, wchan: &str) {
        let at = folder.join(format!("proc/{pid}"));
        std::fs::create_dir_all(at.join(format!("task/{pid}"))).unwrap();
        std::fs::write(at.join("wchan"), wchan).unwrap();
        std::fs::write(at.join("status"), format!("Name:\tphp-fpm\nPPid:\t{parent}\n")).unwrap();
        std::fs::write(at.join("comm"), "php-fpm\n").unwrap();
    }

    fn wait(waiter: u32, holder: u32) -> SeenWait {
        let of = |pid| SeenProcess {
            pid,
            ..SeenProcess::default()
        };
        SeenWait {
            waiter: of(waiter),
            holder: Some(of(holder)),
            name: "127.0.0.1:80".to_owned(),
            ns: 9 * S,
            ..SeenWait::default()
        }
    }

    /// Workers 11 and 12 of 10, and the proxy 30. `second`: the kernel's function in which the second one sleeps.
    fn found(second: &str, waits: &[SeenWait], led: &[Led]) -> Vec<(u32, u32, u32)> {
        let folder = tempfile::tempdir().unwrap();
        process(folder.path(), 10, 1, "ep_poll");
        process(folder.path(), 11, 10, "wait_woken");
        process(folder.path(), 12, 10, second);
        let root = Root::below(folder.path());
        let door = Door {
            inode: 7,
            at: "/run/www.sock".to_owned(),
            waiting: 3,
        };
        let holders = HashMap::from([(7, vec![10, 11, 12])]);
        let asks: BTreeSet<u32> = waits.iter().map(|wait| wait.waiter.pid).collect();
        let Some(pool) = Pool::of(&root, &door, &holders, &asks) else {
            return Vec::new();
        };
        let found = pool.waits(&root, &door, led, waits).into_iter();
        let each = |wait: SeenWait| {
            assert_eq!(wait.on, Awaited::OwnPool);
            let Short::Pool(pool) = wait.short else {
                panic!("{:?}", wait.short)
            };
            (wait.waiter.pid, wait.holder.unwrap().pid, pool.workers)
        };
        found.map(each).collect()
    }

    #[test]
    fn a_proxy_that_all_workers_wait_for_waits_for_their_server() {
        let led = [Led { pid: 30, queued: 3 }];
        let both = [wait(11, 30), wait(12, 30)];
        assert_eq!(found("do_poll.constprop.0", &both, &led), [(30, 10, 2)]);
    }

    #[test]
    fn one_worker_that_is_free_or_an_event_loop_is_enough() {
        let led = [Led { pid: 30, queued: 3 }];
        assert_eq!(
            found("inet_csk_accept", &[wait(11, 30)], &led),
            [],
            "it waits for clients"
        );
        assert_eq!(
            found("ep_poll", &[wait(11, 30), wait(12, 30)], &led),
            [],
            "an event loop"
        );
    }

    #[test]
    fn who_waits_for_somebody_else_is_in_no_circle() {
        let led = [Led { pid: 30, queued: 3 }];
        assert_eq!(found("wait_woken", &[wait(11, 30), wait(12, 40)], &led), []);
        let three = [wait(11, 30), wait(12, 30), wait(12, 40)];
        assert_eq!(found("wait_woken", &three, &led), [], "it may wait for the other");
        assert_eq!(found("wait_woken", &[wait(11, 30), wait(12, 30)], &[]), []);
        let far = SeenWait {
            holder: None,
            name: "192.0.2.7:443".to_owned(),
            ..wait(12, 0)
        };
        let three = [wait(11, 30), wait(12, 30), far];
        assert_eq!(
            found("wait_woken", &three, &led),
            [],
            "another machine may owe it an answer"
        );
    }
}
