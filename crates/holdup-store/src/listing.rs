//! What a store has of a window: which hosts, which segments, and where each is.
//!
//! In: a store and a window. Out: for each host its segments in the window, each once, and what listing alone tells of the others: when
//! something came from them last. Folders of hours are listed, and of earlier hours only the names of hosts. Of objects with many
//! segments the footers are read.

use crate::Usage;
use crate::layout::{self, HOUR, Kind, Name};
use crate::store::{Listed, Store};
use anyhow::{Context, bail};
use futures_util::{StreamExt, TryStreamExt, stream};
use holdup_recording::hour::{self, Entry};
use holdup_times::Window;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Hours of a window at most: a month.
pub const MAX_HOURS: i64 = 31 * 24;

/// Hours before the window that are looked at for hosts that have stopped since.
const EARLIER_HOURS: i64 = 24;

/// Requests at a time.
pub const REQUESTS: usize = 16;

/// Bytes at the end of an object that are read at once: mostly its whole footer.
const FOOTER_GUESS: u64 = 256 << 10;

/// Where a segment is.
#[derive(Debug, Clone)]
pub enum Source {
    /// An object of its own.
    Object(Listed),
    /// In an object with others.
    Hour(Listed, Arc<Entry>, Among),
}

/// The place of a segment in an object with many: its group of rows has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Among {
    /// Which it is, from 0.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Source {
    /// The object's place.
    #[must_use]
    pub fn place(&self) -> &str {
        match self {
            Source::Object(object) | Source::Hour(object, ..) => &object.place,
        }
    }
}

/// A host in a listing.
#[derive(Debug, Default)]
pub struct Found {
    /// Its segments in the window, by what they are called.
    pub segments: BTreeMap<Name, Source>,
    /// Counts of what it had to drop.
    pub dropped: Vec<Listed>,
    /// The last segment that began before the window's end, in the window or not, as names tell.
    pub last: Option<Name>,
}

/// A listing.
#[derive(Debug, Default)]
pub struct Listing {
    /// Hosts by their id.
    pub hosts: BTreeMap<String, Found>,
    /// Objects in the hours of the window.
    pub objects: u64,
    /// Objects that could not be read, with why.
    pub problems: Vec<String>,
}

/// When the newest segment of a store ends; `None` of an empty one.
///
/// # Errors
/// When the store can't be listed.
pub async fn newest(store: &Store) -> anyhow::Result<Option<i64>> {
    for (_, folder) in hours(store).await?.into_iter().rev() {
        let objects = store.list(&folder).await.context("cannot list the store")?;
        let ends = objects
            .iter()
            .filter_map(|object| match layout::parse(&object.place)? {
                (_, _, Kind::Segment(name) | Kind::Hour(name)) => Some(name.to()),
                _ => None,
            });
        if let Some(newest) = ends.max() {
            return Ok(Some(newest));
        }
    }
    Ok(None)
}

/// The hours that a store has a folder of: when each begins, and the folder; oldest first.
///
/// # Errors
/// When the store can't be listed.
pub async fn hours(store: &Store) -> anyhow::Result<Vec<(i64, String)>> {
    let days = store.folders("").await.context("cannot list the store")?;
    let hours: Vec<Vec<String>> = stream::iter(&days)
        .map(async |day| {
            let hours = store.folders(day).await?;
            let folders = hours.iter().map(|hour| format!("{day}/{hour}"));
            Ok::<_, object_store::Error>(folders.collect::<Vec<String>>())
        })
        .buffered(REQUESTS)
        .try_collect()
        .await
        .context("cannot list the store")?;
    let folders = hours.into_iter().flatten();
    let mut hours: Vec<(i64, String)> = folders
        .filter_map(|folder| Some((layout::hour_of(&folder)?, folder)))
        .collect();
    hours.sort();
    Ok(hours)
}

/// Looks for a window's segments.
///
/// # Errors
/// When the store can't be listed, or the window is longer than a month.
pub async fn of(store: &Store, window: Window) -> anyhow::Result<Listing> {
    let begin = |at: i64| at - at.rem_euclid(HOUR);
    // A segment lasts an hour at most, and one that began in the hour before may reach into this one.
    let (first, last) = (begin(window.from).saturating_sub(HOUR), begin(window.to));
    if last.saturating_sub(first) / HOUR > MAX_HOURS {
        bail!(Usage(
            "the window is longer than a month; choose a shorter one with --last".to_owned()
        ));
    }
    let hours = (0..=(last - first) / HOUR).map(|number| layout::hour(first + number * HOUR));
    let mut listing = of_folders(store, window, hours.collect()).await?;
    listing.earlier(store, first).await?;
    Ok(listing)
}

/// Looks for a window's segments in some folders: of hours, or of hosts in them.
///
/// # Errors
/// When the store can't be listed.
pub async fn of_folders(store: &Store, window: Window, folders: Vec<String>) -> anyhow::Result<Listing> {
    let objects: Vec<Vec<Listed>> = stream::iter(folders)
        .map(async |folder| store.list(&folder).await)
        .buffered(REQUESTS)
        .try_collect()
        .await
        .context("cannot list the store")?;
    let mut listing = Listing {
        objects: objects.iter().map(|folder| folder.len() as u64).sum(),
        ..Listing::default()
    };
    let mut joined = Vec::new();
    for object in objects.into_iter().flatten() {
        let Some((_, host, kind)) = layout::parse(&object.place) else {
            continue;
        };
        let host = host.to_owned();
        match kind {
            Kind::Segment(name) => listing.add(&host, window, name, Source::Object(object)),
            // Its segments are within it; a name that lies about that is another object's loss.
            Kind::Hour(_) => joined.push((host, object)),
            Kind::Dropped => listing.host(&host).dropped.push(object),
        }
    }
    listing.joined(store, window, joined).await?;
    Ok(listing)
}

impl Listing {
    fn host(&mut self, id: &str) -> &mut Found {
        self.hosts.entry(id.to_owned()).or_default()
    }

    fn add(&mut self, id: &str, window: Window, name: Name, source: Source) {
        let host = self.host(id);
        if name.from <= window.to && host.last.as_ref().is_none_or(|last| last.to() < name.to()) {
            host.last = Some(name.clone());
        }
        if window.holds(name.from, name.to()) {
            // One that is an object of its own, too, is taken from there: nobody else's object can hide it.
            host.segments.entry(name).or_insert(source);
        }
    }

    /// Adds what stands in objects with many segments.
    async fn joined(
        &mut self,
        store: &Store,
        window: Window,
        objects: Vec<(String, Listed)>,
    ) -> anyhow::Result<()> {
        let read = stream::iter(objects)
            .map(async |(host, object)| {
                let entries = entries(store, &object).await;
                (host, object, entries)
            })
            .buffered(REQUESTS);
        let read: Vec<_> = read.collect().await;
        for (host, object, entries) in read {
            match entries {
                Ok(entries) => {
                    self.host(&host);
                    let of = entries.len();
                    for (number, entry) in entries.into_iter().enumerate() {
                        let Some(name) = Name::parse(&entry.name) else {
                            continue;
                        };
                        let source = Source::Hour(object.clone(), Arc::new(entry), Among { number, of });
                        self.add(&host, window, name, source);
                    }
                }
                Err(Unreadable::Gone) => bail!(Gone),
                Err(Unreadable::Store(error)) => bail!(error),
                Err(Unreadable::Damaged(why)) => self.problems.push(format!("{}: {why}", object.place)),
            }
        }
        Ok(())
    }

    /// Adds hosts that have something in the hours before and nothing since, with the last of it.
    async fn earlier(&mut self, store: &Store, first: i64) -> anyhow::Result<()> {
        let hours: Vec<String> = (1..=EARLIER_HOURS)
            .map(|back| layout::hour(first.saturating_sub(back * HOUR)))
            .collect();
        let names: Vec<Vec<String>> = stream::iter(&hours)
            .map(async |hour| store.folders(hour).await)
            .buffered(REQUESTS)
            .try_collect()
            .await
            .context("cannot list the store")?;
        let mut known: BTreeSet<String> = self
            .hosts
            .iter()
            .filter(|(_, host)| host.last.is_some())
            .map(|(id, _)| id.clone())
            .collect();
        // The latest hour first: what stands there is the last of it.
        for (hour, names) in hours.iter().zip(names) {
            for folder in names {
                let Some(id) = folder.strip_prefix("host_id=") else {
                    continue;
                };
                if known.contains(id) {
                    continue;
                }
                let objects = store.list(&format!("{hour}/{folder}")).await?;
                let last = objects
                    .iter()
                    .filter_map(|object| match layout::parse(&object.place)? {
                        (_, _, Kind::Segment(name) | Kind::Hour(name)) => Some(name),
                        _ => None,
                    });
                if let Some(last) = last.max_by_key(Name::to) {
                    self.host(id).last = Some(last);
                    known.insert(id.to_owned());
                }
            }
        }
        Ok(())
    }
}

/// An object that was listed is there no more: another process has put it together with others.
#[derive(Debug, Clone, Copy)]
pub struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("objects of the store were replaced while they were read; try again")
    }
}

impl std::error::Error for Gone {}

/// Why an object can't be read.
#[derive(Debug)]
pub enum Unreadable {
    /// It is there no more.
    Gone,
    /// The store does not give it.
    Store(object_store::Error),
    /// It is not what it should be.
    Damaged(String),
}

impl From<object_store::Error> for Unreadable {
    fn from(error: object_store::Error) -> Unreadable {
        match error {
            object_store::Error::NotFound { .. } => Unreadable::Gone,
            error => Unreadable::Store(error),
        }
    }
}

/// The segments that an object lists in its footer.
///
/// # Errors
/// Why it can't be read.
pub async fn entries(store: &Store, object: &Listed) -> Result<Vec<Entry>, Unreadable> {
    let footer = footer(store, object, FOOTER_GUESS).await?;
    hour::entries(&footer).map_err(Unreadable::Damaged)
}

/// The footer of an object. `guess` bytes at its end are read at once; where they are not all of it, the rest is read by a second request.
///
/// # Errors
/// Why it can't be read.
pub async fn footer(store: &Store, object: &Listed, guess: u64) -> Result<Vec<u8>, Unreadable> {
    let damaged = || Unreadable::Damaged("its end is none of a recording".to_owned());
    let guess = object.size.saturating_sub(guess);
    let end = store.range(&object.place, guess..object.size).await?;
    let tail_at = end
        .len()
        .checked_sub(usize::try_from(hour::TAIL_BYTES).unwrap_or(usize::MAX))
        .ok_or_else(damaged)?;
    let length = hour::footer_length(end.get(tail_at..).unwrap_or_default()).ok_or_else(damaged)?;
    let footer_at = object
        .size
        .checked_sub(hour::TAIL_BYTES)
        .and_then(|at| at.checked_sub(length))
        .ok_or_else(damaged)?;
    match footer_at.checked_sub(guess) {
        Some(begin) => {
            let begin = usize::try_from(begin).unwrap_or(usize::MAX);
            end.get(begin..tail_at).map(<[u8]>::to_vec).ok_or_else(damaged)
        }
        None => {
            let until = object.size - hour::TAIL_BYTES;
            Ok(store.range(&object.place, footer_at..until).await?.to_vec())
        }
    }
}
