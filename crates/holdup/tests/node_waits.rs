//! Waits of Node.js programs have the JavaScript function, file and line that asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::process::Command;
use support::{Asked, Outcome, attached, has_all, lossy};

/// Synchronous waits in functions that are called from one another: a lock, and a pipe into which another program writes late. With
/// an argument for ever.
const PROGRAM: &str = "\
const { execFileSync, spawn } = require('node:child_process');
const fs = require('node:fs');
const cell = new Int32Array(new SharedArrayBuffer(4));
const pipe = __filename + '.pipe';

class Shop {
  checkout() {
    Atomics.wait(cell, 0, 0, 300);
  }
}

function pay() {
  spawn('sh', ['-c', 'sleep 0.3; echo paid > ' + pipe]);
  fs.readFileSync(pipe);
}

const once = () => {
  new Shop().checkout();
  [1].forEach(pay);
};

execFileSync('mkfifo', [pipe]);
fs.writeSync(1, 'ready\\n');
for (let i = 0; i < 3; i++) once();
while (process.argv[2]) once();
";

/// A short run whose functions could not be read because others had the CPUs is made again, so often at most.
const RUNS_MAX: usize = 3;

/// The share of the elapsed time in queues for a CPU from which others are in the way.
const CONTENDED: f64 = 0.05;

/// Function and line of the waits that are to be found.
const EXPECTED: [Asked; 2] = [("checkout", 8, None), ("pay", 14, None)];

#[test]
fn waits_of_a_traced_run_have_the_javascript_function_that_asked() {
    let run = || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.js");
        std::fs::write(&file, PROGRAM).unwrap();
        let result = Outcome::of(&["--backend", "bpf"], |command| {
            command.arg("/usr/bin/node").arg(&file);
        });
        assert_eq!(result.status(), 0, "{}", lossy(&result.output.stderr));
        (result, file)
    };
    let (mut result, mut file) = run();
    for _ in 1..RUNS_MAX {
        if !is_contended(&result.report) || names_all(&result.report) {
            break;
        }
        (result, file) = run();
    }
    has_all(&result.report, "javascript", file.to_str().unwrap(), &EXPECTED);
}

/// Whether all the functions asked for some wait.
fn names_all(report: &serde_json::Value) -> bool {
    let waits = report["waits"].as_array().unwrap();
    let asked = |name: &str| waits.iter().any(|wait| wait["asker"]["frame"] == name);
    EXPECTED.iter().all(|(function, ..)| asked(function))
}

/// Whether threads queued for a CPU for much of the time.
fn is_contended(report: &serde_json::Value) -> bool {
    let causes = report["causes"].as_array().unwrap().iter();
    let queued = causes.filter(|one| one["cause"] == "sched.runqueue");
    queued.map(|one| one["share"].as_f64().unwrap()).sum::<f64>() > CONTENDED
}

#[test]
fn waits_of_a_process_that_was_attached_to_have_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.js");
    std::fs::write(&file, PROGRAM).unwrap();
    let mut program = Command::new("/usr/bin/node");
    program.arg(&file).arg("for ever");
    let report = attached(&mut program, "5");
    has_all(&report, "javascript", file.to_str().unwrap(), &EXPECTED);
}
