//! System packages: each chore states its list as data, and what is missing is installed at once.
//!
//! In: lists of Debian package names. Out: a machine that has them, or one sentence that says what to type.
//! No chore ever starts a service: what is needed of packages with daemons is unpacked ([`crate::guest`]), or they are installed while
//! the packages' scripts may not start them ([`install_without_starting`]).

use crate::{process, workspace};
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Packages with the purpose that they serve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packages {
    /// Completes "to …".
    pub(crate) purpose: &'static str,
    /// Debian's names.
    pub(crate) names: &'static [&'static str],
}

/// What holdup needs to be built: BPF programs are compiled by clang, libbpf by gcc.
pub(crate) const BUILD: Packages = Packages {
    purpose: "build holdup",
    names: &[
        "clang",
        "gcc",
        "libc6-dev",
        "libelf-dev",
        "linux-libc-dev",
        "make",
        "pkg-config",
        "zlib1g-dev",
    ],
};

/// What the live tests under `crates/` run and look at.
pub(crate) const TEST: Packages = Packages {
    purpose: "run the tests",
    names: &[
        "busybox",
        "dash",
        // `go tool pprof`, protoc and Prometheus' own parser open what holdup exports.
        "golang-go",
        "iproute2",
        "libcap2-bin",
        "perl",
        "php-cli",
        "procps",
        "protobuf-compiler",
        "python3",
        "python3-prometheus-client",
        "ruby",
        "strace",
        // For `systemd-analyze`, and to start the unit of the recorder by itself.
        "systemd",
        "util-linux",
    ],
};

/// What folders ask for in files of their own, as a list.
pub(crate) fn asked_for<'a>(purpose: &'static str, names: impl Iterator<Item = &'a String>) -> Packages {
    let names: BTreeSet<&String> = names.collect();
    // Leaked: lists of packages are otherwise constants, and this happens once.
    let names: Vec<&'static str> = names.into_iter().map(|name| &*name.clone().leak()).collect();
    Packages {
        purpose,
        names: names.leak(),
    }
}

/// How long to wait for another package manager to finish, in seconds: unattended upgrades of a machine that
/// has just been started take a minute or two.
const LOCK_WAIT_SECONDS: u32 = 300;

/// Installs what is missing of these lists; says so in one line, and nothing when nothing is missing.
pub(crate) fn install(lists: &[Packages]) -> anyhow::Result<()> {
    let wanted: BTreeSet<&str> = lists.iter().flat_map(|list| list.names).copied().collect();
    let Some(installed) = installed(&wanted) else {
        eprintln!(
            "xtask: no dpkg here; these Debian packages, or their like, must be there: {}",
            join(&wanted)
        );
        return Ok(());
    };
    let missing: BTreeSet<&str> = wanted
        .into_iter()
        .filter(|name| !installed.contains(*name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let purposes: Vec<&str> = lists
        .iter()
        .filter(|list| list.names.iter().any(|name| missing.contains(name)))
        .map(|list| list.purpose)
        .collect();
    let purposes = purposes.join(" and to ");
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "to {purposes}, packages are missing; as root: apt-get install --no-install-recommends {}",
            join(&missing)
        );
    }
    eprintln!("xtask: installing, to {purposes}: {}", join(&missing));
    update();
    process::run(
        apt_get()
            .args(["install", "-qq", "-y", "--no-install-recommends"])
            .args(&missing)
            .stdout(Stdio::null()),
    )
}

/// The program that Debian's packages ask whether they may start their service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Its answer: no.
const NO: &str = "#!/bin/sh\nexit 101\n";

/// As [`install`], for packages with daemons: none of them is started. Where the machine has a policy of its own, that one holds.
pub(crate) fn install_without_starting(lists: &[Packages]) -> anyhow::Result<()> {
    if !nix::unistd::geteuid().is_root() || std::path::Path::new(POLICY).exists() {
        return install(lists);
    }
    std::fs::write(POLICY, NO).with_context(|| format!("write {POLICY}"))?;
    let result = std::fs::set_permissions(POLICY, Permissions::from_mode(0o755))
        .with_context(|| format!("make {POLICY} a program"))
        .and_then(|()| install(lists));
    std::fs::remove_file(POLICY).with_context(|| format!("remove {POLICY}"))?;
    result
}

/// `apt-get`, never asking anything.
pub(crate) fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("DEBCONF_NOWARNINGS", "yes")
        .args(["-o", "Dpkg::Use-Pty=0", "-o", "APT::Sandbox::User=root"])
        .args(["-o", &format!("DPkg::Lock::Timeout={LOCK_WAIT_SECONDS}")]);
    command
}

/// Refreshes the lists of packages, once. A source that can't be reached is no reason to stop: the packages
/// may well come from another, and installing says so if not.
pub(crate) fn update() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        if let Err(error) = process::run(apt_get().args(["update", "-qq"]).stdout(Stdio::null())) {
            eprintln!("xtask: {error:#}; going on with the package lists that are here");
        }
    });
}

/// Which of the packages are installed; `None` where there is no dpkg.
fn installed(names: &BTreeSet<&str>) -> Option<BTreeSet<String>> {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status} ${Package}\n"])
        .args(names)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(installed_names(&String::from_utf8_lossy(&output.stdout)))
}

/// The names that dpkg-query calls installed.
fn installed_names(listing: &str) -> BTreeSet<String> {
    listing
        .lines()
        .filter_map(|line| line.strip_prefix("installed "))
        .map(str::to_owned)
        .collect()
}

fn join(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(" ")
}

/// What makes a folder of Python packages.
const PYTHON: Packages = Packages {
    purpose: "install Python packages",
    names: &["python3", "python3-venv"],
};

/// Python with these packages from PyPI, installed once into a folder of that name under the target directory.
pub(crate) fn python(folder: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    install(&[PYTHON])?;
    let folder = workspace::scratch(folder)?;
    let (python, made) = (folder.join("bin/python3"), folder.join(packages.join("+")));
    if !made.exists() {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        // Only what is built already: a package's build script is a program of somebody else's.
        let pip = ["-m", "pip", "install", "--quiet", "--prefer-binary"];
        process::run(Command::new(&python).args(pip).args(packages))?;
        std::fs::write(&made, "").with_context(|| format!("write {}", made.display()))?;
    }
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::installed_names;

    #[test]
    fn only_what_is_installed_counts() {
        let listing = "installed gcc\nconfig-files clang\nnot-installed make\nunpacked cpio\n";
        assert_eq!(installed_names(listing).into_iter().collect::<Vec<_>>(), ["gcc"]);
    }
}
