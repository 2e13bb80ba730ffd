//! `cargo xtask demo`: from nothing to a verdict about a real stall.
//!
//! The stall: a name is looked up, and the name server is silent. `getent`, the C library's resolver and its
//! clock of five seconds are the real ones; only `/etc/resolv.conf` is another, and only for this one program,
//! in a mount namespace of its own. Chosen because it needs nothing that a bare Debian does not have, and
//! because nothing else on the machine shows what such a program waits for.

use crate::{process, workspace};
use anyhow::Context;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loopback address where no name server listens by habit.
const SILENT: Ipv4Addr = Ipv4Addr::new(127, 53, 53, 53);

/// One try and no second, so that the stall is the resolver's default of 5 s and not 10.
const RESOLVER_OPTIONS: &str = "attempts:1";

/// Mounts each pair of arguments before `--`, the first over the second, then becomes the rest.
const IN_OWN_MOUNTS: &str =
    r#"while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 125; shift 2; done; shift; exec "$@""#;

/// Installs, builds, stalls, and shows what holdup says.
pub(crate) fn run() -> anyhow::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        anyhow::bail!("tracing needs root: sudo -E cargo xtask demo");
    }
    let holdup = workspace::quick_holdup()?;
    let server = UdpSocket::bind((SILENT, 53)).with_context(|| {
        format!("make a silent name server at {SILENT}:53: a name server that listens on every address has to be stopped")
    })?;
    let folder = workspace::scratch("demo")?;

    println!("A name server that never answers, and a program that asks it:\n");
    println!("  $ sudo holdup run -- getent ahosts shop.example\n");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", IN_OWN_MOUNTS, "sh"]);
    for (file, over) in stand_ins(&folder)? {
        command.arg(file).arg(over);
    }
    command
        .arg("--")
        .arg(holdup)
        .args(["run", "--", "getent", "ahosts", "shop.example"]);
    let status = command
        .status()
        .with_context(|| format!("start {}", process::words(&command)))?;
    drop(server);
    // getent exits 2 when there is no such name, and holdup exits as CMD did.
    if status.code() != Some(2) {
        anyhow::bail!("no verdict: {status}; target/demo/holdup doctor says what is missing here");
    }
    println!(
        "\nYour own: sudo target/demo/holdup run -- CMD     What it can see here: target/demo/holdup doctor\n\
         That one is compiled for a first look. `cargo build --release` makes the one to keep: target/release/holdup"
    );
    Ok(())
}

/// The files that this one program is to see instead of the machine's: its resolver's configuration, and no
/// other service that could answer in the resolver's place.
fn stand_ins(folder: &Path) -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
    let files = [
        (
            "resolv.conf",
            "/etc/resolv.conf",
            format!("nameserver {SILENT}\noptions {RESOLVER_OPTIONS}\n"),
        ),
        (
            "nsswitch.conf",
            "/etc/nsswitch.conf",
            "hosts: files dns\n".to_owned(),
        ),
    ];
    let mut mounts = Vec::new();
    for (name, over, text) in files {
        let file = folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        mounts.push((file, PathBuf::from(over)));
    }
    let empty = folder.join("empty");
    std::fs::create_dir_all(&empty).with_context(|| format!("make {}", empty.display()))?;
    mounts.push((empty, PathBuf::from("/run/nscd")));
    mounts.retain(|(_, over)| over.exists());
    Ok(mounts)
}
