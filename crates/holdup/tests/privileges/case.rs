//! A command that is observed with less than everything, and what was reported of it.

use crate::support::{HOLDUP, conserved, json, lossy, lost};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files of `/proc/sys` are the whole machine's: one case at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What the command is, and what it ends with.
pub(crate) const COMMAND: [&str; 3] = ["sh", "-c", "sleep 1; exit 3"];

pub(crate) const STATUS: i32 = 3;

/// An ordinary user.
pub(crate) const NOBODY: &str = "65534";

/// What holdup told.
pub(crate) struct Verdict {
    pub(crate) backend: String,
    pub(crate) cause: String,
    /// Whether the sleep itself is among the waits.
    pub(crate) sleeps: bool,
    /// Whether the main cause's asker is a function.
    pub(crate) function: bool,
    pub(crate) not_measured: Vec<String>,
    /// Their fixes.
    pub(crate) fixes: Vec<String>,
}

/// `setpriv WORDS… holdup`, with a copy of holdup that anybody may run.
pub(crate) struct Case {
    pub(crate) directory: tempfile::TempDir,
}

impl Case {
    pub(crate) fn new() -> Case {
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(directory.path(), open).unwrap();
        std::fs::copy(HOLDUP, directory.path().join("holdup")).unwrap();
        Case { directory }
    }

    pub(crate) fn holdup(&self) -> std::path::PathBuf {
        self.directory.path().join("holdup")
    }

    pub(crate) fn with(&self, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(words).arg(self.holdup());
        command
    }

    /// An ordinary user, with these capabilities.
    pub(crate) fn nobody(&self, capabilities: &str) -> Command {
        let mut words = vec!["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        if !capabilities.is_empty() {
            words.extend(["--inh-caps", capabilities, "--ambient-caps", capabilities]);
        }
        self.with(&words)
    }

    /// What holdup says of a command, which ends as it does without it.
    pub(crate) fn reported(&self, name: &str, mut command: Command, subject: &[&str]) -> serde_json::Value {
        let file = self.directory.path().join("report.json");
        // That of another user's case.
        std::fs::remove_file(&file).ok();
        let output = command
            .args(["run", "--json", file.to_str().unwrap(), "--"])
            .args(subject)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(STATUS), "{name}: {said}");
        let report = json(&file);
        conserved(&report);
        report
    }

    /// Runs the command that sleeps, prints the line, and holds it to what must always be reported.
    pub(crate) fn observe(&self, name: &str, command: Command) -> Verdict {
        let report = self.reported(name, command, &COMMAND);
        let result = Verdict::of(&report);
        println!(
            "{name:<44} {:<5} {:<12} {:<9} {}",
            result.backend,
            result.cause,
            if result.function { "function" } else { "process" },
            result.beyond_the_usual().join("; ")
        );
        // Sampling does not always see the shell learn of the end of the one that slept, and there are machines whose kernel now and then
        // does not report a wakeup, which the report says: then the time stays with the shell's wait for that.
        let hidden = lost(&report, "wakeups not reported by the kernel") > 0;
        let stays = (result.backend == "proc" || hidden) && result.cause == "process.child";
        assert!(
            result.cause == "timer.sleep" || stays,
            "{name}: {}: {report:#}",
            result.cause
        );
        assert!(result.sleeps, "{name}: {report:#}");
        result
    }
}

impl Verdict {
    pub(crate) fn of(report: &serde_json::Value) -> Verdict {
        let list = |of: &serde_json::Value| of.as_array().unwrap().clone();
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let causes = list(&report["causes"]);
        let causes = causes.iter().filter(|cause| cause["cause"] != "sched.runqueue");
        let main = causes.max_by_key(|cause| cause["ns"].as_u64().unwrap()).unwrap();
        let waits = list(&report["waits"]);
        let wait = waits.iter().find(|wait| wait["cause"] == main["cause"]);
        let unseen = list(&report["coverage"]["not_measured"]);
        Verdict {
            backend: word(&report["coverage"]["backend"]),
            cause: word(&main["cause"]),
            sleeps: waits.iter().any(|wait| wait["cause"] == "timer.sleep"),
            function: wait.is_some_and(|wait| wait["asker"]["frame"].is_string()),
            not_measured: unseen.iter().map(|line| word(&line["what"])).collect(),
            fixes: unseen.iter().map(|line| word(&line["fix"])).collect(),
        }
    }

    /// What is lost beyond what sampling never sees.
    pub(crate) fn beyond_the_usual(&self) -> Vec<&str> {
        const USUAL: [&str; 4] = [
            "wakers (the critical path",
            "waits that ended between two samples",
            "kernel stacks beyond the innermost function",
            "callers beyond a function",
        ];
        let all = self.not_measured.iter().map(String::as_str);
        all.filter(|what| !USUAL.iter().any(|usual| what.starts_with(usual)))
            .collect()
    }

    pub(crate) fn fixed_by(&self, words: &str) -> bool {
        self.fixes.iter().any(|fix| fix.contains(words))
    }

    pub(crate) fn lacks(&self, words: &str) -> bool {
        self.not_measured.iter().any(|what| what.contains(words))
    }
}

/// `unshare WORDS… sh -ec SCRIPT setpriv … holdup` as an ordinary user.
pub(crate) fn unshared(case: &Case, words: &[&str], script: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{script}; exec \"$0\" \"$@\"");
    command.args(words).args(["sh", "-ec", &script, "setpriv"]);
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.arg(case.holdup());
    command
}

/// A command that is on a CPU all the time, by a program that names its own functions.
pub(crate) const COMPUTES: [&str; 3] = [
    "bash",
    "-c",
    "i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done; exit 3",
];

/// No other case runs meanwhile.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}
