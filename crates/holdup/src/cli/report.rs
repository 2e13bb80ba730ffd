//! The part of the command line that is about the report: where it goes, in which format, how much of it. All commands that make
//! one take it.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReportArgs {
    /// Also write the report as JSON to FILE; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Also write the report as one HTML page to FILE; the page loads nothing from the network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Format of the report on stdout; `run` prints it to stderr, because stdout belongs to CMD
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Also write the report to FILE, in any format but terminal; may be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = export)]
    pub(crate) export: Vec<Export>,
    /// Do not mask passwords, tokens and keys in arguments, addresses and texts
    ///
    /// By default, they are masked in every format. Recordings are always masked.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_mask: bool,
    /// Print only the first lines of the verdict
    #[arg(short, long, conflicts_with = "verbose", overrides_with = "quiet")]
    pub(crate) quiet: bool,
    /// Print everything: stacks, every wait, sources, and what was ruled out
    #[arg(short, long, overrides_with = "verbose")]
    pub(crate) verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For a person
    #[default]
    Terminal,
    /// For a program: the whole report
    Json,
    /// For a browser: an HTML page
    Html,
    /// For an issue tracker or a chat: the verdict
    Markdown,
    /// For flame graphs: stacks and nanoseconds
    Collapsed,
    /// For pprof; binary
    Pprof,
    /// For Perfetto; binary
    Perfetto,
    /// For the Firefox Profiler
    Firefox,
    /// For OpenTelemetry: metrics and profiles as JSON
    Otlp,
    /// For Prometheus: metrics as text
    Prometheus,
    /// For GitHub workflows: annotations
    Github,
    /// For build servers: test results as JUnit XML
    Junit,
}

impl Format {
    /// As the views know it; `None` for the terminal's.
    pub(crate) fn of_file(self) -> Option<holdup_views::Format> {
        Some(match self {
            Format::Terminal => return None,
            Format::Json => holdup_views::Format::Json,
            Format::Html => holdup_views::Format::Html,
            Format::Markdown => holdup_views::Format::Markdown,
            Format::Collapsed => holdup_views::Format::Collapsed,
            Format::Pprof => holdup_views::Format::Pprof,
            Format::Perfetto => holdup_views::Format::Perfetto,
            Format::Firefox => holdup_views::Format::Firefox,
            Format::Otlp => holdup_views::Format::Otlp,
            Format::Prometheus => holdup_views::Format::Prometheus,
            Format::Github => holdup_views::Format::Github,
            Format::Junit => holdup_views::Format::Junit,
        })
    }
}

/// A report in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) format: holdup_views::Format,
    pub(crate) file: PathBuf,
}

/// Reads `pprof=waits.pb.gz`.
fn export(text: &str) -> Result<Export, String> {
    let formats = || {
        let names = holdup_views::Format::ALL.map(holdup_views::Format::name);
        format!("FORMAT=FILE, with one of {} as FORMAT", names.join(", "))
    };
    let (name, file) = text.split_once('=').ok_or_else(formats)?;
    let format = holdup_views::Format::ALL
        .into_iter()
        .find(|format| format.name() == name)
        .ok_or_else(formats)?;
    if file.is_empty() || file == "-" {
        return Err(format!(
            "a file name after {name}= (--format selects the format on stdout)"
        ));
    }
    Ok(Export {
        format,
        file: file.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Format, export};
    use clap::ValueEnum;

    #[test]
    fn every_format_of_a_file_is_one_of_the_command_line_and_has_the_same_name() {
        let of_files: Vec<_> = Format::value_variants()
            .iter()
            .filter_map(|format| {
                let name = format.to_possible_value().unwrap().get_name().to_owned();
                Some((name, format.of_file()?))
            })
            .collect();
        let all = holdup_views::Format::ALL.map(|format| (format.name().to_owned(), format));
        assert_eq!(of_files, all);
    }

    #[test]
    fn an_export_has_a_format_and_a_file() {
        let pprof = export("pprof=a=b").unwrap();
        assert_eq!(
            (pprof.format, pprof.file),
            (holdup_views::Format::Pprof, "a=b".into())
        );
        for wrong in ["pprof", "terminal=x", "=x", "", "json=", "json=-"] {
            assert!(export(wrong).is_err(), "{wrong}");
        }
    }
}
