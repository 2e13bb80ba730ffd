//! Stacks: a thread's registers and memory, or the kernel's addresses, become numbers of stacks.
//!
//! In: what was copied of a thread, and what its runtime said. Out: the number of the stack, and events for what was learnt on the way.

use super::Naming;
use crate::interpreters::Turns;
use holdup_bpf::{Asleep, Registers};
use holdup_evidence::{Event, KernelStackId, Ns, Seq, ThreadId, UserStackId, Wait};
use holdup_symbols::{Interpreted, KernelSymbols, RawStack};

impl Naming {
    /// The stack of a thread from its memory; `wait`: the wait that it stands for, if it does.
    #[expect(clippy::too_many_arguments, reason = "what a stack is made of")]
    pub(super) fn user_stack(
        &mut self,
        thread: ThreadId,
        pid: u32,
        at: Ns,
        registers: &Registers,
        bytes: &[u8],
        wait: Option<Seq>,
        interpreted: &[Interpreted],
        out: &mut Vec<Event>,
    ) -> Option<UserStackId> {
        let (_, process) = *self.threads.get(&thread)?;
        let said = wait.and_then(|seq| self.runtimes.frames_of(thread, seq));
        let raw = RawStack {
            process,
            pid,
            at,
            ip: registers.ip,
            sp: registers.sp,
            bp: registers.bp,
            callee_saved: registers.callee_saved,
            partial: false,
            bytes,
        };
        let stack = self
            .user_stacks
            .intern_said(&raw, said.as_deref().unwrap_or_default(), interpreted);
        let told = self.user_stacks.take_thread_name();
        out.extend(told.and_then(|(tid, told)| self.runtimes.called(process, tid, thread, told)));
        Some(stack)
    }

    /// Reads the stack of a thread that still sleeps, and throws it away if the thread has run meanwhile.
    pub(super) fn sleeping_stack(
        &mut self,
        wait: &Wait,
        pid: u32,
        tid: u32,
        asleep: &Asleep,
        out: &mut Vec<Event>,
    ) -> Option<UserStackId> {
        self.catch_up(wait.end);
        let (thread, at, seq) = (wait.thread, wait.end, Some(wait.seq));
        let read = self.asleep.read(pid, tid, asleep.registers.sp);
        let read = read.filter(|read| read.switches == asleep.switches);
        let (_, process) = *self.threads.get(&thread)?;
        let still = |turns: &Turns| turns.switches == asleep.switches;
        let mut interpreted = self
            .interpreters
            .frames(&mut self.user_stacks, (process, pid, tid), still);
        if interpreted.is_empty() {
            interpreted = self.interpreters.seen_in(thread, wait.seq, wait.seq);
        }
        // What its machine has said of this very wait needs no memory.
        let bytes = match &read {
            Some(read) => &*read.bytes,
            None if self.runtimes.frames_of(thread, wait.seq).is_some() => &[],
            None => return None,
        };
        self.user_stack(thread, pid, at, &asleep.registers, bytes, seq, &interpreted, out)
    }

    pub(super) fn kernel_stack(&mut self, addresses: Vec<u64>, out: &mut Vec<Event>) -> KernelStackId {
        if let Some(known) = self.kernel_stacks.get(&addresses) {
            return *known;
        }
        let id = KernelStackId(u32::try_from(self.kernel_stacks.len()).unwrap_or(u32::MAX));
        let names = |symbols: &KernelSymbols| -> Vec<String> {
            addresses
                .iter()
                .filter_map(|address| symbols.name(*address).map(str::to_owned))
                .collect()
        };
        let frames = self.kernel.as_deref().map(names).unwrap_or_default();
        self.kernel_stacks.insert(addresses, id);
        self.paths.stack_seen(id, &frames);
        out.push(Event::KernelStack { id, frames });
        id
    }
}
