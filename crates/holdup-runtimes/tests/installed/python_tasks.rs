//! Tasks of `asyncio` in CPythons that are installed here: where each stands, and what it awaits.

use crate::pythons::{each, interpreter};
use crate::support::Sleeper;
use holdup_runtimes::python::{AsyncTask, TaskStatus};
use std::path::Path;
use std::process::Command;

/// A task for each thing that can be awaited.
const PROGRAM: &str = r#"
import asyncio, socket, sys

class Shop:
    async def keep(self, lock):
        async with lock:
            await asyncio.sleep(600)

    async def pay(self, lock):
        async with lock:
            pass

async def items(future):
    yield 1
    await future

async def deep(future):
    async for _ in items(future):
        pass

async def read(reader):
    try:
        await reader.readline()
    finally:
        pass

async def receive(loop, sock):
    return await loop.sock_recv(sock, 10)

async def work(queue):
    while True:
        await queue.get()

async def follow(task):
    await task

async def gather(*tasks):
    await asyncio.gather(*tasks)

class Desk:
    def __init__(self, pool):
        self.pool = pool

class DeskPool:
    def __init__(self):
        self.taken, self.waiters = set(), []

    async def take(self):
        if self.taken:
            waiter = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            await waiter
        desk = Desk(self)
        self.taken.add(desk)
        return desk

    async def tidy(self):
        await asyncio.Event().wait()

async def sits(pool):
    desk = await pool.take()
    await asyncio.sleep(600)

async def stands(pool):
    await pool.take()

async def looks(pool):
    await asyncio.sleep(600)

async def main():
    loop = asyncio.get_running_loop()
    lock, queue, future = asyncio.Lock(), asyncio.Queue(), loop.create_future()
    streams, plain = socket.socketpair(), socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=streams[0])
    plain[0].setblocking(False)
    shop, pool = Shop(), DeskPool()
    def begin(name, coroutine):
        return asyncio.create_task(coroutine, name=name)
    keep = begin("keep", shop.keep(lock))
    await asyncio.sleep(0)
    tasks = [
        keep,
        begin("pay", shop.pay(lock)),
        begin("deep", deep(future)),
        begin("read", read(reader)),
        begin("receive", receive(loop, plain[0])),
        begin("work", work(queue)),
        begin("follow", follow(keep)),
        begin("gather", gather(keep, asyncio.create_task(asyncio.sleep(600), name="sleep"))),
    ]
    tasks += [begin(one.__name__, one(pool)) for one in (sits, stands, looks)]
    tasks.append(begin("tidy", pool.tidy()))
    await asyncio.sleep(0.1)
    print(streams[0].fileno(), plain[0].fileno(), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"#;

/// Where each stands in the program, by name of task: function, line, and what it awaits.
const STANDS: [(&str, &str, u32); 8] = [
    ("keep", "Shop.keep", 7),
    ("pay", "Shop.pay", 10),
    ("deep", "items", 15),
    ("read", "read", 23),
    ("receive", "receive", 28),
    ("work", "work", 32),
    ("follow", "follow", 35),
    ("gather", "gather", 38),
];

fn check(python: &Path, file: &Path) {
    let mut sleeper = Sleeper::start(Command::new(python).arg(file));
    let said = sleeper.line();
    let descriptors: Vec<u32> = said.split_whitespace().map(|fd| fd.parse().unwrap()).collect();
    let mut interpreter = interpreter(&sleeper, python);
    // It is about to sleep.
    let mut read = interpreter.tasks().unwrap();
    for _ in 0..200 {
        let main = |task: &AsyncTask| task.name.as_deref() == Some("Task-1");
        let main = read.all.iter().find(|task| main(task));
        if main.is_some_and(|main| main.status == TaskStatus::Waiting) {
            break;
        }
        std::thread::yield_now();
        read = interpreter.tasks().unwrap();
    }
    assert_eq!(
        (read.all.len(), read.torn),
        (14, 0),
        "{}: {read:#?}",
        python.display()
    );
    let named = |name: &str| {
        let found = read.all.iter().find(|task| task.name.as_deref() == Some(name));
        found.unwrap_or_else(|| panic!("{}: no {name}", python.display()))
    };
    for (name, function, line) in STANDS {
        let task = named(name);
        let mut own = task.frames.iter().map(|one| &one.frame);
        let own = own.find(|frame| frame.file.as_deref() == file.to_str()).unwrap();
        let stands = (own.symbol.as_deref(), own.line);
        assert_eq!(stands, (Some(function), Some(line)), "{}", python.display());
        assert_eq!(task.status, TaskStatus::Waiting, "{name}");
    }
    let keep = Some(named("keep").id);
    assert_eq!(named("pay").holder, keep, "{}", python.display());
    let pool = named("stands").pool.clone();
    assert_eq!(
        pool.as_ref().map(|(_, class)| class.as_str()),
        Some("DeskPool"),
        "{}",
        python.display()
    );
    let has = |name: &str| named(name).has.clone();
    assert_eq!(has("sits"), pool.iter().map(|one| one.0).collect::<Vec<_>>());
    // Who merely knows the pool, or works for it, has nothing of it and waits for nothing of it.
    assert_eq!((has("looks"), &named("looks").pool), (Vec::new(), &None));
    assert_eq!((has("tidy"), &named("tidy").pool), (Vec::new(), &None));
    assert_eq!(named("follow").awaits, keep, "{}", python.display());
    assert_eq!(named("gather").awaits, keep, "{}", python.display());
    assert_eq!(named("deep").frames.len(), 2);
    let of = |name| named(name).descriptor;
    assert_eq!(
        [of("read"), of("receive"), of("deep"), of("work"), of("keep")],
        [Some(descriptors[0]), Some(descriptors[1]), None, None, None],
        "{}",
        python.display()
    );
    let library = |name: &str| named(name).frames[0].frame.symbol.clone().unwrap();
    assert_eq!(
        [library("pay"), library("work"), library("keep"), library("read")],
        [
            "Lock.acquire",
            "Queue.get",
            "sleep",
            "StreamReader._wait_for_data"
        ]
    );
}

#[test]
fn tasks_are_told_where_they_stand_and_what_they_await() {
    each("tasks", PROGRAM, check);
}

/// Three that have failed and were kept, who waits beside each, and two that have failed beside nobody.
const FAILED: &str = r#"
import asyncio

class Channel:
    def __init__(self):
        self.open = []

    async def receive(self):
        await asyncio.sleep(0)
        self.parse(None)

    def parse(self, text):
        return int(text)

    async def call(self):
        future = asyncio.get_running_loop().create_future()
        self.open.append(future)
        return await future

async def store(queue):
    await queue.get()
    raise KeyError("no room")

async def crawl(queue):
    while True:
        await queue.put(1)

class State:
    def __init__(self):
        self.ready = asyncio.Event()

    async def load(self):
        {}["flags"]
        self.ready.set()

async def need(state):
    await state.ready.wait()

async def sums(number):
    return number / 0

async def rests(number):
    await asyncio.get_running_loop().create_future()

async def main():
    channel, queue, state = Channel(), asyncio.Queue(1), State()
    def begin(coroutine):
        return asyncio.create_task(coroutine, name=coroutine.__qualname__)
    tasks = [
        begin(one)
        for one in (channel.receive(), channel.call(), store(queue), crawl(queue), state.load(), need(state), sums(3), rests(3))
    ]
    asked = begin(Channel().receive())
    await asyncio.wait([asked])
    asked.exception()
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"#;

/// By name of the failed task: the exception, the function and line that raised it, and who waits.
const HAVE_FAILED: [(&str, &str, &str, u32, &str); 3] = [
    (
        "Channel.receive",
        "TypeError",
        "Channel.parse",
        13,
        "Channel.call",
    ),
    ("store", "KeyError", "store", 22, "crawl"),
    ("State.load", "KeyError", "State.load", 33, "need"),
];

fn check_failed(python: &Path, file: &Path) {
    let mut sleeper = Sleeper::start(Command::new(python).arg(file));
    assert_eq!(sleeper.line().trim(), "ready");
    let read = interpreter(&sleeper, python).tasks().unwrap();
    let python = python.display();
    assert_eq!(
        read.failed.len(),
        HAVE_FAILED.len(),
        "{python}: {:#?}",
        read.failed
    );
    for (name, exception, function, line, waits) in HAVE_FAILED {
        let mut failed = read.failed.iter();
        let failed = failed.find(|one| one.name.as_deref() == Some(name)).unwrap();
        assert_eq!(
            (failed.exception.as_str(), failed.unasked),
            (exception, true),
            "{python}"
        );
        let raised = &failed.frames[0].frame;
        // To 3.10 the name of a code object lacks the class.
        let symbol = raised.symbol.as_deref().unwrap();
        assert!(function.ends_with(symbol), "{python}: {symbol}");
        assert_eq!(raised.line, Some(line), "{python}");
        let waiting = read.all.iter().filter(|task| failed.waiting.contains(&task.id));
        let waiting = waiting.filter_map(|task| task.name.as_deref());
        // The program's first function has the first of them as its first variable.
        let waiting: Vec<&str> = waiting.filter(|name| *name != "Task-1").collect();
        assert_eq!(waiting, [waits], "{python}: {name}");
    }
}

#[test]
fn tasks_that_have_failed_are_told_with_who_waits_beside_them() {
    each("failed-tasks", FAILED, check_failed);
}
