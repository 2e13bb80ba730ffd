//! `cargo xtask incidents [NAME…]`: programs, services and machines with a trouble that others have had, each asked once as a person on call
//! would, and judged by the first sentence.
//!
//! In: the folders of `incidents/`. Out: a row for each, with what is right of thing, function, line and holder, and the sentence; the sum
//! of each column; the counts. A row with something that holdup does not say yet is loose, and printed so. Unlike a scenario
//! ([`crate::scenarios`]), an incident measures no share of time: it is about who is named.

mod incident;
mod judging;
mod stage;

use crate::setup::{self, Packages};
use crate::tally::Tally;
use crate::workspace;
use anyhow::bail;
use incident::{Column, Incident};
use judging::Judged;
use stage::Stage;
use std::path::PathBuf;
use std::sync::Mutex;

/// What the scripts run.
const PACKAGES: Packages = Packages {
    purpose: "make incidents",
    names: &[
        "curl",
        "gcc",
        "g++",
        "libc6-dev",
        "procps",
        "python3",
        "util-linux",
    ],
};

/// Incidents that run side by side. They mostly wait: what they do before they wait is what fills the CPUs.
const SIDE_BY_SIDE: usize = 3;

/// Which incidents, and by which holdup.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Incidents to make; all without any
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// The holdup binary to judge, instead of building one
    #[arg(long, value_name = "FILE")]
    holdup: Option<PathBuf>,

    /// Incidents of another folder than the project's, with a `stage.sh` beside them
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,

    /// List the incidents with their mechanisms
    #[arg(long)]
    list: bool,
}

/// Makes the incidents; an error when one is not answered as it should be.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let own = || workspace::root().join("incidents");
    let incidents = incident::load(&args.from.clone().unwrap_or_else(own), &args.names)?;
    if args.list {
        for incident in &incidents {
            println!("{:<28} {}", incident.name, incident.about.mechanism);
        }
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        bail!("incidents are traced, and some have file systems of their own: run them as root");
    }
    install_packages(&incidents)?;
    let stage = Stage {
        holdup: workspace::holdup(args.holdup.as_deref())?,
        scratch: workspace::scratch("incidents")?,
    };
    for incident in &incidents {
        stage.build(incident)?;
    }
    let rows = all(&stage, &incidents);
    let tally = table(&rows);
    println!("{tally}");
    if tally.failed > 0 {
        bail!("{} of {} incidents are not right", tally.failed, rows.len());
    }
    Ok(())
}

/// Those of a whole machine one after the other, all others side by side. One that is not right beside others is made once more, alone:
/// a program that got no CPU shows another trouble than its own.
fn all<'a>(stage: &Stage, incidents: &'a [Incident]) -> Vec<(&'a Incident, Judged)> {
    let one = |incident: &Incident| {
        eprintln!("incident {}: {}", incident.name, incident.about.mechanism);
        match stage.run(incident) {
            Ok(report) => judging::judge(incident, &report),
            Err(error) => Judged::failed(&error),
        }
    };
    let (alone, together): (Vec<_>, Vec<_>) = incidents.iter().partition(|incident| incident.of_machine());
    let queue = Mutex::new(together.into_iter());
    let finished = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(incident) = {
                    let mut queue = queue.lock().expect("no holder panics");
                    queue.next()
                } {
                    let judged = one(incident);
                    finished
                        .lock()
                        .expect("no holder panics")
                        .push((incident, judged));
                }
            });
        }
    });
    let mut rows = finished.into_inner().expect("no holder panics");
    for (incident, judged) in &mut rows {
        if !judged.passed(&incident.about.not_yet) {
            println!(
                "not right beside others, and so made again alone: {}: {}",
                incident.name, judged.said
            );
            *judged = one(incident);
        }
    }
    rows.extend(alone.into_iter().map(|incident| (incident, one(incident))));
    rows.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    rows
}

/// Prints the rows and the sum of each column; how many are as they should be.
fn table(rows: &[(&Incident, Judged)]) -> Tally {
    const COLUMNS: [(Column, &str); 6] = [
        (Column::Thing, "thing"),
        (Column::Function, "function"),
        (Column::Line, "line"),
        (Column::Holder, "holder"),
        (Column::Quiet, "quiet"),
        (Column::Innocent, "innocent"),
    ];
    let cell = |judged: &Judged, wanted: Column| {
        let found = judged.columns.iter().find(|(column, _)| *column == wanted);
        found.map(|(_, right)| *right)
    };
    print!("{:<28} {:<14}", "incident", "subject");
    for (_, name) in COLUMNS {
        print!(" {name:<9}");
    }
    println!(" first sentence");
    let mut tally = Tally::default();
    let mut loose = 0;
    for (incident, judged) in rows {
        let not_yet = &incident.about.not_yet;
        print!("{:<28} {:<14}", incident.name, incident.about.subject);
        for (column, _) in COLUMNS {
            let word = match cell(judged, column) {
                None => "-",
                Some(true) => "right",
                Some(false) if not_yet.contains(&column) => "not yet",
                Some(false) => "NO",
            };
            print!(" {word:<9}");
        }
        println!(" {}", judged.said);
        if let Some(why) = &judged.failed {
            println!("{:<28} FAILED: {why}", "");
        }
        loose += u64::from(!not_yet.is_empty());
        tally += Tally::one(judged.passed(not_yet));
    }
    println!();
    for (column, name) in COLUMNS {
        let cells: Vec<bool> = rows
            .iter()
            .filter_map(|(_, judged)| cell(judged, column))
            .collect();
        let right = cells.iter().filter(|right| **right).count();
        println!("{name:<10} {right} of {}", cells.len());
    }
    println!(
        "loose: {loose} of {} have something that holdup does not say yet",
        rows.len()
    );
    tally
}

/// Installs what the incidents need and what is missing of it.
fn install_packages(incidents: &[Incident]) -> anyhow::Result<()> {
    let names = incidents.iter().flat_map(|incident| &incident.about.packages);
    setup::install_without_starting(&[PACKAGES, setup::asked_for(PACKAGES.purpose, names)])
}
