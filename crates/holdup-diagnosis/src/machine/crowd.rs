//! A disk that many short waits are for: none of them is long enough to be noticed, and together they are most of what some threads do.
//!
//! In: a disk as a root, with who waited for it, and all waits. Out: the program that used the disk most of those that nobody waits for,
//! if what others depend on waited meanwhile. A service that waits for its own writes alone has no crowd: that is what it does.

use super::ends::{Key, disk, is_of_disk};
use super::names::Names;
use super::roots::{Root, Waiter};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::{Attributed, AttributedWait, ThreadName};
use holdup_model::host_figures::HostFigure;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the observed time that a thread others depend on waits for a disk, from which that is most of what it does.
const MIN_WAITED_SHARE: f64 = 0.3;

/// A single wait of those from which each is noticed, nanoseconds: then [`MIN_ALL_NS`] of all are enough.
const MIN_NOTICED_NS: f64 = 100e6;

/// All such waits, below which they may be chance, nanoseconds.
const MIN_ALL_NS: Ns = 2_000_000_000;

/// A wait below which a disk that nobody else uses may take as long, nanoseconds: a flush of a solid-state disk takes up to so much.
const MIN_TYPICAL_NS: f64 = 3e6;

/// Share of the observed time for which another program waits for its own use of the disk, from which it keeps it busy. All of its threads.
const MIN_USED_SHARE: f64 = 0.25;

/// Who uses a disk while others wait for it.
#[derive(Debug, Clone)]
pub(crate) struct Crowd<'a> {
    /// The program.
    pub(crate) user: &'a str,
    /// Its process, if it is one.
    pub(crate) process: Option<&'a ThreadName>,
    /// How many processes of it there are, as far as they were distinguished.
    pub(crate) processes: usize,
    /// How long its threads waited for the disk.
    pub(crate) used: Ns,
    /// In how many waits.
    pub(crate) waits: u64,
    /// The call that most of that was in, and the bytes that it asked for.
    pub(crate) call: Option<(&'a str, Option<u64>)>,
    /// What a wait of the others typically takes.
    pub(crate) typical: Ns,
    /// For which part of the time the disk was busy.
    pub(crate) busy: Option<f64>,
}

/// Finds it, and leaves those who wait because of it in the root.
pub(super) fn find<'a>(root: &mut Root<'a>, attributed: &'a Attributed, names: &Names<'a>) {
    let Key::Disk(name) = &root.key else { return };
    let of_disk = |row: &&AttributedWait| is_of_disk(row.cause) && disk(Some(&row.resource)) == *name;
    let asked = |row: &&AttributedWait| {
        let one = &row.asker.name;
        root.is_asked(one) || (one.pid == 0 && root.asked.iter().any(|asked| asked.process == one.process))
    };
    let mut users: BTreeMap<&str, Vec<&'a AttributedWait>> = BTreeMap::new();
    for row in attributed.waits.iter().filter(of_disk).filter(|row| !asked(row)) {
        users.entry(names.program(&row.asker.name)).or_default().push(row);
    }
    let all = |rows: &[&AttributedWait]| rows.iter().map(|row| row.ns).fold(0, Ns::saturating_add);
    let Some((user, rows)) = users.into_iter().max_by_key(|(_, rows)| all(rows)) else {
        return;
    };
    let used = all(&rows);
    let depends: Vec<&Waiter<'_>> = dependants(root).collect();
    let held = depends.iter().map(|one| one.ns).fold(0, Ns::saturating_add);
    let typical = typical(&depends);
    let wall = attributed.wall as f64;
    let most = depends.iter().map(|one| one.ns).max().unwrap_or(0) as f64;
    let noticed = most >= wall * MIN_WAITED_SHARE || typical >= MIN_NOTICED_NS;
    if !noticed || held < MIN_ALL_NS || typical < MIN_TYPICAL_NS || (used as f64) < wall * MIN_USED_SHARE {
        return;
    }
    let asked_rows = attributed.waits.iter().filter(of_disk).filter(asked);
    // Of a flush a part may be spent in the journal: what most of their time was in is what they wait for.
    if let Some((cause, row)) = mostly(asked_rows) {
        (root.cause, root.resource) = (Some(cause), Some(&row.resource));
    }
    let process = &rows[0].asker.name;
    let one = process.pid != 0 && rows.iter().all(|row| row.asker.name.pid == process.pid);
    let pids: BTreeSet<u32> = rows.iter().map(|row| row.asker.name.pid).collect();
    let longest = rows.iter().max_by_key(|row| row.ns);
    root.crowd = Some(Crowd {
        user,
        process: one.then_some(process),
        processes: pids.len(),
        used,
        waits: rows.iter().map(|row| row.count).fold(0, u64::saturating_add),
        call: longest.and_then(|row| Some((row.call.as_deref()?, row.bytes))),
        typical: typical as Ns,
        busy: busy(attributed, name),
    });
    let asked = std::mem::take(&mut root.asked);
    root.own
        .retain(|one| asked.iter().any(|asked| asked.pid == one.name.pid));
    root.behind.retain(|one| one.depends);
    root.asked = asked;
}

/// The cause that most of the time of these waits is in, and the longest wait of it.
fn mostly<'a>(rows: impl Iterator<Item = &'a AttributedWait>) -> Option<(Cause, &'a AttributedWait)> {
    let mut causes: BTreeMap<Cause, (Ns, &'a AttributedWait)> = BTreeMap::new();
    for row in rows {
        let of = causes.entry(row.cause).or_insert((0, row));
        of.0 = of.0.saturating_add(row.ns);
        if row.ns > of.1.ns {
            of.1 = row;
        }
    }
    let (cause, (_, row)) = causes.into_iter().max_by_key(|(_, (ns, _))| *ns)?;
    Some((cause, row))
}

/// Those who wait because somebody asked them, or asked somebody who does.
fn dependants<'b, 'a>(root: &'b Root<'a>) -> impl Iterator<Item = &'b Waiter<'a>> {
    let own = root.own.iter().filter(|one| root.is_asked(one.name));
    own.chain(root.behind.iter().filter(|one| one.depends))
}

/// How long one of these waits is, as an instant of them sees it.
fn typical(waiters: &[&Waiter<'_>]) -> f64 {
    let mut weighted = 0.0;
    let mut all = 0.0;
    for one in waiters {
        let ns = one.ns as f64;
        weighted += ns * ns / one.count.max(1) as f64;
        all += ns;
    }
    if all > 0.0 { weighted / all } else { 0.0 }
}

/// For which part of the time the disk was busy, as the kernel counts.
fn busy(attributed: &Attributed, disk: &str) -> Option<f64> {
    let figures = &attributed.host_figures;
    let line = figures
        .lines
        .iter()
        .find(|line| line.figure == HostFigure::DiskBusy && line.of == disk)?;
    let found = line.shares.iter().zip(&figures.stretches);
    let found = found.filter_map(|(share, stretch)| Some(((*share)?, stretch.ns as f64)));
    let (sum, ns) = found.fold((0.0, 0.0), |(sum, all), (share, ns)| (sum + share * ns, all + ns));
    (ns > 0.0).then(|| sum / ns)
}
