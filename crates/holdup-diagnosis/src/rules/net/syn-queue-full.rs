//! Requests for connections come faster than a listener's queue takes them.

use crate::rules::{Rule, RuleId, Run, fires, logs};
use holdup_evidence::observed::KernelEvent;
use holdup_evidence::{Cause, Observed};
use holdup_model::finding::{Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::SynQueueFull, check)
    .about("connection requests overflow the queue of a listener")
    .causes(&[Cause::NetConnect]);

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    let lines = logs::happenings(observed, |event| match event {
        KernelEvent::SynFlood { port } => Some(*port),
        _ => None,
    });
    let Some((first, port)) = lines.first() else {
        return logs::kernel_silent(observed, "a flood of connection requests");
    };
    let mut ports: Vec<u16> = lines.iter().map(|(_, port)| *port).collect();
    ports.sort_unstable();
    ports.dedup();
    let title = match ports.len() {
        1 => format!("More connection requests came to port {port} than its queue holds"),
        count => format!(
            "More connection requests came to {count} ports than their queues hold, port {port} first"
        ),
    };
    let finding = Finding::without_duration(
        RULE.id.id(),
        Severity::Warning,
        title,
        Cause::NetConnect,
        logs::quote(observed, first),
    )
    .and(logs::about(
        observed,
        first,
        format!(
            "the kernel reported it {}; it reports it once for each listener",
            logs::times(lines.len())
        ),
    ));
    fires(
        finding
            .remedy(
                Remedy::safe("check whether it is an attack: list the senders, and the limit of the queue")
                    .with_command(format!("ss -ltn 'sport = :{port}'; ss -tn state syn-recv 'sport = :{port}' | head")),
            )
            .remedy(Remedy::changing(
                "if they are clients: raise the listener's backlog, net.core.somaxconn and net.ipv4.tcp_max_syn_backlog",
                "a longer queue lets clients wait longer for a service that does not keep up",
            )),
    )
}
