//! Constructed lines of each kind, and rubbish.

use crate::read_text;
use holdup_evidence::Observed;
use holdup_evidence::observed::{JvmEvent, Metric, SpanKind, What};

fn read(text: &str) -> Observed {
    read_text("j", text.as_bytes()).observed
}

fn sum(observed: &Observed, metric: Metric) -> f64 {
    observed.of(metric).map(|series| series.sum).sum()
}

#[test]
fn a_thread_within_a_request_and_two_clocks() {
    let observed = read("2020-12-13 10:12:39.246  INFO 275 --- [exec-7] a.B  : Invoking X
[30,994s][info][os,thread] Thread started (pthread id: 7, attributes: stacksize: 1024k, guardsize: 0k, detached).
[30,994s][info][os,thread] Thread is alive (tid: 277, pthread id: 7).
[30,994s][info][os,thread] JavaThread exiting (tid: 277).
[30,995s][info][os,thread] Thread finished (tid: 277, pthread id: 7).
2020-12-13 10:12:39.278  INFO 275 --- [exec-7] a.B  : X Invoked
");
    let life: Vec<_> = observed.of(Metric::ThreadLifeMs).collect();
    assert_eq!((life[0].count, life[0].sum), (1, 1.0));
    let step = observed
        .spans
        .iter()
        .find(|span| span.kind == SpanKind::StepWithThreads)
        .unwrap();
    assert_eq!(
        (step.ns, step.name.as_str()),
        (32_000_000, "1 threads, `Invoking X` to `X Invoked`")
    );
    assert_eq!(step.quote.line, 1);
}

#[test]
fn safepoints_of_every_age() {
    for (text, reach, total) in [
        (
            "[1.0s][info][safepoint] Safepoint \"Cleanup\", Time since last: 5 ns, Reaching safepoint: 2000000 ns, Cleanup: 1 ns, At safepoint: 3 ns, Total: 5000000 ns\n",
            2.0,
            5.0,
        ),
        (
            "2.0: Total time for which application threads were stopped: 0.0050000 seconds, Stopping threads took: 0.0020000 seconds\n",
            2.0,
            5.0,
        ),
        (
            "         vmop                    [threads: total initially_running wait_to_block]    [time: spin block sync cleanup vmop] page_trap_count\n1.234: G1CollectFull   [  12  0  1 ]  [ 1 1 2 0 3 ]  0\n",
            2.0,
            5.0,
        ),
    ] {
        let observed = read(text);
        assert_eq!(sum(&observed, Metric::SafepointReachMs), reach, "{text}");
        assert_eq!(sum(&observed, Metric::SafepointPauseMs), total, "{text}");
    }
}

#[test]
fn pauses_of_every_collector() {
    for (text, pause) in [
        (
            "[0.1s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 18M->2M(380M) 5.132ms\n",
            5.132,
        ),
        (
            "[0,1s][info][gc] GC(0) Pause Init Mark (unload classes) 0,011ms\n",
            0.011,
        ),
        (
            "[0.1s][info][gc,phases] GC(3) Y: Pause Mark Start (Major) 0.012ms\n",
            0.012,
        ),
        (
            "[0.1s] GC(7) Pause Full (Allocation Failure) 59M->49M(61M) 5.052ms\n",
            5.052,
        ),
        (
            "2026-11-22T04:03:17.123+0000: 1.5: [GC (Allocation Failure) [PSYoungGen: 33280K->5118K(38400K)] 33280K->9000K(125952K), 0.0102000 secs] [Times: user=0.02 sys=0.01, real=0.01 secs] \n",
            10.2,
        ),
        (
            "1.5: [Full GC (Ergonomics) [PSYoungGen: 5118K->0K(38400K)] [ParOldGen: 1K->2K(3K)] 61M->49M(61M), [Metaspace: 2K->2K(3K)], 0.0102000 secs]\n",
            10.2,
        ),
    ] {
        let observed = read(text);
        assert!(
            (sum(&observed, Metric::GcPauseMs) - pause).abs() < 1e-9,
            "{text} {observed:?}"
        );
        let heap = text.contains("->");
        assert_eq!(
            observed.of(Metric::HeapAfterGcPercent).count(),
            usize::from(heap),
            "{text}"
        );
    }
    let stall = read("[0.1s][info][gc] Allocation Stall (Thread-2) 13.896ms\n");
    assert_eq!(stall.spans[0].name, "Thread-2");
    assert_eq!(sum(&stall, Metric::AllocationStallMs), 13.896);
}

#[test]
fn code_of_the_last_level_that_was_given_up() {
    let observed = read("[34,033s][debug][jit,compilation]  144       1       java.util.AbstractSet::<init> (5 bytes)   made not entrant
[34,033s][debug][jit,compilation]  145 %     4       a.B::run @ 2 (5 bytes)   made not entrant
[34,033s][debug][jit,compilation]  146       3       a.B::c (5 bytes)   made not entrant
");
    let methods: Vec<_> = observed.happenings.iter().map(|one| &one.what).collect();
    let of = |method: &str| {
        What::Jvm(JvmEvent::Deoptimised {
            method: method.to_owned(),
        })
    };
    assert_eq!(methods, [&of("java.util.AbstractSet::<init>"), &of("a.B::run")]);
}

#[test]
fn rubbish_is_no_pause() {
    for text in [
        "[0.1s][info][gc] GC(0) Pause Young ms\n",
        "[0.1s][info][gc] GC(0) Pause Young -5.1ms\n",
        "[0.1s][info][gc] GC( Pause 99999999999999999999ms\n",
        "[0.1s][info][safepoint] Safepoint \"x\n",
        "[0.1s][info][safepoint] Safepoint \"x\", Reaching safepoint: -1 ns, Total: 99999999999999999999999 ns\n",
        "[0.1s][info][os,thread] Thread is alive (tid: \0\n[0.1s][info][os,thread] Thread finished (tid: 99999999999999999999999)\n",
        "1.0: [Full GC 0.01 secs\n1.0: [GC secs]\n1.0: [GC] secs]\n",
        "[0.1s][info][gc] Allocation Stall ()\n[0.1s][info][gc] Allocation Stall (\n",
        "[0.1s][debug][jit] made not entrant\n",
    ] {
        let observed = read(text);
        assert!(
            observed.series.is_empty() && observed.happenings.is_empty(),
            "{text} {observed:?}"
        );
    }
}

#[test]
fn a_pause_is_as_long_as_the_clock_says_where_the_collector_did_not_run() {
    let pause = |real: &str| {
        let text = format!(
            "2026-11-22T04:03:17.123+0000: 1.5: [GC (Allocation Failure) [PSYoungGen: 33280K->5118K(38400K)] 33280K->9000K(125952K), 0.0102000 secs] [Times: user=0.14 sys=0.01, real={real} secs] \n2026-11-22T04:03:19.123+0000: 3.5: [GC (Allocation Failure) [PSYoungGen: 33280K->5118K(38400K)] 33280K->9000K(125952K), 0.0102000 secs] [Times: user=0.02 sys=0.01, real=0.01 secs] \n"
        );
        let observed = read_text("g", text.as_bytes()).observed;
        let longest = observed
            .spans
            .iter()
            .filter(|span| span.kind == SpanKind::GcPause)
            .max_by_key(|span| span.ns);
        longest.map(|span| (span.name.clone(), span.ns))
    };
    let (name, ns) = pause("37.70").unwrap();
    assert_eq!(ns, 37_700_000_000);
    assert!(name.ends_with("(0.15 s of CPU time)"), "{name}");
    assert!(pause("0.02").is_none_or(|(_, ns)| ns == 10_200_000));
}

#[test]
fn a_pause_of_jdk_8_is_told_with_what_went_wrong() {
    let text = "6049.175: [GC pause (G1 Evacuation Pause) (young) (to-space exhausted), 3.1713585 secs]
116.957: [GC (Allocation Failure) 116.957: [DefNew (promotion failed) : 229660K->235967K(235968K), 0.2897884 secs]117.247: [Tenured: 524288K->144069K(524288K), 0.3905008 secs] 674654K->144069K(760256K), 0.6804246 secs] [Times: user=0.63 sys=0.01, real=0.68 secs]
2661.447: [GC pause (System.gc()) (young) (initial-mark)
Desired survivor size 826277888 bytes, new threshold 15 (max 15)
- age   1:    3836312 bytes,    3836312 total
, 0.2124664 secs]
   [Parallel Time: 150.8 ms, GC Workers: 8]
";
    let reading = read_text("gc.log", text.as_bytes());
    let pauses: Vec<(&str, u64)> = reading
        .observed
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::GcPause)
        .map(|span| (span.name.as_str(), span.ns / 1_000_000))
        .collect();
    assert_eq!(
        pauses,
        [
            ("GC pause (G1 Evacuation Pause) (to-space exhausted)", 3171),
            ("GC (Allocation Failure) (promotion failed)", 680),
            ("GC pause (System.gc())", 212),
        ]
    );
}
