//! Two groups of hosts at one time: what one has more of than the other, and whether that is more than hosts of one group differ among themselves.
//!
//! In: what programs waited for on each host. Out: a [`Comparison`]. The unit is the host, and no host is in both groups, so that nothing is its own
//! control: hosts are dealt out to two groups in all ways, as runs are ([`super::significance`]). Groups of very unlike hosts need many.

use super::paired::{Key, Observed};
use super::runs::{self, Change, Changes, Part, Run, Sides};
use super::significance::Basis;
use super::{Incomparable, chance, source};
use holdup_evidence::units::duration;
use holdup_evidence::{Cause, Ns};
use holdup_model::report::{CauseChange, Compared, Comparison, ProgramChange};
use std::collections::{BTreeMap, BTreeSet};

/// Programs that are listed.
const LISTED: usize = 200;

/// Compares two groups of hosts, each with its name.
///
/// # Errors
/// When nothing was observed on a host of either.
pub fn compare(
    names: [String; 2],
    groups: [&[Observed]; 2],
    notes: Vec<String>,
) -> Result<Comparison, Incomparable> {
    let groups = groups.map(|group| {
        let seen = group.iter().filter(|one| one.seconds > 0.0);
        seen.collect::<Vec<&Observed>>()
    });
    if let Some(empty) = groups.iter().position(Vec::is_empty) {
        let name = &names[empty];
        return Err(Incomparable(format!(
            "no host of {name} has recordings of that time"
        )));
    }
    let of_cause = |key: &Key| key.1;
    let (causes, by_cause) = changes(&groups, of_cause);
    let (programs, by_program) = changes(&groups, Key::clone);
    let whole = &by_cause.total;
    let causes = self::causes(&causes, &by_cause);
    let explained = causes
        .iter()
        .filter(|one| one.cause != Cause::Unknown)
        .map(|one| one.change_ns)
        .fold(0, i64::saturating_add);
    let seconds = |group: &[&Observed]| Some(group.iter().map(|one| one.seconds).sum());
    let [before, after] = names;
    let mut comparison = Comparison {
        before,
        after,
        unit: source::SECOND.to_owned(),
        before_ns: Some(whole_ns(whole.before)),
        after_ns: Some(whole_ns(whole.after)),
        change_ns: Some(difference(whole)),
        interval_ns: whole.interval.map(|ends| ends.map(|end| end.round() as i64)),
        significant: whole.significant,
        before_n: count(groups[0].len()),
        after_n: count(groups[1].len()),
        causes,
        noise_n: 0,
        compared: Compared::Recordings,
        verdict: Vec::new(),
        trade: None,
        method: method(by_cause.basis).to_owned(),
        seed: chance::SEED,
        p: whole.p,
        run_to_run: by_cause.variation,
        before_units: seconds(&groups[0]),
        after_units: seconds(&groups[1]),
        explained_ns: Some(explained),
        unexplained_ns: Some(difference(whole).saturating_sub(explained)),
        amounts: Vec::new(),
        made: Vec::new(),
        differences: Vec::new(),
        notes,
        stacks: None,
        hosts: Vec::new(),
        programs: self::programs(&programs, &by_program, &groups),
    };
    comparison.verdict = verdict(&comparison);
    Ok(comparison)
}

/// What changed, by some part of the key; each part by its place in the list.
fn changes<K: Ord>(groups: &[Vec<&Observed>; 2], part: impl Fn(&Key) -> K) -> (Vec<K>, Changes) {
    let works = |key: &&Key| key.1 != Cause::Idle;
    let keys = groups.iter().flatten().flat_map(|one| one.amounts.keys());
    let names: BTreeSet<K> = keys.filter(works).map(&part).collect();
    let names: Vec<K> = names.into_iter().collect();
    let run = |one: &&Observed| {
        let mut parts: BTreeMap<Part, f64> = BTreeMap::new();
        let amounts = one.amounts.iter().filter(|(key, _)| works(key));
        for (key, amount) in amounts.clone() {
            if let Ok(at) = names.binary_search(&part(key)) {
                *parts.entry(Part::own(at.to_string())).or_default() += amount;
            }
        }
        Run {
            units: one.seconds,
            total: amounts.map(|(_, amount)| amount).sum(),
            parts,
            stretches: Vec::new(),
        }
    };
    let [before, after] = groups
        .each_ref()
        .map(|group| group.iter().map(run).collect::<Vec<Run>>());
    let changes = runs::compare(Sides {
        before: &before,
        after: &after,
        noise: &[],
    });
    (names, changes)
}

/// The change of a part that was given its place as a name.
fn part_of(changes: &Changes, at: usize) -> Option<&Change> {
    changes.parts.get(&Part::own(at.to_string()))
}

fn causes(names: &[Cause], changes: &Changes) -> Vec<CauseChange> {
    let one = |(at, cause): (usize, &Cause)| {
        let change = part_of(changes, at)?;
        Some(CauseChange {
            cause: *cause,
            before_ns: whole_ns(change.before),
            after_ns: whole_ns(change.after),
            change_ns: difference(change),
            significant: change.significant,
            p: change.p,
        })
    };
    let mut all: Vec<CauseChange> = names.iter().enumerate().filter_map(one).collect();
    all.sort_by_key(|one| (std::cmp::Reverse(one.change_ns.unsigned_abs()), one.cause));
    all
}

fn programs(names: &[Key], changes: &Changes, groups: &[Vec<&Observed>; 2]) -> Vec<ProgramChange> {
    let one = |(at, (process, cause)): (usize, &Key)| {
        let change = part_of(changes, at)?;
        let key = (process.clone(), *cause);
        let rate = |host: &&&Observed| host.amounts.get(&key).copied().unwrap_or_default() / host.seconds;
        let more = groups[1].iter().filter(|host| rate(host) > change.before);
        Some(ProgramChange {
            process: process.clone(),
            cause: *cause,
            before_ns: whole_ns(change.before),
            after_ns: whole_ns(change.after),
            change_ns: difference(change),
            more_on: count(more.count()),
            significant: change.significant,
            p: change.p,
        })
    };
    let mut all: Vec<ProgramChange> = names.iter().enumerate().filter_map(one).collect();
    all.sort_by(|a, b| {
        let key = |one: &ProgramChange| (std::cmp::Reverse(one.change_ns.unsigned_abs()), one.cause);
        key(a).cmp(&key(b)).then_with(|| a.process.cmp(&b.process))
    });
    all.truncate(LISTED);
    all
}

fn method(basis: Basis) -> &'static str {
    match basis {
        Basis::Permutation => {
            "hosts dealt out to two groups in every way; parts also by Welch's test, with Holm's correction"
        }
        Basis::OtherRuns | Basis::TooFew => "none: too few hosts in the groups, four and four at least",
    }
}

/// The whole answer: by how much, what differs most, and what chance has to say. BEFORE is the first group, AFTER the second.
fn verdict(comparison: &Comparison) -> Vec<String> {
    let [before, after] = [comparison.before_ns, comparison.after_ns].map(Option::unwrap_or_default);
    let both = format!("BEFORE {}, AFTER {}", duration(before), duration(after));
    let by = signed(comparison.change_ns.unwrap_or_default());
    let more = match after > before {
        true => "more",
        false => "less",
    };
    let first = match comparison.significant {
        _ if before == after => {
            format!(
                "No difference: both groups take {} a second and host.",
                duration(before)
            )
        }
        Some(false) => format!("No significant difference: {both} a second and host, {by}."),
        Some(true) => {
            format!("Hosts of AFTER take {more} time than those of BEFORE: {by} a second and host ({both}).")
        }
        None => {
            format!("Hosts of AFTER took {more} time than those of BEFORE: {by} a second and host ({both}).")
        }
    };
    let largest = comparison.programs.first().filter(|one| one.change_ns != 0);
    let largest = largest.map(|one| {
        format!(
            "Largest difference: {}, {} ({}): {} a second and host.",
            one.process.as_deref().unwrap_or("all other programs"),
            one.cause.phrase(),
            one.cause.id(),
            signed(one.change_ns)
        )
    });
    let hosts = format!("{} and {} hosts", comparison.before_n, comparison.after_n);
    let certainty = match (comparison.p, comparison.interval_ns) {
        (Some(p), Some([from, to])) => format!(
            "{hosts}, compared as groups: p = {p:.3}; the true difference is between {} and {} (95 %).",
            signed(from),
            signed(to)
        ),
        (Some(p), None) => format!("{hosts}, compared as groups: p = {p:.3}."),
        (None, _) => format!("{hosts}: this may be chance. It takes at least four in each group to know."),
    };
    [Some(first), largest, Some(certainty)]
        .into_iter()
        .flatten()
        .collect()
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "+" };
    format!("{sign}{}", duration(ns.unsigned_abs()))
}

fn whole_ns(value: f64) -> Ns {
    value.max(0.0).round() as Ns
}

fn difference(change: &Change) -> i64 {
    let [before, after] =
        [change.before, change.after].map(|value| i64::try_from(whole_ns(value)).unwrap_or(i64::MAX));
    after.saturating_sub(before)
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Observed, compare};
    use holdup_evidence::Cause;
    use std::collections::BTreeMap;

    /// A host that waits so many milliseconds a second for its disk, and is idle.
    fn host(disk_ms: f64) -> Observed {
        let key = |cause| (Some("db".to_owned()), cause);
        let amounts = [
            (key(Cause::DiskSync), disk_ms * 1e7),
            (key(Cause::CpuUser), 2e7),
            (key(Cause::Idle), disk_ms * 1e9),
        ];
        Observed {
            seconds: 10.0,
            amounts: BTreeMap::from(amounts),
        }
    }

    fn hosts(disks_ms: &[f64]) -> Vec<Observed> {
        disks_ms.iter().map(|ms| host(*ms)).collect()
    }

    fn compared(one: &[f64], other: &[f64]) -> holdup_model::report::Comparison {
        let names = ["web-*".to_owned(), "db-*".to_owned()];
        compare(names, [&hosts(one), &hosts(other)], vec![]).expect("both were observed")
    }

    #[test]
    fn what_one_group_has_more_of_is_found_with_what_chance_says() {
        let found = compared(&[10.0, 11.0, 9.0, 10.5], &[20.0, 19.0, 21.0, 20.5, 19.5]);
        assert_eq!((found.before_n, found.after_n), (4, 5));
        assert_eq!(found.significant, Some(true), "{found:?}");
        let first = &found.programs[0];
        assert_eq!((first.cause, first.more_on), (Cause::DiskSync, 5));
        assert!((9_800_000..9_950_000).contains(&first.change_ns), "{first:?}");
        assert!(
            found.verdict[0].starts_with("Hosts of AFTER take more time"),
            "{:?}",
            found.verdict
        );
    }

    #[test]
    fn groups_that_differ_as_their_hosts_do_are_not_told_apart() {
        let found = compared(&[10.0, 30.0, 20.0, 40.0], &[12.0, 33.0, 21.0, 38.0]);
        assert_eq!(found.significant, Some(false), "{found:?}");
    }

    #[test]
    fn of_few_hosts_it_is_said_that_it_may_be_chance() {
        let found = compared(&[10.0, 11.0], &[30.0]);
        assert_eq!((found.significant, found.p), (None, None));
        assert!(
            found.verdict.iter().any(|one| one.contains("may be chance")),
            "{:?}",
            found.verdict
        );
        let error = compare(["a".to_owned(), "b".to_owned()], [&hosts(&[1.0]), &[]], vec![]).unwrap_err();
        assert_eq!(error.0, "no host of b has recordings of that time");
    }
}
