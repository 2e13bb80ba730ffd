//! Locks of files for which somebody tries again and again: the kernel lists nobody as waiting.
//!
//! In: the kernel's list of locks when a look begins and when it ends, and servers that owe answers. Out: the process that has had a file
//! locked all the while, of a server that has the same file open and sleeps between two tries, as SQLite does. It is an inference, and said
//! to be one.

use super::close_looks::{Close, Question};
use super::looked_up::named;
use holdup_evidence::observed::{Awaited, Quote, SeenProcess, SeenWait, Short};
use holdup_proc::Root;
use holdup_proc::root::text_if_there;
use std::collections::BTreeSet;

/// The function in which a thread sleeps for a time.
const SLEEP: &str = "hrtimer_nanosleep";

/// What a server may use of one CPU, percent, between its tries.
const MAX_CPU_PERCENT: u32 = 20;

/// Locks that are kept, and pairs of processes that are asked for.
const MAX_LOCKS: usize = 1_000;
const MAX_PAIRS: usize = 200;

/// Bytes of the list that are read.
const MAX_BYTES: usize = 1 << 20;

/// Processes that have had a file locked for writing since the look began, each with the kernel's name of that file.
#[derive(Debug)]
pub(super) struct Held(BTreeSet<(u32, String)>);

impl Held {
    /// Begins.
    pub(super) fn start(root: &Root) -> Held {
        Held(locked(root))
    }

    /// Adds who tries for them; `own` is the process that looks.
    pub(super) fn add(self, root: &Root, own: u32, quote: &Quote, waits: &mut Vec<SeenWait>) {
        let tries = |wait: &&SeenWait| match &wait.short {
            Short::Answer(owed) => {
                let sleeps = owed.sleeps.iter().any(|(function, _)| function == SLEEP);
                sleeps && owed.cpu_percent.is_some_and(|percent| percent < MAX_CPU_PERCENT)
            }
            _ => false,
        };
        let servers: BTreeSet<u32> = waits
            .iter()
            .filter(tries)
            .filter_map(|wait| Some(wait.holder.as_ref()?.pid))
            .collect();
        if servers.is_empty() {
            return;
        }
        let now = locked(root);
        let holders: BTreeSet<u32> = self.0.intersection(&now).map(|(pid, _)| *pid).collect();
        let pairs = servers.iter().flat_map(|waiter| {
            let others = holders
                .iter()
                .filter(move |holder| *holder != waiter && **holder != own);
            others.map(move |holder| (*waiter, *holder))
        });
        let pairs: Vec<(u32, u32)> = pairs.take(MAX_PAIRS).collect();
        let questions = pairs.iter().map(|(waiter, holder)| Question::Tried {
            waiter: *waiter,
            holder: *holder,
        });
        let answers = Close::start(root, questions.collect()).take();
        for (waiter, holder) in pairs {
            let Some(file) = answers.tried(waiter, holder) else {
                continue;
            };
            let of_waiter = waits
                .iter()
                .filter(|wait| wait.holder.as_ref().is_some_and(|one| one.pid == waiter));
            let ns = of_waiter.filter(tries).map(|wait| wait.ns).max().unwrap_or(0);
            let names = named(root, vec![waiter, holder]);
            let process = |pid: u32| SeenProcess {
                pid,
                name: names.get(&pid).cloned().unwrap_or_default(),
                ..SeenProcess::default()
            };
            waits.push(SeenWait {
                waiter: process(waiter),
                on: Awaited::TriedLock,
                name: file.to_owned(),
                holder: Some(process(holder)),
                ns,
                alone: true,
                quote: quote.clone(),
                ..SeenWait::default()
            });
        }
    }
}

/// Locks for writing, by who has them.
fn locked(root: &Root) -> BTreeSet<(u32, String)> {
    let mut text = text_if_there(&root.proc.join("locks")).unwrap_or_default();
    text.truncate(text.floor_char_boundary(MAX_BYTES));
    text.lines().filter_map(lock).take(MAX_LOCKS).collect()
}

/// `3: POSIX  ADVISORY  WRITE 4711 08:01:131 0 EOF`; one that is waited for begins with an arrow, and does not count.
fn lock(line: &str) -> Option<(u32, String)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let kind = words.next()?;
    let mode = words.nth(1)?;
    let pid = words.next()?.parse().ok()?;
    let file = words.next()?.to_owned();
    (matches!(kind, "POSIX" | "OFDLCK" | "FLOCK") && mode == "WRITE" && pid > 0).then_some((pid, file))
}

#[cfg(test)]
mod tests {
    use super::{Held, lock};
    use holdup_evidence::observed::{Awaited, Owed, Quote, SeenProcess, SeenWait, Short};
    use holdup_proc::Root;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_lock_has_a_holder_and_a_file() {
        let known = lock("3: POSIX  ADVISORY  WRITE 4711 08:01:131 0 EOF").unwrap();
        assert_eq!(known, (4711, "08:01:131".to_owned()));
        assert_eq!(lock("3: -> POSIX  ADVISORY  WRITE 4712 08:01:131 0 EOF"), None);
        assert_eq!(lock("4: POSIX  ADVISORY  READ 4711 08:01:131 0 EOF"), None);
    }

    #[test]
    fn a_server_that_sleeps_beside_a_file_that_another_one_has_locked_tries_for_it() {
        let folder = tempfile::tempdir().unwrap();
        for (pid, path, lock) in [
            (7, "/srv/shop.db", ""),
            (
                9,
                "/srv/shop.db",
                "lock:\t1: POSIX  ADVISORY  WRITE 9 08:01:131 0 EOF\n",
            ),
            (
                10,
                "/run/crond.pid",
                "lock:\t2: FLOCK  ADVISORY  WRITE 10 08:01:132 0 EOF\n",
            ),
        ] {
            let process = folder.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(process.join("fd")).unwrap();
            std::fs::create_dir_all(process.join("fdinfo")).unwrap();
            symlink(path, process.join("fd/3")).unwrap();
            std::fs::write(process.join("fdinfo/3"), format!("pos:\t0\n{lock}")).unwrap();
        }
        let locks =
            "1: POSIX  ADVISORY  WRITE 9 08:01:131 0 EOF\n2: FLOCK  ADVISORY  WRITE 10 08:01:132 0 EOF\n";
        std::fs::write(folder.path().join("proc/locks"), locks).unwrap();
        let root = Root::below(folder.path());
        let wait = |cpu: u32| SeenWait {
            waiter: SeenProcess {
                pid: 20,
                ..SeenProcess::default()
            },
            holder: Some(SeenProcess {
                pid: 7,
                ..SeenProcess::default()
            }),
            ns: 4_000_000_000,
            short: Short::Answer(Owed {
                came: true,
                cpu_percent: Some(cpu),
                sleeps: vec![("hrtimer_nanosleep".to_owned(), 1)],
                ..Owed::default()
            }),
            ..SeenWait::default()
        };
        let mut waits = vec![wait(1)];
        Held::start(&root).add(&root, 1, &Quote::default(), &mut waits);
        let [_, tried] = waits.as_slice() else {
            panic!("{waits:?}")
        };
        assert_eq!(
            (tried.on, tried.name.as_str()),
            (Awaited::TriedLock, "/srv/shop.db")
        );
        assert_eq!(
            (tried.waiter.pid, tried.holder.as_ref().unwrap().pid, tried.ns),
            (7, 9, 4_000_000_000)
        );
        let mut busy = vec![wait(90)];
        Held::start(&root).add(&root, 1, &Quote::default(), &mut busy);
        assert_eq!(busy.len(), 1);
    }
}
