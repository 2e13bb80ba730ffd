//! The guest's file system: what Debian's packages put on this machine, sshd with a key, holdup, the scenarios and
//! the libraries of all of them. One for every kernel.

use super::cpio::Archive;
use super::package::Lists;
use super::packages;
use super::systemd;
use crate::process;
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the guest's first process does.
const INIT: &str = include_str!("init.sh");
/// What it runs when the kernel's randomness has been judged: the scenarios.
const RING: &str = include_str!("ring.sh");

/// Small files of every system.
const FILES: [(&str, &str); 6] = [
    // sshd without anything that would make it read more files than it must.
    ("/etc/ssh/sshd_config", "HostKey /etc/ssh/key\nUsePAM no\n"),
    // The user that sshd gives up its rights to must exist.
    (
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n",
    ),
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n"),
    (
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\n",
    ),
    ("/etc/resolv.conf", ""),
];

/// Folders that are one with another, as Debian has them since its release 12.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// What nobody runs.
const LEFT_OUT: [&str; 7] = [
    "/usr/share/doc/",
    "/usr/share/man/",
    "/usr/share/locale/",
    "/usr/share/info/",
    "/usr/share/lintian/",
    "/usr/share/bash-completion/",
    "/usr/include/",
];

/// What the guest is to do and with what.
#[derive(Debug)]
pub(super) struct Content<'a> {
    /// The holdup binary.
    pub(super) holdup: &'a Path,
    /// The scenarios, if it is to run any.
    pub(super) ring: Option<Ring<'a>>,
}

/// What scenarios need.
#[derive(Debug)]
pub(super) struct Ring<'a> {
    /// The folder `scenarios/`.
    pub(super) scenarios: &'a Path,
    /// The scenarios' compiled programs.
    pub(super) programs: &'a Path,
    /// Debian's packages that must be there.
    pub(super) packages: &'a BTreeSet<String>,
    /// What to run, a line each: the scenario's folder below `scenarios/`, and the side.
    pub(super) runs: &'a [String],
}

/// A file that the archive will have.
enum Entry {
    File(u32, Vec<u8>),
    Link(String),
}

/// The initramfs's bytes. What is fetched and made on the way stays in `folder`.
pub(super) fn build(content: &Content<'_>, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let here = Lists::of_this_machine();
    let busybox = here.unpack("busybox-static", folder)?.join("bin/busybox");
    let sshd = here.unpack("openssh-server", folder)?.join("usr/sbin/sshd");

    let mut root = Root::default();
    for (path, text) in FILES {
        root.text(path, 0o644, text);
    }
    root.text("/init", 0o755, INIT);
    root.file("/etc/ssh/key", 0o600, &host_key(folder)?)?;
    root.file("/usr/bin/busybox", 0o755, &busybox)?;
    root.file("/usr/sbin/sshd", 0o755, &sshd)?;
    root.file("/usr/bin/holdup", 0o755, content.holdup)?;
    let mut programs = vec![sshd, content.holdup.to_owned()];
    if let Some(ring) = &content.ring {
        root.text("/ring/run.sh", 0o755, RING);
        root.text("/ring/list", 0o644, &lines(ring.runs));
        root.tree("/scenarios", ring.scenarios)?;
        root.tree("/ring/programs", ring.programs)?;
        for path in packages::files(ring.packages)? {
            root.as_here(&path)?;
        }
        programs.extend(files_of(ring.programs)?);
    }
    for library in libraries(&programs)? {
        root.file(&library, 0o755, Path::new(&library))?;
    }
    Ok(root.finish())
}

/// The initramfs of a guest that systemd starts: Debian's, with a few units of ours.
pub(super) fn build_with_systemd(holdup: &Path, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let here = Lists::of_this_machine();
    let busybox = here.unpack("busybox-static", folder)?.join("bin/busybox");
    let sshd = here.unpack("openssh-server", folder)?.join("usr/sbin/sshd");

    let mut root = Root::default();
    for (path, text) in FILES.into_iter().chain(systemd::FILES) {
        root.text(path, 0o644, text);
    }
    for (path, target) in systemd::LINKS {
        root.add(path, Entry::Link(target.to_owned()));
    }
    root.file("/etc/ssh/key", 0o600, &host_key(folder)?)?;
    root.file("/usr/bin/busybox", 0o755, &busybox)?;
    root.file("/usr/sbin/sshd", 0o755, &sshd)?;
    root.file("/usr/bin/holdup", 0o755, holdup)?;
    let names = systemd::PACKAGES.names.iter().map(|name| (*name).to_owned());
    for path in packages::files(&names.collect())? {
        root.as_here(&path)?;
    }
    for library in libraries(&[sshd, holdup.to_owned()])? {
        root.file(&library, 0o755, Path::new(&library))?;
    }
    Ok(root.finish())
}

fn lines(runs: &[String]) -> String {
    runs.iter().fold(String::new(), |text, run| text + run + "\n")
}

/// The archive to be: each path once.
#[derive(Default)]
struct Root(BTreeMap<String, Entry>);

impl Root {
    /// A path below the merged folders; the first that is added under a path stays.
    fn add(&mut self, path: &str, entry: Entry) {
        let path = merged(path);
        self.0.entry(path).or_insert(entry);
    }

    fn text(&mut self, path: &str, permissions: u32, text: &str) {
        self.add(path, Entry::File(permissions, text.as_bytes().to_vec()));
    }

    fn file(&mut self, path: &str, permissions: u32, source: &Path) -> anyhow::Result<()> {
        let bytes = std::fs::read(source).with_context(|| format!("read {}", source.display()))?;
        self.add(path, Entry::File(permissions, bytes));
        Ok(())
    }

    /// What this machine has at a path, if it is a file or a link.
    fn as_here(&mut self, path: &str) -> anyhow::Result<()> {
        // A package may list what an administrator removed or a diversion moved.
        let Ok(is) = std::fs::symlink_metadata(path) else {
            return Ok(());
        };
        if is.is_symlink() {
            let target = std::fs::read_link(path).with_context(|| format!("read {path}"))?;
            self.add(path, Entry::Link(target.to_string_lossy().into_owned()));
        } else if is.is_file() {
            self.file(path, is.permissions().mode() & 0o7777, Path::new(path))?;
            // Compiling a module takes an emulated Python longer than running it.
            if let Some((compiled, bytes)) = compiled_python(Path::new(path)) {
                self.add(&compiled, Entry::File(0o644, bytes));
            }
        }
        Ok(())
    }

    /// Everything in a folder of this machine's, with its permissions.
    fn tree(&mut self, path: &str, source: &Path) -> anyhow::Result<()> {
        for file in files_of(source)? {
            let below = file.strip_prefix(source).expect("it was found below it");
            let path = format!("{path}/{}", below.to_string_lossy());
            let is = std::fs::metadata(&file).with_context(|| format!("look at {}", file.display()))?;
            self.file(&path, is.permissions().mode() & 0o7777, &file)?;
        }
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        let mut archive = Archive::default();
        for folder in [
            "/proc",
            "/sys",
            "/dev",
            "/tmp",
            "/run/sshd",
            "/root",
            "/out",
            "/var/tmp",
            "/usr/bin",
            "/usr/sbin",
            "/usr/lib64",
        ] {
            archive.folder(folder);
        }
        for name in MERGED {
            archive.link(name, &format!("usr/{name}"));
        }
        for (path, entry) in &self.0 {
            match entry {
                Entry::File(permissions, bytes) => archive.file(path, *permissions, bytes),
                Entry::Link(target) => archive.link(path, target),
            }
        }
        archive.finish()
    }
}

/// `/bin/x` is `/usr/bin/x`.
fn merged(path: &str) -> String {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    if MERGED.contains(&first) {
        format!("/usr{path}")
    } else {
        path.to_owned()
    }
}

/// Whether a path of a package is worth its place in a small memory. The merged folders are made apart.
pub(super) fn wanted(path: &str) -> bool {
    !LEFT_OUT.iter().any(|prefix| path.starts_with(prefix)) && !MERGED.contains(&path.trim_start_matches('/'))
}

/// What Python keeps of a source file once it has compiled it, where it has.
fn compiled_python(source: &Path) -> Option<(String, Vec<u8>)> {
    source.extension().filter(|extension| *extension == "py")?;
    let name = source.file_stem()?.to_str()?;
    let folder = source.parent()?.join("__pycache__");
    let compiled = std::fs::read_dir(&folder)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| {
            let file = path
                .file_name()
                .and_then(|file| file.to_str())
                .unwrap_or_default();
            file.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(".cpython-") && !rest.contains(".opt-"))
        })?;
    Some((compiled.to_str()?.to_owned(), std::fs::read(&compiled).ok()?))
}

/// Every regular file below a folder.
fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("read {}", folder.display()))?;
            let kind = entry
                .file_type()
                .with_context(|| format!("look at {}", folder.display()))?;
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The dynamic loader and every library of these programs, under the paths that the loader looks for.
fn libraries(programs: &[PathBuf]) -> anyhow::Result<BTreeSet<String>> {
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
fn libraries_of(listing: &str, found: &mut BTreeSet<String>) -> Result<(), String> {
    for line in listing.lines().map(str::trim) {
        if let Some((name, _)) = line.split_once(" => not found") {
            return Err(name.to_owned());
        }
        let target = line.split_once(" => ").map_or(line, |(_, target)| target);
        if target.starts_with('/') {
            found.extend(target.split_whitespace().next().map(str::to_owned));
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

#[cfg(test)]
mod tests {
    use super::{libraries_of, merged, wanted};
    use std::collections::BTreeSet;

    #[test]
    fn ldd_names_the_loader_and_the_libraries() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f)\n\
                       \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n\tstatically linked\n";
        let mut found = BTreeSet::new();
        libraries_of(listing, &mut found).unwrap();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
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

    #[test]
    fn a_path_is_the_same_by_way_of_the_merged_folders() {
        assert_eq!(
            merged("/lib/x86_64-linux-gnu/libc.so.6"),
            "/usr/lib/x86_64-linux-gnu/libc.so.6"
        );
        assert_eq!(merged("/usr/bin/cat"), "/usr/bin/cat");
        assert_eq!(merged("/library/x"), "/library/x");
    }

    #[test]
    fn nobody_runs_a_manual() {
        assert!(!wanted("/usr/share/man/man1/cat.1.gz"));
        assert!(!wanted("/lib64"));
        assert!(wanted("/usr/share/zoneinfo/UTC") && wanted("/bin/cat"));
    }
}
