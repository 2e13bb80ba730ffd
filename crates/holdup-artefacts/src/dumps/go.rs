//! What a goroutine does, by the state that Go's runtime gives it and by its frames.
//!
//! In: the state as a dump has it (`chan receive`, `IO wait`), functions with their packages, innermost first. Out: what it
//! waits for. A channel does not tell who is to send: such waits stay open.

use super::Doing;
use holdup_evidence::Cause;
use holdup_evidence::observed::{LockWait, SeenThread, State};

/// States of the runtime's own goroutines, which have nothing to do.
const OWN: &[&str] = &[
    "(idle)",
    "GC ",
    "finalizer wait",
    "cleanup wait",
    "debug call",
    "trace reader",
];

/// Functions that tell what a wait is for, innermost first in the order of a stack: the first of them on it counts.
const FOR: &[(&str, Doing)] = &[
    ("net.(*netFD).accept", Doing::Idle),
    ("internal/poll.(*FD).Accept", Doing::Idle),
    ("crypto/tls.(*Conn).handshakeContext", Doing::Waits(Cause::NetTls)),
    ("crypto/tls.(*Conn).HandshakeContext", Doing::Waits(Cause::NetTls)),
    ("net.(*Resolver).", Doing::Waits(Cause::NetDns)),
    ("net.(*netFD).connect", Doing::Waits(Cause::NetConnect)),
    ("net.(*sysDialer).", Doing::Waits(Cause::NetConnect)),
    // A connection on which no request is under way, at either end.
    ("net/http.(*connReader).backgroundRead", Doing::Idle),
    ("net/http.(*persistConn).readLoop", Doing::Idle),
    ("net/http.(*persistConn).writeLoop", Doing::Idle),
    ("net/http.(*http2clientConnReadLoop).", Doing::Idle),
    ("net/http.(*conn).serve", Doing::WaitsUnknown),
    // The answer to a request.
    (
        "net/http.(*persistConn).roundTrip",
        Doing::Waits(Cause::NetReceive),
    ),
    (
        "net/http.(*http2ClientConn).roundTrip",
        Doing::Waits(Cause::NetReceive),
    ),
    ("net/http.(*bodyEOFSignal).Read", Doing::Waits(Cause::NetReceive)),
    (
        "google.golang.org/grpc/internal/transport.(*recvBufferReader).",
        Doing::Waits(Cause::NetReceive),
    ),
    // A connection of a pool.
    ("net/http.(*Transport).getConn", Doing::WaitsForPool),
    ("database/sql.(*DB).conn", Doing::WaitsForPool),
    ("github.com/jackc/puddle", Doing::WaitsForPool),
    (
        "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).",
        Doing::WaitsForPool,
    ),
    ("os/signal.", Doing::Idle),
    ("os/exec.(*Cmd).Wait", Doing::Waits(Cause::ProcessChild)),
    ("os.(*Process).Wait", Doing::Waits(Cause::ProcessChild)),
    ("os.(*Process).wait", Doing::Waits(Cause::ProcessChild)),
    ("os.(*File).Sync", Doing::Waits(Cause::DiskSync)),
    ("syscall.Flock", Doing::Waits(Cause::LockFile)),
    ("os.(*File).ReadAt", Doing::Waits(Cause::DiskRead)),
    ("net.(*netFD).Read", Doing::Waits(Cause::NetReceive)),
    ("net.(*netFD).readFrom", Doing::Waits(Cause::NetReceive)),
    ("net.(*netFD).Write", Doing::Waits(Cause::NetSend)),
    ("os.(*File).Read", Doing::WaitsUnknown),
    ("os.(*File).Write", Doing::WaitsUnknown),
];

/// What a goroutine does.
pub(super) fn of(thread: &SeenThread, frames: &[&str]) -> Doing {
    let state = thread.words.as_str();
    if OWN.iter().any(|own| state.contains(own)) || state == "idle" {
        return Doing::Idle;
    }
    if thread.waits_for.as_ref().and_then(|lock| lock.wait) == Some(LockWait::Enter) {
        return Doing::Waits(Cause::LockFutex);
    }
    match state {
        "running" | "runnable" => return Doing::Runs,
        "sleep" => return Doing::Waits(Cause::TimerSleep),
        "sync.WaitGroup.Wait" => return Doing::WaitsForTask,
        _ => {}
    }
    let group = |frame: &&str| frame.starts_with("sync.(*WaitGroup).Wait");
    if frames.iter().any(group) {
        return Doing::WaitsForTask;
    }
    let found = frames
        .iter()
        .find_map(|frame| FOR.iter().find(|(method, _)| is(frame, method)));
    match found {
        Some((_, doing)) => *doing,
        None if thread.state == State::Runnable => Doing::Runs,
        None => Doing::WaitsUnknown,
    }
}

/// Whether a frame is of a function, or of one of those whose names begin so.
fn is(frame: &str, method: &str) -> bool {
    let rest = frame.strip_prefix(method);
    rest.is_some_and(|rest| rest.starts_with('(') || method.ends_with('.') || method.contains("puddle"))
}

/// Whether a function is of Go's standard library: its packages have no point in the first part of their path, and are not `main`.
pub(super) fn of_library(frame: &str) -> bool {
    let path = frame.split('(').next().unwrap_or(frame);
    let first = path.split(['/', '.']).next().unwrap_or(path);
    STANDARD.contains(&first) || frame.starts_with("golang.org/x/")
}

/// The first part of the paths of Go's standard packages.
const STANDARD: &[&str] = &[
    "archive",
    "bufio",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "unicode",
    "unique",
    "unsafe",
    "vendor",
];

#[cfg(test)]
mod tests {
    use super::{of, of_library};
    use crate::dumps::Doing;
    use holdup_evidence::Cause;
    use holdup_evidence::observed::SeenThread;

    fn doing(state: &str, frames: &[&str]) -> Doing {
        let thread = SeenThread {
            words: state.to_owned(),
            ..SeenThread::default()
        };
        of(&thread, frames)
    }

    #[test]
    fn states_and_callers_tell_what_a_goroutine_waits_for() {
        let accept = [
            "internal/poll.runtime_pollWait(netpoll.go:351)",
            "internal/poll.(*FD).Accept(fd_unix.go:613)",
            "main.main(main.go:41)",
        ];
        assert_eq!(doing("IO wait", &accept), Doing::Idle);
        let answer = [
            "runtime.gopark(proc.go:462)",
            "net/http.(*persistConn).roundTrip(transport.go:2911)",
            "main.fetch(main.go:9)",
        ];
        assert_eq!(doing("select", &answer), Doing::Waits(Cause::NetReceive));
        let wanted = ["database/sql.(*DB).conn(sql.go:1369)", "main.pay(main.go:9)"];
        assert_eq!(doing("select", &wanted), Doing::WaitsForPool);
        assert_eq!(
            doing("chan receive", &["main.worker(main.go:33)"]),
            Doing::WaitsUnknown
        );
        assert_eq!(
            doing("GC sweep wait", &["runtime.bgsweep(mgcsweep.go:279)"]),
            Doing::Idle
        );
        assert_eq!(doing("running", &["main.sum(main.go:7)"]), Doing::Runs);
    }

    #[test]
    fn the_standard_library_did_not_ask() {
        assert!(of_library("net/http.(*conn).serve(server.go:2092)"));
        assert!(of_library("sync.(*Mutex).Lock(mutex.go:46)"));
        assert!(!of_library("main.(*store).get(main.go:26)"));
        assert!(!of_library("shop.example/till.Pay(till.go:7)"));
    }
}
