//! How much of the observed time threads spent in waits.

use super::Waits;
use holdup_evidence::Ns;
use std::collections::BTreeMap;

/// The part of the time that each of the threads spent in these waits, at least.
pub(super) fn least(waits: &Waits<'_>, wall: Ns) -> f64 {
    let mut each: BTreeMap<(u32, u32), Ns> = BTreeMap::new();
    for wait in waits.iter() {
        let name = &wait.asker.name;
        let ns = each.entry((name.pid, name.tid)).or_default();
        *ns = ns.saturating_add(wait.ns);
    }
    let least = each.values().min().copied().unwrap_or(0);
    (least as f64 / wall.max(1) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::least;
    use crate::rules::Run;
    use holdup_evidence::facts::SystemFacts;
    use holdup_model::attributed::{Attributed, AttributedWait};

    fn share(waits: &[(u32, u64)], wall: u64) -> f64 {
        let wait = |(tid, ns): &(u32, u64)| {
            let mut wait = AttributedWait {
                ns: *ns,
                count: 1,
                ..crate::rules::tests::wait()
            };
            wait.asker.name.tid = *tid;
            wait
        };
        let attributed = Attributed {
            waits: waits.iter().map(wait).collect(),
            ..Attributed::default()
        };
        let facts = SystemFacts::default();
        let run = Run::new(&attributed, &facts);
        least(&run.waits(|_| true).unwrap(), wall)
    }

    #[test]
    fn it_is_the_share_of_the_thread_that_waited_least() {
        assert!((share(&[(1, 95), (2, 99)], 100) - 0.95).abs() < 1e-9);
    }

    #[test]
    fn waits_of_one_thread_count_together() {
        assert!((share(&[(1, 50), (1, 45), (2, 99)], 100) - 0.95).abs() < 1e-9);
    }

    #[test]
    fn it_is_never_more_than_all() {
        assert!((share(&[(1, 300)], 100) - 1.0).abs() < 1e-9);
        assert!((share(&[(1, 300)], 0) - 1.0).abs() < 1e-9);
    }
}
