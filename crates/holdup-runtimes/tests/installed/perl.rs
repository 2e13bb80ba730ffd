//! The Perls that are installed here, asleep below a method, a callback from C, a text that is evaluated and a file that is loaded:
//! function, file and line of every frame are compared with what `caller` says where the program sleeps.

use crate::numbered::numbered;
use crate::support::{Sleeper, place_of};
use holdup_runtimes::interpreted::Interpreted;
use holdup_runtimes::perl::{Interpreter, Place, SYMBOLS, Version, may_be_in};
use std::path::Path;
use std::process::Command;

/// It says a line for each call around it: the function, and file and line from which it was called. Blocks of `eval` are part of the
/// function around them. A line with a dot ends them.
const PROGRAM: &str = r#"use strict;
use List::Util qw(first);

package Shop;
sub new { bless {}, shift }
sub checkout {
    my ($self, $item) = @_;
    my $pay = sub {
        main::say_calls();

        sleep 600;
    };
    eval { $pay->($item); };
}

package main;
sub say_calls {
    $| = 1;
    for (my $up = 1; my @call = caller $up; $up++) {
        next if $call[3] eq '(eval)' && !defined $call[6];
        $call[3] = 'require' if $call[7];
        print "$call[3]\t$call[1]\t$call[2]\n";
    }
    print ".\n";
}
sub work {
    for my $each (1) {
        first { Shop->new->checkout('tea') } 1;
    }
}
sub by_text { eval "\n\nwork(); 1" or die }
tie my %prices, 'Prices';
my $price = $prices{'tea'};
package Prices;
sub TIEHASH { bless {}, shift }
sub FETCH { require($ENV{'LOADED'}) }
"#;

/// What the program loads.
const LOADED: &str = "package main;\n\nby_text();\n1;\n";

/// On which line the program sleeps.
const SLEEPS: u32 = 11;

/// Where a process has Perl.
fn place(pid: u32) -> Option<Place> {
    place_of(pid, may_be_in, SYMBOLS, |_, addresses| Place::of(&addresses))
}

/// A function, and where it was called.
type Called = (String, String, u32);

/// As `caller` has them.
fn as_told(frames: &[Interpreted]) -> Vec<Called> {
    let each = frames.iter().zip(frames.iter().skip(1));
    each.map(|(one, caller)| {
        let file = caller.frame.file.clone().unwrap();
        (
            one.frame.symbol.clone().unwrap(),
            file,
            caller.frame.line.unwrap(),
        )
    })
    .collect()
}

/// What `caller` says; names in the main package are without it.
fn called(line: &str) -> Called {
    let mut parts = line.trim_end().split('\t');
    let mut part = || parts.next().unwrap();
    let name = part();
    let name = name.strip_prefix("main::").unwrap_or(name);
    (name.to_owned(), part().to_owned(), part().parse().unwrap())
}

/// Reads a sleeper of this Perl; its version, and how many frames were compared.
fn reads(perl: &Path, file: &Path, loaded: &Path) -> (Version, usize) {
    let mut sleeper = Sleeper::start(Command::new(perl).arg(file).env("LOADED", loaded));
    let pid = sleeper.pid();
    let expected: Vec<_> = sleeper.lines_to(".\n").iter().map(|said| called(said)).collect();
    assert!(expected.len() > 6, "{expected:?}");
    let place = place(pid).unwrap_or_else(|| panic!("{}: no PL_curinterp", perl.display()));
    let memory = sleeper.memory();
    let mut interpreter = Interpreter::find(memory, place, pid).unwrap();
    let mut last = Vec::new();
    // It has said where it is, and is about to sleep.
    for _ in 0..100_000 {
        last = interpreter.frames(pid).unwrap_or_default();
        let innermost = last.first().and_then(|one| one.frame.line);
        if as_told(&last) == expected && innermost == Some(SLEEPS) {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(as_told(&last), expected, "{}", perl.display());
    assert_eq!(last[0].frame.line, Some(SLEEPS));
    assert_eq!(last[0].frame.file.as_deref(), file.to_str());
    let outermost = last.last().unwrap();
    assert!(outermost.entry && outermost.frame.symbol.as_deref() == Some("(main)"));
    // C code has called what a variable does when it is read.
    let fetches = last
        .iter()
        .find(|one| one.frame.symbol.as_deref() == Some("Prices::FETCH"));
    assert!(fetches.unwrap().entry && !last[0].entry);
    (interpreter.version(), last.len())
}

#[test]
fn sleepers_of_all_installed_versions_are_read() {
    let folder = std::env::temp_dir().join(format!("holdup-perl-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (file, loaded) = (folder.join("asleep.pl"), folder.join("loaded.pl"));
    std::fs::write(&file, PROGRAM).unwrap();
    std::fs::write(&loaded, LOADED).unwrap();
    let read: Vec<_> = numbered("perl")
        .into_iter()
        .map(|perl| (perl.clone(), reads(&perl, &file, &loaded)))
        .collect();
    std::fs::remove_dir_all(&folder).unwrap();
    for (perl, (version, frames)) in &read {
        eprintln!("{}: Perl {version}: {frames} frames", perl.display());
    }
    if read.is_empty() {
        eprintln!("SKIPPED: there is no perl in PATH; frames of Perl were compared with no real one");
    }
}
