//! Ends FUSE connections of a hostile user: who waits for a daemon that is gone, but whose descriptor another still holds, can't be killed.
//!
//! In: a uid. Out: connections that this user mounted are aborted, by the kernel's own file system for that.

use crate::process;
use anyhow::Context;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// Aborts all of that user's.
pub(crate) fn abort(uid: u32) -> anyhow::Result<()> {
    let place = tempfile::Builder::new()
        .prefix("holdup-attacks-fuse-")
        .tempdir()
        .context("make a folder for fusectl")?;
    process::run(
        Command::new("mount")
            .args(["-t", "fusectl", "none"])
            .arg(place.path()),
    )?;
    let aborted = abort_in(place.path(), uid);
    process::run(Command::new("umount").arg(place.path()))?;
    aborted
}

fn abort_in(place: &Path, uid: u32) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(place).context("list FUSE connections")? {
        let file = entry.context("list FUSE connections")?.path().join("abort");
        // One that is not there any more has ended meanwhile.
        if file.metadata().is_ok_and(|about| about.uid() == uid) {
            match std::fs::write(&file, "1") {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                other => other.with_context(|| format!("write {}", file.display()))?,
            }
        }
    }
    Ok(())
}
