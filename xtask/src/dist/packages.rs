//! The archive and the packages: the same files in each.
//!
//! In: the binary, man pages, completions, the recorder's unit. Out: a `.tar.gz`, a `.deb` and a `.rpm`. Each has its files from one folder that is
//! laid out as a file system is, with the commit's time at every file.

use super::Release;
use crate::{process, workspace};
use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What it is, in a line, and what a person who looks at the package reads.
const SUMMARY: &str = "says what a slow or stuck program, service or machine waits for";
const DESCRIPTION: &str = "holdup names what is waited for, who asked, who is in the way and what to change, with evidence. It traces with BPF, \
samples where it may not trace, and reads what people already have: logs, dumps, and outputs of other tools.";

const LICENSE: &str = "MIT OR Apache-2.0";

/// Where completions go, by their names in `packaging/completions`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("holdup", "usr/share/bash-completion/completions/holdup"),
    ("_holdup", "usr/share/zsh/vendor-completions/_holdup"),
    ("holdup.fish", "usr/share/fish/vendor_completions.d/holdup.fish"),
];

/// `holdup-0.1.0-x86_64.tar.gz`: a folder to be unpacked into `/`.
pub(super) fn archive(release: &Release) -> anyhow::Result<PathBuf> {
    let tree = tree(release)?;
    let file = release
        .to
        .join(format!("holdup-{}-x86_64.tar.gz", release.version));
    let tar = tarred(release, tree.path())?;
    compress(&tar, &file)?;
    Ok(file)
}

/// A folder as a tar archive, the same bytes each time.
pub(super) fn tarred(release: &Release, folder: &Path) -> anyhow::Result<PathBuf> {
    let file = release.to.join("files.tar");
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--format=gnu",
    ])
    .arg(format!("--mtime=@{}", release.made))
    .arg("--file")
    .arg(&file)
    .arg("--directory")
    .arg(folder)
    .arg(".");
    process::run(&mut tar)?;
    Ok(file)
}

/// The same file, compressed without a time or a name in it; the first is gone then.
pub(super) fn compress(from: &Path, to: &Path) -> anyhow::Result<()> {
    let output = std::fs::File::create(to).with_context(|| format!("write {}", to.display()))?;
    process::run(
        Command::new("gzip")
            .args(["-9", "-n", "-c"])
            .arg(from)
            .stdout(output),
    )?;
    std::fs::remove_file(from).with_context(|| format!("remove {}", from.display()))
}

/// Debian's package, as a version of it.
pub(super) fn deb(release: &Release, version: &str) -> anyhow::Result<PathBuf> {
    let tree = tree(release)?;
    let control = tree.path().join("DEBIAN");
    std::fs::create_dir(&control).context("make the folder of the package's description")?;
    let size: u64 = sizes(tree.path())?;
    let text = format!(
        "Package: holdup\nVersion: {version}\nArchitecture: amd64\nMaintainer: holdup <{}/issues>\nSection: admin\nPriority: optional\n\
         Installed-Size: {}\nHomepage: {}\nDescription: {SUMMARY}\n {DESCRIPTION}\n",
        repository()?,
        size.div_ceil(1024),
        repository()?,
    );
    std::fs::write(control.join("control"), text).context("describe the package")?;
    // Nobody but root asks systemd, and there may be none: in an image, say.
    let script = |name: &str, text: &str| -> anyhow::Result<()> {
        let file = control.join(name);
        std::fs::write(&file, format!("#!/bin/sh\nset -e\n{text}"))
            .with_context(|| format!("write {name}"))?;
        std::fs::set_permissions(&file, Permissions::from_mode(0o755))
            .with_context(|| format!("write {name}"))
    };
    let with_systemd = |command: &str| format!("if [ -d /run/systemd/system ]; then {command}; fi\n");
    script("postinst", &with_systemd("systemctl daemon-reload"))?;
    script(
        "prerm",
        &format!(
            "[ \"$1\" = remove ] || exit 0\n{}",
            with_systemd("systemctl disable --now holdup-record.service || true")
        ),
    )?;
    script(
        "postrm",
        &format!(
            "{}if [ \"$1\" = purge ]; then rm -rf /var/lib/holdup; fi\n",
            with_systemd("systemctl daemon-reload")
        ),
    )?;
    let file = release.to.join(format!("holdup_{version}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(tree.path())
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", release.made.to_string())
        .stdout(std::process::Stdio::null());
    process::run(&mut build)?;
    Ok(file)
}

/// Red Hat's package.
pub(super) fn rpm(release: &Release) -> anyhow::Result<PathBuf> {
    let tree = tree(release)?;
    let work = tempfile::tempdir().context("make a folder for rpmbuild")?;
    let mut spec = format!(
        "Name: holdup\nVersion: {}\nRelease: 1\nSummary: {SUMMARY}\nLicense: {LICENSE}\nURL: {}\nAutoReqProv: no\n%description\n{DESCRIPTION}\n%install\ncp -a {}/. %{{buildroot}}\n%files\n",
        release.version,
        repository()?,
        tree.path().display(),
    );
    for file in files(tree.path())? {
        let name = file.strip_prefix(tree.path()).context("a file of the tree")?;
        writeln!(spec, "\"/{}\"", name.display()).context("list the files")?;
    }
    let description = work.path().join("holdup.spec");
    std::fs::write(&description, spec).context("describe the package")?;
    let mut build = Command::new("rpmbuild");
    build
        .args(["-bb", "--quiet", "--target", "x86_64-linux"])
        .args(["--define", &format!("_topdir {}", work.path().display())])
        .args(["--define", "_buildhost holdup"])
        .args(["--define", "use_source_date_epoch_as_buildtime 1"])
        .args(["--define", "clamp_mtime_to_source_date_epoch 1"])
        .args(["--define", "_binary_payload w19.zstdio"])
        // What is in the tree is as it is to be: nothing is stripped, compressed or checked for who built it.
        .args(["--define", "__os_install_post %{nil}"])
        .args(["--define", "_build_id_links none"])
        .arg(&description)
        .env("SOURCE_DATE_EPOCH", release.made.to_string());
    process::run(&mut build)?;
    let made = work
        .path()
        .join(format!("RPMS/x86_64/holdup-{}-1.x86_64.rpm", release.version));
    let file = release
        .to
        .join(format!("holdup-{}-1.x86_64.rpm", release.version));
    std::fs::copy(&made, &file).with_context(|| format!("take {}", made.display()))?;
    Ok(file)
}

/// What is installed, as it lies in a file system.
fn tree(release: &Release) -> anyhow::Result<tempfile::TempDir> {
    let root = workspace::root();
    let tree = tempfile::tempdir().context("make a folder for what is installed")?;
    std::fs::set_permissions(tree.path(), Permissions::from_mode(0o755)).context("open that folder")?;
    let put = |from: &Path, to: &str, mode: u32| -> anyhow::Result<()> {
        let to = tree.path().join(to);
        std::fs::create_dir_all(to.parent().context("a file is in a folder")?)
            .with_context(|| format!("make the folder of {}", to.display()))?;
        std::fs::copy(from, &to).with_context(|| format!("copy {}", from.display()))?;
        std::fs::set_permissions(&to, Permissions::from_mode(mode))
            .with_context(|| format!("set who may read {}", to.display()))
    };
    put(&release.binary, "usr/bin/holdup", 0o755)?;
    if let Some(fleet) = &release.fleet {
        put(fleet, "usr/bin/holdup-fleet", 0o755)?;
    }
    put(
        &root.join("packaging/holdup-record.service"),
        "usr/lib/systemd/system/holdup-record.service",
        0o644,
    )?;
    for (from, to) in COMPLETIONS {
        put(&root.join("packaging/completions").join(from), to, 0o644)?;
    }
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        put(
            &root.join(license),
            &format!("usr/share/doc/holdup/{license}"),
            0o644,
        )?;
    }
    for page in std::fs::read_dir(root.join("man")).context("look at the man pages")? {
        let page = page.context("look at the man pages")?.path();
        let name = page
            .file_name()
            .context("a page has a name")?
            .to_string_lossy()
            .into_owned();
        let to = tree.path().join("usr/share/man/man1").join(format!("{name}.gz"));
        std::fs::create_dir_all(to.parent().context("a file is in a folder")?)
            .context("make the folder of man pages")?;
        let copy = tree.path().join(&name);
        std::fs::copy(&page, &copy).with_context(|| format!("copy {}", page.display()))?;
        compress(&copy, &to)?;
    }
    same_time(tree.path(), release.made)?;
    Ok(tree)
}

/// Gives everything the commit's time.
fn same_time(tree: &Path, made: u64) -> anyhow::Result<()> {
    let mut touch = Command::new("find");
    touch.arg(tree).args([
        "-exec",
        "touch",
        "--no-dereference",
        &format!("--date=@{made}"),
        "{}",
        "+",
    ]);
    process::run(&mut touch)
}

/// All files below a folder, in order.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let text = process::output(Command::new("find").arg(folder).args(["-type", "f"]))?;
    let mut files: Vec<PathBuf> = text.lines().map(PathBuf::from).collect();
    files.sort();
    if files.is_empty() {
        bail!("{} has no files", folder.display());
    }
    Ok(files)
}

/// Bytes of all files.
fn sizes(folder: &Path) -> anyhow::Result<u64> {
    let sizes = files(folder)?.into_iter().map(|file| {
        Ok(std::fs::metadata(&file)
            .with_context(|| format!("look at {}", file.display()))?
            .len())
    });
    sizes.sum()
}

/// Where holdup comes from.
fn repository() -> anyhow::Result<String> {
    let text = std::fs::read_to_string(workspace::root().join("Cargo.toml")).context("read the manifest")?;
    let manifest: toml::Table = toml::from_str(&text).context("understand the manifest")?;
    let repository = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package"))
        .and_then(|package| package.get("repository"));
    Ok(repository
        .and_then(toml::Value::as_str)
        .context("the manifest has no repository")?
        .to_owned())
}
