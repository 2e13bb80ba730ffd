//! A column of a table: what its name says of it, and what its values add up to.

use super::Row;

/// Names of columns of states.
const STATES: [&str; 9] = [
    "ST",
    "STATUS",
    "STATE",
    "HEALTH",
    "READY",
    "PHASE",
    "REASON",
    "CONDITION",
    "CONNECTION",
];

/// Names of columns that are numbers of things and no sizes.
const IDENTIFIERS: [&str; 25] = [
    "pid", "tid", "ppid", "uid", "gid", "id", "port", "time", "date", "age", "prio", "pri", "ni", "ip",
    "created", "started", "updated", "uptime", "since", "ports", "jobid", "sid", "spid", "kpid", "dbid",
];

/// Names of columns that name the session, process or thread that a row is of.
const SESSIONS: [&str; 14] = [
    "sid",
    "spid",
    "pid",
    "session",
    "session_id",
    "waiting_pid",
    "blocked_pid",
    "waiting_session",
    "waiter",
    "blocked_session",
    "processlist_id",
    "thread_id",
    "waiting_sid",
    "tid",
];

/// Last words of names of columns that say who or what is meant, and no number of things that wait.
const NAMING: [&str; 12] = [
    "pid",
    "sid",
    "spid",
    "id",
    "user",
    "query",
    "statement",
    "name",
    "size",
    "limit",
    "capacity",
    "session",
];

/// Parts of names of columns of what waits or is lost, and of those that count since the start.
const QUEUES: [&str; 16] = [
    "pending", "waiting", "waiters", "queue", "backlog", "lag", "blocked", "dropped", "unack", "behind",
    "retrans", "failed", "errors", "delayed", "messages", "rejected",
];

/// Those of them that count what is over: what waits now says more.
const LOST: [&str; 5] = ["dropped", "retrans", "failed", "errors", "rejected"];
const SINCE_START: [&str; 3] = ["all time", "total", "ever"];

/// Words of names of columns of lengths of time.
const TIMES: [&str; 13] = [
    "time", "elapsed", "duration", "latency", "wait", "waited", "waiting", "took", "runtime", "exec",
    "await", "delay", "age",
];

/// Seconds in a function without what it calls, as Python's profiler names them.
const OWN_TIME: &str = "tottime";

/// Units at the end of such a name, in nanoseconds.
const UNITS: [(&str, f64); 12] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("usec", 1e3),
    ("micros", 1e3),
    ("ms", 1e6),
    ("msec", 1e6),
    ("millis", 1e6),
    ("s", 1e9),
    ("sec", 1e9),
    ("secs", 1e9),
    ("seconds", 1e9),
    ("min", 6e10),
];

/// Shares of which much is good.
const GOOD: [&str; 10] = [
    "idle",
    "free",
    "avail",
    "hit",
    "ratio",
    "ready",
    "success",
    "id",
    "percentile",
    "quantile",
];

/// A share of this row and of all above it: the last row has most.
const RUNNING_TOTAL: &str = "sum%";

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Where it stands in the heading.
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) sum: f64,
    pub(super) count: u64,
    pub(super) largest: Option<(f64, Row)>,
    pub(super) unit: bool,
}

/// A name in small letters, with its words apart: `msgBacklog` is `msg_backlog`.
fn apart(name: &str) -> String {
    let mut apart = String::with_capacity(name.len() + 4);
    let mut small = false;
    for char in name.chars() {
        if small && char.is_ascii_uppercase() {
            apart.push('_');
        }
        small = char.is_ascii_lowercase();
        apart.push(char.to_ascii_lowercase());
    }
    apart
}

impl Column {
    pub(super) fn is_state(&self) -> bool {
        // `LOCK_STATUS` is one as `STATUS` is.
        let name = self.name.rsplit(['_', ' ']).next().unwrap_or_default();
        STATES.iter().any(|state| name.eq_ignore_ascii_case(state))
    }

    pub(super) fn is_identifier(&self) -> bool {
        let of_name = self.name.to_ascii_lowercase();
        // `OWNER_THREAD_ID`, and the address of something.
        of_name.ends_with("_id")
            || of_name.ends_with("_pid")
            || of_name.ends_with("_begin")
            || IDENTIFIERS.iter().any(|name| of_name == *name)
    }

    /// Whether it has the text of what is wrong.
    pub(super) fn is_error(&self) -> bool {
        let name = apart(&self.name);
        let ends = [
            "error",
            "errors",
            "error_message",
            "fail_reason",
            "failure_reason",
            "exception",
        ];
        ends.iter().any(|end| {
            let before = name.strip_suffix(end);
            before.is_some_and(|before| before.is_empty() || before.ends_with(['_', ' ']))
        })
    }

    /// Whether it says who is in the way of the row: `BLOCKING_SESSION`, `blocked_by`.
    pub(super) fn is_blocker(&self) -> bool {
        let name = apart(&self.name);
        [
            "blocking",
            "blocker",
            "blocked_by",
            "blocked by",
            "blk_by",
            "blkby",
        ]
        .iter()
        .any(|word| name.contains(word))
    }

    /// Whether it may say who is in the way, where the other columns show that rows are sessions: `blocked` of one is the number of another.
    pub(super) fn may_be_blocker(&self) -> bool {
        ["blocked", "blk"]
            .iter()
            .any(|name| self.name.eq_ignore_ascii_case(name))
    }

    /// Whether it names who has something, as lists of locks do beside who waits for it.
    pub(super) fn is_holder(&self) -> bool {
        let name = apart(&self.name);
        ["holder", "holding", "held_by", "held by"]
            .iter()
            .any(|word| name.contains(word))
    }

    /// Whether it names who waits.
    pub(super) fn is_waiter(&self) -> bool {
        let name = apart(&self.name);
        name.starts_with("waiter") || name.starts_with("waiting_") || name.starts_with("waiting ")
    }

    /// Whether it names the session that a row is of.
    pub(super) fn is_session(&self) -> bool {
        let name = apart(&self.name);
        SESSIONS.contains(&name.as_str())
    }

    /// Whether it has the number of a session in its name: `blocking_pid`, beside `blocking_trx_id`.
    pub(super) fn names_session(&self) -> bool {
        let name = apart(&self.name);
        ["pid", "sid", "spid", "session", "thread_id"]
            .iter()
            .any(|last| name.ends_with(last))
    }

    /// Whether it counts what waits now, and not what was lost so far.
    pub(super) fn is_of_now(&self) -> bool {
        let name = apart(&self.name);
        !LOST.iter().any(|word| name.contains(word))
    }

    /// Whether it counts what waits or is lost now.
    pub(super) fn is_queue(&self) -> bool {
        let name = apart(&self.name);
        let words = || name.split(|char: char| !char.is_alphanumeric());
        let named = words().count() > 1 && words().next_back().is_some_and(|last| NAMING.contains(&last));
        !named
            && words().any(|word| QUEUES.iter().any(|queue| word.starts_with(queue)))
            && !SINCE_START.iter().any(|start| name.contains(start))
    }

    /// How much a length of time in it says, most first; `None` where it has none.
    pub(super) fn times(&self) -> Option<u8> {
        let name = self.name.to_ascii_lowercase();
        let words = || name.split(|char: char| !char.is_alphanumeric());
        let has = |known: &[&str]| words().any(|word| known.contains(&word));
        // `tottime` of Python's profiler; what a function called is in the times of what it called, too.
        if name == OWN_TIME {
            return Some(3);
        }
        if name.starts_with("cum") {
            return None;
        }
        let whole = name.trim_matches(|char: char| !char.is_alphanumeric());
        if !has(&TIMES) && !self.has_unit_in_brackets()
            || whole == "time"
            || whole == "age"
            || has(&[
                "at", "start", "end", "last", "timeout", "count", "interval", "period",
            ])
        {
            return None;
        }
        Some(match () {
            () if has(&["total", "sum"]) => 3,
            () if has(&["wait", "waited", "waiting", "await", "lock", "max", "p99"]) => 2,
            () if has(&["min", "stddev", "avg", "mean"]) => 0,
            () => 1,
        })
    }

    /// Whether its name ends with a unit of time in brackets: `self [us]`.
    fn has_unit_in_brackets(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let inner = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
        let unit = inner.map_or("", |(_, unit)| unit);
        UNITS.iter().any(|(known, _)| *known == unit)
    }

    /// The unit that its name says, of lengths.
    pub(super) fn unit_of_name(&self) -> Option<f64> {
        self.times()?;
        let name = self.name.to_ascii_lowercase();
        if name == OWN_TIME {
            return Some(1e9);
        }
        let mut words = name
            .split(|char: char| !char.is_alphanumeric())
            .filter(|word| !word.is_empty());
        let last = words.next_back()?;
        UNITS.iter().find(|(unit, _)| *unit == last).map(|(_, ns)| *ns)
    }

    /// Whether it counts how often.
    pub(super) fn is_tally(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        ["calls", "ncalls", "count", "n", "hits", "times", "executions"].contains(&name.as_str())
    }

    /// A column that has no name, and where it stands.
    pub(super) fn nameless(begin: usize, end: usize) -> Column {
        Column {
            name: String::new(),
            begin,
            end,
            sum: 0.0,
            count: 0,
            largest: None,
            unit: false,
        }
    }

    /// Whether much of it is a load.
    pub(super) fn is_load(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        !GOOD.iter().any(|good| name.contains(good)) && name != RUNNING_TOTAL
    }

    pub(super) fn add(&mut self, value: f64, unit: bool, row: &Row) {
        self.sum += value;
        self.count += 1;
        self.unit |= unit;
        if self.largest.as_ref().is_none_or(|(largest, _)| value > *largest) {
            self.largest = Some((value, row.clone()));
        }
    }
}
