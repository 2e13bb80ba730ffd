//! Running other programs so that a failure says which one and how.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs a program, its output going where ours goes; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("start {}", words(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", words(command));
    }
    Ok(())
}

/// Runs a program and returns what it wrote to stdout; anything but success is an error.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("start {}", words(command)))?;
    if !output.status.success() {
        bail!("{} failed: {}", words(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} wrote something that is not UTF-8", words(command)))
}

/// The command as a person would type it.
pub(crate) fn words(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A length of time as people say it: `3 min 05 s`, `9 s`.
pub(crate) fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes => format!("{minutes} min {:02} s", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::minutes;
    use std::time::Duration;

    #[test]
    fn times_are_minutes_and_seconds() {
        assert_eq!(minutes(Duration::from_millis(9_700)), "9 s");
        assert_eq!(minutes(Duration::from_secs(185)), "3 min 05 s");
    }
}
