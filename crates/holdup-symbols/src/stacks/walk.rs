//! One stack, from its innermost frame outwards: by the tables of its files, by frame pointers, and by what a runtime says of its own code.
//! In: registers and a copy of the stack's memory. Out: places in modules.

use super::{Address, FRAMES_MAX, RawStack};
use crate::arch::HERE;
use crate::maps::Space;
use crate::modules::{ModuleId, Modules};
use crate::runtime::{RuntimeFrames, Walked};
use crate::unwind::{Registers, StackBytes, caller_by_frame_pointer, caller_of_leaf};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CPU time that a look into a runtime's structures may take without being charged: some times what an ordinary one takes.
const FREE_WALK: Duration = Duration::from_millis(5);

/// What a process's runtime says of a frame. It reads structures that the process may have made up, so what that takes beyond the usual is
/// charged.
fn walk(
    modules: &mut Modules,
    result: &mut RuntimeFrames,
    raw: &RawStack<'_>,
    registers: Registers,
    interrupted: bool,
) -> Option<Walked> {
    let asker = raw.asker();
    if !result.knows(raw.process) || !modules.budget.allows(&asker) {
        return None;
    }
    let before = thread_cpu_time();
    let walked = result.walk(raw, registers, interrupted);
    let used = thread_cpu_time().saturating_sub(before).saturating_sub(FREE_WALK);
    modules.budget.charge_time(&asker, used);
    walked
}

fn thread_cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// What a process's runtime says of a frame, with its frames put behind those that are there: where the stack goes on, if it does; `None`
/// where the runtime knows nothing of it.
fn by_runtime(
    modules: &mut Modules,
    result: &mut RuntimeFrames,
    raw: &RawStack<'_>,
    registers: Registers,
    caller: bool,
    frames: &mut Vec<Address>,
    walks: &mut usize,
) -> Option<Option<Registers>> {
    let walked = walk(modules, result, raw, registers, !caller)?;
    // What it says may be nothing but ever further callers.
    *walks += 1;
    if *walks > FRAMES_MAX {
        return Some(None);
    }
    result.name = walked.thread;
    let unnamed = Address {
        module: ModuleId::ANONYMOUS,
        caller: false,
        looked_up: 0,
    };
    let addresses = walked.frames.iter().map(|frame| result.address(frame));
    frames.extend(addresses.map(|address| address.unwrap_or(unnamed)));
    Some(walked.caller.filter(|next| next.sp > registers.sp))
}

/// The places that a stack went through, innermost first.
pub(super) fn unwind(
    space: &Space,
    modules: &mut Modules,
    result: &mut RuntimeFrames,
    raw: &RawStack<'_>,
) -> Vec<Address> {
    let stack = StackBytes {
        start: raw.sp,
        bytes: raw.bytes,
    };
    let asker = raw.asker();
    let mut frames = Vec::new();
    let mut walks = 0;
    let mut registers = raw.registers();
    let mut caller = false;
    while frames.len() < FRAMES_MAX {
        let pc = registers.ip.wrapping_sub(u64::from(caller));
        // What is no code was no return address: the guess that led here was wrong, or the stack's memory is. A runtime may have made
        // it code since.
        let in_files = result.has_code_in_files(raw.process);
        let Some(region) = space.find(pc) else {
            let next = in_files
                .then(|| by_runtime(modules, result, raw, registers, caller, &mut frames, &mut walks));
            match next.flatten().flatten() {
                Some(next) => (registers, caller) = (next, true),
                None => break,
            }
            continue;
        };
        if region.module == ModuleId::ANONYMOUS
            && let Some(next) = by_runtime(modules, result, raw, registers, caller, &mut frames, &mut walks)
        {
            match next {
                Some(next) => (registers, caller) = (next, true),
                None => break,
            }
            continue;
        }
        let looked_up = modules.address_of(region.module, region.offset.wrapping_add(pc - region.start));
        frames.push(Address {
            module: region.module,
            caller,
            looked_up: if region.module == ModuleId::ANONYMOUS {
                pc
            } else {
                looked_up
            },
        });
        let rule = modules.rule(&asker, region.module, looked_up);
        if rule.is_none() && in_files && region.module != ModuleId::ANONYMOUS {
            let own = frames.pop();
            if let Some(next) = by_runtime(modules, result, raw, registers, caller, &mut frames, &mut walks) {
                match next {
                    Some(next) => (registers, caller) = (next, true),
                    None => break,
                }
                continue;
            }
            frames.extend(own);
        }
        let next = match rule {
            Some(rule) => {
                caller = !rule.signal();
                if rule.signal()
                    && let Some(own) = frames.last_mut()
                {
                    *own = Address::HANDLER_CALLED;
                }
                let steps = rule.steps();
                if steps > 0 {
                    if !modules.budget.allows(&asker) {
                        break;
                    }
                    modules.budget.charge(&asker, steps);
                }
                let next = rule.caller(&HERE, &registers, &stack);
                // The table counts from a stack pointer that a frame pointer did not tell.
                next.or_else(|| {
                    let known = registers.sp_known;
                    (!known).then(|| caller_by_frame_pointer(&HERE, &registers, &stack))?
                })
            }
            None => {
                let innermost = frames.len() == 1 && region.module != ModuleId::ANONYMOUS;
                caller = true;
                let leaf = caller_of_leaf(&HERE, &registers, &stack).filter(|leaf| {
                    innermost
                        && space.find(leaf.ip.wrapping_sub(1)).is_some_and(|region| {
                            let at = leaf.ip.wrapping_sub(1) - region.start;
                            let at = modules.address_of(region.module, region.offset.wrapping_add(at));
                            modules.rule(&asker, region.module, at).is_some()
                        })
                });
                leaf.or_else(|| caller_by_frame_pointer(&HERE, &registers, &stack))
            }
        };
        let Some(next) = next else { break };
        registers = next;
    }
    frames.truncate(FRAMES_MAX);
    frames
}
