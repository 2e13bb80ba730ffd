//! Looks that can block, in child processes that can be left behind: what has not come in time is not known, is said to
//! be, and holds up nothing.
//!
//! In: things to look at, and how. Out: what was seen of them, and how many were not.

use holdup_detached::{Confinement, Crew};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Readers that look at one kind of thing: those that are stuck do not keep another from what is left.
const READERS_MAX: usize = 16;

/// A look that goes on.
#[derive(Debug)]
pub(super) struct Aside<I, O> {
    /// What is looked at; children have copies, and are reported the place of each.
    items: Rc<Vec<I>>,
    crew: Crew<usize, O>,
    /// What came so far.
    seen: Vec<(I, O)>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Sight<I, O> {
    /// What was seen in time.
    pub(super) seen: Vec<(I, O)>,
    /// How many things were not.
    pub(super) late: usize,
}

impl<I: Clone + 'static, O: Serialize + DeserializeOwned + 'static> Aside<I, O> {
    /// Begins to look at each of them. `about`: what they are, for the list of readers left behind.
    pub(super) fn start(
        confinement: Confinement,
        about: fn(&usize) -> String,
        items: Vec<I>,
        look: impl Fn(&I) -> O + 'static,
    ) -> Aside<I, O> {
        let items = Rc::new(items);
        let (of_readers, look) = (Rc::clone(&items), Rc::new(look));
        let begin = move || {
            let (items, look) = (Rc::clone(&of_readers), Rc::clone(&look));
            move |at: usize| look(&items[at])
        };
        let mut crew = Crew::new(confinement, READERS_MAX, about, begin);
        for at in 0..items.len() {
            crew.ask(at);
        }
        Aside {
            items,
            crew,
            seen: Vec::new(),
        }
    }

    /// Takes what has come, waiting for the rest for at most so long. A reader is given some things ahead, and goes on only as its answers
    /// are taken: without this, most are looked at when the look is over.
    pub(super) fn gather(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        while let Some((at, one)) = self.crew.answer(until) {
            self.seen.push((self.items[at].clone(), one));
        }
    }

    /// What was seen, waiting for the rest for at most so long.
    pub(super) fn take(mut self, limit: Duration) -> Sight<I, O> {
        self.gather(limit);
        Sight {
            late: self.items.len() - self.seen.len(),
            seen: self.seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Aside;
    use holdup_proc::blocking;
    use std::time::{Duration, Instant};

    #[test]
    fn one_that_never_answers_does_not_keep_the_others() {
        let reader = blocking::reader(c"holdup-test");
        let about = |at: &usize| at.to_string();
        let mut aside = Aside::start(reader, about, vec![10, 11, 12, 13], |item| {
            if *item == 10 {
                loop {
                    std::thread::park();
                }
            }
            2 * item
        });
        let long = Instant::now() + Duration::from_secs(60);
        let seen: Vec<(usize, i32)> = (0..3).map(|_| aside.crew.answer(long).unwrap()).collect();
        assert_eq!(seen, [(1, 22), (2, 24), (3, 26)]);
        assert!(aside.take(Duration::ZERO).late > 0);
    }

    #[test]
    fn what_was_gathered_was_looked_at_then() {
        let reader = blocking::reader(c"holdup-test");
        let mut aside = Aside::start(
            reader,
            |at| at.to_string(),
            (0..200).collect(),
            |_| Instant::now().elapsed(),
        );
        aside.gather(Duration::from_secs(60));
        assert_eq!(aside.seen.len(), 200);
        assert_eq!(aside.take(Duration::ZERO).late, 0);
    }

    #[test]
    fn what_was_seen_stands_beside_what_was_looked_at() {
        let reader = blocking::reader(c"holdup-test");
        let about = |at: &usize| at.to_string();
        let aside = Aside::start(reader, about, vec![1, 2], |item| item + 1);
        let sight = aside.take(Duration::from_secs(60));
        assert_eq!((sight.late, sight.seen), (0, vec![(1, 2), (2, 3)]));
    }
}
