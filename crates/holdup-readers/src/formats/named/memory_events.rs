//! `memory.events` of a cgroup.
//!
//! Out: how often processes of it were killed at its limit, and how often they were held there. Source of the names: the kernel's
//! documentation of cgroup v2, "memory.events".

use super::{Names, Reader, has};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::new(
    "memory-events",
    Family::Host,
    |head| has(head, &["low", "high", "max", "oom", "oom_kill"], 4),
    Shape::Lines(|| Reader::once("low", judge)),
)
.about("memory.events of a cgroup");

fn judge(names: &Names) -> Vec<Statement> {
    let (killed, limit, high) = (names.some("oom_kill"), names.some("max"), names.some("high"));
    let held = |times: f64, of: &str| format!("its processes were held at {of} {times:.0} times");
    if let Some(killed) = killed {
        let limit = limit.map_or_else(String::new, |limit| {
            format!("; {}", held(limit, "the limit (memory.max)"))
        });
        let text =
            format!("the cgroup ran out of memory: {killed:.0} processes were killed (oom_kill){limit}");
        return vec![names.say(StatementKind::Ended, "oom_kill", text)];
    }
    let (name, text) = match (limit, high) {
        (Some(limit), _) => ("max", held(limit, "the limit (memory.max)")),
        (None, Some(high)) => ("high", held(high, "memory.high")),
        (None, None) => {
            let text = "the cgroup has never reached a limit of its memory".to_owned();
            return vec![names.say(StatementKind::WithinNorm, "max", text)];
        }
    };
    vec![names.say(
        StatementKind::Stalled,
        name,
        format!("the cgroup reached a limit of its memory: {text}"),
    )]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn kills_come_before_holds_and_none_is_healthy() {
        let of = |high, max, kills| {
            let text = format!("low 0\nhigh {high}\nmax {max}\noom {kills}\noom_kill {kills}\n");
            read_text("m", text.as_bytes()).observed.statements.remove(0)
        };
        let killed = of(0, 482_113, 309);
        assert_eq!(killed.kind, StatementKind::Ended);
        assert_eq!(
            killed.text,
            "the cgroup ran out of memory: 309 processes were killed (oom_kill); its processes were held at the limit (memory.max) \
             482113 times"
        );
        assert_eq!(of(7, 0, 0).kind, StatementKind::Stalled);
        assert_eq!(of(0, 0, 0).kind, StatementKind::WithinNorm);
    }
}
