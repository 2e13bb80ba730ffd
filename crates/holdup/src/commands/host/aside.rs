//! Looks that can block, in threads that may be left behind: what has not come in time is not known, is said to be, and holds
//! up nothing.
//!
//! In: things to look at, and how. Out: what was seen of them, and how many were not.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Threads that look at one kind of thing: one that is stuck does not keep the other from what is left.
const EYES: usize = 2;

/// A look that goes on.
#[derive(Debug)]
pub(super) struct Aside<O> {
    receiver: Receiver<O>,
    asked: usize,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Sight<O> {
    /// What was seen in time.
    pub(super) seen: Vec<O>,
    /// How many things were not.
    pub(super) late: usize,
}

impl<O: Send + 'static> Aside<O> {
    /// Begins to look at each of them.
    pub(super) fn start<I: Send + 'static>(
        items: Vec<I>,
        look: impl Fn(I) -> O + Send + Sync + 'static,
    ) -> Aside<O> {
        let asked = items.len();
        let left = Arc::new(Mutex::new(VecDeque::from(items)));
        let look = Arc::new(look);
        let (sender, receiver) = mpsc::channel();
        for _ in 0..EYES.min(asked) {
            let (left, look, sender) = (Arc::clone(&left), Arc::clone(&look), sender.clone());
            let eye = move || {
                while let Some(item) = left.lock().ok().and_then(|mut left| left.pop_front()) {
                    if sender.send(look(item)).is_err() {
                        return;
                    }
                }
            };
            // Without a thread more, fewer look.
            std::thread::Builder::new()
                .name("look".to_owned())
                .spawn(eye)
                .ok();
        }
        Aside { receiver, asked }
    }

    /// What was seen, waiting for the rest for at most so long.
    pub(super) fn take(self, limit: Duration) -> Sight<O> {
        let until = Instant::now() + limit;
        let mut seen = Vec::new();
        while let Ok(one) = self
            .receiver
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            seen.push(one);
        }
        Sight {
            late: self.asked - seen.len(),
            seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Aside;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn one_that_never_answers_does_not_keep_the_others() {
        let (keep, stuck) = mpsc::channel::<()>();
        let stuck = std::sync::Mutex::new(stuck);
        let (done, all) = mpsc::channel();
        let aside = Aside::start(vec![0, 1, 2, 3], move |item| {
            if item == 0 {
                stuck.lock().unwrap().recv().ok();
            } else {
                done.send(item).unwrap();
            }
            item
        });
        // The others have been looked at, however long that took.
        let mut seen: Vec<i32> = (0..3).map(|_| all.recv().unwrap()).collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
        // All but the last have been handed over; that one may be on its way.
        let sight = aside.take(Duration::from_millis(100));
        assert!(sight.late >= 1 && !sight.seen.contains(&0));
        drop(keep);
    }
}
