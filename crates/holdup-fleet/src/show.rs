//! `holdup fleet show`: what all hosts waited for, in one report.
//!
//! In: a store and a window. Out: the report, as text or JSON. Only the objects of the window are read. Another process may put objects
//! together meanwhile: then the store is listed again.

use crate::cli::{OutputArgs, ShowArgs};
use crate::hosts::{self, Judged};
use crate::listing::{self, Gone, Listing};
use crate::store::{Missing, Store, runtime};
use crate::{Usage, combine, judge, layout, say};
use anyhow::{Context, bail};
use holdup_model::report::Report;
use holdup_times::Window;
use holdup_views::Style;
use jiff::tz::TimeZone;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Nothing was recorded then.
const NOTHING: u8 = 1;

/// The part that is shown where nobody says which.
const DEFAULT_LAST: Duration = Duration::from_secs(600);

/// How often a store is listed anew because objects were replaced meanwhile.
pub(crate) const TRIES: u32 = 5;

/// Columns of the text where the environment does not say.
const COLUMNS: usize = 100;

/// Shows.
///
/// # Errors
/// When the store can't be read, or the report can't be written.
pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<u8> {
    let store = Store::open(&args.url, Missing::Refuse)?;
    let report = runtime()?.block_on(report(&store, args, &judge::program()))?;
    let Some(report) = report else {
        return Ok(NOTHING);
    };
    if report.hosts.iter().all(|host| host.segments == 0) {
        say("nothing was recorded then; hosts that reported before are listed");
    }
    write(&report, &args.output)?;
    Ok(match report.hosts.iter().any(|host| host.segments > 0) {
        true => 0,
        false => NOTHING,
    })
}

/// The report; `None` of an empty store, which is said.
async fn report(store: &Store, args: &ShowArgs, program: &Path) -> anyhow::Result<Option<Report>> {
    let Some(newest) = listing::newest(store).await? else {
        say(&format!("there is no recording in {}", args.url));
        return Ok(None);
    };
    let last = args.last.or_else(|| args.at.is_none().then_some(DEFAULT_LAST));
    let window = Window::asked(args.at.as_deref(), last, newest, &TimeZone::system()).map_err(Usage)?;
    let (hosts, listing) = judged(store, window, program).await?;
    if hosts.is_empty() {
        say(&format!(
            "nothing was recorded from {} to {}; the newest segment ends at {}",
            layout::rfc3339(window.from),
            layout::rfc3339(window.to),
            layout::rfc3339(newest)
        ));
        return Ok(None);
    }
    let about = combine::store(&args.url, window, store.counts(), listing);
    Ok(Some(combine::combine(hosts, about, window)))
}

/// All hosts of the window.
async fn judged(store: &Store, window: Window, program: &Path) -> anyhow::Result<(Vec<Judged>, Listing)> {
    for _ in 0..TRIES {
        let tried = async {
            let mut listing = listing::of(store, window).await?;
            let hosts = hosts::judged(store, window, &mut listing, program).await?;
            anyhow::Ok((hosts, listing))
        };
        match tried.await {
            Err(error) if error.is::<Gone>() => {}
            done => return done,
        }
    }
    bail!(Gone)
}

/// Writes a report as it is asked for.
///
/// # Errors
/// When that does not work.
pub(crate) fn write(report: &Report, args: &OutputArgs) -> anyhow::Result<()> {
    let failed = "cannot write the report";
    if let Some(path) = &args.json {
        let mut json = Vec::new();
        holdup_views::Format::Json
            .write(report, &mut json)
            .context(failed)?;
        if path.as_os_str() == "-" {
            return std::io::stdout().write_all(&json).context(failed);
        }
        let mut file = holdup_files::NewFile::open(path, holdup_files::Last::FollowOwn)
            .with_context(|| format!("cannot write {path:?}"))?;
        file.file().write_all(&json).context(failed)?;
        file.finish().with_context(|| format!("cannot write {path:?}"))?;
    }
    let style = Style {
        width: std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok())
            .unwrap_or(COLUMNS),
        colour: false,
        unicode: true,
        verbose: args.verbose,
        quiet: args.quiet,
    };
    let mut text = Vec::new();
    holdup_views::terminal::write(report, &style, &mut text).context(failed)?;
    std::io::stdout().write_all(&text).context(failed)
}

#[cfg(test)]
mod tests;
