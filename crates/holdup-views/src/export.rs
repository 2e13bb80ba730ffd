//! The formats that a report can be written in beside the terminal's.
//!
//! In: a report and the format. Out: bytes. Each format is a module of its own; all that have figures of waits have the same total.

use crate::{collapsed, firefox, github, html, json, junit, markdown, otlp, perfetto, pprof, prometheus};
use holdup_model::report::Report;
use std::io::{self, Write};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The whole report, for programs.
    Json,
    /// A page for a browser.
    Html,
    /// The verdict, for an issue tracker or a chat.
    Markdown,
    /// Stacks with nanoseconds, for flame graphs.
    Collapsed,
    /// For pprof.
    Pprof,
    /// For Perfetto.
    Perfetto,
    /// For the Firefox Profiler.
    Firefox,
    /// For OpenTelemetry.
    Otlp,
    /// For Prometheus.
    Prometheus,
    /// For GitHub's workflows: annotations.
    Github,
    /// For build servers: test results.
    Junit,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 11] = [
        Format::Json,
        Format::Html,
        Format::Markdown,
        Format::Collapsed,
        Format::Pprof,
        Format::Perfetto,
        Format::Firefox,
        Format::Otlp,
        Format::Prometheus,
        Format::Github,
        Format::Junit,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Html => "html",
            Format::Markdown => "markdown",
            Format::Collapsed => "collapsed",
            Format::Pprof => "pprof",
            Format::Perfetto => "perfetto",
            Format::Firefox => "firefox",
            Format::Otlp => "otlp",
            Format::Prometheus => "prometheus",
            Format::Github => "github",
            Format::Junit => "junit",
        }
    }

    /// Whether it is no text.
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Pprof | Format::Perfetto)
    }

    /// Writes the report in it.
    ///
    /// # Errors
    /// When writing to `out` fails.
    pub fn write(self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Format::Json => json::write(report, out),
            Format::Html => html::write(report, out),
            Format::Markdown => markdown::write(report, out),
            Format::Collapsed => collapsed::write(report, out),
            Format::Pprof => pprof::write(report, out),
            Format::Perfetto => perfetto::write(report, out),
            Format::Firefox => firefox::write(report, out),
            Format::Otlp => otlp::write(report, out),
            Format::Prometheus => prometheus::write(report, out),
            Format::Github => github::write(report, out),
            Format::Junit => junit::write(report, out),
        }
    }
}
