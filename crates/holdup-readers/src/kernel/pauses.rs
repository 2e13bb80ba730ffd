//! How long the kernel said nothing while it booted: it waited for a device then, or somebody else worked.
//!
//! In: its messages in order. Out: a span for each pause of some length in the first minutes. Later silence says nothing.

use super::Message;
use crate::gather::{Out, quoted};
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Span, SpanKind, When};

const SECOND: Ns = 1_000_000_000;

/// Nanoseconds after boot up to which pauses are looked for: slower boots are none.
const BOOT: Ns = 900 * SECOND;

/// Nanoseconds from which a pause is kept: what people notice of a boot.
const PAUSE: Ns = SECOND;

/// Pauses that are kept of one boot.
const KEPT: u32 = 200;

/// The last message, to be quoted should a pause follow.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    at: Option<Ns>,
    quote: Quote,
    line: Vec<u8>,
    kept: u32,
}

impl Pauses {
    /// Takes a message.
    pub(super) fn line(&mut self, message: Message<'_>, out: &mut Out<'_>) {
        let Some(now) = message.stamp.since_boot.filter(|at| *at <= BOOT) else {
            self.at = None;
            return;
        };
        // What was before the first line is another boot's.
        if message.text.starts_with(b"Linux version ") {
            self.at = None;
            self.kept = 0;
        }
        if let Some(before) = self.at
            && now.saturating_sub(before) >= PAUSE
            && self.kept < KEPT
        {
            self.kept += 1;
            out.span(Span {
                kind: SpanKind::KernelPause,
                name: quoted(&self.line),
                began: Some(When::SinceBoot(before)),
                ns: now - before,
                thread: None,
                usual: None,
                quote: self.quote.clone(),
                text: quoted(message.text),
            });
        }
        self.at = Some(now);
        self.quote = out.here();
        self.line.clear();
        self.line.extend_from_slice(message.text);
    }
}
