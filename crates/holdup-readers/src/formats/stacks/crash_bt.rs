//! `bt` and `foreach bt` of the crash utility: tasks of a kernel that crashed, or of a live one, with their stacks.
//!
//! In: `PID: 12  TASK: ffff…  CPU: 3  COMMAND: "lvm"` and below it frames, `#3 [ffff…] schedule_timeout at ffff…`. Out: a snapshot of tasks.
//! A task whose stack ends in the scheduler sleeps; any other was on its CPU. Which of both sleeps it is the stack does not say: most tasks have
//! nothing to do, so it counts as the one that a signal ends, and the functions alone say that it waits for something.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::{Out, text_of};
use crate::tasks::{Listed, Tasks};
use holdup_evidence::observed::{SeenThread, State};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("crash-bt", Family::Host, recognise).about("bt of the crash utility");

/// Lines of the beginning that are looked at.
const LOOKED_AT: usize = 40;

/// Frames of a stack that are kept.
const FRAMES: usize = 64;

/// Innermost frames among which is the scheduler's, of a task that sleeps.
const SCHEDULED: usize = 4;

/// What ends the stack of a task that does not run.
const SCHEDULER: [&str; 3] = ["__schedule", "schedule", "__switch_to"];

/// How the functions begin in which every task that sleeps stands.
const SWITCHES: [&str; 4] = ["__switch_to", "__schedule", "schedule", "io_schedule"];

fn recognise(head: &[u8]) -> Sureness {
    let head = text_of(head);
    let mut lines = head.lines().take(LOOKED_AT).map(str::trim);
    Sureness::certain_if(lines.any(|line| task(line).is_some()))
}

/// `PID: 49735  TASK: ffff803e5d040f80  CPU: 31  COMMAND: "lvm"`: its number and name.
fn task(line: &str) -> Option<(u32, &str)> {
    let rest = line.strip_prefix("PID: ")?;
    let (pid, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let rest = rest.trim_start().strip_prefix("TASK: ")?;
    let (_, rest) = rest.split_once("CPU: ")?;
    let (_, name) = rest.split_once("COMMAND: ")?;
    Some((pid.parse().ok()?, name.trim().trim_matches('"')))
}

/// `#3 [ffff0000c22db5a0] schedule_timeout at ffff000080a05144`; on some machines with a `+` and an offset.
fn frame(line: &str) -> Option<&str> {
    let (number, rest) = line.strip_prefix('#')?.split_once(' ')?;
    let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let (address, rest) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
    let address = address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = rest.trim_start().split([' ', '+', '(']).next()?;
    let named = !name.is_empty() && !name.starts_with("0x");
    (numbered && address && named).then_some(name)
}

#[derive(Debug, Default)]
struct Reader {
    task: Option<(SeenThread, Vec<String>)>,
    seen: Vec<(SeenThread, Vec<String>)>,
}

/// Tasks of one artefact that are kept.
const MAX_TASKS: usize = 20_000;

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some((pid, name)) = task(text) {
            self.next(out);
            let thread = SeenThread {
                pid: Some(pid).filter(|pid| *pid > 0),
                tid: Some(pid).filter(|pid| *pid > 0),
                name: name.to_owned(),
                quote: out.here(),
                ..SeenThread::default()
            };
            self.task = Some((thread, Vec::new()));
            return Understood::Evidence;
        }
        let Some((_, frames)) = &mut self.task else {
            return Understood::No;
        };
        if let Some(name) = frame(text) {
            if frames.len() < FRAMES {
                frames.push(name.to_owned());
            }
            return Understood::Evidence;
        }
        // Registers at the entry to the kernel: `RIP: 00007f…`, `PC: …`, `ORIG_RAX: …`; and `--- <IRQ stack> ---`.
        let registers = text.split_whitespace().next().is_some_and(|word| {
            word.ends_with(':')
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"_:".contains(&byte))
        });
        match registers || text.starts_with("---") || text.starts_with('[') {
            true => Understood::Ignorable,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.next(out);
        let all = std::mem::take(&mut self.seen);
        if all.is_empty() {
            return;
        }
        let mut tasks = Tasks::default();
        out.report(None, None, false);
        let listed = Listed {
            of_threads: None,
            states: false,
        };
        tasks.begin(None, listed, out);
        for (mut thread, frames) in all {
            let mut innermost = frames.iter().take(SCHEDULED);
            thread.state = match innermost.any(|name| SCHEDULER.contains(&name.as_str())) {
                true => State::Interruptible,
                false => State::Runnable,
            };
            let says = |name: &&String| !SWITCHES.iter().any(|begin| name.starts_with(begin));
            thread.kernel_function = frames.iter().find(says).cloned();
            thread.kernel_stack = Some(out.stack(frames.iter().map(String::as_str)));
            tasks.add(thread, out);
        }
        tasks.flush(out);
    }
}

impl Reader {
    fn next(&mut self, out: &mut Out<'_>) {
        let Some((thread, frames)) = self.task.take().filter(|(_, frames)| !frames.is_empty()) else {
            return;
        };
        match self.seen.len() < MAX_TASKS {
            true => self.seen.push((thread, frames)),
            false => out.account().left_out += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::State;

    const BT: &str = "PID: 812    TASK: ffff9a31  CPU: 2    COMMAND: \"backup agent\"\n #0 [ffffb0e0] __schedule at ffffffff9b1\n #1 [ffffb0e8] \
        schedule at ffffffff9b2\n #2 [ffffb0f0] rwsem_down_write_slowpath at ffffffff9b3\n #3 [ffffb0f8] ext4_setattr at ffffffffc01 \
        [ext4]\n    RIP: 00007f11  RSP: 00007ffd  RFLAGS: 00000246\n";

    #[test]
    fn a_task_with_its_stack() {
        let observed = read_text("bt", BT.as_bytes()).observed;
        assert_eq!(observed.sources[0].format, "crash-bt");
        let task = &observed.snapshots[0].threads[0];
        assert_eq!(
            (task.name.as_str(), task.pid, task.state),
            ("backup agent", Some(812), State::Interruptible)
        );
        let frames: Vec<&str> = observed.stacks.frames(task.kernel_stack.unwrap()).collect();
        assert_eq!(
            frames,
            [
                "__schedule",
                "schedule",
                "rwsem_down_write_slowpath",
                "ext4_setattr"
            ]
        );
    }

    #[test]
    fn a_task_on_its_cpu_is_no_sleeper() {
        let active = BT
            .replace("__schedule", "crash_nmi_callback")
            .replace("schedule at", "nmi_handle at");
        let observed = read_text("bt", active.as_bytes()).observed;
        assert!(
            observed.snapshots[0]
                .threads
                .iter()
                .all(|task| task.state == State::Runnable)
        );
    }

    #[test]
    fn it_is_found_below_a_log() {
        let text = format!(
            "[95482.999136]  connection8:0: detected conn error (1022)\n[95483.000001] sd 4:0:0:1: [sdc] a\n\n{BT}"
        );
        let observed = read_text("bt", text.as_bytes()).observed;
        assert!(
            observed.sources.iter().any(|source| source.format == "crash-bt"),
            "{:?}",
            observed.sources
        );
    }
}
