//! The folder that segments are written to: whose it is, what is kept, what is swept away.
//!
//! In: its path, how old and how large recordings may become. Out: names for segments; older ones are removed ([`age`](super::age)), and none that
//! this program has not written. One recorder at a time: the folder is locked for as long as it runs. A folder that another user can
//! change is refused.

use super::age::{Boot, Clocks, Ended, ages};
use crate::output::say;
use crate::recorded;
use anyhow::{Context, anyhow, bail};
use holdup_files::{Guard, Missing, Refused};
use holdup_proc::clocks;
use holdup_recording::peek;
use holdup_recording::spool::{self, Dropped};
use nix::fcntl::{Flock, FlockArg};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
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

/// Bytes of segments that wait for a store, where nobody says how many may: four days of an ordinary machine.
const SPOOL_BYTES: u64 = 1 << 30;

/// Whether segments are brought to a store, and which of them stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upload {
    /// They are not.
    No,
    /// They stay as long as others.
    AndKeep,
    /// What the store has goes.
    Only,
}

/// What may stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How old segments may become.
    pub(crate) keep: Duration,
    /// How large all together may become, bytes.
    pub(crate) bytes: Option<u64>,
    pub(crate) upload: Upload,
}

/// The folder, held.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    limits: Limits,
    boot: Boot,
    /// What was read of segments' heads: each is opened once, and not each minute.
    known: RefCell<HashMap<PathBuf, (Ended, Option<Dropped>)>>,
    /// Held as long as this lives.
    _lock: Flock<File>,
}

/// A segment that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    path: PathBuf,
    ended: Ended,
    bytes: u64,
    /// What is to be counted of it if it goes now: the store does not have it.
    waits: Option<Dropped>,
}

impl Folder {
    /// Makes it where it is not there, for its owner alone, and locks it. Nobody but root and the caller can change what is in it, or put
    /// another folder in its place, so from here on its path is as good as a descriptor.
    ///
    /// # Errors
    /// When it can't be made, is no folder, another user can change it, or another recorder writes there.
    pub(crate) fn open(path: &Path, limits: Limits) -> anyhow::Result<Folder> {
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
            limits,
            boot: this_boot(),
            known: RefCell::default(),
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
        let gone = outdated(&all, now, self.limits);
        let dropped: Vec<Dropped> = gone.iter().filter_map(|one| one.waits.clone()).collect();
        // Counted before they go: whatever ends this process between the two, they are counted once.
        let counted = dropped.is_empty() || spool::add_dropped(&self.path, &dropped).is_ok();
        let removed = gone
            .iter()
            .filter(|one| std::fs::remove_file(&one.path).is_ok())
            .count();
        if !counted {
            // A full disk has room now.
            if let Err(error) = spool::add_dropped(&self.path, &dropped) {
                say(&format!(
                    "{} segments were removed before they were uploaded: {error}",
                    dropped.len()
                ));
            }
        }
        removed
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
        let mut known = self.known.take();
        let confirmed = match self.limits.upload {
            Upload::No => HashSet::new(),
            Upload::AndKeep | Upload::Only => spool::confirmed(&self.path).identities,
        };
        let mut still = HashMap::new();
        let all: Vec<Kept> = entries
            .filter(|entry| is_segment(&entry.file_name()))
            .filter_map(|entry| {
                let about = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
                let path = entry.path();
                let (ended, segment) = known.remove(&path).unwrap_or_else(|| {
                    peek(&path).map_or_else(
                        |_| (Ended::Somewhere(date(about.modified().ok())), None),
                        |head| (Ended::of(&head, &self.boot), Some(Dropped::of(&head))),
                    )
                });
                still.insert(path.clone(), (ended, segment.clone()));
                let uploads = self.limits.upload != Upload::No;
                Some(Kept {
                    path,
                    ended,
                    bytes: about.len(),
                    waits: segment.filter(|one| uploads && !confirmed.contains(&one.identity)),
                })
            })
            .collect();
        // Those that have gone are forgotten.
        self.known.replace(still);
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

/// Those that go. First what is too old or too much, oldest first, of what waits for nobody; then, if that does not suffice, what waits
/// for a store: it stays whatever its age, until there is no room.
fn outdated(all: &[Kept], now: Clocks, limits: Limits) -> Vec<&Kept> {
    let mut bytes: u64 = all.iter().map(|one| one.bytes).sum();
    let newest = all.len().saturating_sub(1);
    let ordered: Vec<_> = oldest_first(all, now).into_iter().take(newest).collect();
    let mut gone = Vec::new();
    for (age, one) in ordered.iter().filter(|(_, one)| one.waits.is_none()) {
        let old = *age > limits.keep || limits.upload == Upload::Only;
        let large = limits.bytes.is_some_and(|most| bytes > most);
        if old || large {
            bytes -= one.bytes;
            gone.push(*one);
        }
    }
    let waiting = all.iter().filter(|one| one.waits.is_some());
    let mut waiting: u64 = waiting.map(|one| one.bytes).sum();
    for (_, one) in ordered.iter().filter(|(_, one)| one.waits.is_some()) {
        let large = limits.bytes.map_or(waiting > SPOOL_BYTES, |most| bytes > most);
        if !large {
            break;
        }
        bytes -= one.bytes;
        waiting -= one.bytes;
        gone.push(*one);
    }
    gone
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Clocks, Dropped, Ended, Folder, Kept, Limits, Upload, is_segment, now, outdated, this_boot};
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
            waits: None,
        }
    }

    fn limits(keep: u64, bytes: Option<u64>, upload: Upload) -> Limits {
        Limits {
            keep: Duration::from_secs(keep),
            bytes,
            upload,
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
            let gone = outdated(&all, NOW, limits(keep, most, Upload::No));
            gone.iter()
                .map(|one| one.path.display().to_string())
                .collect::<String>()
        };
        assert_eq!(gone(1_000, None), "");
        assert_eq!(gone(200, None), "a");
        assert_eq!(gone(5, None), "abc");
        assert_eq!(gone(1_000, Some(60)), "a");
        assert_eq!(gone(1_000, Some(1)), "abc", "the newest stays");
        assert!(outdated(&[], NOW, limits(0, Some(0), Upload::No)).is_empty());
        // Ten years later by the date, and a second by the clock that nobody sets.
        let set = Clocks {
            unix: NOW.unix + (315_000_000 * SECOND).cast_signed(),
            boot: NOW.boot + SECOND,
            monotonic: NOW.monotonic + SECOND,
        };
        assert!(outdated(&all, set, limits(400, None, Upload::No)).is_empty());
        let first = outdated(&all, set, limits(200, None, Upload::No));
        assert_eq!(first, [&all[1]]);
    }

    #[test]
    fn what_waits_for_a_store_goes_last_and_only_for_want_of_room() {
        let waits = |one: Kept| Kept {
            waits: Some(Dropped::of(&head("a", "mail1", None))),
            ..one
        };
        let all = [
            waits(kept("a", 500, 10)),
            kept("b", 400, 10),
            waits(kept("c", 300, 10)),
            kept("d", 100, 10),
            waits(kept("e", 1, 10)),
        ];
        let gone = |bytes, upload| {
            let gone = outdated(&all, NOW, limits(200, bytes, upload));
            gone.iter()
                .map(|one| one.path.display().to_string())
                .collect::<String>()
        };
        assert_eq!(gone(None, Upload::AndKeep), "b");
        assert_eq!(gone(None, Upload::Only), "bd");
        assert_eq!(gone(Some(30), Upload::AndKeep), "bd");
        assert_eq!(gone(Some(25), Upload::AndKeep), "bda");
        assert_eq!(gone(Some(1), Upload::AndKeep), "bdac");
    }

    #[test]
    fn segments_of_this_boot_outlive_a_clock_that_is_set_and_the_newest_are_those_that_ended_last() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), limits(86_400, None, Upload::No)).unwrap();
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
        let held = Folder::open(&path, limits(1, None, Upload::No)).unwrap();
        assert!(!path.join(".holdup-x1y2").exists());
        let second = Folder::open(&path, limits(1, None, Upload::No))
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
        Folder::open(&path, limits(1, None, Upload::No)).unwrap();
    }

    #[test]
    fn names_sort_as_time_goes_by_and_are_known_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), limits(1, None, Upload::No)).unwrap();
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
        let error = Folder::open(Path::new("/proc/none/here"), limits(1, None, Upload::No)).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot create the directory \"/proc/none/here\""),
            "{error}"
        );
    }
}
