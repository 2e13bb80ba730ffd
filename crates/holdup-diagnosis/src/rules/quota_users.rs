//! Who used up the CPU time of a cgroup.
//!
//! The problem: all tasks of the cgroup are throttled alike, those that use it up and those that others wait for, so that who waits longest tells
//! nothing of who is in the way. In: what programs in it used while it was watched. Out: how that is said.

use crate::rules::Extend;
use crate::rules::say::{self, percent, several};
use holdup_evidence::observed::{CgroupUser, SeenCgroup};
use holdup_model::finding::{Evidence, Finding, Remedy};

/// Part of the CPU time from which the program that used it is in the way of the others: half.
const MIN_NAMED_SHARE: f64 = 0.5;

/// Programs that are listed.
const MAX_LISTED: usize = 3;

/// The program that used most of it, with its part, where others are in the cgroup.
fn most(one: &SeenCgroup) -> Option<(&CgroupUser, f64)> {
    let user = one.users.first().filter(|_| one.users.len() > 1)?;
    Some((user, share(one, user)?)).filter(|(_, share)| *share >= MIN_NAMED_SHARE)
}

/// The part of what the cgroup may use that a program used.
fn share(one: &SeenCgroup, user: &CgroupUser) -> Option<f64> {
    let all = one.cpus? * one.watched? as f64;
    // It is told in ticks, of which a part may be from before.
    (all > 0.0).then(|| (user.amount / all).min(1.0))
}

/// `; xz used 87 % of the limit`: behind what says that it is used up.
pub(crate) fn clause(one: &SeenCgroup) -> String {
    most(one).map_or_else(String::new, |(user, share)| {
        format!(
            "; {} used {} of the limit",
            say::name_or(&user.name, "a program"),
            percent(share)
        )
    })
}

/// Which programs used it.
fn evidence(one: &SeenCgroup) -> Option<Evidence> {
    let told = one.users.iter().take(MAX_LISTED).filter_map(|user| {
        let processes = match user.processes {
            0 | 1 => format!("pid {}", user.pid),
            more => several(more, "process"),
        };
        let name = say::name_or(&user.name, "a program");
        Some(format!("{name} ({processes}) {}", percent(share(one, user)?)))
    });
    let told: Vec<String> = told.collect();
    let text = format!(
        "used of the limit, children that have ended included: {}",
        told.join(", ")
    );
    (told.len() > 1).then(|| Evidence::new(text, "/proc/PID/stat of its processes"))
}

/// With who used it, and what to do about the one that used most.
pub(crate) fn told(finding: Finding, one: &SeenCgroup) -> Finding {
    let finding = finding.and_if(evidence(one));
    match remedy(one) {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    }
}

fn remedy(one: &SeenCgroup) -> Option<Remedy> {
    let (user, _) = most(one)?;
    let name = say::name_or(&user.name, "a program");
    Some(Remedy::changing(
        format!("give {name} a cgroup with a limit of its own, or run it at another time"),
        format!("{name} takes longer"),
    ))
}

#[cfg(test)]
mod tests {
    use super::{clause, evidence, remedy};
    use holdup_evidence::observed::{CgroupUser, Limited, Quote, SeenCgroup};

    fn cgroup(users: &[(&str, f64)]) -> SeenCgroup {
        let user = |(name, amount): &(&str, f64)| CgroupUser {
            name: (*name).to_owned(),
            pid: 7,
            processes: 1,
            amount: *amount,
        };
        SeenCgroup {
            cgroup: "/shop".to_owned(),
            what: Limited::CpuTime,
            used: 90.0,
            limit: 100.0,
            refused: None,
            cpus: Some(0.5),
            whole: None,
            hits: None,
            read_again: None,
            watched: Some(10_000_000_000),
            processes: Vec::new(),
            members: Vec::new(),
            users: users.iter().map(user).collect(),
            paused: false,
            quote: Quote::default(),
        }
    }

    #[test]
    fn who_used_most_is_named_where_it_is_in_the_way_of_others() {
        let shared = cgroup(&[("xz", 4e9), ("api", 5e8)]);
        assert_eq!(clause(&shared), "; xz used 80.0 % of the limit");
        assert_eq!(
            evidence(&shared).unwrap().text,
            "used of the limit, children that have ended included: xz (pid 7) 80.0 %, api (pid 7) 10.0 %"
        );
        assert!(remedy(&shared).is_some());
        for other in [
            // Nobody else is in it; nobody has half of it; how long it was watched is not known.
            cgroup(&[("api", 5e9)]),
            cgroup(&[("a", 2e9), ("b", 2e9)]),
            SeenCgroup {
                watched: None,
                ..shared
            },
        ] {
            assert_eq!(clause(&other), "");
            assert!(remedy(&other).is_none());
        }
    }
}
