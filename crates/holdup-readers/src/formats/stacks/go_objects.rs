//! Which goroutine may have a mutex that others wait for: one that is in another method of the same object.
//!
//! In: of each goroutine the methods on its stack with their receivers, which Go prints as the first argument, and whether it waits for a mutex. Out:
//! for the object behind most of the waits, who is in a method of it without waiting for the lock, and what that one does. Go's dumps do not say who
//! has a mutex: this is a guess with a reason, and says so.

use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, Statement, StatementKind};
use holdup_evidence::units::duration;
use std::collections::HashMap;

/// Objects that are kept, methods of one goroutine that are looked at, and those who may have the lock that are kept of one object.
const MAX_OBJECTS: usize = 4_096;
const MAX_METHODS: usize = 12;
const MAX_OTHERS: usize = 4;

/// What the names of methods begin or end with in which a goroutine rests for as long as the program runs, with no lock.
const RESTS: [&str; 16] = [
    "run", "serve", "start", "listen", "loop", "watch", "wait", "accept", "monitor", "work", "janitor",
    "clean", "sweep", "tick", "alive", "flush",
];

/// Whether a goroutine may be in a method for as long as the program runs: `(*Server).ListenAndServe`, `(*pool).runLoop`.
fn rests(method: &str) -> bool {
    let name = method.rsplit('.').next().unwrap_or(method).to_ascii_lowercase();
    RESTS
        .iter()
        .any(|word| name.starts_with(word) || name.ends_with(word))
}

/// What goroutines do with one object.
#[derive(Debug, Default)]
struct Object {
    waiting: u64,
    /// Whether one of them does so for a minute or more, from which Go tells it.
    long: bool,
    /// The method in which the first of them waits.
    method: String,
    others: Vec<Other>,
}

/// A goroutine that is in a method of it without waiting for a mutex.
#[derive(Debug)]
struct Other {
    id: Option<u64>,
    method: String,
    state: String,
    since: Option<Ns>,
    quote: Quote,
}

/// The goroutine that is being read.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Methods with their receivers, innermost first.
    methods: Vec<(String, String)>,
    waits: bool,
}

impl Seen {
    /// Takes a function with its arguments.
    pub(super) fn call(&mut self, function: &[u8], arguments: &[u8]) {
        let of_library = [&b"sync."[..], b"internal/", b"runtime."]
            .iter()
            .any(|of| function.starts_with(of));
        if of_library || self.methods.len() >= MAX_METHODS || !function.windows(2).any(|two| two == b"(*") {
            return;
        }
        let first = arguments.split(|byte| *byte == b',').next().unwrap_or_default();
        // One with a question mark may be a value of another time; nil is no object.
        let sure =
            first.starts_with(b"0xc") && first.len() > 6 && first.iter().skip(2).all(u8::is_ascii_hexdigit);
        if sure {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            self.methods.push((text(function), text(first)));
        }
    }

    /// It waits for a mutex.
    pub(super) fn waits(&mut self) {
        self.waits = true;
    }
}

/// All objects of one dump.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: HashMap<String, Object, foldhash::fast::FixedState>,
    /// How many wait for a mutex at all.
    waiting: u64,
}

impl Objects {
    /// Takes a goroutine that has been read: its number, its state in the runtime's words, how long it is in that.
    pub(super) fn take(
        &mut self,
        seen: Seen,
        (id, state, since): (Option<u64>, &str, Option<Ns>),
        quote: &Quote,
    ) {
        self.waiting += u64::from(seen.waits);
        let innermost = seen.methods.first().map(|(_, receiver)| receiver.clone());
        for (method, receiver) in seen.methods {
            let waits_in_it = seen.waits && innermost.as_ref() == Some(&receiver);
            if seen.waits && !waits_in_it
                || !self.all.contains_key(&receiver) && self.all.len() >= MAX_OBJECTS
            {
                continue;
            }
            let object = self.all.entry(receiver).or_default();
            if waits_in_it {
                object.waiting += 1;
                object.long |= since.is_some();
                if object.method.is_empty() {
                    object.method = method;
                }
                // One method of it may call another.
                break;
            }
            let known = object.others.iter().any(|other| other.id == id);
            if !known && !rests(&method) && object.others.len() < MAX_OTHERS {
                let (state, quote) = (state.to_owned(), quote.clone());
                object.others.push(Other {
                    id,
                    method,
                    state,
                    since,
                    quote,
                });
            }
        }
    }

    /// Who may have the lock that most wait for.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        let all = std::mem::take(&mut self.all);
        let candidates = all
            .iter()
            .filter(|(_, object)| (object.waiting > 1 || object.long) && object.others.len() == 1);
        let Some((receiver, object)) =
            candidates.max_by_key(|(receiver, object)| (object.waiting, *receiver))
        else {
            return;
        };
        let Some(other) = object.others.first() else {
            return;
        };
        let id = other.id.map_or_else(String::new, |id| format!(" {id}"));
        let since = other
            .since
            .map_or_else(String::new, |since| format!(" for at least {}", duration(since)));
        let (count, wait) = match object.waiting {
            1 => ("a goroutine waits".to_owned(), "it waits"),
            count => (format!("{count} goroutines wait"), "they wait"),
        };
        let text = format!(
            "{count} for a mutex in {} of the object {receiver}; goroutine{id}, which is in {} of the same object ({}{since}), may have what {wait} for",
            object.method, other.method, other.state
        );
        out.statement(Statement {
            of_reader: true,
            share: Some(object.waiting as f64 / self.waiting.max(1) as f64),
            ..statements::one(StatementKind::Stalled, other.since, other.quote.clone(), text)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const DUMP: &str = "goroutine 31 [sync.Mutex.Lock, 57 minutes]:\nsync.(*Mutex).Lock(...)\n\t/go/sync/mutex.go:90\n\
        main.(*Shelf).Get(0xc000010000, {0x1, 0x2})\n\t/app/shelf.go:31 +0x5c\n\n\
        goroutine 32 [IO wait, 58 minutes]:\nnet.(*conn).Read(0xc000012000, {0xc00001, 0x1000, 0x1000})\n\t/go/net/net.go:179 +0x45\n\
        main.(*Shelf).refill(0xc000010000)\n\t/app/shelf.go:52 +0x8c\n\n\
        goroutine 33 [sync.Mutex.Lock, 57 minutes]:\nsync.(*Mutex).Lock(...)\n\t/go/sync/mutex.go:90\n\
        main.(*Shelf).Get(0xc000010000, {0x1, 0x2})\n\t/app/shelf.go:31 +0x5c\n";

    fn said(text: &str) -> Vec<String> {
        let all = read_text("g", text.as_bytes()).observed.statements.into_iter();
        all.map(|one| one.text).collect()
    }

    #[test]
    fn one_in_another_method_of_the_object_may_have_its_mutex() {
        assert_eq!(
            said(DUMP),
            [
                "2 goroutines wait for a mutex in main.(*Shelf).Get of the object 0xc000010000; goroutine 32, which is in main.(*Shelf).refill of the \
              same object (IO wait for at least 58 min 0 s), may have what they wait for"
            ]
        );
    }

    #[test]
    fn without_one_or_with_several_nothing_is_said() {
        let another = DUMP.replace("refill(0xc000010000)", "refill(0xc000990000)");
        let several = format!(
            "{DUMP}\n{}",
            DUMP.split("\n\n")
                .nth(1)
                .unwrap()
                .replace("goroutine 32", "goroutine 39")
        );
        let unsure = DUMP.replace("refill(0xc000010000)", "refill(0xc000010000?)");
        let rests = DUMP.replace("refill", "janitor");
        let moment = DUMP.split("\n\n").take(2).collect::<Vec<_>>().join("\n\n");
        let moment = moment.replace("Lock, 57 minutes", "Lock");
        for text in [another, several, unsure, rests, moment] {
            assert!(said(&text).is_empty(), "{:?}", said(&text));
        }
    }
}
