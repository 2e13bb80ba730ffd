//! Stacks: a thread's registers and memory, or the kernel's addresses, become numbers of stacks.
//!
//! In: what was copied of a thread, and what its runtime said. Out: the number of the stack, and events for what was learnt on the way.

use super::Naming;
use crate::interpreters::Turns;
use holdup_bpf::{Asleep, RawMemory, Registers};
use holdup_evidence::{AskerSample, Event, KernelStackId, NotMeasured, Ns, Seq, ThreadId, UserStackId, Wait};
use holdup_symbols::{Beside, RawStack};

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
        beside: Beside<'_>,
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
            saved: registers.saved,
            partial: false,
            bytes,
        };
        let said = said.as_deref().unwrap_or_default();
        let stack = self.user_stacks.intern_said(&raw, Beside { said, ..beside });
        let found = self.user_stacks.take_thread_name();
        out.extend(found.and_then(|(tid, found)| self.runtimes.called(process, tid, thread, found)));
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
        let tasks = self.goroutine_looks.of(process, thread, wait.seq, true);
        let beside = Beside {
            interpreted: &interpreted,
            tasks: tasks.as_deref().map_or(&[][..], Vec::as_slice),
            ..Beside::default()
        };
        self.user_stack(thread, pid, at, &asleep.registers, bytes, seq, beside, out)
    }

    /// A thread's memory becomes what it polled and who asked.
    pub(super) fn name_stacks(&mut self, mut memory: RawMemory, weight: Ns, out: &mut Vec<Event>) {
        let (thread, on_cpu) = (memory.wait.thread, memory.on_cpu);
        let (first, seq) = (memory.wait.first, memory.wait.seq);
        let interpreted = match on_cpu {
            true => self.interpreters.ran(thread, memory.at),
            false => self.interpreters.seen_in(thread, first, seq),
        };
        let wait = (!on_cpu).then_some(seq);
        let (pid, at) = (memory.pid, memory.at);
        let (registers, bytes) = (&memory.registers, &memory.stack[..]);
        let process = self.threads.get(&thread).map(|(_, process)| *process);
        let tasks = process.filter(|_| !on_cpu);
        let tasks = tasks.and_then(|process| self.goroutine_looks.of(process, thread, seq, false));
        let native = self.user_stack(thread, pid, at, registers, bytes, wait, Beside::default(), out);
        let seen = !interpreted.is_empty() || tasks.is_some();
        let stack = match (wait, native) {
            (Some(_), Some(native))
                if self.is_told_by_others((thread, seq), native, seen, tasks.is_some()) =>
            {
                None
            }
            _ if seen => {
                let beside = Beside {
                    interpreted: &interpreted,
                    tasks: tasks.as_deref().map_or(&[][..], Vec::as_slice),
                    ..Beside::default()
                };
                self.user_stack(thread, pid, at, registers, bytes, wait, beside, out)
            }
            _ => native,
        };
        if !on_cpu {
            self.own_ends.mark(memory.pid, &mut memory.wait.polled);
            out.push(Event::WaitMemory(Box::new(memory.wait)));
        }
        if let Some(stack) = stack {
            out.push(Event::Asker(AskerSample {
                thread,
                first,
                seq,
                on_cpu,
                stack,
                weight,
            }));
        }
    }

    /// Whether other waits that were seen stand for one with this native stack. `seen`: whether it was seen; `in_go`: in goroutines.
    fn is_told_by_others(
        &mut self,
        (thread, seq): (ThreadId, Seq),
        native: UserStackId,
        seen: bool,
        in_go: bool,
    ) -> bool {
        if self.interpreters.is_told_by_others(thread, seq, native, seen) {
            return true;
        }
        let Some((_, process)) = self.threads.get(&thread).copied() else {
            return false;
        };
        self.goroutine_looks
            .is_told_by_others(process, (thread, seq), native, in_go)
    }

    /// Functions of the kernel, where those could not be named.
    pub(crate) fn unnamed_functions(&self) -> Option<NotMeasured> {
        self.kernel.not_measured()
    }

    pub(super) fn kernel_stack(&mut self, addresses: Vec<u64>, out: &mut Vec<Event>) -> KernelStackId {
        if let Some(known) = self.kernel_stacks.get(&addresses) {
            return *known;
        }
        let id = KernelStackId(u32::try_from(self.kernel_stacks.len()).unwrap_or(u32::MAX));
        let frames = self.kernel.of(&addresses);
        self.kernel_stacks.insert(addresses, id);
        self.paths.stack_seen(id, &frames);
        out.push(Event::KernelStack { id, frames });
        id
    }
}
