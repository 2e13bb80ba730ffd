//! Two groups of hosts at one time.
//!
//! In: a store, a window, and patterns of names. Out: what the one group waits for more than the other. A pattern that fits no host is an error, and
//! so is a host of both groups: whoever asks meant something else.

use super::{Time, hosts, observed};
use crate::cli::DiffArgs;
use crate::store::Store;
use crate::{Usage, combine, layout, listing};
use anyhow::bail;
use holdup_comparison::comparison::groups;
use holdup_comparison::comparison::paired::Observed;
use holdup_model::report::Report;
use holdup_times::Window;
use jiff::tz::TimeZone;

/// Names with `*` and `?`, as a shell has them.
#[derive(Debug, Clone, Copy)]
struct Group<'a>(&'a [String]);

impl Group<'_> {
    /// Whether a host is in it, by its name or its id.
    fn has(self, id: &str) -> bool {
        self.0.iter().any(|pattern| pattern_fits(pattern, id))
    }

    fn name(self) -> String {
        self.0.join(",")
    }
}

fn pattern_fits(pattern: &str, id: &str) -> bool {
    [id, layout::name_in(id)]
        .into_iter()
        .any(|name| fits(pattern.as_bytes(), name.as_bytes()))
}

/// `*` is any text, `?` any letter. It goes back to the last `*` alone, so that no pattern takes longer than both lengths together.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(of) {
            Some(b'*') => {
                again = Some((of + 1, at));
                of += 1;
            }
            Some(letter) if *letter == b'?' || *letter == text[at] => {
                at += 1;
                of += 1;
            }
            _ => match again {
                Some((after, from)) => {
                    again = Some((after, from + 1));
                    (of, at) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|letter| *letter == b'*')
}

/// The report.
pub(super) async fn report(store: &Store, args: &DiffArgs) -> anyhow::Result<Report> {
    let both = [Group(&args.hosts), Group(&args.with)];
    let Some(newest) = listing::newest(store).await? else {
        bail!("there is no recording in {}", args.url);
    };
    let last = args.last.unwrap_or(super::DEFAULT_LAST);
    let window = Window::asked(args.at.as_deref(), Some(last), newest, &TimeZone::system()).map_err(Usage)?;
    let wanted = |id: &str| both.iter().any(|group| group.has(id));
    let mut time = observed(store, window, &wanted).await?;
    for pattern in both.iter().flat_map(|group| group.0) {
        if !time.hosts.keys().any(|id| pattern_fits(pattern, id)) {
            bail!(Usage(format!(
                "no host called {pattern} has recordings of {}",
                super::named(window)
            )));
        }
    }
    if let Some(twice) = time
        .hosts
        .keys()
        .find(|id| both.iter().all(|group| group.has(id)))
    {
        bail!(Usage(format!("{twice} is in both groups, --hosts and --with")));
    }
    let of = |group: Group<'_>| {
        let of = time.hosts.iter().filter(|(id, _)| group.has(id));
        of.map(|(_, host)| host.observed.clone())
            .collect::<Vec<Observed>>()
    };
    let observed = both.map(of);
    let notes = vec![format!(
        "BEFORE and AFTER are groups of hosts, both from {}",
        super::named(window)
    )];
    let comparison = groups::compare(
        both.map(Group::name),
        observed.each_ref().map(Vec::as_slice),
        notes,
    );
    let comparison = comparison.map_err(|why| Usage(why.0))?;
    let listing = listing::Listing {
        objects: time.listed,
        problems: std::mem::take(&mut time.problems),
        ..listing::Listing::default()
    };
    let about = combine::store(&args.url, window, store.counts(), listing);
    let mut report = combine::combine(hosts([&time, &Time::default()]), about, window);
    report.comparison = Some(comparison);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::{fits, pattern_fits};

    #[test]
    fn a_pattern_fits_as_in_a_shell() {
        let fits = |pattern: &str, text: &str| fits(pattern.as_bytes(), text.as_bytes());
        for (pattern, text) in [
            ("web-*", "web-1"),
            ("*", ""),
            ("a*b*c", "a-b-b-c"),
            ("db-?", "db-3"),
            ("db-3", "db-3"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("web-*", "db-1"),
            ("db-?", "db-10"),
            ("", "a"),
            ("db", "db-3"),
            ("*-3", "db-33"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
        assert!(!fits(&"*a".repeat(200), &"a".repeat(199)));
        assert!(pattern_fits("db-3", "db-3.0011aabb") && pattern_fits("db-3.0011aabb", "db-3.0011aabb"));
    }
}
