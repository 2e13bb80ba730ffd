//! What Go's runtime calls the waits of goroutines.
//!
//! In: a reason as the runtime's own dumps print it. Out: whether it is of a goroutine of the runtime itself, which stands there
//! when nothing is wrong and which the runtime leaves out of its own dumps.

/// What the runtime's own goroutines wait for: the collector's workers, its sweeper and its scavenger, who runs finalizers and
/// cleanups, who forces a collection, who counts processors, and who reads traces.
const OF_THE_RUNTIME: [&str; 9] = [
    "GC sweep wait",
    "GC scavenge wait",
    "GC worker (idle)",
    "GC worker (active)",
    "finalizer wait",
    "cleanup wait",
    "force gc (idle)",
    "GOMAXPROCS updater (idle)",
    "trace reader (blocked)",
];

/// Whether a goroutine that waits for this is the runtime's own.
#[must_use]
pub fn is_of_the_runtime(reason: &str) -> bool {
    OF_THE_RUNTIME.contains(&reason)
}

#[cfg(test)]
mod tests {
    use super::is_of_the_runtime;

    #[test]
    fn the_programs_own_waits_are_none_of_the_runtimes() {
        for reason in [
            "chan receive",
            "IO wait",
            "sync.Mutex.Lock",
            "GC assist wait",
            "sleep",
        ] {
            assert!(!is_of_the_runtime(reason), "{reason}");
        }
        for reason in [
            "GC worker (idle)",
            "force gc (idle)",
            "finalizer wait",
            "GC scavenge wait",
        ] {
            assert!(is_of_the_runtime(reason), "{reason}");
        }
    }
}
