//! Outputs of `perf stat` in its layouts, and what is read of them.

use crate::read_text;
use holdup_evidence::observed::{Metric, SpanKind};

const SLEEPS: &str = " Performance counter stats for 'job --all':\n\n\
    \x20         1,500.00 msec task-clock:u            #    0.150 CPUs utilized\n\
    \x20            3,000      context-switches:u      #    2.000 K/sec\n\
    \x20               12      major-faults\n\
    \x20  900,000,000      cycles:u                #    0.600 GHz                      (66.5%)\n\
    \x20  450,000,000      instructions:u          #    0.50  insn per cycle           (83.1%)\n\
    \x20    1,000,000      cache-references\n\
    \x20      340,000      cache-misses              #   34.000 % of all cache refs\n\
    \x20  <not supported>      branches\n\
    \x20  <not counted>      LLC-loads\n\n\
    \x20     10.000000000 seconds time elapsed\n\n\
    \x20      0.500000000 seconds user\n       1.000000000 seconds sys\n";

fn spans(text: &str) -> Vec<(SpanKind, u64)> {
    let reading = read_text("p", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "perf-stat", "{text}");
    let spans = reading.observed.spans.iter();
    spans.map(|span| (span.kind, span.ns / 1_000_000)).collect()
}

#[test]
fn a_command_that_waits() {
    use SpanKind::{CommandElapsed, CommandSystem, CommandUser};
    let times = [
        (CommandElapsed, 10_000),
        (CommandUser, 500),
        (CommandSystem, 1_000),
    ];
    assert_eq!(spans(SLEEPS), times);
    let reading = read_text("p", SLEEPS.as_bytes());
    assert_eq!(reading.accounts[0].not_understood, 0);
    assert_eq!(
        reading.texts(),
        [
            "`job --all`: 67 % of its CPU time is in the kernel; 3000 context switches, one for each 500 µs on a CPU; 12 page faults that \
             read from a disk (major-faults); 0.5 instructions per cycle (below 1 a CPU mostly waits for memory); 34 % of 1000000 cache \
             accesses missed; not counted: branches, LLC-loads"
        ]
    );
}

#[test]
fn below_a_prompt_and_between_other_lines() {
    let text = format!("some words before\nme@host:~$ perf stat -e task-clock job --all\n{SLEEPS}");
    let reading = read_text("p", text.as_bytes());
    assert!(
        reading
            .observed
            .sources
            .iter()
            .any(|source| source.format == "perf-stat"),
        "{reading:?}"
    );
    assert_eq!(reading.observed.spans.len(), 3);
}

#[test]
fn several_runs_and_other_locales() {
    let text = " Performance counter stats for 'sh -c true' (3 runs):\n\n\
        \x20        2.021,66 msec task-clock                #    0,577 CPUs utilized            ( +-  3,47% )\n\
        \x20           1.015      context-switches          #  711,646 /sec                     ( +-  5,88% )\n\n\
        \x20       3,507511 +- 0,000913 seconds time elapsed  ( +-  2,43% )\n";
    assert_eq!(
        spans(text),
        [(SpanKind::CommandElapsed, 3_507), (SpanKind::CommandCpu, 2_021)]
    );
    assert_eq!(
        read_text("p", text.as_bytes()).texts(),
        ["`sh -c true`: 1015 context switches, one for each 2.0 ms on a CPU"]
    );
    let old = " Performance counter stats for 'ls':\n\n       0.776532 task-clock (msec)         #    0.004 CPUs utilized\n\
        \x20         1 context-switches          #    0.001 M/sec\n\n       0.201740924 seconds time elapsed\n";
    assert_eq!(
        spans(old),
        [(SpanKind::CommandElapsed, 201), (SpanKind::CommandCpu, 0)]
    );
}

#[test]
fn a_process_and_the_machine() {
    let text = SLEEPS.replace("'job --all'", "process id '812'");
    let reading = read_text("p", text.as_bytes());
    assert!(reading.observed.spans.is_empty());
    assert!(
        reading.texts()[0].starts_with("process 812: 1.50 s on a CPU in 10.00 s, 0.15 CPUs at the mean; "),
        "{:?}",
        reading.texts()
    );
    let text = SLEEPS
        .replace("'job --all'", "'system wide'")
        .replace("task-clock", "cpu-clock");
    let reading = read_text("p", text.as_bytes());
    assert_eq!(reading.greatest(Metric::ContextSwitchesPerSecond), Some(300.0));
    assert_eq!(reading.greatest(Metric::MajorFaultsPerSecond), Some(1.2));
}

#[test]
fn values_with_signs_between_them_and_intervals() {
    let text = "737.10,msec,task-clock,737109749,100.00,2.000,CPUs utilized\n2499,,context-switches,737095447,100.00,3.390,K/sec\n\
        <not supported>,,cycles,0,100.00,,\n";
    let reading = read_text("p", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "perf-stat");
    assert_eq!(
        reading.texts(),
        ["737 ms on a CPU; 2499 context switches, one for each 295 µs on a CPU; not counted: cycles"]
    );
    let text = "#           time             counts unit events\n\
        \x20    1.000370932             406.96 msec task-clock                       #    0.407 CPUs utilized\n\
        \x20    1.000370932                769      context-switches                 #    1.890 K/sec\n\
        \x20    2.000836297             400.92 msec task-clock                       #    0.401 CPUs utilized\n\
        \x20    2.000836297              1,201      context-switches                 #    2.996 K/sec\n";
    let reading = read_text("p", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "perf-stat");
    assert_eq!(
        reading.texts(),
        [
            "808 ms on a CPU in 2.00 s, 0.4 CPUs at the mean; 1970 context switches, one for each 410 µs on a CPU"
        ]
    );
}

#[test]
fn rubbish_is_none() {
    for text in [
        "12 apples # a note\n13 pears # another\n",
        "a,b,cycles,d\n1,2,3,4\n",
        "seconds time elapsed\n<not counted> \n",
    ] {
        let reading = read_text("p", text.as_bytes());
        assert_ne!(reading.observed.sources[0].format, "perf-stat", "{text}");
    }
    let alone = read_text("p", b"Performance counter stats for 'x':\n");
    assert!(alone.observed.statements.is_empty() && alone.observed.spans.is_empty());
    let hostile = "Performance counter stats for '\u{202f}':\n1e999 cycles\n-1 cycles\n9,9,9 msec task-clock\nS0 cycles\nCPU\n# per cycle\n\
        nan seconds time elapsed\n";
    let _ = read_text("p", hostile.as_bytes());
}
