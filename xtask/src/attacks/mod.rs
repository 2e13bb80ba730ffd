//! `cargo xtask attacks [NAME…]`: an ordinary user attacks root who runs holdup, and none of the attacks may win.
//!
//! In: the folders of `attacks/`, each a hostile program and what it must not reach. Out: a table of results, and the
//! counts. What an attack must not reach is checked from outside of holdup, by `attacks/stage/stage.sh` and by this
//! program: files, CPU time of a cgroup, processes that are left, segments that a recorder beside it wrote.

mod attack;
mod baseline;
mod cgroup;
mod fuse;
mod recorder;
mod stage;

use crate::scenarios::programs;
use crate::setup::{self, Packages};
use crate::tally::Tally;
use crate::workspace;
use anyhow::{Context, bail};
use attack::Attack;
use baseline::Baseline;
use recorder::Recorder;
use stage::{Outcome, Stage};
use std::path::PathBuf;
use std::sync::Mutex;

/// What the stage itself runs.
const PACKAGES: Packages = Packages {
    purpose: "attack holdup",
    names: &[
        "gcc",
        "libc6-dev",
        "libcap2-bin",
        "procps",
        "python3",
        "util-linux",
    ],
};

/// Attacks that run side by side. Most of their time is waiting, so two per CPU of a small machine.
const SIDE_BY_SIDE: usize = 4;

/// What to attack with, and whom.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Attacks to run; all without any
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// The holdup binary to attack, instead of building one
    #[arg(long, value_name = "FILE")]
    holdup: Option<PathBuf>,

    /// List the attacks with what each tries
    #[arg(long)]
    list: bool,

    /// Show what holdup and the hostile programs wrote
    #[arg(short, long)]
    verbose: bool,

    /// Do not run the recorder beside the attacks
    #[arg(long)]
    no_recorder: bool,
}

/// Runs the attacks; an error when one won.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = workspace::root().join("attacks");
    let attacks = attack::load(&folder, &args.names)?;
    if args.list {
        for attack in &attacks {
            println!("{:<28} {}", attack.name, attack.about.tries);
        }
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        bail!("attacks are on root, and make namespaces and cgroups: run them as root");
    }
    install_packages(&attacks)?;
    let scratch = workspace::scratch("attacks")?;
    let stage_folder = folder.join("stage");
    for attack in &attacks {
        programs::compile_into(&attack.folder, &stage_folder, &scratch)
            .with_context(|| format!("compile {}", attack.name))?;
    }
    programs::compile_into(&stage_folder, &stage_folder, &scratch).context("compile the stage")?;
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let cgroups = cgroup::Mount::find()?;
    let baseline = Baseline::measure(&holdup, &cgroups)?;
    eprintln!("attacks: {baseline}");
    let stage = Stage {
        folder: stage_folder,
        programs: scratch,
        holdup,
        cgroups,
        baseline,
    };
    let results = all(&stage, &attacks, args)?;
    let tally = table(&results, args.verbose);
    println!("{tally}");
    if tally.failed > 0 {
        bail!("{} of {} attacks won", tally.failed, results.len());
    }
    Ok(())
}

/// Those beside which a recorder must write run alone, one after the other; all others side by side.
fn all(stage: &Stage, attacks: &[Attack], args: &Args) -> anyhow::Result<Vec<(String, String, Outcome)>> {
    let (alone, together): (Vec<&Attack>, Vec<&Attack>) =
        attacks.iter().partition(|attack| attack.about.beside);
    let mut results = Vec::new();
    for attack in alone {
        eprintln!("attack {}: {}", attack.name, attack.about.title);
        let recorder = if args.no_recorder {
            None
        } else {
            Some(Recorder::start(&stage.holdup, &stage.cgroups, stage.baseline)?)
        };
        let mut outcome = stage.run(attack);
        if let Some(recorder) = recorder {
            outcome.append(recorder.judge());
        }
        results.push((attack.name.clone(), attack.about.must_not_reach.clone(), outcome));
    }
    let queue = Mutex::new(together.into_iter());
    let finished = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(attack) = {
                    let mut queue = queue.lock().expect("no holder panics");
                    queue.next()
                } {
                    eprintln!("attack {}: {}", attack.name, attack.about.title);
                    let outcome = stage.run(attack);
                    let result = (attack.name.clone(), attack.about.must_not_reach.clone(), outcome);
                    finished.lock().expect("no holder panics").push(result);
                }
            });
        }
    });
    results.extend(finished.into_inner().expect("no holder panics"));
    let left = stage.left_in_kernel();
    results.push((
        "all of them".to_owned(),
        "a BPF program or link that outlives its holdup".to_owned(),
        left,
    ));
    results.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(results)
}

/// Prints the results; how many attacks failed to win, and how many won.
fn table(results: &[(String, String, Outcome)], verbose: bool) -> Tally {
    println!("{:<28} {:<8} must not reach", "attack", "result");
    let mut tally = Tally::default();
    for (name, must_not_reach, outcome) in results {
        let held = outcome.held();
        println!(
            "{name:<28} {:<8} {must_not_reach}",
            if held { "held" } else { "WON" }
        );
        for lost in outcome.lost() {
            println!("{:<37} {lost}", "");
        }
        if verbose {
            println!("{}", outcome.said);
        }
        tally += Tally::one(held);
    }
    tally
}

/// Installs what the attacks need and what is missing of it.
fn install_packages(attacks: &[Attack]) -> anyhow::Result<()> {
    let names = attacks.iter().flat_map(|attack| &attack.about.packages);
    setup::install(&[PACKAGES, setup::asked_for(PACKAGES.purpose, names)])
}
