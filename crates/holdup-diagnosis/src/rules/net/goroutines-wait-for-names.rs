//! Goroutines wait for what Go's own resolver asks a name server, and no answer comes.
//!
//! The problem: the resolver asks in goroutines of its own, in which no function of the program stands, and a name server may have any port.
//! The choice: the functions of the resolver say that a name is asked for; who started such a goroutine, directly or through others of the
//! library, is who asked.

use crate::rules::name_chain::Chain;
use crate::rules::{Extend, Rule, RuleId, Run, say, tasks};
use holdup_evidence::{Cause, TaskRuntime};
use holdup_model::attributed::{Peer, Task};
use holdup_model::finding::{Confidence, Evidence, Finding, Remedy, Severity, Verdict};
use std::collections::BTreeMap;

/// Goroutines that are followed from one to who started it, at most: from a connection to its resolver there are three.
const MAX_STARTERS: usize = 8;

/// What the goroutines wait for, as it follows "wait".
const WHAT: &str = "for a name server to answer";

/// The rule.
pub(crate) const RULE: Rule = Rule::of_attached(RuleId::GoroutinesWaitForNames, check)
    .about("goroutines wait for a name server that does not answer")
    .causes(&[Cause::NetDns])
    .from(0.0)
    .explains(&[RuleId::TasksWaitForPeer, RuleId::WaitUnexplained]);

fn check(run: &Run<'_>) -> Verdict {
    tasks::judge(run, WHAT, asks_for_name, finding)
}

/// Whether a goroutine of the resolver waits for an answer.
fn asks_for_name(task: &Task) -> bool {
    task.runtime == TaskRuntime::Go && task.cause == Cause::NetDns
}

/// Who has a goroutine of the resolver ask: itself, if the program's code called it, or who started it.
fn on_behalf<'a>(run: &'a Run<'_>, asks: &'a Task) -> Option<&'a Task> {
    let by_id = |id: u64| {
        let mut all = run.attributed.tasks.iter();
        all.find(|task| task.pid == asks.pid && task.runtime == asks.runtime && task.id == id)
    };
    let mut now = asks;
    for _ in 0..MAX_STARTERS {
        if now.place.is_some() {
            return Some(now);
        }
        now = by_id(now.started_by?)?;
    }
    None
}

/// The servers that are asked, each once.
fn servers(asking: &[&Task]) -> Vec<String> {
    tasks::places(asking, |task| match &task.resource.detail.peer {
        Some(Peer::Address(address)) => address.to_string(),
        _ => "a name server".to_owned(),
    })
}

fn finding(run: &Run<'_>, asking: &[&Task]) -> Finding {
    // Two ask for one name: for addresses of either kind. Who waits for both is one.
    let mut waiting: BTreeMap<u64, Task> = BTreeMap::new();
    for asks in asking {
        let Some(task) = on_behalf(run, asks) else {
            continue;
        };
        let known = waiting.entry(task.id).or_insert_with(|| Task {
            stood: 0,
            ..task.clone()
        });
        known.stood = known.stood.max(asks.stood);
    }
    let placed: Vec<&Task> = waiting.values().collect();
    let shown = if placed.is_empty() { asking } else { &placed };
    let servers = servers(asking);
    let what = match servers.as_slice() {
        [one] => format!("for the name server {one}, which does not answer,"),
        _ => "for name servers that do not answer,".to_owned(),
    };
    let resource = &asking[0].resource;
    let chain = Chain::of(run.facts, resource);
    let mut finding = tasks::finding(run, RULE.id, Severity::Warning, shown, [&what, &chain.clause()])
        .confidence(Confidence::Strong)
        .and(Evidence::new(
            format!(
                "{} of Go's resolver asked for names and had no answer: {}",
                say::several(asking.len() as u64, tasks::name(asking[0])),
                tasks::say_places(&servers)
            ),
            "the stacks of all tasks, descriptors, and the kernel's table of sockets",
        ))
        .and_if(chain.evidence());
    finding.cause = Cause::NetDns;
    finding.resource = resource.clone();
    let finding = chain.remedy().into_iter().fold(finding, Finding::remedy);
    finding
        .remedy(Remedy::safe(
            "give each request a time limit that is shorter than the resolver's (5 s for each attempt)",
        ))
        .remedy(Remedy::pointless(
            "a longer time limit or more goroutines: each waits for the same server",
        ))
}
