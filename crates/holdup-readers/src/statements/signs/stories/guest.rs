//! A virtual machine of libvirt whose lock somebody holds: libvirt names the procedure of the call that does, and what that call is for says what
//! the others wait for.
//!
//! In: `cannot acquire state change lock (held by monitor=remoteDispatchDomainMigratePrepare3Params)`, `Cannot start job (…) for domain …`. Out:
//! one fact for each guest and holder.

use super::{Line, Span, times};
use crate::statements::signs::{Told, length_ns};
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;

/// Guests that are followed, and those that are told.
const MAX_GUESTS: usize = 200;
const MAX_TOLD: usize = 4;

/// Bytes of a name.
const MAX_BYTES: usize = 80;

/// What libvirt's procedures (remote_protocol.x) do, by a part of their names; the first that fits.
const PROCEDURES: [(&str, &str); 29] = [
    (
        "MigratePrepare",
        "a live migration that is being prepared on this host",
    ),
    ("MigratePerform", "a live migration that moves it to another host"),
    ("MigrateBegin", "a live migration that begins"),
    ("MigrateFinish", "a live migration that comes to its end"),
    ("MigrateConfirm", "a live migration that comes to its end"),
    ("Migrate", "a live migration"),
    ("BackupBegin", "a backup that begins"),
    ("SnapshotCreate", "a snapshot that is being made"),
    ("Snapshot", "work on its snapshots"),
    ("CheckpointCreate", "a checkpoint that is being made"),
    ("BlockCommit", "a block job that merges images (commit)"),
    ("BlockRebase", "a block job that copies an image"),
    ("BlockCopy", "a block job that copies an image"),
    ("BlockPull", "a block job that copies an image"),
    ("BlockJobAbort", "the end of a block job, which does not come"),
    ("ManagedSave", "saving its memory to disk"),
    ("DomainSave", "saving its memory to disk"),
    ("DomainRestore", "restoring its memory from disk"),
    ("CoreDump", "a dump of its memory"),
    ("DomainCreate", "its own start"),
    ("DomainShutdown", "its shutdown"),
    ("DomainDestroy", "its end by force (destroy): QEMU does not end"),
    ("DomainReboot", "its reboot"),
    ("AttachDevice", "the attachment of a device"),
    ("DetachDevice", "the removal of a device"),
    (
        "AgentCommand",
        "a command to the agent in the guest, which does not answer",
    ),
    (
        "FSFreeze",
        "a freeze of its file systems by the agent in the guest",
    ),
    ("Stats", "a query to QEMU's monitor, which does not answer"),
    ("Info", "a query to QEMU's monitor, which does not answer"),
];

/// The guests of one artefact.
#[derive(Debug, Default)]
pub(super) struct Guests {
    guests: Vec<Guest>,
}

#[derive(Debug, Default)]
struct Guest {
    name: String,
    holder: String,
    times: u64,
    longest: Option<Ns>,
    span: Span,
}

impl Guests {
    pub(super) fn line(&mut self, line: Line<'_>) {
        let text = line.text;
        let of_lock = text.contains("state change lock");
        if !of_lock && !text.contains("annot start job (") {
            return;
        }
        let Some(holder) = holder(text) else {
            return;
        };
        let name = guest(text).unwrap_or_default();
        let place = self
            .guests
            .iter()
            .position(|guest| guest.name == name && guest.holder == holder);
        let place = match place {
            Some(place) => place,
            None if self.guests.len() < MAX_GUESTS => {
                self.guests.push(Guest {
                    name: name.to_owned(),
                    holder: holder.to_owned(),
                    ..Guest::default()
                });
                self.guests.len() - 1
            }
            None => return,
        };
        if let Some(guest) = self.guests.get_mut(place) {
            guest.times += 1;
            guest.longest = guest.longest.max(held_for(text));
            guest.span.add(line);
        }
    }

    pub(super) fn end(mut self, told: &mut Told) -> Vec<Fact> {
        self.guests.retain(|guest| does(&guest.holder).is_some());
        self.guests
            .sort_by_key(|guest| std::cmp::Reverse((guest.longest, guest.times)));
        let facts = self.guests.iter().take(MAX_TOLD).map(|guest| Fact {
            kind: StatementKind::TimedOut,
            share: None,
            ns: guest.longest,
            line: guest.span.tell(told),
            text: guest.sentence(),
        });
        facts.collect()
    }
}

impl Guest {
    fn sentence(&self) -> String {
        let who = match self.name.as_str() {
            "" => "a virtual machine".to_owned(),
            name => format!("the virtual machine {name}"),
        };
        let does = does(&self.holder).unwrap_or_default();
        let long = self
            .longest
            .map(|ns| format!(" for {}", duration(ns)))
            .unwrap_or_default();
        format!(
            "calls for {who} time out{}, as its state change lock is held{long} by {does} ({})",
            times(self.times),
            self.holder
        )
    }
}

fn does(procedure: &str) -> Option<&'static str> {
    let found = PROCEDURES.iter().find(|(part, _)| procedure.contains(part));
    found.map(|(_, does)| *does)
}

/// The procedure that holds the lock: `held by monitor=remoteDispatchX`, `owned by (1234 remoteDispatchX, …)`.
fn holder(text: &str) -> Option<&str> {
    let (_, behind) = text
        .split_once("held by ")
        .or_else(|| text.split_once("owned by ("))?;
    let at = behind.find("remoteDispatch")?;
    let name = behind.get(at..)?;
    let end = name
        .find(|char: char| !char.is_ascii_alphanumeric())
        .unwrap_or(name.len());
    name.get(..end).filter(|name| name.len() < MAX_BYTES)
}

/// The guest: `domain=vm1`, `for domain vm1;`, `domain 'vm1'`.
fn guest(text: &str) -> Option<&str> {
    ["domain=", "for domain ", "domain '", "domain \"", "domain: "]
        .iter()
        .find_map(|before| {
            let (_, rest) = text.split_once(before)?;
            let rest = rest.trim_start_matches(['"', '\'']);
            let end = rest
                .find(|char: char| char.is_whitespace() || matches!(char, ';' | ',' | '"' | '\'' | ')' | ':'))
                .unwrap_or(rest.len());
            rest.get(..end)
                .filter(|name| !name.is_empty() && name.len() < MAX_BYTES)
        })
}

/// The longest of `for (30s, 0s, 35s)`.
fn held_for(text: &str) -> Option<Ns> {
    let (_, rest) = text.rsplit_once("for (")?;
    let (inside, _) = rest.split_once(')')?;
    let lengths = inside.split(',').filter_map(|length| length_ns(length.trim()));
    let longest = lengths.max_by(f64::total_cmp)?;
    Some(longest as Ns).filter(|ns| *ns > 0)
}
