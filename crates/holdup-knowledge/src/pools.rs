//! Pools of connections in scripting languages: the code in which a thread waits until one is free. Those of Java are in [`crate::java`].
//!
//! In: a stack. Out: whether its thread waits for a pool, and whether it has what a pool gives out.

use crate::{python, ruby};
use holdup_evidence::{Frame, Language};

/// A pool's code.
#[derive(Debug, PartialEq, Eq)]
struct Pool {
    language: Language,
    /// How the path ends of the file in which threads wait.
    file: &'static str,
    /// The functions there that wait; none: all that wait in that file.
    functions: &'static [&'static str],
    /// The folder or file of the pool itself: what is called through it has a connection.
    of: &'static str,
}

const POOLS: [Pool; 9] = [
    Pool {
        language: Language::Ruby,
        file: "/connection_pool/timed_stack.rb",
        functions: &["pop"],
        of: "/lib/connection_pool.rb",
    },
    Pool {
        language: Language::Ruby,
        file: "/connection_adapters/abstract/connection_pool/queue.rb",
        functions: &["poll", "internal_poll", "wait_poll"],
        of: "/connection_adapters/abstract/connection_pool.rb",
    },
    Pool {
        language: Language::Ruby,
        file: "/sequel/connection_pool/threaded.rb",
        functions: &["acquire", "wait_until_available"],
        of: "/sequel/connection_pool/threaded.rb",
    },
    Pool {
        language: Language::Ruby,
        file: "/sequel/connection_pool/timed_queue.rb",
        functions: &["acquire"],
        of: "/sequel/connection_pool/timed_queue.rb",
    },
    Pool {
        language: Language::Python,
        file: "/sqlalchemy/util/queue.py",
        functions: &["get"],
        of: "/sqlalchemy/engine/",
    },
    Pool {
        language: Language::Python,
        file: "/psycopg_pool/pool.py",
        functions: &["getconn", "wait", "_getconn_unchecked"],
        of: "/psycopg_pool/",
    },
    Pool {
        language: Language::Python,
        file: "/redis/connection.py",
        functions: &["get_connection"],
        of: "/redis/client.py",
    },
    Pool {
        language: Language::Python,
        file: "/urllib3/connectionpool.py",
        functions: &["_get_conn"],
        of: "/urllib3/connectionpool.py",
    },
    Pool {
        language: Language::Python,
        file: "/pymongo/pool.py",
        functions: &["_get_conn", "_get_socket", "checkout"],
        of: "/pymongo/",
    },
];

/// Files of the languages' own libraries in which threads wait for each other, by name.
const WAITING: [&str; 3] = ["threading.py", "queue.py", "monitor.rb"];

/// What Ruby puts before the name of a method within which a block is.
const BLOCK_IN: &str = " in ";

/// The pool that a thread waits for: the innermost code that is not the language's own is the pool's. One that makes a new connection
/// waits in a driver, for something else.
fn awaited(stack: &[Frame]) -> Option<&'static Pool> {
    let scripted = stack
        .iter()
        .filter(|frame| matches!(frame.language, Language::Ruby | Language::Python));
    for frame in scripted {
        let Some(file) = frame.file.as_deref() else {
            continue;
        };
        let pool = POOLS
            .iter()
            .find(|pool| pool.language == frame.language && file.ends_with(pool.file) && is_of(pool, frame));
        if pool.is_some() {
            return pool;
        }
        let name = file.rsplit('/').next().unwrap_or(file);
        let of_pool = POOLS.iter().any(|pool| file.ends_with(pool.file));
        if !WAITING.contains(&name) && !of_pool {
            return None;
        }
    }
    None
}

fn is_of(pool: &Pool, frame: &Frame) -> bool {
    let symbol = frame.symbol.as_deref().unwrap_or_default();
    let method = symbol.rsplit(BLOCK_IN).next().unwrap_or(symbol);
    let bare = method.rsplit('.').next().unwrap_or(method);
    pool.functions.contains(&bare)
}

/// Whether a thread waits for a free connection of a pool.
#[must_use]
pub fn waits(stack: &[Frame]) -> bool {
    awaited(stack).is_some()
}

/// Whether a thread is in code that has a connection of the same pool as the one that `waiter` waits for.
#[must_use]
pub fn has_one(stack: &[Frame], waiter: &[Frame]) -> bool {
    let Some(pool) = awaited(waiter).filter(|_| !waits(stack)) else {
        return false;
    };
    stack.iter().any(|frame| {
        let file = frame.file.as_deref().unwrap_or_default();
        let of = match pool.of.ends_with('/') {
            true => file.contains(pool.of),
            false => file.ends_with(pool.of),
        };
        frame.language == pool.language && of
    })
}

/// Whether a function of such a language is the program's, and no library's.
#[must_use]
pub fn is_application(frame: &Frame) -> bool {
    match (frame.language, &frame.file) {
        (Language::Ruby, Some(file)) => !ruby::of_library(file),
        (Language::Python, Some(_)) => !python::is_of_library(frame),
        _ => false,
    }
}

/// The program's own function that wants the connection, and what of the library it called for it, innermost first.
#[must_use]
pub fn entry(stack: &[Frame]) -> Option<&Frame> {
    let pool = awaited(stack)?;
    let of = |frame: &&Frame| {
        let file = frame.file.as_deref().unwrap_or_default();
        file.ends_with(pool.file) || file.ends_with(pool.of) || file.contains(pool.of)
    };
    stack.iter().rfind(of)
}

#[cfg(test)]
mod tests {
    use super::{entry, has_one, waits};
    use holdup_evidence::{Frame, Language};

    fn stack(language: Language, frames: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(symbol, file): &(&str, &str)| Frame {
            symbol: Some((*symbol).to_owned()),
            file: (!file.is_empty()).then(|| (*file).to_owned()),
            language,
            ..Frame::default()
        };
        frames.iter().map(frame).collect()
    }

    const STACK: &str = "/gems/connection_pool-2.4/lib/connection_pool/timed_stack.rb";
    const POOL: &str = "/gems/connection_pool-2.4/lib/connection_pool.rb";

    #[test]
    fn who_waits_for_a_connection_and_who_has_one() {
        let ruby = |frames: &[(&str, &str)]| stack(Language::Ruby, frames);
        let waiter = ruby(&[
            ("sleep", ""),
            ("wait", ""),
            ("block (2 levels) in pop", STACK),
            ("synchronize", ""),
            ("checkout", POOL),
            ("with", POOL),
            ("item", "/srv/shop.rb"),
        ]);
        assert!(waits(&waiter));
        assert_eq!(entry(&waiter).unwrap().symbol.as_deref(), Some("with"));
        let holder = ruby(&[
            ("gets", ""),
            ("rates", "/srv/shop.rb"),
            ("block in with", POOL),
            ("prices", "/srv/shop.rb"),
        ]);
        assert!(!waits(&holder) && has_one(&holder, &waiter));
        assert!(!has_one(&waiter, &waiter), "it has none yet");
        let other = ruby(&[("gets", ""), ("run", "/srv/shop.rb")]);
        assert!(!has_one(&other, &waiter));
    }

    #[test]
    fn a_queue_of_a_program_is_no_pool_and_a_new_connection_waits_for_a_server() {
        let python = |frames: &[(&str, &str)]| stack(Language::Python, frames);
        let queue = ("Queue.get", "/usr/lib/python3.11/queue.py");
        let condition = ("Condition.wait", "/usr/lib/python3.11/threading.py");
        assert!(!waits(&python(&[condition, queue, ("work", "/srv/worker.py")])));
        let urllib3 = "/site-packages/urllib3/connectionpool.py";
        assert!(waits(&python(&[
            condition,
            queue,
            ("HTTPConnectionPool._get_conn", urllib3)
        ])));
        let connects = ("create_connection", "/site-packages/urllib3/util/connection.py");
        assert!(!waits(&python(&[
            connects,
            ("HTTPConnectionPool._get_conn", urllib3)
        ])));
    }
}
