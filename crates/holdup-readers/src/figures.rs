//! Where the figures of one artefact go: found without a search, because each report names the same things in the same
//! order as the one before.

use holdup_evidence::observed::{Metric, Series};
use std::collections::HashMap;

/// The longest name of a thing that is measured, bytes: no device, CPU or command has a longer one that tells more.
const LONGEST_NAME: usize = 512;

/// The series of one artefact.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Entries by what they are of; few metrics each.
    by_name: HashMap<Box<str>, Vec<(Metric, usize)>>,
    entries: Vec<Entry>,
    /// The entry of the last figure.
    last: usize,
}

/// One series.
#[derive(Debug)]
struct Entry {
    /// Its place in the list of all series.
    place: usize,
    /// The entry whose figure came after this one's the last time.
    next: usize,
    /// The greatest figure that is not of the time since boot.
    greatest: Option<f64>,
}

impl Figures {
    /// The entry of a metric of a thing; `None` where there are too many, or its name is none.
    pub(crate) fn find(
        &mut self,
        metric: Metric,
        of: &str,
        source: u32,
        all: &mut Vec<Series>,
        most: usize,
    ) -> Option<usize> {
        let guess = self.entries.get(self.last).map(|last| last.next);
        let guess = guess.filter(|guess| {
            let place = self.entries.get(*guess).map(|entry| entry.place);
            let series = place.and_then(|place| all.get(place));
            series.is_some_and(|series| series.metric == metric && series.of == of)
        });
        let found = match guess {
            Some(guess) => guess,
            None => self.search(metric, of, source, all, most)?,
        };
        if let Some(last) = self.entries.get_mut(self.last) {
            last.next = found;
        }
        self.last = found;
        Some(found)
    }

    fn search(
        &mut self,
        metric: Metric,
        of: &str,
        source: u32,
        all: &mut Vec<Series>,
        most: usize,
    ) -> Option<usize> {
        let known = self.by_name.get(of).into_iter().flatten();
        if let Some((_, entry)) = known.into_iter().find(|(other, _)| *other == metric) {
            return Some(*entry);
        }
        if all.len() >= most || of.len() > LONGEST_NAME {
            return None;
        }
        all.push(Series {
            metric,
            of: of.to_owned(),
            source,
            points: Vec::new(),
            count: 0,
            sum: 0.0,
        });
        let entry = self.entries.len();
        self.entries.push(Entry {
            place: all.len() - 1,
            next: 0,
            greatest: None,
        });
        match self.by_name.get_mut(of) {
            Some(metrics) => metrics.push((metric, entry)),
            None => {
                self.by_name.insert(of.into(), vec![(metric, entry)]);
            }
        }
        Some(entry)
    }

    /// The place of an entry's series.
    pub(crate) fn place(&self, entry: usize) -> usize {
        self.entries[entry].place
    }

    /// Whether a value is greater than all before; then it is the greatest from now on.
    pub(crate) fn is_greatest(&mut self, entry: usize, value: f64) -> bool {
        let greatest = &mut self.entries[entry].greatest;
        let more = greatest.is_none_or(|most| value > most);
        if more {
            *greatest = Some(value);
        }
        more
    }
}

/// Keeps the points of every so manieth report, and the greatest.
pub(crate) fn thin(series: &mut Series, stride: u32) {
    let greatest = series.greatest().map(|point| point.report);
    series
        .points
        .retain(|point| point.report.is_multiple_of(stride) || Some(point.report) == greatest);
}
