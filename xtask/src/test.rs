//! `cargo xtask test`: every test there is, in the order of how soon it fails.
//!
//! Each step is a program whose output is passed on as it comes and read for its counts; the last line is
//! their sum. A step that fails without having counted a failure (it did not compile, say) is one failure.

use crate::tally::Tally;
use crate::{guest, pages, process, setup, workspace};
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// What to leave out.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only `cargo test`: no artefacts, replay, pages, attacks, scenarios or guest
    #[arg(long)]
    quick: bool,
    /// Only what needs neither root nor BPF nor clang nor libelf
    #[arg(long, conflicts_with = "quick")]
    unprivileged: bool,
}

/// Crates that load BPF or depend on one that does: to build them takes clang and libelf.
const NEED_BPF: &[&str] = &["holdup", "holdup-bpf", "holdup-fuzz"];

/// Runs every test; an error when one failed.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.unprivileged {
        return run_steps(unprivileged()?);
    }
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "the tests trace with BPF and set up disks, mounts and networks: run them as root (sudo -E cargo xtask test)"
        );
    }
    setup::install(&[setup::BUILD, setup::TEST, pages::PACKAGES, guest::PACKAGES])?;

    let mut steps: Vec<(&str, Command)> = vec![("tests", workspace::cargo())];
    steps[0].1.args(["test", "--workspace", "--no-fail-fast"]);
    if !args.quick {
        for verb in ["artefacts", "replay", "pages", "attacks", "scenarios", "guest"] {
            let mut command = workspace::xtask()?;
            command.arg(verb);
            steps.push((verb, command));
        }
    }
    run_steps(steps)
}

/// What runs anywhere.
fn unprivileged() -> anyhow::Result<Vec<(&'static str, Command)>> {
    let mut tests = workspace::cargo();
    tests.args(["test", "--workspace", "--no-fail-fast"]);
    for package in NEED_BPF {
        tests.args(["--exclude", package]);
    }
    let mut replay = workspace::xtask()?;
    replay.arg("replay");
    Ok(vec![("tests", tests), ("replay", replay)])
}

/// Runs them in turn; an error where one failed.
fn run_steps(mut steps: Vec<(&str, Command)>) -> anyhow::Result<()> {
    let mut results = Vec::new();
    for (name, command) in &mut steps {
        println!("\n== {name}: {}", process::words(command));
        results.push((*name, step(command)?));
    }
    println!();
    for (name, tally) in &results {
        println!("{name:<12} {tally}");
    }
    let total: Tally = results.iter().map(|(_, tally)| *tally).sum();
    println!("{total}");
    if total.failed > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// Runs one step and counts what it says.
fn step(command: &mut Command) -> anyhow::Result<Tally> {
    let words = process::words(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {words}"))?;
    let lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let tally =
        pass_on(lines, &mut std::io::stdout().lock()).with_context(|| format!("the output of {words}"))?;
    let status = child.wait().with_context(|| format!("wait for {words}"))?;
    if !status.success() {
        println!("{words} failed: {status}");
    }
    Ok(verdict(tally, status.success()))
}

/// Writes every line on as it comes and adds up those that count.
fn pass_on(mut lines: impl BufRead, out: &mut dyn Write) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        out.write_all(&line)?;
        out.flush()?;
        if let Some(counted) = Tally::from_line(String::from_utf8_lossy(&line).trim_end()) {
            tally += counted;
        }
        line.clear();
    }
    Ok(tally)
}

/// A step counts as what it counted; one that counted nothing, or failed without a failure, is one more.
fn verdict(mut tally: Tally, success: bool) -> Tally {
    if tally == Tally::default() || (!success && tally.failed == 0) {
        tally += Tally::one(success);
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::{pass_on, verdict};
    use crate::tally::Tally;

    #[test]
    fn counts_add_up_and_every_byte_is_passed_on() {
        let output: &[u8] =
            b"test result: ok. 3 passed; 0 failed; 0 ignored\n\xff\n2 passed, 1 failed\nno newline";
        let mut out = Vec::new();
        let tally = pass_on(output, &mut out).unwrap();
        assert_eq!(tally, Tally { passed: 5, failed: 1 });
        assert_eq!(out, output);
    }

    #[test]
    fn a_failure_that_nobody_counted_counts() {
        let passed = Tally { passed: 3, failed: 0 };
        assert_eq!(verdict(passed, false), Tally { passed: 3, failed: 1 });
        assert_eq!(verdict(passed, true), passed);
        assert_eq!(verdict(Tally::default(), true), Tally { passed: 1, failed: 0 });
        let failed = Tally { passed: 0, failed: 2 };
        assert_eq!(verdict(failed, false), failed);
    }
}
