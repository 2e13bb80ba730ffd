//! PHPs that are installed here, asleep below a closure, a method, generators and a call from C: function, file and line of every
//! frame are compared with what `debug_backtrace` says where the program sleeps.

use crate::numbered::numbered;
use crate::support::{Sleeper, place_of};
use holdup_runtimes::interpreted::Interpreted;
use holdup_runtimes::php::{Interpreter, Place, SYMBOLS, Version, may_be_in};
use std::path::Path;
use std::process::Command;

/// It says a line for each call around it: how PHP names the function, and where that one called on. A line with a dot ends them.
const PROGRAM: &str = r#"<?php
namespace App;
class Shop {
    public function checkout($item) {
        $pay = function () {
            say(debug_backtrace());

            sleep(600);
        };
        return $pay();
    }
    public static function prices($shop) {
        yield 1;
        yield $shop->checkout('tea');
    }
    static function all($shop) {
        yield from self::prices($shop);
    }
    static function outer($shop) {
        yield from self::all($shop);
    }
}
function key($x) {
    foreach (Shop::outer(new Shop()) as $one) {
    }
}
function work() {
    return array_map('App\key', [1]);
}
function say($calls) {
    foreach ($calls as $call) {
        $class = isset($call['class']) ? $call['class'] . '::' : '';
        fwrite(STDOUT, $class . $call['function'] . ' ' . ($call['line'] ?? 0) . "\n");
    }
    fwrite(STDOUT, ".\n");
}
require __DIR__ . '/runs.php';
"#;

/// What the program includes.
const INCLUDED: &str = "<?php\n\nApp\\work();\n";

/// On which line the program sleeps, two below the one that says so.
const SLEEPS: u32 = 8;

/// Where a process has PHP.
fn place(pid: u32) -> Option<Place> {
    place_of(pid, may_be_in, SYMBOLS, |_, [modules, running]| {
        Some(Place {
            modules: modules?,
            running,
        })
    })
}

/// As `debug_backtrace` has them: each name with the line on which it was called.
fn as_told(frames: &[Interpreted]) -> Vec<(String, u32)> {
    let callers = frames.iter().skip(1).map(|one| one.frame.line.unwrap_or(0));
    let each = frames.iter().zip(callers);
    each.map(|(one, line)| (one.frame.symbol.clone().unwrap(), line))
        .collect()
}

/// What `debug_backtrace` says, with closures as they are called without their namespace.
fn called(line: &str) -> (String, u32) {
    let (name, line) = line.trim().rsplit_once(' ').unwrap();
    let name = match name.rsplit_once("::") {
        Some((class, "App\\{closure}")) => format!("{class}::{{closure}}"),
        Some((_, closure)) if name.contains("{closure:") => {
            let begins = name.find("{closure:").unwrap();
            assert!(closure.ends_with('}'), "{name}");
            name.get(begins..).unwrap().to_owned()
        }
        _ => name.to_owned(),
    };
    (name, line.parse().unwrap())
}

/// Reads a sleeper of this PHP; its version, and how many frames were compared.
fn reads(php: &Path, options: &[&str], file: &Path) -> (Version, usize) {
    let mut sleeper = Sleeper::start(Command::new(php).args(options).arg(file));
    let pid = sleeper.pid();
    let mut expected = vec![("sleep".to_owned(), SLEEPS)];
    expected.extend(sleeper.lines_to(".\n").iter().map(|said| called(said)));
    let place = place(pid).unwrap_or_else(|| panic!("{}: no module_registry", php.display()));
    let memory = sleeper.memory();
    let mut interpreter = Interpreter::find(memory, place, pid).unwrap();
    let mut last = Vec::new();
    // It has said where it is, and is about to sleep.
    for _ in 0..100_000 {
        last = interpreter.frames(pid).unwrap_or_default();
        if as_told(&last) == expected {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(as_told(&last), expected, "{}", php.display());
    let folder = file.parent().unwrap();
    for one in &last {
        let is_c = matches!(one.frame.symbol.as_deref(), Some("sleep" | "array_map"));
        let own = one.frame.file.as_deref().map(Path::new).and_then(Path::parent);
        assert_eq!(own, (!is_c).then_some(folder), "{one:?}");
    }
    let outermost = last.last().unwrap();
    assert!(outermost.entry && outermost.frame.symbol.as_deref() == Some("{main}"));
    (interpreter.version(), last.len())
}

#[test]
fn sleepers_of_all_installed_versions_are_read() {
    let folder = std::env::temp_dir().join(format!("holdup-php-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("asleep.php");
    std::fs::write(&file, PROGRAM).unwrap();
    std::fs::write(folder.join("runs.php"), INCLUDED).unwrap();
    let all = numbered("php");
    for php in &all {
        for cached in ["-dopcache.enable_cli=0", "-dopcache.enable_cli=1"] {
            let (version, frames) = reads(php, &[cached], &file);
            eprintln!("{} {cached}: PHP {version}: {frames} frames", php.display());
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    if all.is_empty() {
        eprintln!("SKIPPED: there is no php in PATH; frames of PHP were compared with no real one");
    }
}
