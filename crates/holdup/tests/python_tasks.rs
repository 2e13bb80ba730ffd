//! Python: who has a lock, in threads and in tasks of `asyncio`; and a call that blocks an event loop.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::{Guarded, HOLDUP, json, list, lossy, read_until};

/// Two threads that take two locks in different orders.
const THREADS: &str = "\
import threading, time

orders, stock = threading.Lock(), threading.Lock()

def pay_first():
    with orders:
        time.sleep(0.1)
        with stock:
            pass

def pay_second():
    with stock:
        time.sleep(0.1)
        with orders:
            pass

for function in (pay_first, pay_second):
    threading.Thread(target=function, daemon=True).start()
time.sleep(0.5)
print('ready', flush=True)
time.sleep(600)
";

/// A task that has a lock and sleeps, two that wait for it, and one that blocks the loop again and again.
const TASKS: &str = "\
import asyncio, time

class Shop:
    async def keep(self, lock):
        async with lock:
            await asyncio.sleep(600)

    async def pay(self, lock):
        async with lock:
            pass

    async def price(self):
        while True:
            time.sleep(0.3)
            await asyncio.sleep(0.01)

async def main():
    lock, shop = asyncio.Lock(), Shop()
    tasks = [asyncio.create_task(shop.keep(lock), name='keeper')]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(shop.pay(lock)) for _ in range(2)]
    await asyncio.sleep(0)
    print('ready', flush=True)
    tasks.append(asyncio.create_task(shop.price()))
    await asyncio.sleep(600)

asyncio.run(main())
";

fn attached(program: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let (file, report) = (folder.path().join("shop.py"), folder.path().join("r.json"));
    std::fs::write(&file, program).unwrap();
    let mut command = Command::new("/usr/bin/python3");
    command.arg(&file).stdout(Stdio::piped());
    let mut python = Guarded::spawn(&mut command);
    read_until(python.0.stdout.as_mut().unwrap(), "ready\n");
    let output = Command::new(HOLDUP)
        .args(["attach", "--backend", "bpf", "-d", "4", "--json"])
        .arg(&report)
        .args(["-p", &python.0.id().to_string()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    json(&report)
}

fn titles(report: &Value, rule: &str) -> Vec<String> {
    let findings = list(report, "findings").iter();
    let of_rule = findings.filter(|finding| finding["rule"] == rule);
    of_rule
        .map(|finding| finding["title"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn threads_that_wait_for_each_others_locks_are_a_deadlock() {
    let report = attached(THREADS);
    let waits = list(&report, "waits");
    for (function, holder) in [("pay_first", "pay_second"), ("pay_second", "pay_first")] {
        let wait = waits
            .iter()
            .find(|wait| wait["cause"] == "lock.futex" && wait["asker"]["frame"] == function)
            .unwrap_or_else(|| panic!("no wait of {function}: {waits:#?}"));
        assert_eq!(wait["held_by"]["how_known"], "interpreter", "{wait:#?}");
        let stack = wait["held_by"]["stack"].as_array().unwrap();
        assert!(stack.iter().any(|frame| frame["symbol"] == holder), "{wait:#?}");
        assert_eq!(wait["deadlock"], true, "{wait:#?}");
    }
    assert_eq!(titles(&report, "deadlock").len(), 1);
}

#[test]
fn tasks_of_asyncio_have_their_place_and_who_is_in_the_way() {
    let report = attached(TASKS);
    let tasks = list(&report, "tasks");
    let of = |function: &str| {
        let of_function = tasks.iter().filter(|task| task["asker"]["frame"] == function);
        of_function.collect::<Vec<_>>()
    };
    let waiting = of("Shop.pay");
    assert_eq!(waiting.len(), 2, "{tasks:#?}");
    for task in waiting {
        assert_eq!(task["resource"]["name"], "an asyncio.Lock");
        assert_eq!(
            (&task["asker"]["line"], &task["state"]),
            (&9.into(), &"waiting".into())
        );
        assert_eq!(task["held_by"]["thread"], "keeper", "{task:#?}");
    }
    let keeper = of("Shop.keep");
    assert_eq!(
        (&keeper[0]["cause"], &keeper[0]["asker"]["line"]),
        (&"timer.sleep".into(), &6.into())
    );
    assert_eq!(keeper[0]["awaited_by"].as_array().unwrap().len(), 2);
    let blocked = titles(&report, "blocking-call-in-event-loop");
    assert_eq!(blocked.len(), 1, "{:#?}", list(&report, "findings"));
    assert!(
        blocked[0].starts_with("Shop.price (shop.py:14) ")
            && blocked[0].contains(" the event loop of python3"),
        "{blocked:?}"
    );
    let finding = list(&report, "findings").iter();
    let mut finding = finding.filter(|finding| finding["rule"] == "blocking-call-in-event-loop");
    let evidence = finding.next().unwrap()["evidence"].to_string();
    assert!(evidence.contains("4 other tasks"), "{evidence}");
    assert_eq!(titles(&report, "tasks-wait-for-lock").len(), 1);
}
