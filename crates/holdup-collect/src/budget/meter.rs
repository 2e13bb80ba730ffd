//! How much CPU time the programs in the kernel take, every run of theirs, by moments in which the kernel counts them.
//!
//! Counting itself costs each run two readings of a clock, so it is on for a moment of each [`BETWEEN`], and what it shows stands for the time until the
//! next. Switching it on needs a right that who reads hostile data does not have: a child that reads nothing has it. In: a tracer. Out: CPU
//! time so far.

use holdup_bpf::{Runs, Tracer, count_runs};
use holdup_detached::{Answer, Capabilities, Confinement, Detached};
use holdup_evidence::Ns;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// From one moment to the next.
const BETWEEN: Ns = 200_000_000;

/// A moment is at least so long: shorter ones show few runs.
const MOMENT: Ns = 8_000_000;

/// The first moments come at once, so that the first judgement has something to go by.
const FIRST: Ns = 10_000_000;

/// How long the child may live: it ends with its parent's channel.
const LIFETIME_SECONDS: u32 = 7 * 24 * 3_600;

/// The child that switches counting on.
#[derive(Debug)]
struct Switch(Detached<(), bool>);

impl Switch {
    fn start() -> Option<Switch> {
        let confinement = Confinement {
            name: c"holdup-count",
            capabilities: Capabilities::NONE,
            cpu_time: None,
            memory_bytes: 64 << 20,
            files: 16,
        };
        let begin = || {
            |(): (), _: Vec<OwnedFd>| match count_runs() {
                Ok(counting) => Answer {
                    value: true,
                    descriptors: vec![counting],
                },
                Err(_) => Answer::from(false),
            }
        };
        Detached::start_with_rights(&confinement, LIFETIME_SECONDS, begin)
            .ok()
            .map(Switch)
    }
}

/// What goes on.
#[derive(Debug)]
enum Counting {
    /// Not now; the next moment is due then.
    Off { due: Ns },
    /// The child has been asked to switch it on.
    Asked,
    /// Since then, with the runs as of then; as long as the descriptor is open.
    On {
        since: Ns,
        runs: Runs,
        _counting: OwnedFd,
    },
    /// It can't be had here.
    Never,
}

/// Of one observation.
#[derive(Debug)]
pub(crate) struct Meter {
    switch: Option<Switch>,
    counting: Counting,
    /// CPU time of the programs until then.
    taken: Ns,
    until: Ns,
    /// As the last moment has shown it: CPU time for each nanosecond.
    rate: f64,
    counted: bool,
}

impl Meter {
    /// Starts the child; call it while this process has all its rights.
    pub(crate) fn begin(now: Ns) -> Meter {
        let switch = Switch::start();
        Meter {
            counting: match switch {
                Some(_) => Counting::Off { due: now + FIRST },
                None => Counting::Never,
            },
            switch,
            taken: 0,
            until: now,
            rate: 0.0,
            counted: false,
        }
    }

    /// Whether the kernel has counted.
    pub(crate) fn has_counted(&self) -> bool {
        self.counted
    }

    /// CPU time of the programs so far; `estimate` is what they say of themselves, for where the kernel does not count.
    pub(crate) fn taken(&self, estimate: Ns, now: Ns) -> Ns {
        match self.counted {
            true => self.until(now).max(estimate),
            false => estimate,
        }
    }

    /// What was taken until `now`, at the rate of the last moment since then.
    fn until(&self, now: Ns) -> Ns {
        let since = now.saturating_sub(self.until) as f64 * self.rate;
        self.taken.saturating_add(since as Ns)
    }

    /// Goes on with what is due.
    pub(crate) fn turn(&mut self, tracer: &Tracer, now: Ns) {
        let next = match &mut self.counting {
            Counting::Off { due } if now >= *due => self.ask(),
            Counting::Asked => self.take_answer(tracer, now),
            Counting::On { since, runs, .. } if now.saturating_sub(*since) >= MOMENT => {
                let (since, before) = (*since, *runs);
                let shown = tracer.runs().since(before);
                self.extrapolate(shown, now.saturating_sub(since), now);
                Some(Counting::Off { due: now + BETWEEN })
            }
            Counting::Off { .. } | Counting::On { .. } | Counting::Never => None,
        };
        if let Some(next) = next {
            // Without further moments what was counted would stand for less and less of the time.
            self.counted &= !matches!(next, Counting::Never);
            self.counting = next;
        }
    }

    fn ask(&mut self) -> Option<Counting> {
        let switch = self.switch.as_mut()?;
        // Now or never: whoever does not take a question of one byte at once is stuck.
        match switch.0.ask(&(), &[], Instant::now() + Duration::from_millis(1)) {
            Ok(()) => Some(Counting::Asked),
            Err(_) => Some(Counting::Never),
        }
    }

    fn take_answer(&mut self, tracer: &Tracer, now: Ns) -> Option<Counting> {
        let switch = self.switch.as_mut()?;
        match switch.0.answer(Instant::now()) {
            Ok(mut answer) => Some(match answer.descriptors.pop().filter(|_| answer.value) {
                Some(counting) => Counting::On {
                    since: now,
                    runs: tracer.runs(),
                    _counting: counting,
                },
                None => Counting::Never,
            }),
            Err(holdup_detached::Failed::Late) => None,
            Err(holdup_detached::Failed::Gone) => Some(Counting::Never),
        }
    }

    /// What a moment has shown stands for all the time since the one before.
    fn extrapolate(&mut self, shown: Runs, moment: Ns, now: Ns) {
        let time = now.saturating_sub(self.until);
        self.rate = shown.cpu_time() as f64 / moment.max(1) as f64;
        self.taken = self.taken.saturating_add((time as f64 * self.rate) as Ns);
        self.until = now;
        self.counted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{Counting, Meter};
    use holdup_bpf::Runs;

    #[test]
    fn a_moment_stands_for_the_time_between() {
        let mut meter = Meter {
            switch: None,
            counting: Counting::Never,
            taken: 0,
            until: 0,
            rate: 0.0,
            counted: false,
        };
        assert_eq!(meter.taken(7, 0), 7, "what the programs say of themselves");
        let shown = Runs {
            count: 0,
            ns: 1_000_000,
        };
        meter.extrapolate(shown, 10_000_000, 200_000_000);
        assert_eq!(meter.taken(7, 200_000_000), 20_000_000, "a tenth of a CPU");
        assert_eq!(meter.taken(7, 300_000_000), 30_000_000, "and so it goes on");
        meter.extrapolate(Runs::default(), 10_000_000, 400_000_000);
        assert_eq!(meter.taken(7, 500_000_000), 20_000_000, "nothing since");
    }
}
