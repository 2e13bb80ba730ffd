//! The last segment's figures for node_exporter's textfile collector: `--prometheus FILE`.
//!
//! In: a segment's report. Out: the file, replaced whole: whoever reads it finds the segment before or this one, and never half of one.
//! Readable for all, as the collector runs as a user of its own: labels are names of causes, rules and processes.

use anyhow::Context;
use holdup_files::{Last, NewFile};
use holdup_model::report::Report;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// How the collector wants a file's name to end; others it does not read.
const EXTENSION: &str = "prom";

/// Refuses what the collector would not read, or what can't be written, before anything is observed.
///
/// # Errors
/// What is wrong, and what would be right.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    if path.extension().is_none_or(|extension| extension != EXTENSION) {
        anyhow::bail!(crate::usage::Usage::Wrong(format!(
            "--prometheus {path:?}: node_exporter reads files that end in .{EXTENSION}, such as /var/lib/prometheus/node-exporter/holdup.prom"
        )));
    }
    fresh(path).map(drop)
}

/// Replaces the file by this one, of [`fresh`].
///
/// # Errors
/// When it can't be written.
pub(crate) fn write(mut file: NewFile, path: &Path, report: &Report) -> anyhow::Result<()> {
    let failed = || format!("cannot write the metrics to {path:?}");
    let mut text = Vec::new();
    holdup_views::Format::Prometheus
        .write(report, &mut text)
        .expect("memory can be written to");
    file.file().write_all(&text).with_context(failed)?;
    file.file()
        .set_permissions(Permissions::from_mode(0o644))
        .with_context(failed)?;
    file.finish().with_context(failed)
}

/// A file beside it, which the collector does not read; gone unless it is given the name. The folder often belongs to the collector's
/// user: whatever that user puts there, only the name in this folder is replaced.
///
/// # Errors
/// When the folder does not take it.
pub(crate) fn fresh(path: &Path) -> anyhow::Result<NewFile> {
    NewFile::open(path, Last::RegularOnly).with_context(|| format!("cannot write the metrics to {path:?}"))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_would_not_be_read_is_refused_at_once() {
        let place = tempfile::tempdir().unwrap();
        assert!(check(&place.path().join("holdup.prom")).is_ok());
        assert_eq!(
            std::fs::read_dir(place.path()).unwrap().count(),
            0,
            "nothing is left"
        );
        let words = |name: &str| check(&place.path().join(name)).unwrap_err().to_string();
        assert!(words("holdup.txt").contains("files that end in .prom"));
        assert!(words("none/holdup.prom").contains("cannot write the metrics"));
    }
}
