//! Names of the kernel's functions, for one observation or for many.
//!
//! The problem: the kernel prints its table anew for whoever reads it, which takes 50 ms, and a recorder begins an observation each
//! minute. The choice: it reads the table once, its children have that of their parent, and it is read again when modules came or went, and
//! each hour, for BPF programs of others come and go as well. Whoever has none reads it while the programs are loaded, which takes longer. In: `/proc/kallsyms`. Out: names by address.

use holdup_evidence::NotMeasured;
use holdup_proc::Root;
use holdup_proc::root::text_if_there;
use holdup_symbols::KernelSymbols;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a table is good.
const GOOD_FOR: Duration = Duration::from_secs(3_600);

/// A table that is kept.
#[derive(Debug, Clone)]
pub struct KernelNames {
    symbols: Arc<KernelSymbols>,
    /// The kernel's modules then.
    modules: String,
    read: Instant,
}

impl KernelNames {
    /// The table that was kept, if it still is good, or a new one; `None` where there is none to be had.
    pub fn fresh(kept: Option<KernelNames>) -> Option<KernelNames> {
        let root = Root::system();
        let modules = text_if_there(&root.proc.join("modules")).unwrap_or_default();
        let good = |kept: &KernelNames| kept.read.elapsed() < GOOD_FOR && kept.modules == modules;
        if let Some(kept) = kept.filter(good) {
            return Some(kept);
        }
        Some(KernelNames {
            symbols: read(&root).ok()?,
            modules,
            read: Instant::now(),
        })
    }
}

/// A table that will be there.
pub(super) enum Reading {
    Kept(Arc<KernelSymbols>),
    /// By a thread of its own.
    Under(JoinHandle<Result<Arc<KernelSymbols>, String>>),
    Done(Result<Arc<KernelSymbols>, String>),
}

impl Reading {
    /// Reads it, unless one was kept.
    pub(super) fn begin(kept: Option<KernelNames>) -> Reading {
        match kept {
            Some(kept) => Reading::Kept(kept.symbols),
            None => Reading::anew(),
        }
    }

    /// Beside the programs' loading where there may be any. Whoever may not load them may be limited in threads too, of which CMD needs one.
    fn anew() -> Reading {
        if !nix::unistd::geteuid().is_root() {
            return Reading::Done(read(&Root::system()));
        }
        let thread = std::thread::Builder::new().spawn(|| read(&Root::system()));
        thread.map_or_else(|_| Reading::Done(read(&Root::system())), Reading::Under)
    }

    /// What it says. Without it no wait can be known by the function it sleeps in.
    pub(super) fn end(self, not_measured: &mut Vec<NotMeasured>) -> Option<Arc<KernelSymbols>> {
        let read = match self {
            Reading::Kept(symbols) => Ok(symbols),
            Reading::Done(read) => read,
            Reading::Under(thread) => thread
                .join()
                .unwrap_or_else(|_| Err("reading them failed".to_owned())),
        };
        if let Err(why) = &read {
            not_measured.push(NotMeasured {
                what: "which kernel function a thread slept in".into(),
                why: why.clone(),
                fix: "sysctl kernel.kptr_restrict=1, and run as root".into(),
            });
        }
        read.ok()
    }
}

/// Why not, in words.
fn read(root: &Root) -> Result<Arc<KernelSymbols>, String> {
    match KernelSymbols::load(root.proc.join("kallsyms")) {
        Ok(symbols) if !symbols.hidden() => Ok(Arc::new(symbols)),
        Ok(_) => Err("the kernel hides its addresses (kernel.kptr_restrict)".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{GOOD_FOR, KernelNames};
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn a_table_is_read_again_when_modules_have_changed_or_it_is_old() {
        let first = KernelNames::fresh(None).unwrap();
        let same = KernelNames::fresh(Some(first.clone())).unwrap();
        assert!(Arc::ptr_eq(&first.symbols, &same.symbols));
        let other_modules = KernelNames {
            modules: "one that is gone 1 0 - Live 0x0".to_owned(),
            ..first.clone()
        };
        let new = KernelNames::fresh(Some(other_modules)).unwrap();
        assert!(!Arc::ptr_eq(&first.symbols, &new.symbols));
        if let Some(long_ago) = Instant::now().checked_sub(GOOD_FOR) {
            let old = KernelNames {
                read: long_ago,
                ..first.clone()
            };
            let new = KernelNames::fresh(Some(old)).unwrap();
            assert!(!Arc::ptr_eq(&first.symbols, &new.symbols));
        }
    }
}
