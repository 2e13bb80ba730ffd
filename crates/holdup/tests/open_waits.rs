//! Waits that are still open when observation ends have the stack of who asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Outcome, lossy};

/// CMD ends when the kernel says that its child is in `clock_nanosleep` (call 230), and leaves it there.
const LEAVES_A_SLEEPER: &str = "sleep 1000 >/dev/null 2>&1 & echo $!; \
                                until read -r call _ </proc/$!/syscall && [ \"$call\" = 230 ]; do :; done";

#[test]
fn a_process_that_is_left_asleep_has_a_stack() {
    let result = Outcome::of(&[], |command| {
        command.args(["sh", "-c", LEAVES_A_SLEEPER]);
    });
    let pid: i32 = lossy(&result.output.stdout).trim().parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let waits = result.report["waits"].as_array().unwrap();
    let open = waits
        .iter()
        .find(|wait| wait["open"] == true && wait["asker"]["pid"] == pid)
        .unwrap();
    let symbols: Vec<&str> = open["asker"]["stack"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|frame| frame["symbol"].as_str())
        .collect();
    assert_eq!(symbols.first(), Some(&"clock_nanosleep"), "{open:#}");
    assert!(symbols.contains(&"__libc_start_main"), "{open:#}");
}
