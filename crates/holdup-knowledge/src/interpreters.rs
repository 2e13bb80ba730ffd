//! Files that hold interpreters and virtual machines.
//!
//! In: a frame. Out: whether it is the interpreter's own code, whose functions say nothing of the program that it runs.

use holdup_evidence::{Frame, Language};

/// How their names begin.
const INTERPRETERS: &[&str] = &[
    "python3",
    "libpython3",
    "ruby",
    "libruby",
    "php",
    "libphp",
    "perl",
    "libperl",
    "node",
    "libnode",
    "java",
    "libjvm",
];

/// Whether a frame is an interpreter's own code, and none of the program that it runs.
#[must_use]
pub fn is_own_code(frame: &Frame) -> bool {
    let module = frame.module.as_deref().unwrap_or_default();
    frame.language == Language::Native && INTERPRETERS.iter().any(|file| module.starts_with(file))
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
    }
}
