//! What was observed, written as a recording: `-o FILE`.
//!
//! In: what was collected. Out: one segment in a file. The place is opened before anything is observed, so that a wrong path
//! fails at once; what goes wrong later never changes CMD's exit status.

use crate::cli::RecordingArgs;
use holdup_collect::Collected;
use holdup_evidence::SystemFacts;
use holdup_evidence::host::HostLook;
use holdup_model::attributed::Attributed;
use holdup_proc::{Root, root};
use holdup_recording::{Draft, Error, Head, Segment, Zone, bound, bound_look, mask, redact, usual};
use holdup_report::Subject as Observed;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};

/// A recording that will be written.
#[derive(Debug)]
pub(crate) struct Recording {
    draft: Draft,
    redact: bool,
    scope: Scope,
}

/// What was asked for by a name that says more than process ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// The systemd unit.
    pub(crate) unit: Option<String>,
    /// The cgroup.
    pub(crate) cgroup: Option<String>,
}

impl Recording {
    /// Opens what `-o` names.
    ///
    /// # Errors
    /// When no recording can be written there.
    pub(crate) fn open(args: &RecordingArgs, scope: Scope) -> anyhow::Result<Option<Recording>> {
        let Some(path) = &args.output else {
            return Ok(None);
        };
        Ok(Some(Recording {
            draft: Draft::open(path)?,
            redact: args.redact,
            scope,
        }))
    }

    /// Writes it, secrets masked.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(crate) fn write(self, observed: Observed, evidence: impl Into<Evidence>) -> Result<(), Error> {
        let mut segment = segment(observed, evidence.into(), self.scope);
        if let Some(look) = &mut segment.look {
            bound_look(look);
        }
        match self.redact {
            true => redact(&mut segment),
            false => mask(&mut segment),
        }
        self.draft.finish(&segment)
    }
}

/// What a recording is made of.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) attributed: Attributed,
    pub(crate) facts: SystemFacts,
    /// Of files that were met, by their base names.
    pub(crate) build_ids: BTreeMap<String, String>,
    /// Of `holdup host`.
    pub(crate) look: Option<HostLook>,
}

impl From<Collected> for Evidence {
    fn from(collected: Collected) -> Evidence {
        Evidence {
            attributed: collected.attributed,
            facts: collected.facts,
            build_ids: collected.build_ids,
            look: None,
        }
    }
}

/// What of a recorder's segment is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// Without what tells of people and places.
    pub(crate) redacted: bool,
    /// All single pieces of time and all rows; else they are bounded, and what is beyond is summed.
    pub(crate) all: bool,
    /// Nothing is left of it but when it was.
    pub(crate) lost: bool,
}

/// Writes a segment of a recorder to where it belongs by its time, secrets masked; `detail`: conditions that held.
///
/// # Errors
/// When the disk does not take it.
pub(crate) fn save(
    observed: Observed,
    collected: Collected,
    scope: Scope,
    detail: Vec<String>,
    keep: Keep,
    place: impl FnOnce(i64) -> std::path::PathBuf,
) -> Result<(), Error> {
    let mut segment = segment(observed, collected.into(), scope);
    segment.head.detail = detail;
    if !keep.all {
        bound(&mut segment);
    }
    match keep.redacted {
        true => redact(&mut segment),
        false => mask(&mut segment),
    }
    if keep.lost {
        segment.head.lose();
    }
    let place = place(segment.head.started_unix);
    holdup_recording::save(&segment, &place)?;
    // What nobody has seen is no sign of what is usual.
    if let Some(folder) = place.parent().filter(|_| !keep.lost) {
        usual::learn(folder, &segment);
    }
    Ok(())
}

/// What was collected, with the head that says whose it is.
fn segment(observed: Observed, evidence: Evidence, scope: Scope) -> Segment {
    let Evidence {
        attributed,
        facts,
        build_ids,
        look,
    } = evidence;
    let offset = i128::from(facts.unix_minus_monotonic.unwrap_or_default());
    let started_unix = i64::try_from(i128::from(observed.started) + offset).unwrap_or_default();
    // Of what stands in no frame the id is of no use.
    let waits = attributed.waits.iter();
    let named: BTreeSet<&str> = waits
        .flat_map(|wait| &wait.asker.stack)
        .filter_map(|frame| frame.module.as_deref())
        .collect();
    let mut build_ids = build_ids;
    build_ids.retain(|name, _| named.contains(name.as_str()));
    let uname = nix::sys::utsname::uname().ok();
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let length = match attributed.of_threads || look.is_some() {
        true => attributed.wall,
        false => attributed.elapsed,
    };
    let ended = observed.started.saturating_add(length);
    let head = Head {
        holdup: env!("CARGO_PKG_VERSION").to_owned(),
        command: observed.command,
        pids: observed.pids,
        ended_boot: facts
            .boot_minus_monotonic
            .map(|slept| ended.saturating_add(slept)),
        exit: observed.exit,
        elsewhere: observed.elsewhere,
        host: uname.as_ref().map(|uname| text(uname.nodename())),
        boot_id: boot_id(),
        kernel: uname.as_ref().map(|uname| text(uname.release())),
        zone: zone(started_unix),
        unit: scope.unit,
        cgroup: scope.cgroup,
        build_ids,
        ..Head::new(
            (observed.kind, observed.backend),
            (observed.started, started_unix),
            length,
        )
    };
    Segment {
        head,
        attributed,
        facts,
        look,
    }
}

/// What tells this boot from all others.
pub(crate) fn boot_id() -> Option<String> {
    let path = Root::system().proc.join("sys/kernel/random/boot_id");
    root::text_if_there(&path).map(|id| id.trim().to_owned())
}

/// This machine's, at that time.
fn zone(unix_ns: i64) -> Zone {
    let zone = TimeZone::system();
    let at = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    Zone {
        name: zone.iana_name().map(str::to_owned),
        offset: zone.to_offset(at).seconds(),
    }
}
