//! Looks in order of time, and which of them is on the screen.
//!
//! In: looks as they come, or the labels of recordings. Out: the one to show. Of live looks the last ones are kept; of recordings those that
//! were shown last, and any other is asked for again.

use holdup_views::{Look, LookRow};
use std::collections::VecDeque;
use std::sync::Arc;

/// Looks that are kept. One has at most a few hundred rows; most have some KB.
pub(crate) const MAX_LOOKS: usize = 120;

/// One point in time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    /// When that is, for a person.
    pub(crate) label: String,
    pub(crate) content: Content,
}

/// What is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// It is in a file that was not read yet, or was let go.
    Unread,
    /// This.
    Known(Arc<Look>),
    /// It can't be read, and why.
    Unreadable(String),
}

/// All of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    all: VecDeque<Moment>,
    at: usize,
    /// New looks are shown as they come.
    follows: bool,
    is_replay: bool,
}

impl Moments {
    /// Looks that are still to come.
    #[must_use]
    pub fn live() -> Moments {
        Moments {
            all: VecDeque::new(),
            at: 0,
            follows: true,
            is_replay: false,
        }
    }

    /// Recordings with these labels, oldest first; the last one is shown.
    #[must_use]
    pub fn replay(labels: Vec<String>) -> Moments {
        let moment = |label| Moment {
            label,
            content: Content::Unread,
        };
        Moments {
            at: labels.len().saturating_sub(1),
            all: labels.into_iter().map(moment).collect(),
            follows: false,
            is_replay: true,
        }
    }

    pub(crate) fn current(&self) -> Option<&Moment> {
        self.all.get(self.at)
    }

    pub(crate) fn look(&self) -> Option<&Look> {
        match &self.current()?.content {
            Content::Known(look) => Some(look),
            Content::Unread | Content::Unreadable(_) => None,
        }
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.is_replay
    }

    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    /// Number of the one that is shown, from 1, and how many there are.
    pub(crate) fn place(&self) -> (usize, usize) {
        ((self.at + 1).min(self.all.len()), self.all.len())
    }

    /// Which one has to be read before it can be shown.
    pub(crate) fn unread(&self) -> Option<usize> {
        let unread = self.current()?.content == Content::Unread;
        unread.then_some(self.at)
    }

    /// A new one has come.
    pub(crate) fn push(&mut self, label: String, look: Look) {
        self.all.push_back(Moment {
            label,
            content: Content::Known(Arc::new(look)),
        });
        if self.all.len() > MAX_LOOKS {
            self.all.pop_front();
            self.at = self.at.saturating_sub(1);
        }
        if self.follows {
            self.at = self.all.len().saturating_sub(1);
        }
    }

    /// What a file has.
    pub(crate) fn fill(&mut self, at: usize, content: Result<Look, String>) {
        let shown = self.at;
        if let Some(moment) = self.all.get_mut(at) {
            moment.content = match content {
                Ok(look) => Content::Known(Arc::new(look)),
                Err(why) => Content::Unreadable(why),
            };
        }
        // Those farthest from what is shown are let go.
        let known = |moment: &Moment| matches!(moment.content, Content::Known(_));
        if self.all.iter().filter(|moment| known(moment)).count() > MAX_LOOKS {
            let far = (self.all.iter().enumerate())
                .filter(|(_, moment)| known(moment))
                .max_by_key(|(other, _)| other.abs_diff(shown))
                .map(|(other, _)| other);
            if let Some(moment) = far.and_then(|far| self.all.get_mut(far)) {
                moment.content = Content::Unread;
            }
        }
    }

    /// Goes so many back, or forth. Past the last live one is the present.
    pub(crate) fn go(&mut self, by: isize) {
        let last = self.all.len().saturating_sub(1);
        let next = self.at.saturating_add_signed(by);
        self.follows = !self.is_replay && by > 0 && next >= last;
        self.at = next.min(last);
    }

    /// Stops at what is shown, or goes on with the newest.
    pub(crate) fn pause(&mut self) {
        if self.is_replay {
            return;
        }
        self.follows = !self.follows;
        if self.follows {
            self.at = self.all.len().saturating_sub(1);
        }
    }

    /// The row with this key in the last look up to the one shown that has a stack of it, and when that was.
    pub(crate) fn with_stack(&self, key: &str) -> Option<(&str, &LookRow)> {
        let until = self.all.iter().take(self.at + 1).rev();
        until
            .filter_map(|moment| match &moment.content {
                Content::Known(look) => Some((moment.label.as_str(), look)),
                Content::Unread | Content::Unreadable(_) => None,
            })
            .find_map(|(label, look)| {
                let row = look.rows.iter().find(|row| row.key == key && row.has_stack)?;
                Some((label, row))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LOOKS, Moments};
    use holdup_views::Look;

    fn look(sentence: &str) -> Look {
        Look {
            sentence: sentence.to_owned(),
            ..Look::default()
        }
    }

    fn shown(moments: &Moments) -> Option<&str> {
        Some(moments.look()?.sentence.as_str())
    }

    #[test]
    fn the_newest_is_shown_until_one_goes_back_and_again_at_the_end() {
        let mut moments = Moments::live();
        assert_eq!(shown(&moments), None);
        for name in ["a", "b", "c"] {
            moments.push(name.to_owned(), look(name));
        }
        assert_eq!(shown(&moments), Some("c"));
        moments.go(-1);
        moments.push("d".to_owned(), look("d"));
        assert_eq!((shown(&moments), moments.follows()), (Some("b"), false));
        moments.go(1);
        moments.go(1);
        assert_eq!((shown(&moments), moments.follows()), (Some("d"), true));
        moments.push("e".to_owned(), look("e"));
        assert_eq!(shown(&moments), Some("e"));
    }

    #[test]
    fn what_is_paused_stays_even_as_old_looks_go() {
        let mut moments = Moments::live();
        for number in 0..MAX_LOOKS {
            moments.push(number.to_string(), look(&number.to_string()));
        }
        moments.pause();
        let before = shown(&moments).map(str::to_owned);
        for number in 0..MAX_LOOKS / 2 {
            moments.push("new".to_owned(), look(&format!("new {number}")));
        }
        assert_eq!(shown(&moments).map(str::to_owned), before);
        assert_eq!(moments.place().1, MAX_LOOKS);
        moments.pause();
        assert!(shown(&moments).is_some_and(|name| name.starts_with("new")));
    }

    #[test]
    fn a_recording_is_asked_for_when_it_is_to_be_shown() {
        let mut moments = Moments::replay(vec!["13:00".to_owned(), "13:01".to_owned()]);
        assert_eq!(moments.unread(), Some(1));
        moments.fill(1, Ok(look("late")));
        assert_eq!((moments.unread(), shown(&moments)), (None, Some("late")));
        moments.go(-1);
        assert_eq!(moments.unread(), Some(0));
        moments.fill(0, Err("damaged".to_owned()));
        assert_eq!((moments.unread(), shown(&moments)), (None, None));
        moments.go(-1);
        assert_eq!(moments.place(), (1, 2));
    }

    #[test]
    fn of_many_recordings_only_some_are_kept() {
        let labels = (0..MAX_LOOKS * 2).map(|number| number.to_string()).collect();
        let mut moments = Moments::replay(labels);
        for _ in 0..MAX_LOOKS * 2 {
            if let Some(at) = moments.unread() {
                moments.fill(at, Ok(look("x")));
            }
            moments.go(-1);
        }
        assert_eq!(shown(&moments), Some("x"));
        moments.go(isize::try_from(MAX_LOOKS * 2).unwrap());
        assert!(moments.unread().is_some());
    }
}
