//! Whether a child is late because it is blocked, or for lack of a CPU: on a machine in trouble everything takes longer.

/// Threads of a reader that are examined. It has two: the first, and one with a large stack that does the work. The limit is for one that
/// a hostile file has broken into.
const THREADS_MAX: usize = 256;

/// Whether a thread of a process runs, or would if it had a CPU. The first thread alone does not tell: it may only wait for the one that
/// works.
#[must_use]
pub fn is_runnable(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let mut threads = threads.into_iter().flatten().flatten().take(THREADS_MAX);
    threads.any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The name before it is our own, and in parentheses.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('R'))
    })
}

#[cfg(test)]
mod tests {
    use super::is_runnable;

    #[test]
    fn a_process_runs_while_any_of_its_threads_does() {
        // Of a test, the first thread waits for the one that runs it.
        let asked = std::thread::spawn(|| is_runnable(std::process::id()));
        assert!(asked.join().expect("it does not panic"));
        let asleep = std::process::Command::new("sleep").arg("60").spawn();
        let mut asleep = asleep.expect("every Linux has it");
        while is_runnable(asleep.id()) {
            std::thread::yield_now();
        }
        asleep.kill().expect("it runs");
        asleep.wait().expect("it was started here");
    }
}
