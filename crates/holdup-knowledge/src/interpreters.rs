//! Files that hold interpreters and virtual machines.
//!
//! In: a frame. Out: whether it is the interpreter's own code, whose functions say nothing of the program that it runs.

use crate::{python, ruby};
use holdup_evidence::{Frame, Language};

/// How their names begin.
const INTERPRETERS: &[&str] = &[
    "python3",
    "libpython3",
    "ruby",
    "libruby",
    "php",
    "php-fpm",
    "php-cgi",
    "libphp",
    "perl",
    "libperl",
    "bash",
    "node",
    "nodejs",
    "libnode",
    "java",
    "libjvm",
];

/// Whether a frame is an interpreter's own code, and none of the program that it runs.
#[must_use]
pub fn is_own_code(frame: &Frame) -> bool {
    let module = frame.module.as_deref().unwrap_or_default();
    // After the name comes a version, or what kind of file it is: any other program may begin with the same letters.
    let is = |file: &&str| {
        let rest = module.strip_prefix(*file);
        let rest = rest.map(|rest| rest.trim_start_matches('-'));
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphabetic() || next == '_'))
    };
    frame.language == Language::Native && INTERPRETERS.iter().any(is)
}

/// The function that asked, in the stack of a thread of an interpreter with a global lock: the innermost of the program's own, else what the
/// thread began with.
#[must_use]
pub fn asker(stack: &[Frame]) -> Option<&Frame> {
    let frames = || stack.iter().filter(|frame| frame.language == Language::Ruby);
    let own = || frames().find(|frame| !ruby::of_library(frame.file.as_deref().unwrap_or_default()));
    let in_ruby = || own().or_else(|| frames().next_back());
    python::asker(stack).or_else(in_ruby)
}

#[cfg(test)]
mod tests {
    use super::is_own_code;
    use holdup_evidence::{Frame, Language};

    #[test]
    fn functions_of_the_program_are_not_the_interpreters() {
        let frame = |module: &str, language| Frame {
            module: Some(module.to_owned()),
            language,
            ..Frame::default()
        };
        assert!(is_own_code(&frame("python3.11", Language::Native)));
        assert!(!is_own_code(&frame("python3.11", Language::Python)));
        assert!(!is_own_code(&frame("redis-server", Language::Native)));
        for interpreter in [
            "node",
            "nodejs",
            "libnode.so.108",
            "php-fpm8.2",
            "perl",
            "libruby-3.1.so.3.1.2",
        ] {
            assert!(
                is_own_code(&frame(interpreter, Language::Native)),
                "{interpreter}"
            );
        }
        for other in ["node_exporter", "nodewatch", "node-feed", "phpmeter"] {
            assert!(!is_own_code(&frame(other, Language::Native)), "{other}");
        }
    }
}
