//! The static binary: libbpf, libelf, zlib and the C library within, so that it starts on every Linux of its processor.
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

/// The largest that it may be, bytes.
const SIZE_MAX: u64 = 25 << 20;

/// Builds it, or takes the given one, and puts it without symbols into the folder.
pub(super) fn make(given: Option<&Path>, to: &Path) -> anyhow::Result<PathBuf> {
    let built = match given {
        Some(built) => built.to_owned(),
        None => build(to)?,
    };
    let binary = to.join("holdup");
    let mut strip = Command::new("strip");
    process::run(strip.arg("--strip-all").arg("-o").arg(&binary).arg(&built))?;
    is_static(&binary)?;
    let size = std::fs::metadata(&binary).context("look at the binary")?.len();
    if size > SIZE_MAX {
        bail!("the binary has {size} bytes, and may have {SIZE_MAX}");
    }
    Ok(binary)
}

fn build(to: &Path) -> anyhow::Result<PathBuf> {
    let folder = to.join("build");
    let root = workspace::root();
    let home = std::env::var("CARGO_HOME").unwrap_or_else(|_| "/usr/local/cargo".to_owned());
    // Where it was built is nobody's business, and would make two builds differ.
    let flags = format!(
        "-C target-feature=+crt-static --remap-path-prefix={}=/holdup --remap-path-prefix={home}=/cargo",
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
            "holdup",
        ])
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTFLAGS", flags);
    process::run(&mut cargo)?;
    Ok(folder.join(TARGET).join(PROFILE).join("holdup"))
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
