//! The report as a person reads it, of each kind of run.

mod samples;

use holdup_model::report::{Link, Report};
use holdup_views::{Style, terminal};

fn text(report: &Report, style: &Style) -> String {
    let mut out = Vec::new();
    terminal::write(report, style, &mut out).expect("a vector takes everything");
    String::from_utf8(out).expect("only text is written")
}

fn wide() -> Style {
    Style {
        width: 120,
        ..Style::default()
    }
}

fn verbose() -> Style {
    Style {
        verbose: true,
        ..Style::default()
    }
}

macro_rules! snapshot {
    ($name:ident, $sample:ident, $style:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(text(&samples::$sample().report(), &$style));
        }
    };
}

snapshot!(sshd_that_waits_for_the_seed, sshd, Style::default());
snapshot!(sshd_in_a_wide_terminal, sshd, wide());
snapshot!(sshd_verbose, sshd, verbose());
snapshot!(
    sshd_quiet,
    sshd,
    Style {
        quiet: true,
        ..Style::default()
    }
);
snapshot!(
    sshd_narrow_and_ascii,
    sshd,
    Style {
        width: 50,
        unicode: false,
        ..Style::default()
    }
);
snapshot!(
    sshd_in_colour,
    sshd,
    Style {
        colour: true,
        ..Style::default()
    }
);
snapshot!(pipeline, pipeline, Style::default());
snapshot!(pipeline_verbose, pipeline, verbose());
snapshot!(healthy, healthy, Style::default());
snapshot!(
    healthy_quiet,
    healthy,
    Style {
        quiet: true,
        ..Style::default()
    }
);
snapshot!(hostile_names, hostile, Style::default());
snapshot!(low_coverage, low_coverage, Style::default());
snapshot!(
    low_coverage_quiet,
    low_coverage,
    Style {
        quiet: true,
        ..Style::default()
    }
);
snapshot!(daemon_that_lives_on, daemon, Style::default());
snapshot!(many_threads, database, Style::default());
snapshot!(
    many_threads_verbose,
    database,
    Style {
        width: 100,
        ..verbose()
    }
);
snapshot!(build_of_many_processes, build_of_many, Style::default());

#[test]
fn time_that_stayed_with_the_waiter_went_nowhere() {
    let mut report = samples::sshd().report();
    let wait = report.waits[0].clone();
    let link = |tid, process: &str| Link {
        pid: wait.asker.pid,
        tid,
        process: process.to_owned(),
        cause: wait.cause,
        ns: wait.ns,
        host: None,
    };
    let (own, other) = (link(wait.asker.tid, "sshd"), link(999_999, "elsewhere"));
    report.waits[0].chain = vec![own.clone()];
    assert!(!text(&report, &Style::default()).contains("leads to"));
    report.waits[0].chain = vec![own, other];
    assert!(text(&report, &Style::default()).contains("leads to"));
}

#[test]
fn diff_of_four_runs_each() {
    insta::assert_snapshot!(text(&samples::diff::traded(), &Style::default()));
}

#[test]
fn diff_of_four_runs_each_verbose_and_wide() {
    let style = Style {
        verbose: true,
        ..wide()
    };
    insta::assert_snapshot!(text(&samples::diff::traded(), &style));
}

#[test]
fn diff_of_one_run_each() {
    insta::assert_snapshot!(text(&samples::diff::one_each(), &Style::default()));
}

#[test]
fn diff_of_profiles() {
    insta::assert_snapshot!(text(&samples::diff::profiles(), &wide()));
}

#[test]
fn workers_that_contend() {
    insta::assert_snapshot!(text(&samples::scale::contends(), &Style::default()));
}

#[test]
fn workers_that_contend_narrow_and_ascii() {
    let style = Style {
        width: 44,
        unicode: false,
        ..Style::default()
    };
    insta::assert_snapshot!(text(&samples::scale::contends(), &style));
}

#[test]
fn workers_that_scale_with_their_law_wide() {
    insta::assert_snapshot!(text(&samples::scale::scales(), &wide()));
}

#[test]
fn both_sides_are_named_in_every_line_with_a_figure_of_both() {
    for report in [
        samples::diff::traded(),
        samples::diff::one_each(),
        samples::diff::profiles(),
    ] {
        for line in text(&report, &wide())
            .lines()
            .filter(|line| line.trim_start().starts_with(['+', '-']))
        {
            assert!(line.contains("BEFORE ") && line.contains("AFTER "), "{line}");
        }
    }
}

#[test]
fn who_judged_a_wait_is_printed_on_demand() {
    use holdup_model::attributed::{Certainty, Judge, JudgedBy, Reason};
    let mut report = samples::sshd().report();
    assert!(!text(&report, &verbose()).contains("judged by"), "nobody judged");
    for wait in &mut report.waits {
        wait.judged_by = Some(JudgedBy {
            judge: Judge::Kernel,
            reason: Reason::SystemCall,
            certainty: Certainty::Purpose,
        });
    }
    let line = "judged by kernel  system call and object, no kernel stack";
    assert!(text(&report, &verbose()).contains(line));
    assert!(!text(&report, &Style::default()).contains("judged by"));
}
