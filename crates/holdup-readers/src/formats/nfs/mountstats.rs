//! `/proc/self/mountstats`, and what `mountstats` prints of it: how long requests of each mount took since it was mounted.
//!
//! In: for each mount a line of its device, its age, its connection, and a line for each operation with its counts and sums; or the tool's
//! averages. Out: for each mount of NFS a statement about the operation that took most time in all: the queue of the client, the server and
//! the rest; how often it was sent again. Source: `net/sunrpc/stats.c` and `fs/nfs/super.c` of the kernel, `mountstats.py` of nfs-utils.

use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::formats::report::{any_line, holds, name_of, ns_of, number, rounded, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("nfs-mountstats", Family::Host, recognise)
    .about("/proc/self/mountstats, mountstats");

/// Milliseconds that a request may take at the mean: up to so long a server answers as local disks do (`nfsiostat` of Red Hat's guides
/// speaks of 10 to 20 ms).
const MAX_REQUEST_MS: f64 = 20.0;

/// The part of all requests from which those that were sent again are many: the server or the network does not answer in time.
const MUCH_SENT_AGAIN: f64 = 0.05;

/// Mounts that are told.
const MAX_MOUNTS: usize = 200;

fn recognise(head: &[u8]) -> Sureness {
    let raw = holds(head, "statvers=") && holds(head, "per-op statistics");
    let tool = holds(head, "Stats for ") && holds(head, "avg bytes sent per op");
    Sureness::certain_if(raw && any_line(head, |line| Mount::of(line).is_some()) || tool)
}

/// One operation of a mount: sums of milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
struct Operation {
    name: String,
    requests: f64,
    sent: f64,
    timeouts: f64,
    queue_ms: f64,
    server_ms: f64,
    whole_ms: f64,
}

impl Operation {
    /// `READ: 1204 1210 2 173376 4931584 31 20450 20520 0`: requests, sent, major timeouts, bytes out and in, ms in the queue, ms of the
    /// server, ms in all, and errors of newer kernels.
    fn of(line: &str) -> Option<Operation> {
        let (name, figures) = line.split_once(':')?;
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        if name.is_empty() || !is_name {
            return None;
        }
        let values: Vec<f64> = figures.split_whitespace().take(10).map_while(number).collect();
        let [requests, sent, timeouts, _, _, queue, server, whole, ..] = values.as_slice() else {
            return None;
        };
        Some(Operation {
            name: name_of(name),
            requests: *requests,
            sent: *sent,
            timeouts: *timeouts,
            queue_ms: *queue,
            server_ms: *server,
            whole_ms: *whole,
        })
    }
}

#[derive(Debug, Default)]
struct Mount {
    name: String,
    operations: u64,
    /// The one that took most time in all.
    longest: Operation,
    all_ms: f64,
    requests: f64,
    sent: f64,
    age: String,
    quote: Quote,
}

impl Mount {
    /// `device filer:/export mounted on /data with fstype nfs4 statvers=1.1`, `Stats for filer:/export mounted on /data:`.
    fn of(line: &str) -> Option<String> {
        let (rest, is_raw) = match line.strip_prefix("device ") {
            Some(rest) => (rest, true),
            None => (line.strip_prefix("Stats for ")?, false),
        };
        let (device, behind) = rest.split_once(" mounted on ")?;
        if is_raw {
            let (place, kind) = behind.split_once(" with fstype ")?;
            kind.starts_with("nfs")
                .then(|| format!("{} on {}", name_of(device), name_of(place)))
        } else {
            Some(format!(
                "{} on {}",
                name_of(device),
                name_of(behind.trim_end_matches(':'))
            ))
        }
    }

    fn add(&mut self, operation: Operation, quote: Quote) {
        self.operations += 1;
        self.all_ms += operation.whole_ms;
        self.requests += operation.requests;
        self.sent += operation.sent;
        if operation.requests > 0.0 && operation.whole_ms >= self.longest.whole_ms {
            self.longest = operation;
            self.quote = quote;
        }
    }

    fn sentence(&self) -> Option<Statement> {
        let one = &self.longest;
        if one.requests <= 0.0 {
            return None;
        }
        let ms = |sum: f64| duration(ns_of(sum / one.requests / 1e3));
        let mean_ms = one.whole_ms / one.requests;
        let share = if self.all_ms > 0.0 {
            one.whole_ms / self.all_ms
        } else {
            0.0
        };
        let mut text = format!(
            "{} of {} took {} each at the mean: {} in the queue of the client, {} at the server; {:.0} requests, {:.0} % of the time of all",
            one.name,
            self.name,
            ms(one.whole_ms),
            ms(one.queue_ms),
            ms(one.server_ms),
            one.requests,
            100.0 * share
        );
        let again = (self.sent - self.requests).max(0.0);
        let again_share = again / self.requests.max(1.0);
        if again > 0.0 {
            text.push_str(&format!(
                "; {again:.0} of all requests were sent again ({} %)",
                rounded(100.0 * again_share)
            ));
        }
        if one.timeouts > 0.0 {
            text.push_str(&format!("; {:.0} timed out", one.timeouts));
        }
        if !self.age.is_empty() {
            text.push_str(&format!("; since it was mounted, {} ago", self.age));
        }
        let kind = if again_share >= MUCH_SENT_AGAIN {
            StatementKind::TimedOut
        } else if mean_ms >= MAX_REQUEST_MS {
            StatementKind::Took
        } else {
            text.push_str(&format!("; up to {MAX_REQUEST_MS:.0} ms is as of a local disk"));
            StatementKind::WithinNorm
        };
        Some(statements::one(
            kind,
            Some(ns_of(mean_ms / 1e3)),
            self.quote.clone(),
            text,
        ))
    }
}

#[derive(Debug, Default)]
struct Reader {
    mount: Option<Mount>,
    /// Whether the lines are of a mount that is none of NFS.
    other: bool,
    /// The operation of the tool's form that is being read.
    operation: Option<(Operation, Quote)>,
    mounts: usize,
}

impl Reader {
    fn end_operation(&mut self) {
        if let Some((operation, quote)) = self.operation.take()
            && let Some(mount) = &mut self.mount
        {
            mount.add(operation, quote);
        }
    }

    fn close(&mut self, out: &mut Out<'_>) {
        self.end_operation();
        let Some(one) = self.mount.take().and_then(|mount| mount.sentence()) else {
            return;
        };
        match self.mounts < MAX_MOUNTS {
            true => out.statement(one),
            false => out.account().left_out += 1,
        }
        self.mounts += 1;
    }

    /// The tool's averages: `12 ops (0%)   0 errors (0%)`, `backlog wait: 0.1  RTT: 1.2  total execute time: 1.3 (milliseconds)`.
    fn of_tool(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let name = text
            .strip_suffix(':')
            .filter(|name| !name.is_empty() && !name.contains(' '));
        if let Some(name) =
            name.filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
        {
            self.end_operation();
            let new = Operation {
                name: name_of(name),
                ..Operation::default()
            };
            self.operation = Some((new, out.here()));
            return Some(());
        }
        let (operation, _) = self.operation.as_mut()?;
        if let Some((count, rest)) = text.split_once(" ops (") {
            operation.requests = number(count.trim())?;
            operation.sent = operation.requests;
            if let Some((before, _)) = rest.split_once(" retrans") {
                let again = before.split_whitespace().last().and_then(number).unwrap_or(0.0);
                operation.sent += again;
            }
            return Some(());
        }
        let behind = |name: &str| {
            let rest = text.split_once(name)?.1.trim_start();
            number(rest.split_whitespace().next()?)
        };
        if let Some(whole) = behind("total execute time:") {
            let sum = |mean: Option<f64>| mean.unwrap_or(0.0) * operation.requests;
            (operation.whole_ms, operation.server_ms, operation.queue_ms) = (
                sum(Some(whole)),
                sum(behind("RTT:")),
                sum(behind("backlog wait:")),
            );
            return Some(());
        }
        text.contains("bytes").then_some(())
    }
}

/// Seconds of `age: 86400` in words.
fn age(text: &str) -> Option<String> {
    let seconds = number(text.strip_prefix("age:")?.trim())?;
    Some(duration(ns_of(seconds)))
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let text = text_in(text.as_bytes());
        if let Some(name) = Mount::of(&text) {
            self.close(out);
            self.other = false;
            self.mount = Some(Mount {
                name,
                ..Mount::default()
            });
            return Understood::Evidence;
        }
        if text.starts_with("device ") || text.starts_with("no device ") {
            self.close(out);
            self.other = true;
            return Understood::Ignorable;
        }
        if self.mount.is_none() {
            return match self.other {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        }
        if let Some(operation) = Operation::of(&text) {
            let here = out.here();
            if let Some(mount) = &mut self.mount {
                mount.add(operation, here);
            }
            return Understood::Evidence;
        }
        if let (Some(age), Some(mount)) = (age(&text), &mut self.mount) {
            mount.age = age;
            return Understood::Evidence;
        }
        match self.of_tool(&text, out) {
            Some(()) => Understood::Evidence,
            None => Understood::Ignorable,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind as K;

    const RAW: &str = "device proc mounted on /proc with fstype proc\n\
        device filer:/export mounted on /data with fstype nfs4 statvers=1.1\n\
        \topts:\trw,vers=4.1,rsize=1048576,hard,proto=tcp,timeo=600,retrans=2\n\tage:\t86400\n\
        \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\txprt:\ttcp 812 1 2 0 11 1500 1500 0 1500 0 2 0 0\n\tper-op statistics\n\
        \t        NULL: 1 1 0 44 24 0 0 0 0\n\t        READ: 1000 1000 0 144000 4096000 1000 89000 91000 0\n\
        \t       WRITE: 10 10 0 40960 1600 0 20 30 0\n";

    #[test]
    fn the_operation_that_took_most_time() {
        let reading = read_text("m", RAW.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "nfs-mountstats");
        assert_eq!(
            reading.texts(),
            [
                "READ of filer:/export on /data took 91.0 ms each at the mean: 1.0 ms in the queue of the client, 89.0 ms at the server; 1000 \
                 requests, 100 % of the time of all; since it was mounted, 24 h 0 min ago"
            ]
        );
        assert_eq!(reading.observed.statements[0].kind, K::Took);
        let again = RAW.replace("READ: 1000 1000 0", "READ: 1000 1200 4");
        let reading = read_text("m", again.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, K::TimedOut);
        assert!(
            reading.texts()[0].contains("200 of all requests were sent again"),
            "{reading:?}"
        );
        let well = RAW.replace("89000 91000", "890 910");
        assert_eq!(
            read_text("m", well.as_bytes()).observed.statements[0].kind,
            K::WithinNorm
        );
    }

    #[test]
    fn what_the_tool_prints() {
        let text = "Stats for filer:/export mounted on /data:\n\n  NFS mount options: rw,vers=3\n  RPC statistics:\n\
            \x20 2000 RPC requests sent, 2000 RPC replies received (0 XIDs not found)\n  average backlog queue length: 0\n\n\
            READ:\n\t1500 ops (75%) \t0 errors (0%)\n\tavg bytes sent per op: 144\tavg bytes received per op: 4096\n\
            \tbacklog wait: 0.500000 \tRTT: 60.250000 \ttotal execute time: 61.000000 (milliseconds)\n\
            GETATTR:\n\t500 ops (25%) \t0 errors (0%)\n\tavg bytes sent per op: 144\tavg bytes received per op: 240\n\
            \tbacklog wait: 0.000000 \tRTT: 0.250000 \ttotal execute time: 0.300000 (milliseconds)\n";
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "nfs-mountstats");
        assert!(
            reading.texts()[0].starts_with(
                "READ of filer:/export on /data took 61.0 ms each at the mean: 500 µs in the queue"
            ),
            "{:?}",
            reading.texts()
        );
    }

    #[test]
    fn rubbish_is_none() {
        for text in [
            "device a mounted on b with fstype nfs statvers=1\nper-op statistics\nREAD: 0 0 0 0 0 0 0 0\n",
            "device a mounted on b with fstype nfs statvers=1\nper-op statistics\nREAD: 1e999 x\n: 1 2 3\nage: x\n",
            "Stats for a\navg bytes sent per op\nREAD:\nx ops (\n total execute time: x\n",
        ] {
            assert!(
                read_text("m", text.as_bytes()).observed.statements.is_empty(),
                "{text}"
            );
        }
    }
}
