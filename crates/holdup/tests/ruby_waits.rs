//! Waits of Ruby programs have the function, file and line that asked, below frames of C and of the standard library.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use serde_json::Value;
use std::process::Command;
use support::{Asked, Outcome, attached, has_all, list, lossy};

/// A sleep, a lock that another thread has, and a program that the standard library starts and reads from; each wait is long enough to be
/// looked at. Six times, because a look may miss one on a busy machine; with an argument for ever.
const PROGRAM: &str = "\
require 'open3'

class Shop
  def rest
    sleep 0.3
  end

  def checkout(lock)
    [1].each do
      lock.synchronize { nil }
    end
  end

  def prices
    Open3.capture2('sleep 0.3; echo 7')
  end
end

def keep(lock, taken)
  lock.synchronize do
    taken << true
    sleep 0.25
  end
end

def once
  shop = Shop.new
  shop.rest
  lock = Mutex.new
  taken = Queue.new
  Thread.new { keep(lock, taken) }
  taken.pop
  shop.checkout(lock)
  shop.prices
end

$stdout.write(\"ready\\n\")
$stdout.flush
6.times { once }
once while ARGV.any?
";

/// Function and line of the waits that are to be found.
const EXPECTED: [Asked; 4] = [
    ("rest", 5, None),
    ("block in checkout", 10, None),
    ("prices", 15, None),
    ("block in keep", 22, None),
];

/// The waits' stacks have the functions in the order of calls, between those of C.
#[track_caller]
fn has_all_in_order(report: &Value, file: &str) {
    has_all(report, "ruby", file, &EXPECTED);
    let waits = list(report, "waits");
    let stack = waits
        .iter()
        .find(|wait| wait["asker"]["frame"] == "block in checkout");
    let stack = list(&stack.unwrap()["asker"], "stack");
    let place = |function: &str| {
        let place = stack.iter().position(|frame| frame["symbol"] == function);
        place.unwrap_or_else(|| panic!("{function}: {stack:#?}"))
    };
    let calls = [
        "synchronize",
        "block in checkout",
        "each",
        "checkout",
        "once",
        "<main>",
        "ruby_run_node",
    ];
    let places = calls.map(place);
    assert!(places.is_sorted(), "{stack:#?}");
}

#[test]
fn waits_of_a_traced_run_have_the_ruby_function_that_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.rb");
    std::fs::write(&file, PROGRAM).unwrap();
    let result = Outcome::of(&["--backend", "bpf"], |command| {
        command.arg("/usr/bin/ruby").arg(&file);
    });
    assert_eq!(result.status(), 0, "{}", lossy(&result.output.stderr));
    has_all_in_order(&result.report, file.to_str().unwrap());
}

#[test]
fn waits_of_a_process_that_was_attached_to_have_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.rb");
    std::fs::write(&file, PROGRAM).unwrap();
    let mut program = Command::new("/usr/bin/ruby");
    program.arg(&file).arg("for ever");
    has_all_in_order(&attached(&mut program, "5"), file.to_str().unwrap());
}
