//! Every format for other people's tools is read back by somebody else's reader, and says the same total as the report.
//!
//! pprof by `go tool pprof` and by holdup's reader of artefacts, Perfetto's by protoc, OTLP's by OpenTelemetry's own types, Prometheus'
//! by its own parser, Markdown by a parser of CommonMark.

mod otlp;
#[path = "../samples/mod.rs"]
mod samples;
mod times;

use flate2::read::GzDecoder;
use holdup_model::report::Report;
use holdup_model::timeline::{EndedBy, Piece};
use holdup_readers::{FORMATS, read_as, read_text};
use holdup_views::Format;
use otlp::totals_of_otlp;
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
use pulldown_cmark::{Event, Options, Parser, Tag};
use samples::nasty::{filled, nasty};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use times::{piece, timeline, total_of_firefox, total_of_trace};

fn export(format: Format, report: &Report) -> Vec<u8> {
    let mut out = Vec::new();
    format.write(report, &mut out).expect("a vector takes everything");
    out
}

fn text(format: Format, report: &Report) -> String {
    String::from_utf8(export(format, report)).expect("only text is written")
}

fn total(report: &Report) -> u64 {
    report.waits.iter().map(|wait| wait.ns).sum()
}

/// What the program says of this input; it must not complain.
fn told_by(command: &mut Command, input: &[u8]) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} (cargo xtask test installs it): {error}"));
    let mut stdin = child.stdin.take().expect("it is a pipe");
    // In a thread of its own: the answer may begin before the question ends.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).ok());
        child.wait_with_output().expect("it ends")
    });
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    String::from_utf8(output.stdout).expect("it prints text")
}

// Collapsed stacks

/// Frames and nanoseconds of each line, as flame graph programs split it.
/// Samples that have waits to tell: a comparison has none, and is not exported.
fn samples_with_waits() -> impl Iterator<Item = (&'static str, Report)> {
    samples::all()
        .into_iter()
        .filter(|(_, report)| !report.waits.is_empty())
}

fn folded(text: &str) -> Vec<(Vec<&str>, u64)> {
    let lines = text.lines().map(|line| {
        let (stack, ns) = line.rsplit_once(' ').expect("a number is behind the stack");
        (stack.split(';').collect(), ns.parse().expect("a number"))
    });
    lines.collect()
}

#[test]
fn collapsed_stacks_are_read_back_by_the_reader_of_artefacts() {
    for (name, report) in samples_with_waits() {
        let text = text(Format::Collapsed, &report);
        let reading = read_text("x", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "collapsed", "{name}: {text}");
        assert_eq!(reading.observed.samples[0].total, total(&report), "{name}");
    }
}

#[test]
fn a_stack_goes_from_the_process_to_the_kernel_and_ends_in_the_cause() {
    let text = text(Format::Collapsed, &samples::sshd().report());
    let expected = "sshd (812);sshd (812);sshd+0x10ad1;__libc_start_main;sshd+0x2f400;sshd+0x2f31c;RAND_status;\
                    libcrypto.so.3+0x1d2e10;syscall;do_syscall_64_[k];__do_sys_getrandom_[k];wait_for_random_bytes_[k];\
                    [random.unseeded] 1012000000";
    assert!(text.lines().any(|line| line == expected), "{text}");
}

// pprof

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(packed)
        .read_to_end(&mut plain)
        .expect("it is gzip");
    plain
}

/// The nanoseconds in a profile, by holdup's reader of artefacts.
fn read_of_pprof(packed: &[u8]) -> u64 {
    let format = FORMATS.iter().find(|format| format.id == "pprof");
    let reading = read_as(format.expect("it reads pprof"), &unpacked(packed));
    assert_eq!(reading.accounts[0].problems, Vec::<String>::new());
    reading.observed.samples.iter().map(|samples| samples.total).sum()
}

#[test]
fn go_tool_pprof_opens_a_profile_and_has_the_same_total() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, report) in [
        ("sshd", samples::sshd().report()),
        ("hostile", samples::hostile().report()),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, export(Format::Pprof, &report)).expect("a file");
        let mut pprof = Command::new("go");
        pprof.args(["tool", "pprof", "-raw"]).arg(&file);
        let raw = told_by(&mut pprof, b"");
        assert!(raw.contains("waits/count time/nanoseconds[dflt]"), "{raw}");
        // `  1 1012000000: 1 2 3`, and below it the labels.
        let (samples, _) = raw.split_once("Locations").expect("it lists locations");
        let values = samples.lines().filter_map(|line| {
            let mut words = line.split(':').next()?.split_whitespace();
            let (count, ns) = (
                words.next()?.parse::<u64>().ok()?,
                words.next()?.parse::<u64>().ok()?,
            );
            Some((count, ns))
        });
        let (count, ns) = values.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert_eq!(ns, total(&report), "{name}: {raw}");
        assert_eq!(
            count,
            report.waits.iter().map(|wait| wait.count).sum::<u64>(),
            "{name}"
        );
        assert!(!raw.contains('\x1b'), "{raw}");
        assert!(
            raw.contains(&format!("cause:[{}]", report.waits[0].cause)),
            "{raw}"
        );
    }
}

// Prometheus

/// Nanoseconds of threads' time, from the text alone.
fn total_of_prometheus(text: &str) -> u64 {
    let values = text.lines().filter_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        let (seconds, rest) = value
            .split_once('.')
            .filter(|_| name.starts_with("holdup_thread_time_seconds{"))?;
        let number = |digits: &str| digits.parse::<u64>().expect("digits");
        Some(number(seconds) * 1_000_000_000 + number(rest))
    });
    values.sum()
}

/// For Debian's Python, which has Debian's packages: reads texts with a zero byte between them; prints of each the number of values and the sum of the threads' time.
const PARSER: &str = r"
import sys
from prometheus_client.parser import text_string_to_metric_families as read
for text in sys.stdin.buffer.read().decode().split('\0'):
    values, seconds = 0, 0.0
    for family in read(text):
        assert family.documentation and family.type == 'gauge', family
        for sample in family.samples:
            values += 1
            seconds += sample.value if sample.name == 'holdup_thread_time_seconds' else 0
    print(values, round(seconds * 1e9))
";

#[test]
fn prometheus_parser_reads_every_value_and_the_same_total() {
    let names: Vec<String> = ["a\"b\\c\nd", "x{y=\"z\"} 1\n# HELP"].map(str::to_owned).to_vec();
    let mut reports: Vec<Report> = samples::all().into_iter().map(|(_, report)| report).collect();
    reports.extend(samples::all().iter().map(|(_, report)| filled(report, &names)));
    let texts: Vec<String> = reports
        .iter()
        .map(|report| text(Format::Prometheus, report))
        .collect();
    let found = told_by(
        Command::new("/usr/bin/python3").args(["-c", PARSER]),
        texts.join("\0").as_bytes(),
    );
    assert_eq!(found.lines().count(), reports.len());
    for ((report, text), line) in reports.iter().zip(&texts).zip(found.lines()) {
        let values = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(line, format!("{values} {}", total(report)), "{text}");
        assert_eq!(total_of_prometheus(text), total(report));
    }
}

#[test]
fn a_thousand_processes_are_no_thousand_series() {
    let mut report = samples::sshd().report();
    let one = report.waits[0].clone();
    for number in 0..1_000 {
        let mut wait = one.clone();
        wait.asker.process = format!("worker-{number}");
        wait.ns += number;
        report.waits.push(wait);
    }
    let text = text(Format::Prometheus, &report);
    assert!(text.lines().count() < 200, "{} lines", text.lines().count());
    assert!(text.contains(r#"{cause="random.unseeded",process=""}"#), "{text}");
    assert_eq!(total_of_prometheus(&text), total(&report));
}

// Markdown

/// Columns of our tables: waits; an experiment's causes, either way; numbers of workers.
const COLUMNS: [usize; 3] = [5, 3, 9];

/// Nothing in it is markup but ours; there is no table but ours.
fn check_markdown(text: &str) {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::Strikethrough | Tag::HtmlBlock)
            | Event::Html(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::TaskListMarker(_)
            | Event::HardBreak => panic!("{event:?} in\n{text}"),
            Event::InlineHtml(html) => assert_eq!(html.as_ref(), "<!-- -->", "{text}"),
            Event::Start(Tag::Heading { level, .. }) => assert_eq!(level as usize, 3, "{text}"),
            Event::Start(Tag::Table(columns)) => assert!(COLUMNS.contains(&columns.len()), "{text}"),
            _ => {}
        }
    }
    assert!(
        !text
            .chars()
            .any(|character| character.is_control() && character != '\n'),
        "{text:?}"
    );
}

#[test]
fn markdown_says_it_in_its_first_line_and_then_why_and_what_to_do() {
    let text = text(Format::Markdown, &samples::sshd().report());
    insta::assert_snapshot!(text);
    check_markdown(&text);
}

#[test]
fn markdown_of_every_report_is_sound() {
    for (_, report) in samples::all() {
        check_markdown(&text(Format::Markdown, &report));
    }
}

// Pipelines

/// The report with a condition of each outcome, under a name.
fn gated(report: &Report, name: &str) -> Report {
    let check = |outcome: &str| serde_json::json!({"condition": format!("{name}>1%"), "outcome": outcome, "measured": null, "findings": [0], "text": name});
    let checks = ["passed", "failed", "cannot-tell"].map(check);
    let gate = serde_json::json!({"outcome": "failed", "checks": checks});
    let gate = serde_json::from_value(gate).expect("it has the fields of a gate");
    Report {
        gate: Some(gate),
        ..report.clone()
    }
}

/// Every line is one of ours and whole: a name begins none, and ends none.
fn check_annotations(text: &str) {
    for line in text.lines() {
        let rest = line.strip_prefix("::").expect("a line is an annotation");
        let (head, message) = rest.split_once("::").expect("it has a message");
        let (level, properties) = head.split_once(' ').expect("it has properties");
        assert!(["error", "warning", "notice"].contains(&level), "{line}");
        for property in properties.split(',') {
            let (key, value) = property.split_once('=').expect("a property has a value");
            assert!(["title", "file", "line"].contains(&key), "{line}");
            assert!(!value.contains(':') && !value.contains('\r'), "{line}");
        }
        assert!(!message.chars().any(char::is_control), "{line:?}");
    }
}

/// Reads texts with a zero byte between them; prints of each the numbers of tests, failures and errors, as its elements and as its attributes have them.
const XML: &str = r"
import sys
from xml.etree import ElementTree
for text in sys.stdin.buffer.read().split(b'\0'):
    top = ElementTree.fromstring(text)
    [suite] = top.findall('testsuite')
    own = [len(suite.findall('testcase')), len(suite.findall('testcase/failure')), len(suite.findall('testcase/error'))]
    assert own == [int(suite.get(name)) for name in ('tests', 'failures', 'errors')] == [int(top.get(name)) for name in ('tests', 'failures', 'errors')]
    assert all(case.get('name') and case.get('classname') for case in suite)
    print(*own)
";

#[test]
fn pipelines_read_every_report_and_no_name_is_markup() {
    let names = [
        "a\"b<c>&'d]]>",
        "x\n::error::y\r\n",
        "100%,file=/etc/passwd::z",
        "\u{1b}[0m\u{0}\u{fffe}\u{202e}",
    ];
    let mut reports = Vec::new();
    for (_, report) in samples::all() {
        for name in names {
            reports.push(gated(&filled(&report, &[name.to_owned()]), name));
        }
        reports.push(report);
    }
    for report in &reports {
        check_annotations(&text(Format::Github, report));
        check_markdown(&text(Format::Markdown, report));
    }
    let documents: Vec<String> = reports.iter().map(|report| text(Format::Junit, report)).collect();
    let found = told_by(
        Command::new("/usr/bin/python3").args(["-c", XML]),
        documents.join("\0").as_bytes(),
    );
    assert_eq!(found.lines().count(), reports.len());
    for (report, counts) in reports.iter().zip(found.lines()) {
        let (checks, failed) = if report.gate.is_some() { (3, 1) } else { (0, 0) };
        let tests = 1 + checks + report.findings.len();
        assert_eq!(counts, format!("{tests} {failed} {failed}"));
    }
}

#[test]
fn only_a_condition_that_holds_is_an_error() {
    let report = samples::sshd().report();
    let without = text(Format::Github, &report);
    assert!(
        !report.findings.is_empty() && !without.contains("::error"),
        "{without}"
    );
    let with = text(Format::Github, &gated(&report, "disk.sync"));
    assert_eq!(with.matches("::error ").count(), 1, "{with}");
    assert!(
        with.starts_with("::error title=holdup%3A disk.sync>1%25::disk.sync\n"),
        "{with}"
    );
}

#[test]
fn a_hundred_findings_are_no_hundred_annotations() {
    let mut report = samples::sshd().report();
    let one = report.findings[0].clone();
    report.findings = vec![one; 100];
    let lines = text(Format::Github, &report).lines().count();
    assert_eq!(lines, 11, "ten, and the number of the others");
}

proptest! {
    // Each case writes every sample in every format, and asks protoc of one.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_formats_have_one_total_whatever_the_names_and_numbers(
        texts in proptest::collection::vec(nasty(), 1..20),
        figures in proptest::collection::vec((0_u64..1 << 44, 0_u64..1 << 30, 0_u32..9, 0_u32..9), 1..12),
    ) {
        for (at, (name, report)) in samples_with_waits().enumerate() {
            let dated = report.waits[0].max_started.clone();
            let mut report = filled(&report, &texts);
            for (wait, (ns, count, pid, tid)) in report.waits.iter_mut().zip(figures.iter().cycle()) {
                (wait.ns, wait.count, wait.asker.pid, wait.asker.tid) = (*ns, *count, *pid, *tid);
                wait.max_started = dated.clone();
                wait.max_started_boot_ns = Some(*ns / 2);
            }
            if at % 2 == 1 {
                let pieces = figures.iter().map(|(ns, start, task, by)| Piece {
                    before: ns % 3,
                    ended_by: Some(EndedBy::Task(*by)),
                    ..piece(*task, *start, *ns)
                });
                report.timeline = timeline(&report, pieces.collect());
            }
            let total = total(&report);
            let collapsed = text(Format::Collapsed, &report);
            let lines = folded(&collapsed);
            prop_assert_eq!(lines.iter().map(|(_, ns)| ns).sum::<u64>(), total, "{}: {}", name, collapsed);
            for (frames, _) in &lines {
                prop_assert!(frames.len() >= 3 && frames.iter().all(|frame| !frame.is_empty()), "{frames:?}");
            }
            prop_assert_eq!(read_of_pprof(&export(Format::Pprof, &report)), total);
            let profile = serde_json::from_str(&text(Format::Firefox, &report)).expect("JSON");
            prop_assert_eq!(total_of_firefox(&profile), total);
            prop_assert_eq!(totals_of_otlp(&text(Format::Otlp, &report)), (total, total));
            prop_assert_eq!(total_of_prometheus(&text(Format::Prometheus, &report)), total);
            if at < 2 {
                prop_assert_eq!(total_of_trace(&export(Format::Perfetto, &report)), total);
            }
            check_markdown(&text(Format::Markdown, &report));
            check_annotations(&text(Format::Github, &report));
        }
    }
}
