//! `holdup fleet diff`: the same hosts at two times, or two groups of hosts at one ([`groups`]).
//!
//! In: a store and two windows. Out: what programs waited for became more or less on which hosts, and whether that is more than the hosts' own
//! spread. Sums are those of the segments, a second of observation each, so that a host of which one time has fewer segments compares all the same.

mod groups;

use crate::cli::DiffArgs;
use crate::hosts::Judged;
use crate::listing::{self, Found, Gone, Listing, REQUESTS, Source, Unreadable};
use crate::store::{Missing, Store, runtime};
use crate::{Usage, combine, fetch, layout, show};
use anyhow::{Context, bail};
use futures_util::{StreamExt, stream};
use holdup_comparison::comparison::paired::{self, Observed, Pair};
use holdup_evidence::Cause;
use holdup_model::report::{FleetHost, Report};
use holdup_recording::Segment;
use holdup_times::Window;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::time::Duration;

/// The part before each time where nobody says which.
const DEFAULT_LAST: Duration = Duration::from_secs(600);

/// Programs and causes of one host at one time that are kept apart; the others are one.
const MAX_KEYS: usize = 10_000;

/// Nanoseconds of a second.
const SECOND_NS: f64 = 1e9;

/// Compares.
///
/// # Errors
/// When the store can't be read, the times make no sense, or no host was observed at both.
pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<u8> {
    if !args.hosts.is_empty() {
        let store = Store::open(&args.url, Missing::Refuse)?;
        let report = runtime()?.block_on(groups::report(&store, args))?;
        show::write(&report, &args.output)?;
        return Ok(0);
    }
    let (Some(before), Some(after)) = (&args.before, &args.after) else {
        bail!(Usage(
            "say which two times, or which hosts: holdup fleet diff URL --before TIME --after TIME [--last LENGTH], or \
             holdup fleet diff URL --hosts NAMES --with NAMES [--at TIME]"
                .to_owned()
        ));
    };
    let store = Store::open(&args.url, Missing::Refuse)?;
    let report = runtime()?.block_on(report(&store, &args.url, [before, after], args.last))?;
    show::write(&report, &args.output)?;
    Ok(0)
}

/// The report.
async fn report(
    store: &Store,
    url: &str,
    times: [&String; 2],
    last: Option<Duration>,
) -> anyhow::Result<Report> {
    let Some(newest) = listing::newest(store).await? else {
        bail!("there is no recording in {url}");
    };
    let window = |time: &String| {
        let last = last.unwrap_or(DEFAULT_LAST);
        Window::asked(Some(time.as_str()), Some(last), newest, &TimeZone::system()).map_err(Usage)
    };
    let windows = [window(times[0])?, window(times[1])?];
    let names = windows.map(named);
    if windows[0].from < windows[1].to && windows[1].from < windows[0].to {
        bail!(Usage(format!(
            "the two times overlap, {} and {}: choose others, or a shorter --last",
            names[0], names[1]
        )));
    }
    let all = |_: &str| true;
    let [before, after] = [
        observed(store, windows[0], &all).await?,
        observed(store, windows[1], &all).await?,
    ];
    let notes = missing([&before, &after]);
    let pairs = pairs(&before, &after);
    let comparison = paired::compare(names, &pairs, notes).map_err(|why| Usage(why.0))?;
    let whole = Window {
        from: windows[0].from.min(windows[1].from),
        to: windows[0].to.max(windows[1].to),
    };
    let listing = Listing {
        objects: before.listed.saturating_add(after.listed),
        problems: [before.problems.clone(), after.problems.clone()].concat(),
        ..Listing::default()
    };
    let about = combine::store(url, whole, store.counts(), listing);
    let mut report = combine::combine(hosts([&before, &after]), about, whole);
    report.comparison = Some(comparison);
    Ok(report)
}

fn named(window: Window) -> String {
    format!(
        "{} to {}",
        layout::rfc3339(window.from),
        layout::rfc3339(window.to)
    )
}

/// All that was observed in a window.
#[derive(Debug, Default)]
struct Time {
    hosts: BTreeMap<String, Host>,
    listed: u64,
    problems: Vec<String>,
}

/// What was observed on a host.
#[derive(Debug, Default)]
struct Host {
    observed: Observed,
    segments: u32,
    from: Option<i64>,
    to: Option<i64>,
}

/// Adds up the hosts that are wanted in a window. Another process may put objects together meanwhile: then the store is listed again.
async fn observed(store: &Store, window: Window, wanted: &dyn Fn(&str) -> bool) -> anyhow::Result<Time> {
    for _ in 0..show::TRIES {
        let tried = async {
            let mut listing = listing::of(store, window).await?;
            listing.hosts.retain(|id, _| wanted(id));
            added_up(store, listing).await
        };
        match tried.await {
            Err(error) if error.is::<Gone>() => {}
            done => return done,
        }
    }
    bail!(Gone)
}

async fn added_up(store: &Store, listing: Listing) -> anyhow::Result<Time> {
    let mut time = Time {
        listed: listing.objects,
        problems: listing.problems,
        ..Time::default()
    };
    let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut all = stream::iter(listing.hosts)
        .map(async |(id, found)| one(store, id, &found).await)
        .buffered(cpus);
    while let Some(next) = all.next().await {
        let (id, host, problems) = next?;
        time.problems.extend(problems);
        if host.segments > 0 {
            time.hosts.insert(id, host);
        }
    }
    Ok(time)
}

/// Adds up a host.
async fn one(store: &Store, id: String, found: &Found) -> anyhow::Result<(String, Host, Vec<String>)> {
    let folder = tempfile::tempdir().context("cannot make a directory for what is read")?;
    let (mut host, mut problems) = (Host::default(), Vec::new());
    let mut fetched = stream::iter(&found.segments)
        .map(async |(name, source)| {
            let fetched = fetch::segment(store, &id, name, source, folder.path()).await;
            (source, fetched)
        })
        .buffered(REQUESTS);
    while let Some((source, fetched)) = fetched.next().await {
        let path = match fetched {
            Ok(path) => path,
            Err(Unreadable::Gone) => bail!(Gone),
            Err(Unreadable::Store(error)) => bail!(error),
            Err(Unreadable::Damaged(why)) => {
                problems.push(format!("{}: {why}", Source::place(source)));
                continue;
            }
        };
        let read = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || holdup_recording::read_sums(&path)).await?
        };
        match read {
            Ok(segment) => host.add(&segment),
            Err(error) => {
                let why = fetch::said_of(&error.to_string(), &path);
                problems.push(format!("{}: {why}", Source::place(source)));
            }
        }
        std::fs::remove_file(&path).ok();
    }
    drop(fetched);
    Ok((id, host, problems))
}

impl Host {
    /// Adds a segment; one of which nothing is known adds nothing.
    fn add(&mut self, segment: &Segment) {
        let head = &segment.head;
        if head.is_lost() {
            return;
        }
        self.segments = self.segments.saturating_add(1);
        let (from, to) = (head.started_unix, head.ended_unix());
        self.from = Some(self.from.map_or(from, |first| first.min(from)));
        self.to = Some(self.to.map_or(to, |last| last.max(to)));
        self.observed.seconds += head.length as f64 / SECOND_NS;
        let waits = segment.attributed.waits.iter();
        for wait in waits.filter(|wait| wait.cause != Cause::Idle) {
            let key = (Some(wait.asker.name.process.clone()), wait.cause);
            let amounts = &mut self.observed.amounts;
            let key = match amounts.len() < MAX_KEYS || amounts.contains_key(&key) {
                true => key,
                false => (None, wait.cause),
            };
            *amounts.entry(key).or_default() += wait.ns as f64;
        }
    }
}

/// The hosts of both times.
fn pairs(before: &Time, after: &Time) -> Vec<Pair> {
    let both = before.hosts.iter();
    both.filter_map(|(id, host)| {
        Some(Pair {
            host: id.clone(),
            before: host.observed.clone(),
            after: after.hosts.get(id)?.observed.clone(),
        })
    })
    .collect()
}

/// Hosts of one time alone, which cannot be compared.
fn missing([before, after]: [&Time; 2]) -> Vec<String> {
    let only = |one: &Time, other: &Time, name: &str| {
        let missing = one.hosts.keys().filter(|id| !other.hosts.contains_key(*id));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        (!missing.is_empty()).then(|| format!("not compared, no recordings {name}: {}", missing.join(", ")))
    };
    let both = [only(before, after, "AFTER"), only(after, before, "BEFORE")];
    both.into_iter().flatten().collect()
}

/// What there is of each host, of both times together.
fn hosts([before, after]: [&Time; 2]) -> Vec<Judged> {
    let mut all: BTreeMap<&String, FleetHost> = BTreeMap::new();
    for (id, host) in before.hosts.iter().chain(&after.hosts) {
        let sum = all.entry(id).or_insert_with(|| FleetHost {
            name: layout::name_in(id).to_owned(),
            id: id.clone(),
            ..FleetHost::default()
        });
        sum.segments = sum.segments.saturating_add(host.segments);
        // BEFORE need not be earlier; RFC 3339 of one zone sorts by time.
        let from = host.from.map(layout::rfc3339);
        sum.from = [sum.from.take(), from].into_iter().flatten().min();
        sum.to = sum.to.take().max(host.to.map(layout::rfc3339));
    }
    let hosts = all.into_values();
    hosts.map(|host| Judged { host, report: None }).collect()
}

#[cfg(test)]
mod tests {
    use super::report;
    use crate::store::{Store, runtime};
    use crate::testing::{EIGHT, memory, segment};
    use crate::{Usage, layout};
    use clap::{Args, FromArgMatches};
    use holdup_evidence::Cause;
    use holdup_model::report::SubjectKind;
    use layout::Name;
    use std::time::Duration;

    /// Puts the minutes of a host; in each its disk took so many milliseconds more than it does.
    fn put(store: &Store, host: &str, minutes: std::ops::Range<u64>, more_ms: u64) {
        let place = tempfile::tempdir().unwrap();
        for minute in minutes {
            let mut segment = segment(host, minute);
            for wait in &mut segment.attributed.waits {
                wait.ns += more_ms * 1_000_000;
            }
            let path = place.path().join("holdup-x.parquet");
            holdup_recording::save(&segment, &path).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let at = layout::place(&layout::host_id(Some(host), host), &Name::of(&segment.head));
            runtime().unwrap().block_on(store.put(&at, bytes.into())).unwrap();
        }
    }

    fn parsed(arguments: &[&str]) -> crate::cli::DiffArgs {
        let command = crate::cli::DiffArgs::augment_args(clap::Command::new("diff"));
        let matches = command.get_matches_from(arguments);
        crate::cli::DiffArgs::from_arg_matches(&matches).unwrap()
    }

    fn at(minute: i64) -> String {
        layout::rfc3339(EIGHT + minute * 60_000_000_000)
    }

    fn diff(store: &Store) -> anyhow::Result<holdup_model::report::Report> {
        let (before, after) = (at(4), at(20));
        let last = Some(Duration::from_secs(240));
        runtime()?.block_on(report(store, "memory:", [&before, &after], last))
    }

    #[test]
    fn what_got_slower_on_the_same_hosts_is_found_and_a_host_of_one_time_is_said() {
        let (store, _) = memory();
        for host in ["a", "b", "c", "d", "e", "f"] {
            put(&store, host, 0..4, 0);
            // One minute is missing: seconds are compared, not sums.
            put(&store, host, 17..20, 600);
        }
        put(&store, "new", 17..20, 0);
        let report = diff(&store).unwrap();
        assert_eq!(report.subject.kind, SubjectKind::Fleet);
        assert_eq!(report.hosts.len(), 7);
        let comparison = report.comparison.unwrap();
        assert_eq!((comparison.before_n, comparison.significant), (6, Some(true)));
        // 600 ms more in a minute of 60 s.
        let change = comparison.change_ns.unwrap();
        assert!((9_999_900..10_000_100).contains(&change), "{change}");
        let program = &comparison.programs[0];
        assert_eq!(
            (program.process.as_deref(), program.cause),
            (Some("db"), Cause::DiskSync)
        );
        assert!(
            comparison.notes.iter().any(|note| note.contains("BEFORE: new.")),
            "{:?}",
            comparison.notes
        );
    }

    #[test]
    fn times_that_overlap_are_refused_in_a_sentence() {
        let (store, _) = memory();
        put(&store, "a", 0..20, 0);
        let (before, after) = (at(4), at(7));
        let last = Some(Duration::from_secs(240));
        let runtime = runtime().unwrap();
        let overlap = runtime.block_on(report(&store, "memory:", [&before, &after], last));
        let error = overlap.unwrap_err();
        assert!(
            error.is::<Usage>() && error.to_string().starts_with("the two times overlap"),
            "{error}"
        );
        let same = runtime.block_on(report(&store, "memory:", [&before, &before], last));
        assert!(same.unwrap_err().is::<Usage>());
        // Times that touch do not.
        let (before, after) = (at(4), at(8));
        assert!(
            runtime
                .block_on(report(&store, "memory:", [&before, &after], last))
                .is_ok()
        );
    }

    #[test]
    fn two_groups_of_hosts_are_compared_and_a_name_that_fits_none_is_said() {
        let (store, _) = memory();
        for (number, host) in ["web-1", "web-02", "web-003", "web-0004"].into_iter().enumerate() {
            put(&store, host, 0..4, 10 * number as u64);
        }
        for (number, host) in ["db-1", "db-02", "db-003", "db-0004"].into_iter().enumerate() {
            put(&store, host, 0..4, 600 + 10 * number as u64);
        }
        let ask = |hosts: &str, with: &str| {
            let args = parsed(&[
                "diff",
                "memory:",
                "--at",
                &at(4),
                "--hosts",
                hosts,
                "--with",
                with,
            ]);
            runtime()?.block_on(super::groups::report(&store, &args))
        };
        let comparison = ask("web-*", "db-*").unwrap().comparison.unwrap();
        assert_eq!((comparison.before_n, comparison.after_n), (4, 4));
        assert_eq!(
            (comparison.significant, comparison.before.as_str()),
            (Some(true), "web-*")
        );
        assert_eq!(ask("web-1,web-02", "db-1").unwrap().hosts.len(), 3);
        for (hosts, with, said) in [
            ("web-*", "cache-*", "no host called cache-*"),
            ("web-*", "web-1", "web-1."),
        ] {
            let error = ask(hosts, with).unwrap_err();
            assert!(
                error.is::<Usage>() && error.to_string().starts_with(said),
                "{error}"
            );
        }
    }

    #[test]
    fn nothing_of_both_times_is_said_in_a_sentence() {
        let (store, _) = memory();
        put(&store, "a", 0..4, 0);
        put(&store, "b", 17..20, 0);
        let error = diff(&store).unwrap_err();
        assert!(
            error.is::<Usage>() && error.to_string().starts_with("no host has recordings"),
            "{error}"
        );
    }
}
