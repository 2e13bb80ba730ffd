//! Debian packages as archives: found, fetched and unpacked, never installed.
//!
//! In: the machine's own package lists, or those of a release that it does not follow; the lists of the latter are
//! kept in a folder of ours, with the machine's own proxies, keys and mirrors. What can't be fetched is an error
//! that says where it was looked for.

use crate::{process, setup};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's keys, for its suites of all ages.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// How the address of a server of security updates ends.
const SECURITY: &str = "debian-security";

/// Package lists.
#[derive(Debug)]
pub(crate) struct Lists {
    /// Options of apt's that choose them.
    options: Vec<String>,
    /// What they are called in messages.
    name: String,
}

impl Lists {
    /// Those of this machine.
    pub(crate) fn of_this_machine() -> Lists {
        Lists {
            options: Vec::new(),
            name: "this machine's package lists".to_owned(),
        }
    }

    /// Those of the security updates of a release; they are where its newest kernel is. Fetched into `folder`.
    pub(super) fn of_security(codename: &str, folder: &Path) -> anyhow::Result<Lists> {
        let home = folder.join(format!("apt-{codename}"));
        for needed in ["lists/partial", "cache/archives/partial"] {
            let needed = home.join(needed);
            std::fs::create_dir_all(&needed).with_context(|| format!("make {}", needed.display()))?;
        }
        let sources = home.join("security.sources");
        let place = |part: &str, path: &Path| format!("{part}={}", path.display());
        let lists = Lists {
            options: vec![
                place("Dir::Etc::sourcelist", &sources),
                "Dir::Etc::sourceparts=-".to_owned(),
                place("Dir::State::lists", &home.join("lists")),
                place("Dir::Cache", &home.join("cache")),
                // By default a list that can't be fetched is a warning.
                "APT::Update::Error-Mode=any".to_owned(),
            ],
            name: format!("{codename}-security"),
        };
        let mut tried = Vec::new();
        for server in servers()? {
            std::fs::write(&sources, entry(&server, codename)).context("write apt's sources")?;
            let update = lists.with(setup::apt_get()).args(["update", "-qq"]).output();
            let update = update.context("start apt-get")?;
            if update.status.success() {
                return Ok(lists);
            }
            let why = String::from_utf8_lossy(&update.stderr);
            tried.push(format!("{server} {codename}-security: {}", why.trim()));
        }
        bail!(
            "the package lists of {codename} can't be fetched:\n{}",
            tried.join("\n")
        )
    }

    /// The newest package whose name is `prefix`, a version, `suffix`.
    pub(super) fn newest(&self, prefix: &str, suffix: &str) -> anyhow::Result<String> {
        for attempt in 0..2 {
            if attempt == 1 && self.options.is_empty() {
                setup::update();
            }
            let mut command = self.with(Command::new("apt-cache"));
            let names = process::output(command.args(["pkgnames", prefix]))?;
            if let Some(name) = newest_of(&names, prefix, suffix) {
                return Ok(name.to_owned());
            }
        }
        bail!("there is no package {prefix}…{suffix} in {}", self.name)
    }

    /// Where the package's files are, under `folder`; fetched if they are not there yet.
    pub(crate) fn unpack(&self, package: &str, folder: &Path) -> anyhow::Result<PathBuf> {
        let unpacked = folder.join(package);
        if unpacked.exists() {
            return Ok(unpacked);
        }
        eprintln!("xtask: fetching {package}");
        let download = tempfile::tempdir_in(folder).context("make a folder to fetch into")?;
        if self.fetch(package, download.path()).is_err() {
            // Lists older than the archive name files that it no longer has.
            if self.options.is_empty() {
                setup::update();
            }
            self.fetch(package, download.path())
                .with_context(|| format!("fetch {package} of {}", self.name))?;
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

    fn fetch(&self, package: &str, into: &Path) -> anyhow::Result<()> {
        process::run(
            self.with(setup::apt_get())
                .args(["download", "-qq", package])
                .stdout(Stdio::null())
                .current_dir(into),
        )
    }

    /// The command with the options that choose these lists.
    fn with(&self, mut command: Command) -> Command {
        for option in &self.options {
            command.args(["-o", option]);
        }
        command
    }
}

/// Where to look for a release's security updates: where this machine gets its own.
fn servers() -> anyhow::Result<Vec<String>> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let servers = security_servers(&process::output(&mut command)?);
    if servers.is_empty() {
        bail!(
            "apt's sources name no server of security updates; add the entry for this release's (…-security)"
        );
    }
    Ok(servers)
}

fn security_servers(configured: &str) -> Vec<String> {
    let mut servers: Vec<String> = Vec::new();
    let own = configured
        .lines()
        .map(|line| line.trim().trim_end_matches('/'))
        .filter(|server| server.ends_with(SECURITY));
    for server in own {
        if !servers.iter().any(|known| known == server) {
            servers.push(server.to_owned());
        }
    }
    servers
}

/// An entry of apt's sources. A server may keep a release longer than its lists call themselves up to date.
fn entry(server: &str, codename: &str) -> String {
    format!(
        "Types: deb\nURIs: {server}\nSuites: {codename}-security\nComponents: main\nSigned-By: {KEYS}\n\
         Check-Valid-Until: no\n"
    )
}

/// Other kinds of kernels, whose names end alike.
const OTHER_KINDS: [&str; 2] = ["-cloud", "-rt"];

fn newest_of<'a>(names: &'a str, prefix: &str, suffix: &str) -> Option<&'a str> {
    names
        .lines()
        .filter(|name| {
            name.strip_prefix(prefix)
                .and_then(|rest| rest.strip_suffix(suffix))
                .is_some_and(|version| !OTHER_KINDS.iter().any(|kind| version.ends_with(kind)))
        })
        .max_by_key(|name| version(name))
}

/// The numbers in a name, in order: what makes 6.1.0-9 older than 6.1.0-50.
fn version(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{entry, newest_of, security_servers};

    #[test]
    fn newest_is_by_number_and_of_the_right_kind() {
        let names = "linux-image-6.1.0-9-amd64\nlinux-image-6.1.0-50-amd64\nlinux-image-6.1.0-51-amd64-dbg\n\
                     linux-image-6.1.0-53-amd64-unsigned\nlinux-image-6.12.1-amd64\n\
                     linux-image-6.1.0-60-cloud-amd64\nlinux-image-6.1.0-61-rt-amd64\n";
        let newest = newest_of(names, "linux-image-6.1.", "-amd64");
        assert_eq!(newest, Some("linux-image-6.1.0-50-amd64"));
        assert_eq!(newest_of(names, "linux-image-5.10.", "-amd64"), None);
    }

    #[test]
    fn security_updates_come_from_where_this_machine_gets_its_own() {
        let configured = "http://mirror.test/debian/\nhttp://mirror.test/debian-security/\n";
        assert_eq!(
            security_servers(configured),
            ["http://mirror.test/debian-security"]
        );
        assert!(security_servers("http://mirror.test/debian/\n").is_empty());
        assert!(
            entry("http://mirror.test/debian-security", "bullseye").contains("Suites: bullseye-security\n")
        );
    }
}
