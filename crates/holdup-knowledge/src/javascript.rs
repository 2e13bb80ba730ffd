//! Files of JavaScript code: whose they are, and what their functions wait for.
//!
//! In: the path or name that a script has. Out: whether it belongs to Node.js or to an installed package, and not to the program; and of a
//! function that an asynchronous function has called, what that one awaits.

use holdup_evidence::{Cause, Frame, Language};

/// Code that is part of Node.js: `node:fs`, `node:internal/timers`.
const BUILT_IN: &str = "node:";

/// The folder into which packages are installed.
const PACKAGES: &str = "node_modules";

/// Whether a script is of Node.js or of an installed package. Code of the engine has no script.
#[must_use]
pub fn of_library(file: &str) -> bool {
    file.is_empty() || file.starts_with(BUILT_IN) || is_installed(file)
}

/// Whether a script is of an installed package.
#[must_use]
pub fn is_installed(file: &str) -> bool {
    file.rsplit('/').skip(1).any(|folder| folder == PACKAGES)
}

/// The engine's function in which `Atomics.wait` waits, and Node.js's class of a worker, below which it runs JavaScript.
const ATOMICS_WAIT: &str = "FutexEmulation::Wait";
const WORKER: &str = "node::worker::Worker::";

/// Whether a thread waits in `Atomics.wait`: another thread that runs JavaScript has to notify it.
#[must_use]
pub fn awaits_notify(stack: &[Frame]) -> bool {
    has_native(stack, ATOMICS_WAIT)
}

/// Whether a thread is a worker that runs JavaScript of its own (`worker_threads`).
#[must_use]
pub fn is_worker(stack: &[Frame]) -> bool {
    has_native(stack, WORKER)
}

fn has_native(stack: &[Frame], name: &str) -> bool {
    let mut native = stack.iter().filter(|frame| frame.language == Language::Native);
    native.any(|frame| {
        frame
            .symbol
            .as_deref()
            .is_some_and(|symbol| symbol.contains(name))
    })
}

/// The package that a script is of.
#[must_use]
pub fn package(file: &str) -> Option<&str> {
    let (_, within) = file.rsplit_once("node_modules/")?;
    let scope = if within.starts_with('@') {
        within.find('/')? + 1
    } else {
        0
    };
    let end = within[scope..].find('/')? + scope;
    Some(&within[..end])
}

/// Methods of packages that wait for something that others have: of pools, and of locks.
const POOLS: [(&str, &str); 9] = [
    ("generic-pool", "acquire"),
    ("pg-pool", "connect"),
    ("mysql", "getConnection"),
    ("mysql2", "getConnection"),
    ("mariadb", "getConnection"),
    ("oracledb", "getConnection"),
    ("tarn", "acquire"),
    ("lightning-pool", "acquire"),
    ("knex", "acquireConnection"),
];
const LOCKS: [(&str, &str); 7] = [
    ("async-mutex", "acquire"),
    ("async-mutex", "runExclusive"),
    ("async-mutex", "waitForUnlock"),
    ("async-lock", "acquire"),
    ("async-sema", "acquire"),
    ("await-lock", "acquireAsync"),
    ("mutexify", "lock"),
];

/// Modules of Node.js, by how the names of their scripts begin, and what their functions wait for.
const MODULES: [(&str, Cause); 6] = [
    ("node:internal/dns", Cause::NetDns),
    ("node:dns", Cause::NetDns),
    ("node:timers", Cause::TimerSleep),
    ("node:internal/timers", Cause::TimerSleep),
    ("node:child_process", Cause::ProcessChild),
    ("node:internal/deps/undici", Cause::NetReceive),
];

/// Methods that are called so because they take a thing that one alone can have, from a pool or as a lock, whatever library it is.
const LENDING: [&str; 5] = [
    "acquire",
    "acquireConnection",
    "getConnection",
    "checkout",
    "runExclusive",
];

/// Methods that Node.js's resolvers alone have.
const NAMES: [&str; 11] = [
    "resolve4",
    "resolve6",
    "resolveAny",
    "resolveCaa",
    "resolveCname",
    "resolveMx",
    "resolveNaptr",
    "resolveNs",
    "resolvePtr",
    "resolveSrv",
    "resolveTxt",
];

/// What an asynchronous function awaits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaits {
    /// Its cause. What only other code of the program ends counts as a lock.
    pub cause: Cause,
    /// In words, as they follow "for".
    pub what: String,
    /// Whether it is a thing of a pool.
    pub pool: bool,
    /// Whether it is a lock.
    pub lock: bool,
}

/// What it awaits, by the function that it called as the source has it, and by the script which that is of.
#[must_use]
pub fn awaits(expression: Option<&str>, script: Option<&str>) -> Awaits {
    let mut awaits = Awaits {
        cause: Cause::LockFutex,
        what: "a promise".to_owned(),
        pool: false,
        lock: false,
    };
    let Some(expression) = expression else {
        return awaits;
    };
    awaits.what = format!("{expression}()");
    let name = expression.rsplit('.').next().unwrap_or(expression);
    if LENDING.contains(&name) {
        awaits.pool = true;
        awaits.what = format!("what {expression}() gives out (of a pool or a lock, by its name)");
    }
    if NAMES.contains(&name) {
        awaits.cause = Cause::NetDns;
    }
    let Some(script) = script else { return awaits };
    if let Some(package) = package(script) {
        awaits.pool = POOLS.contains(&(package, name));
        awaits.lock = LOCKS.contains(&(package, name));
        awaits.pool |= LENDING.contains(&name) && !awaits.lock;
        awaits.what = match (awaits.pool, awaits.lock) {
            (true, _) => format!("a free connection of {package} ({expression})"),
            (_, true) => format!("a lock of {package} ({expression})"),
            _ => format!("{expression}() of {package}"),
        };
    }
    if let Some((_, cause)) = MODULES.iter().find(|(begin, _)| script.starts_with(begin)) {
        awaits.cause = *cause;
    }
    awaits
}

/// The function of libuv that runs an event loop, and that of Node.js that waits for a child process with a loop of its own.
const RUNS_LOOP: &str = "uv_run";
const AWAITS_CHILD: &str = "node::SyncProcessRunner::";

/// Whether a thread stood in JavaScript that its event loop had called.
#[must_use]
pub fn keeps_event_loop(stack: &[Frame]) -> bool {
    let outermost = stack
        .iter()
        .rposition(|frame| frame.language == Language::JavaScript);
    let is_loop = |frame: &Frame| frame.symbol.as_deref() == Some(RUNS_LOOP);
    outermost.is_some_and(|at| stack[at..].iter().any(is_loop))
}

/// Whether a thread waited for the end of a child process: `execSync` and its like.
#[must_use]
pub fn awaits_child(stack: &[Frame]) -> bool {
    let symbols = stack.iter().filter_map(|frame| frame.symbol.as_deref());
    let mut native = symbols.filter(|symbol| symbol.starts_with(AWAITS_CHILD));
    native.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::{awaits, is_installed, of_library, package};
    use holdup_evidence::Cause;

    #[test]
    fn what_is_awaited_follows_from_the_function_that_was_called() {
        let of = |expression, script| {
            let awaits = awaits(expression, script);
            (awaits.cause, awaits.what, awaits.pool, awaits.lock)
        };
        let pool = "/srv/shop/node_modules/generic-pool/lib/Pool.js";
        assert_eq!(
            of(Some("ledger.acquire"), Some(pool)),
            (
                Cause::LockFutex,
                "a free connection of generic-pool (ledger.acquire)".to_owned(),
                true,
                false
            )
        );
        assert_eq!(
            of(Some("ledger.drain"), Some(pool)).1,
            "ledger.drain() of generic-pool"
        );
        let mutex = "/srv/node_modules/async-mutex/lib/Mutex.js";
        assert!(of(Some("this.mutex.acquire"), Some(mutex)).3);
        let own = of(Some("this.sessions.acquire"), Some("/srv/shop/sessions.js"));
        assert_eq!(
            own.1,
            "what this.sessions.acquire() gives out (of a pool or a lock, by its name)"
        );
        assert!(own.2);
        let other = of(Some("this.sessions.first"), Some("/srv/shop/sessions.js"));
        assert_eq!((other.1.as_str(), other.2), ("this.sessions.first()", false));
        assert_eq!(
            of(Some("resolver.resolve4"), Some("node:internal/dns/promises")).0,
            Cause::NetDns
        );
        assert_eq!(of(Some("resolver.resolve4"), None).0, Cause::NetDns);
        assert_eq!(of(Some("promise.resolve"), None).0, Cause::LockFutex);
        assert_eq!(
            of(Some("sleep"), Some("node:timers/promises")).0,
            Cause::TimerSleep
        );
        assert_eq!(of(None, Some(pool)).1, "a promise");
    }

    #[test]
    fn a_script_is_of_the_innermost_package() {
        assert_eq!(
            package("/a/node_modules/pg/node_modules/pg-pool/index.js"),
            Some("pg-pool")
        );
        assert_eq!(
            package("/a/node_modules/@fastify/pool/x.js"),
            Some("@fastify/pool")
        );
        assert_eq!(package("/a/shop.js"), None);
        assert_eq!(package("/a/node_modules/@fastify"), None);
    }

    #[test]
    fn node_and_packages_are_not_the_program() {
        for file in [
            "node:fs",
            "node:internal/modules/cjs/loader",
            "/srv/shop/node_modules/express/lib/router/index.js",
            "",
        ] {
            assert!(of_library(file), "{file}");
        }
        for file in [
            "/srv/shop/app.js",
            "/srv/node_modules.js",
            "app.mjs",
            "evalmachine.<anonymous>",
        ] {
            assert!(!of_library(file), "{file}");
        }
        assert!(is_installed("/srv/node_modules/a.js") && !is_installed("node:fs"));
    }
}
