//! Logging to a daemon that does not read.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::{AttributedWait, Holder, HowKnown};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_waits(RuleId::LogSocketFull, check)
    .about("the log daemon does not read")
    .causes(&[Cause::IpcUnix]);

/// Sockets that log daemons read: the one of syslog(3), and systemd's.
const LOG_SOCKETS: &[&str] = &[
    "/dev/log",
    "/run/systemd/journal/dev-log",
    "/run/systemd/journal/socket",
    "/run/systemd/journal/stdout",
    "/run/systemd/journal/syslog",
];

/// Daemons that do nothing but log: each of their Unix sockets is for messages, wherever it is, as in a chroot.
const LOG_DAEMONS: &[&str] = &[
    "rsyslogd",
    "syslog-ng",
    "syslogd",
    "systemd-journal",
    "metalog",
    "socklog",
];

/// Whether it waits for room to log. A log daemon's own wait for messages is a receive.
fn logs(wait: &AttributedWait) -> bool {
    let sends = system_calls::is_named(wait.call.as_deref(), Kind::Sends | Kind::Writes);
    let to_daemon = || {
        let first = wait.holders.first();
        first.is_some_and(|holder| {
            holder.how_known == HowKnown::SocketPeer && LOG_DAEMONS.contains(&holder.name.process.as_str())
        })
    };
    sends && (LOG_SOCKETS.contains(&wait.resource.name.as_str()) || to_daemon())
}

/// What keeps a daemon from its socket, where that is no rest.
fn kept(holder: &Holder) -> Option<Cause> {
    holder
        .doing
        .filter(|doing| !matches!(doing, Cause::Idle | Cause::NetAccept | Cause::Unknown))
}

fn check(run: &Run<'_>, waits: &Waits<'_>) -> Verdict {
    let logging = waits.only(logs);
    let Some(logging) = logging.filter(|logging| run.matters(logging.cost(), MATTERS)) else {
        return Verdict::Clear(format!(
            "{} of the elapsed time in Unix sockets, and not for room in that of a log daemon",
            percent(run.share(waits.cost()))
        ));
    };
    let groups = run.worth(
        &logging,
        logging.split(|wait| wait.resource.name.clone()),
        MATTERS,
    );
    Verdict::Fires(groups.iter().map(finding).collect())
}

fn finding(group: &Waits<'_>) -> Finding {
    let main = group.main();
    let who = say::who(&main.asker.name);
    let socket = &main.resource.name;
    let holders = group.holders();
    let daemon = match holders.first() {
        Some(holder) => say::who_with_pid(&holder.name),
        None => "the log daemon".to_owned(),
    };
    let kept = holders.first().and_then(kept);
    let title = format!(
        "{who} is blocked in logging: {daemon} does not read {socket}{}",
        kept.map_or_else(String::new, |cause| format!(", and is itself {}", cause.phrase()))
    );
    let finding = RULE
        .finding(Severity::Warning, title, group)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .and_if(say::kernel_top(group))
        .proved_if(!holders.is_empty());
    let finding = match kept {
        Some(Cause::NetSend | Cause::NetReceive | Cause::NetConnect) => finding
            .remedy(
                Remedy::safe(format!(
                    "look at the server to which {daemon} forwards: it does not read, or does not answer"
                ))
                .with_command("ss -tnpo"),
            )
            .remedy(Remedy::changing(
                "give the action that forwards a queue of its own on disk, or let a full queue discard messages",
                "discarded messages are lost",
            )),
        _ => finding,
    };
    finding
        .remedy(
            Remedy::safe("check the log daemon: it may be stopped, or waiting for a full or slow disk")
                .with_command(format!("ss -xlp src {}", say::quoted(socket))),
        )
        .remedy(Remedy::safe(
            "log less, or log from a separate thread, so that work does not wait for the log",
        ))
}
