//! A name service of this machine (a cache, a directory's daemon) that is slow or silent.

use crate::rules::{Extend, Generality, MATTERS, Rule, RuleId, Run, Waits, duration, say};
use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::AttributedWait;
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// Wait from which a local service counts as silent even where it was not seen how the wait ended, nanoseconds: just
/// under the 5 s after which the C library gives up on its cache.
const MIN_SILENCE_NS: Ns = 4_500_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::NameServiceSlow, check)
    .about("a name service on this machine is slow or silent")
    .causes(&[Cause::NetDns])
    .generality(Generality::General)
    .intermediate();

/// What can be done about a service that is slow.
enum Ask {
    /// Ask it what it is doing.
    Look(&'static str),
    /// It tells nobody; but it can be started anew.
    Restart(&'static str),
}

/// Daemons behind these sockets, and how each is asked what it is doing.
const SERVICES: [(&str, &str, Ask); 7] = [
    ("nscd/", "nscd", Ask::Restart("systemctl restart nscd")),
    ("nslcd/", "nslcd", Ask::Look("systemctl status nslcd")),
    ("lib/sss/", "SSSD", Ask::Look("sssctl domain-status")),
    (
        "systemd/resolve/",
        "systemd-resolved",
        Ask::Look("resolvectl status"),
    ),
    (
        "systemd/userdb/",
        "systemd-userdbd",
        Ask::Look("userdbctl services"),
    ),
    (
        "avahi-daemon/",
        "avahi-daemon",
        Ask::Look("systemctl status avahi-daemon"),
    ),
    ("winbindd/", "winbind", Ask::Look("wbinfo --ping-dc")),
];

/// Local services are told apart from name servers by their address: a path.
pub(super) fn is_local(wait: &AttributedWait) -> bool {
    wait.resource.name.starts_with('/')
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let local = waits.only(is_local);
    let Some(local) = local.filter(|local| run.matters(local.cost(), MATTERS)) else {
        let all = say::several(waits.count(), "wait");
        return Verdict::Clear(format!(
            "{all} for names, almost none of it for a service of this machine"
        ));
    };
    let groups = run.worth(&local, local.split(|wait| wait.resource.name.clone()), MATTERS);
    Verdict::Fires(groups.iter().map(|group| finding(run, group)).collect())
}

fn finding(run: &Run<'_>, group: &Waits<'_>) -> Finding {
    let main = group.main();
    let socket = &main.resource.name;
    let service = SERVICES.iter().find(|(path, ..)| socket.contains(path));
    let holders = group.holders();
    let who = match (holders.first(), service) {
        (Some(holder), _) => format!("{} at {socket}", say::who(&holder.name)),
        (None, Some((_, name, _))) => format!("{name} at {socket}"),
        (None, None) => socket.clone(),
    };
    let longest = group.longest().max;
    let silent = group.timed_out() > 0 || longest >= MIN_SILENCE_NS;
    let title = match silent {
        true => format!("{who} does not answer name queries"),
        false => format!("{who} takes {} to answer a name query", duration(longest)),
    };
    let severity = match group.handed_on() {
        true => Severity::Note,
        false => Severity::Warning,
    };
    let finding = RULE
        .finding(severity, title, group)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .and_if(say::clock(run, group))
        .proved_if(group.timed_out() > 0 || !holders.is_empty());
    let look = Remedy::safe(
        "find out what the service waits for: a directory or a name server behind it, or a lock",
    );
    let look = match service {
        Some((.., Ask::Look(command))) => look.with_command(*command),
        _ => look,
    };
    let finding = finding.remedy(look);
    let finding = match service {
        Some((_, name, Ask::Restart(command))) => finding.remedy(
            Remedy::changing(
                format!("restart {name}: every program on this machine asks it first"),
                "its cache is lost",
            )
            .with_command(*command),
        ),
        _ => finding,
    };
    finding.remedy(Remedy::pointless(
        "another name server in /etc/resolv.conf: this program has not asked one yet",
    ))
}
