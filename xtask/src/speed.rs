//! How fast a program reads a file, and files that are large enough to tell.
//!
//! In: samples of a few KiB. Out: files of many MB made of them, and MB for each second of CPU time: others have the
//! machine too, and what they do with it is not this program's.

use anyhow::{Context, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::Pid;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// A megabyte as the issue counts them, bytes.
pub(crate) const MB: u64 = 1_000_000;

/// What sysstat's tools begin with, and begin another run with.
const BANNER: &[u8] = b"Linux ";

/// The least time that is believed, seconds: the kernel counts CPU time in ticks of a few milliseconds on some machines.
const LEAST_S: f64 = 1e-3;

/// Writes a sample again and again, each time with other digits behind each decimal point.
pub(crate) fn repeat(sample: &Path, to: &Path, bytes: u64) -> anyhow::Result<()> {
    let mut text = std::fs::read(sample).with_context(|| format!("read {}", sample.display()))?;
    if text.is_empty() {
        bail!("{} is empty", sample.display());
    }
    if text.last() != Some(&b'\n') {
        text.push(b'\n');
    }
    let mut digits: Vec<usize> = (2..text.len())
        .filter(|at| {
            text[*at].is_ascii_digit() && matches!(text[at - 1], b'.' | b',') && text[at - 2].is_ascii_digit()
        })
        .collect();
    let mut file = BufWriter::new(File::create(to).with_context(|| format!("write {}", to.display()))?);
    let mut written = 0;
    let mut state = 1_u64;
    while written < bytes {
        // A banner stands once in a file: after it, only what follows the first empty line comes again.
        if written > 0 && text.starts_with(BANNER) {
            let body = text
                .windows(2)
                .position(|two| two == b"\n\n")
                .map_or(0, |at| at + 2);
            text.drain(..body);
            digits.retain(|digit| *digit >= body);
            digits.iter_mut().for_each(|digit| *digit -= body);
        }
        for digit in &digits {
            // Any sequence that is the same each time.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text[*digit] = b'0' + (state >> 33) as u8 % 10;
        }
        file.write_all(&text)?;
        written += text.len() as u64;
    }
    file.flush()?;
    Ok(())
}

/// CPU time of all programs that were started and have ended, seconds.
fn cpu_seconds() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("ask for CPU time")?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// MB for each second on a CPU of a program that reads so many bytes; `None` where there is no such program.
pub(crate) fn of(command: &mut Command, bytes: u64) -> anyhow::Result<Option<f64>> {
    let before = cpu_seconds()?;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(_) => Ok(Some(
            bytes as f64 / MB as f64 / (cpu_seconds()? - before).max(LEAST_S),
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(error).with_context(|| format!("start {}", command.get_program().to_string_lossy()))
        }
    }
}

/// Has this program, and what it starts, run on one CPU only, until the end of what is done meanwhile.
pub(crate) fn on_one_cpu<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let this = Pid::from_raw(0);
    let before = sched_getaffinity(this).context("ask for the CPUs that may be used")?;
    let first = (0..CpuSet::count()).find(|cpu| before.is_set(*cpu).unwrap_or(false));
    let mut one = CpuSet::new();
    one.set(first.context("no CPU may be used")?)
        .context("choose a CPU")?;
    sched_setaffinity(this, &one).context("stay on one CPU")?;
    let result = work();
    sched_setaffinity(this, &before).context("use all CPUs again")?;
    result
}

/// A speed as a table has it.
pub(crate) fn cell(speed: Option<f64>) -> String {
    match speed {
        Some(speed) if speed < 10.0 => format!("{speed:.1}"),
        Some(speed) => format!("{speed:.0}"),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{cell, repeat};

    #[test]
    fn a_sample_is_repeated_with_other_numbers_and_one_banner() {
        let folder = tempfile::tempdir().unwrap();
        let (sample, large) = (folder.path().join("sample"), folder.path().join("large"));
        std::fs::write(&sample, "Linux 6.1 (host1)\n\nDevice util\nsda 17.25\n").unwrap();
        repeat(&sample, &large, 4_000).unwrap();
        let text = std::fs::read_to_string(&large).unwrap();
        assert!((4_000..4_100).contains(&text.len()), "{}", text.len());
        assert_eq!(text.matches("Linux ").count(), 1);
        let mut values: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("sda "))
            .collect();
        assert!(values.len() > 100 && values.iter().all(|value| value.starts_with("17.")));
        values.sort_unstable();
        values.dedup();
        assert!(values.len() > 2, "{values:?}");
    }

    #[test]
    fn slow_speeds_have_a_decimal() {
        assert_eq!([Some(0.25), Some(612.4), None].map(cell), ["0.2", "612", "-"]);
    }
}
