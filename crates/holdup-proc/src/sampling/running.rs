//! What running threads were seen in, until their CPU time is reported.
//!
//! In: samples of the software clock ([`super::on_cpu`]). Out: stacks with each thread. The kernel's ticks say how much of the time was the
//! thread's own code, so a stack is reported with the next of those.

use super::on_cpu::{self, OnCpu, PERIOD};
use super::sampler::{Sampler, Stacks};
use crate::cpuinfo;
use crate::filters;
use nix::errno::Errno;

/// Stacks that are kept of a thread until it is reported.
const MAX_STACKS: usize = 256;

/// Why running threads are not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotWatched {
    /// A filter on system calls ends whoever asks.
    Kills,
    /// The user may watch their own programs, and these are not.
    Others,
    /// The kernel refuses.
    Refused(Errno),
}

impl Sampler {
    /// From now on running threads are seen, those that are followed already and all that they make, by so many open files at most.
    ///
    /// # Errors
    /// When the kernel refuses: then nobody is seen, unless what it refuses is others' programs alone.
    pub fn watch_running(&mut self, files: usize) -> Result<(), NotWatched> {
        if filters::kills(filters::Call::PerfEvents) {
            return Err(NotWatched::Kills);
        }
        let cpus = cpuinfo::which_online(&self.root);
        let own = cpus.first().copied();
        let mut on_cpu = OnCpu::new(cpus, files);
        let mut others = false;
        for thread in self.threads.values() {
            match on_cpu.watch(thread.tid) {
                // It is gone.
                Err(Errno::ESRCH) => {}
                Err(Errno::EACCES | Errno::EPERM) if own.is_some_and(on_cpu::may_watch_itself) => {
                    others = true;
                }
                other => other.map_err(NotWatched::Refused)?,
            }
        }
        self.on_cpu = on_cpu;
        match others {
            true => Err(NotWatched::Others),
            false => Ok(()),
        }
    }

    /// What was seen since the last round. As many as may be had are taken at even distances, so that no CPU comes first.
    pub(super) fn saw_running(&mut self, stacks: &mut dyn Stacks) {
        let seen = self.on_cpu.drain();
        let wanted = seen.iter().take_while(|_| stacks.wanted(self.now)).count();
        if wanted == 0 {
            return;
        }
        let each = seen.len().div_ceil(wanted);
        let weight = PERIOD * each as u64;
        for one in seen.into_iter().skip(each / 2).step_by(each) {
            let thread = self.by_tid.get(&one.tid).and_then(|id| self.threads.get_mut(id));
            let Some(thread) = thread.filter(|thread| thread.running.len() < MAX_STACKS) else {
                continue;
            };
            if stacks.knows(thread.pid, one.registers.ip) {
                let stack = stacks.running(thread.pid, self.now, &one.registers, &one.stack);
                thread.running.extend(stack.map(|stack| (stack, weight)));
            } else if let Some(process) = self.processes.get_mut(&thread.pid) {
                process.runs_unknown = true;
            }
        }
    }
}
