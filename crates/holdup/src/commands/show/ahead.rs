//! Many segments read at once and taken one after the other.
//!
//! The problem: a day is 1,440 files, and unpacking one takes milliseconds. The choice: as many threads as there are CPUs, a few at the
//! most, each of which reads every so-manieth file and is never more than one ahead of who takes them: what was read and not taken
//! stays bounded, and the order is that of the files. In: how to read one. Out: each, in its turn.

use std::num::NonZero;
use std::sync::mpsc::sync_channel;
use std::thread;

/// Threads at the most: beyond these, putting segments together is what takes the time.
const MAX_THREADS: usize = 4;

/// Reads `count` of something, and takes them in order.
pub(super) fn in_turn<T: Send>(
    count: usize,
    read: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T),
) {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let readers = cpus.min(MAX_THREADS).min(count);
    if readers < 2 {
        return (0..count).for_each(|number| take(number, read(number)));
    }
    thread::scope(|scope| {
        let read = &read;
        let channels: Vec<_> = (0..readers)
            .map(|first| {
                let (give, given) = sync_channel(1);
                scope.spawn(move || {
                    for number in (first..count).step_by(readers) {
                        // Nobody who takes it: taking has panicked, and so will this scope.
                        if give.send(read(number)).is_err() {
                            break;
                        }
                    }
                });
                given
            })
            .collect();
        for number in 0..count {
            match channels[number % readers].recv() {
                Ok(one) => take(number, one),
                // Its reader has panicked, which the scope hands on.
                Err(_) => break,
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::in_turn;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_are_taken_in_order_and_few_are_read_ahead() {
        for count in [0, 1, 2, 3, 1_000] {
            let (begun, mut taken) = (AtomicUsize::new(0), Vec::new());
            let mut most = 0;
            in_turn(
                count,
                |number| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    number * 7
                },
                |number, value| {
                    assert_eq!(value, number * 7);
                    taken.push(number);
                    most = most.max(begun.load(Ordering::SeqCst) - taken.len());
                },
            );
            assert_eq!(taken, (0..count).collect::<Vec<_>>());
            assert!(most <= 3 * super::MAX_THREADS, "{most} read ahead of {count}");
        }
    }
}
