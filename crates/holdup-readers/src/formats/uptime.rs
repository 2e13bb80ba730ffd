//! `uptime` and the head of `w`, once or in a loop, and `/proc/loadavg`, with or without `date` between.
//!
//! In: such lines. Out: the load averages as series, one report a line; of `/proc/loadavg` the tasks that are ready at the
//! instant, and the number of threads.

use crate::day_time::date_line;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::load;
use crate::numbers::words;
use holdup_evidence::observed::When;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("uptime", Family::Host, recognise).about("uptime, w");

pub(crate) static LOADAVG: Format = Format::lines::<Reader>("loadavg", Family::Host, recognise_file)
    .about("/proc/loadavg")
    .openings(&["/proc/loadavg:"]);

/// Lines of the beginning in which the first of them must be.
const LOOKED_AT: usize = 20;

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    match lines.any(|line| load::uptime(line.trim_ascii()).is_some()) {
        true => Sureness::Likely,
        false => Sureness::No,
    }
}

fn recognise_file(head: &[u8]) -> Sureness {
    let lines = head.split(|byte| *byte == b'\n').take(LOOKED_AT);
    let mut known = lines.filter(|line| !line.trim_ascii().is_empty() && date_line(line).is_none());
    let first = known.next().unwrap_or_default();
    match load::of(first).is_some() && load::uptime(first.trim_ascii()).is_none() {
        true => Sureness::Likely,
        false => Sureness::No,
    }
}

#[derive(Debug, Default)]
struct Reader {
    /// What a `date` before the line said.
    at: Option<When>,
    /// Whether the table of `w` has begun.
    users: bool,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Understood::Ignorable;
        }
        if let Some(load) = load::of(line) {
            self.users = false;
            load.put(self.at.take(), out);
            return Understood::Evidence;
        }
        let mut first = words(line);
        if (first.next(), first.next()) == (Some(b"USER"), Some(b"TTY")) {
            self.users = true;
            return Understood::Ignorable;
        }
        if self.users {
            return Understood::Ignorable;
        }
        if let Some(at) = date_line(line) {
            self.at = Some(at);
            return Understood::Evidence;
        }
        Understood::No
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Civil, Metric, When};

    #[test]
    fn a_loop_is_a_series() {
        let text = " 07:00:23 up 12 days, 14:49,  3 users,  load average: 2.55, 1.73, 1.67
 07:00:33 up 12 days, 14:49,  3 users,  load average: 9.55, 2.73, 1.97
";
        let reading = read_text("t", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "uptime");
        let load = reading.observed.of(Metric::LoadAverage1).next().unwrap();
        assert_eq!(
            load.points.iter().map(|point| point.value).collect::<Vec<_>>(),
            [2.55, 9.55]
        );
        let at = When::Civil(Civil {
            day: None,
            year_known: false,
            of_day: 25_233_000_000_000,
        });
        assert_eq!(load.points[1].at, Some(at));
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn users_say_nothing() {
        let text = " 07:00:23 up 1 day,  2 users,  load average: 2.55, 1.73, 1.67
USER     TTY      FROM             LOGIN@   IDLE   JCPU   PCPU WHAT
root     pts/0    192.0.2.1        06:41    1.00s  0.04s  0.00s w
";
        let reading = read_text("t", text.as_bytes());
        assert_eq!(
            (reading.accounts[0].evidence, reading.accounts[0].ignorable),
            (1, 2)
        );
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn the_kernels_file_with_dates() {
        let text = "Sun Nov 22 07:00:23 UTC 2026\n2.55 1.73 1.67 3/412 9077\nSun Nov 22 07:00:33 UTC 2026\n\
                    2.65 1.73 1.67 1/413 9078\n";
        let reading = read_text("t", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "loadavg");
        let ready = reading.observed.of(Metric::TasksRunnable).next().unwrap();
        assert_eq!(
            ready.points.iter().map(|point| point.value).collect::<Vec<_>>(),
            [2.0, 0.0]
        );
        assert_eq!(ready.points[0].at, Some(When::Unix(1_795_330_823_000_000_000)));
        assert_eq!(reading.accounts[0].not_understood, 0);
    }

    #[test]
    fn rubbish_and_cut_lines_are_counted_and_nothing_worse() {
        let text = " 07:00:23 up 12 days, 14:49,  3 users,  load average: 2.55, 1.73, 1.67\n2.55 1.73 1.67 3/412 9077\n";
        for cut in 0..text.len() {
            let mut cut = text.as_bytes()[..cut].to_vec();
            cut.extend_from_slice(
                b"\n\xff\0 up load average: \n99999999999999999999.9 1.0 1.0 99999999999999999999/1 1\n",
            );
            let reading = read_text("t", &cut);
            assert!(reading.accounts[0].lines >= 2);
        }
    }
}
