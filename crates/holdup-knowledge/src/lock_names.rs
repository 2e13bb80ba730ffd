//! Functions that are about a lock, by their names: libraries for lock files and embedded databases have such names in all languages.
//!
//! The problem: who tries a lock without waiting, sleeps and tries again is, to the kernel, one who sleeps. The choice: the word for a lock in the name
//! of the function that sleeps, or of one that called it, says that this is what the sleep is for; which lock it is, the kernel's table tells.

/// Words for a lock, or for asking for one, as names have them.
const WORDS: [&str; 8] = [
    "lock", "flock", "lockf", "trylock", "filelock", "lockfile", "getlock", "dotlock",
];

/// Whether a function's name, with its class and package, has the word for a lock: `go.etcd.io/bbolt.flock`, `BaseFileLock.acquire`.
#[must_use]
pub fn is_about_a_lock(symbol: &str) -> bool {
    words(symbol).any(|word| WORDS.contains(&word.to_ascii_lowercase().as_str()))
}

/// The words of a name: what is written with capitals or with signs in between.
fn words(symbol: &str) -> impl Iterator<Item = &str> {
    let parts = symbol.split(|sign: char| !sign.is_ascii_alphanumeric());
    parts.flat_map(|part| {
        let mut begin = 0;
        let mut words = Vec::new();
        let letters = part.as_bytes();
        for at in 1..letters.len() {
            let (before, here) = (letters[at - 1], letters[at]);
            let next_small = letters.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            let starts = here.is_ascii_uppercase()
                && (before.is_ascii_lowercase() || before.is_ascii_digit() || next_small);
            if starts {
                words.push(&part[begin..at]);
                begin = at;
            }
        }
        words.push(&part[begin..]);
        words
    })
}

#[cfg(test)]
mod tests {
    use super::is_about_a_lock;

    #[test]
    fn a_lock_is_a_word_of_its_own_in_a_name() {
        for symbol in [
            "go.etcd.io/bbolt.flock",
            "github.com/gofrs/flock.(*Flock).tryCtx",
            "BaseFileLock.acquire",
            "org.apache.lucene.store.SleepingLockWrapper.obtainLock",
            "acquire_lock",
            "IOLock::wait",
            "<shop::LockFile as core::ops::Drop>::drop",
        ] {
            assert!(is_about_a_lock(symbol), "{symbol}");
        }
        for symbol in [
            "clock_nanosleep",
            "main.blockUntil",
            "runtime.goparkunlock",
            "Unlocker.run",
            "DeadlockError",
            "",
        ] {
            assert!(!is_about_a_lock(symbol), "{symbol}");
        }
    }
}
