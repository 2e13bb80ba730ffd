//! Ways to take a wait away, one file each.
//!
//! In: a cause as the command line has it. Out: the [`Way`], or why there is none. Another way is another file and a line in [`WAYS`].

mod memory;
mod names;
mod random_device;
pub(super) mod sleep;
pub(super) mod sync;

use holdup_evidence::Cause;
use holdup_model::attributed::Attributed;
use holdup_subject::filter::Call;

/// All of them.
const WAYS: &[Way] = &[
    sync::WAY,
    memory::DISK,
    memory::LOCK,
    names::WAY,
    random_device::WAY,
    sleep::WAY,
];

/// How a wait is taken away.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// What is said on the command line: a cause's id, or `disk` for all of its kind.
    pub(crate) name: &'static str,
    /// What should be gone.
    pub(crate) causes: &'static [Cause],
    /// By what.
    pub(crate) means: Means,
    /// The same in words.
    pub(crate) how: &'static str,
    /// What a remedy of this kind gives up.
    pub(crate) risk: &'static str,
    /// What it does not reach.
    pub(crate) escapes: &'static str,
    /// Whether what was written must be on the disk before each run, or one would pay for another's.
    pub(crate) settles: bool,
    /// Why, by what the first run as it is shows, this would not do; `None` if it would.
    pub(crate) refuses: fn(&Attributed) -> Option<String>,
}

/// By what a wait is taken away.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Means {
    /// These calls return at once.
    Calls(&'static [Call]),
    /// A file stands in the place of another.
    Bind {
        /// This one.
        from: &'static str,
        /// In the place of that one.
        over: &'static str,
    },
    /// What is written below `--memory DIR` stays in memory.
    Memory,
    /// Names that the first run asked for stand in a table.
    Names,
}

/// The way for this cause.
///
/// # Errors
/// One sentence that says why there is none, and what to do instead.
pub(crate) fn way(name: &str) -> Result<&'static Way, String> {
    if let Some(way) = WAYS.iter().find(|way| way.name == name) {
        return Ok(way);
    }
    let ways: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
    let ways = ways.join(", ");
    let Some(cause) = Cause::from_id(name) else {
        return Err(format!(
            "there is no cause {name:?}; --without can remove {ways} (`holdup explain` lists all causes)"
        ));
    };
    Err(format!(
        "{name} cannot be removed: {}; --without can remove {ways}",
        why_not(cause)
    ))
}

/// Why a cause has no way.
fn why_not(cause: Cause) -> &'static str {
    const PREDICT: &str = "CMD needs this work; `holdup run --predict` estimates the effect of faster work";
    match cause {
        Cause::CpuUser
        | Cause::CpuKernel
        | Cause::CpuInterrupt
        | Cause::ProcessChild
        | Cause::ProcessExec => PREDICT,
        Cause::RandomUnseeded => {
            "the kernel seeds its generator once per boot, so a second run would not wait for it; `holdup doctor` reports where \
             this machine's randomness comes from"
        }
        Cause::DiskRead
        | Cause::DiskWrite
        | Cause::DiskWriteback
        | Cause::DiskDiscard
        | Cause::DiskJournal => {
            "one kind of disk wait cannot be separated from the others beforehand; `--without disk --memory DIR` removes those \
             of all writes"
        }
        Cause::NetConnect | Cause::NetAccept | Cause::NetReceive | Cause::NetSend | Cause::NetTls => {
            "a made-up answer would change what CMD does; `holdup run --predict` estimates the effect of a faster answer"
        }
        Cause::SchedRunqueue | Cause::SchedThrottled | Cause::SchedSteal => {
            "this would take CPU time from other programs; `holdup run --predict` estimates the effect"
        }
        _ => "no known way changes only this wait; `holdup run --predict` estimates the effect",
    }
}

/// Where nothing that a run shows speaks against it.
fn never(_: &Attributed) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::{WAYS, way};
    use holdup_evidence::Cause;

    #[test]
    fn every_cause_has_a_way_or_a_reason() {
        for cause in Cause::ALL {
            match way(cause.id()) {
                Ok(way) => assert!(way.causes.contains(cause)),
                Err(why) => assert!(why.starts_with(cause.id()) && why.contains("disk.sync"), "{why}"),
            }
        }
        assert!(way("disk").is_ok());
        assert!(way("disk.snyc").is_err_and(|why| why.contains("disk.sync")));
        assert!(way("cpu.user").is_err_and(|why| why.contains("run --predict")));
    }

    #[test]
    fn names_are_causes_or_their_kind() {
        for way in WAYS {
            assert!(
                Cause::ALL
                    .iter()
                    .any(|cause| cause.id() == way.name || cause.id().starts_with(&format!("{}.", way.name)))
            );
            assert!(!way.risk.is_empty() && !way.how.is_empty() && !way.escapes.is_empty());
        }
    }
}
