//! The folder that segments are written to: whose it is, what is kept, what is swept away.
//!
//! In: its path, how old and how large recordings may become. Out: names for segments; older ones are removed, and none that this
//! program has not written. One recorder at a time: the folder is locked for as long as it runs.

use anyhow::{Context, bail};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The file that is locked.
const LOCK: &str = ".recorder";

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
    /// Held as long as this lives.
    _lock: Flock<File>,
}

/// A segment that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    path: PathBuf,
    modified: SystemTime,
    bytes: u64,
}

impl Folder {
    /// Makes it where it is not there, for its owner alone, and locks it.
    ///
    /// # Errors
    /// When it can't be made, is no folder, or another recorder writes there.
    pub(crate) fn open(path: &Path, keep: Duration, most: Option<u64>) -> anyhow::Result<Folder> {
        if !path.is_dir() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder
                .create(path)
                .with_context(|| format!("cannot make the folder {path:?} for recordings"))?;
        }
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path.join(LOCK))
            .with_context(|| format!("cannot write to {path:?}"))?;
        let Ok(lock) = Flock::lock(lock, FlockArg::LockExclusiveNonblock) else {
            bail!("another holdup records to {path:?}; give this one a folder of its own (--dir)");
        };
        let folder = Folder {
            path: path.to_owned(),
            keep,
            most,
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
    pub(crate) fn sweep(&self, now: SystemTime) -> usize {
        let all = self.segments();
        let gone = outdated(&all, now, self.keep, self.most);
        gone.iter()
            .filter(|path| std::fs::remove_file(path).is_ok())
            .count()
    }

    /// The newest segments, newest first; names sort as time goes by.
    pub(crate) fn newest(&self, count: usize) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.segments().into_iter().map(|kept| kept.path).collect();
        paths.sort_unstable_by(|one, other| other.cmp(one));
        paths.truncate(count);
        paths
    }

    fn segments(&self) -> Vec<Kept> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries
            .filter(|entry| is_segment(&entry.file_name()))
            .filter_map(|entry| {
                let about = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
                Some(Kept {
                    path: entry.path(),
                    modified: about.modified().ok()?,
                    bytes: about.len(),
                })
            })
            .collect()
    }
}

fn is_segment(name: &std::ffi::OsStr) -> bool {
    let (start, end) = SEGMENT;
    name.to_str()
        .is_some_and(|name| name.starts_with(start) && name.ends_with(end))
}

/// Those that go, oldest first. A time of the future, as after a clock was set back, is as good as now.
fn outdated(all: &[Kept], now: SystemTime, keep: Duration, most: Option<u64>) -> Vec<PathBuf> {
    let mut all: Vec<&Kept> = all.iter().collect();
    all.sort_by_key(|one| (one.modified, &one.path));
    let mut bytes: u64 = all.iter().map(|one| one.bytes).sum();
    let newest = all.len().saturating_sub(1);
    let mut gone = Vec::new();
    for one in all.into_iter().take(newest) {
        let old = now.duration_since(one.modified).is_ok_and(|age| age > keep);
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
mod tests {
    use super::{Folder, Kept, is_segment, outdated};
    use std::path::{Path, PathBuf};
    use std::time::{Duration, SystemTime};

    fn kept(name: &str, age: u64, bytes: u64) -> Kept {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        Kept {
            path: PathBuf::from(name),
            modified: now - Duration::from_secs(age),
            bytes,
        }
    }

    #[test]
    fn what_is_too_old_or_too_much_goes_and_the_newest_stays() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let all = [
            kept("c", 10, 5),
            kept("a", 300, 5),
            kept("b", 100, 5),
            kept("d", 0, 50),
        ];
        let gone = |keep, most| {
            let gone = outdated(&all, now, Duration::from_secs(keep), most);
            gone.iter()
                .map(|path| path.display().to_string())
                .collect::<String>()
        };
        assert_eq!(gone(1_000, None), "");
        assert_eq!(gone(200, None), "a");
        assert_eq!(gone(5, None), "abc");
        assert_eq!(gone(1_000, Some(60)), "a");
        assert_eq!(gone(1_000, Some(1)), "abc", "the newest stays");
        assert_eq!(outdated(&[], now, Duration::ZERO, Some(0)), Vec::<PathBuf>::new());
        let ahead = [
            kept("a", 5, 1),
            Kept {
                modified: now + Duration::from_secs(500),
                ..kept("b", 0, 1)
            },
        ];
        assert_eq!(
            outdated(&ahead, now, Duration::from_secs(100), None),
            Vec::<PathBuf>::new()
        );
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
        assert_eq!(held.sweep(SystemTime::now() + Duration::from_secs(100)), 0);
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
                .starts_with("cannot make the folder \"/proc/none/here\""),
            "{error}"
        );
    }
}
