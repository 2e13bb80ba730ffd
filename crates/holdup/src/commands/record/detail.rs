//! Full detail around a moment that is worth it: `--on`.
//!
//! In: conditions, and the kernel's figures once a second. Out: whether to observe in full detail now, and which conditions held in a
//! segment. Detail goes on for a while after none holds any more. On the disk, segments keep their single pieces of time if a condition
//! held in them, the one before or the one after: that is known two segments later, and then those of the others are taken out.

use super::condition::Condition;
use super::folder::Folder;
use crate::output::say;
use holdup_model::timeline::Timeline;
use holdup_proc::Root;
use holdup_recording::{Error, bound, peek, read_one, save};
use std::time::{Duration, Instant};

/// Between two looks at the kernel's figures.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// For so long detail goes on: what follows on a moment is as telling as what leads to it.
const GOES_ON: Duration = Duration::from_secs(60);

/// What a coarser segment lacks.
const LACKS: &str = "the detailed time line was not stored: no condition of --on was true";

/// Conditions that are watched.
#[derive(Debug, Clone)]
pub(crate) struct Detail {
    conditions: Vec<Condition>,
    until: Option<Instant>,
    looked: Option<Instant>,
    /// Those that held since this was asked last, each with its figure when it first did.
    held: Vec<(Condition, f64)>,
}

impl Detail {
    /// Of these conditions, none of which has held so far.
    pub(crate) fn on(conditions: &[Condition]) -> Detail {
        Detail {
            conditions: conditions.to_vec(),
            until: None,
            looked: None,
            held: Vec::new(),
        }
    }

    /// Whether there is anything to watch.
    pub(crate) fn is_asked(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// A segment begins: what held before is of the one before.
    pub(crate) fn begin(&mut self) {
        self.held.clear();
        self.looked = None;
    }

    /// Looks, if it is time to; whether all is to be reported now.
    pub(crate) fn now(&mut self) -> bool {
        let now = Instant::now();
        if self
            .looked
            .is_none_or(|looked| now.duration_since(looked) >= LOOK_EVERY)
        {
            self.looked = Some(now);
            let root = Root::system();
            let figures: Vec<Option<f64>> = self.conditions.iter().map(|one| one.figure(&root)).collect();
            self.take(&figures, now);
        }
        self.until.is_some_and(|until| now < until)
    }

    /// Takes the conditions' figures of an instant.
    fn take(&mut self, figures: &[Option<f64>], now: Instant) {
        for (condition, figure) in self.conditions.iter().zip(figures) {
            let Some(figure) = figure.filter(|figure| condition.holds(*figure)) else {
                continue;
            };
            self.until = Some(now + GOES_ON);
            if !self.held.iter().any(|(held, _)| held == condition) {
                self.held.push((*condition, figure));
            }
        }
    }

    /// What held since the segment began, in words.
    pub(crate) fn held(&self) -> Vec<String> {
        let said = |(condition, figure): &(Condition, f64)| format!("{} ({figure:.1})", condition.said());
        self.held.iter().map(said).collect()
    }

    /// Takes the detail out of the segment before the newest, if nothing held around it.
    pub(crate) fn thin(folder: &Folder) {
        if let Err(error) = thin(folder) {
            say(&format!("cannot remove the detail of a segment: {error}"));
        }
    }
}

fn thin(folder: &Folder) -> Result<(), Error> {
    let newest = folder.newest(3);
    let Some(one) = newest.get(1) else {
        return Ok(());
    };
    let mut around = Vec::new();
    for path in &newest {
        around.push(peek(path)?);
    }
    if around[1].coarse || around.iter().any(|head| !head.detail.is_empty()) {
        return Ok(());
    }
    let mut segment = read_one(one)?;
    segment.attributed.timeline = Timeline::default();
    bound(&mut segment);
    segment.head.coarse = true;
    segment.head.approximate.push(LACKS.to_owned());
    save(&segment, one)
}

#[cfg(test)]
mod tests {
    use super::{Detail, GOES_ON};
    use crate::commands::record::condition::Condition;
    use std::time::{Duration, Instant};

    #[test]
    fn detail_begins_with_a_condition_and_goes_on_after_it() {
        let conditions = ["psi.io>20%", "load>8"].map(|text| Condition::parse(text).unwrap());
        let mut detail = Detail::on(&conditions);
        let begin = Instant::now();
        let full = |detail: &Detail, at: Duration| detail.until.is_some_and(|until| begin + at < until);
        detail.take(&[Some(20.0), None], begin);
        assert!(!full(&detail, Duration::ZERO) && detail.held().is_empty());
        detail.take(&[Some(34.0), Some(2.0)], begin);
        detail.take(&[Some(50.0), Some(2.0)], begin);
        assert_eq!(detail.held(), ["psi.io>20% (34.0)"]);
        detail.take(&[Some(3.0), Some(2.0)], begin + Duration::from_secs(5));
        assert!(full(&detail, GOES_ON - Duration::from_secs(1)));
        assert!(!full(&detail, GOES_ON));
        detail.begin();
        assert!(detail.held().is_empty() && full(&detail, Duration::ZERO));
    }
}
