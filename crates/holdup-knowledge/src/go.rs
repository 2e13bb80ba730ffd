//! What Go's runtime calls the waits of goroutines, and whose functions are whose.
//!
//! In: a reason as the runtime's own dumps print it, and names of functions. Out: what a goroutine waits for, whether it has no work,
//! and which of its functions is the application's.

use holdup_evidence::{Cause, Frame};
use holdup_model::attributed::TaskOthers;

/// What the runtime's own goroutines wait for: the collector's workers, its sweeper and its scavenger, who runs finalizers and
/// cleanups, who forces a collection, who counts processors, and who reads traces.
const OF_THE_RUNTIME: [&str; 9] = [
    "GC sweep wait",
    "GC scavenge wait",
    "GC worker (idle)",
    "GC worker (active)",
    "finalizer wait",
    "cleanup wait",
    "force gc (idle)",
    "GOMAXPROCS updater (idle)",
    "trace reader (blocked)",
];

/// Waits of a program's goroutine for the collector.
const FOR_COLLECTOR: [&str; 7] = [
    "GC assist marking",
    "GC assist wait",
    "garbage collection",
    "garbage collection scan",
    "wait for GC cycle",
    "GC mark termination",
    "dumping heap",
];

/// Waits for other goroutines, and what a report calls what they wait for.
const FOR_OTHERS: [(&str, &str); 15] = [
    (RECEIVES, "a channel to receive from"),
    ("chan receive (nil chan)", "a nil channel"),
    ("chan receive (synctest)", "a channel to receive from"),
    ("chan receive (durable)", "a channel to receive from"),
    ("chan send", "a channel to send to"),
    ("chan send (nil chan)", "a nil channel"),
    ("select", "one of several channels"),
    ("semacquire", "a semaphore"),
    ("sync.Mutex.Lock", "a sync.Mutex"),
    ("sync.RWMutex.RLock", "a sync.RWMutex, to read"),
    ("sync.RWMutex.Lock", "a sync.RWMutex, to write"),
    ("sync.Cond.Wait", "a sync.Cond"),
    ("sync.WaitGroup.Wait", "a sync.WaitGroup"),
    ("coroutine", "a coroutine"),
    ("synctest.Wait", "the goroutines of a test"),
];

/// Functions in which a goroutine waits for such a lock to read, and to write.
const READS: [&str; 2] = ["sync.runtime_SemacquireRWMutexR", "sync.(*RWMutex).RLock"];
const WRITES: [&str; 2] = ["sync.runtime_SemacquireRWMutex", "sync.(*RWMutex).Lock"];

/// Those that are for a lock, which one goroutine has, or several that read.
const LOCKS: [&str; 3] = ["sync.Mutex.Lock", "sync.RWMutex.RLock", "sync.RWMutex.Lock"];

/// What all of them were called before Go 1.20, as were waits for a group of goroutines: then the stack tells.
const OLD_REASON: &str = "semacquire";

/// Functions of locks in which a goroutine waits for one.
const LOCKING: [&str; 4] = [
    "sync.(*Mutex).lockSlow",
    "sync.(*Mutex).Lock",
    "sync.(*RWMutex).RLock",
    "sync.(*RWMutex).Lock",
];

/// Functions in which a goroutine waits for a place among so many, which others have: a part of the name and its end, and what that is.
const PLACES: [(&str, &str, Place); 10] = [
    ("database/sql.(*DB)", ").conn", Place::Connection),
    (HTTP_TRANSPORT, HTTP_GETS, Place::HttpConnection),
    ("/puddle/v2.(*Pool", ").acquire", Place::Connection),
    ("/puddle/v2.(*Pool", ").Acquire", Place::Connection),
    ("/internal/pool.(*ConnPool)", ").waitTurn", Place::Connection),
    ("/redigo/redis.(*Pool)", ").waitVacantConn", Place::Connection),
    ("/topology.(*pool)", ").checkOut", Place::Connection),
    (
        "golang.org/x/sync/semaphore.(*Weighted)",
        ").Acquire",
        Place::Semaphore,
    ),
    ("golang.org/x/sync/errgroup.(*Group)", ").Go", Place::Semaphore),
    (
        "golang.org/x/net/netutil.(*limitListener)",
        ").acquire",
        Place::Semaphore,
    ),
];

/// The pool of connections of Go's client of HTTP, the method in which a goroutine waits for one, those that make one, and the goroutine of
/// a connection: it selects while a body is to be read, and waits for its descriptor otherwise.
const HTTP_TRANSPORT: &str = "net/http.(*Transport)";
const HTTP_GETS: &str = ").getConn";
const HTTP_DIALS: [&str; 2] = [
    "net/http.(*Transport).dialConnFor",
    "net/http.(*Transport).dialConn",
];
const HTTP_CONNECTION: &str = "net/http.(*persistConn).readLoop";
const HTTP_ROUND_TRIP: &str = "net/http.(*persistConn).roundTrip";
const HTTP_BODY: &str = "net/http.(*bodyEOFSignal).Read";

/// Waits of which one may be for such a place.
const FOR_PLACES: [&str; 3] = ["select", "chan receive", "chan send"];

/// What goroutines wait for that others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A connection of a pool.
    Connection,
    /// A connection of a client of HTTP, which may have so many to one host.
    HttpConnection,
    /// A place of a semaphore.
    Semaphore,
}

impl Place {
    fn what(self) -> &'static str {
        match self {
            Place::Connection => "a free connection of a pool",
            Place::HttpConnection => "a free connection of an http.Transport",
            Place::Semaphore => "a place of a semaphore",
        }
    }
}

/// Functions of `database/sql`: in which a goroutine waits for a connection, and in which one opens them for a pool.
const WAITS_FOR_CONNECTION: &str = "database/sql.(*DB).conn";
const OPENS_CONNECTIONS: &str = "database/sql.(*DB).connectionOpener";

/// Functions of the resolver in which a goroutine waits for the answer of a name server.
const ASKS_FOR_NAMES: [&str; 2] = ["net.dnsPacketRoundTrip", "net.dnsStreamRoundTrip"];

/// A `select` without cases: nothing can end it, and programs rest their main goroutine so.
const RESTS: &str = "select (no cases)";

/// What the runtime's words for a wait to receive begin with.
const RECEIVES: &str = "chan receive";

/// What the runtime calls a wait for several channels.
const FIRST_OF_SEVERAL: &str = "select";

/// What the runtime calls a wait for a group, and the function in which it is; before Go 1.25 only the function tells.
const GROUP: &str = "sync.WaitGroup.Wait";
const WAITS_FOR_GROUP: &str = "sync.(*WaitGroup).Wait";

/// The function in which a goroutine waits for what another one does once, behind a lock.
const ONCE: &str = "sync.(*Once).doSlow";

/// Functions of a pipe within a program, and who has to come.
const PIPES: [(&str, &str); 2] = [
    ("io.(*pipe).write", "the reader of an io.Pipe"),
    ("io.(*pipe).read", "the writer of an io.Pipe"),
];

/// Functions in which a library waits for a client, and for signals of the operating system.
const ACCEPTS: &str = "internal/poll.(*FD).Accept";
const SIGNALS: &str = "os/signal.signal_recv";

/// Functions of libraries that answer one request each.
const SERVES: [&str; 5] = [
    "net/http.(*conn).serve",
    "net/http.(*http2serverConn).runHandler",
    "golang.org/x/net/http2.(*serverConn).runHandler",
    "google.golang.org/grpc.(*Server).handleStream",
    "net/rpc.(*service).call",
];

/// Functions below which a goroutine of a library has no work: one waits for a client or a signal, one opens connections of a pool when
/// there are too few, one closes those that are too old.
const WITHOUT_WORK: [&str; 5] = [
    ACCEPTS,
    SIGNALS,
    "os/signal.loop",
    "database/sql.(*DB).connectionOpener",
    "database/sql.(*DB).connectionCleaner",
];

/// First elements of the import paths of Go's own packages. `main` is not one of them, and a module's path has a dot in its first.
const OWN_PACKAGES: &str = "archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar \
    flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime slices sort \
    strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak";

/// The program's first function.
pub const FIRST_FUNCTION: &str = "main.main";

/// What the compiler calls functions that only call another one: of `go` and of `defer`.
const WRAPPERS: [&str; 2] = ["gowrap", "deferwrap"];

/// Packages of the runtime, and of system calls.
const RUNTIME_PACKAGES: [&str; 4] = ["runtime", "internal/runtime", "syscall", "internal/poll"];
const CALLS: [&str; 2] = ["internal/runtime/syscall", "syscall"];

/// What a goroutine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The cause.
    pub cause: Cause,
    /// What a report calls it; `None` where the reason says nothing of it.
    pub what: Option<&'static str>,
    /// Whether that is a lock, which another goroutine has.
    pub lock: bool,
    /// Whether it is a place among so many, which others have: a connection of a pool, or a place of a semaphore.
    pub pool: bool,
    /// What else it is that only other goroutines end.
    pub others: Option<TaskOthers>,
}

/// Whether a goroutine that waits for this is the runtime's own.
#[must_use]
pub fn is_of_the_runtime(reason: &str) -> bool {
    OF_THE_RUNTIME.contains(&reason)
}

/// Whether a goroutine that waits for this, by a dump, wants to send on a channel.
#[must_use]
pub fn sends(reason: &str) -> bool {
    reason.starts_with("chan send")
}

/// Whether a goroutine that waits for this wants to receive from a channel, or for whatever comes first of several.
#[must_use]
pub fn receives(reason: &str) -> bool {
    reason.starts_with(RECEIVES) || reason == FIRST_OF_SEVERAL
}

/// Whether a goroutine that stands in this function waits for signals of the operating system, for those who asked for them.
#[must_use]
pub fn awaits_signals(symbol: &str) -> bool {
    symbol == SIGNALS
}

/// Whether it waits for a client.
#[must_use]
pub fn accepts(symbol: &str) -> bool {
    symbol == ACCEPTS
}

/// Whether a function is a library's that answers one request by calling the application.
#[must_use]
pub fn serves(symbol: &str) -> bool {
    SERVES.contains(&symbol)
}

/// What a goroutine waits for that only others of its process end.
fn others(reason: &str, of_group: bool) -> Option<TaskOthers> {
    match reason {
        _ if of_group => Some(TaskOthers::Group),
        "sync.Cond.Wait" => Some(TaskOthers::Condition),
        FIRST_OF_SEVERAL => Some(TaskOthers::First),
        _ if receives(reason) => Some(TaskOthers::Value),
        _ => None,
    }
}

/// Whether the application itself waits in an operation on a channel, or for the other end of a pipe within the program: what a library waits
/// for in its own channels says something else.
#[must_use]
pub fn waits_by_itself(stack: &[Frame]) -> bool {
    let mut called = stack.iter().filter(|frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        !is_of_the_runtimes_code(symbol)
    });
    let of_pipe = |frame: &Frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        PIPES.iter().any(|(function, _)| *function == symbol)
    };
    called
        .next()
        .is_some_and(|frame| is_application(frame) || of_pipe(frame))
}

/// Whether a goroutine that waits for a lock wants to read.
#[must_use]
pub fn reads(stack: &[Frame]) -> bool {
    stands_in_one(stack, &READS)
}

/// Whether it wants to write.
#[must_use]
pub fn writes(stack: &[Frame]) -> bool {
    stands_in_one(stack, &WRITES)
}

fn stands_in_one(stack: &[Frame], functions: &[&str]) -> bool {
    let mut symbols = stack.iter().filter_map(|frame| frame.symbol.as_deref());
    symbols.any(|symbol| functions.contains(&symbol))
}

/// What a parked goroutine waits for, by its reason and its stack, innermost frame first.
#[must_use]
pub fn wait(reason: Option<&str>, stack: &[Frame]) -> Wait {
    let stands_in = |name: &str| stack.iter().any(|frame| frame.symbol.as_deref() == Some(name));
    let wait = |cause, what| Wait {
        cause,
        what,
        lock: reason.is_some_and(|reason| {
            LOCKS.contains(&reason) || reason == OLD_REASON && LOCKING.iter().any(|name| stands_in(name))
        }),
        pool: false,
        others: None,
    };
    let Some(reason) = reason else {
        return wait(Cause::Unknown, None);
    };
    if is_of_the_runtime(reason) {
        return wait(Cause::Idle, Some("work of Go's runtime"));
    }
    if reason == RESTS || WITHOUT_WORK.iter().any(|name| stands_in(name)) {
        return wait(Cause::Idle, None);
    }
    if let Some(place) = place(reason, stack) {
        return Wait {
            cause: Cause::LockFutex,
            what: Some(place.what()),
            lock: false,
            pool: true,
            others: None,
        };
    }
    if FOR_COLLECTOR.contains(&reason) {
        return wait(Cause::RuntimeGc, Some("the collector"));
    }
    match reason {
        "sleep" => wait(Cause::TimerSleep, Some("a timer")),
        // The kinds of descriptors are not distinguished: a pipe and a Unix socket park a goroutine in the same functions.
        "IO wait" if ASKS_FOR_NAMES.iter().any(|name| stands_in(name)) => {
            wait(Cause::NetDns, Some("a name server"))
        }
        "IO wait" if stands_in("net.(*netFD).connect") => wait(Cause::NetConnect, None),
        "IO wait" => wait(Cause::PollWait, Some("a descriptor")),
        _ => {
            let of_group = reason == GROUP || reason == OLD_REASON && stands_in(WAITS_FOR_GROUP);
            let words = if of_group { GROUP } else { reason };
            match FOR_OTHERS.iter().find(|(known, _)| *known == words) {
                Some(_) if stands_in(ONCE) => wait(Cause::LockFutex, Some("a sync.Once")),
                Some(_) if PIPES.iter().any(|(function, _)| stands_in(function)) => Wait {
                    others: others(reason, of_group),
                    ..wait(
                        Cause::LockFutex,
                        PIPES
                            .iter()
                            .find(|(function, _)| stands_in(function))
                            .map(|(_, what)| *what),
                    )
                },
                Some((_, what)) => Wait {
                    others: others(reason, of_group),
                    ..wait(Cause::LockFutex, Some(*what))
                },
                None => wait(Cause::Unknown, None),
            }
        }
    }
}

/// The place that a goroutine waits for. What it waits for in functions of its own, or of a driver that connects, is something else.
fn place(reason: &str, stack: &[Frame]) -> Option<Place> {
    if !FOR_PLACES.contains(&reason) {
        return None;
    }
    let called = stack
        .iter()
        .filter_map(|frame| frame.symbol.as_deref())
        .find(|symbol| !is_of_the_runtimes_code(symbol))?;
    let known = |(part, end, _): &&(&str, &str, Place)| called.contains(part) && called.ends_with(end);
    PLACES.iter().find(known).map(|(.., place)| *place)
}

/// Whether a goroutine waits for a connection of Go's client of HTTP, by its stack.
#[must_use]
pub fn waits_for_http(stack: &[Frame]) -> bool {
    let mut symbols = stack.iter().filter_map(|frame| frame.symbol.as_deref());
    symbols.any(|symbol| symbol.contains(HTTP_TRANSPORT) && symbol.ends_with(HTTP_GETS))
}

/// Whether it makes such a connection.
#[must_use]
pub fn dials_for_http(stack: &[Frame]) -> bool {
    stands_in_one(stack, &HTTP_DIALS)
}

/// Whether it is the goroutine of such a connection, on which an answer has come whose body is not at its end and not closed.
#[must_use]
pub fn has_unread_body(others: Option<TaskOthers>, stack: &[Frame]) -> bool {
    others == Some(TaskOthers::First) && stands_in_one(stack, &[HTTP_CONNECTION])
}

/// Whether it is the goroutine of such a connection, on which nothing has come yet.
#[must_use]
pub fn awaits_http_answer(others: Option<TaskOthers>, stack: &[Frame]) -> bool {
    others.is_none() && stands_in_one(stack, &[HTTP_CONNECTION])
}

/// Whether it has sent a request on such a connection, and waits for the answer.
#[must_use]
pub fn asks_by_http(stack: &[Frame]) -> bool {
    stands_in_one(stack, &[HTTP_ROUND_TRIP])
}

/// Whether it reads such a body.
#[must_use]
pub fn reads_http_body(stack: &[Frame]) -> bool {
    stands_in_one(stack, &[HTTP_BODY])
}

/// Whether a goroutine waits in this function for a connection of a pool of `database/sql`.
#[must_use]
pub fn waits_for_connection(symbol: &str) -> bool {
    symbol == WAITS_FOR_CONNECTION
}

/// Whether a function is of Go's library for databases.
#[must_use]
pub fn of_database(symbol: &str) -> bool {
    symbol.starts_with("database/sql.")
}

/// Whether a goroutine opens connections for a pool of `database/sql` in this function.
#[must_use]
pub fn opens_connections(symbol: &str) -> bool {
    symbol == OPENS_CONNECTIONS
}

/// The application's function in which a goroutine stands: the innermost that is neither of Go's own packages nor of a module that
/// was fetched.
#[must_use]
pub fn application(stack: &[Frame]) -> Option<&Frame> {
    stack.iter().find(|frame| is_application(frame))
}

/// Whether a frame is the application's.
#[must_use]
pub fn is_application(frame: &Frame) -> bool {
    let symbol = frame.symbol.as_deref();
    symbol.is_some_and(|symbol| is_applications(symbol, frame.file.as_deref()))
}

/// Whether a function is one that the compiler makes to call another one later: `main.main.gowrap1`.
#[must_use]
pub fn is_wrapper(frame: &Frame) -> bool {
    let last = frame
        .symbol
        .as_deref()
        .and_then(|symbol| symbol.rsplit('.').next());
    let wraps = |last: &str| WRAPPERS.iter().any(|begin| last.starts_with(begin));
    last.is_some_and(wraps)
}

/// Whether a function is the application's: neither of one of Go's own packages nor of a module that was fetched.
#[must_use]
pub fn is_applications(symbol: &str, file: Option<&str>) -> bool {
    !is_gos_own(symbol) && !file.is_some_and(is_fetched)
}

/// The function within which a function was written: `main.count` of `main.count.func1`.
#[must_use]
pub fn enclosing(symbol: &str) -> Option<&str> {
    let (outer, last) = symbol.split_once(".func")?;
    last.starts_with(|digit: char| digit.is_ascii_digit())
        .then_some(outer)
}

/// The type whose method a function is, or is a part of: `main.(*Cache)` of `main.(*Cache).get.func1`. Methods of values are named as
/// functions within functions are, so they are not known.
#[must_use]
pub fn receiver(symbol: &str) -> Option<&str> {
    let begin = symbol.find(".(*")?;
    let end = begin + symbol[begin..].find(").")?;
    Some(&symbol[..=end])
}

/// Whether a goroutine of a library that stands in this function has no work.
#[must_use]
pub fn is_without_work(symbol: &str) -> bool {
    WITHOUT_WORK.contains(&symbol)
}

/// Whether a function is the runtime's, or only makes its system calls.
#[must_use]
pub fn is_of_the_runtimes_code(symbol: &str) -> bool {
    of_packages(symbol, &RUNTIME_PACKAGES)
}

/// Parts of functions of libraries that send several requests on one connection: below them stands who waits for room on it, or for an answer.
const SHARE_CONNECTIONS: [&str; 6] = [
    "net/http.(*http2ClientConn)",
    "net/http.(*http2clientStream)",
    "net/http/internal/http2.(*ClientConn)",
    "golang.org/x/net/http2.(*ClientConn)",
    "golang.org/x/net/http2.(*clientStream)",
    "google.golang.org/grpc.(*clientStream)",
];

/// Whether a goroutine that stands below this function has a request on a connection that it shares with others.
#[must_use]
pub fn shares_connection(symbol: &str) -> bool {
    SHARE_CONNECTIONS.iter().any(|part| symbol.starts_with(part))
}

/// Methods of goroutines that read whatever comes on a connection, for all who use it: who asked something there waits elsewhere for what
/// they find, and they wait also where nobody asked. By name: libraries for HTTP/2, brokers and databases all call theirs so.
const READERS: [&str; 9] = [
    ").readLoop",
    ").ReadLoop",
    ").recvLoop",
    ").receiveLoop",
    ").readPump",
    ").responseReceiver",
    "(*http2Client).reader",
    "ClientConnReadLoop).run",
    "clientConnReadLoop).run",
];

/// Whether a stack is that of a goroutine which reads a connection for all who use it.
#[must_use]
pub fn reads_for_others<'a>(mut symbols: impl Iterator<Item = &'a str>) -> bool {
    symbols.any(|symbol| READERS.iter().any(|reader| symbol.ends_with(reader)))
}

/// Methods of a command in which a goroutine waits until all of its output has come, though it has ended, and what the goroutines stand below that
/// copy its output and its input.
const AWAIT_OUTPUT: [&str; 2] = ["os/exec.(*Cmd).awaitGoroutines", "os/exec.(*Cmd).Wait"];
const COMMAND: &str = "os/exec.(*Cmd).";

/// Whether a stack is that of a goroutine which waits for the output of a command to end.
#[must_use]
pub fn awaits_output<'a>(mut symbols: impl Iterator<Item = &'a str>) -> bool {
    symbols.any(|symbol| AWAIT_OUTPUT.contains(&symbol))
}

/// Whether a goroutine waits for the rest of a command's output after the command itself has ended: from Go 1.20 on that is a function of its own.
#[must_use]
pub fn awaits_output_of_ended<'a>(mut symbols: impl Iterator<Item = &'a str>) -> bool {
    symbols.any(|symbol| symbol == AWAIT_OUTPUT[0])
}

/// Whether a stack is that of a goroutine which copies what a command writes or reads, for who waits for its end.
#[must_use]
pub fn copies_output<'a>(mut symbols: impl Iterator<Item = &'a str>) -> bool {
    symbols.any(|symbol| symbol.starts_with(COMMAND) && symbol.contains(".func"))
}

/// Whether a function only makes system calls.
#[must_use]
pub fn makes_calls(symbol: &str) -> bool {
    of_packages(symbol, &CALLS)
}

/// Whether a function is of one of these packages or of one below them.
fn of_packages(symbol: &str, packages: &[&str]) -> bool {
    let package = symbol.rsplit_once('/').map_or(0, |(path, _)| path.len() + 1);
    let end = symbol[package..]
        .find('.')
        .map_or(symbol.len(), |dot| package + dot);
    let package = &symbol[..end];
    packages.iter().any(|own| {
        package
            .strip_prefix(own)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether a function is of one of Go's own packages: `net/http.(*Server).Serve`, `runtime.gopark`.
fn is_gos_own(symbol: &str) -> bool {
    let first = symbol.split(['/', '.']).next().unwrap_or(symbol);
    let path_goes_on = symbol[first.len()..].starts_with('/');
    // `go.uber.org/…` is no package of Go's: only `go/…` is. What the compiler makes itself has names such as `go:…` and `type:…`.
    match first {
        "go" => path_goes_on,
        _ => first.contains(':') || OWN_PACKAGES.split_whitespace().any(|own| own == first),
    }
}

/// Whether a file is of a module that was fetched: below the module cache or a `vendor` folder, or, where paths are trimmed,
/// below a folder with a version.
fn is_fetched(file: &str) -> bool {
    let mut folders = file.rsplit('/').skip(1);
    file.contains("/pkg/mod/") || folders.any(|folder| folder == "vendor" || folder.contains("@v"))
}

#[cfg(test)]
mod tests;
