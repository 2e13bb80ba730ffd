//! All hosts of a listing, each fetched and judged.
//!
//! In: a listing. Out: for each host what there is of it, and its report. Hosts are judged side by side, as many as there are CPUs, and
//! the files of one are gone when it is judged, so that the disk and the memory of a few hosts suffice for thousands.

use crate::layout::{self, Name};
use crate::listing::{Found, Gone, Listing, REQUESTS, Source, Unreadable};
use crate::store::Store;
use crate::upload::DroppedObject;
use crate::{fetch, judge};
use anyhow::{Context, bail};
use futures_util::{StreamExt, stream};
use holdup_model::report::{FleetHost, Report};
use holdup_times::Window;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;

/// The largest count of what was dropped, bytes.
const MAX_DROPPED_BYTES: u64 = 16 << 20;

/// A host, judged.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) host: FleetHost,
    /// Its report; `None` where nothing of it could be judged.
    pub(crate) report: Option<Report>,
}

/// Judges all hosts of a listing; objects that could not be read are added to its problems.
///
/// # Errors
/// When the store does not give what it has listed, or the disk has no room.
pub(crate) async fn judged(
    store: &Store,
    window: Window,
    listing: &mut Listing,
    program: &Path,
) -> anyhow::Result<Vec<Judged>> {
    let hosts = std::mem::take(&mut listing.hosts);
    let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut all = stream::iter(hosts)
        .map(async |(id, found)| one(store, window, &id, &found, program).await)
        .buffered(cpus);
    let mut judged = Vec::new();
    while let Some(next) = all.next().await {
        let (host, problems) = next?;
        listing.problems.extend(problems);
        judged.push(host);
    }
    Ok(judged)
}

async fn one(
    store: &Store,
    window: Window,
    id: &str,
    found: &Found,
    program: &Path,
) -> anyhow::Result<(Judged, Vec<String>)> {
    let mut host = FleetHost {
        name: layout::name_in(id).to_owned(),
        id: id.to_owned(),
        silent_since: silent_since(window, found.last.as_ref()),
        ..FleetHost::default()
    };
    let mut problems = Vec::new();
    host.dropped = dropped(store, window, found, &mut problems).await?;
    let folder = tempfile::tempdir().context("cannot make a directory for what is read")?;
    let fetched: Vec<_> = stream::iter(&found.segments)
        .map(async |(name, source)| {
            let fetched = fetch::segment(store, id, name, source, folder.path()).await;
            (name, source, fetched)
        })
        .buffered(REQUESTS)
        .collect()
        .await;
    let mut there: Vec<&Name> = Vec::new();
    for (name, source, fetched) in fetched {
        match fetched {
            Ok(_) => there.push(name),
            Err(Unreadable::Gone) => bail!(Gone),
            Err(Unreadable::Store(error)) => bail!(error),
            Err(Unreadable::Damaged(why)) => problems.push(format!("{}: {why}", said(source, name))),
        }
    }
    host.segments = u32::try_from(there.len()).unwrap_or(u32::MAX);
    host.from = there.iter().map(|name| name.from).min().map(layout::rfc3339);
    host.to = there.iter().map(|name| name.to()).max().map(layout::rfc3339);
    let report = match there.is_empty() {
        true => None,
        false => {
            let (program, place) = (program.to_owned(), folder.path().to_owned());
            let judged = tokio::task::spawn_blocking(move || judge::folder(&program, &place)).await?;
            match judged {
                Ok(report) => Some(report),
                Err(error) => {
                    let text =
                        format!("{error:#}").replace(&folder.path().display().to_string(), "its segments");
                    host.problems.push(text);
                    None
                }
            }
        }
    };
    if let Some(report) = &report {
        host.observed_ns = report.coverage.observed_ns;
        host.sentence = Some(holdup_views::sentence(report));
        let skipped = report.recording.iter().flat_map(|recording| &recording.problems);
        let prefix = format!("{}/", folder.path().display());
        host.problems.extend(skipped.map(|one| one.replace(&prefix, "")));
    }
    Ok((Judged { host, report }, problems))
}

/// An object in words, and of one with many segments which.
fn said(source: &Source, name: &Name) -> String {
    match source {
        Source::Object(_) => source.place().to_owned(),
        Source::Hour(..) => format!("{}, segment {}", source.place(), name.text()),
    }
}

/// Since when nothing came. Segments of all hosts end at the same instants, so that one whose next one is due and not there for as long as
/// it would last has missed it.
fn silent_since(window: Window, last: Option<&Name>) -> Option<String> {
    let last = last?;
    let length = i64::try_from(last.length).unwrap_or(i64::MAX);
    let due = last.to().saturating_add(length.saturating_mul(2));
    (due < window.to).then(|| layout::rfc3339(last.to()))
}

/// How many segments of the window were dropped before the store had them. One that it has after all is none.
async fn dropped(
    store: &Store,
    window: Window,
    found: &Found,
    problems: &mut Vec<String>,
) -> anyhow::Result<u64> {
    let mut gone = BTreeSet::new();
    for object in &found.dropped {
        if object.size > MAX_DROPPED_BYTES {
            problems.push(format!("{}: larger than {MAX_DROPPED_BYTES} bytes", object.place));
            continue;
        }
        let bytes = store.get(object).await?;
        match serde_json::from_slice::<DroppedObject>(&bytes) {
            Ok(object) => gone.extend(object.segments.into_iter().map(|one| Name {
                from: one.started_unix,
                length: one.length,
                identity: one.identity,
            })),
            Err(error) => problems.push(format!("{}: {error}", object.place)),
        }
    }
    let gone = gone
        .iter()
        .filter(|name| window.holds(name.from, name.to()) && !found.segments.contains_key(*name));
    Ok(gone.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::silent_since;
    use crate::layout::Name;
    use holdup_times::Window;

    #[test]
    fn a_host_is_silent_once_its_next_segment_is_overdue() {
        const MINUTE: i64 = 60_000_000_000;
        let last = Name {
            from: 0,
            length: MINUTE.unsigned_abs(),
            identity: "a-1".to_owned(),
        };
        let at = |to: i64| silent_since(Window { from: 0, to }, Some(&last));
        for minutes in 1..=3 {
            assert_eq!(at(minutes * MINUTE), None, "{minutes}");
        }
        assert_eq!(at(4 * MINUTE).as_deref(), Some("1970-01-01T00:01:00Z"));
        assert_eq!(silent_since(Window { from: 0, to: MINUTE }, None), None);
    }
}
