//! The programs at interrupts, and when they are attached.
//!
//! The problem: they run at every interrupt of the machine, three times a soft one, whoever is served; a full web server that nobody observes
//! paid 4 to 7 % of its CPU time for them. What they are for is the time that interrupts take from the observed while those run; who
//! wakes is known without them where the preemption count is (`bpf/interrupts.h`). The choice: beside a service they are taken off once the observed
//! hardly run, and attached again as they do; the preemption count was seen to hold before. In: samples of running threads. Out: attached programs; what was not seen meanwhile.

use crate::adopt::tell_of_adoption;
use crate::loaded::{TraceError, refusal, zero};
use crate::skeleton::TraceSkel;
use crate::tracer::Pace;
use holdup_evidence::{NotMeasured, Ns};
use libbpf_rs::Link;
use std::sync::atomic::{Ordering, fence};

/// How long the observed are looked at before the programs are taken off, nanoseconds.
const JUDGED_OVER: Ns = 1_000_000_000;

/// Who uses less CPU time than this in that time hardly runs, nanoseconds: 1 % of a CPU.
const HARDLY_RUNS: Ns = 10_000_000;

/// From so much in that time on it runs again, nanoseconds.
const RUNS: Ns = 20_000_000;

/// What ran unseen is noted from so much on, nanoseconds. Each time that the observed begin to run, some 50 ms are over before they are found to.
const NOTED: Ns = 100_000_000;

/// Whether the programs have anything to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Stay,
    TakeOff,
    Attach,
}

/// How much the observed run.
#[derive(Debug, Default)]
struct Use {
    /// CPU time in this window, nanoseconds.
    used: Ns,
    /// How old it is, nanoseconds.
    window: Ns,
}

impl Use {
    /// What is to be done, `elapsed` after the last time.
    fn judge(&mut self, elapsed: Ns, attached: bool) -> Verdict {
        self.window = self.window.saturating_add(elapsed);
        let verdict = match attached {
            true if self.window >= JUDGED_OVER && self.used < HARDLY_RUNS => Verdict::TakeOff,
            false if self.used >= RUNS => Verdict::Attach,
            _ => Verdict::Stay,
        };
        if self.window >= JUDGED_OVER || verdict != Verdict::Stay {
            *self = Use::default();
        }
        verdict
    }
}

/// The programs at interrupts of one trace.
pub(crate) struct Interrupts {
    links: Vec<Link>,
    usage: Use,
    /// They may be taken off.
    may_rest: bool,
    /// They are.
    rests: bool,
    /// CPU time that the observed used while they were off, nanoseconds.
    unseen: Ns,
    sample_period: Ns,
}

impl Interrupts {
    /// Attaches them.
    pub(crate) fn attach(skeleton: &TraceSkel<'static>, pace: Pace) -> Result<Interrupts, TraceError> {
        Ok(Interrupts {
            links: links(skeleton).map_err(|error| refusal(&error))?,
            usage: Use::default(),
            // A command runs, or waits for what its end will tell; of a whole machine somebody always runs.
            may_rest: pace == Pace::Service,
            rests: false,
            unseen: 0,
            sample_period: pace.cpu_sample_period(),
        })
    }

    /// A thread of the observed was found running.
    pub(crate) fn sampled(&mut self) {
        self.usage.used = self.usage.used.saturating_add(self.sample_period);
        if self.rests {
            self.unseen = self.unseen.saturating_add(self.sample_period);
        }
    }

    /// Takes them off, or attaches them, if it is time to.
    pub(crate) fn adapt(&mut self, skeleton: &mut TraceSkel<'static>, elapsed: Ns) {
        let state = skeleton.maps.bss_data.as_deref();
        let holds = state.is_some_and(|state| state.preemption_holds != 0 && state.preemption_fails == 0);
        if !self.may_rest || !holds {
            return;
        }
        let rest = |skeleton: &mut TraceSkel<'static>, rest: bool| {
            if let Some(state) = skeleton.maps.bss_data.as_deref_mut() {
                state.interrupts_rest = u32::from(rest);
            }
            fence(Ordering::SeqCst);
        };
        match self.usage.judge(elapsed, !self.rests) {
            Verdict::Stay => {}
            Verdict::TakeOff => {
                rest(skeleton, true);
                self.links.clear();
                self.rests = true;
            }
            Verdict::Attach => {
                // What was under way as they were taken off is over.
                zero(&skeleton.maps.interrupts).ok();
                tell_of_adoption(skeleton);
                self.links = links(skeleton).unwrap_or_default();
                // Where they are refused now, times stay as they are.
                self.rests = self.links.is_empty();
                rest(skeleton, self.rests);
            }
        }
    }

    /// Observation is over.
    pub(crate) fn end(&mut self) {
        self.links.clear();
    }

    /// What was not seen, where it may be more than a moment.
    pub(crate) fn not_measured(&self) -> Option<NotMeasured> {
        (self.unseen > NOTED).then(|| NotMeasured {
            what: "CPU time that interrupts took while the observed used less than 1 % of a CPU, or had just begun to run".into(),
            why: "the programs that measure it cost every process of the machine, and were not attached then"
                .into(),
            fix: "none is needed: it is a part of what little they ran then".into(),
        })
    }
}

/// Exits before entries: an exit whose entry was not seen does nothing, an entry whose exit was not seen would leave its CPU "in an
/// interrupt" until the next switch.
fn links(skeleton: &TraceSkel<'static>) -> libbpf_rs::Result<Vec<Link>> {
    let programs = &skeleton.progs;
    let all = [
        &programs.on_tick_exit,
        &programs.on_tick_entry,
        &programs.on_called_exit,
        &programs.on_called_entry,
        &programs.on_softirq_raise,
        &programs.on_irq_exit,
        &programs.on_irq_entry,
        &programs.on_hrtimer_exit,
        &programs.on_hrtimer_entry,
        &programs.on_softirq_exit,
        &programs.on_softirq_entry,
    ];
    let loaded = all.into_iter().filter(|program| program.autoload());
    loaded.map(|program| program.attach_trace()).collect()
}

#[cfg(test)]
mod tests {
    use super::{HARDLY_RUNS, JUDGED_OVER, RUNS, Use, Verdict};
    use holdup_evidence::Ns;

    const TURN: Ns = 50_000_000;

    fn second(usage: &mut Use, used: Ns, attached: bool) -> Vec<Verdict> {
        usage.used += used;
        let turns = JUDGED_OVER / TURN;
        let verdicts = (0..turns).map(|_| usage.judge(TURN, attached));
        verdicts.filter(|verdict| *verdict != Verdict::Stay).collect()
    }

    #[test]
    fn who_sleeps_has_none_after_a_second() {
        let mut usage = Use::default();
        assert_eq!(second(&mut usage, 0, true), [Verdict::TakeOff]);
        assert_eq!(second(&mut usage, 0, false), []);
    }

    #[test]
    fn who_runs_keeps_them() {
        let mut usage = Use::default();
        for _ in 0..10 {
            assert_eq!(second(&mut usage, HARDLY_RUNS, true), []);
        }
    }

    #[test]
    fn who_runs_again_has_them_again_at_once() {
        let mut usage = Use::default();
        assert_eq!(second(&mut usage, 0, true), [Verdict::TakeOff]);
        usage.used = RUNS;
        assert_eq!(usage.judge(TURN, false), Verdict::Attach);
        assert_eq!(
            usage.judge(TURN, true),
            Verdict::Stay,
            "judged by what comes from now on"
        );
    }

    #[test]
    fn who_runs_now_and_then_is_left_alone() {
        let mut usage = Use::default();
        for _ in 0..10 {
            assert_eq!(second(&mut usage, RUNS - 1, false), []);
        }
    }
}
