//! `cargo xtask bench read`: how fast artefacts are read, beside what people use on the same file today; and how much
//! memory a log takes that is larger than memory should be.
//!
//! In: the samples of each format, repeated with other numbers until they are a large file. Out: a table. Peers that are
//! not installed have a `-`: `jc` and inferno come from their own package managers.

use crate::speed::{self, MB, repeat};
use crate::workspace;
use anyhow::{Context, bail};
use serde::Deserialize;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What to read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Formats, by the names of their folders; all if there is none
    formats: Vec<String>,
    /// Size of the file that is made for each, MB
    #[arg(long, default_value_t = 200)]
    megabytes: u64,
    /// Size of the log that is sent through a pipe to see what memory it takes, MB; 0 for none
    #[arg(long, default_value_t = 4_000)]
    pipe: u64,
    /// How often each is measured; the best counts, because other programs only ever make it slower
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// A peer gets a file of this size, MB: the slow ones would take an hour for more.
const SLOW_PEER: u64 = 2;

/// How often to look at memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Of a file that is repeated, this share must have been understood, or it is no format of lines and says nothing here,
/// per cent.
const UNDERSTOOD: u64 = 80;

/// What people use on a format: the arguments, and whether it is slow.
const PEERS: &[(&str, &[&str], bool)] = &[
    ("iostat", &["jc", "--iostat"], true),
    ("vmstat", &["jc", "--vmstat"], true),
    ("top", &["jc", "--top"], true),
    ("mpstat", &["jc", "--mpstat"], true),
    ("pidstat", &["jc", "--pidstat"], true),
    ("collapsed", &["inferno-flamegraph"], false),
    ("perf-script", &["inferno-collapse-perf"], false),
];

/// The part of a report that is looked at.
#[derive(Debug, Deserialize)]
struct Read {
    #[serde(default)]
    artefacts: Vec<Artefact>,
}

#[derive(Debug, Deserialize)]
struct Artefact {
    lines: u64,
    understood: u64,
}

/// Measures and prints.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let samples = workspace::root().join("crates/holdup/tests/samples");
    let folder = workspace::scratch("bench-read")?;
    println!(
        "MB for each second of CPU time, the best of {} in turn; understood: of all lines",
        args.rounds
    );
    println!(
        "{:<24}{:>8}{:>12}{:>8}{:>8}  others",
        "format", "holdup", "understood", "grep", "awk"
    );
    for (format, sample) in largest(&samples)? {
        if !args.formats.is_empty() && !args.formats.contains(&format) {
            continue;
        }
        let file = folder.join("file");
        repeat(&sample, &file, args.megabytes * MB)?;
        let understood = understood(&holdup, &file)?;
        let Some(understood) = understood.filter(|share| *share >= UNDERSTOOD) else {
            println!("{format:<24}{:>8}", "one document: not to be repeated");
            continue;
        };
        let slow = folder.join("slow");
        repeat(&sample, &slow, SLOW_PEER * MB)?;
        let own = vec![
            holdup.to_string_lossy().into_owned(),
            "read".to_owned(),
            "-".to_owned(),
        ];
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<String>>()
        };
        let peer = PEERS.iter().find(|(of, _, _)| *of == format);
        let mut runs = vec![
            (own, &file),
            (words(&["grep", "-c", "error"]), &file),
            (words(&["awk", "{ n += NF } END { print n }"]), &file),
        ];
        if let Some((_, peer, is_slow)) = peer {
            runs.push((words(peer), if *is_slow { &slow } else { &file }));
        }
        let mut best: Vec<Option<f64>> = vec![None; runs.len()];
        for _ in 0..args.rounds {
            for ((words, file), best) in runs.iter().zip(&mut best) {
                if let Some(speed) = speed(words, file)? {
                    *best = Some(best.map_or(speed, |best| best.max(speed)));
                }
            }
        }
        let cell = |place: usize| speed::cell(best.get(place).copied().flatten());
        let other = peer.map_or_else(String::new, |(_, words, _)| {
            format!("{} {}", words.join(" "), cell(3))
        });
        println!(
            "{format:<24}{:>8}{:>10} %{:>8}{:>8}  {other}",
            cell(0),
            understood,
            cell(1),
            cell(2)
        );
    }
    std::fs::remove_dir_all(&folder).context("remove what was made")?;
    if args.pipe > 0 {
        pipe(&holdup, args.pipe)?;
    }
    Ok(())
}

/// The largest sample of each format.
fn largest(samples: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let list = |folder: &Path| -> anyhow::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
        Ok(entries
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?)
    };
    let mut all = Vec::new();
    for folder in list(samples)?.into_iter().filter(|path| path.is_dir()) {
        let files = list(&folder)?
            .into_iter()
            .filter(|path| path.is_file() && path.extension().is_none_or(|extension| extension != "toml"));
        let largest = files.max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()));
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        all.extend(largest.map(|file| (name, file)));
    }
    all.sort();
    Ok(all)
}

/// How many of a hundred lines were understood; `None` where there are no lines.
fn understood(holdup: &Path, file: &Path) -> anyhow::Result<Option<u64>> {
    let output = Command::new(holdup)
        .args(["read", "--format", "json"])
        .arg(file)
        .stderr(Stdio::null())
        .output()
        .context("start holdup")?;
    let Ok(report) = serde_json::from_slice::<Read>(&output.stdout) else {
        return Ok(None);
    };
    let lines: u64 = report.artefacts.iter().map(|one| one.lines).sum();
    let understood: u64 = report.artefacts.iter().map(|one| one.understood).sum();
    Ok((understood * 100).checked_div(lines))
}

/// How fast a program reads a file from its stdin.
fn speed(words: &[String], file: &Path) -> anyhow::Result<Option<f64>> {
    let input = File::open(file).with_context(|| format!("open {}", file.display()))?;
    let bytes = input.metadata()?.len();
    speed::of(Command::new(&words[0]).args(&words[1..]).stdin(input), bytes)
}

/// Sends a log through a pipe, and prints what memory it took.
fn pipe(holdup: &Path, megabytes: u64) -> anyhow::Result<()> {
    let mut child = Command::new(holdup)
        .args(["read", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("start holdup")?;
    let mut input = child.stdin.take().context("its stdin")?;
    let began = Instant::now();
    let writer = std::thread::spawn(move || {
        let mut line = 0;
        let mut written = 0;
        while written < megabytes * MB {
            let block = log(&mut line);
            // It ends early where it has seen enough.
            if input.write_all(&block).is_err() {
                break;
            }
            written += block.len() as u64;
        }
        written
    });
    let peak = peak(&mut child)?;
    let Ok(written) = writer.join() else {
        bail!("the log could not be made")
    };
    println!(
        "\na log of {} MB through a pipe: {:.0} MB/s, peak memory {} MB",
        written / MB,
        written as f64 / MB as f64 / began.elapsed().as_secs_f64(),
        peak / 1_000
    );
    Ok(())
}

/// Some thousand lines of a log of a busy server: times that go on, threads, and names that never come again.
fn log(line: &mut u64) -> Vec<u8> {
    let mut block = Vec::with_capacity(1 << 20);
    for _ in 0..8_000 {
        *line += 1;
        let ms = *line / 4;
        let (s, m, h) = (ms / 1_000 % 60, ms / 60_000 % 60, ms / 3_600_000 % 24);
        writeln!(
            block,
            "2026-03-01 {h:02}:{m:02}:{s:02},{:03} INFO  [worker-{}] com.example.Server - request {} of session {:x} took {} ms",
            ms % 1_000,
            *line % 16,
            *line,
            line.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            *line % 977
        )
        .expect("memory can be written to");
    }
    block
}

/// The most memory that a program had until its end, KiB.
fn peak(child: &mut Child) -> anyhow::Result<u64> {
    let file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().context("wait for holdup")?.is_none() {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(peak)
}
