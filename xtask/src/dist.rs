//! `cargo xtask dist`: holdup as one gets it without a compiler.
//!
//! In: this checkout at a commit. Out: `target/dist` with a static binary, an archive, packages for Debian's and Red Hat's families, an image for
//! containers, what all of it is made of, and checksums. The time in each of them is the commit's, so that two builds of one commit in one
//! folder are the same bytes. `--try` starts them in bare root file systems, and installs, upgrades and removes the package.

mod binary;
mod image;
mod materials;
mod packages;
mod tried;

use crate::setup::{self, Packages};
use crate::{process, workspace};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What makes packages: `dpkg-deb` is everywhere where Debian's are installed. `lld` links what is in them.
const PACKAGES: Packages = Packages {
    purpose: "make packages",
    names: &["binutils", "dpkg", "gzip", "lld", "rpm", "tar"],
};

/// What there is to be tried in.
const TRY: Packages = Packages {
    purpose: "try packages in root file systems of their own",
    names: &["debootstrap", "util-linux"],
};

/// What to do beside making them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Start what was made in bare root file systems, and install, upgrade and remove the package there: as root
    #[arg(long = "try")]
    tried: bool,
    /// Package this static binary instead of building one, and the `holdup-fleet` beside it, if there is one
    #[arg(long, value_name = "FILE")]
    holdup: Option<PathBuf>,
}

/// What is packaged.
#[derive(Debug)]
struct Release {
    /// `0.1.0`.
    version: String,
    /// When the commit was made: seconds since 1970.
    made: u64,
    /// The static binary.
    binary: PathBuf,
    /// The one that reports on many hosts.
    fleet: Option<PathBuf>,
    /// Where everything goes.
    to: PathBuf,
}

/// Makes everything.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    setup::install(&[setup::BUILD, PACKAGES])?;
    let to = workspace::scratch("dist")?;
    let (binary, fleet) = binary::make(args.holdup.as_deref(), &to)?;
    let release = Release {
        version: version()?,
        made: made()?,
        binary,
        fleet,
        to,
    };
    let mut files = vec![release.binary.clone()];
    files.extend(release.fleet.clone());
    files.push(packages::archive(&release)?);
    files.push(packages::deb(&release, &release.version)?);
    files.push(packages::rpm(&release)?);
    files.push(image::make(&release)?);
    files.push(materials::make(&release)?);
    files.push(checksums(&release, &files)?);
    for file in &files {
        let size = std::fs::metadata(file)
            .with_context(|| format!("look at {}", file.display()))?
            .len();
        println!("{:>12} bytes  {}", size, file.display());
    }
    if args.tried {
        setup::install(&[TRY])?;
        tried::all(&release)?;
    }
    Ok(())
}

/// The version of holdup, as its manifest has it.
fn version() -> anyhow::Result<String> {
    let text = std::fs::read_to_string(workspace::root().join("Cargo.toml")).context("read the manifest")?;
    let manifest: toml::Table = toml::from_str(&text).context("understand the manifest")?;
    let version = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package"))
        .and_then(|package| package.get("version"));
    Ok(version
        .and_then(toml::Value::as_str)
        .context("the manifest has no version")?
        .to_owned())
}

/// When the commit was made.
fn made() -> anyhow::Result<u64> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"])
        .current_dir(workspace::root());
    process::output(&mut git)?
        .trim()
        .parse()
        .context("when the commit was made")
}

/// A file with a checksum of each file.
fn checksums(release: &Release, files: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let mut sums = Command::new("sha256sum");
    for file in files {
        sums.arg(file.file_name().context("a file has a name")?);
    }
    let text = process::output(sums.current_dir(&release.to))?;
    let file = release.to.join("SHA256SUMS");
    std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    Ok(file)
}

/// The SHA-256 of a file, in hexadecimal digits.
fn sha256(file: &Path) -> anyhow::Result<String> {
    let text = process::output(Command::new("sha256sum").arg(file))?;
    match text.split_ascii_whitespace().next() {
        Some(sum) if sum.len() == 64 => Ok(sum.to_owned()),
        _ => bail!("no checksum of {}: {text}", file.display()),
    }
}
