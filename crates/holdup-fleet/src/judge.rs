//! The report of one host, made by `holdup show` itself.
//!
//! In: a folder with its segments. Out: the report that `holdup show` has of that folder. There is one judgement of a recording, and it is
//! not repeated here; and what anybody may have put into a store is read by a process that can do nothing else and ends after it.

use anyhow::{Context, bail};
use holdup_model::report::Report;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Tells which holdup started this program, as cargo does for its subcommands.
pub(crate) const PROGRAM: &str = "HOLDUP";

/// Bytes of a report.
const MAX_REPORT: u64 = 256 << 20;

/// Bytes of what it says on stderr that are kept: a sentence.
const MAX_SAID: u64 = 4 << 10;

/// holdup: the one that started this, or the one beside it, or the one in PATH.
pub(crate) fn program() -> PathBuf {
    let named = std::env::var_os(PROGRAM).map(PathBuf::from);
    let beside = || {
        let beside = std::env::current_exe().ok()?.with_file_name("holdup");
        beside.is_file().then_some(beside)
    };
    named.or_else(beside).unwrap_or_else(|| "holdup".into())
}

/// The report of a folder.
///
/// # Errors
/// What `holdup show` says is wrong.
pub(crate) fn folder(program: &Path, folder: &Path) -> anyhow::Result<Report> {
    let mut child = Command::new(program)
        .arg("show")
        .arg(folder)
        .args(["--json", "-", "--no-mask"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program:?}, which judges each host"))?;
    let said = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || {
            let mut said = String::new();
            let mut stderr = stderr;
            stderr.by_ref().take(MAX_SAID).read_to_string(&mut said).ok();
            // Whatever more it says must not hold it up.
            std::io::copy(&mut stderr, &mut std::io::sink()).ok();
            said
        })
    });
    let mut text = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_REPORT).read_to_end(&mut text)?;
    }
    let status = child.wait()?;
    let said = said.and_then(|thread| thread.join().ok()).unwrap_or_default();
    if !status.success() {
        let first = said.lines().next().unwrap_or_default();
        bail!("holdup show: {status}: {}", first.trim());
    }
    serde_json::from_slice(&text).context("holdup show wrote no report")
}
