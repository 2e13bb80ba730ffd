//! One ledger as the report has it: a row for each cause, resource and asker.
//!
//! In: a ledger whose part of the path is known. Out: rows whose times add up to the ledger's, whatever they
//! were split by.

use super::asker::{AskedOf, Asking, choose, may_be_told};
use super::chain;
use super::cpu::{Samples, apportion, split, standard_error};
use super::estimates;
use super::ledger::{Ledger, Owner};
use super::object_cache::ObjectCache;
use super::pace::Rhythm;
use super::row_names::{name_function, name_interrupts};
use super::site::{Site, StackTally};
use super::spins::spinning;
use super::task_table::{NameId, TaskTable};
use super::timeline::Origin;
use super::what::{Role, Whats};
use super::{ByUserStack, OfRuntime};
use holdup_evidence::{Cause, Frame, Ns, SystemFacts, UserStackId};
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind as Does;
use holdup_model::attributed::JudgedBy;
use holdup_model::attributed::{
    Asker, AttributedWait, How, HowKnown, Link, Pace, Resource, ResourceKind, Spin, StopSignal, Tally,
    ThreadName,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Askers distinguished of one site; the rest are one row without an asker.
const MAX_ASKERS: usize = 16;

/// Names listed of those who ran instead.
const MAX_RAN_INSTEAD: usize = 8;

/// CPU samples by cause.
pub(super) type CauseSamples = BTreeMap<Cause, u64>;

/// What rows are made from.
pub(super) struct Rows<'a> {
    pub(super) whats: &'a Whats,
    pub(super) tasks: &'a TaskTable,
    pub(super) objects: &'a ObjectCache,
    pub(super) user_stacks: &'a [Vec<Frame>],
    pub(super) facts: &'a SystemFacts,
    pub(super) name_resource: fn(&mut Resource, Cause, &SystemFacts),
    pub(super) by_user_stack: ByUserStack,
    pub(super) of_runtime: OfRuntime,
    /// CPU samples of all threads by process name, and of the run: for threads that have none.
    pub(super) by_process: &'a HashMap<NameId, CauseSamples>,
    pub(super) by_run: &'a CauseSamples,
}

impl Rows<'_> {
    /// All rows of a ledger, under this name, and where each comes from. How many of its waits are on the path is added to `path` by cause.
    pub(super) fn of(
        &self,
        ledger: &Ledger,
        who: &ThreadName,
        path: &mut BTreeMap<Cause, Tally>,
    ) -> (Vec<AttributedWait>, Vec<Origin>) {
        let mut rows = Vec::new();
        let mut origins = Vec::new();
        let doubt = estimates::all(&ledger.sites);
        for (at, site) in ledger.sites.iter().enumerate() {
            match self.whats.get(site.what).role {
                Role::Cpu => self.cpu(ledger, site, who, &mut rows, &mut origins),
                Role::CpuClass => {}
                Role::Queue => {
                    let mut row = self.row(site, who);
                    row.ran_instead = self.ran_instead(ledger);
                    row.queue = ledger.queueing.queue();
                    rows.push(row);
                }
                Role::Throttled => rows.push(self.row(site, who)),
                Role::Interrupt => {
                    let mut row = self.row(site, who);
                    name_interrupts(&mut row, ledger);
                    rows.push(row);
                }
                Role::Lost => rows.push(self.row(site, who)),
                Role::Wait => {
                    let mut row = self.row(site, who);
                    row.error = row.error.saturating_add(site.doubt.error(&doubt));
                    self.name_process(&mut row, site.signal);
                    let first = rows.len();
                    let stacks = self.by_asker(row, &site.stacks, None, &mut rows);
                    origins.extend(stacks.into_iter().map(|stacks| Origin { site: at, stacks }));
                    count_waits(path, site.on_path.count, &rows[first..]);
                }
            }
            origins.resize(rows.len(), Origin::of(at));
        }
        let before: Vec<Cause> = rows.iter().map(|row| row.cause).collect();
        (self.of_runtime)(&mut rows);
        super::causes_by_stack::mark_judged(&mut rows, &before);
        let look_up = |row: &AttributedWait| row.ns > 0 || row.count > 0 || row.path_ns > 0;
        let mut kept = rows.iter().map(look_up).collect::<Vec<_>>().into_iter();
        origins.retain(|_| kept.next().unwrap_or_default());
        rows.retain(look_up);
        for row in &mut rows {
            (self.name_resource)(&mut row.resource, row.cause, self.facts);
        }
        (rows, origins)
    }

    /// What the waits of a ledger were taken for, what their stacks tell that they were for, and how long they were.
    pub(super) fn judged_causes(&self, ledger: &Ledger) -> Vec<(Cause, Cause, Ns)> {
        let mut all = Vec::new();
        for site in &ledger.sites {
            let what = self.whats.get(site.what);
            if what.role != Role::Wait {
                continue;
            }
            let wait = may_be_told(site.judged_by).then_some((what.cause, what.call));
            let groups = self.groups(&site.stacks, AskedOf::Wait(wait));
            let weight: u64 = groups.iter().map(|group| group.weight).sum();
            if weight == 0 {
                all.push((what.cause, what.cause, site.tally.ns));
            }
            for group in groups.iter().filter(|_| weight > 0) {
                let part = u128::from(site.tally.ns) * u128::from(group.weight) / u128::from(weight);
                let found = group.by_stack.as_ref().map_or(what.cause, |(cause, _)| *cause);
                all.push((what.cause, found, Ns::try_from(part).unwrap_or(Ns::MAX)));
            }
        }
        all
    }

    fn row(&self, site: &Site, who: &ThreadName) -> AttributedWait {
        let what = self.whats.get(site.what);
        let kernel_stack = site
            .kernel_stack()
            .and_then(|stack| self.objects.kernel_stack(stack));
        AttributedWait {
            cause: what.cause,
            ns: site.tally.ns,
            path_ns: site.on_path.ns,
            handed_on_ns: site.on_path.handed_on,
            count: site.tally.count,
            max: site.tally.max,
            p50: site.lengths.percentile(50, site.tally.max),
            p99: site.lengths.percentile(99, site.tally.max),
            max_started: site.longest.0,
            max_ended: site.longest.1,
            how: if site.borrowed > 0 || site.doubt.ns > 0 {
                How::Sampled
            } else {
                How::Exact
            },
            // Told by one longer wait of a kind that varies: a sample of one is at most this far off.
            error: site.doubtful / 2,
            open: site.tally.open,
            timed_out: site.timed_out,
            held_open_ns: site.held_open,
            pace: site.rhythm.as_deref().map_or(Pace::Unknown, Rhythm::pace),
            call: what.call.map(str::to_owned),
            bytes: site.bytes,
            resource: what.resource.clone(),
            asker: Asker {
                name: who.clone(),
                ..Asker::default()
            },
            holders: site.holders.holders(
                self.tasks,
                self.user_stacks,
                &|name| self.complete(name),
                &self.facts.stopped,
            ),
            chain: site.chain.iter().map(|link| self.link(link)).collect(),
            deadlock: site.deadlock,
            orphaned: site.orphan.map(|orphan| orphan.orphaned(self.tasks)),
            ran_instead: Vec::new(),
            queue: None,
            kernel_stack: kernel_stack.map(<[String]>::to_vec).unwrap_or_default(),
            why_unknown: what.why_unknown.clone(),
            tcp: site.tcp.as_deref().cloned(),
            read_at: String::new(),
            judged_by: site.judged_by,
            outstanding: site.outstanding,
        }
    }

    /// Waits for a process are for the one that was in the way longest: the child that was waited for, or who
    /// stopped the thread. An address space is its process's.
    fn name_process(&self, row: &mut AttributedWait, signal: Option<i32>) {
        let longest = row.holders.first();
        let named = match row.cause {
            // A child belongs to the run; who else ends such a wait has interrupted it with a signal.
            Cause::ProcessChild => longest
                .filter(|child| self.tasks.of_run(child.name.pid))
                .map(|child| {
                    let other = |holder: &holdup_model::attributed::Holder| holder.name.pid != child.name.pid;
                    match row.holders.iter().any(other) {
                        false => process(&child.name),
                        true => format!("{} and others", process(&child.name)),
                    }
                }),
            Cause::ProcessStopped => match (longest, signal.map(|signal| StopSignal::of(signal).id())) {
                (Some(tracer), _) if tracer.how_known == HowKnown::Tracer => {
                    Some(format!("tracer {}", process(&tracer.name)))
                }
                (Some(sender), Some(signal)) => Some(format!("{signal} from {}", process(&sender.name))),
                (None, signal) => signal.map(str::to_owned),
                (Some(_), None) => None,
            },
            Cause::MemMmaplock => return self.name_address_space(&mut row.resource),
            _ => None,
        };
        let Some(name) = named else { return };
        row.resource.kind = ResourceKind::Process;
        row.resource.name = name;
        let detail = &mut row.resource.detail;
        if let Some(longest) = longest {
            detail.pid = Some(longest.name.pid);
        }
        if let Some(signal) = signal.filter(|_| row.cause == Cause::ProcessStopped) {
            detail.signal = Some(StopSignal::of(signal));
        }
    }

    fn name_address_space(&self, resource: &mut Resource) {
        let Some(pid) = resource.detail.address_space_of else {
            return;
        };
        let mut owner = ThreadName {
            pid,
            process: self.tasks.name_of(pid).unwrap_or_default().to_owned(),
            ..ThreadName::default()
        };
        self.complete(&mut owner);
        resource.kind = ResourceKind::Process;
        resource.name = format!("the memory map of {}", process(&owner));
    }

    fn link(&self, link: &chain::Link) -> Link {
        let stack = link
            .stack
            .and_then(|stack| self.user_stacks.get(stack.0 as usize));
        Link {
            name: self.tasks.describe(&link.name),
            cause: link.cause,
            ns: link.ns,
            frame: stack.and_then(|stack| super::asker::frame(stack)).cloned(),
        }
    }

    /// Names of tasks outside the run, as far as the facts know them.
    fn complete(&self, name: &mut ThreadName) {
        if let Some(process) = self.facts.processes.get(&name.pid) {
            name.process.clone_from(process);
        }
        if name.process.is_empty() {
            name.process.clone_from(&name.thread);
        }
        if name.thread.is_empty() {
            name.thread.clone_from(&name.process);
        }
    }

    fn ran_instead(&self, ledger: &Ledger) -> Vec<(String, Ns)> {
        let mut names: Vec<(String, Ns)> = ledger
            .ran_instead
            .iter()
            .map(|(name, ns)| (self.tasks.text(*name).to_owned(), *ns))
            .collect();
        names.sort_by_key(|(_, ns)| Reverse(*ns));
        names.truncate(MAX_RAN_INSTEAD);
        names
    }

    /// All CPU time of a ledger: by class and by who asked.
    fn cpu(
        &self,
        ledger: &Ledger,
        pool: &Site,
        who: &ThreadName,
        rows: &mut Vec<AttributedWait>,
        origins: &mut Vec<Origin>,
    ) {
        let classes: Vec<(usize, &Site)> = ledger
            .sites
            .iter()
            .enumerate()
            .filter(|(_, site)| self.whats.get(site.what).role == Role::CpuClass)
            .collect();
        let samples: Vec<Samples> = classes
            .iter()
            .map(|(_, class)| Samples {
                all: class.samples,
                on_path: class.on_path.count,
            })
            .collect();
        let all: u64 = samples.iter().map(|class| class.all).sum();
        if all == 0 {
            return self.cpu_without_samples(ledger, pool, who, rows);
        }
        let parts = split(pool.tally.ns, pool.tally.count, pool.on_path, &samples);
        for ((at, class), part) in classes.into_iter().zip(parts) {
            let mut row = self.row(class, who);
            row.ns = part.ns;
            row.count = part.count;
            row.path_ns = part.path.ns;
            row.open = pool.tally.open;
            // A class that was seen in several samples on end lasted as long; else it is one of the pieces.
            if row.max == 0 {
                (row.max, row.max_started, row.max_ended) = (pool.tally.max, pool.longest.0, pool.longest.1);
            }
            row.how = How::Sampled;
            row.error = standard_error(part.ns, pool.tally.ns, all);
            self.cpu_lengths(&mut row, pool);
            let first = rows.len();
            self.by_asker(row, &class.stacks, Some((pool.tally.ns, all)), rows);
            for row in &mut rows[first..] {
                self.cpu_lengths(row, pool);
                name_function(row);
            }
            origins.resize(rows.len(), Origin::of(at));
        }
    }

    /// Pieces of CPU time have lengths; what they were for has not.
    fn cpu_lengths(&self, row: &mut AttributedWait, pool: &Site) {
        row.max = row.max.min(row.ns);
        row.p50 = pool.lengths.percentile(50, pool.tally.max).min(row.max);
        row.p99 = pool.lengths.percentile(99, pool.tally.max).min(row.max);
    }

    fn cpu_without_samples(
        &self,
        ledger: &Ledger,
        pool: &Site,
        who: &ThreadName,
        rows: &mut Vec<AttributedWait>,
    ) {
        let process = match ledger.owner {
            Owner::Thread(identity) => self.tasks.process_name(identity.process),
            Owner::Folded { process, .. } => process,
        };
        let own_code = CauseSamples::from([(Cause::CpuUser, 1)]);
        let like = match self.by_process.get(&process) {
            Some(samples) => samples,
            None if !self.by_run.is_empty() => self.by_run,
            None => &own_code,
        };
        let samples: Vec<Samples> = like
            .values()
            .map(|samples| Samples {
                all: *samples,
                on_path: 0,
            })
            .collect();
        let parts = split(pool.tally.ns, pool.tally.count, pool.on_path, &samples);
        for (cause, part) in like.keys().zip(parts) {
            let mut row = self.row(pool, who);
            row.cause = *cause;
            row.ns = part.ns;
            row.count = part.count;
            row.path_ns = part.path.ns;
            row.how = How::Sampled;
            row.error = part.ns;
            self.cpu_lengths(&mut row, pool);
            name_function(&mut row);
            rows.push(row);
        }
    }

    /// Splits a row by who asked. `of_cpu`: all CPU time of the ledger and its samples. Returns the stacks of each row.
    fn by_asker(
        &self,
        row: AttributedWait,
        stacks: &[StackTally],
        of_cpu: Option<(Ns, u64)>,
        rows: &mut Vec<AttributedWait>,
    ) -> Vec<Vec<UserStackId>> {
        let of = match of_cpu {
            Some(_) => AskedOf::Cpu,
            None => AskedOf::Wait(may_be_told(row.judged_by).then_some((row.cause, row.call.as_deref()))),
        };
        let mut groups = self.groups(stacks, of);
        if of_cpu.is_none() && system_calls::is_named(row.call.as_deref(), Does::Execs) {
            // A thread that comes back from an exec is at the first instruction of the new program, which has
            // asked for nothing; only of an exec that failed the asker's stack is still there.
            groups.retain(|group| self.frames(group) > 1);
        }
        let weights: Vec<u64> = groups.iter().map(|group| group.weight).collect();
        if groups.len() <= 1 {
            let mut row = row;
            if let Some(group) = groups.into_iter().next() {
                self.ask(&mut row, &group);
            }
            rows.push(row);
            return vec![Vec::new()];
        }
        let deal = |total| apportion(total, &weights);
        let (ns, path_ns, handed_on) = (deal(row.ns), deal(row.path_ns), deal(row.handed_on_ns));
        let (count, timed_out, error) = (deal(row.count), deal(row.timed_out), deal(row.error));
        let samples: u64 = groups.iter().map(|group| group.samples).sum();
        for (part, group) in groups.iter().enumerate() {
            let mut row = row.clone();
            let of = row.ns;
            row.ns = ns[part];
            row.path_ns = path_ns[part];
            row.handed_on_ns = handed_on[part];
            row.count = count[part];
            row.timed_out = timed_out[part];
            row.held_open_ns = part_of(row.held_open_ns, ns[part], of);
            row.how = How::Sampled;
            row.error = match of_cpu {
                Some((total, samples)) => standard_error(row.ns, total, samples),
                None => error[part].saturating_add(standard_error(row.ns, of, samples)),
            };
            if of_cpu.is_none() && group.longest.0 > 0 {
                (row.max, row.max_started, row.max_ended) = group.longest;
            }
            row.max = row.max.min(row.ns);
            row.p50 = row.p50.min(row.max);
            row.p99 = row.p99.min(row.max);
            row.tcp = row.tcp.map(|tcp| tcp.part(row.ns, of));
            for holder in &mut row.holders {
                holder.ns = part_of(holder.ns, row.ns, of);
            }
            self.ask(&mut row, group);
            rows.push(row);
        }
        groups.into_iter().map(|group| group.stacks).collect()
    }

    fn ask(&self, row: &mut AttributedWait, group: &Group) {
        if let Some(spin) = &group.spin {
            row.resource.detail.spins = Some(spin.clone());
        }
        row.asker.frame.clone_from(&group.asking.frame);
        row.asker.module.clone_from(&group.asking.module);
        row.asker.stack = group
            .heaviest
            .and_then(|stack| self.user_stacks.get(stack.stack.0 as usize))
            .cloned()
            .unwrap_or_default();
        if let Some((cause, resource)) = &group.by_stack {
            row.cause = *cause;
            row.resource = resource.clone();
            row.judged_by = Some(JudgedBy::USER_STACK);
        }
    }

    /// How many frames the heaviest stack of a group has.
    fn frames(&self, group: &Group) -> usize {
        let stack = group.heaviest.map(|stack| stack.stack.0 as usize);
        stack
            .and_then(|stack| self.user_stacks.get(stack))
            .map_or(0, Vec::len)
    }

    /// Stacks by who asks in them, heaviest first; of a wait also by what they tell it was for.
    fn groups(&self, stacks: &[StackTally], of: AskedOf<'_>) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for stack in stacks {
            let frames = self.user_stacks.get(stack.stack.0 as usize);
            let mut asking = frames.map(|frames| choose(frames)).unwrap_or_default();
            if of == AskedOf::Cpu && !asking.named {
                // Where in a function without a name a clock tick fell tells nothing.
                asking.frame = None;
            }
            let spin = frames
                .filter(|_| of == AskedOf::Cpu)
                .and_then(|frames| spinning(frames));
            let found = of.wait().zip(frames);
            let found = found.and_then(|((cause, call), frames)| (self.by_user_stack)(cause, call, frames));
            let same =
                |group: &&mut Group| group.asking == asking && group.spin == spin && group.by_stack == found;
            match groups.iter_mut().find(same) {
                Some(group) => group.add(stack),
                None => groups.push(Group::of(asking, spin, found, stack)),
            }
        }
        groups.sort_by_key(|group| Reverse(group.weight));
        if groups.len() > MAX_ASKERS {
            let rest = groups.split_off(MAX_ASKERS - 1);
            let mut many = Group {
                asking: Asking::default(),
                spin: None,
                by_stack: None,
                weight: 0,
                samples: 0,
                longest: (0, 0, 0),
                heaviest: None,
                stacks: Vec::new(),
            };
            for group in rest {
                many.weight = many.weight.saturating_add(group.weight);
                many.samples += group.samples;
                many.longest = many.longest.max(group.longest);
                many.stacks.extend(group.stacks);
            }
            groups.push(many);
        }
        groups
    }
}

/// Stacks with one asker.
struct Group {
    asking: Asking,
    /// The function in which it spins.
    spin: Option<Spin>,
    /// What the wait was for, where the stack tells it.
    by_stack: Option<(Cause, Resource)>,
    weight: u64,
    samples: u64,
    longest: (Ns, Ns, Ns),
    heaviest: Option<StackTally>,
    /// All of them.
    stacks: Vec<UserStackId>,
}

impl Group {
    fn of(asking: Asking, spin: Option<Spin>, given: Option<(Cause, Resource)>, stack: &StackTally) -> Group {
        Group {
            asking,
            spin,
            by_stack: given,
            weight: stack.weight,
            samples: stack.samples,
            longest: stack.longest,
            heaviest: Some(*stack),
            stacks: vec![stack.stack],
        }
    }

    fn add(&mut self, stack: &StackTally) {
        self.weight = self.weight.saturating_add(stack.weight);
        self.samples += stack.samples;
        self.longest = self.longest.max(stack.longest);
        self.stacks.push(stack.stack);
        if self
            .heaviest
            .is_none_or(|heaviest| heaviest.weight < stack.weight)
        {
            self.heaviest = Some(*stack);
        }
    }
}

/// Adds a site's waits on the path to the causes of its rows, as their time on it is split.
fn count_waits(path: &mut BTreeMap<Cause, Tally>, count: u64, rows: &[AttributedWait]) {
    if count == 0 {
        return;
    }
    let weights: Vec<Ns> = rows.iter().map(|row| row.path_ns).collect();
    for (row, count) in rows.iter().zip(apportion(count, &weights)) {
        path.entry(row.cause).or_default().count += count;
    }
}

/// `sleep (pid 12)`.
fn process(name: &ThreadName) -> String {
    let own = if name.process.is_empty() {
        &name.thread
    } else {
        &name.process
    };
    match own.as_str() {
        "" => format!("process {}", name.pid),
        own => format!("{own} (pid {})", name.pid),
    }
}

/// `whole * part / of`, rounded down.
fn part_of(whole: Ns, part: Ns, of: Ns) -> Ns {
    let scaled = u128::from(whole) * u128::from(part) / u128::from(of.max(1));
    Ns::try_from(scaled).unwrap_or(Ns::MAX)
}
