//! Java flight recordings: recognised, and said not to be read.
//!
//! The format is a chunked binary one whose types are described in each chunk. docs/design/artefacts.md, "Flight recordings" says
//! why no library reads it here. What the JDK's own `jfr print` shows of a recording is read ([`jfr_print`](super::jfr_print)), and
//! what async-profiler's converter makes of it.

use crate::format::{Family, Format, Shape, Sureness};
use crate::gather::Out;

pub(crate) static FORMAT: Format = Format::new(
    "jfr",
    Family::Profiles,
    |head| {
        if head.starts_with(MAGIC) {
            Sureness::Certain
        } else {
            Sureness::No
        }
    },
    Shape::Document(read),
)
.about("a JFR recording (as `jfr print` shows it)");

/// What a chunk begins with.
const MAGIC: &[u8] = b"FLR\0";

fn read(document: &[u8], out: &mut Out<'_>) {
    let kib = document.len() / 1024;
    out.problem(format!(
        "a Java flight recording of {kib} KiB is not read as it is: read what the JDK's `jfr print --stack-depth 64 FILE` \
         shows of it, or of an async-profiler recording what `jfrconv --wall -o collapsed FILE` makes of it"
    ));
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_recording_is_refused_with_a_sentence() {
        let reading = crate::read_text("r.jfr", b"FLR\0\0\x02\0\x01rest");
        assert_eq!(reading.observed.sources[0].format, "jfr");
        assert!(reading.accounts[0].problems[0].contains("jfr print"));
        assert!(reading.observed.is_empty());
    }
}
