//! `holdup` without a command: what to do next on this machine.
//!
//! In: who asks, what can be traced, and what the machine is short of in one cheap look. Out: at most [`MAX_LINES`] lines. Deciding is apart from
//! looking, and is tested. That no command was named stays bad usage, and its exit status with it.

use crate::output;
use holdup_collect::{Figures, allowed_to_trace};
use holdup_model::host_figures::HostFigures;
use holdup_proc::{Root, capability};
use holdup_views::machine_words;
use std::time::Duration;

/// Lines of the answer.
const MAX_LINES: usize = 15;

/// How long the machine is looked at: a moment in which nobody wonders.
const LOOK: Duration = Duration::from_millis(250);

/// `CAP_BPF` and `CAP_SYS_ADMIN`, of which tracing needs one.
const TRACING: [u32; 2] = [39, 21];

/// Where the kernel describes its types, without which nothing is traced.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Who asks, and what may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Here {
    root: bool,
    traces: bool,
}

/// Looks and prints. What can't be printed is no matter: the exit status is that of bad usage.
pub(crate) fn guide() {
    let root = Root::system();
    let status = capability::read(&root, &mut Vec::new()).status;
    let has = |number: u32| status.effective.is_some_and(|all| all & (1 << number) != 0);
    let here = Here {
        root: status.euid == Some(0),
        traces: TRACING.into_iter().any(has)
            && std::path::Path::new(TYPES).exists()
            && allowed_to_trace().is_ok(),
    };
    let figures = Figures::begin(&root);
    std::thread::sleep(LOOK);
    let mut text = lines(here, &figures.finish()).join("\n");
    text.push('\n');
    output::print(text.as_bytes()).ok();
}

/// The answer.
fn lines(here: Here, figures: &HostFigures) -> Vec<String> {
    let sees = match (here.traces, here.root) {
        (true, _) => "You can trace here: holdup observes every wait of every process.".to_owned(),
        (false, true) => {
            "You are root, but tracing does not work here: holdup samples /proc instead.".to_owned()
        }
        (false, false) => {
            "You are not root: holdup samples your own processes. With sudo it traces all.".to_owned()
        }
    };
    let short = machine_words(figures);
    let machine = match short.is_empty() {
        true => "This machine is nearly idle right now.".to_owned(),
        false => format!("Right now: {}.", short.join(", ")),
    };
    let sudo = if here.root || here.traces { "" } else { "sudo " };
    let mut tries = vec![
        (format!("{sudo}holdup top"), "who waits now, and behind whom"),
        (
            format!("{sudo}holdup host"),
            "what this machine is short of, and who has it",
        ),
        (
            format!("{sudo}holdup attach -p PID -d 5"),
            "what a running process waits for",
        ),
    ];
    if !here.traces {
        tries.push((
            "holdup doctor".to_owned(),
            "what cannot be seen here, and what to change",
        ));
    }
    let mut all = vec![String::new(), sees, machine, String::new(), "Try:".to_owned()];
    all.extend(
        tries
            .iter()
            .map(|(command, what)| format!("  {command:<30} {what}")),
    );
    all.push(String::new());
    all.push("holdup --help lists all commands.".to_owned());
    all.truncate(MAX_LINES);
    all
}

#[cfg(test)]
mod tests {
    use super::{Here, MAX_LINES, lines};
    use holdup_model::host_figures::HostFigures;

    fn said(root: bool, traces: bool, figures: &HostFigures) -> String {
        let lines = lines(Here { root, traces }, figures);
        // One line on stderr stands before it.
        assert!(lines.len() < MAX_LINES);
        assert!(lines.iter().all(|line| line.len() <= 80), "{lines:?}");
        lines.join("\n")
    }

    #[test]
    fn it_says_what_works_for_whom() {
        let nothing = HostFigures::default();
        assert!(said(true, true, &nothing).contains("  holdup top "));
        assert!(!said(true, true, &nothing).contains("sudo"));
        assert!(said(false, false, &nothing).contains("  sudo holdup top "));
        assert!(said(true, false, &nothing).contains("holdup doctor"));
    }

    #[test]
    fn it_says_what_is_short() {
        let nothing = said(true, true, &HostFigures::default());
        assert!(nothing.contains("nearly idle"), "{nothing}");
        let busy: HostFigures = serde_json::from_value(serde_json::json!({
            "stretches": [{"from_ns": 0, "ns": 1}],
            "lines": [{"figure": "disk-busy", "of": "vda", "shares": [0.93]}],
        }))
        .unwrap();
        assert!(said(true, true, &busy).contains("disk vda 93.0 % busy"));
    }
}
