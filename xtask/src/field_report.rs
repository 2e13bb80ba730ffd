//! `cargo xtask field-report`: a change that was for the better and made it slower, from the recorder to the sentence.
//!
//! A server started a thread for each TLS handshake; with another HTTP client it started none, and its requests took longer, because
//! that client took up no TLS session. Those who met that found out in days, with a profile for each minute. Here both variants are
//! made for real (`field_report/scenario.sh`, on the stage of the scenarios), several times in turn; `holdup record` watches, `holdup
//! show` finds each again by an instant, and `holdup diff` compares them a request each.
//!
//! In: holdup and a JDK. Out: what `show` and `diff` say; an error unless it is what was made.

use crate::scenarios::scenario::{About, Scenario};
use crate::scenarios::stage::{Ordinary, Side, Stage};
use crate::scenarios::{install_packages, jdk, programs};
use crate::{process, workspace};
use anyhow::{Context, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How often, for how long, and with what.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Runs of each variant; four are the least that can tell a difference from chance
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// How long each is recorded, seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=30))]
    seconds: u32,
    /// Keep recordings and the page in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Another holdup than this checkout's
    #[arg(long, value_name = "BINARY")]
    holdup: Option<PathBuf>,
}

/// What it is made with.
const ABOUT: &str = r#"
shows = "A Java server whose HTTP client was changed"
packages = ["default-jdk-headless", "libhttpclient-java", "nginx-light", "openssl", "python3"]
[expect]
cause = "net.tls"
resource = []
asker = []
findings = []
"#;

/// What is shown of a recording: what was watched, and what was found.
const SHOWN: [&str; 2] = ["`cgroup ", "### "];

/// The parts of a comparison that are checked.
#[derive(Debug, Deserialize)]
struct Output {
    comparison: Comparison,
}

#[derive(Debug, Deserialize)]
struct Comparison {
    unit: String,
    change_ns: Option<i64>,
    significant: Option<bool>,
    made: Vec<Amount>,
    verdict: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Amount {
    name: String,
    before: f64,
    after: f64,
}

/// Makes, records, finds, compares.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("recording needs root: sudo -E cargo xtask field-report");
    }
    let about: About = toml::from_str(ABOUT).context("understand what this is made with")?;
    let folder = workspace::root().join("xtask/src/field_report");
    let mut scenario = Scenario {
        name: "field-report".to_owned(),
        folder,
        about,
        jdk: None,
    };
    install_packages(std::slice::from_ref(&scenario))?;
    scenario.jdk = jdk::installed().into_iter().next();
    let holdup = workspace::holdup(args.holdup.as_deref())?;
    let compiled = workspace::scratch("scenarios")?;
    let stage_folder = workspace::root().join("scenarios/stage");
    programs::compile(&stage_folder, std::slice::from_ref(&scenario), &compiled)?;
    let stage = Stage {
        folder: stage_folder,
        programs: compiled,
        holdup: Some(holdup.clone()),
        ordinary: Ordinary::Nothing,
        keep_events: false,
    };
    let kept = tempfile::tempdir().context("make a folder for recordings")?;
    let kept = args.keep.as_deref().unwrap_or(kept.path());
    let mut sides: [Vec<PathBuf>; 2] = [Vec::new(), Vec::new()];
    for run in 1..=args.runs {
        // In turn, so that what else the machine does meets both.
        for (at, (name, side)) in [("before", Side::Healthy), ("after", Side::Stall)]
            .into_iter()
            .enumerate()
        {
            let place = kept.join(name).join(run.to_string());
            std::fs::create_dir_all(&place).with_context(|| format!("make {}", place.display()))?;
            eprintln!("xtask: {name}, run {run} of {}", args.runs);
            let outcome = stage.run_with(
                &scenario,
                side,
                &[
                    ("HOLDUP_RECORDINGS", place.as_os_str()),
                    (
                        "HOLDUP_HALF",
                        format!("{}", f64::from(args.seconds) / 2.0).as_ref(),
                    ),
                ],
            )?;
            for line in outcome
                .stderr
                .lines()
                .filter(|line| line.starts_with("the shop:"))
            {
                println!("{name} {run}, as it says itself: {line}");
            }
            if run == 1 {
                show(name, &place)?;
            }
            sides[at].push(place);
        }
    }
    compare(&holdup, &sides, &kept.join("comparison.html"))
}

/// What `holdup show` says of the instant that was noted.
fn show(name: &str, place: &Path) -> anyhow::Result<()> {
    let read = |file: &str| {
        let file = place.join(file);
        std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))
    };
    println!("\n$ holdup show --at {} {name}/1", read("when")?.trim());
    for line in read("shown.md")?
        .lines()
        .filter(|line| SHOWN.iter().any(|start| line.starts_with(start)))
    {
        println!("    {line}");
    }
    println!();
    Ok(())
}

/// Compares, prints, and judges.
fn compare(holdup: &Path, sides: &[Vec<PathBuf>; 2], page: &Path) -> anyhow::Result<()> {
    let diff = |format: &str| {
        let mut command = Command::new(holdup);
        command.args(["diff", "--per", "request", "--format", format, "--html"]);
        command.arg(page).arg("--before").args(&sides[0]);
        command.arg("--after").args(&sides[1]);
        process::output(&mut command)
    };
    println!("\n$ holdup diff --per request --before before/* --after after/*");
    println!("{}", diff("terminal")?);
    let output: Output = serde_json::from_str(&diff("json")?).context("understand the comparison")?;
    let wrong = wrong(&output.comparison, sides[0].len());
    for what in &wrong {
        println!("not right: {what}");
    }
    if !wrong.is_empty() {
        bail!("the comparison does not say what was made");
    }
    let size = page.metadata().context("look at the page")?.len();
    println!(
        "the sentence: {}\nthe page: {size} bytes",
        output
            .comparison
            .verdict
            .first()
            .map_or("", |sentence| sentence.as_str())
    );
    Ok(())
}

/// What a comparison says that is not so, of what was made.
fn wrong(comparison: &Comparison, runs: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |so: bool, what: &str| {
        if !so {
            wrong.push(what.to_owned());
        }
    };
    let made = |name: &str| {
        let found = comparison.made.iter().find(|one| one.name == name);
        found.map_or((0.0, 0.0), |one| (one.before, one.after))
    };
    expect(comparison.unit == "request", "it is not a request each");
    expect(
        comparison.change_ns.is_some_and(|change| change > 0),
        "AFTER does not take longer",
    );
    expect(
        runs < 4 || comparison.significant == Some(true),
        "it is not more than chance",
    );
    let threads = made("threads made");
    expect(
        threads.0 > 0.5 && threads.1 < 0.1,
        "BEFORE does not start a thread each request, or AFTER does",
    );
    let full = made("TLS handshakes in full");
    expect(
        full.0 < 0.1 && full.1 > 0.9,
        "AFTER does not shake hands in full each time, or BEFORE does",
    );
    let sentence = comparison
        .verdict
        .first()
        .map_or("", |sentence| sentence.as_str());
    expect(
        sentence.contains("fewer threads") && sentence.contains("full TLS handshake"),
        "the sentence does not name the trade",
    );
    wrong
}

#[cfg(test)]
mod tests {
    use super::{Amount, Comparison, wrong};

    #[test]
    fn a_comparison_that_says_something_else_is_wrong() {
        let amount = |name: &str, before: f64, after: f64| Amount {
            name: name.to_owned(),
            before,
            after,
        };
        let right = || Comparison {
            unit: "request".to_owned(),
            change_ns: Some(3_000_000),
            significant: Some(true),
            made: vec![
                amount("threads made", 1.0, 0.0),
                amount("TLS handshakes in full", 0.0, 1.0),
            ],
            verdict: vec!["AFTER is slower …; fewer threads, but a full TLS handshake each time.".to_owned()],
        };
        assert_eq!(wrong(&right(), 4), Vec::<String>::new());
        let mut swapped = right();
        swapped.change_ns = Some(-3_000_000);
        swapped.made = vec![amount("threads made", 0.0, 1.0)];
        assert_eq!(wrong(&swapped, 4).len(), 3);
        let mut chance = right();
        chance.significant = None;
        assert_eq!((wrong(&chance, 4).len(), wrong(&chance, 1).len()), (1, 0));
    }
}
