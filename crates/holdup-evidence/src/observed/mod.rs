//! What artefacts show: the files and outputs that people have of a machine, as evidence.
//!
//! In: what the readers of `holdup-readers` understood. Out: [`Observed`], on which the same rules judge as on a live
//! run. Everything keeps the place it was read from, so that a finding can quote it. Nothing grows with the length of an
//! artefact: series and lists are thinned or cut with a count of what was left out, because a log may be larger than
//! memory.

mod awaited;
mod call_time;
mod cgroups;
mod happening;
mod instead;
mod quote;
mod sample;
mod series;
mod session;
mod snapshot;
mod sockets;
mod span;
mod stacks;
mod statement;
mod storage;
mod when;

pub use awaited::{
    Awaited, CpuShare, DeviceQueue, Doing, FilledVolume, FrozenVolume, MemoryShare, Owed, Precedence,
    SeenClient, SeenLoad, SeenPool, SeenProcess, SeenStandby, SeenWait, Short, Silence, VolumeUser,
};
pub use call_time::{CallTime, Calls, Refused};
pub use cgroups::{CgroupUser, Limited, SeenCgroup};
pub use happening::{
    BootStep, DeviceRequest, Happening, JvmEvent, KernelEvent, LogEvent, ResetReason, Stall, TlsEvent,
    UnitEvent, What,
};
pub use instead::{Killed, Occupied};
pub use quote::{Quote, Source, Taken};
pub use sample::{Samples, Weight};
pub use series::{Metric, Point, Series};
pub use session::{DatabaseServer, SeenSession, SessionDoing};
pub use snapshot::{LockRef, LockWait, SeenFile, SeenThread, Snapshot, SnapshotKind, State};
pub use sockets::{SeenConnection, SeenQueue, SocketCount, SocketKey, SocketTable, TcpState};
pub use span::{Span, SpanKind};
pub use stacks::{StackId, Stacks};
pub use statement::{Blame, How, Known, MessageRole, Statement, StatementKind};
pub use storage::{SeenDevice, SeenFileSystem, SeenSwap, SeenTransfer, SwapList};
pub use when::{Civil, When};

use serde::{Deserialize, Serialize};

/// Everything that was read, of all artefacts together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// What was read, in order; a [`Quote`] refers to one by its place here.
    pub sources: Vec<Source>,
    /// Figures over time.
    pub series: Vec<Series>,
    /// What happened at an instant.
    pub happenings: Vec<Happening>,
    /// Threads at an instant.
    pub snapshots: Vec<Snapshot>,
    /// Time in system calls.
    pub calls: Vec<Calls>,
    /// Profiles.
    pub samples: Vec<Samples>,
    /// Durations that the artefacts state or prove.
    pub spans: Vec<Span>,
    /// What lines of text state, each kind of line once.
    pub statements: Vec<Statement>,
    /// Lists of the swap areas that are switched on.
    pub swap_lists: Vec<SwapList>,
    /// Block devices that are there.
    pub devices: Vec<SeenDevice>,
    /// Lists of sockets.
    pub sockets: Vec<SocketTable>,
    /// File systems that are mounted.
    pub file_systems: Vec<SeenFileSystem>,
    /// Limits of cgroups.
    pub cgroups: Vec<SeenCgroup>,
    /// Which programs read and write most.
    pub transfers: Vec<SeenTransfer>,
    /// Which processes wait for which; `None` where nobody looked.
    pub waits: Option<Vec<SeenWait>>,
    /// File systems that are frozen, with who uses them.
    pub frozen_volumes: Vec<FrozenVolume>,
    /// The stacks of snapshots and samples, each once.
    pub stacks: Stacks,
}

impl Observed {
    /// Whether nothing was understood.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
            && self.happenings.is_empty()
            && self.snapshots.is_empty()
            && self.calls.is_empty()
            && self.samples.is_empty()
            && self.spans.is_empty()
            && self.statements.is_empty()
            && self.swap_lists.is_empty()
            && self.devices.is_empty()
            && self.sockets.is_empty()
            && self.file_systems.is_empty()
            && self.cgroups.is_empty()
            && self.transfers.is_empty()
            && self.waits.is_none()
    }

    /// The series of a metric, of whatever they are.
    pub fn of(&self, metric: Metric) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(move |series| series.metric == metric)
    }

    /// Where a quote comes from: `name:line`.
    #[must_use]
    pub fn place(&self, quote: &Quote) -> String {
        match self.sources.get(quote.source as usize) {
            Some(source) if quote.line > 0 => format!("{}:{}", source.name, quote.line),
            Some(source) => source.name.clone(),
            None => String::new(),
        }
    }
}
