//! Names of the kernel's own functions, by asking the kernel for those that are wanted.
//!
//! The problem: the kernel's table as text is 160,000 lines, which take 30 ms to print and as long to read, in each start; a report needs some
//! hundred of them. The choice: a program that the kernel runs over a table of addresses, and that writes a line for each. In: addresses. Out:
//! what the kernel prints for them, as in `/proc/PID/stack`.

use crate::skeleton::TraceSkel;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle};
use std::io::Read;
use std::os::fd::AsFd;

/// Asks. Lives as long as its programs do.
pub struct KernelFunctions {
    link: Link,
    asked: MapHandle,
}

impl KernelFunctions {
    pub(crate) fn of(skeleton: &TraceSkel<'static>) -> Option<KernelFunctions> {
        let (program, asked) = (&skeleton.progs.name_function, &skeleton.maps.asked_functions);
        let link = program
            .autoload()
            .then(|| program.attach_iter(asked.as_fd()).ok())??;
        let asked = MapHandle::try_from(asked).ok()?;
        Some(KernelFunctions { link, asked })
    }

    /// What the kernel prints for each of these addresses: `schedule+0x22/0x110 [module]`, or a number where it knows no name. `None`: it did
    /// not answer.
    #[must_use]
    pub fn print(&self, addresses: &[u64]) -> Option<Vec<String>> {
        let at_once = usize::try_from(self.asked.max_entries()).ok()?.max(1);
        let mut printed = Vec::with_capacity(addresses.len());
        for part in addresses.chunks(at_once) {
            printed.extend(self.print_some(part, at_once)?);
        }
        Some(printed)
    }

    fn print_some(&self, addresses: &[u64], at_once: usize) -> Option<Vec<String>> {
        // 0 says that nothing is asked, and no function is there.
        let asked = addresses.iter().map(|address| (*address).max(1));
        for (index, address) in asked.chain(std::iter::repeat(0)).take(at_once).enumerate() {
            let key = u32::try_from(index).ok()?.to_ne_bytes();
            let asked = self.asked.update(&key, &address.to_ne_bytes(), MapFlags::ANY);
            asked.ok()?;
        }
        let mut text = String::new();
        Iter::new(&self.link).ok()?.read_to_string(&mut text).ok()?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (lines.len() == addresses.len()).then_some(lines)
    }
}
