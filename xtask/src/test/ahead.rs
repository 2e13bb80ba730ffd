//! What can be done while the first steps run: building holdup and the replay as released, then booting the guests.
//!
//! The first step is `cargo test`, which mostly waits for programs that it observes. All this runs in the scheduler's idle class, so
//! that it gets only what the tests leave; to the guests, whose clock counts instructions, that is a slow machine. The kernel shares CPUs
//! between sessions first (autogroups), whatever the class of their tasks, and some tests begin sessions of their own: so this is a session
//! too, with the least share that there is. In: nothing. Out: whether holdup was built, and what the guests said.

use super::{Done, Step, Tally, step};
use crate::{process, workspace};
use anyhow::Context;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The name of the step that builds.
const NAME: &str = "build";

/// Both in one command: alone, the replay would get other features of its dependencies, and all would be compiled twice.
const BUILD: [&str; 6] = [
    "build",
    "--release",
    "--package",
    "holdup",
    "--package",
    "holdup-replay",
];

/// The build, under way.
pub(super) struct Build {
    log: PathBuf,
    thread: JoinHandle<anyhow::Result<(Duration, Beside)>>,
}

/// A step beside others, under way.
pub(super) struct Beside {
    thread: JoinHandle<(Vec<u8>, anyhow::Result<Done>)>,
}

impl Build {
    /// Starts it; `then` follows when holdup is there.
    pub(super) fn start(then: Step) -> anyhow::Result<Build> {
        let log = workspace::scratch("test")?.join("ahead.log");
        let output = File::create(&log).with_context(|| format!("write {}", log.display()))?;
        let mut build = workspace::cargo();
        build.args(BUILD);
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            let mut build = when_idle(&build, &output)?;
            process::run(build.stdout(Stdio::null()))?;
            let built = began.elapsed();
            let (name, command) = then;
            let mut command = when_idle(&command, &output)?;
            let thread = std::thread::spawn(move || {
                let mut said = Vec::new();
                let done = step(name, &mut command, &mut said);
                (said, done)
            });
            Ok((built, Beside { thread }))
        });
        Ok(Build { log, thread })
    }

    /// Waits for its end; what follows it, or nothing if it failed. What was said is then shown.
    pub(super) fn finish(self) -> (Done, Option<Beside>) {
        let result = self.thread.join().expect("a build that panics has a defect");
        if let Err(error) = &result {
            println!("\n== {NAME}: {error:#}");
            print!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
        let (took, beside) = match result {
            Ok((took, beside)) => (took, Some(beside)),
            Err(_) => (Duration::ZERO, None),
        };
        let done = Done {
            name: NAME,
            tally: Tally::one(beside.is_some()),
            took,
            failed: super::Failed::default(),
        };
        (done, beside)
    }

    /// The program of the replay that it makes.
    pub(super) fn replay() -> anyhow::Result<PathBuf> {
        Ok(workspace::target()?.join("release/holdup-replay"))
    }
}

impl Beside {
    /// Waits for its end, and shows what it said; nothing where not all was right, which then does not count.
    pub(super) fn finish(self, out: &mut dyn Write) -> anyhow::Result<Option<Done>> {
        let (said, done) = self.thread.join().expect("a step that panics has a defect");
        let done = done?;
        writeln!(out, "\n== {}, beside the steps above:", done.name).context("pass output on")?;
        if done.tally.failed == 0 {
            out.write_all(&said).context("pass output on")?;
            return Ok(Some(done));
        }
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
