//! Tests of what goroutines wait for, and whose functions are whose.

use super::{application, is_gos_own, is_of_the_runtime, receiver, wait};
use holdup_evidence::{Cause, Frame};

fn frame(symbol: &str, file: &str) -> Frame {
    Frame {
        symbol: Some(symbol.to_owned()),
        file: (!file.is_empty()).then(|| file.to_owned()),
        ..Frame::default()
    }
}

#[test]
fn the_programs_own_waits_are_none_of_the_runtimes() {
    for reason in [
        "chan receive",
        "IO wait",
        "sync.Mutex.Lock",
        "GC assist wait",
        "sleep",
    ] {
        assert!(!is_of_the_runtime(reason), "{reason}");
    }
    for reason in [
        "GC worker (idle)",
        "force gc (idle)",
        "finalizer wait",
        "GC scavenge wait",
    ] {
        assert!(is_of_the_runtime(reason), "{reason}");
    }
}

#[test]
fn methods_of_one_type_are_told_by_their_receiver() {
    assert_eq!(receiver("main.(*Cache).get"), Some("main.(*Cache)"));
    assert_eq!(
        receiver("example.org/shop/store.(*Cache[...]).get.func1"),
        Some("example.org/shop/store.(*Cache[...])")
    );
    for symbol in ["main.main.func1", "main.Cache.get", "main.(*Cache", ""] {
        assert_eq!(receiver(symbol), None, "{symbol}");
    }
}

#[test]
fn a_reason_says_what_is_waited_for() {
    let cause = |reason: &str, symbol: &str| wait(Some(reason), &[frame(symbol, "")]).cause;
    assert_eq!(cause("sync.Mutex.Lock", "main.pay"), Cause::LockFutex);
    assert_eq!(cause("chan receive", "main.pay"), Cause::LockFutex);
    assert_eq!(
        cause("chan receive", "database/sql.(*DB).connectionOpener"),
        Cause::Idle
    );
    assert_eq!(cause("IO wait", "internal/poll.(*FD).Accept"), Cause::Idle);
    assert_eq!(cause("IO wait", "internal/poll.(*FD).Read"), Cause::PollWait);
    assert_eq!(cause("IO wait", "net.(*netFD).connect"), Cause::NetConnect);
    assert_eq!(cause("sleep", "time.Sleep"), Cause::TimerSleep);
    assert_eq!(cause("GC assist wait", "main.pay"), Cause::RuntimeGc);
    assert_eq!(cause("finalizer wait", "runtime.runfinq"), Cause::Idle);
    assert_eq!(cause("a reason of Go 1.40", "main.pay"), Cause::Unknown);
    assert_eq!(wait(None, &[]).cause, Cause::Unknown);
}

#[test]
fn a_lock_is_one_also_where_the_reason_does_not_say_it() {
    let lock = |reason: &str, symbol: &str| wait(Some(reason), &[frame(symbol, "")]).lock;
    assert!(lock("sync.Mutex.Lock", "main.pay"));
    assert!(lock("semacquire", "sync.(*Mutex).lockSlow"));
    assert!(!lock("semacquire", "sync.(*WaitGroup).Wait"));
    assert!(!lock("chan receive", "sync.(*Mutex).lockSlow"));
}

#[test]
fn a_place_among_so_many_is_one_where_the_pool_itself_waits() {
    let look_up = |reason: &str, symbols: &[&str]| {
        let stack: Vec<Frame> = symbols.iter().map(|symbol| frame(symbol, "")).collect();
        let wait = wait(Some(reason), &stack);
        (wait.pool, wait.what.unwrap_or_default())
    };
    let gopark = ["runtime.gopark", "runtime.selectgo"];
    let of = |called: &[&'static str]| look_up("select", &[&gopark[..], called].concat());
    let connection = (true, "a free connection of a pool");
    assert_eq!(
        of(&["database/sql.(*DB).conn", "database/sql.(*DB).query"]),
        connection
    );
    assert_eq!(
        of(&["github.com/jackc/puddle/v2.(*Pool[...]).acquire"]),
        connection
    );
    assert_eq!(
        of(&["golang.org/x/sync/semaphore.(*Weighted).Acquire", "main.render"]),
        (true, "a place of a semaphore")
    );
    // A driver that connects for the pool waits for its server.
    assert!(!of(&["net.(*netFD).connect.func1", "database/sql.(*DB).conn"]).0);
    assert!(!of(&["main.work"]).0);
    assert!(!look_up("sleep", &["database/sql.(*DB).conn"]).0);
}

#[test]
fn the_innermost_function_of_the_program_is_the_applications() {
    let stack = [
        frame("runtime.gopark", "/opt/go/src/runtime/proc.go"),
        frame("sync.(*Mutex).Lock", "sync/mutex.go"),
        frame(
            "github.com/lib/pq.(*conn).query",
            "/root/go/pkg/mod/github.com/lib/pq@v1.2.3/conn.go",
        ),
        frame("github.com/x/y.Do", "github.com/x/y@v0.1.0/do.go"),
        frame("example.org/shop/vendored.Do", "/srv/shop/vendor/z.org/do.go"),
        frame("example.org/shop/db.Query", "/srv/shop/db/query.go"),
        frame("main.main", "/srv/shop/main.go"),
    ];
    let asks = |stack| application(stack).and_then(|frame| frame.symbol.clone());
    assert_eq!(asks(&stack).as_deref(), Some("example.org/shop/db.Query"));
    assert_eq!(asks(&stack[..2]), None);
    assert!(is_gos_own("go/types.Check") && !is_gos_own("go.uber.org/zap.New"));
    let reader = "google.golang.org/grpc/internal/transport.(*http2Client).reader";
    let stack = ["golang.org/x/net/http2.readFrameHeader", reader];
    assert!(super::reads_for_others(stack.into_iter()));
    assert!(!super::reads_for_others(["main.(*Shop).reader"].into_iter()));
    assert!(is_gos_own("net/http.(*Server).Serve") && !is_gos_own("main.(*net).http"));
    assert!(is_gos_own("type:.eq.main.pair") && !is_gos_own("shop/db.Query"));
}
