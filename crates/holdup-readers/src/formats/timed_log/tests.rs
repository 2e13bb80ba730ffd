//! Constructed logs: gaps, steps, time that runs backwards, and rubbish.

use crate::read_text;
use holdup_evidence::Observed;
use holdup_evidence::observed::{LogEvent, Span, SpanKind, What};

fn read(text: &str) -> Observed {
    read_text("l", text.as_bytes()).observed
}

fn of(observed: &Observed, kind: SpanKind) -> Vec<&Span> {
    observed.spans.iter().filter(|span| span.kind == kind).collect()
}

fn gaps(observed: &Observed) -> Vec<&Span> {
    let both = [SpanKind::LogGap, SpanKind::LogSilence];
    observed
        .spans
        .iter()
        .filter(|span| both.contains(&span.kind))
        .collect()
}

#[test]
fn two_logs_run_together_have_their_gaps_and_not_the_jump() {
    let observed = read(
        "01/10 13:03:28 user Broker: init
01/10 13:05:13 user Gateway: init
01/10 12:32:58 Information [scheduler-12] - Starting debugging...
01/10 12:32:58 Information [scheduler-12] - Starting sql...
01/10 12:34:46 Information [scheduler-12] - Pool Manager Started
",
    );
    let gaps = of(&observed, SpanKind::LogGap);
    let lengths: Vec<u64> = gaps.iter().map(|gap| gap.ns / 1_000_000_000).collect();
    assert_eq!(lengths, [108, 105]);
    assert_eq!(gaps[0].name, "`Starting sql...` to `Pool Manager Started`");
    assert_eq!(gaps[0].thread.as_deref(), Some("scheduler-12"));
    assert_eq!((gaps[1].quote.line, gaps[1].thread.as_deref()), (1, None));
    let jump = What::Log(LogEvent::AnotherLog {
        ns: 1_935_000_000_000,
    });
    assert_eq!(
        observed
            .happenings
            .iter()
            .map(|one| &one.what)
            .collect::<Vec<_>>(),
        [&jump]
    );
}

#[test]
fn steps_are_of_one_thread_and_begin_something() {
    let observed = read(
        "10:00:00.331 INFO [exec-3] C : Invoking WS
10:00:00.340 INFO [exec-4] C : Invoking WS
10:00:00.372 INFO [exec-3] C : WS Invoked
10:00:00.376 INFO [exec-4] C : WS Invoked
10:00:05.000 INFO [exec-3] C : Invoking WS
",
    );
    let steps = of(&observed, SpanKind::LogStep);
    let found: Vec<_> = steps
        .iter()
        .map(|step| (step.ns / 1_000_000, step.thread.as_deref()))
        .collect();
    assert_eq!(found, [(41, Some("exec-3")), (36, Some("exec-4"))]);
    assert_eq!(steps[0].usual, Some((36_000_000, 1)));
}

#[test]
fn a_clock_that_was_set_is_no_gap_and_midnight_is_no_jump() {
    let set =
        read("2026-01-01 10:00:00 a\n2026-01-01 10:00:01 b\n2026-01-01 09:00:00 c\n2026-01-01 09:00:02 d\n");
    assert_eq!(gaps(&set).iter().map(|gap| gap.ns).max(), Some(2_000_000_000));
    assert!(matches!(
        set.happenings[0].what,
        What::Log(LogEvent::Backwards {
            ns: 3_601_000_000_000
        })
    ));
    let midnight = read("23:59:59.500 a\n00:00:00.500 b\n");
    assert_eq!(gaps(&midnight)[0].ns, 1_000_000_000);
    assert!(midnight.happenings.is_empty());
    // Threads stamp before they write.
    assert!(read("10:00:01.000 a\n10:00:00.900 b\n").happenings.is_empty());
}

#[test]
fn what_is_usual_leaves_the_gap_itself_out() {
    let mut text = String::new();
    for second in 0..20 {
        text += &format!(
            "10:00:{second:02}.000 job {second} starting\n10:00:{second:02}.100 job {second} over\n"
        );
    }
    text += "10:01:00.000 job 21 starting\n10:01:09.000 job 21 over\n";
    let observed = read(&text);
    let gap = of(&observed, SpanKind::LogGap)
        .into_iter()
        .find(|gap| gap.name.contains("21 over"))
        .unwrap();
    assert_eq!((gap.ns, gap.usual), (9_000_000_000, Some((100_000_000, 20))));
}

#[test]
fn rubbish_is_read_to_its_end() {
    let mut text =
        b"2026-01-01 10:00:00 a\n\0\xff\xfe\n\n2026-01-01 10:00:03 [\n2026-01-01 10:00:04 [[[]]\n".to_vec();
    text.extend_from_slice("99:99:99 x\n2026-13-45 25:00:00\n9999999999999999999 x\n".as_bytes());
    text.extend_from_slice(&vec![b':'; 5_000]);
    let reading = read_text("l", &text);
    assert_eq!(
        gaps(&reading.observed).iter().map(|gap| gap.ns).max(),
        Some(3_000_000_000)
    );
    assert_eq!(reading.accounts[0].lines, 9);
}

#[test]
fn a_changelog_is_no_log() {
    let git = "commit 084911ce
Author: A Name <a@example.org>
Date:   Thu Oct 6 04:07:52 2022 +0200

    Release 1.2

commit 12345678
Author: A Name <a@example.org>
Date:   Wed Oct 5 12:08:31 2022 +0200

    Fix it
";
    let gnu = "2023-01-23 19:29:34 +0000  A Name <a@example.org>

\t* NEWS: 1.2

2023-01-22 00:52:56 +0100  A Name <a@example.org>

\t* NEWS: 1.1
";
    let debian = "x (1.2-1) unstable; urgency=low

  * Fix it.

 -- A Name <a@example.org>  Thu, 06 Oct 2022 04:07:52 +0200

x (1.1-1) unstable; urgency=low

 -- A Name <a@example.org>  Wed, 05 Oct 2022 04:07:52 +0200
";
    let pasted = debian.replace("\n --", "\n--");
    for text in [git, gnu, debian, &pasted] {
        let reading = read_text("changelog", text.as_bytes());
        assert!(reading.observed.is_empty(), "{text}: {:?}", reading.observed);
    }
    let mail = "2023-01-23 19:29:34 accepted mail of <a@example.org>: queued\n2023-01-23 19:29:39 sent to <b@example.org>, code 250\n";
    assert!(!read_text("mail.log", mail.as_bytes()).observed.is_empty());
}

/// A title that counts must count all: what is reported one by one is only the beginning.
#[test]
fn jumps_back_that_are_not_told_are_counted() {
    let lines = (0..4_000).map(|line| {
        let second = if line % 40 == 39 { line - 30 } else { line };
        format!(
            "2026-01-31 {:02}:{:02}:{:02} step\n",
            10 + second / 3600,
            second / 60 % 60,
            second % 60
        )
    });
    let reading = read_text("log", lines.collect::<String>().as_bytes());
    let (mut found, mut more) = (0, 0);
    for one in &reading.observed.happenings {
        match one.what {
            What::Log(LogEvent::Backwards { .. } | LogEvent::AnotherLog { .. }) => found += 1,
            What::Log(LogEvent::MoreBackwards { times }) => more += times,
            _ => {}
        }
    }
    assert_eq!((found, more), (50, 50));
}
