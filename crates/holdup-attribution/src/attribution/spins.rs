//! Code that runs only to wait: spin locks and yields of the libraries that people use, by their names.
//!
//! In: a user stack, innermost first, of a thread that was sampled on a CPU. Out: the function that spins. Only
//! functions that do nothing else are listed: a mutex that spins for a moment before it sleeps is not distinguished from one
//! that is taken at once, and a loop of the program's own has no name that says so.

use holdup_evidence::Frame;
use holdup_model::attributed::{Spin, SpinningLibrary};

/// Functions that spin, by their bare names.
const NAMES: &[&str] = &[
    // glibc and musl.
    "pthread_spin_lock",
    "__pthread_spin_lock",
    "sched_yield",
    "__sched_yield",
    "thrd_yield",
    "pthread_yield",
    // GNU OpenMP.
    "gomp_barrier_wait_end",
    "gomp_barrier_wait_last",
    "gomp_team_barrier_wait_end",
    "gomp_team_barrier_wait_cancel_end",
    "gomp_mutex_lock_slow",
    "gomp_sem_wait_slow",
    // LLVM and Intel OpenMP.
    "__kmp_wait_template",
    "__kmp_wait_4",
    "__kmp_x86_pause",
    "__kmp_yield",
    // PostgreSQL, InnoDB, jemalloc, Abseil and tcmalloc, HotSpot.
    "s_lock",
    "perform_spin_delay",
    "ut_delay",
    "spin_adaptive",
    "AbslInternalSpinLockDelay",
    "SpinPause",
    // Go.
    "runtime.procyield",
    "runtime.procyieldAsm",
    "runtime.osyield",
    // Rust.
    "crossbeam_utils::backoff::Backoff::spin",
    "crossbeam_utils::backoff::Backoff::snooze",
    "parking_lot_core::spinwait::SpinWait::spin",
];

/// Beginnings of names, for what has type parameters.
const BEGINNINGS: &[&str] = &["kmp_flag_64<", "kmp_flag_32<", "__kmp_wait_template<"];

/// Libraries whose functions without a name are their waiting: stripped copies keep the names of what programs call,
/// and their own work is in those.
const LIBRARIES: &[(&str, SpinningLibrary)] = &[("libgomp.so", SpinningLibrary::Gomp)];

/// The function in which this stack spins.
pub(super) fn spinning(stack: &[Frame]) -> Option<Spin> {
    let innermost = stack.first()?;
    match &innermost.symbol {
        Some(symbol) => {
            let bare = symbol.split('@').next().unwrap_or(symbol);
            let listed = NAMES.contains(&bare) || BEGINNINGS.iter().any(|start| bare.starts_with(start));
            listed.then(|| Spin::of_function(bare))
        }
        None => {
            let module = innermost.module.as_deref()?;
            let library = LIBRARIES.iter().find(|(library, _)| module.starts_with(library));
            library.map(|(_, library)| Spin::Loop(*library))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spinning;
    use holdup_evidence::Frame;

    fn spun_in(frames: &[(&str, Option<&str>)]) -> Option<String> {
        let stack: Vec<Frame> = frames
            .iter()
            .map(|(module, symbol)| Frame {
                module: Some((*module).to_owned()),
                symbol: symbol.map(str::to_owned),
                ..Frame::default()
            })
            .collect();
        spinning(&stack).map(|spin| spin.id().to_owned())
    }

    #[test]
    fn only_the_innermost_function_spins() {
        let spin = ("libc.so.6", Some("pthread_spin_lock@@GLIBC_2.34"));
        let own = ("app", Some("worker"));
        assert_eq!(spun_in(&[spin, own]).as_deref(), Some("pthread_spin_lock"));
        assert_eq!(spun_in(&[own, spin]), None);
        assert_eq!(spun_in(&[]), None);
    }

    #[test]
    fn a_stripped_runtime_waits_where_it_has_no_name() {
        let call = ("libgomp.so.1", Some("GOMP_barrier"));
        assert_eq!(
            spun_in(&[("libgomp.so.1", None), call]).as_deref(),
            Some("libgomp's waiting loop")
        );
        assert_eq!(spun_in(&[call, ("app", Some("main"))]), None);
        assert_eq!(spun_in(&[("app", None)]), None);
    }
}
