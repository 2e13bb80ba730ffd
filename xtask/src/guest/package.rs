//! Debian packages as archives: found, fetched and unpacked, never installed.

use crate::{process, setup};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest package whose name is `prefix`, a version, `suffix`.
pub(super) fn newest(prefix: &str, suffix: &str) -> anyhow::Result<String> {
    for attempt in 0..2 {
        if attempt == 1 {
            setup::update();
        }
        let names = process::output(Command::new("apt-cache").args(["pkgnames", prefix]))?;
        if let Some(name) = newest_of(&names, prefix, suffix) {
            return Ok(name.to_owned());
        }
    }
    bail!("apt knows no package {prefix}…{suffix}; it is in Debian 12 and its security updates")
}

fn newest_of<'a>(names: &'a str, prefix: &str, suffix: &str) -> Option<&'a str> {
    names
        .lines()
        .filter(|name| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| rest.ends_with(suffix))
        })
        .max_by_key(|name| version(name))
}

/// The numbers in a name, in order: what makes 6.1.0-9 older than 6.1.0-50.
fn version(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

/// Where the package's files are, under `folder`; fetched if they are not there yet.
pub(crate) fn unpack(package: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let unpacked = folder.join(package);
    if unpacked.exists() {
        return Ok(unpacked);
    }
    eprintln!("xtask: fetching {package}");
    let download = tempfile::tempdir_in(folder).context("make a folder to fetch into")?;
    if fetch(package, download.path()).is_err() {
        // Lists older than the archive name files that it no longer has.
        setup::update();
        fetch(package, download.path())?;
    }
    let archive = std::fs::read_dir(download.path())
        .context("look at what was fetched")?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .with_context(|| format!("apt-get fetched no archive of {package}"))?;
    let files = download.path().join("files");
    process::run(Command::new("dpkg-deb").arg("--extract").arg(archive).arg(&files))?;
    // Renamed when whole, so that what is there is whole.
    std::fs::rename(&files, &unpacked).with_context(|| format!("make {}", unpacked.display()))?;
    Ok(unpacked)
}

fn fetch(package: &str, into: &Path) -> anyhow::Result<()> {
    process::run(
        setup::apt_get()
            .args(["download", "-qq", package])
            .current_dir(into),
    )
}

#[cfg(test)]
mod tests {
    use super::newest_of;

    #[test]
    fn newest_is_by_number_and_of_the_right_kind() {
        let names = "linux-image-6.1.0-9-cloud-amd64\nlinux-image-6.1.0-50-cloud-amd64\n\
                     linux-image-6.1.0-51-cloud-amd64-dbg\nlinux-image-6.1.0-53-cloud-amd64-unsigned\n\
                     linux-image-6.12.1-cloud-amd64\nlinux-image-6.1.0-60-amd64\n";
        let newest = newest_of(names, "linux-image-6.1.", "-cloud-amd64");
        assert_eq!(newest, Some("linux-image-6.1.0-50-cloud-amd64"));
        assert_eq!(newest_of(names, "linux-image-5.10.", "-cloud-amd64"), None);
    }
}
