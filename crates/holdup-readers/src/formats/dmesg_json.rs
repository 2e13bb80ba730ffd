//! `dmesg --json`.
//!
//! In: an object with the list `dmesg` of records with `time` in seconds since boot and `msg`. Out: what the kernel tells. Its
//! records are its lines.

use crate::format::{Family, Format, Shape, Sureness};
use crate::gather::Out;
use crate::kernel::{Kernel, Message};
use crate::stamp::Stamp;
use holdup_evidence::Ns;
use holdup_evidence::observed::When;
use serde::Deserialize;
use std::borrow::Cow;

pub(crate) static FORMAT: Format =
    Format::new("dmesg-json", Family::Logs, recognise, Shape::Document(read)).about("dmesg --json");

fn recognise(head: &[u8]) -> Sureness {
    let mut rest = head.trim_ascii_start();
    for token in [&b"{"[..], b"\"dmesg\"", b":", b"["] {
        match rest.strip_prefix(token) {
            Some(after) => rest = after.trim_ascii_start(),
            None => return Sureness::No,
        }
    }
    Sureness::Certain
}

#[derive(Debug, Deserialize)]
struct Record<'a> {
    time: Option<f64>,
    #[serde(borrow)]
    msg: Option<Cow<'a, str>>,
}

/// Record by record, so that a cut file is read as far as it goes.
fn read(document: &[u8], out: &mut Out<'_>) {
    let Some(start) = memchr::memchr(b'[', document) else {
        return;
    };
    let text = String::from_utf8_lossy(document.get(start + 1..).unwrap_or_default());
    let mut rest: &str = &text;
    let mut kernel = Kernel::default();
    let mut number = 0;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() || rest.starts_with(']') {
            break;
        }
        let mut records = serde_json::Deserializer::from_str(rest).into_iter::<Record<'_>>();
        number += 1;
        // A document has no lines for us: its records are counted, and quoted by their number.
        out.at_line(number);
        let Some(Ok(record)) = records.next() else {
            out.problem("the JSON is cut off or damaged; what came before that was read");
            break;
        };
        let after = records.byte_offset();
        let message = record.msg.unwrap_or_default();
        let stamp = record.time.and_then(since_boot).unwrap_or_default();
        let text = message.as_bytes();
        let understood = kernel.message(
            Message {
                text,
                stamp,
                line: text,
            },
            out,
        );
        out.count(text, understood);
        rest = rest.get(after..).unwrap_or_default();
    }
    kernel.end(out);
}

fn since_boot(seconds: f64) -> Option<Stamp> {
    let ns = (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1e9).round() as Ns)?;
    Some(Stamp {
        at: Some(When::SinceBoot(ns)),
        since_boot: Some(ns),
    })
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const TEXT: &str = r#"{
   "dmesg": [
      {
         "pri": 5,
         "time":     0.000000,
         "msg": "Linux version 6.1.0"
      },{
         "pri": 6,
         "time":     3.273318,
         "msg": "random: crng init done"
      }
   ]
}
"#;

    #[test]
    fn records_are_lines() {
        let reading = read_text("d", TEXT.as_bytes());
        assert_eq!(reading.observed.happenings.len(), 2);
        assert_eq!(reading.observed.happenings[1].since_boot, Some(3_273_318_000));
        assert_eq!(reading.accounts[0].lines, 2);
        assert_eq!(reading.accounts[0].problems, Vec::<String>::new());
    }

    #[test]
    fn cut_anywhere_it_is_read_as_far_as_it_goes() {
        for cut in 0..TEXT.len() {
            let reading = read_text("d", &TEXT.as_bytes()[..cut]);
            assert!(reading.observed.happenings.len() <= 2);
        }
        let cut = &TEXT.as_bytes()[..TEXT.find("3.273318").unwrap()];
        let reading = read_text("d", cut);
        assert_eq!(reading.observed.happenings.len(), 1);
        assert_eq!(reading.accounts[0].problems.len(), 1);
    }
}
