//! A step that says nothing for very long is stuck: who runs is named, and all of it is ended, so that the other steps still tell something.
//!
//! In: a step's process, and a mark that each line of its output renews. Out: the names of what was ended, or nothing where it ended by
//! itself.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// So long may a step say nothing. Compiling all tests from nothing on a slow machine is the longest silence of one that works: a quarter of
/// an hour.
pub(super) const LONGEST_SILENCE: Duration = Duration::from_secs(40 * 60);

/// Watches a step until it is dropped.
pub(super) struct Watch {
    lines: Sender<()>,
    thread: JoinHandle<Vec<String>>,
}

impl Watch {
    /// Watches what runs below this process, the process included.
    pub(super) fn start(process: u32, longest: Duration) -> Watch {
        let (lines, heard) = channel();
        let thread = std::thread::spawn(move || watch(process, longest, &heard));
        Watch { lines, thread }
    }

    /// To be called for each line of output.
    pub(super) fn heard(&self) {
        // The watch has ended where the step was ended.
        let _ = self.lines.send(());
    }

    /// The step has ended; what was ended for its silence.
    pub(super) fn finish(self) -> Vec<String> {
        drop(self.lines);
        self.thread.join().expect("a watch that panics has a defect")
    }
}

fn watch(process: u32, longest: Duration, heard: &Receiver<()>) -> Vec<String> {
    loop {
        match heard.recv_timeout(longest) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return Vec::new(),
            Err(RecvTimeoutError::Timeout) => return end(process),
        }
    }
}

/// Ends a process and all below it; their process ids and command lines, parents first.
fn end(process: u32) -> Vec<String> {
    let below = below(process);
    let words = below
        .iter()
        .map(|pid| format!("{pid} {}", command_line(*pid)))
        .collect();
    for pid in below {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).expect("the kernel's process ids fit"));
        // One that has ended meanwhile needs no signal.
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
    }
    words
}

/// A process and all below it, parents first.
fn below(process: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut at) = (vec![process], 0);
    while let Some(next) = found.get(at) {
        found.extend(children.remove(next).unwrap_or_default());
        at += 1;
    }
    found
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last parenthesis may hold anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use super::Watch;
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[test]
    fn a_silent_step_is_ended_with_all_below_it_and_named() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 1000000 & wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Any silence is too long: but the shell must have its child.
        while super::below(child.id()).len() < 2 {
            std::thread::yield_now();
        }
        let watch = Watch::start(child.id(), Duration::ZERO);
        // The pipe ends when nobody below has it any more.
        child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
        assert!(!child.wait().unwrap().success());
        let ended = watch.finish();
        assert!(
            ended.iter().any(|line| line.contains("sleep 1000000")),
            "{ended:?}"
        );
    }

    #[test]
    fn a_step_that_ends_by_itself_is_left_alone() {
        let mut child = Command::new("true").spawn().unwrap();
        let watch = Watch::start(child.id(), super::LONGEST_SILENCE);
        watch.heard();
        assert!(child.wait().unwrap().success());
        assert!(watch.finish().is_empty());
    }
}
