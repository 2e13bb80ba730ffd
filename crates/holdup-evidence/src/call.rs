//! A system call as a blocked thread was in it.

use serde::{Deserialize, Serialize};
use syscalls::x86_64::Sysno;

/// The system call a thread was in, read from its saved registers when it left the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Call {
    /// The system call's number in the table of x86-64, whatever the machine ([`crate::arch`]); [`Call::NONE`] outside any call (a page fault, an interrupt's exit).
    pub number: i32,
    /// The first four arguments as the registers held them.
    pub args: [u64; 4],
}

impl Call {
    /// "In no system call".
    pub const NONE: i32 = -1;

    /// "In a call that the source could not see, or in none".
    pub const UNTOLD: i32 = -2;

    /// Not known.
    #[must_use]
    pub fn untold() -> Call {
        Call {
            number: Call::UNTOLD,
            args: [0; 4],
        }
    }

    /// Outside any system call.
    #[must_use]
    pub fn none() -> Call {
        Call {
            number: Call::NONE,
            args: [0; 4],
        }
    }

    /// A call by its name, its arguments not known; [`Call::NONE`] where this build does not know it.
    #[must_use]
    pub fn named(name: &str) -> Call {
        let number = name.parse().map_or(Call::NONE, |number: Sysno| number.id());
        Call { number, args: [0; 4] }
    }

    /// The call's name as in its manual page; `None` outside a call and for numbers this build does not know.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        usize::try_from(self.number)
            .ok()
            .and_then(Sysno::new)
            .map(|call| call.name())
    }
}

impl Default for Call {
    fn default() -> Self {
        Call::none()
    }
}
