//! From a prepared child to attributed evidence: the loop that stands beside CMD.

use crate::commands::doctor::{self, Trial};
use crate::commands::run::Collected;
use crate::signals::{Control, Signals};
use crate::subject::Subject;
use anyhow::bail;
use holdup_analysis::Attributed;
use holdup_proc::{Root, cgroup, clocks, facts, mountinfo};
use nix::poll::PollTimeout;

/// How long a loop without news sleeps, milliseconds.
const PERIOD_MS: u16 = 20;

/// Runs CMD to its end, or until the person wants no more.
///
/// # Errors
/// When CMD did not start, or nothing can be observed here.
pub(crate) fn run(subject: &mut Subject, signals: &mut Signals) -> anyhow::Result<Collected> {
    if let Some(why) = doctor::lacking() {
        bail!(why);
    }
    let root = Root::system();
    let mut problems = Vec::new();
    let mounts = mountinfo::read(&root, &mut problems);
    let mut cgroup = cgroup::Watch::new(&root, &mounts);
    subject.go();
    let mut ended = None;
    while ended.is_none() && signals.serve(subject) == Control::Continue {
        signals.wait(subject, PollTimeout::from(PERIOD_MS));
        ended = subject.try_wait()?;
        cgroup.look(subject.pid());
    }
    let question = facts::Question {
        cgroup: Some(cgroup),
        ..facts::Question::default()
    };
    let facts = facts::collect(&root, &question, &mut problems);
    Ok(Collected {
        attributed: Attributed::default(),
        started: clocks::monotonic(),
        facts,
        ended,
        problems,
    })
}

/// Tries what tracing needs, for `holdup doctor`.
pub(crate) fn try_out() -> Vec<Trial> {
    Vec::new()
}
