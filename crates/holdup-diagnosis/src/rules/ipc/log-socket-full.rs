//! Logging to a daemon that does not read.

use crate::rules::{Extend, MATTERS, Rule, RuleId, Run, Waits, percent, say};
use holdup_evidence::Cause;
use holdup_knowledge::system_calls;
use holdup_knowledge::system_calls::Kind;
use holdup_model::attributed::AttributedWait;
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

/// Whether it waits for room to log. A log daemon's own wait for messages is a receive.
fn logs(wait: &AttributedWait) -> bool {
    let sends = system_calls::is_named(wait.call.as_deref(), Kind::Sends | Kind::Writes);
    sends && LOG_SOCKETS.contains(&wait.resource.name.as_str())
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
    let title = format!("{who} is blocked in logging: {daemon} does not read {socket}");
    RULE.finding(Severity::Warning, title, group)
        .and_if(holders.first().map(say::meanwhile))
        .and_if(say::way(group))
        .and_if(say::kernel_top(group))
        .proved_if(!holders.is_empty())
        .remedy(
            Remedy::safe("check the log daemon: it may be stopped, or waiting for a full or slow disk")
                .with_command(format!("ss -xlp src {}", say::quoted(socket))),
        )
        .remedy(Remedy::safe(
            "log less, or log from a separate thread, so that work does not wait for the log",
        ))
}
