//! Names that are looked up under every domain of the search list before they are looked up as they are.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::Cause;
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Names of one kind that are listed.
const MAX_LISTED: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::NameSearchListMultiplies, check)
    .about("the search list multiplies lookups")
    .causes(&[Cause::NetDns]);

fn name(wait: &AttributedWait) -> Option<&str> {
    wait.resource.detail.name.as_deref()
}

/// The name that a program wanted, if this one is it with a domain of the search list behind it.
fn stem<'a>(name: &'a str, search: &[String]) -> Option<&'a str> {
    search.iter().find_map(|domain| {
        let domain = domain.trim_matches('.').to_ascii_lowercase();
        let stem = name.strip_suffix(domain.as_str())?.strip_suffix('.')?;
        (!domain.is_empty() && !stem.is_empty()).then_some(stem)
    })
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let search: &[String] = run
        .facts
        .resolver
        .as_ref()
        .map_or(&[], |resolver| &resolver.search);
    // A wait that ran out is a server that is silent, and that would be so with any list.
    let answered = || waits.iter().filter(|wait| wait.timed_out == 0);
    let asked: BTreeSet<&str> = answered().filter_map(name).collect();
    // Only what was asked for by itself as well is known to have been wanted by itself.
    let vain = |wait: &AttributedWait| {
        let stem = name(wait).and_then(|name| stem(name, search));
        wait.timed_out == 0 && stem.is_some_and(|stem| asked.contains(stem))
    };
    let Some(vain) = waits.only(vain).filter(|vain| run.matters(vain.cost(), MATTERS)) else {
        return Verdict::Clear(match (asked.len(), search.len()) {
            (0, _) => "the requested names were not observed".to_owned(),
            (_, 0) => "there is no search list".to_owned(),
            (names, _) => format!(
                "of {}, almost none was for a name with a domain of the search list",
                say::several(names as u64, "name")
            ),
        });
    };
    Verdict::Fires(vec![finding(run, &vain, search)])
}

fn finding(run: &Run<'_>, vain: &Waits<'_>, search: &[String]) -> Finding {
    let mut tried: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for asked in vain.iter().filter_map(name) {
        if let Some(stem) = stem(asked, search) {
            tried.entry(stem).or_default().insert(asked);
        }
    }
    let (wanted, names) = tried
        .iter()
        .max_by_key(|(_, names)| names.len())
        .map(|(stem, names)| (*stem, names.iter().copied().collect::<Vec<_>>()))
        .unwrap_or_default();
    let who = say::who(&vain.main().asker.name);
    let others = match tried.len() {
        0 | 1 => String::new(),
        all => format!(" (and {} like it)", say::several(all as u64 - 1, "name")),
    };
    let title = format!(
        "{who} needs {wanted}{others} and first looks up {}, which do not exist: {}",
        say::several(names.len() as u64, "other name"),
        duration(vain.cost())
    );
    let more = names.len().saturating_sub(MAX_LISTED);
    let listed = names
        .iter()
        .take(MAX_LISTED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let ndots = run.facts.resolver.as_ref().and_then(|resolver| {
        resolver
            .options
            .iter()
            .find_map(|option| option.strip_prefix("ndots:"))
    });
    let text = format!(
        "search {}; names with fewer dots than {} are tried with each of these first",
        search.join(" "),
        ndots.unwrap_or("1 (ndots)")
    );
    RULE.finding(Severity::Warning, title, vain)
        .and(Evidence::new(format!("asked for, besides the name itself: {listed}{more}"), "the questions sent"))
        .and(Evidence::new(text, "/etc/resolv.conf"))
        .proved_if(true)
        .remedy(Remedy::safe(format!("configure the name with a trailing dot: {wanted}.")))
        .remedy(Remedy::changing(
            "options ndots:1 in /etc/resolv.conf (Kubernetes: dnsConfig of the pod), or a shorter search list",
            "short names that need later domains of the list are found later, or not at all",
        ))
        .remedy(Remedy::safe("use a local cache that also stores names that do not exist"))
}
