//! What `systemd-analyze` prints, a file for each of its words.
//!
//! Shared here: a length of time, of a unit or of a part of the boot, as a span.

pub(super) mod blame;
pub(super) mod chain;
pub(super) mod dump;
pub(super) mod jobs;
pub(super) mod networkctl;
pub(super) mod plot;
pub(crate) mod time;

use crate::gather::{Out, quoted};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Span, SpanKind};

/// A length that this line tells, of something that has no beginning here.
pub(crate) fn length(kind: SpanKind, name: &[u8], ns: Ns, line: &[u8], out: &Out<'_>) -> Span {
    Span {
        kind,
        name: String::from_utf8_lossy(name).into_owned(),
        began: None,
        ns,
        thread: None,
        usual: None,
        quote: out.here(),
        text: quoted(line),
    }
}
