//! `nfsiostat`: what a client of NFS asked of each mount, and how long it took.
//!
//! In: for each mount a heading, and for reads and writes names of columns and their values, which some versions put on lines of
//! their own. Out: a statement about the slowest kind of request: how long the server took, and how long it took in all.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("nfsiostat", Family::Host, recognise).about("nfsiostat");

/// What a heading says between the server's path and the place.
const MOUNTED: &str = " mounted on ";

/// Bytes of a name.
const NAME: usize = 120;

/// Values of one list, in their order: requests and KiB a second, KiB a request, sent again, the server's time, the whole time.
const AGAIN: usize = 3;
const SERVER: usize = 4;
const WHOLE: usize = 5;
const VALUES: usize = 10;

fn recognise(head: &[u8]) -> Sureness {
    let has = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    Sureness::certain_if(has(b"rpc bklog") && has(b"kB/op") && has(b"avg exe"))
}

#[derive(Debug, Default)]
struct Reader {
    mount: String,
    /// `read` or `write`, and the values that it has so far.
    list: Option<(&'static str, Quote, Vec<f64>)>,
    /// The slowest so far: the whole time in ms.
    slowest: Option<(f64, String, Quote)>,
}

impl Reader {
    /// A list is complete.
    fn close(&mut self) {
        let Some((name, quote, values)) = self.list.take() else {
            return;
        };
        let (Some(&server), Some(&whole)) = (values.get(SERVER), values.get(WHOLE)) else {
            return;
        };
        if self
            .slowest
            .as_ref()
            .is_some_and(|(slowest, _, _)| *slowest >= whole)
        {
            return;
        }
        let rate = values.first().copied().unwrap_or(0.0);
        let again = values.get(AGAIN).copied().unwrap_or(0.0);
        // An excerpt may begin below the name.
        let of = match self.mount.as_str() {
            "" => String::new(),
            mount => format!(" of {mount}"),
        };
        let mut text = format!(
            "{name}s{} take {whole} ms in all, of which the server takes {server} ms and the queue of the client {:.1} ms; \
             {rate} a second",
            of,
            (whole - server).max(0.0)
        );
        if again > 0.0 {
            text.push_str(&format!(", {again} sent again"));
        }
        self.slowest = Some((whole, text, quote));
    }
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        if let Some((from, on)) = text.split_once(MOUNTED) {
            self.close();
            let mount = format!("{} on {}", from.trim(), on.trim().trim_end_matches(':'));
            self.mount = mount.chars().take(NAME).collect();
            return Understood::Evidence;
        }
        let name = ["read:", "write:"]
            .iter()
            .find(|name| text.starts_with(**name))
            .map(|name| name.trim_end_matches(':'));
        if let Some(name) = name {
            self.close();
            self.list = Some((name, out.here(), Vec::new()));
            return Understood::Evidence;
        }
        if text.contains("rpc bklog") || text.starts_with("ops/s") {
            if !text.starts_with("ops/s") {
                self.close();
            }
            return Understood::Evidence;
        }
        let mut numbers = 0;
        for word in text.split_whitespace() {
            // The share of what was sent again stands in brackets behind it.
            if word.starts_with('(') {
                continue;
            }
            let Ok(number) = word.parse::<f64>() else {
                return Understood::No;
            };
            numbers += 1;
            if let Some((_, _, values)) = self.list.as_mut().filter(|(_, _, values)| values.len() < VALUES) {
                values.push(number);
            }
        }
        match numbers {
            0 => Understood::No,
            _ => Understood::Evidence,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close();
        if let Some((ms, text, quote)) = self.slowest.take() {
            let ns = (ms.clamp(0.0, 1e12) * 1e6) as Ns;
            out.statement(statements::one(StatementKind::Took, Some(ns), quote, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn the_slowest_kind_of_request_and_where_its_time_goes() {
        let text = "filer:/export mounted on /data:\n\n   op/s\t\trpc bklog\n  88.10 \t   0.00\n\
            read:            ops/s\t\t   kB/s\t\t  kB/op\t\tretrans\t\tavg RTT (ms)\tavg exe (ms)\n\
            \t\t 60.500 \t 1936.0 \t 32.0 \t 0 (0.0%) \t 1.200 \t 1.300\n\
            write:           ops/s\t\t   kB/s\t\t  kB/op\t\tretrans\t\tavg RTT (ms)\tavg exe (ms)\n\
            \t\t 12.000 \t 384.0 \t 32.0 \t 4 (0.1%) \t 20.500 \t 712.250\n";
        let reading = read_text("n", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "nfsiostat");
        assert_eq!(reading.accounts[0].not_understood, 0);
        let [one] = reading.observed.statements.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!(
            one.text,
            "writes of filer:/export on /data take 712.25 ms in all, of which the server takes 20.5 ms and the queue of the \
             client 691.8 ms; 12 a second, 4 sent again"
        );
    }

    #[test]
    fn an_excerpt_without_its_heading() {
        let text = "   op/s\t\trpc bklog\n   9.90\t0.00\nread:\tops/s\tkB/s\tkB/op\tretrans\tavg RTT (ms)\tavg exe (ms)\n\
            5.000\t9.000\t1.000\t0 (0.0%)\t30.000\t31.000\n";
        let reading = read_text("n", text.as_bytes());
        assert!(
            reading.observed.statements[0]
                .text
                .starts_with("reads take 31 ms in all, of which the server takes 30 ms"),
            "{reading:?}"
        );
    }

    #[test]
    fn rubbish_is_no_mount() {
        for text in [
            " mounted on rpc bklog kB/op",
            "a mounted on b:\nrpc bklog\nread: avg exe\n1 2 3 (\nwrite:\n1 2 3 4 1e999 nan\n",
        ] {
            assert!(
                read_text("n", text.as_bytes()).observed.statements.len() <= 1,
                "{text}"
            );
        }
    }
}
