//! How far a boot had come when: a few instants that people know by name.
//!
//! In: [`Observed`] and where the boot begins. Out: [`Milestone`]s in order of time. Of things that happen often (links, mounts)
//! only the first is one.

use super::origin::Origin;
use super::seeding;
use super::units::starts;
use super::waits::{self, device_path, is_device, of_a_start};
use crate::rules::logs;
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::{BootStep, Happening, KernelEvent, SpanKind, UnitEvent, What, When};
use holdup_evidence::{Ns, Observed};
use holdup_model::report::Milestone;
use holdup_model::report::MilestoneKind;

const SECOND: Ns = 1_000_000_000;

/// Nanoseconds from which a pause in the kernel's log is shown: what people notice of a boot.
const PAUSE: Ns = 2 * SECOND;

/// Nanoseconds after the first program from which the seeding was late: by then many have asked.
const SEEDED_LATE: Ns = SECOND / 5;

/// Links, services that listen, and starts that ran out of time, that are shown.
const OF_A_KIND: usize = 4;

/// systemd's targets on the way up: name, description, words.
const TARGETS: [(&str, &str); 7] = [
    ("local-fs.target", "Local File Systems"),
    ("sysinit.target", "System Initialization"),
    ("network.target", "Network"),
    ("network-online.target", "Network is Online"),
    ("basic.target", "Basic System"),
    ("multi-user.target", "Multi-User System"),
    ("graphical.target", "Graphical Interface"),
];

/// The name of a target that is known by its description.
pub(super) fn target(unit: &str) -> Option<&'static str> {
    let mut targets = TARGETS.iter();
    let found = targets.find(|(name, description)| unit == *name || unit == *description);
    found.map(|(name, _)| *name)
}

/// All of them.
pub(super) fn all(observed: &Observed, clock: &Clock<'_>, origin: &Origin<'_>) -> Vec<Milestone> {
    let mut list = List {
        observed,
        clock,
        origin,
        all: Vec::new(),
    };
    if let Some(line) = origin.line.filter(|_| origin.of_kernel) {
        let release = match &line.what {
            What::Kernel(KernelEvent::Boot { release, .. }) if !release.is_empty() => {
                format!("the kernel's first line, Linux {release}")
            }
            _ => "the kernel's first line".to_owned(),
        };
        list.add(MilestoneKind::FirstLine, &release, line);
    }
    for one in &observed.happenings {
        match &one.what {
            What::Kernel(KernelEvent::Step(step)) => list.step(step, one),
            What::Kernel(KernelEvent::RandomSeeded { fully: true }) => {
                list.first(MilestoneKind::RandomSeeded, "the random generator is seeded", one);
            }
            What::Unit(UnitEvent::ManagerStarted) => {
                list.add(MilestoneKind::ManagerStarted, "systemd starts", one)
            }
            What::Unit(UnitEvent::Started { unit }) => {
                if let Some(target) = target(unit) {
                    list.first(
                        MilestoneKind::Target(target.to_owned()),
                        &format!("{target} is reached"),
                        one,
                    );
                }
            }
            What::Unit(UnitEvent::Listening { process, .. }) => {
                list.one_of(MilestoneKind::Listens, &format!("{process} listens"), one);
            }
            What::Unit(UnitEvent::TimedOut { unit, step }) if is_device(unit, step) => {
                let path = device_path(unit);
                list.one_of(
                    MilestoneKind::DeviceMissing,
                    &format!("{path} has not appeared in time"),
                    one,
                );
            }
            What::Unit(UnitEvent::TimedOut { unit, step }) if of_a_start(step) => {
                list.one_of(
                    MilestoneKind::TimedOut,
                    &format!("{unit} times out ({step})"),
                    one,
                );
            }
            _ => {}
        }
    }
    list.waiters();
    list.seeded_late();
    list.pauses();
    let mut all = list.all;
    all.sort_by_key(|one| one.at_ns);
    all
}

struct List<'a> {
    observed: &'a Observed,
    clock: &'a Clock<'a>,
    origin: &'a Origin<'a>,
    all: Vec<Milestone>,
}

impl List<'_> {
    fn add(&mut self, what: MilestoneKind, text: &str, one: &Happening) {
        let Some(at_ns) = self.origin.since(self.clock, one) else {
            return;
        };
        // Two logs tell the same.
        if self
            .all
            .iter()
            .any(|other| other.what == what && other.text == text && other.at_ns.abs_diff(at_ns) <= SECOND)
        {
            return;
        }
        self.all.push(Milestone {
            at_ns,
            what,
            text: text.to_owned(),
            with: Vec::new(),
            source: self.observed.place(&one.quote),
        });
    }

    fn known(&self, what: &MilestoneKind) -> usize {
        self.all.iter().filter(|one| one.what == *what).count()
    }

    fn first(&mut self, what: MilestoneKind, text: &str, one: &Happening) {
        if self.known(&what) == 0 {
            self.add(what, text, one);
        }
    }

    fn one_of(&mut self, what: MilestoneKind, text: &str, one: &Happening) {
        let again = self
            .all
            .iter()
            .any(|other| other.what == what && other.text == text);
        if self.known(&what) < OF_A_KIND && !again {
            self.add(what, text, one);
        }
    }

    fn step(&mut self, step: &BootStep, one: &Happening) {
        match step {
            BootStep::KernelReady => self.first(MilestoneKind::KernelReady, "the kernel is initialised", one),
            BootStep::InitStarted { program } => {
                self.first(
                    MilestoneKind::InitStarted,
                    &format!("the kernel starts {program}"),
                    one,
                );
            }
            BootStep::WaitsForRoot { device } => {
                self.first(
                    MilestoneKind::WaitsForRoot,
                    &format!("the kernel waits for {device}"),
                    one,
                );
            }
            BootStep::Mounted { on, root: true } => {
                self.first(
                    MilestoneKind::RootMounted,
                    &format!("the root file system is mounted, from {on}"),
                    one,
                );
            }
            BootStep::Mounted { on, root: false } => {
                if self.known(&MilestoneKind::RootMounted) == 0 {
                    self.first(
                        MilestoneKind::FirstMount,
                        &format!("the first file system is mounted, from {on}"),
                        one,
                    );
                }
            }
            BootStep::LinkUp { interface } => {
                self.one_of(MilestoneKind::LinkUp, &format!("{interface} has its link"), one)
            }
            BootStep::SwapOn { area } => self.first(MilestoneKind::SwapOn, &format!("swap on {area}"), one),
        }
    }

    /// Who was up in the instant in which the generator was seeded.
    fn waiters(&mut self) {
        let starts = starts(self.observed);
        let waits = waits::all(self.observed, self.clock);
        for seeding in seeding::all(self.observed, self.clock) {
            let Some(at_ns) = self.origin.since(self.clock, seeding.line) else {
                continue;
            };
            let with: Vec<String> = waits
                .iter()
                .filter(|wait| wait.ended.quote == seeding.line.quote)
                .map(|wait| wait.unit.to_owned())
                .chain(
                    starts
                        .iter()
                        .filter(|start| seeding.ended(start, self.clock).is_some())
                        .map(|start| start.unit.to_owned()),
                )
                .collect();
            let own = self
                .all
                .iter_mut()
                .find(|one| one.what == MilestoneKind::RandomSeeded);
            if let Some(one) = own.filter(|one| one.at_ns == at_ns) {
                one.with = with;
                one.with.sort_unstable();
                one.with.dedup();
            }
        }
    }

    /// Programs ran and the generator could give them nothing: for how long stands in the kernel's log, whoever asked.
    fn seeded_late(&mut self) {
        let first = self.all.iter().find(|one| one.what == MilestoneKind::InitStarted);
        let Some(started) = first.map(|one| one.at_ns) else {
            return;
        };
        let seeded = self
            .all
            .iter_mut()
            .find(|one| one.what == MilestoneKind::RandomSeeded);
        let Some(one) = seeded.filter(|one| one.at_ns >= started.saturating_add(SEEDED_LATE)) else {
            return;
        };
        let ns = one.at_ns - started;
        one.text = format!(
            "{}, {} after the first program was started: getrandom blocked in between",
            one.text,
            logs::seconds(ns)
        );
    }

    /// While there is no service manager, nobody but the kernel tells what goes on.
    fn pauses(&mut self) {
        let started = |what: MilestoneKind| {
            let one = self.all.iter().find(|one| one.what == what);
            one.map(|one| one.at_ns)
        };
        let until = started(MilestoneKind::ManagerStarted)
            .or_else(|| started(MilestoneKind::RootMounted))
            .or_else(|| started(MilestoneKind::FirstMount))
            .or_else(|| started(MilestoneKind::InitStarted))
            .unwrap_or(0);
        for span in &self.observed.spans {
            let (SpanKind::KernelPause, Some(When::SinceBoot(began))) = (span.kind, span.began) else {
                continue;
            };
            let here = self.clock.same_boot(self.origin.quote, &span.quote) == Some(true);
            let again = self
                .all
                .iter()
                .any(|one| one.what == MilestoneKind::Pause && one.at_ns.abs_diff(began) <= SECOND);
            // What comes after that is the silence of a kernel that has nothing to say.
            let ns = span.ns.min(until.saturating_sub(began));
            if ns < PAUSE || !here || again {
                continue;
            }
            let end = match ns == span.ns {
                true => format!("\"{}\"", span.text),
                false => "systemd or the first file system is there".to_owned(),
            };
            self.all.push(Milestone {
                at_ns: began,
                what: MilestoneKind::Pause,
                text: format!("nothing is logged for {}, until {end}", logs::seconds(ns)),
                with: Vec::new(),
                source: self.observed.place(&span.quote),
            });
        }
    }
}
