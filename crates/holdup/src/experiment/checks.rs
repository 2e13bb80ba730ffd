//! Can it be done safely, and what will CMD reach all the same? Decided before anything runs.
//!
//! In: the way, and what was seen of this machine and of `--memory DIR` ([`Sight`]). Out: what is contained and what is not, or the
//! reason why it is not done. Pure: tested by taking one thing away at a time.

use super::without::{Means, Way};
use holdup_views::units::bytes;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sight {
    /// Whether holdup is root.
    pub(crate) root: bool,
    /// Whether CMD is to be another user than holdup.
    pub(crate) other_user: bool,
    /// Whether there is a file `/etc/hosts`.
    pub(crate) hosts: bool,
    /// How often CMD will run, all in all.
    pub(crate) runs: u32,
    /// What `--memory` names.
    pub(crate) directory: Option<Directory>,
}

/// What was seen of a directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// The directory itself, whatever its path leads to by now.
    pub(crate) held: Option<Arc<OwnedFd>>,
    /// Its file system.
    pub(crate) file_system: String,
    /// A look at a file there can block for good.
    pub(crate) can_block: bool,
    /// All files below it.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// There was more than was looked at.
    pub(crate) too_many: bool,
    /// A file that belongs to another user, or another group than the first one, than who runs holdup.
    pub(crate) anothers: Option<PathBuf>,
    /// A socket on which somebody listens.
    pub(crate) served: Option<PathBuf>,
    /// Another file system that is mounted below.
    pub(crate) mounted_below: Option<PathBuf>,
    /// How many bytes of memory may be used.
    pub(crate) memory: u64,
}

/// What CMD can touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) contained: Vec<String>,
    pub(crate) not_contained: Vec<String>,
}

/// Decides.
///
/// # Errors
/// One sentence: why it is not done, and what would be right.
pub(crate) fn decide(way: &Way, sight: &Sight) -> Result<Reach, String> {
    let memory = matches!(way.means, Means::Memory);
    let directory = match (&sight.directory, memory) {
        (None, true) => {
            return Err(format!(
                "--without {} needs --memory DIR, the directory that CMD writes to",
                way.name
            ));
        }
        (Some(_), false) => {
            return Err(format!(
                "--memory works with --without disk and lock.file; remove it for --without {}",
                way.name
            ));
        }
        (directory, _) => directory.as_ref(),
    };
    if !sight.root && sight.other_user {
        return Err("--user needs root: only root can change to another user".to_owned());
    }
    if let Some(directory) = directory {
        fit(directory, sight)?;
    }
    if matches!(way.means, Means::Names) {
        names(sight)?;
    }
    Ok(reach(directory, sight))
}

/// Whether a table of names can be had, and put where programs look for one.
fn names(sight: &Sight) -> Result<(), String> {
    if !sight.root {
        return Err(
            "--without net.dns needs root: only tracing reports the names that CMD looks up".to_owned(),
        );
    }
    if !sight.hosts {
        return Err("--without net.dns needs a file /etc/hosts, and there is none".to_owned());
    }
    Ok(())
}

/// Whether an overlay over it does what it should.
fn fit(directory: &Directory, sight: &Sight) -> Result<(), String> {
    let path = &directory.path;
    if path == Path::new("/") {
        return Err("--memory / would include everything; name the directory that CMD writes to".to_owned());
    }
    if directory.can_block {
        return Err(format!(
            "{path:?} is on {}, where reading a file can block forever; name a directory on a local disk",
            directory.file_system
        ));
    }
    if let Some(below) = &directory.mounted_below {
        return Err(format!(
            "another file system is mounted on {below:?}, below {path:?}, and CMD could not use it; name a directory without mounts"
        ));
    }
    if directory.too_many {
        return Err(format!(
            "{path:?} has more than {} files and directories; name a smaller directory that CMD writes to",
            directory.files
        ));
    }
    if let Some(socket) = &directory.served {
        return Err(format!(
            "a running program listens on {socket:?} and would still write to the disk; stop it, and let CMD start \
             its own"
        ));
    }
    if let Some(file) = directory.anothers.as_ref().filter(|_| !sight.root) {
        return Err(format!(
            "{file:?} belongs to another user or another group, and only root can copy it with its owner; run holdup as root"
        ));
    }
    Ok(())
}

/// What there is room for in memory.
///
/// # Errors
/// One sentence, when files that CMD writes to take more.
pub(crate) fn fits(directory: &Directory, written: u64) -> Result<(), String> {
    if written <= directory.memory {
        return Ok(());
    }
    Err(format!(
        "the files below {:?} that CMD writes to need {} of memory, and only {} can be used for them (half of the available memory)",
        directory.path,
        bytes(written),
        bytes(directory.memory)
    ))
}

fn reach(directory: Option<&Directory>, sight: &Sight) -> Reach {
    let runs = sight.runs;
    let mut contained = vec![
        "processes: those that CMD leaves running are killed after each run, and when holdup ends".to_owned(),
        "mounts: only CMD can access the file systems that it mounts".to_owned(),
    ];
    let mut not_contained = Vec::new();
    match directory {
        Some(directory) => {
            contained.push(format!(
                "files below {:?} ({} in {} files) in runs without: their changes go to memory, {} at most, and are gone afterwards",
                directory.path,
                bytes(directory.bytes),
                directory.files,
                bytes(directory.memory)
            ));
            not_contained.push(format!(
                "files: unchanged runs write to those below {:?}, and all runs write to all others",
                directory.path
            ));
            let rename = if sight.root {
                ""
            } else {
                "; without root, CMD cannot rename a directory that existed before"
            };
            not_contained.push(format!(
                "hard links: in runs without the wait, a file that CMD changes keeps its old content under its other names{rename}"
            ));
        }
        None => not_contained.push(format!(
            "files: CMD really writes them, {runs} times (--prepare and --cleanup can restore them)"
        )),
    }
    not_contained.push(format!(
        "the network: CMD really calls servers and sends mail, {runs} times"
    ));
    not_contained.push("running programs, devices and the clock: CMD can access them as usual".to_owned());
    if !sight.root {
        not_contained.push(
            "users: without root, CMD cannot change to another user (sudo, su and other set-user-id programs)".to_owned(),
        );
    }
    Reach {
        contained,
        not_contained,
    }
}

#[cfg(test)]
mod tests {
    use super::{Directory, Reach, Sight, decide, fits};
    use crate::experiment::without::way;

    fn sight(change: impl FnOnce(&mut Directory)) -> Sight {
        let mut directory = Directory {
            path: "/var/spool/mail".into(),
            file_system: "ext4".into(),
            files: 3,
            bytes: 4096,
            memory: 1 << 30,
            ..Directory::default()
        };
        change(&mut directory);
        Sight {
            root: true,
            runs: 12,
            directory: Some(directory),
            ..Sight::default()
        }
    }

    fn of(sight: &Sight) -> Result<Reach, String> {
        decide(way("disk").unwrap(), sight)
    }

    #[test]
    fn each_thing_that_is_in_the_way_is_said() {
        assert!(of(&sight(|_| {})).is_ok());
        for (change, word) in [
            ((|one| one.path = "/".into()) as fn(&mut Directory), "everything"),
            (|one| one.can_block = true, "block"),
            (
                |one| one.mounted_below = Some("/var/spool/mail/x".into()),
                "mounted on",
            ),
            (|one| one.too_many = true, "more than"),
            (
                |one| one.served = Some("/var/spool/mail/private/smtp".into()),
                "listens",
            ),
        ] {
            let why = of(&sight(change)).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn who_is_not_root_can_copy_only_what_is_his() {
        let anothers = sight(|one| one.anothers = Some("/var/spool/mail/bin".into()));
        assert!(of(&anothers).is_ok());
        let user = Sight {
            root: false,
            ..anothers
        };
        assert!(of(&user).is_err_and(|why| why.contains("belongs to another user")));
        let mine = Sight {
            root: false,
            ..sight(|_| {})
        };
        let reach = of(&mine).unwrap();
        assert!(reach.not_contained.iter().any(|one| one.contains("set-user-id")));
        assert!(
            reach
                .not_contained
                .iter()
                .any(|one| one.contains("cannot rename"))
        );
        let user = Sight {
            other_user: true,
            ..mine
        };
        assert!(of(&user).is_err());
    }

    #[test]
    fn a_table_of_names_needs_tracing_and_a_place() {
        let of = |root, hosts| {
            let sight = Sight {
                root,
                hosts,
                ..Sight::default()
            };
            decide(way("net.dns").unwrap(), &sight)
        };
        assert!(of(true, true).is_ok());
        assert!(of(false, true).is_err_and(|why| why.contains("needs root")));
        assert!(of(true, false).is_err_and(|why| why.contains("/etc/hosts")));
    }

    #[test]
    fn memory_and_its_causes_go_together() {
        let sync = way("disk.sync").unwrap();
        let with = sight(|_| {});
        assert!(decide(sync, &with).is_err());
        let without = Sight {
            directory: None,
            ..with
        };
        let reach = decide(sync, &without).unwrap();
        assert!(
            reach
                .not_contained
                .iter()
                .any(|one| one.contains("really writes them, 12 times"))
        );
        assert!(of(&without).is_err_and(|why| why.contains("--memory DIR")));
        let directory = Directory {
            memory: 10,
            ..Directory::default()
        };
        assert!(fits(&directory, 10).is_ok() && fits(&directory, 11).is_err());
    }
}
