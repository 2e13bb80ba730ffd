//! `cargo xtask test`: every test there is, in the order of how soon it fails.
//!
//! Each step is a program whose output is passed on and read for its counts; the last line is their sum. A step that fails without
//! having counted a failure (it did not compile, say) is one failure. Steps that measure no time run at once, and the guests boot beside the
//! tests ([`ahead`]). All steps judge what the tests were built with: to compile everything a second time, as it is released, takes as long as
//! half of the tests do.

mod ahead;
mod failed;
mod judged;
mod left;
mod silence;

use crate::process::minutes;
use crate::tally::Tally;
use crate::{guest, pages, process, setup, workspace};
use ahead::Beside;
use anyhow::{Context, bail};
use failed::Failed;
use judged::Judged;
use silence::{LONGEST_SILENCE, Watch};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What to leave out.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only `cargo test`: no artefacts, replay, pages, attacks, incidents, scenarios or guest
    #[arg(long)]
    quick: bool,
    /// Only what needs neither root nor BPF nor clang nor libelf
    #[arg(long, conflicts_with = "quick")]
    unprivileged: bool,
    /// Build holdup as it is released too, and let all steps after the tests judge that
    #[arg(long, conflicts_with_all = ["quick", "unprivileged"])]
    released: bool,
}

/// Crates that load BPF or depend on one that does: to build them takes clang and libelf.
const NEED_BPF: &[&str] = &["holdup", "holdup-bpf", "holdup-fuzz"];

/// All targets with tests. Not the examples in documentation: there are none (`xtask/tests/tidy/rooms.rs`), and looking for them compiles the
/// documentation of every crate.
const TESTS: [&str; 7] = [
    "test",
    "--workspace",
    "--no-fail-fast",
    "--lib",
    "--bins",
    "--tests",
    "--examples",
];

/// A ring of tests: its name, and the program that runs it.
type Step = (&'static str, Command);

/// What came of one, and how long it took.
struct Done {
    name: &'static str,
    tally: Tally,
    took: Duration,
    failed: Failed,
}

/// Runs every test; an error when one failed.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let began = Instant::now();
    if args.unprivileged {
        let done = in_turn(unprivileged()?)?;
        return tell(&done, began.elapsed());
    }
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "the tests trace with BPF and set up disks, mounts and networks: run them as root (sudo -E cargo xtask test)"
        );
    }
    setup::install(&[setup::BUILD, setup::TEST, pages::PACKAGES, guest::PACKAGES])?;

    let mut tests = workspace::cargo();
    tests.args(TESTS);
    let tests = ("tests", tests);
    if args.quick {
        let done = in_turn(vec![tests])?;
        return tell(&done, began.elapsed());
    }
    // The program of these steps is built anew below, and the path of what runs is then that of a deleted file: so they are made now. And
    // nothing must meet a package manager at work.
    guest::install()?;
    let judged = Judged::new(args.released)?;
    let mut replay = verb("replay")?;
    replay.1.arg("--program").arg(&judged.replay);
    let untimed = vec![judged.by("artefacts")?, replay, judged.by("pages")?];
    let timed = vec![
        judged.by("attacks")?,
        judged.by("incidents")?,
        judged.by("scenarios")?,
    ];
    let guest = judged.by("guest")?;
    let beside = judged.by("guest")?;

    let mut done = in_turn(judged.builds())?;
    // All further steps run what was built.
    if done.iter().any(|built| built.tally.failed > 0) {
        return tell(&done, began.elapsed());
    }
    judged.prepare()?;
    let beside = Beside::start(beside)?;
    let mut tested = in_turn(vec![tests])?.remove(0);
    let out = &mut std::io::stdout();
    let untimed = at_once(untimed, out)?;
    let of_guest = beside.finish(out)?;
    once_more(&mut tested)?;
    done.push(tested);
    done.extend(untimed);
    let right = of_guest.is_some();
    done.extend(of_guest);
    for step in timed {
        for line in left::end()? {
            println!("{line}");
        }
        done.extend(in_turn(vec![step])?);
    }
    if !right {
        done.extend(in_turn(vec![guest])?);
    }
    done.extend(in_turn(vec![fleet_sql()?])?);
    tell(&done, began.elapsed())
}

/// A chore of this program's own.
fn verb(name: &'static str) -> anyhow::Result<Step> {
    let mut command = workspace::xtask()?;
    command.arg(name);
    Ok((name, command))
}

/// The program that runs queries over a fleet, with its tests: a workspace of its own, whose engine takes two CPUs five minutes to build. So it is
/// the last. Its tests hold its sums against those of the programs that the tests before it have built.
fn fleet_sql() -> anyhow::Result<Step> {
    let target = workspace::target()?;
    let mut command = workspace::cargo();
    command
        .args([
            "test",
            "--locked",
            "--no-fail-fast",
            "--manifest-path",
            "fleet-sql/Cargo.toml",
            "--target-dir",
        ])
        .arg(target.join("fleet-sql"))
        .env("HOLDUP_PROGRAMS", target.join("debug"));
    Ok(("fleet-sql", command))
}

/// What runs anywhere.
fn unprivileged() -> anyhow::Result<Vec<Step>> {
    let mut tests = workspace::cargo();
    tests.args(TESTS);
    for package in NEED_BPF {
        tests.args(["--exclude", package]);
    }
    Ok(vec![("tests", tests), verb("replay")?])
}

/// Runs them one after the other, and shows their output as it comes.
fn in_turn(steps: Vec<Step>) -> anyhow::Result<Vec<Done>> {
    let mut done = Vec::new();
    for (name, mut command) in steps {
        println!("\n== {name}: {}", process::words(&command));
        done.push(step(name, &mut command, &mut std::io::stdout().lock())?);
    }
    Ok(done)
}

/// Runs them at once, and shows the output of each when it has ended, in order.
fn at_once(steps: Vec<Step>, out: &mut dyn Write) -> anyhow::Result<Vec<Done>> {
    std::thread::scope(|scope| {
        let running: Vec<_> = steps
            .into_iter()
            .map(|(name, mut command)| {
                scope.spawn(move || {
                    let mut output = Vec::new();
                    let done = step(name, &mut command, &mut output);
                    (process::words(&command), output, done)
                })
            })
            .collect();
        let mut all = Vec::new();
        for thread in running {
            let (words, output, done) = thread.join().expect("a step that panics has a defect");
            let done = done?;
            writeln!(out, "\n== {}: {words}", done.name).context("pass output on")?;
            out.write_all(&output).context("pass output on")?;
            all.push(done);
        }
        Ok(all)
    })
}

/// Runs tests that failed while the guests booted beside them once more, alone, and only that counts: a program that
/// is observed for a few seconds may have had no CPU in them. What failed first is said, whatever comes of it.
fn once_more(tests: &mut Done) -> anyhow::Result<()> {
    let first = std::mem::take(&mut tests.failed);
    // A program that ended by a signal names no test: then there is nothing that could be run alone.
    if first.names.is_empty() || first.names.len() as u64 != tests.tally.failed {
        tests.failed = first;
        return Ok(());
    }
    println!("\nnot all tests were right beside others:\n{}", first.summary());
    let mut command = workspace::cargo();
    command.args(TESTS).args(["--", "--exact"]).args(&first.names);
    let again = in_turn(vec![(tests.name, command)])?.remove(0);
    // Tests of one name in several crates are all run; fewer than failed are not what was asked for.
    let names = first.names.len() as u64;
    if again.tally.failed == 0 && again.tally.passed >= names {
        tests.tally = Tally {
            passed: tests.tally.passed + names,
            failed: 0,
        };
        println!(
            "right alone, and only beside others not: {}",
            first.names.join(", ")
        );
    } else {
        tests.failed = again.failed;
    }
    tests.took += again.took;
    Ok(())
}

/// Prints what failed and the counts, with the sum last; exits with 1 where one failed.
fn tell(all: &[Done], took: Duration) -> anyhow::Result<()> {
    println!();
    for done in all {
        print!("{}", done.failed.summary());
    }
    for Done {
        name, tally, took, ..
    } in all
    {
        println!("{name:<12} {:<24} {:>12}", tally.to_string(), minutes(*took));
    }
    println!("in {}", minutes(took));
    let total: Tally = all.iter().map(|done| done.tally).sum();
    println!("{total}");
    if total.failed > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// Runs one step, passes its output on and counts what it says.
fn step(name: &'static str, command: &mut Command, out: &mut dyn Write) -> anyhow::Result<Done> {
    let began = Instant::now();
    let words = process::words(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {words}"))?;
    let watch = Watch::start(child.id(), LONGEST_SILENCE);
    let lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let (tally, failed) =
        pass_on(lines, out, || watch.heard()).with_context(|| format!("the output of {words}"))?;
    let status = child.wait().with_context(|| format!("wait for {words}"))?;
    for ended in watch.finish() {
        writeln!(out, "silent for {}, and ended: {ended}", minutes(LONGEST_SILENCE))
            .with_context(|| format!("the output of {words}"))?;
    }
    if !status.success() {
        writeln!(out, "{words} failed: {status}").with_context(|| format!("the output of {words}"))?;
    }
    Ok(Done {
        name,
        tally: verdict(tally, status.success()),
        took: began.elapsed(),
        failed,
    })
}

/// Writes every line on as it comes, tells that it came, and adds up those that count.
fn pass_on(
    mut lines: impl BufRead,
    out: &mut dyn Write,
    heard: impl Fn(),
) -> std::io::Result<(Tally, Failed)> {
    let mut tally = Tally::default();
    let mut failed = Failed::default();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        heard();
        out.write_all(&line)?;
        out.flush()?;
        let text = String::from_utf8_lossy(&line);
        failed.hear(text.trim_end());
        if let Some(counted) = Tally::from_line(text.trim_end()) {
            tally += counted;
        }
        line.clear();
    }
    Ok((tally, failed))
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
    use super::{at_once, pass_on, verdict};
    use crate::tally::Tally;
    use std::process::Command;

    #[test]
    fn steps_that_run_at_once_are_counted_each_for_itself() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        // The first waits for the second: one after the other they would never end.
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let pipe = pipe.display();
        let mut out = Vec::new();
        let steps = vec![
            (
                "one",
                shell(&format!("read -r line <{pipe}; echo 2 passed, 0 failed")),
            ),
            (
                "other",
                shell(&format!("echo go >{pipe}; echo 1 passed, 1 failed; exit 1")),
            ),
        ];
        let done = at_once(steps, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(
            out.find("== one").unwrap() < out.find("== other").unwrap(),
            "{out}"
        );
        let seen: Vec<_> = done.iter().map(|done| (done.name, done.tally)).collect();
        assert_eq!(
            seen,
            [
                ("one", Tally { passed: 2, failed: 0 }),
                ("other", Tally { passed: 1, failed: 1 })
            ]
        );
    }

    #[test]
    fn counts_add_up_and_every_byte_is_passed_on() {
        let output: &[u8] =
            b"test result: ok. 3 passed; 0 failed; 0 ignored\n\xff\n2 passed, 1 failed\nno newline";
        let mut out = Vec::new();
        let (tally, _) = pass_on(output, &mut out, || {}).unwrap();
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
