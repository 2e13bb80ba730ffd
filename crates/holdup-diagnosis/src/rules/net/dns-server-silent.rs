//! A name server that does not answer.

use crate::rules::name_chain::Chain;
use crate::rules::{Extend, MATTERS, Need, Rule, RuleId, Run, Waits, duration, percent, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Evidence, Finding, Remedy, Severity, Verdict};
use holdup_model::title::Title;
use std::collections::BTreeSet;

/// Wait from which a server counts as silent even where it was not seen how the wait ended, nanoseconds: just under
/// the resolver's default time-out of 5 s. A slow answer that travels round the world takes a tenth of it.
const MIN_SILENCE_NS: Ns = 4_500_000_000;

/// Time for which an event loop has questions outstanding on one socket, and gets no answer to any, from which the server counts as
/// silent, nanoseconds: twice as long as a slow answer takes that travels round the world.
const MIN_NONE_ANSWERED_NS: Ns = 1_000_000_000;

/// Where systemd-resolved listens; it passes questions on to the servers of each network.
const RESOLVED: &str = "127.0.0.53";

/// Name servers that the C library takes from /etc/resolv.conf: `MAXNS`.
const MAX_CONFIGURED: usize = 3;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::DnsServerSilent, check)
    .about("a name server does not answer")
    .needs(&[Need::SchedulerEvents, Need::WaitMemory])
    .causes(&[Cause::NetDns])
    .explains(&[RuleId::SleepPolling]);

fn server(wait: &AttributedWait) -> String {
    let server = match &wait.resource.detail.server {
        Some(server) => server.to_string(),
        None => wait.resource.name.clone(),
    };
    // An address of IPv6 may end like a port.
    let whole = |rest: &&str| !rest.contains(':') || rest.ends_with(']');
    let without = server.strip_suffix(":53").filter(whole);
    without.unwrap_or(&server).to_owned()
}

/// Whether these waits are of a process that asks more name servers than a resolver's configuration may have: it resolves names for others, goes
/// through the servers of each zone, and takes the first that answers.
fn asks_many(waits: &Waits<'_>, group: &Waits<'_>) -> bool {
    let pid = group.main().asker.name.pid;
    let own = waits.iter().filter(|wait| wait.asker.name.pid == pid);
    own.map(server).collect::<BTreeSet<String>>().len() > MAX_CONFIGURED
}

/// Whether a server is none of those that the resolver's configuration names, and asked by a process that serves others: a name server goes by its
/// own configuration, or through the servers of each zone.
fn is_its_own(run: &Run<'_>, group: &Waits<'_>) -> bool {
    let server = server(group.main());
    let known = run
        .facts
        .resolver
        .as_ref()
        .filter(|known| !known.servers.is_empty());
    let bare = server.trim_start_matches('[').trim_end_matches(']');
    let other = known.is_some_and(|known| !known.servers.iter().any(|one| one == bare));
    let pid = group.main().asker.name.pid;
    let serves = |wait: &AttributedWait| wait.asker.name.pid == pid && wait.cause == Cause::Idle;
    other && run.attributed.waits.iter().any(serves)
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    // A service of this machine has a path, and a rule of its own.
    let is_server = |wait: &AttributedWait| !wait.resource.name.starts_with('/');
    let unanswered = |wait: &AttributedWait| {
        wait.timed_out > 0 || wait.max >= MIN_SILENCE_NS || wait.outstanding >= MIN_NONE_ANSWERED_NS
    };
    let known = waits.iter().filter(|wait| is_server(wait) && unanswered(wait));
    let known: BTreeSet<String> = known.map(server).collect();
    // One that goes on for a server which has not answered others is for the same thing.
    let silent = waits
        .only(|wait| is_server(wait) && (unanswered(wait) || wait.open && known.contains(&server(wait))));
    let cost = silent.as_ref().map_or(0, Waits::cost);
    let Some(silent) = silent.filter(|silent| run.matters(silent.cost(), MATTERS)) else {
        let (all, longest) = (say::several(waits.count(), "wait"), duration(waits.longest().max));
        let share = percent(run.share(cost));
        return Verdict::Clear(format!(
            "{all} for names, at most {longest}; unanswered ones are {share} of the time"
        ));
    };
    let groups = run.worth(&silent, silent.split(server), MATTERS);
    let requests = run.attributed.requests.as_ref();
    let asked = requests.is_some_and(|requests| requests.open + requests.resting > 0);
    let severity = |group: &Waits<'_>| match (asks_many(waits, group) || is_its_own(run, group)) && !asked {
        true => Severity::Note,
        false => Severity::Warning,
    };
    Verdict::Fires(
        groups
            .iter()
            .map(|group| finding(run, group, severity(group)))
            .collect(),
    )
}

fn finding(run: &Run<'_>, group: &Waits<'_>, severity: Severity) -> Finding {
    let main = group.main();
    let server = server(main);
    let server = say::name_or(&server, "of this machine");
    let chain = Chain::of(run.facts, &main.resource);
    let finding = RULE.finding(
        severity,
        Title::from(format!("The name server {server} does not answer")).with(chain.clause()),
        group,
    );
    let timed_out = group.timed_out();
    let finding = finding.and_if(
        (timed_out > 0).then(|| Evidence::new(say::ran_out(timed_out, group.count()), "what poll returned")),
    );
    let finding = finding
        .and_if(names(group))
        .and_if(say::clock(run, group))
        .and_if(say::outstanding(group, "an answer"))
        .and_if(chain.evidence())
        .and_if(resolv_conf(run))
        .proved_if(timed_out > 0);
    let finding = chain.remedy().into_iter().fold(finding, Finding::remedy);
    let finding = match server {
        RESOLVED => finding.remedy(
            Remedy::safe(
                "check the servers of systemd-resolved, which is this local server, and repair them",
            )
            .with_command("resolvectl status"),
        ),
        _ if is_its_own(run, group) => finding.remedy(Remedy::safe(format!(
            "check the path to {server}, or take it out of the program's own configuration: /etc/resolv.conf does not name it"
        ))),
        _ => finding.remedy(Remedy::changing(
            format!("remove {server} from /etc/resolv.conf, put a working server before it, or repair it"),
            "programs that start afterwards use the other servers",
        )),
    };
    let finding = match by_address(group) {
        true => finding.remedy(Remedy::safe(
            "log addresses instead of names, and resolve them when the log is read (getHostAddress, \
             `resolveHosts=false`, `HostnameLookups Off`)",
        )),
        false => finding,
    };
    finding
        .remedy(Remedy::changing(
            "set options timeout:1 attempts:2 in /etc/resolv.conf until then, or use a local cache",
            "a slow but working server then also times out sooner",
        ))
        .remedy(Remedy::pointless(
            "a longer timeout or more threads: each lookup waits for the same server",
        ))
}

/// Whether a program asked for the names of addresses, as logs and access lists do.
fn by_address(group: &Waits<'_>) -> bool {
    const BY_ADDRESS: [&str; 4] = [
        "getnameinfo",
        "gethostbyaddr",
        "AddressImpl.getHostByAddr",
        "InetAddress.getHostFromNameService",
    ];
    let frames = group.iter().flat_map(|wait| &wait.asker.stack);
    let mut names = frames.filter_map(|frame| frame.symbol.as_deref());
    names.any(|name| BY_ADDRESS.iter().any(|function| name.contains(function)))
}

/// Which names were asked for, and how often.
fn names(group: &Waits<'_>) -> Option<Evidence> {
    /// Names that are listed before it is said how many more there are.
    const MAX_LISTED: usize = 3;
    let mut names: Vec<&str> = group
        .iter()
        .filter_map(|wait| wait.resource.detail.name.as_deref())
        .collect();
    names.sort_unstable();
    names.dedup();
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
    let asked = say::several(group.count(), "wait");
    (!names.is_empty()).then(|| {
        Evidence::new(
            format!("{asked} for an answer about {listed}{more}"),
            "the questions sent",
        )
    })
}

fn resolv_conf(run: &Run<'_>) -> Option<Evidence> {
    let resolver = run.facts.resolver.as_ref()?;
    let options = match resolver.options.is_empty() {
        true => "no options".to_owned(),
        false => format!("options {}", resolver.options.join(" ")),
    };
    let text = format!("asked in this order: {}; {options}", resolver.servers.join(", "));
    Some(Evidence::new(text, "/etc/resolv.conf"))
}
