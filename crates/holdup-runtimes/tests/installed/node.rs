//! Node.js as it is installed here, asleep six calls deep: function, file and line of every frame are compared with the stack that
//! the program itself prints.

use crate::support::{Running, Sleeper, place_of};
use holdup_runtimes::interpreted::Interpreted;
use holdup_runtimes::node::{Asleep, Engine, Place, SYMBOLS, Stack, Version, may_be_in};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The main thread sleeps below a method, an arrow function, a function without a name, a call from V8's own code and a function that
/// is not of one byte a character. The line on which it sleeps is also that on which it says where it stands.
const PROGRAM: &str = r#"// « … »
Error.stackTraceLimit = 50;
const cell = new Int32Array(new SharedArrayBuffer(4));
const [truth, times] = [process.argv[2] === 'truth', +process.argv[3]];

class Shop {
  checkout(hot) {
    if (hot) return hot;

    return truth ? console.log(new Error().stack) : (console.log('ready'), Atomics.wait(cell, 0, 0));
  }
}

const prices = (shop, hot) => {
  return shop.checkout(
    hot);
};

function warm(shop) {
  for (let i = 0; i < times; i++) prices(shop, 1);
  return [1].map(function () {

    return prices(shop, 0);
  });
}
function* orders() { const a = 1, b = 2; const seen = () => a + b;
  yield warm(new Shop(), seen);
}
Shop.prototype.open = function () { orders().next(); };
new Shop().open();
"#;

/// The line of that program with a function that has no other.
const ONE_LINE: u32 = 29;

/// `node` in the folders of PATH, each real file once.
fn nodes() -> BTreeSet<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter_map(|folder| std::fs::canonicalize(folder.join("node")).ok())
        .collect()
}

/// Where a process has the symbols that are wanted.
fn addresses(pid: u32) -> Option<Vec<u64>> {
    let is_node = |name: &str| name.contains("node");
    place_of(pid, is_node, SYMBOLS, |_, found| {
        Some(found.map(Option::unwrap_or_default).to_vec())
    })
}

/// A function without what it belongs to, and its line in the program; 0 elsewhere.
type Shown = Vec<(String, u32)>;

/// The stack that the program prints.
fn truth(said: &str, file: &Path) -> Shown {
    let frames = said.lines().filter_map(|line| line.trim().strip_prefix("at "));
    frames
        .map(|frame| {
            let (name, place) = frame.rsplit_once(" (").unwrap_or(("", frame));
            let place = place.trim_end_matches(')');
            let mut parts = place.rsplitn(3, ':').skip(1);
            let line = parts.next().unwrap_or_default().parse().unwrap_or(0);
            let own = parts.next() == file.to_str();
            (short(name), if own { line } else { 0 })
        })
        .collect()
}

fn short(name: &str) -> String {
    let name = name.split(" [as ").next().unwrap_or_default();
    match name.rsplit('.').next().unwrap_or_default() {
        "" | "<anonymous>" => "(anonymous)".to_owned(),
        name => name.to_owned(),
    }
}

fn say(node: &Path, options: &[&str], file: &Path, arguments: [&str; 2]) -> Command {
    let mut command = Command::new(node);
    command.args(options).arg(file).args(arguments);
    command
}

/// What is read of a sleeper of this engine, as soon as it has `wanted`.
fn read(
    node: &Path,
    options: &[&str],
    file: &Path,
    times: &str,
    wanted: impl Fn(&Shown) -> bool,
) -> (Version, Shown) {
    let mut sleeper = Sleeper::start(&mut say(node, options, file, ["sleep", times]));
    let pid = sleeper.pid();
    assert_eq!(sleeper.line(), "ready\n", "{}", node.display());
    let memory = || File::open(format!("/proc/{pid}/mem")).unwrap();
    let addresses = addresses(pid).unwrap();
    let mut engine = Engine::find(Running(memory()), &addresses).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let stack = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
    let end = stack.split(['-', ' ']).nth(1).unwrap();
    let end = u64::from_str_radix(end, 16).unwrap();
    let mut last = Vec::new();
    // It has said that it is ready, and is about to sleep.
    for _ in 0..10_000 {
        let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap();
        let sp = call.split_whitespace().rev().nth(1);
        let sp = sp.and_then(|sp| u64::from_str_radix(sp.trim_start_matches("0x"), 16).ok());
        if let Some(sp) = sp {
            let mut bytes = vec![0; usize::try_from(end - sp).unwrap()];
            if memory().read_exact_at(&mut bytes, sp).is_ok() {
                let stack = Stack {
                    start: sp,
                    bytes: &bytes,
                };
                // Its frame pointer cannot be seen from here: the innermost frame has the longest chain.
                let walks = (sp..end).step_by(8).filter_map(|at| engine.walk(at, stack));
                let longest = walks.filter(|walk| walk.caller.is_some());
                let longest = longest.max_by_key(|walk| walk.frames.len());
                let frames = longest.map(|walk| walk.frames).unwrap_or_default();
                last = frames
                    .iter()
                    .map(|frame| {
                        let own = frame.file.as_deref() == file.to_str();
                        let line = frame.line.filter(|_| own).unwrap_or(0);
                        (short(frame.symbol.as_deref().unwrap()), line)
                    })
                    .collect();
                if wanted(&last) {
                    return (engine.version(), last);
                }
            }
        }
        std::thread::yield_now();
    }
    panic!(
        "{} {options:?}: V8 {}: {last:?}",
        node.display(),
        engine.version()
    );
}

/// Whether these are the same functions. Some of Node's own have no name but that of the property in which they are found.
fn same_names(shown: &Shown, found: &Shown) -> bool {
    let same = |(one, truth): (&(String, u32), &(String, u32))| {
        one.0 == truth.0 || (truth.1 == 0 && one.0 == "(anonymous)")
    };
    shown.len() == found.len() && shown.iter().zip(found).all(same)
}

/// Whether they are the same, with the same lines.
fn same(shown: &Shown, found: &Shown) -> bool {
    same_names(shown, found) && shown.iter().zip(found).all(|(one, truth)| one.1 == truth.1)
}

#[test]
fn sleepers_of_node_are_read() {
    let folder = std::env::temp_dir().join(format!("holdup-node-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("asleep.js");
    std::fs::write(&file, PROGRAM).unwrap();
    let all = nodes();
    for node in &all {
        let found = say(node, &[], &file, ["truth", "0"]).output().unwrap();
        let found = truth(&String::from_utf8(found.stdout).unwrap(), &file);
        assert!(found.len() > 8, "{found:?}");
        let (version, _) = read(node, &[], &file, "0", |shown| same(shown, &found));
        eprintln!("{}: V8 {version}: {} frames", node.display(), found.len());
        // Compiled without optimisation, a function has the line of its call where it has but one, and else none.
        let options = ["--always-sparkplug", "--no-opt"];
        let (_, shown) = read(node, &options, &file, "0", |shown| same_names(shown, &found));
        let lines = || shown.iter().zip(&found).filter(|(one, _)| one.1 > 0);
        assert!(lines().all(|(one, truth)| one.1 == truth.1), "{shown:?}");
        assert!(lines().any(|(one, _)| one.1 == ONE_LINE), "{shown:?}");
        // Optimised functions stand for those that were put into them.
        read(node, &[], &file, "100000", |shown| {
            let mut rest = found.iter();
            let mut own = shown.iter().filter(|(_, line)| *line > 0);
            let known = |one: &(String, u32)| rest.any(|(name, _)| *name == one.0);
            shown.len() > 3 && own.all(known)
        });
    }
    std::fs::remove_dir_all(&folder).unwrap();
    if all.is_empty() {
        eprintln!("SKIPPED: there is no node in PATH; frames of JavaScript were compared with no real one");
    }
}

/// Opens FIFOs to which nobody writes, asks for the address of a name, and waits for connections that say nothing: by callbacks and by `await`.
const WAITS: &str = r"const fs = require('fs');
const net = require('net');
const [fifo] = process.argv.slice(2);

function tail(path) {
  fs.readFile(path, (error, text) => { console.log(text); });
}

async function load(path) {
  const text = await fs.promises.readFile(path);
  return text;
}

async function settings() {
  return await load(fifo);
}

function ask(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.on('data', (data) => resolve(data));
  });
}

async function prices(port) {
  const answer = await ask(port);
  return answer;
}

tail(fifo);
settings();
const server = net.createServer(() => { console.log('ready'); });
server.listen(0, '127.0.0.1', () => prices(server.address().port));
";

/// Function and line of each frame.
fn places(frames: &[Interpreted]) -> Shown {
    let each = frames.iter().map(|one| {
        let name = one.frame.symbol.clone().unwrap_or_default();
        (name, one.frame.line.unwrap_or_default())
    });
    each.collect()
}

/// Who waits for what the threads of a process sleep for: for requests of the pool, and for descriptors of the loop.
fn waiters(pid: u32, engine: &mut Engine<Running>) -> Vec<Shown> {
    let mut all = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let call = std::fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
        let words: Vec<&str> = call.split_whitespace().collect();
        let word = |at: usize| {
            let word = words.get(at).and_then(|word| word.strip_prefix("0x"));
            word.and_then(|word| u64::from_str_radix(word, 16).ok())
        };
        let (Some(first), Some(sp)) = (word(1), word(7)) else {
            continue;
        };
        let polls = matches!(words[0], "232" | "281");
        let asleep = Asleep {
            sp,
            epoll: u32::try_from(first).ok().filter(|_| polls),
            own: |file| !file.starts_with("node:"),
        };
        if polls {
            let awaited = engine.awaited(&asleep).unwrap_or_default();
            all.extend(awaited.iter().map(|(_, frames)| places(frames)));
        } else if let Ok(frames) = engine.begun(&asleep) {
            all.push(places(&frames));
        }
    }
    all.sort();
    all
}

#[test]
fn whoever_waits_for_files_and_connections_is_found() {
    let folder = std::env::temp_dir().join(format!("holdup-node-waits-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (file, fifo) = (folder.join("waits.js"), folder.join("fifo"));
    std::fs::write(&file, WAITS).unwrap();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let place = |name: &str, line| (name.to_owned(), line);
    let own = [
        // The callback of `tail`: V8 keeps no scope of a function without variables of its own that others use.
        vec![place("(anonymous)", 6)],
        // The callback of the server, which is called with each client.
        vec![place("(anonymous)", 32)],
        vec![place("ask", 21), place("prices", 26)],
        vec![place("load", 10), place("settings", 15)],
    ];
    for node in &nodes() {
        let mut sleeper = Sleeper::start(Command::new(node).arg(&file).arg(&fifo));
        assert_eq!(sleeper.line(), "ready\n", "{}", node.display());
        let pid = sleeper.pid();
        let place = place_of(pid, may_be_in, SYMBOLS, |_, addresses| Place::of(&addresses)).unwrap();
        assert_eq!(Some(place.addresses()), addresses(pid));
        let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
        let mut engine = Engine::find(Running(memory), &place.addresses()).unwrap();
        let mut last = Vec::new();
        for _ in 0..500 {
            last = waiters(pid, &mut engine);
            last.retain(|one| !one.is_empty());
            // The server and its client are for one function.
            last.dedup();
            if last == own {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(last, own, "{}: V8 {}", node.display(), engine.version());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
