//! A server has read what its clients sent, is idle, and does not answer.

use crate::rules::{Extend, Generality, Rule, RuleId, Run, duration, fires, percent, say};
use holdup_evidence::{Cause, Ns};
use holdup_knowledge::redis;
use holdup_knowledge::system_calls::{self, Kind};
use holdup_model::attributed::{AttributedWait, NamedRequests};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::ClientsWithoutAnswer, check)
    .about("an idle server has not answered its clients")
    .causes(&[Cause::Idle])
    .from(0.0)
    .generality(Generality::Consequence);

/// The part of the time of a server's threads from which it is idle: what is left may be its housekeeping.
const IDLE_SHARE: f64 = 0.95;

/// Time without an answer from which it is no matter of a moment, nanoseconds.
const MIN_NS: Ns = 2_000_000_000;

/// Requests that were answered meanwhile from which a server answers what it is sent: brokers and collectors of figures take words that
/// need no answer.
const MIN_ANSWERED: u64 = 10;

/// The part of the answered requests that must be named to say what a server answers: nine of ten.
const MOST_NAMED: (u64, u64) = (9, 10);

/// Commands that a sentence names.
const MAX_COMMANDS: usize = 3;

fn check(run: &Run<'_>) -> Verdict {
    let found = &run.attributed.unanswered;
    if found.clients == 0 || found.longest < MIN_NS {
        return Verdict::Clear(format!(
            "{} had the last word for {} or more, since before observation, on connections on which they had been answered",
            say::several(found.clients, "client"),
            duration(MIN_NS)
        ));
    }
    let of_server = |wait: &&AttributedWait| wait.asker.name.pid == found.by.pid;
    let all = || run.attributed.waits.iter().filter(of_server);
    let time = |waits: &mut dyn Iterator<Item = &AttributedWait>| waits.map(|wait| wait.ns).sum::<Ns>();
    let rests = |wait: &&AttributedWait| matches!(wait.cause, Cause::Idle | Cause::TimerSleep);
    let whole = time(&mut all()).max(1);
    let share = time(&mut all().filter(rests)) as f64 / whole as f64;
    let who = say::name_or(&found.by.process, "the server");
    if share < IDLE_SHARE {
        return Verdict::Clear(format!("{who} was idle for {} of its time", percent(share)));
    }
    // Of a machine, requests are those of all servers.
    let answered = run.attributed.requests.as_ref().filter(|_| !run.machine);
    if answered.is_none_or(|requests| requests.count < MIN_ANSWERED) {
        return Verdict::CannotTell(format!(
            "whether {who} answers what it is sent: it was not seen to answer {MIN_ANSWERED} requests"
        ));
    }
    let later = run.attributed.requests.as_ref().map(|one| one.at_last.count);
    if later.is_some_and(|count| count > 0) {
        return Verdict::CannotTell(format!(
            "whether {} of {who} wait by design, as others whose requests were answered when something else came",
            say::several(found.clients, "client")
        ));
    }
    fires(finding(run, who, share))
}

fn finding(run: &Run<'_>, who: &str, share: f64) -> Finding {
    let found = &run.attributed.unanswered;
    let clients = say::several(found.clients, "client");
    let has = if found.clients == 1 { "has" } else { "have" };
    let reads = only_reads(run, who);
    let keeps = match (&reads, redis::is_server(who)) {
        (Some(commands), _) => format!(
            "it answers only reads meanwhile ({commands}): writes seem paused (CLIENT PAUSE, FAILOVER), or these clients wait in a \
             blocking command"
        ),
        (None, true) => "they are paused (CLIENT PAUSE), or wait in a blocking command".to_owned(),
        (None, false) => "it keeps them waiting itself; whether by design is not known".to_owned(),
    };
    let title = format!(
        "{clients} of {who} {has} had no answer for up to {}, although {who} is idle: {keeps}",
        duration(found.longest)
    );
    let before = Evidence::new(
        format!(
            "{who} had answered on the same connections before; their last word was read before observation began"
        ),
        "the kernel's times of the last data in each direction",
    );
    let idle = Evidence::new(
        format!("{who} waited for work for {} of its time", percent(share)),
        say::SCHEDULER,
    );
    let others = run.attributed.requests.as_ref().filter(|one| one.count > 0);
    let others = others.map(|one| {
        let text = format!(
            "meanwhile it answered {}, half of them within {}",
            say::several(one.count, "other request"),
            duration(one.p50)
        );
        Evidence::new(text, "sock_recv_length, sock_send_length")
    });
    let main = run
        .attributed
        .waits
        .iter()
        .filter(|wait| wait.asker.name.pid == found.by.pid && wait.cause == Cause::Idle)
        .max_by_key(|wait| (polls(wait), wait.ns));
    let finding = Finding::without_duration(RULE.id.id(), Severity::Note, title, Cause::Idle, before)
        .and(idle)
        .and_if(others)
        .confidence(Confidence::Suspect);
    let finding = match redis::is_server(who) {
        true => finding
            .remedy(
                Remedy::safe("list the clients that it holds back (flag b), each with its last command")
                    .with_command("redis-cli client list"),
            )
            .remedy(
                Remedy::changing(
                    "end the pause, if writes are paused",
                    "whoever paused them, such as a switch-over, may still need that",
                )
                .with_command("redis-cli client unpause"),
            ),
        false => finding,
    };
    let finding = finding
        .remedy(Remedy::safe(
            "ask the server which clients it holds back, and why: Redis `CLIENT LIST` (flag b, and `CLIENT UNPAUSE` if writes are \
             paused), RabbitMQ `rabbitmqctl list_connections` (blocked by an alarm), PostgreSQL pg_stat_activity",
        ))
        .remedy(Remedy::safe(
            "nothing, if these clients wait for events: a subscription, a blocking pop, a long poll",
        ))
        .remedy(Remedy::pointless(
            "more CPUs, workers or a faster disk: the server is idle",
        ));
    match main {
        Some(wait) => finding.about(wait.resource.clone(), wait.asker.clone()),
        None => finding,
    }
}

/// The commands that a server of Redis's protocol answered meanwhile, where none of them writes.
fn only_reads(run: &Run<'_>, who: &str) -> Option<String> {
    let requests = run
        .attributed
        .requests
        .as_ref()
        .filter(|_| redis::is_server(who))?;
    let answered: Vec<&NamedRequests> = requests.named.iter().filter(|one| one.answered > 0).collect();
    let known: u64 = answered.iter().map(|one| one.answered).sum();
    // What came without a name could be anything.
    let most = known.saturating_mul(MOST_NAMED.1) >= requests.count.saturating_mul(MOST_NAMED.0);
    let reads = answered.iter().all(|one| redis::only_reads(&one.line));
    let mut names: Vec<&str> = answered.iter().map(|one| one.line.as_str()).collect();
    names.truncate(MAX_COMMANDS);
    (most && reads && !names.is_empty()).then(|| names.join(", "))
}

fn polls(wait: &AttributedWait) -> bool {
    system_calls::is_named(wait.call.as_deref(), Kind::Polls | Kind::WaitsForEpoll)
}
