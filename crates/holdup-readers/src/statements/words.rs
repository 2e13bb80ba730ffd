//! The words of failure, by what they say, with programs in which they were seen.
//!
//! All are looked for at once; of words within one another the longest counts.

use holdup_evidence::observed::StatementKind::{self, Deadlock, Ended, Exhausted, Failed, Stalled, TimedOut, Unreachable, Warned};

/// What may stand behind a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// No letter: it is the whole word.
    Whole,
    /// An ending: `fail` is in `failed` and `failure`.
    Open,
}
use End::{Open, Whole};

/// The words.
pub(super) const WORDS: &[(StatementKind, End, &[&str])] = &[
    // PostgreSQL, InnoDB, SQL Server, lockdep, go-deadlock, the JVM.
    (Deadlock, Open, &["deadlock", "dead lock", "inconsistent locking", "lock order inversion", "circular locking", "interbloqueo"]),
    // The kernel, systemd, Kubernetes, glibc, the JVM, Go, PostgreSQL after a crash.
    (Ended, Whole, &[
        "oom", "out of memory", "outofmemory", "segfault", "segmentation fault", "sigsegv", "sigbus", "sigabrt", "killed",
        "sigkill", "exit code 137", "kernel bug", "unexpectedly terminated", "terminated abnormally",
    ]),
    (Ended, Open, &[
        "panic", "crash", "core dumped", "terminated by signal", "terminated unexpectedly", "oomkill", "fatal error has been detected",
        "not properly shut down", "exited unexpectedly",
    ]),
    // glibc's error texts, PostgreSQL, MySQL, etcd, pools of connections, nginx, the kernel, collectors of garbage.
    (Exhausted, Open, &[
        "no space left", "too many open files", "too many connections", "too many clients", "exhausted", "limit reached",
        "limit exceeded", "exceeded the limit", "over the limit", "exceeds limit", "quota exceeded", "space exceeded",
        "cannot allocate memory", "can't allocate memory", "not enough memory", "not enough space", "out of shared memory",
        "out of swap", "out of disk", "out of file", "out of system resources", "out of resources",
        "resource temporarily unavailable", "queue full", "queue is full", "disk full", "disk is full", "table full", "buffer is full",
        "remaining connection slots", "insufficient memory", "insufficient cpu", "insufficient resources", "insufficient replicas",
        "no free", "toofull", "too full", "to-space overflow", "evacuation fail", "promotion fail", "promotion local failed",
        "concurrent mode failure", "memory usage exceeds", "overflow", "wraparound", "worker_connections are not enough",
        "max_connections reached", "max_children", "no buffer space", "not accepting commands", "commit limit",
    ]),
    // Everybody; errno's texts and gRPC's codes.
    (TimedOut, Open, &[
        "timed out", "timedout", "timed-out", "time-out", "timeout", "time out", "times out", "deadline exceeded",
        "deadlineexceeded", "gave up", "giving up", "no response", "did not respond", "not responding", "does not respond",
        "doesn't respond", "did not reply", "not answering", "max retries exceeded", "retries exceeded", "too many retries",
        "no reply", "took longer than", "delai depasse",
    ]),
    // errno's texts, libpq, resolvers, ZooKeeper, RabbitMQ, the kernel's network.
    (Unreachable, Open, &[
        "connection refused", "econnrefused", "refused", "unreachable", "no route to host", "connection reset",
        "econnreset", "reset by peer", "broken pipe", "epipe", "could not connect", "cannot connect", "can't connect",
        "unable to connect", "failed to connect", "connection lost", "lost connection", "connection to the server was lost",
        "connection closed", "closed the connection", "not reachable", "no such host", "name or service not known",
        "temporary failure in name resolution", "could not resolve", "cannot resolve", "unable to resolve", "failed to resolve",
        "cannot open channel", "inaccessible", "unavailable", "service unavailable", "servfail", "nxdomain", "connection error",
        "host is down", "network is down", "link is down", "link down", "is down or", "not connected", "server not found",
        "no servers", "can't find", "failed to dial", "error dialing", "dial tcp", "cannot reach", "can't reach", "could not reach",
        "unable to reach", "no upstream", "cannot be opened", "cannot open", "disconnected", "unavail",
    ]),
    // The kernel, reactors, databases, Kubernetes, collectors of garbage, resource managers.
    (Stalled, Whole, &["hung", "hang", "hangs", "hanging", "stuck", "slow", "blocked", "frozen", "suspended"]),
    (Stalled, Open, &[
        "stalled", "stalls", "stall", "lagging", "throttl", "took too long", "taking too long", "lockup", "not making progress",
        "long running", "long-running", "waiting for lock", "lock wait", "still waiting", "waited for", "waiting for",
        "waiting longer", "starv", "falling behind", "fell behind", "overload", "backpressure", "back-off", "backoff",
        "degraded", "unhealthy", "delayed", "degenerat", "full gc", "pause full", "concurrent mode interrupted",
        "not scheduled", "cannot be scheduled", "failedscheduling", "unschedulable", "resync", "rebuilding", "recovering", "recovery =",
        "inactive", "stopped streaming", "pending state", "in pending", "backfill", "resilver", "retransmi", "blocking",
        "interrupted; last known up", "automatic recovery", "peering",
    ]),
    // Everybody.
    (Failed, Whole, &["err", "fatal", "critical", "severe", "emerg", "alert", "denied", "faulted", "faulty", "lost", "aborted", "aborting"]),
    (Failed, Open, &[
        "error", "fail", "exception", "cannot", "can't", "could not", "couldn't", "unable to", "corrupt", "rejected", "violation",
        "unrecoverable", "malformed", "invalid", "removed", "no such", "conflict", "terminating", "erreur", "fehler", "hata",
        "evicted", "preempted", "read-only file system", "remount", "not found", "missing", "unknown in stdin", "media error",
        "bad sector", "uncorrect", "reallocated", "pending_sector",
    ]),
    (Warned, Open, &["warn"]),
];

/// Words that begin like one of them and say nothing.
pub(super) const HARMLESS: &[&str] = &[
    "failover", "failback", "failsafe", "errorlevel", "errorcode", "errorhandler", "errordocument", "killedonly", "panicking_handler",
    "blockedqueue", "overflowed_hidden", "stallion", "removedfrom", "invalidate", "invalidated", "invalidating", "invalidation",
    "warmup", "resyncperiod", "conflictless",
];

/// Words that take back what follows them: as the word before, or the one before that.
pub(super) const TAKEN_BACK: &[&str] = &[
    "no", "0", "without", "zero", "not", "never", "non", "any", "if", "avoid", "prevent", "ignore", "ignoring", "isn't", "wasn't",
    "didn't", "don't", "when", "on", "log", "none", "nor",
];

/// Values that say that there was none.
pub(super) const NOTHING: &[&str] = &[
    "0", "0.0", "0.00", "0%", "nil", "null", "none", "false", "no", "off", "<nil>", "<none>", "-", "n/a", "undefined", "ok", "0x0",
    "success",
];
