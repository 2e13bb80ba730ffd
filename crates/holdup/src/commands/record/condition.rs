//! `--on CONDITION`: when a recorder keeps full detail.
//!
//! In: text such as `psi.io>20%`, and now and then the kernel's files. Out: whether it holds, and the figure. All figures are the kernel's
//! own and cost one small file: shares of the last ten seconds that some thread waited for the CPU, memory or a disk
//! (`/proc/pressure`), the load average, tasks that wait for a disk now, memory that is left.

use holdup_proc::{Root, root};
use std::path::PathBuf;

/// A figure of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    PsiCpu,
    PsiMemory,
    PsiIo,
    Load,
    Blocked,
    MemoryAvailable,
}

impl Figure {
    const ALL: [Figure; 6] = [
        Figure::PsiCpu,
        Figure::PsiMemory,
        Figure::PsiIo,
        Figure::Load,
        Figure::Blocked,
        Figure::MemoryAvailable,
    ];

    fn name(self) -> &'static str {
        match self {
            Figure::PsiCpu => "psi.cpu",
            Figure::PsiMemory => "psi.memory",
            Figure::PsiIo => "psi.io",
            Figure::Load => "load",
            Figure::Blocked => "blocked",
            Figure::MemoryAvailable => "memory.available",
        }
    }

    /// Whether it is a share of something, per cent.
    fn is_share(self) -> bool {
        !matches!(self, Figure::Load | Figure::Blocked)
    }

    fn file(self, root: &Root) -> PathBuf {
        root.proc.join(match self {
            Figure::PsiCpu => "pressure/cpu",
            Figure::PsiMemory => "pressure/memory",
            Figure::PsiIo => "pressure/io",
            Figure::Load => "loadavg",
            Figure::Blocked => "stat",
            Figure::MemoryAvailable => "meminfo",
        })
    }

    /// The figure in its file's text.
    fn of(self, text: &str) -> Option<f64> {
        let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let number = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
        match self {
            Figure::PsiCpu | Figure::PsiMemory | Figure::PsiIo => number(line("some avg10=")?),
            Figure::Load => number(text),
            Figure::Blocked => number(line("procs_blocked")?),
            Figure::MemoryAvailable => {
                let (left, all) = (number(line("MemAvailable:")?)?, number(line("MemTotal:")?)?);
                (all > 0.0).then(|| left / all * 100.0)
            }
        }
    }
}

/// A condition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Condition {
    figure: Figure,
    above: bool,
    limit: f64,
}

/// What would be right.
const RIGHT: &str = "NAME>VALUE or NAME<VALUE, such as psi.io>20%, with one of psi.cpu, psi.memory, psi.io, \
                     memory.available (percentages), load, blocked (numbers)";

impl Condition {
    /// Reads one.
    ///
    /// # Errors
    /// What would be right, to stand behind "needs".
    pub(crate) fn parse(text: &str) -> Result<Condition, String> {
        let at = text.find(['>', '<']).ok_or_else(|| RIGHT.to_owned())?;
        let (name, value) = (text[..at].trim(), text[at + 1..].trim());
        let figure = Figure::ALL.into_iter().find(|figure| figure.name() == name);
        let figure = figure.ok_or_else(|| RIGHT.to_owned())?;
        let (digits, share) = match value.strip_suffix('%') {
            Some(digits) => (digits.trim_end(), true),
            None => (value, false),
        };
        match (figure.is_share(), share) {
            (true, false) => {
                return Err(format!(
                    "a percentage for {name} ({name}{}{value}%)",
                    &text[at..=at]
                ));
            }
            (false, true) => {
                return Err(format!("a number for {name} ({name}{}{digits})", &text[at..=at]));
            }
            (true, true) | (false, false) => {}
        }
        let limit = digits
            .parse::<f64>()
            .ok()
            .filter(|limit| limit.is_finite() && *limit >= 0.0);
        let limit = limit.ok_or_else(|| format!("a number of at least 0 as the limit of {name}"))?;
        if share && limit > 100.0 {
            return Err(format!("at most 100 % for {name}"));
        }
        Ok(Condition {
            figure,
            above: &text[at..=at] == ">",
            limit,
        })
    }

    /// As a person writes it.
    pub(crate) fn said(&self) -> String {
        let (sign, unit) = (
            if self.above { '>' } else { '<' },
            if self.figure.is_share() { "%" } else { "" },
        );
        format!("{}{sign}{}{unit}", self.figure.name(), self.limit)
    }

    /// The figure now, where the kernel tells it.
    pub(crate) fn figure(&self, root: &Root) -> Option<f64> {
        self.figure.of(&root::text_if_there(&self.figure.file(root))?)
    }

    /// Whether it holds of a figure.
    pub(crate) fn holds(&self, figure: f64) -> bool {
        match self.above {
            true => figure > self.limit,
            false => figure < self.limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, Figure};

    #[test]
    fn conditions_are_read_as_they_are_written() {
        for text in [
            "psi.io>20%",
            "psi.cpu>0.5%",
            "memory.available<5%",
            "load>8",
            "blocked>3",
        ] {
            assert_eq!(
                Condition::parse(text).map(|read| read.said()).as_deref(),
                Ok(text)
            );
        }
        assert_eq!(
            Condition::parse(" psi.memory > 7 % ")
                .map(|read| read.said())
                .as_deref(),
            Ok("psi.memory>7%")
        );
    }

    #[test]
    fn what_is_none_is_told_what_would_be_right() {
        for (text, said) in [
            ("psi.io", "NAME>VALUE"),
            ("psi.disk>20%", "one of psi.cpu, psi.memory"),
            ("psi.io>20", "a percentage for psi.io (psi.io>20%)"),
            ("load<3%", "a number for load (load<3)"),
            ("load>many", "a number of at least 0 as the limit of load"),
            ("psi.io>NaN%", "a number of at least 0"),
            ("psi.io>-1%", "a number of at least 0"),
            ("psi.io>101%", "at most 100 %"),
            ("", "NAME>VALUE"),
        ] {
            let wrong = Condition::parse(text).unwrap_err();
            assert!(wrong.contains(said), "{text}: {wrong}");
        }
    }

    #[test]
    fn figures_stand_in_the_kernels_files() {
        let pressure =
            "some avg10=12.50 avg60=3.00 avg300=1.00 total=123\nfull avg10=9.00 avg60=0 avg300=0 total=1\n";
        assert_eq!(Figure::PsiIo.of(pressure), Some(12.5));
        assert_eq!(Figure::Load.of("2.63 5.16 5.82 1/250 99\n"), Some(2.63));
        assert_eq!(
            Figure::Blocked.of("ctxt 1\nprocs_running 2\nprocs_blocked 4\n"),
            Some(4.0)
        );
        let memory = "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  50 kB\n";
        assert_eq!(Figure::MemoryAvailable.of(memory), Some(5.0));
        for figure in Figure::ALL {
            assert_eq!(figure.of("nothing of it"), None, "{figure:?}");
        }
        let low = Condition::parse("memory.available<5%").unwrap();
        assert!(low.holds(4.9) && !low.holds(5.0) && !low.holds(60.0));
    }
}
