//! `cargo xtask fuzz [TARGET…]`: hostile input for the readers, led by coverage, for as long as you like.
//!
//! In: the targets of `crates/holdup-fuzz`. Out: nothing while nothing breaks; an input that breaks a reader is written
//! into that target's corpus, where the ordinary tests find it from then on. What only widens coverage stays in the
//! target directory. libFuzzer is linked with instrumentation that stable Rust has; nothing needs a nightly.

use crate::{process, setup, workspace};
use anyhow::{Context, bail};
use std::path::Path;

/// What libFuzzer is made with: its crate compiles C++.
const PACKAGES: setup::Packages = setup::Packages {
    purpose: "fuzz",
    names: &["g++"],
};

/// What to try, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names of files in crates/holdup-fuzz/targets; all of them if there is none
    targets: Vec<String>,
    /// For how many minutes, all targets together
    #[arg(long, default_value_t = 30)]
    minutes: u32,
}

/// What tells libFuzzer which code an input reached, and checks that arithmetic does not overflow. `--cfg fuzzing` is
/// what dependencies look at.
const INSTRUMENTATION: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks --cfg fuzzing";

/// An input that takes longer than this is a hang, seconds: ordinary ones take a millisecond.
const TIMEOUT_S: u32 = 25;

/// An input that takes more memory than this is a fault, MiB.
const MEMORY_MIB: u32 = 2048;

/// The longest input that is made, bytes: programs of a few KiB have all that larger ones have.
const LONGEST: u32 = 16 << 10;

/// Builds and runs.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    setup::install(&[setup::BUILD, PACKAGES])?;
    let package = workspace::root().join("crates/holdup-fuzz");
    let known = targets(&package.join("targets"))?;
    if let Some(unknown) = args.targets.iter().find(|name| !known.contains(name)) {
        bail!("there is no target {unknown}; there are: {}", known.join(", "));
    }
    let chosen = if args.targets.is_empty() {
        &known
    } else {
        &args.targets
    };
    let build = workspace::scratch("fuzz")?;
    // With --target, flags are for the program only and not for what builds it.
    let triple = host()?;
    process::run(
        workspace::cargo()
            .args([
                "build",
                "--release",
                "--package",
                "holdup-fuzz",
                "--features",
                "long",
            ])
            .args(["--target", &triple, "--target-dir"])
            .arg(&build)
            .env("RUSTFLAGS", INSTRUMENTATION),
    )?;
    let program = build.join(&triple).join("release/fuzz");
    let seconds = u64::from(args.minutes) * 60 / chosen.len() as u64;
    let mut broken = Vec::new();
    for name in chosen {
        let corpus = package.join("corpus").join(name);
        let found = workspace::scratch(&format!("fuzz/found/{name}"))?;
        let mut command = std::process::Command::new(&program);
        command
            .arg(name)
            .args([
                format!("-max_total_time={}", seconds.max(1)),
                format!("-timeout={TIMEOUT_S}"),
                format!("-rss_limit_mb={MEMORY_MIB}"),
                format!("-max_len={LONGEST}"),
                format!("-artifact_prefix={}/", corpus.display()),
                "-print_final_stats=1".to_owned(),
                "-verbosity=1".to_owned(),
            ])
            .args([&found, &corpus]);
        eprintln!("== {}", process::words(&command));
        // Another thread's panic would print a backtrace for each of a million inputs.
        command.env("RUST_BACKTRACE", "0");
        let status = command
            .status()
            .with_context(|| format!("start {}", program.display()))?;
        println!(
            "{name:<14} {}",
            if status.success() {
                "nothing broke it"
            } else {
                "BROKE"
            }
        );
        if !status.success() {
            broken.push(name.as_str());
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    bail!(
        "what broke {} is in crates/holdup-fuzz/corpus; `cargo test -p holdup-fuzz` shows where",
        broken.join(", ")
    )
}

/// The names of the targets.
fn targets(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// The triple of this machine, as the compiler says it.
fn host() -> anyhow::Result<String> {
    let version = process::output(std::process::Command::new("rustc").arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc -vV names no host")?.to_owned())
}
