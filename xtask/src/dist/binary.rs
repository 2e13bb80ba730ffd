//! The static binaries: libbpf, libelf, zlib and the C library within, so that they start on every Linux of their processor.
//!
//! With GNU's C library, because that is what Debian has static libelf and zlib for. Nothing of holdup looks up users or hosts by name,
//! which is what a static GNU C library can't do alone.

use super::process;
use crate::workspace;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What Cargo.toml says of how it is compiled.
const PROFILE: &str = "dist";

/// The largest that `holdup` may be, bytes. What reports on many hosts is on a few machines, and has no limit.
const SIZE_MAX: u64 = 25 << 20;

/// The program that every host has, and the one that reports on many hosts.
const HOLDUP: &str = "holdup";
const FLEET: &str = "holdup-fleet";

/// Builds them, or takes the given one and what is beside it, and puts them without symbols into the folder.
pub(super) fn make(given: Option<&Path>, to: &Path) -> anyhow::Result<(PathBuf, Option<PathBuf>)> {
    let (holdup, fleet) = match given {
        Some(built) => {
            let fleet = built.with_file_name(FLEET);
            (built.to_owned(), fleet.exists().then_some(fleet))
        }
        // One by one: what one needs of a library is no part of the other.
        None => (build(HOLDUP, to)?, Some(build(FLEET, to)?)),
    };
    let binary = stripped(&holdup, &to.join(HOLDUP))?;
    let size = std::fs::metadata(&binary).context("look at the binary")?.len();
    if size > SIZE_MAX {
        bail!("the binary has {size} bytes, and may have {SIZE_MAX}");
    }
    let fleet = fleet.map(|fleet| stripped(&fleet, &to.join(FLEET)));
    Ok((binary, fleet.transpose()?))
}

/// A binary without symbols, which is static.
fn stripped(built: &Path, to: &Path) -> anyhow::Result<PathBuf> {
    let mut strip = Command::new("strip");
    process::run(strip.arg("--strip-all").arg("-o").arg(to).arg(built))?;
    is_static(to)?;
    Ok(to.to_owned())
}

fn build(package: &str, to: &Path) -> anyhow::Result<PathBuf> {
    let folder = to.join("build");
    let root = workspace::root();
    let home = std::env::var("CARGO_HOME").unwrap_or_else(|_| "/usr/local/cargo".to_owned());
    // Where it was built is nobody's business, and would make two builds differ. Relative relocations are packed (by LLVM's linker, as Debian's
    // older GNU one can't for static programs): three quarters of a megabyte less.
    let flags = format!(
        "-C target-feature=+crt-static -C link-arg=-fuse-ld=lld -C link-arg=-Wl,--pack-dyn-relocs=relr \
         --remap-path-prefix={}=/holdup --remap-path-prefix={home}=/cargo",
        root.display()
    );
    let mut cargo = workspace::cargo();
    cargo
        .args([
            "build",
            "--profile",
            PROFILE,
            "--locked",
            "--target",
            TARGET,
            "--package",
            package,
        ])
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTFLAGS", flags);
    process::run(&mut cargo)?;
    Ok(folder.join(TARGET).join(PROFILE).join(package))
}

/// An error unless no library is loaded with it.
fn is_static(binary: &Path) -> anyhow::Result<()> {
    let text = process::output(
        Command::new("readelf")
            .args(["--dynamic", "--program-headers", "--wide"])
            .arg(binary),
    )?;
    match text
        .lines()
        .find(|line| line.contains("(NEEDED)") || line.contains(" INTERP "))
    {
        Some(line) => bail!("{} is not static: {}", binary.display(), line.trim()),
        None => Ok(()),
    }
}
