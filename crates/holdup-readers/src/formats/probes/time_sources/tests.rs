//! Tests of lists of time servers: well, far away, silent, refused, and tables that look alike.

use crate::read_text;
use holdup_evidence::observed::{Statement, StatementKind};

fn one(text: &str) -> Statement {
    let reading = read_text("n", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "time-sources", "{text}");
    assert_eq!(reading.accounts[0].not_understood, 0, "{text}");
    reading.observed.statements[0].clone()
}

const NTPQ: &str = "     remote           refid      st t when poll reach   delay   offset  jitter\n\
    ==============================================================================\n \
    pool.example    .POOL.          16 p    -   64    0    0.000    0.000   0.000\n\
    *ntp1.example    .GPS.            1 u   35   64  377    0.512    0.250   0.051\n\
    +ntp2.example    192.0.2.9        2 u   35   64  377    0.512    0.123   0.051\n";

#[test]
fn a_clock_that_follows_a_server_and_one_that_is_far_away() {
    let well = one(NTPQ);
    assert_eq!(well.kind, StatementKind::WithinNorm);
    assert_eq!(
        well.text,
        "the clock is 250 \u{b5}s from ntp1.example, which it follows (from 128 ms on it is wrong)"
    );
    let far = one(&NTPQ.replace("0.250 ", "-3612.4 "));
    assert_eq!((far.kind, far.ns), (StatementKind::Failed, Some(3_612_400_000)));
}

#[test]
fn servers_that_do_not_answer() {
    let silent = NTPQ
        .replace(['*', '+'], " ")
        .replace("377", "  0")
        .replace(".GPS.", ".INIT.");
    let silent = one(&silent);
    assert_eq!(silent.kind, StatementKind::Unreachable);
    assert_eq!(
        silent.text,
        "no time server answers (reach 0): ntp1.example, ntp2.example"
    );
    let chrony = "210 Number of sources = 2\nMS Name/IP address         Stratum Poll Reach LastRx Last sample\n\
        ===============================================================================\n\
        ^* ntp1.example                  2   6   377    34    +12us[  +15us] +/-   10ms\n\
        ^? 192.0.2.7                     0   8     0     -     +0ns[   +0ns] +/-    0ns\n";
    let some = one(chrony);
    assert_eq!(some.kind, StatementKind::Warned);
    assert_eq!(
        some.text,
        "the clock is 12 \u{b5}s from ntp1.example, which it follows (from 128 ms on it is wrong); 1 of 2 do not answer (reach 0): \
         192.0.2.7"
    );
    let none = one(&chrony.replace("^* ", "^x "));
    assert_eq!(none.kind, StatementKind::Failed);
    assert!(
        none.text
            .starts_with("the clock follows none of its 2 time servers")
    );
}

#[test]
fn a_long_name_stands_on_a_line_of_its_own() {
    let long = NTPQ.replace(
        "*ntp1.example ",
        "*a-very-long-name.of-a-server.example.org\n                ",
    );
    assert!(
        one(&long)
            .text
            .contains("from a-very-long-name.of-a-server.example.org,")
    );
}

#[test]
fn rubbish_and_other_tables_are_none() {
    for text in [
        "^* a b c\n^? 1 2 3 9\n",
        "a 1 2 u 3 4 5 6 7\nb 1 2 u 3 4 5 6 7\n",
        "* one\n* two\n",
    ] {
        let reading = read_text("n", text.as_bytes());
        assert_ne!(reading.observed.sources[0].format, "time-sources", "{text}");
    }
}
