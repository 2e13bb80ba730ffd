//! File systems that are full when the recording of a machine ends, and who writes there.
//!
//! The problem: a program whose log has no room sleeps and tries again; no event tells that, and who waits for it waits for a pipe. In: the
//! mounts of this machine's own disks. Out: those without room, with the processes that have files open there to write to. A disk that
//! does not answer blocks whoever asks for its room, so a child does that ([`super::behind`]).

use super::behind::Readers;
use holdup_evidence::facts::{FileWriter, FullFileSystem};
use holdup_proc::descriptors;
use holdup_proc::room::{self, Room};
use holdup_proc::{Root, mountinfo, names};

/// File systems that are asked, and those that are kept.
const ASKED_MAX: usize = 256;
const KEPT_MAX: usize = 8;

/// Writers that are kept of each: any of them may be the one that others wait for.
const WRITERS_MAX: usize = 256;

/// Bytes of a KiB.
const KIB: f64 = 1024.0;

/// Those that are full now.
pub(super) fn look() -> Vec<FullFileSystem> {
    let root = Root::system();
    let mounts = mountinfo::read(&root, &mut Vec::new());
    let mut reader: Readers<String, Option<Room>> =
        Readers::new(|| Box::new(|mount: String| room::of(&mount)));
    // Who asks is no process: each mount has a number of its own here, so that one that blocks keeps no other from being asked.
    let asked = room::local(&mounts).into_iter().take(ASKED_MAX).zip(1..);
    let mut full: Vec<FullFileSystem> = asked
        .filter(|(mount, _)| !is_read_only(mount) && !is_image(mount))
        .filter_map(|(mount, number)| {
            let room = reader.ask(number, mount.target.clone()).flatten()?;
            let inodes = room.is_without_inodes() && !room.is_full();
            (room.is_full() || inodes).then(|| FullFileSystem {
                mount: mount.target.clone(),
                source: mount.source.clone(),
                size: (room.size_kib * KIB) as u64,
                left: (room.available_kib * KIB) as u64,
                inodes,
                writers: Vec::new(),
            })
        })
        .take(KEPT_MAX)
        .collect();
    if full.is_empty() {
        return full;
    }
    let directories: Vec<String> = full.iter().map(|one| one.mount.clone()).collect();
    for written in descriptors::writers(&root, &directories, std::process::id()) {
        let of = full.iter_mut().find(|one| one.mount == written.below);
        if let Some(one) = of.filter(|one| one.writers.len() < WRITERS_MAX) {
            one.writers.push(FileWriter {
                pid: written.pid,
                process: names::comm(&root, written.pid).unwrap_or_default(),
                file: written.file,
            });
        }
    }
    full
}

/// Whether nobody can write there in any case.
fn is_read_only(mount: &mountinfo::Line) -> bool {
    mount.options.split(',').any(|option| option == "ro")
}

/// Whether it is made full, and never grows.
fn is_image(mount: &mountinfo::Line) -> bool {
    holdup_knowledge::file_systems::named(&mount.file_system).is_some_and(|known| known.image)
}
