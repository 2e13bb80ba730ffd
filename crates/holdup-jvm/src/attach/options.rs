//! How a JVM is set to answer who asks.
//!
//! Its own performance data has all of its options, wherever they came from. Where it shares none, the words are looked at that it was
//! started with: its command line, and those variables of its environment that have options for a JVM. Reading these can block, so it
//! is for a process that can be left behind; nothing is kept of them but options that begin with `-X`.

use holdup_proc::Root;
use std::fs::File;
use std::io::Read;

/// Most that is read of either, bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Variables whose value a JVM takes options from.
const VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS=", "_JAVA_OPTIONS="];

/// Whether it answers nobody.
pub(super) fn disabled(options: &[String]) -> bool {
    set(options, "DisableAttachMechanism")
}

/// Whether it leaves signals to others. Such a one listens from its start.
pub(super) fn leaves_signals(options: &[String]) -> bool {
    set(options, "ReduceSignalUsage") || options.iter().any(|option| option == "-Xrs")
}

fn set(options: &[String], name: &str) -> bool {
    let value = |option: &String| {
        let (sign, rest) = option.strip_prefix("-XX:")?.split_at_checked(1)?;
        (rest == name).then_some(sign == "+")
    };
    // The last one counts.
    options.iter().rev().find_map(value).unwrap_or(false)
}

/// The options that a process was started with. May block.
pub(super) fn at_start(root: &Root, pid: u32) -> Vec<String> {
    let process = root.proc.join(pid.to_string());
    let read = |name: &str| {
        let mut text = Vec::new();
        let file = File::open(process.join(name)).ok();
        file.and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text).ok());
        String::from_utf8_lossy(&text).into_owned()
    };
    let (line, environment) = (read("cmdline"), read("environ"));
    let variables = environment
        .split('\0')
        .filter_map(|variable| VARIABLES.iter().find_map(|name| variable.strip_prefix(name)));
    let words = line.split('\0').chain(variables.flat_map(str::split_whitespace));
    words
        .filter(|word| word.starts_with("-X"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{at_start, disabled, leaves_signals};
    use holdup_proc::Root;

    fn words(options: &str) -> Vec<String> {
        options.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_last_word_counts() {
        assert!(disabled(&words("-Xmx64m -XX:+DisableAttachMechanism")));
        assert!(!disabled(&words(
            "-XX:+DisableAttachMechanism -XX:-DisableAttachMechanism"
        )));
        assert!(!disabled(&words("-XX: -XX:é -Xrs")));
        assert!(leaves_signals(&words("-Xrs")) && leaves_signals(&words("-XX:+ReduceSignalUsage")));
        assert!(!leaves_signals(&words("-Xmx64m")));
    }

    #[test]
    fn options_are_found_on_the_command_line_and_in_the_environment() {
        let folder = tempfile::TempDir::new().unwrap();
        let process = folder.path().join("proc/7");
        std::fs::create_dir_all(&process).unwrap();
        std::fs::write(process.join("cmdline"), "java\0-Xrs\0Main\0").unwrap();
        std::fs::write(
            process.join("environ"),
            "SECRET=-Xsecret\0_JAVA_OPTIONS=-Xmx1m -Dx=y\0",
        )
        .unwrap();
        let root = Root::below(folder.path());
        assert_eq!(at_start(&root, 7), ["-Xrs", "-Xmx1m"]);
        assert!(at_start(&root, 8).is_empty());
    }
}
