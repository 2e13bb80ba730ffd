//! `holdup fleet compact`: the segments of an hour as one object.
//!
//! In: a store. Out: for each host and hour that is over one object with all its segments, byte by byte. The object is written first,
//! under a name that is made of the names of its segments, and only then is removed what it holds. So whatever ends this process, each
//! segment is there at least once, and readers count it once. Several may run: the same segments make the same object, and an
//! object is only ever removed by who has put all its segments into another one.

use crate::cli::CompactArgs;
use crate::fetch;
use crate::layout::{self, HOUR, Kind, Name};
use crate::listing::{self, Among, REQUESTS, Source, Unreadable};
use crate::say;
use crate::store::{Listed, Missing, Store, runtime};
use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt, stream};
use holdup_recording::hour::{Joining, MAX_SEGMENTS};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;

/// Bytes of segments in one object, at most: they are read into memory to be put.
const MAX_BYTES: u64 = 256 << 20;

/// What was done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Objects that were written.
    written: u64,
    /// Objects that were removed.
    removed: u64,
    /// What could not be read, with why. It stays where it is.
    problems: Vec<String>,
}

/// Compacts.
///
/// # Errors
/// When the store does not take or give something.
pub(crate) fn run(args: &CompactArgs) -> anyhow::Result<u8> {
    let store = Store::open(&args.url, Missing::Refuse)?;
    let now = i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
    let nanos = |length: std::time::Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
    let until = now.saturating_sub(nanos(args.after));
    let from = now.saturating_sub(nanos(args.last));
    let done = runtime()?.block_on(hours(&store, from, until))?;
    for problem in &done.problems {
        say(&format!("skipped: {problem}"));
    }
    let counted = holdup_views::units::counted;
    say(&format!(
        "{} written in place of {}",
        counted(done.written, "object", "objects"),
        counted(done.removed, "object", "objects")
    ));
    Ok(0)
}

/// Compacts the hours that began after an instant and ended before another.
async fn hours(store: &Store, from: i64, until: i64) -> anyhow::Result<Done> {
    let first = from - from.rem_euclid(HOUR);
    let mut done = Done::default();
    for (begin, folder) in listing::hours(store).await? {
        if begin < first || begin.saturating_add(HOUR) > until {
            continue;
        }
        let objects = store.list(&folder).await.context("cannot list the store")?;
        let mut hosts: BTreeMap<String, Vec<(Name, Listed)>> = BTreeMap::new();
        for object in objects {
            let Some((_, host, Kind::Segment(name) | Kind::Hour(name))) = layout::parse(&object.place) else {
                continue;
            };
            hosts.entry(host.to_owned()).or_default().push((name, object));
        }
        for (host, objects) in hosts {
            one(store, &host, &folder, objects, &mut done).await?;
        }
    }
    Ok(done)
}

/// Compacts an hour of a host.
async fn one(
    store: &Store,
    host: &str,
    folder: &str,
    objects: Vec<(Name, Listed)>,
    done: &mut Done,
) -> anyhow::Result<()> {
    // What each object holds, as far as it can be read.
    let mut held: Vec<(Listed, BTreeSet<Name>)> = Vec::new();
    let mut sources: BTreeMap<Name, Source> = BTreeMap::new();
    for (name, object) in objects {
        if !name.is_hour() {
            held.push((object.clone(), BTreeSet::from([name.clone()])));
            sources.insert(name, Source::Object(object));
            continue;
        }
        let entries = match listing::entries(store, &object).await {
            Ok(entries) => entries,
            // Another one has done this hour meanwhile: the next run sees what it has left.
            Err(Unreadable::Gone) => return Ok(()),
            Err(Unreadable::Store(error)) => return Err(error.into()),
            Err(Unreadable::Damaged(why)) => {
                done.problems.push(format!("{}: {why}", object.place));
                continue;
            }
        };
        let mut names = BTreeSet::new();
        let of = entries.len();
        for (number, entry) in entries.into_iter().enumerate() {
            if let Some(name) = Name::parse(&entry.name) {
                names.insert(name.clone());
                let source = Source::Hour(object.clone(), Arc::new(entry), Among { number, of });
                sources.entry(name).or_insert(source);
            }
        }
        held.push((object, names));
    }
    // One object with all of it is all there can be; one segment alone is not worth another object.
    if held.len() < 2 {
        return Ok(());
    }
    let place = tempfile::tempdir().context("cannot make a directory for what is read")?;
    let Some((readable, gone)) = fetched(store, host, &sources, place.path(), done).await? else {
        return Ok(());
    };
    if gone || readable.is_empty() {
        return Ok(());
    }
    let whole = Name::of_hour(&readable);
    let at = format!("{folder}/host_id={host}/{}", whole.text());
    if !held.iter().any(|(object, _)| object.place == at) {
        let (host, path) = (host.to_owned(), place.path().to_owned());
        let names = readable.clone();
        let bytes = tokio::task::spawn_blocking(move || join(&names, &path))
            .await?
            .with_context(|| format!("cannot put the segments of {host} together"))?;
        store
            .put(&at, bytes.into())
            .await
            .with_context(|| format!("the store does not take {at}"))?;
        done.written += 1;
    }
    // From here on each of them is there in the new object, too.
    let spare = held
        .iter()
        .filter(|(object, names)| object.place != at && !names.is_empty() && names.is_subset(&readable));
    for (object, _) in spare {
        store
            .delete(&object.place)
            .await
            .with_context(|| format!("the store does not remove {}", object.place))?;
        done.removed += 1;
    }
    Ok(())
}

/// Brings segments into a folder: those that could be read; and whether one was gone. `None` of too few.
async fn fetched(
    store: &Store,
    host: &str,
    sources: &BTreeMap<Name, Source>,
    folder: &Path,
    done: &mut Done,
) -> anyhow::Result<Option<(BTreeSet<Name>, bool)>> {
    let fetched: Vec<_> = stream::iter(sources)
        .map(async |(name, source)| {
            let fetched = fetch::segment(store, host, name, source, folder).await;
            anyhow::Ok((name, source, fetched))
        })
        .buffered(REQUESTS)
        .try_collect()
        .await?;
    let mut readable = BTreeSet::new();
    let mut bytes = 0;
    for (name, source, fetched) in fetched {
        match fetched {
            Ok(path) => {
                // What holdup can't read is left for whoever can.
                if let Err(error) = holdup_recording::read_one(&path) {
                    let why = fetch::said_of(&error.to_string(), &path);
                    done.problems.push(format!("{}: {why}", source.place()));
                    continue;
                }
                bytes += std::fs::metadata(&path).map_or(0, |about| about.len());
                // Later ones make another object, by the next run.
                if bytes > MAX_BYTES || readable.len() == MAX_SEGMENTS {
                    break;
                }
                readable.insert(name.clone());
            }
            Err(Unreadable::Gone) => return Ok(Some((readable, true))),
            Err(Unreadable::Store(error)) => return Err(error.into()),
            Err(Unreadable::Damaged(why)) => done.problems.push(format!("{}: {why}", source.place())),
        }
    }
    Ok((readable.len() > 1).then_some((readable, false)))
}

/// The object of segments that are files in a folder.
fn join(names: &BTreeSet<Name>, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let mut file = tempfile::tempfile().context("cannot make a file for what is put together")?;
    let mut joining = Joining::new(file.try_clone()?)?;
    for name in names {
        let text = name.text();
        joining.push(&text, &folder.join(format!("holdup-{text}")))?;
    }
    joining.finish()?;
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Done, hours};
    use crate::layout::HOUR;
    use crate::listing;
    use crate::store::{Store, runtime};
    use crate::testing::{EIGHT, Failing, add_segment, memory};
    use crate::upload::Uploading;
    use holdup_times::Window;
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use std::sync::Arc;

    fn block<T>(future: impl Future<Output = T>) -> T {
        runtime().unwrap().block_on(future)
    }

    /// A store with segments of the first minutes of an hour.
    fn filled(minutes: &[u64]) -> (Store, Arc<InMemory>) {
        let (store, inner) = memory();
        add(&store, minutes);
        (store, inner)
    }

    fn add(store: &Store, minutes: &[u64]) {
        let place = tempfile::tempdir().unwrap();
        for minute in minutes {
            add_segment(place.path(), "db-3", *minute);
        }
        block(Uploading::new(place.path(), "m".to_owned(), "memory").round(store)).unwrap();
    }

    /// What a reader finds: for each segment its nanoseconds of waits, whichever object it is in.
    fn read(store: &Store) -> Vec<(i64, u64)> {
        let window = Window {
            from: EIGHT,
            to: EIGHT + HOUR,
        };
        let listing = block(listing::of(store, window)).unwrap();
        assert!(listing.problems.is_empty(), "{:?}", listing.problems);
        let place = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        for (host, found) in &listing.hosts {
            for (name, source) in &found.segments {
                let path = block(crate::fetch::segment(store, host, name, source, place.path())).unwrap();
                let segment = holdup_recording::read_one(&path).unwrap();
                let waits = segment.attributed.waits.iter().map(|wait| wait.ns).sum();
                all.push((segment.head.started_unix, waits));
            }
        }
        all
    }

    fn compacted(store: &Store) -> anyhow::Result<Done> {
        block(hours(store, EIGHT, EIGHT + HOUR))
    }

    #[test]
    fn an_hour_becomes_one_object_and_no_figure_changes() {
        let (store, _) = filled(&[0, 1, 2, 7]);
        let before = read(&store);
        assert_eq!(before.len(), 4);
        let done = compacted(&store).unwrap();
        assert_eq!((done.written, done.removed), (1, 4));
        assert_eq!(read(&store), before);
        assert_eq!(block(store.list("")).unwrap().len(), 1);
        assert_eq!(compacted(&store).unwrap(), Done::default(), "a second time");
    }

    #[test]
    fn what_comes_late_joins_the_others() {
        let (store, _) = filled(&[0, 1]);
        compacted(&store).unwrap();
        add(&store, &[2, 3]);
        let before = read(&store);
        let done = compacted(&store).unwrap();
        assert_eq!((done.written, done.removed), (1, 3));
        assert_eq!(read(&store), before);
        // One that is put again is not there twice, and goes again.
        add(&store, &[1]);
        assert_eq!(read(&store), before);
        let done = compacted(&store).unwrap();
        assert_eq!((done.written, done.removed), (0, 1));
        assert_eq!(read(&store), before);
    }

    #[test]
    fn whichever_step_it_ends_at_all_is_there_once() {
        let whole = read(&filled(&[0, 1, 2]).0);
        for step in 0..5 {
            let (store, inner) = filled(&[0, 1, 2]);
            let failing = Store::new(Arc::new(Failing::at(inner, step)), Path::default());
            assert_eq!(compacted(&failing).is_err(), step < 4, "step {step}");
            assert_eq!(read(&store), whole, "step {step}");
            compacted(&store).unwrap();
            assert_eq!(read(&store), whole);
            assert_eq!(block(store.list("")).unwrap().len(), 1, "step {step}");
        }
    }

    #[test]
    fn a_segment_that_nobody_can_read_stays_and_is_said() {
        let (store, _) = filled(&[0, 1]);
        let (third, _) = filled(&[2]);
        let broken = block(third.list("")).unwrap().remove(0);
        block(store.put(&broken.place, bytes::Bytes::from_static(b"PAR1 nonsense"))).unwrap();
        let done = compacted(&store).unwrap();
        assert_eq!((done.written, done.removed, done.problems.len()), (1, 2, 1));
        assert_eq!(block(store.list("")).unwrap().len(), 2);
        // It does not make the others be written anew each time.
        assert_eq!(compacted(&store).unwrap().written, 0);
    }

    #[test]
    fn hours_that_are_not_over_stay_as_they_are() {
        let (store, _) = filled(&[0, 1]);
        let done = block(hours(&store, EIGHT, EIGHT + HOUR - 1)).unwrap();
        assert_eq!(done, Done::default());
    }
}
