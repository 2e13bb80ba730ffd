//! Writes events as they come.
//!
//! In: events, in the order in which they are attributed. Out: a file, whole once [`Writer::finish`] has returned. What can't be written
//! must not disturb an observation: the first error is kept, nothing more is written, and it is returned at the end.

use crate::{Ending, Head, Line, Settings, VERSION};
use flate2::Compression;
use flate2::write::GzEncoder;
use holdup_evidence::Event;
use serde::Serialize;
use std::io::{self, BufWriter, Write};

/// How much is packed at once, bytes.
const COLLECTED_BYTES: usize = 64 << 10;

/// A file that is being written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    // Lines are collected before they are packed: packing a line in the pieces that a serializer writes takes several times as long.
    out: Option<BufWriter<GzEncoder<W>>>,
    failed: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Begins; `version` is holdup's.
    pub fn begin(out: W, version: &str, settings: Settings) -> Writer<W> {
        let mut writer = Writer {
            out: Some(BufWriter::with_capacity(
                COLLECTED_BYTES,
                GzEncoder::new(out, Compression::fast()),
            )),
            failed: None,
        };
        writer.line(&Head {
            holdup_events: VERSION,
            holdup: version.to_owned(),
            settings,
        });
        writer
    }

    /// Writes the next event.
    pub fn event(&mut self, event: &Event) {
        /// As [`Line`], without a copy of the event.
        #[derive(Serialize)]
        #[serde(rename_all = "lowercase")]
        enum Borrowed<'a> {
            Event(&'a Event),
        }
        self.line(&Borrowed::Event(event));
    }

    /// Writes how it ended, and gives the file back.
    ///
    /// # Errors
    /// The first that there was.
    pub fn finish(mut self, ending: Ending) -> io::Result<W> {
        self.line(&Line::End(Box::new(ending)));
        match (self.failed, self.out) {
            (None, Some(out)) => {
                let packer = out.into_inner().map_err(io::IntoInnerError::into_error)?;
                packer.finish()
            }
            (failed, _) => Err(failed.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn line(&mut self, line: &impl Serialize) {
        let Some(out) = &mut self.out else { return };
        let written = serde_json::to_writer(&mut *out, line)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n"));
        if let Err(error) = written {
            self.failed = Some(error);
            self.out = None;
        }
    }
}
