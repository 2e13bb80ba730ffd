//! `cargo xtask bench`: what holdup costs, measured on the spot and printed. A benchmark is not a test: it never
//! fails on a clock.

mod attach;
mod diff;
mod memory;
mod observer;
mod overhead;
mod program_counts;
mod programs;
mod project;
mod read;
mod record;
mod samples;
mod sampling;
mod significance;
mod stacks;
mod validity;
mod workload;

use crate::setup::{self, Packages};

/// What is measured with, and beside.
pub(crate) const PACKAGES: Packages = Packages {
    purpose: "measure beside others",
    names: &["gcc", "libbpf-tools", "linux-perf", "make", "util-linux"],
};

/// A service, its client, and what else people watch such a thing with.
const SERVICE: Packages = Packages {
    purpose: "measure a service under load",
    names: &["nginx-light", "strace", "wrk"],
};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The observed program's slowdown, and the delays before its start and after its end
    Overhead(overhead::Args),
    /// holdup's memory with many threads
    Memory(memory::Args),
    /// holdup's stacks of blocked threads beside gdb's
    Stacks(stacks::Args),
    /// holdup's memory and losses over ten million waits and a hundred thousand threads
    Volume(memory::VolumeArgs),
    /// What each of holdup's BPF programs takes a run, by the kernel's own count
    Programs(programs::Args),
    /// What watching costs a service under load, idle threads, many switches; and how soon a word is there
    Attach(attach::Args),
    /// What sampling costs where holdup can't trace: CPU by number of threads, beside its budget
    Sampling(sampling::Args),
    /// What a recorder costs: CPU, memory, disk; and how soon `holdup show` answers
    Record(record::Args),
    /// How fast artefacts are read, beside others, and in how much memory
    Read(read::Args),
    /// How fast `diff` compares large profiles, beside others, and in how much memory
    Diff(diff::Args),
    /// How often `diff` claims a difference that is none, and finds one that is there, of fresh processes
    Significance(significance::Args),
    /// Run one of the programs that are measured
    #[command(hide = true, subcommand)]
    Workload(workload::Workload),
}

/// Measures and prints.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    match args.what {
        What::Overhead(args) => {
            setup::install(&[PACKAGES])?;
            overhead::run(&args)
        }
        What::Memory(args) => memory::run(&args),
        What::Stacks(args) => stacks::run(&args),
        What::Volume(args) => memory::volume(&args),
        What::Programs(args) => {
            setup::install(&[PACKAGES])?;
            programs::run(&args)
        }
        What::Attach(args) => {
            setup::install(&[PACKAGES, SERVICE])?;
            attach::run(&args)
        }
        What::Sampling(args) => sampling::run(&args),
        What::Record(args) => record::run(&args),
        What::Read(args) => read::run(&args),
        What::Diff(args) => diff::run(&args),
        What::Significance(args) => significance::run(&args),
        What::Workload(workload) => workload::run(workload),
    }
}
