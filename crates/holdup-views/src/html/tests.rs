//! The page as text: its policy, its data, its size, and what hostile names do to it.

use super::{DATA, MARKS, PAGE, PageError, html, is_page, next_mark, policy, script, style, write};
use holdup_model::report::Report;

/// The report of a run of `sshd -t`.
pub(crate) fn report() -> Report {
    serde_json::from_str(include_str!("../../tests/pages/sshd.json")).expect("a committed report")
}

fn page(report: &Report) -> String {
    let mut out = Vec::new();
    write(report, &mut out).expect("memory can be written to");
    String::from_utf8(out).expect("only text is written")
}

/// What stands between a tag that begins like this and the end of its element.
fn element<'a>(page: &'a str, tag: &str, end: &str) -> &'a str {
    let (_, rest) = page.split_once(tag).expect("the tag is there");
    rest.split_once(end).expect("it ends").0
}

#[test]
fn the_policy_allows_what_stands_in_the_page_and_nothing_else() {
    let page = page(&report());
    let of_page = policy(
        element(&page, "<style>", "</style>"),
        element(&page, "<script>", "</script>"),
    );
    assert!(page.contains(&format!("content=\"{of_page}\"")), "{of_page}");
    assert!(of_page.starts_with("default-src 'none'"));
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(page.matches("<script").count(), 3);
    // What would be fetched, or would run without a hash.
    for word in [
        "src=",
        "href=\"http",
        "url(",
        "@import",
        " onclick=",
        " style=",
        "\"javascript:",
        "'javascript:",
        "=javascript:",
        "innerHTML",
        "eval(",
    ] {
        let ours = PAGE.to_owned() + &style() + &script();
        assert!(!ours.contains(word), "{word}");
    }
}

/// The report that such JSON is.
pub(crate) fn read(json: Result<String, PageError>) -> Result<Report, PageError> {
    serde_json::from_str(&json?).map_err(|error| PageError::Unreadable(error.to_string()))
}

fn report_of(page: &[u8]) -> Result<Report, PageError> {
    read(super::report_of(page))
}

#[test]
fn every_mark_has_its_part() {
    let page = page(&report());
    let mut rest = PAGE;
    let mut marks = Vec::new();
    while let Some((_, mark, after)) = next_mark(rest) {
        marks.push(mark);
        rest = after;
    }
    assert_eq!(marks, MARKS);
    assert!(!page.contains("{{POLICY}}"));
}

#[test]
fn the_report_comes_back() {
    let report = report();
    let page = page(&report);
    assert!(is_page(page.as_bytes()) && is_page(&page.as_bytes()[..64]));
    assert!(!is_page(b"") && !is_page(b"<!doctype html>") && !is_page(b"{}"));
    assert_eq!(report_of(page.as_bytes()), Ok(report));
}

#[test]
fn a_page_that_is_not_ours_is_said_to_be_that() {
    let page = page(&report());
    let cut = &page[..page.find(DATA.0).expect("there are data") + 2_000];
    assert_eq!(report_of(b"\xff"), Err(PageError::NotOurs));
    assert_eq!(report_of(b"<html></html>"), Err(PageError::NotOurs));
    assert_eq!(report_of(cut.as_bytes()), Err(PageError::NotOurs));
    assert_eq!(report_of(&vec![b' '; 20_000_000]), Err(PageError::TooLarge));
    let broken = page.replacen("\"report\":", "\"report\":[", 1);
    assert!(matches!(
        report_of(broken.as_bytes()),
        Err(PageError::Unreadable(_))
    ));
}

#[test]
fn the_data_are_these() {
    let page = page(&report());
    let data = element(&page, DATA.0, DATA.1);
    let read: serde_json::Value = serde_json::from_str(data).expect("data are JSON");
    let text = serde_json::to_string_pretty(&read).expect("so it can be written again");
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_in_a_name_ends_an_element() {
    let mut hostile = report();
    let name = "</script><img src=x onerror=alert(1)><!--{{SCRIPT}}\u{2028}&'\"\u{202e}".repeat(200);
    hostile.subject.command = vec![name.clone()];
    hostile.waits[0].asker.process.clone_from(&name);
    hostile.waits[0].asker.stack[0].symbol = Some(name.clone());
    hostile.findings[0].title.clone_from(&name);
    hostile.waits[0].resource.detail.read(name.clone(), name.clone());
    let page = page(&hostile);
    assert!(!page.contains("<img"));
    assert!(!page.contains("<!--"));
    assert_eq!(page.matches("</script>").count(), 3);
    assert_eq!(
        page.matches("\"use strict\"").count(),
        1,
        "no mark in a name is filled in"
    );
    assert_eq!(report_of(page.as_bytes()), Ok(hostile));
    assert_eq!(html("<b>&"), "&lt;b&gt;&amp;");
}

#[test]
fn an_empty_page_is_small_enough_to_send() {
    // Bytes; data have the rest of 5 MB.
    const OWN: usize = 200_000;
    assert!(page(&report()).len() < OWN);
    const { assert!(super::data::MOST_BYTES + OWN < 5_000_000) }
}

#[test]
fn a_plot_is_drawn_without_a_script_and_has_no_look_of_its_own() {
    let mut one = report();
    let point = |workers: u32, throughput: f64| {
        serde_json::json!({"workers": workers, "throughput": throughput, "p50_ns": 1_000, "p99_ns": 2_000, "control": throughput,
            "throughput_interval": [throughput * 0.9, throughput * 1.1], "control_interval": [throughput, throughput],
            "control_p50_ns": 900, "ideal": f64::from(workers) * 100.0, "operations": 600,
            "each": {"user_ns": 1.0, "kernel_ns": 2.0, "queued_ns": 3.0, "blocked_ns": 4.0, "all_ns": 10.0},
            "control_each": {"user_ns": 1.0, "kernel_ns": 2.0, "queued_ns": 3.0, "blocked_ns": 4.0, "all_ns": 10.0}})
    };
    let found = serde_json::json!({"points": [point(1, 100.0), point(2, 180.0), point(4, 40.0)], "sigma": null, "kappa": null,
        "verdict": "contends", "contends_on": "/a", "what": "</script><b>", "unit": "<i>", "control": "c", "cpus": 2, "repeats": 6,
        "seed": 1, "words": ["\"><script>alert(1)</script>"], "notes": []});
    one.scaling = Some(serde_json::from_value(found).expect("a scaling"));
    let page = page(&one);
    let figure = element(&page, "<figure class=\"plot\" id=\"plot\">", "</figure>");
    assert!(figure.contains("<svg ") && figure.contains("</svg>"), "{figure}");
    assert_eq!(figure.matches("<circle ").count(), 3);
    for word in ["style", "<script", "<b>", "<i>", "onload", "href"] {
        assert!(!figure.contains(word), "{word}: {figure}");
    }
    assert_eq!(
        report_of(page.as_bytes()).expect("it was ours").scaling,
        one.scaling
    );
}
