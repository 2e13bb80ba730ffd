//! `cargo xtask bench record`: what a recorder that runs for good takes of a machine, and how soon `holdup show` answers.
//!
//! In: `holdup record` of the whole machine, beside twenty thousand switches a second and beside nothing. Out: per cent of a core
//! with its BPF programs, memory, bytes an hour; and how long `show` takes over an hour and a day. Those are the busy segments of
//! this very bench, copied with their times shifted: real segments, but of fewer kinds than a day has.

mod killed;
mod recorder;

use super::attach::{Subject, middle};
use super::program_counts::count_runs;
use crate::{process, workspace};
use anyhow::{Context, bail};
use recorder::{Recorder, Taken};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How much to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these: busy, idle, show, killed
    what: Vec<String>,
    /// Segments that are measured of each
    #[arg(long, default_value_t = 2)]
    segments: u32,
    /// Length of a segment, seconds
    #[arg(long, default_value_t = 60)]
    every: u64,
    /// Writers and recorders that are killed at random instants
    #[arg(long, default_value_t = 1_000)]
    times: u32,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// Switches a second, as the kernel counts them.
const SWITCHES: u64 = 20_000;

/// Threads that make them: each sleep is two at the most.
const SLEEPERS: u64 = 200;

/// How often the rate of their sleeps is raised, and how much further than seems enough: what follows is watched, too.
const RAISES: u32 = 6;
const MORE: f64 = 1.03;

/// How long switches are counted after each raise, and how long its threads have to begin before.
const COUNT: Duration = Duration::from_secs(4);
const SETTLE: Duration = Duration::from_secs(1);

/// The most that it should take: per cent of a core, bytes of memory, bytes an hour of an ordinary server, and seconds of `show` over an
/// hour and a day.
const MOST_CPU: f64 = 2.0;
const MOST_MEMORY: u64 = 60_000_000;
const MOST_BYTES: u64 = 10_000_000;
const MOST_HOUR: f64 = 1.0;
const MOST_DAY: f64 = 10.0;

/// Between two looks at the memory of a program that answers in a second.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Parts of the bench.
const PARTS: [&str; 4] = ["busy", "idle", "show", "killed"];

/// What is recorded meanwhile.
const LOADS: [(&str, &str); 2] = [
    ("busy", "20,000 switches a second"),
    ("idle", "nothing beside what runs here"),
];

/// Measures and prints.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let wanted = |name: &str| args.what.is_empty() || args.what.iter().any(|one| one == name);
    if let Some(unknown) = args.what.iter().find(|name| !PARTS.contains(&name.as_str())) {
        bail!(
            "there is nothing called {unknown}; there are: {}",
            PARTS.join(", ")
        );
    }
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let folder = workspace::scratch("bench")?.join("record");
    if wanted("killed") {
        killed::measure(&holdup, args.times, &folder.join("killed"))?;
        println!();
    }
    if args.what.iter().all(|one| one == "killed") && !args.what.is_empty() {
        return Ok(());
    }
    println!(
        "holdup record of the whole machine, {} segments of {} s; at most {MOST_CPU} % of a core at {SWITCHES} switches a second, \
         {} MB, {} MB an hour on an ordinary server",
        args.segments,
        args.every,
        MOST_MEMORY / 1_000_000,
        MOST_BYTES / 1_000_000
    );
    println!(
        "  {:<32} {:>9} {:>9} {:>11} {:>11} {:>7} {:>11}",
        "", "switches", "holdup %", "programs %", "together %", "MB", "MB an hour"
    );
    for (name, title) in LOADS {
        if wanted(name) || (name == "busy" && wanted("show")) {
            let folder = folder.join(name);
            let subject = match name {
                "busy" => Some(sleepers()?),
                _ => None,
            };
            measure(args, &holdup, &folder, title)?;
            drop(subject);
        }
    }
    if wanted("show") {
        println!();
        show(args, &holdup, &folder)?;
    }
    Ok(())
}

/// Sleepers, as many sleeps a second as make the switches: what ends together shares one, and a CPU that others keep busy falls idle
/// less often.
fn sleepers() -> anyhow::Result<Subject> {
    let mut sleeps = SWITCHES as f64 / 2.0;
    let mut made = 0.0;
    for _ in 0..RAISES {
        let subject = Subject::start(&["paced-sleepers", &SLEEPERS.to_string(), &format!("{sleeps:.0}")])?;
        std::thread::sleep(SETTLE);
        let (before, began) = (switches()?, Instant::now());
        std::thread::sleep(COUNT);
        made = (switches()? - before) as f64 / began.elapsed().as_secs_f64();
        if made >= SWITCHES as f64 {
            return Ok(subject);
        }
        sleeps *= SWITCHES as f64 / made.max(1.0) * MORE;
    }
    bail!("{SWITCHES} switches a second can't be made here: {SLEEPERS} threads that sleep made {made:.0}")
}

fn measure(args: &Args, holdup: &Path, folder: &Path, title: &str) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).context("clear what the last bench left")?;
    }
    let _counting = count_runs()?;
    let every = Duration::from_secs(args.every);
    let mut recorder = Recorder::start(holdup, folder, every)?;
    // From the end of the first segment, which is shorter, so that each has its begin and its end in it.
    recorder.until(1)?;
    let (before, switches_before, began) = (recorder.taken()?, switches()?, Instant::now());
    recorder.until(1 + args.segments as usize)?;
    let (after, switches_after, passed) = (recorder.taken()?, switches()?, began.elapsed());
    recorder.end()?;
    let share = |of: fn(&Taken) -> u64| (of(&after) - of(&before)) as f64 / passed.as_nanos() as f64 * 100.0;
    let (own, programs) = (share(|taken| taken.cpu), share(|taken| taken.programs));
    let sizes = recorder.sizes()?;
    // The first and the last are parts of a segment.
    let whole = &sizes[1..=args.segments as usize];
    let an_hour = whole.iter().sum::<u64>() as f64 / passed.as_secs_f64() * 3_600.0;
    println!(
        "  {title:<32} {:>9.0} {own:>9.2} {programs:>11.2} {:>11.2} {:>7.1} {:>11.1}",
        (switches_after - switches_before) as f64 / passed.as_secs_f64(),
        own + programs,
        after.memory as f64 / 1e6,
        an_hour / 1e6,
    );
    Ok(())
}

/// How often all CPUs have switched so far.
fn switches() -> anyhow::Result<u64> {
    let stat = std::fs::read_to_string("/proc/stat").context("read /proc/stat")?;
    let line = stat.lines().find_map(|line| line.strip_prefix("ctxt "));
    line.and_then(|count| count.trim().parse().ok())
        .context("/proc/stat has no count of switches")
}

/// Times `holdup show` over an hour and a day.
fn show(args: &Args, holdup: &Path, folder: &Path) -> anyhow::Result<()> {
    let minutes = |seconds: u64| (seconds / args.every).to_string();
    println!("holdup show, three times each, medians: the segments above copied with their times shifted");
    for (name, segments, last, most) in [
        ("an hour", minutes(3_600), "1h", MOST_HOUR),
        ("a day", minutes(86_400), "1d", MOST_DAY),
    ] {
        let copies = folder.join(name.replace(' ', "-"));
        if copies.exists() {
            std::fs::remove_dir_all(&copies).context("clear what the last bench left")?;
        }
        std::fs::create_dir_all(&copies).context("make a folder for the copies")?;
        process::run(
            workspace::cargo()
                .args([
                    "run",
                    "-q",
                    "--release",
                    "-p",
                    "holdup-recording",
                    "--example",
                    "shifted",
                    "--",
                ])
                .arg(folder.join("busy"))
                .arg(&copies)
                .arg(&segments),
        )?;
        for words in [&["--last", last][..], &["--worst"]] {
            let (mut times, mut memory) = (Vec::new(), 0);
            for _ in 0..3 {
                let began = Instant::now();
                let mut child = Command::new(holdup)
                    .args(["show", "-q"])
                    .args(words)
                    .arg(&copies)
                    .stdout(Stdio::null())
                    .spawn()
                    .context("start holdup show")?;
                memory = peak(&mut child)?.max(memory);
                times.push(began.elapsed().as_secs_f64());
            }
            println!(
                "  {name:<8} {segments:>5} segments {:<10} {:>7} s, at most {most} s; {:>4} MB",
                words.join(" "),
                middle(times, 2),
                memory / 1_000_000
            );
        }
    }
    Ok(())
}

/// Waits for the end of a program, which must be a good one, and returns the most memory that it had, bytes.
fn peak(child: &mut Child) -> anyhow::Result<u64> {
    let file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        peak = super::memory::kib(&text, "VmHWM:").unwrap_or(0).max(peak);
        match child.try_wait().context("wait for holdup show")? {
            Some(status) if status.success() => return Ok(peak * 1024),
            Some(status) => bail!("holdup show failed: {status}"),
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}
