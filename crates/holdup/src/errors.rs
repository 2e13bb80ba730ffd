//! Which errors have a page, and where it is.
//!
//! In: an error. Out: its kind, and the address of a section of `docs/errors.md`, which says what leads to it and what to do. The type decides,
//! never the words. A test holds each kind against the page.

use holdup_bpf::TraceError;
use holdup_collect::EndedBefore;
use holdup_subject::subject::NotShown;

/// The page.
const PAGE: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/errors.md");

/// A kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The kernel does not let holdup trace.
    NotTraced,
    /// `/proc` is that of another PID namespace.
    ProcessesNotShown,
    /// What was named ended before it could be observed.
    EndedBefore,
    /// A recording can't be read or written.
    Recording,
    /// A file can't be written where it was to be.
    OutputRefused,
}

impl Kind {
    #[cfg(test)]
    const ALL: [Kind; 5] = [
        Kind::NotTraced,
        Kind::ProcessesNotShown,
        Kind::EndedBefore,
        Kind::Recording,
        Kind::OutputRefused,
    ];

    /// That of an error, whatever was said around it; `None` where its sentence is all there is.
    pub(crate) fn of(error: &anyhow::Error) -> Option<Kind> {
        let is = |kind: Kind, found: bool| found.then_some(kind);
        error.chain().find_map(|error| {
            is(Kind::NotTraced, error.is::<TraceError>())
                .or_else(|| is(Kind::ProcessesNotShown, error.is::<NotShown>()))
                .or_else(|| is(Kind::EndedBefore, error.is::<EndedBefore>()))
                .or_else(|| is(Kind::Recording, error.is::<holdup_recording::Error>()))
                .or_else(|| is(Kind::OutputRefused, error.is::<holdup_files::Refused>()))
        })
    }

    fn anchor(self) -> &'static str {
        match self {
            Kind::NotTraced => "holdup-cannot-trace",
            Kind::ProcessesNotShown => "processes-are-not-shown",
            Kind::EndedBefore => "what-was-named-has-ended",
            Kind::Recording => "a-recording-cannot-be-used",
            Kind::OutputRefused => "a-file-cannot-be-written",
        }
    }

    /// Where its page is.
    pub(crate) fn link(self) -> String {
        format!("{PAGE}#{}", self.anchor())
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;
    use anyhow::Context;
    use holdup_subject::subject::NotShown;

    #[test]
    fn each_kind_has_a_section() {
        let page = include_str!("../../../docs/errors.md");
        let anchors: Vec<String> = page
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .map(|title| title.to_lowercase().replace(' ', "-"))
            .collect();
        let expected: Vec<&str> = Kind::ALL.iter().map(|kind| kind.anchor()).collect();
        assert_eq!(anchors, expected);
    }

    #[test]
    fn what_was_said_around_an_error_does_not_hide_its_kind() {
        let shown: Result<(), _> = Err(NotShown);
        let error = shown.context("cannot observe").unwrap_err();
        assert_eq!(Kind::of(&error), Some(Kind::ProcessesNotShown));
        assert_eq!(Kind::of(&anyhow::anyhow!("something else")), None);
    }
}
