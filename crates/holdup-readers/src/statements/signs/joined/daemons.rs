//! Daemons of Ceph whose requests are slow, over several reports: those that come again and again are the slow ones, those that come once wait
//! for them.
//!
//! In: `Health check update: 3 slow ops, oldest one blocked for 65 sec, daemons [osd.12,osd.6] have slow ops. (SLOW_OPS)`, `osd.13 has slow ops`,
//! `Implicated osds 4,7`. Out: which of them come in most of the reports, and the oldest request.

use super::{Line, leading_number};
use crate::statements::signs::Told;
use crate::statements::tables::Fact;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;
use holdup_evidence::units::duration;

/// Daemons that are counted, and those that are named.
const MAX_DAEMONS: usize = 500;
const MAX_NAMED: usize = 4;
const MAX_LINES: usize = 1_000;

/// Reports from which it is a habit.
const MIN_REPORTS: u64 = 4;

/// The part of the reports in which a daemon has to be, for it to be one of the slow ones.
const MIN_PART: f64 = 0.5;

#[derive(Debug, Default)]
pub(super) struct Daemons {
    reports: u64,
    counts: Vec<(String, u64)>,
    oldest: f64,
    lines: Vec<u64>,
}

/// The daemons that a report names.
fn named(text: &str) -> Option<Vec<String>> {
    if let Some((_, rest)) = text.split_once("Implicated osds ") {
        let list = rest.split([' ', '(', ';']).next()?;
        let names = list.split(',').filter(|name| name.parse::<u32>().is_ok());
        return Some(names.map(|name| format!("osd.{name}")).collect());
    }
    if let Some((_, rest)) = text.split_once("daemons [")
        && (text.contains("slow ops") || text.contains("slow requests"))
    {
        let list = rest.split(']').next()?;
        return Some(list.split(',').map(|name| name.trim().to_owned()).collect());
    }
    let (before, _) = text.split_once(" has slow ops")?;
    let name = before.rsplit([' ', ',']).next()?;
    name.contains('.').then(|| vec![name.to_owned()])
}

/// A daemon: `osd.12`, `mon.a`, `mds.cephfs-0`.
fn is_daemon(name: &str) -> bool {
    let kind = name.split('.').next().unwrap_or_default();
    matches!(kind, "osd" | "mon" | "mds" | "mgr") && name.len() < 80 && name.len() > kind.len() + 1
}

impl Daemons {
    pub(super) fn line(&mut self, line: Line<'_>) {
        let text = line.text;
        let Some(names) = named(text) else { return };
        let mut names: Vec<String> = names.into_iter().filter(|name| is_daemon(name)).collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            return;
        }
        self.reports += 1;
        let oldest = text
            .split_once("blocked for ")
            .and_then(|(_, rest)| leading_number(rest));
        self.oldest = self.oldest.max(oldest.map_or(0.0, |(seconds, _)| seconds));
        if self.lines.len() < MAX_LINES {
            self.lines.push(line.number);
        }
        for name in names {
            let room = self.counts.len() < MAX_DAEMONS;
            match self.counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None if room => self.counts.push((name, 1)),
                None => {}
            }
        }
    }

    pub(super) fn end(mut self, told: &mut Told) -> Option<Fact> {
        let least = self.reports as f64 * MIN_PART;
        self.counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let often = self
            .counts
            .iter()
            .filter(|(_, count)| *count as f64 >= least)
            .count();
        if self.reports < MIN_REPORTS || often == 0 || often > MAX_NAMED {
            return None;
        }
        for line in &self.lines {
            told.add(*line);
        }
        let (slow, others) = self.counts.split_at_checked(often)?;
        let list = slow
            .iter()
            .map(|(name, count)| format!("{name} in {count} of them"));
        let list = list.collect::<Vec<_>>().join(", ");
        let others = match others {
            [] => String::new(),
            [(name, count)] => format!("; {name} only {}", in_times(*count)),
            [(name, count), ..] => format!(
                "; {} others less often ({name} {})",
                others.len(),
                in_times(*count)
            ),
        };
        let ns = (self.oldest.clamp(0.0, 1e9) * 1e9) as Ns;
        let oldest = match ns {
            0 => String::new(),
            ns => format!(", the oldest request blocked for {}", duration(ns)),
        };
        let verb = if often == 1 {
            "daemon comes"
        } else {
            "daemons come"
        };
        Some(Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: Some(ns).filter(|ns| *ns > 0),
            line: self.lines.first().copied().unwrap_or(0),
            text: format!(
                "slow requests (slow ops) of Ceph in {} reports{oldest}: the same {verb} again and again: {list}{others}; their disk, host or \
                 network is slow",
                self.reports
            ),
        })
    }
}

fn in_times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}
