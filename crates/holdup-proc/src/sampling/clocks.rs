//! What the kernel has counted for a thread: its time on CPUs, queued, and how often it gave one up.
//!
//! In: the texts of `schedstat`, `stat` and `status`. Out: numbers. A file that is not there costs what it reported: without
//! `schedstat` CPU time comes in ticks and queueing is not known, without `status` nobody counts blockings.

use holdup_evidence::{Ns, Scheduling};

/// Length of the tick in which `stat` counts, in nanoseconds: `USER_HZ` is 100 on every machine that holdup is for.
pub const TICK: Ns = 10_000_000;

/// The flag of the kernel's own threads (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What `schedstat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Turns {
    /// Time on a CPU, up to its last tick or switch.
    pub cpu: Ns,
    /// Time in queues, up to when it last got a CPU.
    pub queued: Ns,
    /// How often it got a CPU.
    pub count: u64,
}

/// Reads `schedstat`: `1036786 9142158 1`.
#[must_use]
pub fn turns(text: &str) -> Option<Turns> {
    let mut words = text.split_ascii_whitespace();
    let mut next = || words.next()?.parse().ok();
    Some(Turns {
        cpu: next()?,
        queued: next()?,
        count: next()?,
    })
}

/// What `stat` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stat {
    /// Its name. Hostile text.
    pub name: String,
    /// The kernel's letter for what it does.
    pub state: char,
    /// Its process's parent.
    pub parent: u32,
    /// CPU time in its own code, in ticks.
    pub user: u64,
    /// CPU time in the kernel, in ticks.
    pub kernel: u64,
    /// The same of the process's children that it has waited for, and of theirs.
    pub of_children: (u64, u64),
    /// When it began, in ticks since boot.
    pub began: u64,
    /// The CPU on which it runs, or ran last.
    pub cpu: u32,
    /// Whether it is the kernel's own.
    pub of_kernel: bool,
    /// Its session.
    pub session: u32,
    /// Threads of its process.
    pub threads: u64,
    /// How the kernel gives it turns.
    pub scheduling: Scheduling,
    /// Status it ended with, as `wait(2)` has it; 0 where that is nobody's business of ours.
    pub exit_code: i32,
}

/// Policies of `sched(7)`.
const FIFO: u64 = 1;
const ROUND_ROBIN: u64 = 2;
const IDLE: u64 = 5;
const DEADLINE: u64 = 6;

/// Reads `stat`. The name is in brackets and may hold any character.
#[must_use]
pub fn stat(text: &str) -> Option<Stat> {
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let words: Vec<&str> = after.split_ascii_whitespace().collect();
    // The first word here is the third of the manual page.
    let number = |field: usize| -> Option<u64> { words.get(field - 3)?.parse().ok() };
    let or_none = |field: usize| number(field).unwrap_or_default();
    let nice = words.get(19 - 3).and_then(|word| word.parse().ok());
    Some(Stat {
        session: u32::try_from(number(6)?).unwrap_or_default(),
        threads: or_none(20),
        cpu: u32::try_from(or_none(39)).unwrap_or_default(),
        scheduling: match or_none(41) {
            FIFO | ROUND_ROBIN | DEADLINE => Scheduling::RealTime,
            IDLE => Scheduling::Idle,
            _ => Scheduling::Fair {
                nice: nice.unwrap_or_default(),
            },
        },
        name,
        state: words.first()?.chars().next()?,
        parent: u32::try_from(number(4)?).ok()?,
        of_kernel: number(9)? & KERNEL_THREAD != 0,
        user: number(14)?,
        kernel: number(15)?,
        of_children: (number(16)?, number(17)?),
        began: number(22)?,
        exit_code: words
            .get(49)
            .and_then(|word| word.parse().ok())
            .unwrap_or_default(),
    })
}

/// How often a thread blocked, from `status`.
#[must_use]
pub fn blockings(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// What all that comes to at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Time on a CPU.
    pub cpu: Ns,
    /// Time in queues.
    pub queued: Ns,
    /// How often it got a CPU; changes whenever the thread has run.
    pub turns: u64,
    /// How often it blocked; `None` where that is not known.
    pub blockings: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::{Turns, blockings, stat, turns};
    use holdup_evidence::Scheduling;

    const STAT: &str = "16151 (a) S (b) S 16150 16140 15847 0 -1 4194304 98 0 0 0 7 9 2 3 20 0 1 0 8636100 6402048 419 \
                        18446744073709551615 94110118088704 94110118106633 140733660669072 0 0 0 0 6 0 1 0 0 17 0 0 0 0 0 0 \
                        94110118120720 94110118121984 94111175323648 140733660670447 140733660670455 140733660670455 \
                        140733660671977 256";

    #[test]
    fn a_stat_is_read_whatever_the_name() {
        let stat = stat(STAT).unwrap();
        assert_eq!(
            (stat.name.as_str(), stat.state, stat.parent),
            ("a) S (b", 'S', 16150)
        );
        assert_eq!((stat.user, stat.kernel, stat.of_children), (7, 9, (2, 3)));
        assert_eq!((stat.session, stat.threads, stat.cpu), (15_847, 1, 0));
        assert_eq!(stat.scheduling, Scheduling::Fair { nice: 0 });
        assert_eq!(
            (stat.began, stat.exit_code, stat.of_kernel),
            (8_636_100, 256, false)
        );
    }

    #[test]
    fn what_is_cut_off_is_nothing() {
        for end in 0..STAT.find("6402048").unwrap() - 9 {
            assert!(stat(&STAT[..end]).is_none(), "{}", &STAT[..end]);
        }
        assert_eq!(turns("1 2"), None);
        assert_eq!(turns("1 2 x"), None);
        let found = Turns {
            cpu: 1,
            queued: 2,
            count: 3,
        };
        assert_eq!(turns("1 2 3\n"), Some(found));
    }

    #[test]
    fn blockings_are_the_voluntary_ones() {
        let status = "Name:\tvoluntary_ctxt_switches:\t1\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(blockings(status), Some(12));
        assert_eq!(blockings("nonvoluntary_ctxt_switches:\t3\n"), None);
    }
}
