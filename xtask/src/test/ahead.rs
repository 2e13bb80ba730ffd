//! A step beside others: the guests boot while the first steps run.
//!
//! `cargo test` mostly waits for programs that it observes. The guests run in the scheduler's idle class, so
//! that they get only what the tests leave; to guests, whose clock counts instructions, that is a slow machine. The kernel shares CPUs
//! between sessions first (autogroups), whatever the class of their tasks, and some tests begin sessions of their own: so this is a session
//! too, with the least share that there is. In: a step. Out: what it said and counted.

use super::{Done, Step, step};
use crate::workspace;
use anyhow::Context;
use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::thread::JoinHandle;

/// A step beside others, under way.
pub(super) struct Beside {
    thread: JoinHandle<(Vec<u8>, anyhow::Result<Done>)>,
}

impl Beside {
    /// Starts it.
    pub(super) fn start(beside: Step) -> anyhow::Result<Beside> {
        let log = workspace::scratch("test")?.join("beside.log");
        let messages = File::create(&log).with_context(|| format!("write {}", log.display()))?;
        let (name, command) = beside;
        let mut command = when_idle(&command, &messages)?;
        let thread = std::thread::spawn(move || {
            let mut said = Vec::new();
            let done = step(name, &mut command, &mut said);
            (said, done)
        });
        Ok(Beside { thread })
    }

    /// Waits for its end, and shows what it said; nothing where not all was right, which then does not count.
    pub(super) fn finish(self, out: &mut dyn Write) -> anyhow::Result<Option<Done>> {
        let (mut said, done) = self.thread.join().expect("a step that panics has a defect");
        let done = done?;
        writeln!(out, "\n== {}, beside the steps above:", done.name).context("pass output on")?;
        if done.tally.failed == 0 {
            out.write_all(&said).context("pass output on")?;
            return Ok(Some(done));
        }
        let log = workspace::scratch("test")?.join("beside.log");
        said.extend(std::fs::read(log).unwrap_or_default());
        // Its counts must not be taken for counts: they are no line of their own.
        for line in String::from_utf8_lossy(&said).lines() {
            writeln!(out, "| {line}").context("pass output on")?;
        }
        writeln!(out, "not all was right beside others: once more, alone").context("pass output on")?;
        Ok(None)
    }
}

/// Begins with the least share of the CPUs among sessions, where the kernel has shares of sessions.
const LEAST_SHARE: &str = "echo 19 2>/dev/null >/proc/self/autogroup; exec \"$@\"";

/// The command in the scheduler's idle class, with its messages in a file.
fn when_idle(command: &Command, messages: &File) -> anyhow::Result<Command> {
    let mut idle = Command::new("setsid");
    idle.args(["--wait", "sh", "-c", LEAST_SHARE, "sh"])
        .args(["chrt", "--idle", "0"])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(workspace::root())
        .stderr(messages.try_clone().context("share the log")?);
    Ok(idle)
}

#[cfg(test)]
mod tests {
    use super::Beside;
    use crate::tally::Tally;
    use crate::test::step;
    use std::process::Command;

    /// What is said of a step that ran this script beside others, and what counts of it.
    fn beside(script: &'static str) -> (String, Option<Tally>) {
        let thread = std::thread::spawn(move || {
            let mut said = Vec::new();
            let done = step("guest", Command::new("sh").args(["-c", script]), &mut said);
            (said, done)
        });
        let mut out = Vec::new();
        let done = Beside { thread }.finish(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), done.map(|done| done.tally))
    }

    #[test]
    fn what_was_not_right_beside_others_does_not_count() {
        let (said, tally) = beside("echo 3 passed, 0 failed");
        assert_eq!(tally, Some(Tally { passed: 3, failed: 0 }));
        assert!(said.contains("\n3 passed, 0 failed\n"), "{said}");

        let (said, tally) = beside("echo 2 passed, 1 failed; exit 1");
        assert_eq!(tally, None);
        assert!(said.contains("once more, alone"), "{said}");
        assert_eq!(said.lines().find_map(Tally::from_line), None, "{said}");

        let (_, tally) = beside("echo 3 passed, 0 failed; exit 1");
        assert_eq!(tally, None);
    }
}
