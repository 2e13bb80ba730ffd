//! Tests of ctest: runs that failed, passed and stand, and text that looks alike.

use crate::read_text;
use holdup_evidence::observed::StatementKind;

const TEXT: &str = "Test project /build\n      Start  1: fast\n 1/4 Test  #1: fast .............................   Passed    0.03 sec\n      \
    Start  2: slow_io\n 2/4 Test  #2: slow_io ..........................   Passed   71.20 sec\n      Start  3: never_ends\n \
    3/4 Test  #3: never_ends .......................***Timeout 30.01 sec\n      Start  4: broken\n \
    4/4 Test  #4: broken ...........................***Exception: SegFault  0.10 sec\n\n50% tests passed, 2 tests failed out of 4\n\n\
    Total Test time (real) = 101.40 sec\n\nThe following tests did not run:\n\t  5 - later (Skipped)\n\nThe following tests FAILED:\n\t  3 - never_ends (Timeout)\n\t  4 - broken (SEGFAULT)\n\
    Errors while running CTest\n";

#[test]
fn what_did_not_pass_and_what_took_longest() {
    let reading = read_text("c", TEXT.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "ctest");
    assert_eq!(reading.accounts[0].not_understood, 0);
    assert_eq!(
        reading.texts(),
        [
            "1 test timed out: never_ends after 30.01 s; 1 test failed: broken after 100 ms (4 tests in all)",
            "test slow_io took 1 min 11 s, the longest of 4 tests, 70 % of the 1 min 41 s that all took",
        ]
    );
    assert_eq!(reading.observed.statements[0].kind, StatementKind::TimedOut);
    assert_eq!(reading.observed.statements[1].ns, Some(71_200_000_000));
}

#[test]
fn the_end_alone_and_a_run_that_stands() {
    let (_, end) = TEXT.split_once("\n\n").unwrap();
    assert_eq!(
        read_text("c", end.as_bytes()).texts(),
        ["1 test timed out: never_ends; 1 test failed: broken (4 tests in all)"]
    );
    let begun: Vec<&str> = TEXT.lines().take(6).collect();
    let texts = read_text("c", begun.join("\n").as_bytes());
    assert_eq!(
        texts.texts()[0],
        "test never_ends began and has not ended: it is the last line of the run, after 2 tests that ended"
    );
}

#[test]
fn a_run_in_which_all_passed_and_text_that_is_none() {
    let text = "1/2 Test #1: a ......   Passed    1.00 sec\n2/2 Test #2: b ......***Skipped   9.00 sec\n\n100% tests passed, 0 tests failed out of 2\n";
    assert_eq!(
        read_text("c", text.as_bytes()).texts(),
        ["test a took 1.00 s, the longest of 2 tests"]
    );
    for text in [
        "Test #1: a took long\n",
        "I ran Test #4: x .... Passed 3 sec\n",
        "Start 3: it\n",
    ] {
        let reading = read_text("c", text.as_bytes());
        assert_ne!(reading.observed.sources[0].format, "ctest", "{text}");
    }
}
