//! Windows and the time line, made from what was counted and kept.
//!
//! The problem: what a piece was for is reported twice, as it is booked and again at the end, when user stacks and samples split one
//! site into several rows; windows and pieces have to agree with the rows all the same. The choice: a site's windows are dealt out to
//! the causes of its rows so that both sums are kept; and of each site the pieces that are shown are taken from its windows,
//! whatever their cause, before the rest is reported.
//!
//! In: ledgers with their rows, and pieces. Out: [`Window`]s and the [`Timeline`].

use super::cpu::apportion;
use super::ledger::Ledger;
use super::path::{Key, Path};
use super::pieces::{By, Piece, Pieces};
use super::task_table::{Identity, Named, TaskTable};
use super::what::{Role, WhatId, Whats};
use super::windows::Axis;
use holdup_evidence::{Cause, Ns, ThreadId, UserStackId};
use holdup_model::attributed::{AttributedWait, ThreadName};
use holdup_model::timeline::{EndedBy, Piece as Shown, Rest, Task, Timeline, Window};
use std::collections::{BTreeMap, HashMap};

/// Where a row comes from.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The site, by its place in the ledger.
    pub(super) site: usize,
    /// The user stacks that it stands for, where several rows share the site.
    pub(super) stacks: Vec<UserStackId>,
}

impl Origin {
    /// The only rows of a site.
    pub(super) fn of(site: usize) -> Origin {
        Origin {
            site,
            stacks: Vec::new(),
        }
    }
}

/// Time that pieces are taken from: that of one site, or all on a CPU.
#[derive(Debug, Default)]
struct Pool {
    causes: BTreeMap<Cause, Vec<Ns>>,
    /// Rows, by their place among all.
    rows: Vec<(usize, Cause, Vec<UserStackId>)>,
}

/// An entry among the threads.
struct Lane {
    name: ThreadName,
    pools: Vec<Pool>,
    of: HashMap<WhatId, usize>,
}

/// The path's time by the cause that it was booked under, and by what that came to be in the rows.
type OnPath = BTreeMap<Cause, BTreeMap<Cause, Ns>>;

/// Makes windows and the time line.
pub(super) struct When {
    axis: Axis,
    end: Ns,
    count: usize,
    lanes: Vec<Lane>,
    /// Lanes of threads that have one of their own.
    single: HashMap<ThreadId, usize>,
    on_path: OnPath,
}

impl When {
    /// For an observation that ended at `end`.
    pub(super) fn new(mut axis: Axis, end: Ns) -> When {
        let count = axis.count(end);
        When {
            axis,
            end,
            count,
            lanes: Vec::new(),
            single: HashMap::new(),
            on_path: OnPath::new(),
        }
    }

    /// Adds the next entry among the threads; its rows are the next ones from `first` on.
    pub(super) fn add(
        &mut self,
        ledger: &Ledger,
        name: &ThreadName,
        (rows, origins, first): (&[AttributedWait], &[Origin], usize),
        whats: &Whats,
    ) {
        let mut totals: HashMap<usize, BTreeMap<Cause, Ns>> = HashMap::new();
        for (row, origin) in rows.iter().zip(origins) {
            let total = totals
                .entry(origin.site)
                .or_default()
                .entry(row.cause)
                .or_default();
            *total = total.saturating_add(row.ns);
        }
        for (row, origin) in rows.iter().zip(origins).filter(|(row, _)| row.path_ns > 0) {
            // A path has all CPU time of a thread under one key, but for interrupts.
            let what = match whats.get(ledger.sites[origin.site].what) {
                what if what.role == Role::CpuClass => whats.get(ledger.sites[Ledger::CPU].what),
                what => what,
            };
            let found = self
                .on_path
                .entry(what.cause)
                .or_default()
                .entry(row.cause)
                .or_default();
            *found = found.saturating_add(row.path_ns);
        }
        let mut lane = Lane {
            name: name.clone(),
            pools: vec![Pool::default()],
            of: HashMap::new(),
        };
        let on_cpu = self.on_cpu(ledger, &totals, whats);
        lane.pools[0].causes = on_cpu;
        for (at, site) in ledger.sites.iter().enumerate() {
            let pool = match whats.get(site.what).role {
                Role::Cpu | Role::CpuClass | Role::Interrupt => 0,
                Role::Queue | Role::Lost | Role::Throttled | Role::Wait => {
                    let windows = site.windows.clone().of_windows(&self.axis, self.count);
                    let empty = BTreeMap::new();
                    let causes = by_cause(&windows, totals.get(&at).unwrap_or(&empty));
                    lane.pools.push(Pool {
                        causes,
                        rows: Vec::new(),
                    });
                    lane.pools.len() - 1
                }
            };
            lane.of.insert(site.what, pool);
        }
        for (at, (row, origin)) in rows.iter().zip(origins).enumerate() {
            let pool = lane.of[&ledger.sites[origin.site].what];
            lane.pools[pool]
                .rows
                .push((first + at, row.cause, origin.stacks.clone()));
        }
        if let Some(thread) = ledger.thread {
            self.single.insert(thread, self.lanes.len());
        }
        for vector in lane.pools.iter().flat_map(|pool| pool.causes.values()) {
            self.count = self.count.max(vector.len());
        }
        self.lanes.push(lane);
    }

    /// All time on a CPU, by cause: that of interrupts exactly, the other as its samples are spread.
    fn on_cpu(
        &self,
        ledger: &Ledger,
        totals: &HashMap<usize, BTreeMap<Cause, Ns>>,
        whats: &Whats,
    ) -> BTreeMap<Cause, Vec<Ns>> {
        let look_up = |site: usize| {
            ledger.sites[site]
                .windows
                .clone()
                .of_windows(&self.axis, self.count)
        };
        let empty = BTreeMap::new();
        let of = |site: usize| totals.get(&site).unwrap_or(&empty);
        let role = |site: &usize| whats.get(ledger.sites[*site].what).role;
        let sites = 0..ledger.sites.len();
        let classes: Vec<usize> = sites
            .clone()
            .filter(|site| role(site) == Role::CpuClass && !of(*site).is_empty())
            .collect();
        let windows = look_up(Ledger::CPU);
        let mut causes = by_cause(&windows, of(Ledger::CPU));
        if !classes.is_empty() {
            let sums: Vec<Ns> = classes.iter().map(|class| of(*class).values().sum()).collect();
            let mut samples: Vec<Vec<u64>> = classes.iter().map(|class| look_up(*class)).collect();
            for samples in &mut samples {
                samples.resize(windows.len(), 0);
            }
            for (class, windows) in classes.iter().zip(deal(&windows, &sums, Some(&samples))) {
                add_all(&mut causes, by_cause(&windows, of(*class)));
            }
        }
        for site in sites.filter(|site| role(site) == Role::Interrupt) {
            add_all(&mut causes, by_cause(&look_up(site), of(site)));
        }
        causes
    }

    /// The windows, but for what was counted elsewhere.
    pub(super) fn windows(&self) -> Vec<Window> {
        let began = self.axis.began();
        let width = self.axis.width();
        let mut windows: Vec<Window> = (0..self.count as u64)
            .map(|index| {
                let from = index.saturating_mul(width);
                let left = self.end.saturating_sub(began).saturating_sub(from);
                Window {
                    from,
                    ns: if left == 0 { width } else { left.min(width) },
                    ..Window::default()
                }
            })
            .collect();
        for (cause, vector) in self
            .lanes
            .iter()
            .flat_map(|lane| &lane.pools)
            .flat_map(|pool| &pool.causes)
        {
            for (window, ns) in windows.iter_mut().zip(vector).filter(|(_, ns)| **ns > 0) {
                let sum = window.causes.entry(*cause).or_default();
                *sum = sum.saturating_add(*ns);
            }
        }
        windows
    }

    /// Adds the path to windows. `causes`: under which cause each key's time was booked; `before`: what is nobody's own.
    pub(super) fn path(&self, path: &Path, causes: &HashMap<Key, Cause>, before: Ns, windows: &mut [Window]) {
        let mut booked: BTreeMap<Cause, Vec<Ns>> = BTreeMap::new();
        let mut had: HashMap<Key, Ns> = HashMap::new();
        let width = self.axis.width();
        for (at, entries) in path.at_borders(width) {
            let window = usize::try_from(at.saturating_sub(1) / width).unwrap_or(usize::MAX);
            let window = window.min(windows.len().saturating_sub(1));
            for (key, share) in entries {
                let had = had.insert(key, share.ns).unwrap_or(0);
                let cause = causes.get(&key).copied().unwrap_or(Cause::Unknown);
                let sums = booked.entry(cause).or_default();
                sums.resize(windows.len(), 0);
                if let Some(sum) = sums.get_mut(window) {
                    *sum = sum.saturating_add(share.ns.saturating_sub(had));
                }
            }
        }
        let mut found = self.on_path.clone();
        if before > 0 {
            let unknown = found
                .entry(Cause::Unknown)
                .or_default()
                .entry(Cause::Unknown)
                .or_default();
            *unknown = unknown.saturating_add(before);
        }
        for (cause, sums) in booked {
            for (cause, sums) in by_cause(&sums, found.get(&cause).unwrap_or(&BTreeMap::new())) {
                for (window, ns) in windows.iter_mut().zip(sums).filter(|(_, ns)| *ns > 0) {
                    let sum = window.path.entry(cause).or_default();
                    *sum = sum.saturating_add(ns);
                }
            }
        }
    }

    /// Where windows begin, and how long they are.
    pub(super) fn axis(&self) -> &Axis {
        &self.axis
    }

    /// The time line. `folded`: of threads without an entry of their own, which entry they are part of. Rows and threads are by
    /// their place in `rows` and `threads` afterwards.
    pub(super) fn timeline(
        mut self,
        pieces: Pieces,
        folded: &HashMap<ThreadId, usize>,
        table: &TaskTable,
        whats: &mut Whats,
        (rows, threads): (&[u32], &[u32]),
    ) -> Timeline {
        let (pieces, mut left_out) = pieces.into_parts();
        let mut found = Timeline::default();
        let mut tasks = Tasks::default();
        let mut taken: Vec<HashMap<usize, BTreeMap<Cause, Vec<Ns>>>> =
            self.lanes.iter().map(|_| HashMap::new()).collect();
        for (piece, stack) in pieces {
            let lane = self.lane_of(piece.thread, folded);
            let pool = lane.and_then(|lane| {
                let of = &self.lanes[lane].of;
                of.get(&piece.what)
                    .or_else(|| of.get(&whats.coarse(piece.what)))
                    .copied()
            });
            let (Some(lane), Some(pool)) = (lane, pool) else {
                left_out += 1;
                continue;
            };
            let (wait, cause) = row_of(&self.lanes[lane].pools[pool], &piece, stack, whats);
            let taken = taken[lane].entry(pool).or_default().entry(cause).or_default();
            self.cut(&piece, taken);
            let task = tasks.thread(piece.thread, piece.identity, &self, folded, table, threads);
            let ended_by = match piece.by {
                By::Nobody => None,
                By::Thread(id, identity) => Some(EndedBy::Task(
                    tasks.thread(id, identity, &self, folded, table, threads),
                )),
                By::Task(named) => Some(EndedBy::Task(tasks.outside(named, table))),
                By::Timer => Some(EndedBy::Timer),
                By::Device => Some(EndedBy::Device),
                By::Interrupt => Some(EndedBy::Interrupt),
                By::Unknown => Some(EndedBy::Unknown),
            };
            found.pieces.push(Shown {
                task,
                start: piece.start.saturating_sub(self.axis.began()),
                ns: piece.end.saturating_sub(piece.start),
                cause,
                wait: wait.map(|row| rows[row]),
                ended_by,
                before: piece.before,
                open: piece.open,
            });
        }
        for (lane, mut taken) in self
            .lanes
            .iter_mut()
            .zip(taken)
            .enumerate()
            .map(|(at, both)| ((at, both.0), both.1))
        {
            let (at, lane) = lane;
            let mut rest: BTreeMap<Cause, Vec<Ns>> = BTreeMap::new();
            for (pool, its) in lane.pools.iter_mut().enumerate() {
                let causes = std::mem::take(&mut its.causes);
                add_all(&mut rest, less(causes, &taken.remove(&pool).unwrap_or_default()));
            }
            found.rest.extend(rest.into_iter().filter_map(|(cause, ns)| {
                let first = ns.iter().position(|ns| *ns > 0)?;
                let last = ns.iter().rposition(|ns| *ns > 0)?;
                Some(Rest {
                    thread: threads[at],
                    cause,
                    first: u32::try_from(first).expect("there are few windows"),
                    ns: ns[first..=last].to_vec(),
                })
            }));
        }
        found.pieces.sort_by_key(|piece| (piece.task, piece.start));
        found.rest.sort_by_key(|rest| (rest.thread, rest.cause));
        found.tasks = tasks.list;
        found.left_out = left_out;
        found
    }

    fn lane_of(&self, thread: ThreadId, folded: &HashMap<ThreadId, usize>) -> Option<usize> {
        self.single.get(&thread).or_else(|| folded.get(&thread)).copied()
    }

    /// Adds a piece, cut at the borders of windows.
    fn cut(&self, piece: &Piece, sums: &mut Vec<Ns>) {
        sums.resize(self.count, 0);
        let (began, width) = (self.axis.began(), self.axis.width());
        let mut from = piece.start.saturating_sub(began);
        let until = piece.end.saturating_sub(began);
        while from < until {
            let index = usize::try_from(from / width).unwrap_or(usize::MAX);
            let border = (from / width + 1).saturating_mul(width).min(until);
            let index = index.min(self.count.saturating_sub(1));
            if let Some(sum) = sums.get_mut(index) {
                *sum = sum.saturating_add(border - from);
            }
            from = border;
        }
    }
}

/// Tasks by their place in a list.
#[derive(Default)]
struct Tasks {
    list: Vec<Task>,
    threads: HashMap<ThreadId, u32>,
    others: HashMap<(u32, u32), u32>,
}

impl Tasks {
    fn push(&mut self, task: Task) -> u32 {
        self.list.push(task);
        u32::try_from(self.list.len() - 1).expect("two tasks a piece at most")
    }

    fn thread(
        &mut self,
        id: ThreadId,
        identity: Identity,
        when: &When,
        folded: &HashMap<ThreadId, usize>,
        table: &TaskTable,
        threads: &[u32],
    ) -> u32 {
        if let Some(known) = self.threads.get(&id) {
            return *known;
        }
        let own = when.single.get(&id).map(|lane| when.lanes[*lane].name.clone());
        let task = self.push(Task {
            name: own.unwrap_or_else(|| table.describe(&table.named(&identity))),
            thread: when.lane_of(id, folded).map(|lane| threads[lane]),
        });
        self.threads.insert(id, task);
        task
    }

    fn outside(&mut self, named: Named, table: &TaskTable) -> u32 {
        if let Some(known) = self.others.get(&(named.pid, named.tid)) {
            return *known;
        }
        let task = self.push(Task {
            name: table.describe(&named),
            thread: None,
        });
        self.others.insert((named.pid, named.tid), task);
        task
    }
}

/// The row that a piece belongs to, and its cause. A piece whose user stack is not known is of its site's only row, or of none.
fn row_of(pool: &Pool, piece: &Piece, stack: Option<UserStackId>, whats: &Whats) -> (Option<usize>, Cause) {
    let what = whats.get(piece.what);
    if !matches!(what.role, Role::Wait) {
        let mut rows = pool.rows.iter().filter(|row| row.1 == what.cause);
        let only = rows.next().filter(|_| rows.next().is_none());
        return (only.map(|row| row.0), what.cause);
    }
    let asked = stack.and_then(|stack| pool.rows.iter().find(|row| row.2.contains(&stack)));
    let only = match pool.rows.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    match asked.or(only) {
        Some(row) => (Some(row.0), row.1),
        None => match pool.rows.first() {
            Some(first) if pool.rows.iter().all(|row| row.1 == first.1) => (None, first.1),
            _ => (None, what.cause),
        },
    }
}

/// Windows dealt out to causes that have these totals.
fn by_cause(windows: &[Ns], totals: &BTreeMap<Cause, Ns>) -> BTreeMap<Cause, Vec<Ns>> {
    let sums: Vec<Ns> = totals.values().copied().collect();
    match totals.len() {
        0 => BTreeMap::new(),
        1 => totals.keys().map(|cause| (*cause, windows.to_vec())).collect(),
        _ => totals.keys().copied().zip(deal(windows, &sums, None)).collect(),
    }
}

/// Deals windows out to parts, so that each window and each part has its sum. Within that, a window is split as its weights say, or
/// else as what is left of the parts.
fn deal(windows: &[Ns], sums: &[Ns], weights: Option<&[Vec<u64>]>) -> Vec<Vec<Ns>> {
    let mut left = sums.to_vec();
    let mut dealt = vec![vec![0; windows.len()]; sums.len()];
    let weights = weights.map(|weights| scaled(windows, sums, weights));
    for (window, ns) in windows.iter().enumerate().filter(|(_, ns)| **ns > 0) {
        let wanted: Option<Vec<u64>> = weights
            .as_ref()
            .map(|weights| weights.iter().map(|one| one[window]).collect());
        let wanted = wanted.filter(|wanted| wanted.iter().any(|weight| *weight > 0));
        let wanted = apportion(*ns, wanted.as_deref().unwrap_or(&left));
        let mut more = *ns;
        for (part, wanted) in wanted.into_iter().enumerate() {
            let given = wanted.min(left[part]);
            dealt[part][window] = given;
            left[part] -= given;
            more -= given;
        }
        for (part, given) in apportion(more, &left).into_iter().enumerate() {
            dealt[part][window] += given;
            left[part] = left[part].saturating_sub(given);
        }
    }
    dealt
}

/// Weights, so scaled that windows split by them give each part about its sum.
fn scaled(windows: &[Ns], sums: &[Ns], weights: &[Vec<u64>]) -> Vec<Vec<u64>> {
    /// One is so much, for weights are whole numbers.
    const ONE: f64 = 1e6;
    let of_window = |window: usize| -> u64 { weights.iter().map(|one| one[window]).sum() };
    let all: Vec<u64> = (0..windows.len()).map(of_window).collect();
    let scale = |(sum, weights): (&Ns, &Vec<u64>)| -> Vec<u64> {
        let expected = windows.iter().zip(weights).zip(&all).filter(|(_, all)| **all > 0);
        let expected: f64 = expected
            .map(|((ns, weight), all)| *ns as f64 * *weight as f64 / *all as f64)
            .sum();
        let factor = if expected > 0.0 {
            *sum as f64 / expected
        } else {
            1.0
        };
        weights
            .iter()
            .map(|weight| (*weight as f64 * factor * ONE).round() as u64)
            .collect()
    };
    sums.iter().zip(weights).map(scale).collect()
}

fn add_all(sums: &mut BTreeMap<Cause, Vec<Ns>>, more: BTreeMap<Cause, Vec<Ns>>) {
    for (cause, vector) in more {
        let sum = sums.entry(cause).or_default();
        sum.resize(sum.len().max(vector.len()), 0);
        for (sum, ns) in sum.iter_mut().zip(vector) {
            *sum = sum.saturating_add(ns);
        }
    }
}

/// What is left of a pool without the pieces that are shown. Of each window that is exact; where a piece has another cause than the
/// window's time was dealt out to, what is left is split as the other causes are.
fn less(mut causes: BTreeMap<Cause, Vec<Ns>>, taken: &BTreeMap<Cause, Vec<Ns>>) -> BTreeMap<Cause, Vec<Ns>> {
    let windows = causes
        .values()
        .chain(taken.values())
        .map(Vec::len)
        .max()
        .unwrap_or(0);
    for window in 0..windows {
        let sum = |of: &BTreeMap<Cause, Vec<Ns>>| {
            let in_it = of.values().filter_map(|vector| vector.get(window));
            in_it.fold(0u64, |sum, ns| sum.saturating_add(*ns))
        };
        let shown = sum(taken);
        if shown == 0 {
            continue;
        }
        let rest = sum(&causes).saturating_sub(shown);
        let mut over = false;
        for (cause, vector) in &mut causes {
            let its = taken
                .get(cause)
                .and_then(|taken| taken.get(window))
                .copied()
                .unwrap_or(0);
            if let Some(ns) = vector.get_mut(window) {
                over |= its > *ns;
                *ns = ns.saturating_sub(its);
            }
        }
        over |= taken.keys().any(|cause| !causes.contains_key(cause));
        if over {
            let weights: Vec<Ns> = causes
                .values()
                .map(|vector| vector.get(window).copied().unwrap_or(0))
                .collect();
            for (vector, ns) in causes.values_mut().zip(apportion(rest, &weights)) {
                if let Some(left) = vector.get_mut(window) {
                    *left = ns;
                }
            }
        }
    }
    causes
}
