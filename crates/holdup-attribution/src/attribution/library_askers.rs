//! What of the application the thread of a library waits for.
//!
//! The problem: a client library has a thread of its own that talks to the server, while the threads that asked wait within the library for that
//! thread. The one wait says where, the other who asked. The choice: a thread in which is no function of the application waits for something outside
//! of the process; threads of the same process that stand in functions of the same library, which the application called, have asked, those of the
//! place with most of them.
//!
//! In: waits. Out: waits of such threads with the frames of who asked in the place of those outside of the library.

use super::asker;
use holdup_evidence::{Cause, Frame, Language, Ns};
use holdup_knowledge::{java, python, rust};
use holdup_model::attributed::AttributedWait;
use std::collections::BTreeMap;

/// Frames that are looked through for a library.
const FRAMES_MAX: usize = 200;

/// The part of a library's thread's wait, one in so many, that those who asked must have waited to be whom it was for: less, and it mostly rested,
/// or asked for others who have what they wanted.
const ASKED_PART: Ns = 2;

/// A library, by what its functions have in common: how the names of its classes begin, the folder of its package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Library {
    Java(&'static str),
    Folder(String),
}

/// A function and a line of it, each where it is known.
type Place = (Option<String>, Option<u32>);

/// Somebody who waits within a library.
struct Asking {
    pid: u32,
    libraries: Vec<Library>,
    /// From the function of the application outwards.
    frames: Vec<Frame>,
    place: Place,
    /// How long it has waited so, all its waits of this kind together.
    ns: Ns,
}

/// Who asked a library's thread.
struct Asked {
    /// Frames of the library's own that are before theirs.
    behind: usize,
    threads: u32,
    frames: Vec<Frame>,
    /// How long they have waited, all together.
    ns: Ns,
}

/// Puts the frames of who asked into the stacks of the waits of libraries' threads.
pub(super) fn put_in_place(waits: &mut [AttributedWait]) {
    if !waits.iter().any(is_outside) {
        return;
    }
    let asking: Vec<Asking> = waits.iter().filter_map(asking).collect();
    if asking.is_empty() {
        return;
    }
    for wait in waits.iter_mut().filter(|wait| is_outside(wait)) {
        let libraries = of_libraries(&wait.asker.stack);
        let asked = asked(&asking, wait.asker.name.pid, &libraries);
        let covers = |asked: &Asked| wait.count <= 1 || asked.ns >= wait.ns / ASKED_PART;
        let Some(Asked {
            behind,
            threads,
            frames,
            ..
        }) = asked.filter(covers)
        else {
            continue;
        };
        wait.asker.stack.truncate(behind);
        wait.asker.stack.extend(frames);
        let chosen = asker::choose(&wait.asker.stack);
        (wait.asker.frame, wait.asker.module) = (chosen.frame, chosen.module);
        wait.resource.detail.asks_for_threads = Some(threads);
    }
}

/// Whether a thread stands in a wait for what comes from outside of its process.
fn is_outside(wait: &AttributedWait) -> bool {
    let outside = matches!(
        wait.cause,
        Cause::NetReceive
            | Cause::NetSend
            | Cause::NetConnect
            | Cause::NetDns
            | Cause::NetTls
            | Cause::IpcUnix
            | Cause::IpcPipe
    );
    outside && wait.open
}

/// The libraries that a thread is in, with how many frames are those up to where each is left first; none if a function of the application is in
/// its stack.
fn of_libraries(stack: &[Frame]) -> Vec<(Library, usize)> {
    let mut found: Vec<(Library, usize)> = Vec::new();
    if asker::place(stack).is_some_and(|place| asker::is_applications(&place)) {
        return found;
    }
    for (at, frame) in stack.iter().take(FRAMES_MAX).enumerate() {
        let Some(of) = library(frame) else { continue };
        match found.iter_mut().find(|(known, _)| *known == of) {
            Some((_, behind)) if *behind == at => *behind = at + 1,
            Some(_) => {}
            None => found.push((of, at + 1)),
        }
    }
    found
}

/// Who asked, if a wait is of one who stands for what another thread of the process does, within libraries that the application called.
fn asking(wait: &AttributedWait) -> Option<Asking> {
    if wait.cause != Cause::LockFutex || !wait.open {
        return None;
    }
    let stack = &wait.asker.stack;
    let place = asker::place(stack).filter(asker::is_applications)?;
    let is = |frame: &Frame| {
        let symbol = frame.symbol.as_deref().map(bare);
        frame.line == place.line && frame.file == place.file && symbol == place.symbol.as_deref().map(bare)
    };
    let at = stack.iter().position(is)?;
    let mut libraries: Vec<Library> = stack[..at.min(FRAMES_MAX)].iter().filter_map(library).collect();
    libraries.dedup();
    (!libraries.is_empty()).then(|| Asking {
        pid: wait.asker.name.pid,
        libraries,
        frames: stack[at..].to_vec(),
        place: (place.symbol, place.line),
        ns: wait.ns,
    })
}

/// A name without its place in the source, as Java's frames may have it.
fn bare(symbol: &str) -> &str {
    java::bare(symbol)
}

/// Who asked one of these libraries of a process for something; of several places that at which most of them stand.
fn asked(asking: &[Asking], pid: u32, libraries: &[(Library, usize)]) -> Option<Asked> {
    let mut places: BTreeMap<&Place, (u32, usize, &Asking, Ns)> = BTreeMap::new();
    for one in asking.iter().filter(|one| one.pid == pid) {
        let mut shared = libraries
            .iter()
            .filter(|(library, _)| one.libraries.contains(library));
        if let Some((_, behind)) = shared.next() {
            let known = places.entry(&one.place).or_insert((0, *behind, one, 0));
            known.0 += 1;
            known.3 = known.3.saturating_add(one.ns);
        }
    }
    let most = places.into_values().max_by_key(|(count, ..)| *count);
    most.map(|(threads, behind, one, ns)| Asked {
        behind,
        threads,
        frames: one.frames.clone(),
        ns,
    })
}

/// Crates of Rust that run others' code, or of which all of them are made.
const OF_ALL_CRATES: [&str; 10] = [
    "tokio",
    "mio",
    "futures-util",
    "futures-core",
    "futures-executor",
    "parking_lot",
    "parking_lot_core",
    "lock_api",
    "crossbeam-channel",
    "crossbeam-utils",
];

/// Folders in which each package has one.
const PACKAGES: [&str; 3] = ["site-packages/", "dist-packages/", "/gems/"];

/// The library that a frame is of.
fn library(frame: &Frame) -> Option<Library> {
    match frame.language {
        Language::Java => java::library(frame.symbol.as_deref()?).map(Library::Java),
        Language::Python if !python::is_of_library(frame) => None,
        Language::Python | Language::Ruby => {
            let file = frame.file.as_deref()?;
            let folder = PACKAGES.iter().find_map(|folders| file.rsplit_once(folders))?.1;
            let name = folder.split('/').next().filter(|name| !name.is_empty())?;
            Some(Library::Folder(name.to_owned()))
        }
        Language::Native if rust::fetched_crate(frame).is_some() => {
            let name = rust::fetched_crate(frame)?;
            (!OF_ALL_CRATES.contains(&name)).then(|| Library::Folder(name.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::put_in_place;
    use holdup_evidence::{Cause, Frame, Language};
    use holdup_model::attributed::AttributedWait;

    fn frame(language: Language, symbol: &str, file: &str, module: &str) -> Frame {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Frame {
            symbol: some(symbol),
            file: some(file),
            module: some(module),
            line: Some(7),
            language,
            ..Frame::default()
        }
    }

    fn wait(cause: Cause, tid: u32, stack: Vec<Frame>) -> AttributedWait {
        let wait = serde_json::json!({"cause": cause, "ns": 1, "open": true, "asker": {"name": {"pid": 7, "tid": tid}}});
        let mut wait: AttributedWait = serde_json::from_value(wait).unwrap();
        wait.asker.stack = stack;
        wait
    }

    fn asked(mut waits: Vec<AttributedWait>) -> Option<String> {
        put_in_place(&mut waits);
        waits.remove(0).asker.frame
    }

    fn java(symbols: &[&str]) -> Vec<Frame> {
        let one = |symbol: &&str| {
            let class = symbol.rsplit('.').nth(1).unwrap_or_default();
            frame(Language::Java, symbol, &format!("{class}.java"), "")
        };
        symbols.iter().map(one).collect()
    }

    #[test]
    fn a_client_librarys_thread_waits_for_whom_stands_in_that_library() {
        let network = java(&[
            "sun.nio.ch.EPoll.wait",
            "org.apache.kafka.common.network.Selector.select",
            "org.apache.kafka.clients.NetworkClient.poll",
            "java.lang.Thread.run",
        ]);
        let asks = |library: &str, own: &str| {
            java(&[
                "java.lang.Object.wait",
                library,
                own,
                "io.javalin.router.Endpoint.handle",
                "java.lang.Thread.run",
            ])
        };
        let send = "org.apache.kafka.clients.producer.KafkaProducer.send";
        let network = || wait(Cause::NetReceive, 8, network.clone());
        let of = |library: &str, own: &str, tid| wait(Cause::LockFutex, tid, asks(library, own));
        let placed = "com.shop.Events.placed";
        let waits = vec![
            network(),
            of(send, "com.shop.Audit.tell", 9),
            of(send, placed, 10),
            of(send, placed, 11),
        ];
        assert_eq!(asked(waits).as_deref(), Some(placed), "most of them stand there");
        let mut two = vec![network(), of(send, placed, 10), of(send, placed, 11)];
        put_in_place(&mut two);
        assert_eq!(two[0].resource.detail.asks_for_threads, Some(2));
        let other = vec![
            network(),
            of("com.mongodb.client.internal.MongoClientImpl.find", placed, 10),
        ];
        assert_ne!(asked(other).as_deref(), Some(placed), "another library's thread");
        let mut idle = of(send, placed, 10);
        idle.cause = Cause::Idle;
        assert_ne!(asked(vec![network(), idle]).as_deref(), Some(placed));
    }

    #[test]
    fn packages_of_python_are_told_by_their_folder() {
        let package = |symbol: &str, file: &str| {
            let file = format!("/usr/lib/python3/dist-packages/{file}");
            frame(Language::Python, symbol, &file, "")
        };
        let library = |symbol: &str, file: &str| {
            frame(
                Language::Python,
                symbol,
                &format!("/usr/lib/python3.11/{file}"),
                "",
            )
        };
        let network = vec![
            library("EpollSelector.select", "selectors.py"),
            package("KafkaClient.poll", "kafka/client_async.py"),
            package("Sender.run", "kafka/producer/sender.py"),
            library("Thread._bootstrap", "threading.py"),
        ];
        let asks = |of: &str| {
            vec![
                library("Event.wait", "threading.py"),
                package("KafkaProducer._wait_on_metadata", of),
                frame(Language::Python, "tell", "/srv/shop.py", ""),
            ]
        };
        let waits = |of: &str| {
            vec![
                wait(Cause::NetReceive, 8, network.clone()),
                wait(Cause::LockFutex, 9, asks(of)),
            ]
        };
        assert_eq!(asked(waits("kafka/producer/kafka.py")).as_deref(), Some("tell"));
        assert_ne!(asked(waits("pika/channel.py")).as_deref(), Some("tell"));
    }

    #[test]
    fn a_crate_of_rust_is_told_by_its_folder_and_one_that_runs_others_code_stands_for_nobody() {
        let of = |symbol: &str, file: &str| {
            let file = format!("/home/dev/.cargo/registry/src/index.crates.io-1949/{file}");
            frame(Language::Native, symbol, &file, "shop")
        };
        let main = || frame(Language::Native, "shop::tell", "/srv/shop/src/main.rs", "shop");
        let runs = || {
            of(
                "tokio::runtime::park::CachedParkThread::block_on",
                "tokio-1.38.0/src/runtime/park.rs",
            )
        };
        let network = vec![
            frame(Language::Native, "epoll_wait", "", "libc.so.6"),
            of("mio::poll::Poll::poll", "mio-0.8.11/src/poll.rs"),
            runs(),
            of(
                "reqwest::blocking::client::ClientHandle::new::{{closure}}",
                "reqwest-0.11.27/src/blocking/client.rs",
            ),
        ];
        let waits = |inner: Frame| {
            vec![
                wait(Cause::NetReceive, 8, network.clone()),
                wait(Cause::LockFutex, 9, vec![inner, main()]),
            ]
        };
        let blocking = of(
            "reqwest::blocking::wait::timeout",
            "reqwest-0.11.27/src/blocking/wait.rs",
        );
        assert_eq!(asked(waits(blocking)).as_deref(), Some("shop::tell"));
        assert_ne!(asked(waits(runs())).as_deref(), Some("shop::tell"));
    }

    #[test]
    fn who_asks_itself_is_asked_for_nobody_else() {
        let send = "org.apache.kafka.clients.producer.KafkaProducer.send";
        let own = java(&[
            "sun.nio.ch.EPoll.wait",
            "org.apache.kafka.clients.NetworkClient.poll",
            "com.shop.Feed.run",
        ]);
        let asks = java(&["java.lang.Object.wait", send, "com.shop.Events.placed"]);
        let mut waits = vec![wait(Cause::NetReceive, 8, own), wait(Cause::LockFutex, 9, asks)];
        let before = waits[0].asker.stack.clone();
        put_in_place(&mut waits);
        assert_eq!(waits[0].asker.stack, before);
    }
}
