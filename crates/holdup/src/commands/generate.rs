//! `holdup generate`: what is made from this program's own definitions, for packagers and for `cargo xtask gen`.

use crate::cli::{Cli, Generate};
use crate::output;
use anyhow::Context;
use std::path::Path;

/// Writes what is asked for.
///
/// # Errors
/// When a file can't be written.
pub(crate) fn run(what: &Generate) -> anyhow::Result<u8> {
    match what {
        Generate::Man { directory } => man(directory)?,
        Generate::Schema => output::print(holdup_views::schema::text().as_bytes())?,
        Generate::Page { report } => output::print(&page(report)?)?,
    }
    Ok(0)
}

/// One page for holdup and one for each command that is not hidden.
fn man(directory: &Path) -> anyhow::Result<()> {
    clap_mangen::generate_to(Cli::definition(), directory)
        .with_context(|| format!("cannot write man pages to {directory:?}"))
}

/// The page of a report that `--json` wrote.
fn page(file: &Path) -> anyhow::Result<Vec<u8>> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {file:?}"))?;
    let report =
        serde_json::from_slice(&text).with_context(|| format!("{file:?} is not a report of holdup"))?;
    let mut page = Vec::new();
    holdup_views::html::write(&report, &mut page).expect("memory can be written to");
    Ok(page)
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_command_has_a_page_and_the_hidden_one_has_none() {
        let directory = tempfile::tempdir().unwrap();
        super::man(directory.path()).unwrap();
        let mut names: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "holdup-attach.1",
                "holdup-boot.1",
                "holdup-completions.1",
                "holdup-diff.1",
                "holdup-doctor.1",
                "holdup-explain.1",
                "holdup-fleet.1",
                "holdup-host.1",
                "holdup-mcp.1",
                "holdup-read.1",
                "holdup-record.1",
                "holdup-report-bug.1",
                "holdup-run.1",
                "holdup-scale.1",
                "holdup-show.1",
                "holdup-top.1",
                "holdup-try.1",
                "holdup.1"
            ]
        );
        let page = std::fs::read_to_string(directory.path().join("holdup-run.1")).unwrap();
        assert!(page.contains("\\-\\-json"), "{page}");
    }
}
