//! `cargo xtask bench programs`: what each of holdup's BPF programs takes a run.
//!
//! In: the kernel's own statistics, which are off until somebody asks for them. Out: a table. To be timed costs each run
//! some ten nanoseconds, so the ratios of `cargo xtask bench overhead` are taken without.

use super::observer::CORE;
use super::overhead::{Program, chosen, programs};
use super::samples::median;
use crate::workspace;
use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::libc;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How much to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only under these: pipe, futex, make, hackbench
    programs: Vec<String>,
    /// How often each is run
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Round trips of the programs that switch all the time
    #[arg(long, default_value_t = 200_000)]
    round_trips: u64,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// Commands of bpf(2), and where their answers are in the kernel's `struct bpf_prog_info`, bytes.
const BPF_PROG_GET_FD_BY_ID: libc::c_long = 13;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_ENABLE_STATS: libc::c_long = 32;
const INFO_BYTES: usize = 208;
const INFO_NAME: std::ops::Range<usize> = 64..80;
const INFO_RUN_TIME: usize = 192;
const INFO_RUNS: usize = 200;

/// How often to look for programs while holdup loads them.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Runs, and nanoseconds they took, by program.
type Counts = BTreeMap<String, (u64, u64)>;

/// Measures and prints one table a workload.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let all = programs(args.round_trips, 1, &workspace::scratch("bench")?)?;
    // What never blocks runs hardly any program.
    let switching = all.into_iter().filter(|one| one.name != "getppid").collect();
    // They are counted for as long as this descriptor is open.
    let _statistics =
        bpf(BPF_ENABLE_STATS, &mut [0; 4]).context("ask the kernel to count runs (root is needed)")?;
    for workload in chosen(switching, &args.programs)? {
        let rounds: Vec<Counts> = (0..args.rounds)
            .map(|_| measure(&holdup, &workload))
            .collect::<anyhow::Result<_>>()?;
        println!("{}, {} rounds, medians", workload.title, args.rounds);
        print(&rounds);
        println!();
    }
    Ok(())
}

fn print(rounds: &[Counts]) {
    println!("  {:<18} {:>10} {:>8}", "", "runs", "ns a run");
    let mut names: Vec<&String> = rounds.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    for name in names {
        let of = |figure: fn(u64, u64) -> f64| {
            let counts = rounds.iter().filter_map(|counts| counts.get(name));
            median(counts.map(|(runs, ns)| figure(*runs, *ns))).unwrap_or_default()
        };
        let runs = of(|runs, _| runs as f64);
        println!(
            "  {name:<18} {runs:>10.0} {:>8.0}",
            of(|runs, ns| ns as f64 / runs as f64)
        );
    }
}

/// One run under holdup.
fn measure(holdup: &Path, workload: &Program) -> anyhow::Result<Counts> {
    let mut command = Command::new(holdup);
    command.args(["run", "-q", "--json", "/dev/null", "--"]);
    if workload.pinned {
        command.args(["taskset", "-c", CORE]);
    }
    let mut child = command
        .args(&workload.command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("start holdup")?;
    // A program that is held here keeps its counts when holdup has ended.
    let mut held: BTreeMap<u32, OwnedFd> = BTreeMap::new();
    let status = loop {
        if let Some(status) = child.try_wait().context("wait for holdup")? {
            break status;
        }
        for id in program_ids(child.id()) {
            if let std::collections::btree_map::Entry::Vacant(place) = held.entry(id)
                && let Ok(program) = bpf(BPF_PROG_GET_FD_BY_ID, &mut [u64::from(id), 0, 0, 0])
            {
                place.insert(program);
            }
        }
        std::thread::sleep(LOOK_EVERY);
    };
    if !status.success() {
        bail!("holdup failed: {status}");
    }
    let counts = held.values().map(count).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(counts.into_iter().filter(|(_, (runs, _))| *runs > 0).collect())
}

/// The programs behind a process's descriptors.
fn program_ids(pid: u32) -> Vec<u32> {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
        return Vec::new();
    };
    let texts = descriptors.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    texts
        .filter(|text| !text.contains("link_id:"))
        .filter_map(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("prog_id:"))?;
            line.trim().parse().ok()
        })
        .collect()
}

/// Name, runs and nanoseconds.
fn count(program: &OwnedFd) -> anyhow::Result<(String, (u64, u64))> {
    let mut info = [0_u8; INFO_BYTES];
    let descriptor = u64::try_from(program.as_raw_fd()).context("a descriptor is not negative")?;
    // The descriptor and the length of the answer are 32 bits each, the address 64.
    let mut attributes = [
        descriptor | (INFO_BYTES as u64) << 32,
        info.as_mut_ptr() as u64,
        0,
        0,
    ];
    let _: Option<OwnedFd> = bpf_call(BPF_OBJ_GET_INFO_BY_FD, &mut attributes)?;
    let word = |at: usize| u64::from_ne_bytes(info[at..at + 8].try_into().expect("eight bytes"));
    let name = &info[INFO_NAME];
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok((
        String::from_utf8_lossy(name).into_owned(),
        (word(INFO_RUNS), word(INFO_RUN_TIME)),
    ))
}

/// A call that returns a descriptor.
fn bpf(command: libc::c_long, attributes: &mut [u64; 4]) -> anyhow::Result<OwnedFd> {
    bpf_call(command, attributes)?.context("bpf(2) returned no descriptor")
}

fn bpf_call(command: libc::c_long, attributes: &mut [u64; 4]) -> anyhow::Result<Option<OwnedFd>> {
    // SAFETY: the kernel reads the attributes, whose size it is told; an address in them is of memory that outlives the
    // call and has the length said there.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            attributes.as_mut_ptr(),
            size_of_val(attributes),
        )
    };
    let returned = Errno::result(returned)?;
    if command == BPF_OBJ_GET_INFO_BY_FD {
        return Ok(None);
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    let file = unsafe { File::from_raw_fd(i32::try_from(returned)?) };
    Ok(Some(file.into()))
}
