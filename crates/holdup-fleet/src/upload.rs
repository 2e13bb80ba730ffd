//! Finished segments of a directory, brought to a store.
//!
//! In: the directory that a recorder writes to, where a file's name belongs to a whole segment or to none. Out: an object a segment, and
//! the list of those that the store has confirmed, by which the recorder knows what may go. Whatever ends this process between the two
//! costs a second put of the same object under the same name. What the recorder had to remove before is counted in an object of its own.
//! The recorder never waits for this process: it closes a pipe when it ends, and this one tries once more and ends too.

use crate::cli::UploadArgs;
use crate::layout::{self, Name};
use crate::store::{Missing, Store, runtime};
use crate::{machine, say};
use anyhow::Context;
use bytes::Bytes;
use holdup_recording::spool::{self, Confirmed, Dropped};
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks at the directory, milliseconds.
const INTERVAL_MS: u16 = 1_000;

/// The same after a failure, and at the most after several.
const FIRST_REST_MS: u16 = 2_000;
const MAX_REST_MS: u16 = 60_000;

/// How long a round may take once the recorder has ended.
const LAST_ROUND: Duration = Duration::from_secs(10);

/// The largest file that is uploaded, bytes: the parts that a reader takes of a segment, and columns as large.
const MAX_BYTES: u64 = 192 << 20;

/// Segments after which those that the store has are noted, so that a backlog is not put twice for one that is killed.
const NOTED_EVERY: usize = 16;

/// How names of segments begin and end in a recorder's directory.
const SEGMENT: (&str, &str) = ("holdup-", ".parquet");

/// The schema of what was dropped.
pub(crate) const DROPPED_SCHEMA: &str = "holdup.dropped/1";

/// What a host had to drop, as an object has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DroppedObject {
    /// Always `holdup.dropped/1`.
    pub(crate) schema: String,
    /// Segments that were removed before the store had them.
    pub(crate) segments: Vec<Dropped>,
}

/// Uploads.
///
/// # Errors
/// When the directory or the URL can't be used; without `--follow`, also when the store does not take a segment.
pub(crate) fn run(args: &UploadArgs) -> anyhow::Result<u8> {
    let store = Store::open(&args.to, Missing::Make)?;
    let runtime = runtime()?;
    let mut uploading = Uploading::new(&args.dir, machine::id(), &args.to);
    if !args.follow {
        runtime.block_on(uploading.round(&store))?;
        return Ok(0);
    }
    let mut rest = FIRST_REST_MS;
    let mut failing = false;
    loop {
        let pause = match runtime.block_on(uploading.round(&store)) {
            Ok(_) if failing => {
                say("the store takes segments again");
                failing = false;
                rest = FIRST_REST_MS;
                INTERVAL_MS
            }
            Ok(_) => INTERVAL_MS,
            Err(error) => {
                // Once, and not each minute of an hour without a network.
                if !failing {
                    say(&format!(
                        "{error:#}; segments stay on the disk until the store takes them"
                    ));
                }
                failing = true;
                rest = rest.saturating_mul(2).min(MAX_REST_MS);
                rest
            }
        };
        if is_closed(pause) {
            break;
        }
    }
    let last = async { tokio::time::timeout(LAST_ROUND, uploading.round(&store)).await };
    match runtime.block_on(last) {
        Ok(done) => done.map(|_| 0),
        Err(_) => anyhow::bail!(
            "the store did not take the last segments in time; the next `holdup record --to` uploads them"
        ),
    }
}

/// Waits so long at the most; whether whoever started this has ended.
fn is_closed(milliseconds: u16) -> bool {
    let stdin = std::io::stdin();
    let mut descriptors = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut descriptors, PollTimeout::from(milliseconds)) {
        // Nothing is ever written there: what can be read is the end.
        Ok(ready) => ready > 0,
        Err(_) => false,
    }
}

/// An upload that is going on.
#[derive(Debug)]
pub(crate) struct Uploading {
    directory: PathBuf,
    machine: String,
    confirmed: Confirmed,
    /// Names of files whose heads were read: as long as it is the same file, it is the same segment.
    known: HashMap<PathBuf, (u64, Name, Option<String>)>,
    /// Files that are none, of which was said so.
    refused: HashSet<PathBuf>,
    /// What was put of what was dropped.
    told: HashMap<String, Bytes>,
}

impl Uploading {
    /// Of a directory, on a machine with this id, to the store of a URL.
    pub(crate) fn new(directory: &Path, machine: String, url: &str) -> Uploading {
        let mut confirmed = spool::confirmed(directory);
        if confirmed.store != url {
            // Another store has them, and this one has none.
            confirmed = Confirmed {
                store: url.to_owned(),
                identities: HashSet::new(),
            };
        }
        Uploading {
            directory: directory.to_owned(),
            machine,
            confirmed,
            known: HashMap::new(),
            refused: HashSet::new(),
            told: HashMap::new(),
        }
    }

    /// Puts all that is there and that the store does not have; how many.
    ///
    /// # Errors
    /// When the store, or the directory, does not take something; what was put so far is noted.
    pub(crate) async fn round(&mut self, store: &Store) -> anyhow::Result<usize> {
        let waiting = self.waiting()?;
        let mut put = 0;
        let result = self.put_all(store, &waiting, &mut put).await;
        if put > 0 {
            self.note()?;
        }
        result?;
        self.tell_dropped(store).await?;
        Ok(put)
    }

    async fn put_all(
        &mut self,
        store: &Store,
        waiting: &[(PathBuf, Name, String)],
        put: &mut usize,
    ) -> anyhow::Result<()> {
        for (path, name, id) in waiting {
            // The recorder may have removed it meanwhile: then it has counted it.
            let Some(bytes) = whole(path)? else {
                continue;
            };
            let place = layout::place(id, name);
            store
                .put(&place, bytes.into())
                .await
                .with_context(|| format!("the store does not take {place}"))?;
            self.confirmed.identities.insert(name.identity.clone());
            *put += 1;
            if put.is_multiple_of(NOTED_EVERY) {
                self.note()?;
            }
        }
        Ok(())
    }

    /// Writes which of those that are there the store has.
    fn note(&mut self) -> anyhow::Result<()> {
        let there: HashSet<&String> = self.known.values().map(|(_, name, _)| &name.identity).collect();
        self.confirmed
            .identities
            .retain(|identity| there.contains(identity));
        spool::confirm(&self.directory, &self.confirmed).context("cannot note what was uploaded")
    }

    /// Segments that are there and that the store does not have, oldest first: these are removed first.
    fn waiting(&mut self) -> anyhow::Result<Vec<(PathBuf, Name, String)>> {
        let directory = &self.directory;
        let entries = std::fs::read_dir(directory)
            .with_context(|| format!("cannot list the recordings in {directory:?}"))?;
        let mut before = std::mem::take(&mut self.known);
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_segment = name
                .to_str()
                .is_some_and(|name| name.starts_with(SEGMENT.0) && name.ends_with(SEGMENT.1));
            let path = entry.path();
            let Some(about) = entry
                .metadata()
                .ok()
                .filter(|about| is_segment && about.is_file())
            else {
                continue;
            };
            if let Some(same) = before.remove(&path).filter(|(inode, ..)| *inode == about.ino()) {
                self.known.insert(path, same);
                continue;
            }
            match holdup_recording::peek(&path) {
                Ok(head) => {
                    let known = (about.ino(), Name::of(&head), head.host);
                    self.known.insert(path, known);
                }
                Err(_) if !path.exists() => {}
                Err(error) => {
                    if self.refused.insert(path) {
                        say(&format!("not uploaded: {error}"));
                    }
                }
            }
        }
        let mut waiting: Vec<(PathBuf, Name, String)> = self
            .known
            .iter()
            .filter(|(_, (_, name, _))| !self.confirmed.identities.contains(&name.identity))
            .map(|(path, (_, name, host))| {
                let id = layout::host_id(host.as_deref(), &self.machine);
                (path.clone(), name.clone(), id)
            })
            .collect();
        waiting.sort_by(|(_, one, _), (_, other, _)| one.cmp(other));
        Ok(waiting)
    }

    /// Puts what the recorder had to drop, an object an hour and boot; what was put before is not put again.
    async fn tell_dropped(&mut self, store: &Store) -> anyhow::Result<()> {
        let mut hours: BTreeMap<String, Vec<Dropped>> = BTreeMap::new();
        for one in spool::dropped(&self.directory) {
            let id = layout::host_id(one.host.as_deref(), &self.machine);
            let boot = one.identity.split('-').next().unwrap_or_default().to_owned();
            let place = layout::dropped_place(&id, &layout::hour(one.started_unix), &boot);
            hours.entry(place).or_default().push(one);
        }
        for (place, segments) in hours {
            let object = DroppedObject {
                schema: DROPPED_SCHEMA.to_owned(),
                segments,
            };
            let bytes = Bytes::from(serde_json::to_vec(&object)?);
            if self.told.get(&place) == Some(&bytes) {
                continue;
            }
            store
                .put(&place, bytes.clone())
                .await
                .with_context(|| format!("the store does not take {place}"))?;
            self.told.insert(place, bytes);
        }
        Ok(())
    }
}

/// A file's contents; `None` where it is gone, no file, or larger than a segment can be.
fn whole(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_NOCTTY).bits())
        .open(path);
    let file: File = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {path:?}")),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {path:?}"))?;
    Ok((bytes.len() as u64 <= MAX_BYTES).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::Uploading;
    use crate::testing::{Failing, add_segment, memory};
    use holdup_recording::spool::{self, Dropped};
    use std::sync::Arc;

    fn block<T>(future: impl Future<Output = T>) -> T {
        crate::store::runtime().unwrap().block_on(future)
    }

    #[test]
    fn what_is_there_is_put_once_and_noted() {
        let place = tempfile::tempdir().unwrap();
        add_segment(place.path(), "db-3", 0);
        add_segment(place.path(), "db-3", 1);
        let (store, _) = memory();
        let mut uploading = Uploading::new(place.path(), "m".to_owned(), "memory");
        assert_eq!(block(uploading.round(&store)).unwrap(), 2);
        assert_eq!(block(uploading.round(&store)).unwrap(), 0);
        add_segment(place.path(), "db-3", 2);
        // Another process, as after a restart.
        let mut uploading = Uploading::new(place.path(), "m".to_owned(), "memory");
        assert_eq!(block(uploading.round(&store)).unwrap(), 1);
        assert_eq!(block(store.list("")).unwrap().len(), 3);
        assert_eq!(spool::confirmed(place.path()).identities.len(), 3);
    }

    #[test]
    fn whichever_request_fails_nothing_confirmed_is_missing_and_nothing_is_there_twice() {
        for at in 0..5 {
            let place = tempfile::tempdir().unwrap();
            for number in 0..4 {
                add_segment(place.path(), "db-3", number);
            }
            let (_, inner) = memory();
            let failing = Failing::at(inner.clone(), at);
            let store = crate::store::Store::new(Arc::new(failing), object_store::path::Path::default());
            let mut uploading = Uploading::new(place.path(), "m".to_owned(), "memory");
            let failed = block(uploading.round(&store)).is_err();
            assert_eq!(failed, at < 4, "request {at}");
            let there = block(store.list("")).unwrap();
            for identity in spool::confirmed(place.path()).identities {
                let there = there.iter().filter(|one| one.place.contains(&identity));
                assert_eq!(there.count(), 1, "{identity}");
            }
            // The next one begins anew, with what is noted.
            let mut uploading = Uploading::new(place.path(), "m".to_owned(), "memory");
            block(uploading.round(&store)).unwrap();
            assert_eq!(block(store.list("")).unwrap().len(), 4);
            assert_eq!(spool::confirmed(place.path()).identities.len(), 4);
        }
    }

    #[test]
    fn a_note_that_is_lost_costs_a_second_put_of_the_same_object() {
        let place = tempfile::tempdir().unwrap();
        add_segment(place.path(), "db-3", 0);
        let (store, _) = memory();
        block(Uploading::new(place.path(), "m".to_owned(), "memory").round(&store)).unwrap();
        std::fs::remove_file(place.path().join(".confirmed")).unwrap();
        let mut uploading = Uploading::new(place.path(), "m".to_owned(), "memory");
        assert_eq!(block(uploading.round(&store)).unwrap(), 1);
        assert_eq!(block(store.list("")).unwrap().len(), 1);
    }

    #[test]
    fn what_one_store_has_is_put_to_another_too() {
        let place = tempfile::tempdir().unwrap();
        add_segment(place.path(), "db-3", 0);
        let round = |url: &str| {
            let (store, _) = memory();
            block(Uploading::new(place.path(), "m".to_owned(), url).round(&store)).unwrap()
        };
        assert_eq!((round("one"), round("one"), round("two")), (1, 0, 1));
    }

    #[test]
    fn what_was_dropped_is_told_to_the_store_once() {
        let place = tempfile::tempdir().unwrap();
        let head = add_segment(place.path(), "db-3", 0);
        spool::add_dropped(place.path(), &[Dropped::of(&head)]).unwrap();
        let (store, _) = memory();
        let mut uploading = Uploading::new(place.path(), "m".to_owned(), "memory");
        block(uploading.round(&store)).unwrap();
        block(uploading.round(&store)).unwrap();
        let there = block(store.list("")).unwrap();
        let dropped = there.iter().filter(|one| one.place.contains("/dropped_"));
        assert_eq!(dropped.count(), 1, "{there:?}");
    }

    #[test]
    fn what_is_no_segment_stays_where_it_is() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("holdup-x.parquet"), "nonsense").unwrap();
        std::fs::write(place.path().join("notes.txt"), "mine").unwrap();
        let (store, _) = memory();
        let mut uploading = Uploading::new(place.path(), "m".to_owned(), "memory");
        assert_eq!(block(uploading.round(&store)).unwrap(), 0);
        assert!(block(store.list("")).unwrap().is_empty());
    }
}
