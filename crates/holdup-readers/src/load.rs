//! Load averages, as `uptime`, `w` and `/proc/loadavg` print them, on lines of their own or between other outputs.
//!
//! In: a line. Out: a [`Load`], which becomes a report of its own: a loop prints many. How many tasks are ready at the
//! instant is known by `/proc/loadavg` alone, and is of that instant.

use crate::day_time::time_of_day;
use crate::gather::Out;
use crate::numbers::{decimal, whole, words};
use holdup_evidence::observed::{Metric, When};
use memchr::memmem;

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    /// The time of day in front of it.
    pub(crate) at: Option<When>,
    /// Of one, five and fifteen minutes.
    averages: [f64; 3],
    /// Tasks ready to run at the instant, and threads that there are.
    tasks: Option<(u64, u64)>,
}

/// Where the path stands in front (`grep . /proc/loadavg /proc/uptime`).
const PATH: &[u8] = b"/proc/loadavg:";

/// What a line of one of them tells; `None` for any other line.
pub(crate) fn of(line: &[u8]) -> Option<Load> {
    let line = line.trim_ascii();
    uptime(line).or_else(|| file(line.strip_prefix(PATH).unwrap_or(line)))
}

/// ` 07:00:23 up 12 days, 14:49,  3 users,  load average: 2.55, 1.73, 1.67`.
pub(crate) fn uptime(line: &[u8]) -> Option<Load> {
    let at = memmem::find(line, b"load average")?;
    let (before, rest) = line.split_at_checked(at)?;
    let mut first = words(before);
    let (time, up) = match first.next()? {
        b"up" => (None, b"up".as_slice()),
        time => (time_of_day(time), first.next()?),
    };
    let colon = rest.iter().position(|byte| *byte == b':')?;
    (up == b"up").then_some(())?;
    Some(Load {
        at: time,
        averages: averages(rest.get(colon + 1..)?)?,
        tasks: None,
    })
}

/// `2.55 1.73 1.67 3/412 9077`.
fn file(line: &[u8]) -> Option<Load> {
    let mut fields = words(line);
    let mut one = || {
        fields
            .next()
            .filter(|field| field.contains(&b'.'))
            .and_then(decimal)
    };
    let averages = [one()?, one()?, one()?];
    let tasks = fields.next()?;
    let slash = tasks.iter().position(|byte| *byte == b'/')?;
    let (ready, all) = (whole(tasks.get(..slash)?)?, whole(tasks.get(slash + 1..)?)?);
    whole(fields.next()?)?;
    (fields.next().is_none() && averages.iter().all(|load| *load >= 0.0)).then_some(Load {
        at: None,
        averages,
        tasks: Some((ready, all)),
    })
}

/// Three load averages, with commas between them that may be decimal commas as well; what is behind them is not looked at.
pub(crate) fn averages(text: &[u8]) -> Option<[f64; 3]> {
    let mut loads = words(text).map(|word| decimal(word.strip_suffix(b",").unwrap_or(word)));
    let mut one = || loads.next().flatten().filter(|load| *load >= 0.0);
    Some([one()?, one()?, one()?])
}

/// The figures of three load averages.
pub(crate) fn put_averages(averages: [f64; 3], out: &mut Out<'_>) {
    let metrics = [Metric::LoadAverage1, Metric::LoadAverage5, Metric::LoadAverage15];
    for (metric, load) in metrics.into_iter().zip(averages) {
        out.figure(metric, "", load);
    }
}

impl Load {
    /// Its figures, as a report: at its own time, or at that of the line before.
    pub(crate) fn put(&self, before: Option<When>, out: &mut Out<'_>) {
        out.report(self.at.or(before), None, false);
        put_averages(self.averages, out);
        if let Some((ready, all)) = self.tasks {
            // Whoever reads the file is one of them.
            out.figure(Metric::TasksRunnable, "", ready.saturating_sub(1) as f64);
            out.figure(Metric::ThreadsTotal, "", all as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn lines_of_every_kind() {
        let averages = |line: &str| of(line.as_bytes()).map(|load| load.averages);
        let some = Some([2.55, 1.73, 1.67]);
        assert_eq!(
            averages(" 07:00:23 up 12 days, 14:49,  3 users,  load average: 2.55, 1.73, 1.67"),
            some
        );
        assert_eq!(
            averages(" 07:00:23 up  1:01,  0 user,  load average: 2,55, 1,73, 1,67"),
            some
        );
        assert_eq!(
            averages("07:00:23 up 1 min,  load average: 2.55, 1.73, 1.67"),
            some
        );
        assert_eq!(averages("up 2 weeks, load average: 2.55, 1.73, 1.67"), some);
        assert_eq!(averages("2.55 1.73 1.67 3/412 9077"), some);
        assert_eq!(averages("/proc/loadavg:2.55 1.73 1.67 3/412 9077"), some);
        assert_eq!(
            of(b"2.55 1.73 1.67 3/412 9077").and_then(|load| load.tasks),
            Some((3, 412))
        );
        for wrong in [
            "",
            "load average",
            "up load average:",
            "x y z load average: 1, 2, 3",
            "07:00:23 up 1 min, load average: 1.0, x, 2.0",
            "07:00:23 up 1 min, load average: 1.0, -1.0, 2.0",
            "1.0 2.0 3.0 4/5",
            "1.0 2.0 3.0 4/5 6 7",
            "1 2 3 4/5 6",
            "1.0 2.0 3.0 45 6",
        ] {
            assert_eq!(of(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
