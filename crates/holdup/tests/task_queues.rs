//! What `run` says of tasks, which are gone when the command has ended: queues for a lock, and what computes meanwhile.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{HOLDUP, json, list, lossy};

/// Ten tasks, one after the other, with a lock that each keeps while it waits for something else.
const QUEUES: &str = "\
import asyncio

class Rates:
    def __init__(self):
        self.lock = asyncio.Lock()

    async def of(self, currency):
        async with self.lock:
            return await self.ask(currency)

    async def ask(self, currency):
        await asyncio.sleep(0.4)
        return 1

async def main():
    rates = Rates()
    await asyncio.gather(*(rates.of(number) for number in range(10)))

asyncio.run(main())
";

/// A coroutine that computes, again and again, beside others that only sleep.
const COMPUTES: &str = "\
import asyncio, time

def render(until):
    number = 0
    while time.monotonic() < until:
        number = (number * 31 + 7) % 1000003
    return number

async def page():
    for _ in range(5):
        render(time.monotonic() + 0.6)
        await asyncio.sleep(0.01)

async def beat():
    while True:
        await asyncio.sleep(0.05)

async def main():
    beats = [asyncio.create_task(beat()) for _ in range(3)]
    await page()

asyncio.run(main())
";

/// Two threads of an executor, whose tasks wait for other tasks of it.
const ITSELF: &str = "\
from concurrent.futures import ThreadPoolExecutor
import os

pool = ThreadPoolExecutor(2)

def part(number):
    return number

def page(number):
    return pool.submit(part, number).result()

def site():
    first, second = pool.submit(page, 1), pool.submit(page, 2)
    try:
        first.result(timeout=4)
    except Exception:
        os._exit(0)

blocker = pool.submit(lambda: [pool.submit(page, n) for n in range(4)] and None)
blocker.result()
site()
";

/// One thread that computes, without an event loop.
const COUNTS: &str = "\
import time

def score(until):
    number = 0
    while time.monotonic() < until:
        number = (number * 31 + 7) % 1000003
    return number

def report():
    return score(time.monotonic() + 3)

report()
";

/// Goroutines that send to one that takes its time, and others that read under a lock that one keeps as it sleeps.
const GOROUTINES: &str = "\
package main

import (
\t\"os\"
\t\"sync\"
\t\"time\"
)

type store struct {
\tlock sync.RWMutex
\tkept int
}

func (s *store) refresh() {
\ts.lock.Lock()
\tdefer s.lock.Unlock()
\ttime.Sleep(700 * time.Millisecond)
\ts.kept++
}

func (s *store) get() int {
\ts.lock.RLock()
\tdefer s.lock.RUnlock()
\treturn s.kept
}

func work(jobs chan chan int) {
\tfor answer := range jobs {
\t\ttime.Sleep(300 * time.Millisecond)
\t\tanswer <- 1
\t}
}

func submit(jobs chan chan int, group *sync.WaitGroup) {
\tdefer group.Done()
\tanswer := make(chan int)
\tjobs <- answer
\t<-answer
}

func main() {
\tvar group sync.WaitGroup
\tif os.Args[1] == \"jobs\" {
\t\tjobs := make(chan chan int)
\t\tgo work(jobs)
\t\tfor number := 0; number < 12; number++ {
\t\t\tgroup.Add(1)
\t\t\tgo submit(jobs, &group)
\t\t}
\t\tgroup.Wait()
\t\treturn
\t}
\ts := &store{}
\tgo func() {
\t\tfor {
\t\t\ts.refresh()
\t\t\ttime.Sleep(time.Millisecond)
\t\t}
\t}()
\ttime.Sleep(20 * time.Millisecond)
\tfor number := 0; number < 8; number++ {
\t\tgroup.Add(1)
\t\tgo func() {
\t\t\tdefer group.Done()
\t\t\tfor range 5 {
\t\t\t\ts.get()
\t\t\t\ttime.Sleep(10 * time.Millisecond)
\t\t\t}
\t\t}()
\t}
\tgroup.Wait()
}
";

fn run(words: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let output = Command::new(HOLDUP)
        .args(["run", "--backend", "bpf", "--json"])
        .arg(&report)
        .arg("--")
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    json(&report)
}

fn python(program: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.py");
    std::fs::write(&file, program).unwrap();
    run(&["/usr/bin/python3", file.to_str().unwrap()])
}

/// The rule, title and function of the first finding.
fn first(report: &Value) -> [String; 3] {
    let finding = &list(report, "findings")[0];
    [&finding["rule"], &finding["title"], &finding["asker"]["frame"]]
        .map(|text| text.as_str().unwrap_or_default().to_owned())
}

#[test]
fn tasks_that_queue_for_a_lock_are_said_first_with_who_has_it() {
    let report = python(QUEUES);
    let [rule, title, function] = first(&report);
    assert_eq!(
        (&*rule, &*function),
        ("tasks-queue-for-lock", "Rates.of"),
        "{report:#}"
    );
    assert!(
        title.contains("asyncio tasks of python3 queue in Rates.of (shop.py:8) for an asyncio.Lock; Rates.ask (shop.py:12) has it meanwhile, sleeping on purpose"),
        "{title}"
    );
    // The loop polls for the one that sleeps.
    let waits = list(&report, "waits");
    let sleeps = waits.iter().find(|wait| wait["cause"] == "timer.sleep").unwrap();
    assert_eq!(sleeps["asker"]["frame"], "Rates.ask", "{sleeps:#}");
}

#[test]
fn an_executor_that_waits_for_itself_is_said_with_where_its_threads_wait() {
    let report = python(ITSELF);
    let [rule, title, function] = first(&report);
    assert_eq!(
        (&*rule, &*function),
        ("executor-waits-for-itself", "page"),
        "{report:#}"
    );
    let wait = "Both threads of the executor (ThreadPoolExecutor) in python3 wait in page (shop.py:10) for results of tasks";
    assert!(title.contains(wait), "{title}");
}

#[test]
fn a_coroutine_that_computes_is_said_with_those_that_cannot_run() {
    let report = python(COMPUTES);
    let mut findings = list(&report, "findings").iter();
    let finding = findings.find(|finding| finding["rule"] == "computing-in-event-loop");
    let title = finding.unwrap_or_else(|| panic!("{report:#}"))["title"].to_string();
    assert!(title.contains("render (shop.py:"), "{title}");
    assert!(
        title.contains(
            " computes in the event loop of python3; 3 other tasks of the loop cannot run meanwhile"
        ),
        "{title}"
    );
}

#[test]
fn a_thread_that_computes_has_its_function_and_file() {
    let report = python(COUNTS);
    let ns = |wait: &Value| wait["ns"].as_u64().unwrap();
    let waits = list(&report, "waits").iter();
    let cpu: Vec<&Value> = waits.filter(|wait| wait["cause"] == "cpu.user").collect();
    let own = cpu.iter().filter(|wait| wait["asker"]["frame"] == "score");
    let of_function: Vec<&&Value> = own.collect();
    // Other tests may have the CPUs, so a part of its samples is near no look.
    let all: u64 = cpu.iter().map(|wait| ns(wait)).sum();
    assert!(
        of_function.iter().map(|wait| ns(wait)).sum::<u64>() * 2 > all,
        "{cpu:#?}"
    );
    let stack = of_function[0]["asker"]["stack"].as_array().unwrap();
    let python = stack.iter().filter(|frame| frame["language"] == "python");
    let names: Vec<&Value> = python.map(|frame| &frame["symbol"]).collect();
    assert_eq!(names, ["score", "report", "<module>"], "{stack:#?}");
}

#[test]
fn goroutines_that_queue_are_said_with_who_has_the_lock_or_may_receive() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("task_queues");
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("shop.go"), folder.join("shop"));
    std::fs::write(&source, GOROUTINES).unwrap();
    let built = Command::new("go")
        .args(["build", "-o"])
        .args([&program, &source])
        .env("GOFLAGS", "")
        .env("GOCACHE", folder.join("cache"))
        .env("GO111MODULE", "off")
        .env("CGO_ENABLED", "0")
        .output();
    let Ok(built) = built else {
        eprintln!("SKIPPED: no Go in PATH");
        return;
    };
    assert!(built.status.success(), "{}", lossy(&built.stderr));
    let program = program.to_str().unwrap();
    for (argument, waits, has) in [
        (
            "jobs",
            "goroutines of shop queue in main.submit (shop.go:",
            "for somebody to receive what they send; main.work (shop.go:",
        ),
        (
            "store",
            "goroutines of shop queue in main.(*store).get (shop.go:",
            "for a sync.RWMutex, to read; main.(*store).refresh (shop.go:",
        ),
    ] {
        let report = run(&[program, argument]);
        let [rule, title, _] = first(&report);
        assert_eq!(rule, "tasks-queue-for-lock", "{argument}: {report:#}");
        assert!(
            title.contains(waits) && title.contains(has),
            "{argument}: {title}"
        );
    }
}
