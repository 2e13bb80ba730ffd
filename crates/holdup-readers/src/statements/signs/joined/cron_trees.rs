//! Cron jobs that pile up, in trees of processes: `pstree`, and the processes that `systemctl status` lists below a unit.
//!
//! In: `cron───14*[cron───sh───report.sh]`; `├─ 9301 /usr/sbin/CRON -f` with `├─ 9302 /bin/sh -c /opt/sync.sh` below. Out: what a list of processes says
//! of the same, see `formats/ps`.

use super::{Line, leading_number};
use crate::formats::Piled;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;

/// Copies from which they pile up: a tree has names of programs alone, and several jobs may run the same one.
const MIN_COPIES: u64 = 8;

/// Bytes of the way that is told.
const MAX_CHARS: usize = 120;

#[derive(Debug, Default)]
pub(super) struct CronTrees {
    piled: Piled,
    told: Option<(u64, u64, String)>,
}

/// `14*[cron───sh───report.sh───mysql]`: how many, and of what.
fn alike(text: &str) -> Option<(u64, &str)> {
    let (before, rest) = text.split_once("*[cron")?;
    let digits = before.len() - before.trim_end_matches(|char: char| char.is_ascii_digit()).len();
    let count: u64 = before.get(before.len() - digits..)?.parse().ok()?;
    let way = rest.split(']').next()?;
    // A daemon with helpers of its own has no shell in it.
    (way.contains("sh") && count >= MIN_COPIES).then_some((count, way))
}

/// The number and the command of a process in a tree that is not a list of `ps`.
fn process(text: &str) -> Option<(u32, &str)> {
    let rest = text.trim_start_matches(|char: char| !char.is_ascii_alphanumeric() && char != '/');
    let (number, rest) = leading_number(rest)?;
    let command = rest.strip_prefix(' ')?.trim_start();
    (command.starts_with('/') || command.starts_with("sh ") || command.starts_with("bash "))
        .then_some((number as u32, command))
}

impl CronTrees {
    pub(super) fn line(&mut self, line: Line<'_>) {
        if let Some((count, way)) = alike(line.text) {
            let more = self.told.as_ref().is_none_or(|(most, ..)| count > *most);
            if more {
                let way = way.chars().take(MAX_CHARS).collect();
                self.told = Some((count, line.number, way));
            }
            return;
        }
        if let Some((pid, command)) = process(line.text) {
            self.piled.row(Some(pid), None, command.as_bytes(), line.number);
        }
    }

    pub(super) fn end(mut self) -> Option<Fact> {
        let fact = |line: u64, text: String| Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: None,
            line,
            text,
        };
        if let Some((count, line, way)) = self.told {
            return Some(fact(
                line,
                format!(
                    "{count} runs of the same cron job are alive at once (cron{way}): the earlier runs have not ended when cron starts the next, and they \
                     pile up"
                ),
            ));
        }
        let (line, text) = self.piled.told()?;
        Some(fact(line, text))
    }
}
