//! The guest's file system: busybox, sshd with a key, holdup, and the libraries of both.

use super::cpio::Archive;
use super::package;
use crate::process;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the guest's first process does.
const INIT: &str = include_str!("init.sh");

/// sshd without anything that would make it read more files than it must.
const SSHD_CONFIG: &str = "HostKey /etc/ssh/key\nUsePAM no\n";

/// The user that sshd gives up its rights to must exist.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n";

/// The initramfs's bytes. What is fetched and made on the way stays in `folder`.
pub(super) fn build(holdup: &Path, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let busybox = package::unpack("busybox-static", folder)?.join("bin/busybox");
    let sshd = package::unpack("openssh-server", folder)?.join("usr/sbin/sshd");
    let key = host_key(folder)?;

    let mut archive = Archive::default();
    for mount_point in ["/proc", "/sys", "/dev", "/tmp", "/run/sshd", "/root"] {
        archive.folder(mount_point);
    }
    archive.file("/init", 0o755, INIT.as_bytes());
    archive.file("/etc/passwd", 0o644, PASSWD.as_bytes());
    archive.file("/etc/ssh/sshd_config", 0o644, SSHD_CONFIG.as_bytes());
    archive.file("/etc/ssh/key", 0o600, &read(&key)?);
    archive.file("/bin/busybox", 0o755, &read(&busybox)?);
    archive.file("/usr/sbin/sshd", 0o755, &read(&sshd)?);
    archive.file("/bin/holdup", 0o755, &read(holdup)?);
    for library in libraries(&[&sshd, holdup])? {
        let path = library.to_str().context("a library's path is not UTF-8")?;
        archive.file(path, 0o755, &read(&library)?);
    }
    Ok(archive.finish())
}

/// The dynamic loader and every library of these programs, under the paths that the loader looks for.
fn libraries(programs: &[&Path]) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for program in programs {
        // ldd fails for programs that need no loader; those have nothing to add.
        let output = Command::new("ldd")
            .arg(program)
            .stderr(Stdio::null())
            .output()
            .context("start ldd")?;
        if let Err(missing) = libraries_of(&String::from_utf8_lossy(&output.stdout), &mut found) {
            bail!(
                "{} needs {missing}, which is not on this machine",
                program.display()
            );
        }
    }
    Ok(found)
}

/// Reads ldd's listing; the error is a library that it did not find.
fn libraries_of(listing: &str, found: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    for line in listing.lines().map(str::trim) {
        if let Some((name, _)) = line.split_once(" => not found") {
            return Err(name.to_owned());
        }
        let target = line.split_once(" => ").map_or(line, |(_, target)| target);
        if target.starts_with('/') {
            found.extend(target.split_whitespace().next().map(PathBuf::from));
        }
    }
    Ok(())
}

/// A host key for a server that nobody can reach, made once.
fn host_key(folder: &Path) -> anyhow::Result<PathBuf> {
    let key = folder.join("host-key");
    if !key.exists() {
        process::run(
            Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", "guest", "-f"])
                .arg(&key),
        )?;
    }
    Ok(key)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::libraries_of;
    use std::collections::BTreeSet;

    #[test]
    fn ldd_names_the_loader_and_the_libraries() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f)\n\
                       \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n\tstatically linked\n";
        let mut found = BTreeSet::new();
        libraries_of(listing, &mut found).unwrap();
        let found: Vec<&str> = found.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(
            found,
            ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]
        );
    }

    #[test]
    fn a_missing_library_is_named() {
        let listing = "\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\tlibwrap.so.0 => not found\n";
        assert_eq!(
            libraries_of(listing, &mut BTreeSet::new()),
            Err("libwrap.so.0".to_owned())
        );
    }
}
