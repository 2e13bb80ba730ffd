//! Tests that failed: which, and what they said, for the end of the output, where a reader looks first and a cut log still has it.
//!
//! In: the lines of a test program's output as they come. Out: the names, and the panic of each in a few lines.

use std::fmt::Write;

/// So many lines of a failed test's own output are repeated at the end: a panic with both values and its place.
const MAX_LINES_OF_ONE: usize = 30;
/// So many failed tests are quoted at the end; of more, only names are.
const MAX_QUOTED: usize = 12;

/// What the output said of tests that failed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    /// In the order in which they failed.
    pub(super) names: Vec<String>,
    /// What each printed, by name.
    quotes: Vec<(String, Vec<String>)>,
    /// Whether the next lines belong to the last quote.
    inside: bool,
}

impl Failed {
    /// Takes one line of the output.
    pub(super) fn hear(&mut self, line: &str) {
        if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.names.push(name.to_owned());
        } else if let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.inside = self.quotes.len() < MAX_QUOTED;
            if self.inside {
                self.quotes.push((name.to_owned(), Vec::new()));
            }
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.inside = false;
        } else if self.inside
            && let Some((_, lines)) = self.quotes.last_mut()
            && !line.is_empty()
        {
            // The last lines: a panic comes after what the test printed before.
            if lines.len() == MAX_LINES_OF_ONE {
                lines.remove(0);
            }
            lines.push(line.to_owned());
        }
    }

    /// What the end of the output says of them. No line of it is one that counts.
    pub(super) fn summary(&self) -> String {
        let mut text = String::new();
        for name in &self.names {
            let _ = writeln!(text, "failed: {name}");
            let said = self.quotes.iter().find(|(of, _)| of == name);
            for line in said.iter().flat_map(|(_, lines)| lines) {
                let _ = writeln!(text, "    | {line}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Failed, MAX_LINES_OF_ONE};

    fn heard(output: &str) -> Failed {
        let mut failed = Failed::default();
        for line in output.lines() {
            failed.hear(line);
        }
        failed
    }

    #[test]
    fn names_and_the_panic_of_each() {
        let failed = heard(
            "running 2 tests\ntest a::b ... ok\ntest c ... FAILED\n\nfailures:\n\n---- c stdout ----\n\nthread 'c' panicked at x.rs:1:1:\n12 passed, 3 failed\n\nfailures:\n    c\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored",
        );
        assert_eq!(failed.names, ["c"]);
        assert_eq!(
            failed.summary(),
            "failed: c\n    | thread 'c' panicked at x.rs:1:1:\n    | 12 passed, 3 failed\n"
        );
    }

    #[test]
    fn of_a_long_output_the_end_is_kept() {
        let long: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let failed = heard(&format!(
            "test c ... FAILED\n---- c stdout ----\n{long}failures:\nc"
        ));
        let summary = failed.summary();
        assert_eq!(summary.lines().count(), MAX_LINES_OF_ONE + 1);
        assert!(summary.ends_with("    | line 99\n"), "{summary}");
    }

    #[test]
    fn nothing_failed_and_nothing_is_said() {
        assert_eq!(
            heard("test a ... ok\ntest result: ok. 1 passed; 0 failed").summary(),
            ""
        );
    }
}
