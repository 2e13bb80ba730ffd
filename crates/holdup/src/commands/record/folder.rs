//! The folder that segments are written to: whose it is, what is kept, what is swept away.
//!
//! In: its path, how old and how large recordings may become. Out: names for segments; older ones are removed ([`age`](super::age)), and none that
//! this program has not written. One recorder at a time: the folder is locked for as long as it runs. A folder that another user can
//! change is refused.

use super::age::{Boot, Clocks, Ended, ages};
use crate::recorded;
use anyhow::{Context, anyhow, bail};
use holdup_files::{Guard, Missing, Refused};
use holdup_proc::clocks;
use holdup_recording::peek;
use nix::fcntl::{Flock, FlockArg};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The file that is locked.
const LOCK: &str = ".recorder";

/// Its mode: a lock of another user on it would keep recorders out.
const LOCK_MODE: u32 = 0o600;

/// How the name begins under which a segment is written before it has its own.
const UNFINISHED: &str = ".holdup-";

/// How names of segments begin and end.
const SEGMENT: (&str, &str) = ("holdup-", ".parquet");

/// Segments that may begin at the same date, to the millisecond, each after a clock was set back.
const SAME_DATE: u32 = 1_000;

/// The folder, held.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    keep: Duration,
    most: Option<u64>,
    boot: Boot,
    /// What was read of segments' heads: each is opened once, and not each minute.
    ended: RefCell<HashMap<PathBuf, Ended>>,
    /// Held as long as this lives.
    _lock: Flock<File>,
}

/// A segment that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    path: PathBuf,
    ended: Ended,
    bytes: u64,
}

impl Folder {
    /// Makes it where it is not there, for its owner alone, and locks it. Nobody but root and the caller can change what is in it, or put
    /// another folder in its place, so from here on its path is as good as a descriptor.
    ///
    /// # Errors
    /// When it can't be made, is no folder, another user can change it, or another recorder writes there.
    pub(crate) fn open(path: &Path, keep: Duration, most: Option<u64>) -> anyhow::Result<Folder> {
        let place =
            holdup_files::folder(path, Guard::Own, Missing::Make).map_err(|refused| match refused {
                Refused::Io(error) => {
                    anyhow!(error).context(format!("cannot create the directory {path:?} for recordings"))
                }
                refused => anyhow!("cannot record to {path:?}: {refused}"),
            })?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(LOCK_MODE)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(place.path.join(LOCK))
            .with_context(|| format!("cannot write to {path:?}"))?;
        // Whoever can open it can lock it.
        lock.set_permissions(Permissions::from_mode(LOCK_MODE))
            .with_context(|| format!("cannot write to {path:?}"))?;
        let Ok(lock) = Flock::lock(lock, FlockArg::LockExclusiveNonblock) else {
            bail!("another holdup records to {path:?}; choose another directory with --dir");
        };
        let folder = Folder {
            path: place.path,
            keep,
            most,
            boot: this_boot(),
            ended: RefCell::default(),
            _lock: lock,
        };
        folder.sweep_unfinished();
        Ok(folder)
    }

    /// Where a segment belongs that began at this instant, Unix time in nanoseconds: names sort as time goes by.
    pub(crate) fn place(&self, began: i64) -> PathBuf {
        let (start, end) = SEGMENT;
        let time = jiff::Timestamp::from_nanosecond(began.into()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let name = format!("{start}{}", time.strftime("%Y%m%dT%H%M%S.%3fZ"));
        // After a clock was set back one may be there that began at the same date; it stays.
        let numbered = (1..SAME_DATE).map(|number| format!("{name}-{number}{end}"));
        std::iter::once(format!("{name}{end}"))
            .chain(numbered)
            .map(|name| self.path.join(name))
            .find(|path| !path.exists())
            .unwrap_or_else(|| self.path.join(format!("{name}{end}")))
    }

    /// What a recorder that was killed left behind. Nobody writes here now: the folder is locked.
    fn sweep_unfinished(&self) {
        for entry in std::fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(UNFINISHED.as_bytes())
            {
                std::fs::remove_file(entry.path()).ok();
            }
        }
    }

    /// Removes segments that are older than they may be, and the oldest until all together are small enough. The newest stays,
    /// whatever its size. Returns how many went.
    pub(crate) fn sweep(&self) -> usize {
        self.sweep_at(now())
    }

    fn sweep_at(&self, now: Clocks) -> usize {
        let all = self.segments();
        let gone = outdated(&all, now, self.keep, self.most);
        gone.iter()
            .filter(|path| std::fs::remove_file(path).is_ok())
            .count()
    }

    /// The newest segments, newest first.
    pub(crate) fn newest(&self, count: usize) -> Vec<PathBuf> {
        let all = self.segments();
        let ordered = oldest_first(&all, now());
        let newest = ordered.iter().rev().take(count);
        newest.map(|(_, kept)| kept.path.clone()).collect()
    }

    fn segments(&self) -> Vec<Kept> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut known = self.ended.take();
        let all: Vec<Kept> = entries
            .filter(|entry| is_segment(&entry.file_name()))
            .filter_map(|entry| {
                let about = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
                let path = entry.path();
                let ended = match known.remove(&path) {
                    Some(ended) => ended,
                    None => peek(&path).map_or_else(
                        |_| Ended::Somewhere(date(about.modified().ok())),
                        |head| Ended::of(&head, &self.boot),
                    ),
                };
                Some(Kept {
                    path,
                    ended,
                    bytes: about.len(),
                })
            })
            .collect();
        // Those that have gone are forgotten.
        let still = all.iter().map(|one| (one.path.clone(), one.ended));
        self.ended.replace(still.collect());
        all
    }
}

fn is_segment(name: &std::ffi::OsStr) -> bool {
    let (start, end) = SEGMENT;
    name.to_str()
        .is_some_and(|name| name.starts_with(start) && name.ends_with(end))
}

/// This boot of this machine.
fn this_boot() -> Boot {
    let name = nix::sys::utsname::uname().ok();
    Boot {
        id: recorded::boot_id(),
        host: name.map(|name| name.nodename().to_string_lossy().into_owned()),
    }
}

/// The clocks now.
fn now() -> Clocks {
    let monotonic = clocks::monotonic();
    Clocks {
        unix: date(Some(SystemTime::now())),
        boot: monotonic.saturating_add(clocks::boot_minus_monotonic().unwrap_or_default()),
        monotonic,
    }
}

/// Unix time in nanoseconds; what is not known is as good as the latest there is.
fn date(of: Option<SystemTime>) -> i64 {
    let since = of.map(|of| of.duration_since(UNIX_EPOCH).unwrap_or_default());
    since.map_or(i64::MAX, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// All segments with their ages; of the same age those with the earlier name first.
fn oldest_first(all: &[Kept], now: Clocks) -> Vec<(Duration, &Kept)> {
    let ended: Vec<Ended> = all.iter().map(|one| one.ended).collect();
    let mut ordered: Vec<_> = ages(&ended, now).into_iter().zip(all).collect();
    ordered.sort_by(|(age, one), (other_age, other)| (other_age, &one.path).cmp(&(age, &other.path)));
    ordered
}

/// Those that go, oldest first.
fn outdated(all: &[Kept], now: Clocks, keep: Duration, most: Option<u64>) -> Vec<PathBuf> {
    let mut bytes: u64 = all.iter().map(|one| one.bytes).sum();
    let newest = all.len().saturating_sub(1);
    let mut gone = Vec::new();
    for (age, one) in oldest_first(all, now).into_iter().take(newest) {
        let old = age > keep;
        let large = most.is_some_and(|most| bytes > most);
        if !old && !large {
            break;
        }
        bytes -= one.bytes;
        gone.push(one.path.clone());
    }
    gone
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Clocks, Ended, Folder, Kept, is_segment, now, outdated, this_boot};
    use holdup_evidence::{Ns, SystemFacts};
    use holdup_model::attributed::Attributed;
    use holdup_model::report::{Backend, SubjectKind};
    use holdup_recording::{Head, Segment};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    const SECOND: Ns = 1_000_000_000;

    /// An hour up, at a date.
    const NOW: Clocks = Clocks {
        unix: (1_000_000 * SECOND).cast_signed(),
        boot: 3_600 * SECOND,
        monotonic: 3_600 * SECOND,
    };

    fn kept(name: &str, age: u64, bytes: u64) -> Kept {
        let age = age * SECOND;
        Kept {
            path: PathBuf::from(name),
            ended: Ended::Here(NOW.boot - age, NOW.unix - age.cast_signed()),
            bytes,
        }
    }

    /// The head of a segment of a minute that began an hour after that boot.
    pub(in super::super) fn head(boot_id: &str, host: &str, ended_boot: Option<Ns>) -> Head {
        Head {
            holdup: "0.1.0".to_owned(),
            ended_boot,
            host: Some(host.to_owned()),
            boot_id: Some(boot_id.to_owned()),
            ..Head::new(
                (SubjectKind::Attach, Backend::Bpf),
                (3_600 * SECOND, 1_772_452_800_000_000_000),
                60 * SECOND,
            )
        }
    }

    #[test]
    fn what_is_too_old_or_too_much_goes_and_the_newest_stays() {
        let all = [
            kept("c", 10, 5),
            kept("a", 300, 5),
            kept("b", 100, 5),
            kept("d", 0, 50),
        ];
        let gone = |keep, most| {
            let gone = outdated(&all, NOW, Duration::from_secs(keep), most);
            gone.iter()
                .map(|path| path.display().to_string())
                .collect::<String>()
        };
        assert_eq!(gone(1_000, None), "");
        assert_eq!(gone(200, None), "a");
        assert_eq!(gone(5, None), "abc");
        assert_eq!(gone(1_000, Some(60)), "a");
        assert_eq!(gone(1_000, Some(1)), "abc", "the newest stays");
        assert_eq!(outdated(&[], NOW, Duration::ZERO, Some(0)), Vec::<PathBuf>::new());
        // Ten years later by the date, and a second by the clock that nobody sets.
        let set = Clocks {
            unix: NOW.unix + (315_000_000 * SECOND).cast_signed(),
            boot: NOW.boot + SECOND,
            monotonic: NOW.monotonic + SECOND,
        };
        assert_eq!(
            outdated(&all, set, Duration::from_secs(400), None),
            Vec::<PathBuf>::new()
        );
        let first = outdated(&all, set, Duration::from_secs(200), None);
        assert_eq!(first, [Path::new("a")]);
    }

    #[test]
    fn segments_of_this_boot_outlive_a_clock_that_is_set_and_the_newest_are_those_that_ended_last() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), Duration::from_secs(86_400), None).unwrap();
        let boot = this_boot();
        let save = |name: &str, ago: u64, date: i64| {
            let ended = now().boot - ago * SECOND;
            let mut head = head(
                &boot.id.clone().unwrap(),
                &boot.host.clone().unwrap(),
                Some(ended),
            );
            head.started_unix = date;
            let segment = Segment {
                head,
                attributed: Attributed::default(),
                facts: SystemFacts::default(),
                look: None,
            };
            holdup_recording::save(&segment, &place.path().join(name)).unwrap();
        };
        let today = now().unix;
        // Set forward by ten years after the second; the third's date is the latest of all, and it is not the newest.
        save("holdup-1.parquet", 4, today - 4_000_000_000);
        save("holdup-9.parquet", 3, today - 3_000_000_000);
        save("holdup-a.parquet", 2, today + 315_000_000_000_000_000);
        save("holdup-2.parquet", 1, today);
        let late = Clocks {
            unix: today + 630_000_000_000_000_000,
            ..now()
        };
        assert_eq!(folder.sweep_at(late), 0);
        let newest: Vec<PathBuf> = folder.newest(3);
        let names: Vec<&str> = newest
            .iter()
            .filter_map(|path| path.file_name()?.to_str())
            .collect();
        assert_eq!(
            names,
            ["holdup-2.parquet", "holdup-a.parquet", "holdup-9.parquet"]
        );
        // A day later by every clock they go, but the last.
        let day = 90_000 * SECOND;
        let tomorrow = Clocks {
            unix: late.unix + day.cast_signed(),
            boot: late.boot + day,
            monotonic: late.monotonic + day,
        };
        assert_eq!(folder.sweep_at(tomorrow), 3);
        assert!(place.path().join("holdup-2.parquet").exists());
    }

    #[test]
    fn one_recorder_at_a_time_and_what_was_left_half_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("new/recordings");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join(".holdup-x1y2"), "half").unwrap();
        std::fs::write(path.join("notes.txt"), "somebody's").unwrap();
        let held = Folder::open(&path, Duration::from_secs(1), None).unwrap();
        assert!(!path.join(".holdup-x1y2").exists());
        let second = Folder::open(&path, Duration::from_secs(1), None)
            .unwrap_err()
            .to_string();
        assert!(second.contains("another holdup records to"), "{second}");
        let late = Clocks {
            unix: i64::MAX,
            ..now()
        };
        assert_eq!(held.sweep_at(late), 0);
        assert!(
            path.join("notes.txt").exists(),
            "what is no segment is never touched"
        );
        drop(held);
        Folder::open(&path, Duration::from_secs(1), None).unwrap();
    }

    #[test]
    fn names_sort_as_time_goes_by_and_are_known_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), Duration::from_secs(1), None).unwrap();
        let names = [0, 1_000_000, 1_763_800_000_000_000_000].map(|began| folder.place(began));
        assert!(names.is_sorted());
        assert!(
            names.iter().all(|name| is_segment(name.file_name().unwrap())),
            "{names:?}"
        );
        assert!(
            names[2].ends_with("holdup-20251122T082640.000Z.parquet"),
            "{names:?}"
        );
        // A clock that was set back makes the same date again.
        std::fs::write(&names[2], "earlier").unwrap();
        let again = folder.place(1_763_800_000_000_000_000);
        assert!(
            again.ends_with("holdup-20251122T082640.000Z-1.parquet")
                && is_segment(again.file_name().unwrap()),
            "{again:?}"
        );
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_one_sentence() {
        let error = Folder::open(Path::new("/proc/none/here"), Duration::from_secs(1), None).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot create the directory \"/proc/none/here\""),
            "{error}"
        );
    }
}
