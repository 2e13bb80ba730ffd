//! Warnings of Vert.x (and Quarkus) about threads of its event loop that are blocked, with the stack that follows.
//!
//! In: `Thread Thread[vert.x-eventloop-thread-3,5,main] has been blocked for 5234 ms, time limit is 2000 ms`, and frames below it. Out: a
//! statement for each place in the application: how long the thread was blocked there at most, and how often that was said.
//! Source: `BlockedThreadChecker.java` of Vert.x.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{any_line, holds, name_of, number, text_in};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("vertx-blocked", Family::Logs, recognise)
    .about("blocked threads in a log of Vert.x");

/// Places that are kept apart.
const MAX_PLACES: usize = 200;

/// Packages of the runtime and of Vert.x itself, whose functions do not say for what.
const RUNTIME: [&str; 9] = [
    "java.",
    "jdk.",
    "sun.",
    "javax.",
    "com.sun.",
    "io.vertx.",
    "io.netty.",
    "io.quarkus.",
    "kotlin",
];

fn recognise(head: &[u8]) -> Sureness {
    if !holds(head, "has been blocked for") || !any_line(head, |line| Blocked::of(line).is_some()) {
        return Sureness::No;
    }
    // Logs of a whole machine have their own reader.
    Sureness::Likely
}

#[derive(Debug, PartialEq)]
struct Blocked {
    thread: String,
    ms: f64,
    limit: String,
}

impl Blocked {
    fn of(line: &str) -> Option<Blocked> {
        let (before, rest) = line.split_once(" has been blocked for ")?;
        let (ms, rest) = rest.split_once(" ms")?;
        // `Thread Thread[NAME,5,main]=Thread[NAME,5,main]`.
        let (_, name) = before.split_once("Thread[")?;
        // Since Java 19 with its number: `Thread[#23,NAME,5,main]`.
        let numbered = name.strip_prefix('#').and_then(|rest| rest.split_once(','));
        let name = numbered.map_or(name, |(_, name)| name);
        let thread = name_of(name.split([',', ']']).next()?);
        let limit = rest.split_once("time limit is ").map_or("", |(_, limit)| limit);
        Some(Blocked {
            thread,
            ms: number(ms.trim())?,
            limit: name_of(limit),
        })
    }
}

/// `at com.shop.Orders.load(Orders.java:12)`: the function with its file, and whether it is the application's.
fn frame(line: &str) -> Option<(String, bool)> {
    let call = line.strip_prefix("at ")?;
    // Logback and Log4j tell the archive behind a frame: `~[shop-1.2.jar:na]`, `[classes/:?]`.
    let archive = call
        .rsplit_once(") ")
        .filter(|(_, archive)| archive.trim_start_matches('~').starts_with('[') && archive.ends_with(']'));
    let bare = archive.and_then(|(frame, _)| call.get(..=frame.len()));
    let call = bare.unwrap_or(call);
    let (function, _) = call.split_once('(')?;
    if !call.ends_with(')') || function.contains(' ') {
        return None;
    }
    let call = call
        .rsplit_once('/')
        .filter(|(module, _)| !module.contains('('))
        .map_or(call, |(_, call)| call);
    let own = !RUNTIME.iter().any(|package| call.starts_with(package));
    Some((name_of(call), own))
}

#[derive(Debug)]
struct Place {
    at: String,
    thread: String,
    ms: f64,
    limit: String,
    times: u64,
    quote: Quote,
}

#[derive(Debug, Default)]
struct Reader {
    /// The warning whose stack is being read, with the innermost function and that of the application.
    current: Option<(Blocked, Quote, Option<String>, Option<String>)>,
    places: Vec<Place>,
}

impl Reader {
    fn close(&mut self, out: &mut Out<'_>) {
        let Some((blocked, quote, own, inner)) = self.current.take() else {
            return;
        };
        let at = match (own, inner) {
            (Some(own), Some(inner)) if own != inner => format!("in {own}, within {inner}"),
            (Some(one), _) | (None, Some(one)) => format!("in {one}"),
            (None, None) => String::new(),
        };
        // Without a stack each thread is a place of its own.
        let same = |place: &&mut Place| place.at == at && (!at.is_empty() || place.thread == blocked.thread);
        if let Some(known) = self.places.iter_mut().find(same) {
            known.times = known.times.saturating_add(1);
            if blocked.ms > known.ms {
                (known.ms, known.thread, known.quote) = (blocked.ms, blocked.thread, quote);
            }
        } else if self.places.len() < MAX_PLACES {
            let Blocked { thread, ms, limit } = blocked;
            self.places.push(Place {
                at,
                thread,
                ms,
                limit,
                times: 1,
                quote,
            });
        } else {
            out.account().left_out += 1;
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_in(line);
        if let Some(blocked) = Blocked::of(&text) {
            self.close(out);
            self.current = Some((blocked, out.here(), None, None));
            return Understood::Evidence;
        }
        let Some((_, _, own, inner)) = &mut self.current else {
            return Understood::Ignorable;
        };
        if let Some((call, is_own)) = frame(&text) {
            if inner.is_none() {
                *inner = Some(call.clone());
            }
            if is_own && own.is_none() {
                *own = Some(call);
            }
            return Understood::Evidence;
        }
        if text.contains("VertxException: Thread blocked") {
            return Understood::Evidence;
        }
        if inner.is_some() {
            self.close(out);
        }
        Understood::Ignorable
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
        for place in std::mem::take(&mut self.places) {
            let ns = (place.ms.clamp(0.0, 1e12) * 1e6) as Ns;
            let at = if place.at.is_empty() {
                String::new()
            } else {
                format!(" {}", place.at)
            };
            let mut text = format!("thread {} was blocked for {}{at}", place.thread, duration(ns));
            if !place.limit.is_empty() {
                text.push_str(&format!("; the time limit is {}", place.limit));
            }
            if place.times > 1 {
                text.push_str(&format!("; reported {} times", place.times));
            }
            out.statement(Statement {
                times: place.times,
                ..statements::one(StatementKind::Stalled, Some(ns), place.quote, text)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const LOG: &str = "10:00:01 WARN  Thread Thread[vert.x-eventloop-thread-3,5,main] has been blocked for 2300 ms, time limit is 2000 ms\n\
        10:00:06 WARN  Thread Thread[vert.x-eventloop-thread-3,5,main] has been blocked for 7300 ms, time limit is 2000 ms\n\
        io.vertx.core.VertxException: Thread blocked\n\tat java.base@17/java.net.SocketInputStream.socketRead0(Native Method)\n\
        \tat app//org.shop.Orders.load(Orders.java:41)\n\tat io.vertx.core.impl.ContextImpl.run(ContextImpl.java:9)\n";

    #[test]
    fn where_the_thread_was_blocked() {
        let reading = read_text("v", LOG.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "vertx-blocked");
        let text = reading.texts();
        assert!(
            text.contains(
                &"thread vert.x-eventloop-thread-3 was blocked for 7.30 s in org.shop.Orders.load(Orders.java:41), within \
                  java.net.SocketInputStream.socketRead0(Native Method); the time limit is 2000 ms"
            ),
            "{text:?}"
        );
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Stalled);
    }

    #[test]
    fn without_a_stack_it_is_the_thread() {
        let text = "Thread Thread[worker-1,5,main]=Thread[worker-1,5,main] has been blocked for 61000 ms, time limit is 60000 ms\n";
        assert_eq!(
            read_text("v", text.as_bytes()).texts(),
            ["thread worker-1 was blocked for 1 min 1 s; the time limit is 60000 ms"]
        );
    }

    #[test]
    fn frames_with_their_archive_and_none_of_the_application() {
        let text = "01:02:03.004 WARN - Thread Thread[vert.x-eventloop-thread-0,5,main] has been blocked for 9000 ms, time limit is 2000\n\
            io.vertx.core.VertxException: Thread blocked\n\
            \tat io.vertx.ext.web.impl.Utils.pathOffset(Utils.java:88) ~[shop-1.2.jar:na]\n\
            \tat io.netty.util.Executor.run(Executor.java:4) [netty.jar:?]\n";
        assert_eq!(
            read_text("v", text.as_bytes()).texts(),
            [
                "thread vert.x-eventloop-thread-0 was blocked for 9.00 s in io.vertx.ext.web.impl.Utils.pathOffset(Utils.java:88); the time limit is 2000"
            ]
        );
        let own = text.replace(
            "io.netty.util.Executor.run(Executor.java:4) [netty.jar:?]",
            "org.shop.Cart.add(Cart.kt:7) ~[classes/:na]",
        );
        let texts = read_text("v", own.as_bytes()).texts().join("");
        assert!(texts.contains("in org.shop.Cart.add(Cart.kt:7), within io.vertx.ext.web.impl.Utils.pathOffset(Utils.java:88)"), "{texts}");
    }

    #[test]
    fn other_logs_are_none() {
        let text = "Your account has been blocked for 30 days\nThread[a] has been blocked for ages\n";
        assert_ne!(
            read_text("v", text.as_bytes()).observed.sources[0].format,
            "vertx-blocked"
        );
    }
}
