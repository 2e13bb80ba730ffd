//! What a sleeping thread waits in: its call, where in the kernel, and how it sleeps.
//!
//! In: the letter of `stat`, the texts of `syscall` and `wchan`. Out: a [`Site`]. What is not to be had is unknown, and the
//! rest is used.

use holdup_evidence::{Call, TaskState, arch};

/// What a thread waits in.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Site {
    /// How it sleeps.
    pub state: TaskState,
    /// In which call, as far as that is reported; `None` where `syscall` may not be read.
    pub call: Option<Call>,
    /// The call's fifth argument, which [`Call`] has no room for; 0 where there is none.
    pub fifth: u64,
    /// Its stack pointer, and where in its own code it will go on.
    pub registers: Option<(u64, u64)>,
    /// The kernel's function in which it sleeps.
    pub function: Option<String>,
    /// Whether it ran, or was ready to, as its call was read.
    pub runs: bool,
}

/// How a thread sleeps that has this letter; `None` of one that does not sleep.
#[must_use]
pub fn sleeps(letter: char) -> Option<TaskState> {
    match letter {
        'S' => Some(TaskState::Interruptible),
        'D' => Some(TaskState::Uninterruptible),
        'T' => Some(TaskState::Stopped),
        't' => Some(TaskState::Traced),
        // Idle is what uninterruptible sleep is called that is not counted as load; parked is the kernel's own.
        'I' | 'P' | 'K' | 'W' => Some(TaskState::Uninterruptible),
        _ => None,
    }
}

/// Whether a thread has ended: as a zombie, or dead and not yet taken away.
#[must_use]
pub fn has_ended(letter: char) -> bool {
    matches!(letter, 'Z' | 'X' | 'x')
}

impl Site {
    /// Of a thread that runs, in a call that it was seen in.
    #[must_use]
    pub fn of_running(call: Call) -> Site {
        Site {
            state: TaskState::Interruptible,
            call: Some(call),
            fifth: 0,
            registers: None,
            function: None,
            runs: true,
        }
    }

    /// From what the files say.
    #[must_use]
    pub fn read(state: TaskState, syscall: Option<&str>, wchan: Option<&str>) -> Site {
        let (call, fifth, registers) = syscall.map_or((None, 0, None), call);
        // "0" stands for "none of your business" as well as for "nowhere".
        let function = wchan.map(str::trim).filter(|name| is_name(name));
        let frozen = function.is_some_and(|name| name.contains("freezer") || name == "__refrigerator");
        Site {
            state: if frozen { TaskState::Frozen } else { state },
            call,
            fifth,
            registers,
            function: function.map(str::to_owned),
            runs: syscall.is_some_and(|text| text.trim() == "running"),
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(|first: char| first.is_ascii_digit()) && text.is_ascii()
}

/// `230 0x0 0x0 0x7ff 0x0 0x0 0x0 SP PC`, `-1 SP PC` where it is in none (a fault), or `running`.
fn call(text: &str) -> (Option<Call>, u64, Option<(u64, u64)>) {
    let mut words = text.split_ascii_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse::<i32>().ok()) else {
        return (None, 0, None);
    };
    let values: Vec<u64> = words
        .map_while(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    let registers = match values.as_slice() {
        [.., sp, pc] if values.len() == 8 || number < 0 => Some((*sp, *pc)),
        _ => None,
    };
    let call = match (number, values.as_slice()) {
        (..0, _) => Some(Call::none()),
        (_, [a, b, c, d, ..]) => Some(Call {
            number: arch::call(number),
            args: [*a, *b, *c, *d],
        }),
        _ => None,
    };
    let fifth = values.get(4).copied().filter(|_| number >= 0);
    (call, fifth.unwrap_or(0), registers)
}

#[cfg(test)]
mod tests {
    use super::{Site, sleeps};
    use holdup_evidence::{Call, TaskState};

    const SLEEPING: TaskState = TaskState::Interruptible;

    #[test]
    fn a_call_has_its_arguments_and_registers() {
        let text = "230 0x1 0x2 0x7ffff0331b90 0x4 0x0 0x0 0x7ffff0331b78 0x7ff262eb1503\n";
        let site = Site::read(SLEEPING, Some(text), Some("hrtimer_nanosleep"));
        let args = [1, 2, 0x7fff_f033_1b90, 4];
        assert_eq!(site.call, Some(Call { number: 230, args }));
        assert_eq!(site.registers, Some((0x7fff_f033_1b78, 0x7ff2_62eb_1503)));
        assert_eq!(site.function.as_deref(), Some("hrtimer_nanosleep"));
    }

    #[test]
    fn a_fault_is_in_no_call_and_a_runner_not_known() {
        let fault = Site::read(TaskState::Uninterruptible, Some("-1 0x7ffd 0x55d0"), Some("0"));
        assert_eq!(
            (fault.call, fault.registers),
            (Some(Call::none()), Some((0x7ffd, 0x55d0)))
        );
        assert_eq!(fault.function, None);
        let running = Site::read(SLEEPING, Some("running\n"), None);
        assert_eq!((running.call, running.registers), (None, None));
        assert!(running.runs && !fault.runs);
        assert_eq!(Site::read(SLEEPING, Some("1 0x2"), Some("")).call, None);
    }

    #[test]
    fn a_frozen_thread_is_known_by_where_it_sleeps() {
        let site = Site::read(SLEEPING, None, Some("do_freezer_trap"));
        assert_eq!(site.state, TaskState::Frozen);
        assert_eq!(sleeps('R'), None);
        assert_eq!(sleeps('Z'), None);
    }
}
