//! The examples of README.md are real: each `console` block is run, and its output is compared with what the page shows.
//!
//! In: README.md. A line that begins with `$ ` is a command; the lines after it are its output. All blocks run in one shell, as root, in
//! the root of the repository, with a `/tmp` of their own. Compared are words: figures, process ids and times count as equal, and so do
//! line breaks. A word `…` in the page stands for any words.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod support;

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What the shell prints behind the output of each command.
const MARK: &str = "\u{1e}";

/// Stands in the page for any words.
const ANYTHING: &str = "…";

/// What a figure, a process id or a time becomes.
const FIGURE: &str = "#";

/// Units of figures: `970 ms` and `1.02 s` are the same.
const UNITS: &[&str] = &["ns", "µs", "ms", "s", "min", "h", "%", "B", "KiB", "MiB", "GiB"];

/// A background job that is not asleep after this has failed: without a limit the test would hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at whether a background job is asleep.
const PAUSE: Duration = Duration::from_millis(10);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command, and what the page says that it prints.
struct Example {
    command: String,
    output: String,
}

/// The commands of all blocks, in their order.
fn examples(page: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match line.strip_prefix("$ ") {
                Some(command) => found.push(Example {
                    command: command.to_owned(),
                    output: String::new(),
                }),
                None => {
                    let last = found.last_mut().expect("a block begins with a command");
                    last.output.push_str(line);
                    last.output.push('\n');
                }
            },
        }
    }
    found
}

/// A shell in a session of its own; dropped, it is killed with all that it started.
struct Shell {
    child: Child,
    commands: ChildStdin,
    output: ChildStdout,
}

impl Shell {
    fn start() -> Shell {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "bash"])
            .current_dir(root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // SAFETY: setsid is async-signal-safe, and a child that was just forked leads no process group.
        unsafe {
            command.pre_exec(|| {
                nix::unistd::setsid()?;
                Ok(())
            });
        }
        let mut child = command.spawn().unwrap();
        let commands = child.stdin.take().unwrap();
        let output = child.stdout.take().unwrap();
        let mut shell = Shell {
            child,
            commands,
            output,
        };
        let binaries = Path::new(support::HOLDUP).parent().unwrap();
        shell.run("exec 2>&1");
        shell.run(&format!("PATH={}:$PATH", binaries.display()));
        shell.run("sudo() { \"$@\"; }");
        let printed = shell.run("mount -t tmpfs tmpfs /tmp");
        assert_eq!(printed, "", "the examples have a /tmp of their own");
        shell
    }

    /// Runs a command and returns what it printed. Of one in the background it waits until all of it is asleep.
    fn run(&mut self, command: &str) -> String {
        // Commands must not read the commands behind them.
        writeln!(self.commands, "{{ {command}\n}} </dev/null; printf '{MARK}'").unwrap();
        let printed = support::read_until(&mut self.output, MARK);
        let words = command.split('#').next().unwrap_or_default();
        if words.trim_end().ends_with('&') {
            self.until_asleep();
        }
        printed.trim_end_matches(MARK).to_owned()
    }

    /// A job that is blocked in its own program has come to what the example is about: it holds its lock, or waits in its read.
    fn until_asleep(&self) {
        let until = Instant::now() + PATIENCE;
        let asleep = |process: &Process| process.state == "S" && process.name != "bash";
        loop {
            let processes = self.processes();
            if !processes.is_empty() && processes.iter().all(asleep) {
                return;
            }
            assert!(Instant::now() < until, "a background job does not block");
            std::thread::sleep(PAUSE);
        }
    }

    /// All processes of the session but the shell.
    fn processes(&self) -> Vec<Process> {
        let shell = self.child.id();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.filter(|pid| *pid != shell)
            .filter_map(Process::read)
            .filter(|process| process.session == shell)
            .collect()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for process in self.processes() {
            let pid = nix::unistd::Pid::from_raw(process.pid.cast_signed());
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).ok();
        }
        self.child.kill().ok();
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).ok();
        self.child.wait().ok();
    }
}

/// A process, as `/proc/PID/stat` has it.
struct Process {
    pid: u32,
    name: String,
    state: String,
    session: u32,
}

impl Process {
    fn read(pid: u32) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?.to_owned();
        let session = fields.nth(2)?.parse().ok()?;
        Some(Process {
            pid,
            name: name.to_owned(),
            state,
            session,
        })
    }
}

/// The words of a text, figures masked.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = masked(word);
        let unit = word.trim_end_matches([',', ';', '.', ':']);
        if let Some(last) = words.last_mut()
            && last.ends_with(FIGURE)
            && (UNITS.contains(&unit) || unit == FIGURE)
        {
            // `1 min 42 s` is one figure.
            last.push_str(&word[unit.len()..]);
            continue;
        }
        words.push(word);
    }
    words
}

/// A word with each number in it masked. What is in front of a number says how exact it is.
fn masked(word: &str) -> String {
    let word = word.trim_start_matches(['≥', '~', '>', '<', '±']);
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        out.push_str(&rest[..start]);
        let number = &rest[start..];
        let hexadecimal = number.starts_with("0x");
        let belongs = |character: char| match hexadecimal {
            true => character.is_ascii_alphanumeric(),
            false => character.is_ascii_digit() || character == '.',
        };
        let end = number
            .find(|character| !belongs(character))
            .unwrap_or(number.len());
        let end = number[..end].trim_end_matches('.').len();
        out.push_str(FIGURE);
        rest = &number[end..];
    }
    out.push_str(rest);
    out
}

/// Whether a text is as the page has it.
fn agrees(page: &str, printed: &str) -> bool {
    let (page, printed) = (words(page), words(printed));
    let mut parts = page.split(|word| word == ANYTHING);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&[String]> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let Some(place) = rest.windows(part.len()).position(|window| window == part) else {
            return false;
        };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

/// There are machines whose kernel now and then does not report a wakeup; holdup says so, and the report lacks what hangs on it. A session
/// with such a report is made again, so often at most.
const SESSIONS_MAX: usize = 4;

/// What holdup says then.
const HIDDEN: &str = "wakeups not reported by the kernel";

/// What it says where others had the CPUs meanwhile: a build beside the tests is no trouble of the examples.
const CONTENDED: &str = "sched.runqueue";

#[test]
fn the_examples_of_the_readme_print_what_it_shows() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let examples = examples(&page);
    let observing = examples
        .iter()
        .filter(|example| example.command.contains("holdup "));
    assert!(observing.count() >= 4, "README.md has four examples");
    let mut wrong = Vec::new();
    for _ in 0..SESSIONS_MAX {
        wrong = session(&examples);
        let disturbed = |one: &String| one.contains(HIDDEN) || one.contains(CONTENDED);
        if !wrong.iter().any(disturbed) {
            break;
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Runs all examples in one shell; those that print something else.
fn session(examples: &[Example]) -> Vec<String> {
    let mut shell = Shell::start();
    let mut wrong = Vec::new();
    for Example { command, output } in examples {
        let printed = shell.run(command);
        if !agrees(output, &printed) {
            wrong.push(format!(
                "$ {command}\nREADME.md shows:\n{output}\nit printed:\n{printed}"
            ));
        }
    }
    wrong
}

#[test]
fn figures_differ_and_words_do_not() {
    let page = " 99.3 %   963 ms   waiting for a lock\n  asked by  flock+0x280a ←  …\n …\n held by flock (pid 17, lock)";
    assert!(agrees(
        page,
        "100.0 %  ≥1 min 42 s waiting for a\nlock asked by flock+0xb1 ← main held by flock (pid 9, lock)"
    ));
    assert!(!agrees(
        page,
        "99.3 % 963 ms waiting for a child asked by flock+0x1 ← main held by flock (pid 9, lock)"
    ));
    assert!(!agrees(
        page,
        "99.3 % 963 ms waiting for a lock asked by flock+0x1 ← main"
    ));
    assert!(!agrees("one two", "one two three"));
    assert!(agrees("one …", "one two three"));
}
