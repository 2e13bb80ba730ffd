//! Waits of Perl programs have the Perl function, file and line that asked.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::process::Command;
use support::{Asked, Outcome, attached, has_all, lossy};

/// Sleeps in a method; a read from a pipe into which another program writes late, by a module of Perl's own. Six times, because a
/// look may miss a wait on a busy machine; with an argument for ever.
const PROGRAM: &str = r#"use strict;
use IO::Handle;
use IPC::Open3;

package Shop;
sub new { bless {}, shift }
sub checkout {
    my ($self, $item) = @_;
    select undef, undef, undef, 0.3;
}

package main;
sub fetch_prices {
    my $pid = open3 my $in, my $out, undef, 'sleep 0.3; echo 5';
    my $price =
        $out->getline;
    waitpid $pid, 0;
    return $price;
}

sub once {
    eval { Shop->new->checkout('tea') };
    fetch_prices();
}

STDOUT->autoflush;
print "ready\n";
once() for 1 .. 6;
once() while @ARGV;
"#;

/// Function, line and cause of the waits that are to be found.
const EXPECTED: [Asked; 2] = [
    ("Shop::checkout", 9, Some("timer.sleep")),
    ("fetch_prices", 15, Some("ipc.pipe")),
];

#[test]
fn waits_of_a_traced_run_have_the_perl_function_that_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.pl");
    std::fs::write(&file, PROGRAM).unwrap();
    let result = Outcome::of(&["--backend", "bpf"], |command| {
        command.arg("/usr/bin/perl").arg(&file);
    });
    assert_eq!(result.status(), 0, "{}", lossy(&result.output.stderr));
    has_all(&result.report, "perl", file.to_str().unwrap(), &EXPECTED);
    let terminal = lossy(&result.output.stderr);
    assert!(terminal.contains("shop.pl:"), "{terminal}");
}

#[test]
fn waits_of_a_process_that_was_attached_to_have_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.pl");
    std::fs::write(&file, PROGRAM).unwrap();
    let mut program = Command::new("/usr/bin/perl");
    program.arg(&file).arg("for ever");
    let report = attached(&mut program, "5");
    has_all(&report, "perl", file.to_str().unwrap(), &EXPECTED);
}
