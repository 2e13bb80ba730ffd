//! Tests of getdelays: of now and before, without any delay, and rubbish.

use crate::read_text;
use holdup_evidence::observed::StatementKind;

const TEXT: &str = "print delayacct stats ON\nTGID\t3301\n\n\n\
    CPU         count     real total  virtual total    delay total  delay average      delay max      delay min\n\
    \x20             810     3400000000     3412345678       90000000          0.111ms     4.212296ms     0.031307ms\n\
    IO          count    delay total  delay average      delay max      delay min\n\
    \x20            4210    12300000000          2.922ms   410.100000ms     0.010000ms\n\
    SWAP        count    delay total  delay average      delay max      delay min\n\
    \x20               0              0          0.000ms     0.000000ms     0.000000ms\n";

#[test]
fn the_longest_delay_stands_beside_the_run_time() {
    let reading = read_text("g", TEXT.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "getdelays");
    assert_eq!(reading.accounts[0].not_understood, 0);
    assert_eq!(
        reading.texts(),
        [
            "process 3301 waited 12.30 s for block I/O (IO delay total), 99 % of all its delays, in 4210 waits of 2.9 ms at the mean \
            and 410 ms at most; it ran for 3.40 s, and waited 90.0 ms for a CPU"
        ]
    );
    let one = &reading.observed.statements[0];
    assert_eq!((one.kind, one.ns), (StatementKind::Took, Some(12_300_000_000)));
}

#[test]
fn an_older_version_in_an_excerpt() {
    let text = "> RECLAIM  count    delay total  delay average\n>            12     2500000000            208ms\n\
        > IO    count    delay total  delay average\n>    3   4000000   1ms\n";
    assert_eq!(
        read_text("g", text.as_bytes()).texts(),
        [
            "the process waited 2.50 s to free memory (RECLAIM delay total), 100 % of all its delays, in 12 waits of 208 ms at the \
            mean, and waited 4.0 ms for block I/O"
        ]
    );
}

#[test]
fn no_delay_is_no_trouble_and_rubbish_is_survived() {
    let text = TEXT.replace("90000000  ", "0  ").replace("12300000000", "0");
    let reading = read_text("g", text.as_bytes());
    assert_eq!(
        reading.observed.statements[0].kind,
        StatementKind::WithinNorm,
        "{reading:?}"
    );
    for text in [
        "IO count delay total\n",
        "IO count delay total\n99999999999999999999999 1\nPID x\nCPU count delay\n",
    ] {
        assert_eq!(read_text("g", text.as_bytes()).observed.statements, [], "{text}");
    }
}
