//! What units waited for while a machine came up, and for how long: only what logs prove.
//!
//! In: starts of units and seedings of the generator. Out: [`Waited`]s. A length is the distance of two lines; a wait of which
//! only the end is reported has none, and is not here.

use super::seeding::{self, Seeding};
use super::units::{Start, between, device, starts};
use holdup_artefacts::clock::Clock;
use holdup_evidence::observed::Happening;
use holdup_evidence::{Cause, Ns, Observed};

/// What a unit waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// The kernel's random generator to be seeded.
    Seeding,
    /// A device that never came.
    Device,
    /// The network.
    Network,
    /// What its own command did, until its time ran out.
    Unknown,
}

/// Waits that are kept: more than any boot has that are worth a word.
const WAITS: usize = 1_000;

/// One wait.
#[derive(Debug, Clone)]
pub(crate) struct Waited<'a> {
    /// Which unit.
    pub(crate) unit: &'a str,
    /// For what.
    pub(crate) what: For,
    /// The step of the start, where its time ran out.
    pub(crate) step: &'a str,
    /// The line it begins with.
    pub(crate) began: &'a Happening,
    /// The line it ends with.
    pub(crate) ended: &'a Happening,
    /// Its length.
    pub(crate) ns: Ns,
}

impl For {
    /// The cause that the time belongs to.
    pub(crate) fn cause(self) -> Cause {
        match self {
            For::Seeding => Cause::RandomUnseeded,
            For::Device => Cause::DeviceWait,
            For::Network => Cause::NetConnect,
            For::Unknown => Cause::Unknown,
        }
    }
}

impl Waited<'_> {
    /// What it did, behind its name.
    pub(crate) fn words(&self) -> String {
        match self.what {
            For::Seeding => "waited for the random generator to be seeded".to_owned(),
            For::Device => "was waited for, and did not appear".to_owned(),
            For::Network => "waited for the network to be online".to_owned(),
            For::Unknown => format!("was in its {} step, until it timed out", self.step),
        }
    }
}

/// All of them, longest first.
pub(crate) fn all<'a>(observed: &'a Observed, clock: &Clock<'_>) -> Vec<Waited<'a>> {
    let starts = starts(observed);
    let mut waits = for_seeding(observed, &starts, clock);
    for start in &starts {
        if waits.len() >= WAITS {
            break;
        }
        let what = match start.timed_out {
            _ if is_network(start.unit) => For::Network,
            Some((_, step)) if is_device(start.unit, step) => For::Device,
            Some((_, step)) if of_a_start(step) => For::Unknown,
            _ => continue,
        };
        // The tries that ended with the seeding are in its wait already.
        let known = waits.iter().any(|wait| {
            wait.what == For::Seeding
                && wait.unit == start.unit
                && start
                    .began
                    .is_some_and(|began| between(clock, began, wait.ended).is_some())
        });
        if known {
            continue;
        }
        let (Some(began), Some(ended)) = (start.began, start.ended()) else {
            continue;
        };
        if let Some(ns) = between(clock, began, ended) {
            waits.push(Waited {
                unit: start.unit,
                what,
                step: start.timed_out.map_or("", |(_, step)| step),
                began,
                ended,
                ns,
            });
        }
    }
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
    waits
}

/// From a unit's first try to the line that says that the generator is seeded, where a later try ended with it.
fn for_seeding<'a>(observed: &'a Observed, starts: &[Start<'a>], clock: &Clock<'_>) -> Vec<Waited<'a>> {
    let mut waits: Vec<Waited<'a>> = Vec::new();
    for seeding in seeding::all(observed, clock) {
        let ended = seeding.all_ended(starts, clock);
        for last in &ended {
            let tries = starts
                .iter()
                .filter(|start| start.unit == last.unit && Seeding::was_for_this(start, &ended, clock));
            let began = tries.chain([*last]).find_map(|start| start.began);
            let again = waits
                .iter()
                .any(|wait| wait.unit == last.unit && between(clock, wait.ended, seeding.line) == Some(0));
            if let Some(began) = began.filter(|_| !again)
                && let Some(ns) = between(clock, began, seeding.line)
            {
                waits.push(Waited {
                    unit: last.unit,
                    what: For::Seeding,
                    step: "",
                    began,
                    ended: seeding.line,
                    ns,
                });
            }
        }
    }
    waits
}

/// What steps of a start are called, of services, mounts, swap and devices.
const OF_A_START: [&str; 6] = ["start", "condition", "mount", "activation", "exec", "wait for"];

/// Whether a step is one of a start. A unit that takes too long to stop is another trouble, and holds up nobody's start.
pub(crate) fn of_a_start(step: &str) -> bool {
    OF_A_START.iter().any(|begin| step.starts_with(begin))
}

/// Whether what ran out of time is the job of a device, which waits for it to appear.
pub(crate) fn is_device(unit: &str, step: &str) -> bool {
    unit.ends_with(".device") || step == "wait for the device"
}

/// What waits for the network to be configured, by name and as those units describe themselves.
const NETWORK: [&str; 4] = [
    "Wait for Network to be Configured",
    "Network Manager Wait Online",
    "Wait for network to be configured by ifupdown",
    "Wait for Network to be Online",
];

/// Whether a unit's start is to wait for the network.
pub(crate) fn is_network(unit: &str) -> bool {
    unit.contains("wait-online") || NETWORK.contains(&unit)
}

/// The path of a device, by its unit or as it is.
pub(crate) fn device_path(unit: &str) -> String {
    device(unit).unwrap_or_else(|| unit.to_owned())
}
