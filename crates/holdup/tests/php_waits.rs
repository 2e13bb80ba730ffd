//! Waits of PHP programs have the PHP function, file and line that asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::process::Command;
use support::{Asked, Outcome, attached, has_all, lossy};

/// Sleeps in a method below a function that C code calls; a read from a pipe into which another program writes late, in a package
/// below `vendor`. Six times, because a look may miss a wait on a busy machine; with an argument for ever.
const PROGRAM: &str = r#"<?php
require __DIR__ . '/vendor/client.php';

class Shop {
    public function checkout($item) {
        usleep(300000);
    }
}

function fetch_prices() {
    return Client\get(
        'sleep 0.3; echo 5'
    );
}

function once() {
    array_map([new Shop(), 'checkout'], ['tea']);
    fetch_prices();
}

fwrite(STDOUT, "ready\n");
for ($i = 0; $i < 6; $i++) once();
while ($argc > 1) once();
"#;

const PACKAGE: &str = r#"<?php
namespace Client;
function get($command) {
    $pipe = popen($command, 'r');
    return fgets($pipe);
}
"#;

/// Function, line and cause of the waits that are to be found.
const EXPECTED: [Asked; 2] = [
    ("Shop::checkout", 6, Some("timer.sleep")),
    ("fetch_prices", 11, Some("ipc.pipe")),
];

/// Writes the program; its path.
fn write(folder: &std::path::Path) -> String {
    let file = folder.join("shop.php");
    std::fs::write(&file, PROGRAM).unwrap();
    std::fs::create_dir(folder.join("vendor")).unwrap();
    std::fs::write(folder.join("vendor/client.php"), PACKAGE).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn waits_of_a_traced_run_have_the_php_function_that_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let result = Outcome::of(&["--backend", "bpf"], |command| {
        command.arg("/usr/bin/php").arg(&file);
    });
    assert_eq!(result.status(), 0, "{}", lossy(&result.output.stderr));
    has_all(&result.report, "php", &file, &EXPECTED);
    let terminal = lossy(&result.output.stderr);
    assert!(terminal.contains("shop.php:"), "{terminal}");
}

#[test]
fn waits_of_a_process_that_was_attached_to_have_it_too_with_opcache() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let mut program = Command::new("/usr/bin/php");
    program.args(["-dopcache.enable_cli=1", &file, "for ever"]);
    let report = attached(&mut program, "5");
    has_all(&report, "php", &file, &EXPECTED);
}
