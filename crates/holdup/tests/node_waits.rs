//! Waits of Node.js programs have the JavaScript function, file and line that asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::{Guarded, Told, asker, json, list, lossy, read_until};

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

/// Function and line of the waits that are to be found.
const EXPECTED: [(&str, u64); 2] = [("checkout", 8), ("pay", 14)];

#[track_caller]
fn has_all(report: &Value, file: &str) {
    let waits = list(report, "waits");
    let askers: Vec<_> = waits.iter().filter_map(asker).collect();
    for (function, line) in EXPECTED {
        let found = askers.iter().any(|frame| {
            frame["symbol"] == function
                && frame["line"] == line
                && frame["file"] == file
                && frame["language"] == "javascript"
        });
        assert!(found, "{function}: {askers:#?}");
    }
}

#[test]
fn waits_of_a_traced_run_have_the_javascript_function_that_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.js");
    std::fs::write(&file, PROGRAM).unwrap();
    let told = Told::of(&["--backend", "bpf"], |command| {
        command.arg("/usr/bin/node").arg(&file);
    });
    assert_eq!(told.status(), 0, "{}", lossy(&told.output.stderr));
    has_all(&told.report, file.to_str().unwrap());
}

#[test]
fn waits_of_a_process_that_was_attached_to_have_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let (file, report) = (folder.path().join("shop.js"), folder.path().join("r.json"));
    std::fs::write(&file, PROGRAM).unwrap();
    let mut program = Command::new("/usr/bin/node");
    program.arg(&file).arg("for ever").stdout(Stdio::piped());
    let mut node = Guarded::spawn(&mut program);
    read_until(node.0.stdout.as_mut().unwrap(), "ready\n");
    let output = Command::new(support::HOLDUP)
        .args(["attach", "--backend", "bpf", "-d", "3", "--json"])
        .arg(&report)
        .args(["-p", &node.0.id().to_string()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    has_all(&json(&report), file.to_str().unwrap());
}
