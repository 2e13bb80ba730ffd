//! What a tracer asks the kernel to look over: all tasks, or all open files.
//!
//! The problem: the programs for that may be verified as they are first run ([`crate::later`]), which takes milliseconds, and an instant that
//! was taken or memory that was read before is old by then. In: what is to be looked over. Out: records, and, of what the kernel did not
//! run, what is not seen.

use super::Tracer;
use crate::later::Later;
use crate::loaded::TraceError;
use holdup_evidence::{NotMeasured, Ns, UntoldRequests};
use libbpf_rs::Error;
use std::sync::atomic::{Ordering, fence};

/// Notes once what is not seen.
fn miss(not_measured: &mut Vec<NotMeasured>, later: Later, error: &Error) {
    let missing = later.not_measured(error);
    let new = missing.filter(|missing| not_measured.iter().all(|known| known.what != missing.what));
    not_measured.extend(new);
}

impl Tracer {
    /// Loads what [`Tracer::adopt`] and [`Tracer::peek`] run. Call it before memory is read for them.
    ///
    /// # Errors
    /// When the kernel refuses what there is no look without; the first time only.
    pub fn prepare_looks(&mut self) -> Result<(), TraceError> {
        // Without it connections are adopted as they are used.
        self.iterators.load_before(Later::LookAtFile, &self.skeleton).ok();
        for later in [Later::AdoptTask, Later::PeekTask] {
            let loaded = self.iterators.load_before(later, &self.skeleton);
            loaded.map_err(|error| TraceError::Refused(format!("the program {}: {error}", later.name())))?;
        }
        Ok(())
    }

    /// Loads what [`Tracer::freeze`] runs. Call it before the instant is taken at which observation ends.
    pub fn prepare_end(&mut self) {
        // Where it is refused, it is so again as it is run, and that is told.
        self.iterators.load_before(Later::EachTask, &self.skeleton).ok();
    }

    /// Asks for the waits that go on now: each comes as a [`crate::RawEvent::Peek`].
    pub fn peek(&mut self) {
        if let Err(error) = self.iterators.run(Later::PeekTask, &self.skeleton) {
            miss(&mut self.not_measured, Later::PeekTask, &error);
        }
    }

    /// Requests that were counted and not reported, because there were many. What could not be seen of them is in the report that is made
    /// afterwards.
    #[must_use]
    pub fn untold_requests(&mut self) -> UntoldRequests {
        let mut untold = UntoldRequests::default();
        if let Some(state) = self.skeleton.maps.bss_data.as_deref() {
            untold.answered = state.untold_requests;
            untold.longest = state.untold_longest;
        }
        // Without one that was answered untold, none is open untold but for an instant.
        if untold.answered > 0 {
            match crate::untold::open_requests(&mut self.skeleton, &mut self.iterators) {
                Ok(open) => untold.open = open,
                Err(error) => miss(&mut self.not_measured, Later::LookAtSocket, &error),
            }
        }
        untold
    }

    /// Ends observation at `at`: nothing changes any more, threads that live on are recorded as they are.
    /// A last [`Tracer::drain`] then has everything.
    pub fn freeze(&mut self, at: Ns) {
        if let Some(state) = self.skeleton.maps.bss_data.as_deref_mut() {
            state.frozen_at = at;
            fence(Ordering::SeqCst);
            state.frozen = 1;
        }
        fence(Ordering::SeqCst);
        // Programs that began before the flag was set end within microseconds; attaching the iterator takes
        // longer than that.
        if let Err(error) = self.iterators.run(Later::EachTask, &self.skeleton) {
            miss(&mut self.not_measured, Later::EachTask, &error);
        }
        self.links.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::miss;
    use crate::later::Later;
    use crate::tracer::{Options, Tracer};
    use libbpf_rs::Error;

    #[test]
    fn what_is_needed_at_an_instant_is_loaded_before_it() {
        let mut tracer =
            Tracer::load(Options::default()).expect("tracing works here (as root, see holdup doctor)");
        let all = [
            Later::AdoptTask,
            Later::PeekTask,
            Later::LookAtFile,
            Later::EachTask,
        ];
        let loaded = |tracer: &Tracer| all.map(|later| tracer.iterators.is_loaded(later));
        assert_eq!(loaded(&tracer), [false; 4], "a short command needs none");
        tracer.prepare_looks().unwrap();
        assert_eq!(loaded(&tracer), [true, true, true, false]);
        tracer.prepare_end();
        assert_eq!(loaded(&tracer), [true; 4]);
        tracer.prepare_looks().unwrap();
        tracer.peek();
        tracer.freeze(1);
        assert!(tracer.not_measured.is_empty());
    }

    #[test]
    fn what_is_not_seen_is_said_once() {
        let mut said = Vec::new();
        for number in [libc::ENOMEM, libc::EINVAL, libc::ENOMEM] {
            miss(&mut said, Later::LookAtSocket, &Error::from_raw_os_error(number));
        }
        assert_eq!(said.len(), 1, "each beat of a pulse looks");
        miss(
            &mut said,
            Later::PeekTask,
            &Error::from_raw_os_error(libc::EINVAL),
        );
        miss(
            &mut said,
            Later::AdoptTask,
            &Error::from_raw_os_error(libc::EINVAL),
        );
        assert_eq!(said.len(), 2, "who adopts fails");
    }
}
