//! A program of this bench's own that is watched: it says when it stands ready, and does a turn of work for each line that
//! it is given.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Lines that it may say before it is ready.
const MOST_WORDS: usize = 4;

/// One that runs; ended when dropped.
#[derive(Debug)]
pub(in crate::bench) struct Subject {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What it says of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Elapsed.
    pub(super) seconds: f64,
    /// Of its CPU time.
    pub(super) cpu: f64,
}

impl Subject {
    /// Starts a workload and waits until it is ready.
    pub(in crate::bench) fn start(words: &[&str]) -> anyhow::Result<Subject> {
        let mut command = Command::new(std::env::current_exe().context("the path of this program")?);
        Subject::spawn(command.args(["bench", "workload"]).args(words))
    }

    /// The same of any program that keeps to this.
    pub(in crate::bench) fn spawn(command: &mut Command) -> anyhow::Result<Subject> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start what is watched")?;
        let orders = child.stdin.take().context("its stdin is a pipe")?;
        let answers = BufReader::new(child.stdout.take().context("its stdout is a pipe")?);
        let mut subject = Subject {
            child,
            orders,
            answers,
        };
        // A library that was loaded into it may have its word first.
        let mut said = String::new();
        for _ in 0..MOST_WORDS {
            said = subject.line()?;
            if said == "ready" {
                return Ok(subject);
            }
        }
        bail!("it said {said:?} and not that it is ready");
    }

    /// Its process.
    pub(in crate::bench) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A turn of its work.
    pub(super) fn turn(&mut self) -> anyhow::Result<Turn> {
        self.orders.write_all(b"\n").context("ask for a turn")?;
        let line = self.line()?;
        let parts = line.split_once(' ');
        let (seconds, cpu) = parts.with_context(|| format!("it said {line:?} of its turn"))?;
        Ok(Turn {
            seconds: seconds.parse()?,
            cpu: cpu.parse()?,
        })
    }

    /// Orders it to end, and waits for that.
    pub(in crate::bench) fn end(mut self) -> anyhow::Result<()> {
        self.orders.write_all(b"\n").context("order it to end")?;
        let status = self.child.wait().context("wait for what is watched")?;
        if status.success() {
            Ok(())
        } else {
            bail!("what is watched failed: {status}")
        }
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("hear what it says")?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // Neither can fail for a child that has not been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
