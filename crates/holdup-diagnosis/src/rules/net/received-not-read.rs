//! A program does not read what came for it.

use crate::rules::connections::other_end;
use crate::rules::sockets::EACH;
use crate::rules::{Rule, RuleId, Run, duration, say, sockets};
use holdup_evidence::observed::{SeenConnection, TcpState};
use holdup_evidence::{Cause, Ns, Observed};
use holdup_model::finding::{Confidence, Finding, Remedy, Severity, Verdict};

/// Bytes unread from which they are no single message on its way to a reader: a few of the kernel's own first windows.
const MIN_UNREAD_BYTES: u64 = 65_536;

/// Nanoseconds since the last of them came, from which nobody can be said to be reading.
const MIN_NS: Ns = 1_000_000_000;

/// The rule.
pub(crate) const RULE: Rule = Rule::of_artefacts(RuleId::ReceivedNotRead, check)
    .about("a program does not read its received data")
    .causes(&[Cause::NetSend])
    .intermediate();

fn check(_run: &Run<'_>, observed: &Observed) -> Verdict {
    // Where the sender is in the same list it is the one that waits, and is spoken of.
    let mut full: Vec<&SeenConnection> = sockets::connections(observed)
        .filter(|(table, one)| {
            let sender = other_end(table, one).is_some_and(|sender| sender.unsent > 0);
            one.state == Some(TcpState::Established) && one.unread >= MIN_UNREAD_BYTES && !sender
        })
        .map(|(_, one)| one)
        .collect();
    full.sort_by_key(|one| std::cmp::Reverse((is_old(one), one.unread)));
    if full.is_empty() {
        return match sockets::total(observed) {
            0 => Verdict::CannotTell("how much unread data each connection has: `ss -tnpi`".to_owned()),
            all => {
                let most = sockets::connections(observed).map(|(_, one)| one.unread).max();
                Verdict::Clear(format!(
                    "at most {} are unread at one of {}, or their sender is in the list",
                    say::bytes(most.unwrap_or(0)),
                    say::several(all, "socket")
                ))
            }
        };
    }
    let findings = full.iter().take(EACH);
    Verdict::Fires(findings.map(|one| finding(observed, one)).collect())
}

fn is_old(one: &SeenConnection) -> bool {
    one.silent.is_some_and(|silent| silent >= MIN_NS)
}

fn finding(observed: &Observed, one: &SeenConnection) -> Finding {
    let who = match &one.process {
        Some(process) => process.clone(),
        None => format!("The program at {}", one.local),
    };
    let old = is_old(one);
    let bytes = say::bytes(one.unread);
    let title = match old {
        true => format!("{who} does not read the data from {}", one.peer),
        false => format!("{who} has not read {bytes} from {} yet", one.peer),
    };
    let since = match (old, one.silent) {
        (true, Some(silent)) => format!("; the last of them came {} before", duration(silent)),
        _ => "; a second list or `ss -tnpi` shows whether it reads at all".to_owned(),
    };
    let text = format!("{bytes} are unread at {} (Recv-Q){since}", one.local);
    Finding::without_duration(
        RULE.id.id(),
        if old { Severity::Warning } else { Severity::Note },
        title,
        Cause::NetSend,
        sockets::evidence(observed, text, &one.quote),
    )
    .about(
        sockets::socket(&one.local),
        sockets::asker(one.process.as_deref()),
    )
    .confidence(if old {
        Confidence::Strong
    } else {
        Confidence::Suspect
    })
    .remedy(
        Remedy::safe("find out what the program does instead of reading: its stacks, or `holdup attach`")
            .with_command("ss -tnpi"),
    )
    .remedy(Remedy::pointless(
        "larger receive buffers: they only take longer to fill",
    ))
}
