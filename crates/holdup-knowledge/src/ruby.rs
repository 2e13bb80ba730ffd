//! Files of Ruby code: whose they are. Methods of Ruby that wait: for what.
//!
//! In: the path that a method's code names. Out: whether it belongs to Ruby, its standard library or an installed gem, and not to the
//! program. In: a stack. Out: what a thread waits for by Ruby's own means, if nothing but the interpreter and the C library is between the
//! innermost method and the kernel.

use crate::user_code::of_c_library;
use holdup_evidence::{Frame, Language};

/// What a method that is written in C waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Time to pass.
    Time,
    /// A `Mutex` that another thread has.
    Mutex,
    /// A `Monitor` that another thread has.
    Monitor,
    /// The end of a thread.
    ThreadEnd,
    /// A `ConditionVariable`.
    Condition,
    /// Something in a `Queue`.
    Item,
    /// Room in a `SizedQueue`.
    Room,
    /// Another thread that wakes it.
    Wakeup,
    /// The end of a child process.
    Child,
}

impl Awaited {
    /// In words; time has none.
    #[must_use]
    pub fn words(self) -> Option<&'static str> {
        Some(match self {
            Awaited::Time => return None,
            Awaited::Mutex => "a Mutex of Ruby",
            Awaited::Monitor => "a Monitor of Ruby",
            Awaited::ThreadEnd => "the end of a thread of Ruby",
            Awaited::Condition => "a ConditionVariable of Ruby",
            Awaited::Item => "something in a Queue of Ruby",
            Awaited::Room => "room in a SizedQueue of Ruby",
            Awaited::Wakeup => "another thread of Ruby to wake it",
            Awaited::Child => "a child process",
        })
    }

    /// Whether it is a lock, which another thread has.
    #[must_use]
    pub fn is_lock(self) -> bool {
        matches!(self, Awaited::Mutex | Awaited::Monitor)
    }
}

/// Methods of `Kernel`, `Process`, `Thread`, `Mutex`, `Monitor`, `Queue` and `SizedQueue` that wait.
const WAITS: [(&str, Awaited); 20] = [
    ("sleep", Awaited::Time),
    ("lock", Awaited::Mutex),
    ("synchronize", Awaited::Mutex),
    ("enter", Awaited::Monitor),
    ("mon_enter", Awaited::Monitor),
    ("mon_synchronize", Awaited::Monitor),
    ("join", Awaited::ThreadEnd),
    ("value", Awaited::ThreadEnd),
    ("wait", Awaited::Condition),
    ("pop", Awaited::Item),
    ("shift", Awaited::Item),
    ("deq", Awaited::Item),
    ("push", Awaited::Room),
    ("enq", Awaited::Room),
    ("<<", Awaited::Room),
    ("stop", Awaited::Wakeup),
    ("waitpid", Awaited::Child),
    ("wait2", Awaited::Child),
    ("waitpid2", Awaited::Child),
    ("system", Awaited::Child),
];

/// The method by which a condition variable gives its mutex back and sleeps.
const GIVES_BACK: &str = "sleep";

/// The standard library's module that has monitors.
const MONITORS: &str = "monitor.so";

/// Code that is part of the interpreter's binary: `<internal:kernel>`.
const BUILT_IN: &str = "<internal:";

/// Folders of installed code, below which everything is: of the distribution, and of gems that it has packaged.
const INSTALLED: [&str; 3] = ["vendor_ruby", "site_ruby", "rubygems-integration"];

/// The folder in which each gem has one: `gems/rack-3.0.8`. A gem from a repository is in `bundler/gems/rack-1a2b3c`.
const GEMS: &str = "gems";

/// The folder in which the standard library has one for each version: `ruby/3.1.0`.
const LIBRARY: &str = "ruby";

/// What a thread waits for by Ruby's own means; `None` where another's wait is innermost, or no frame of Ruby is there.
#[must_use]
pub fn awaited(stack: &[Frame]) -> Option<Awaited> {
    let inner = stack.iter().position(|frame| frame.language == Language::Ruby)?;
    let module = stack.get(inner)?.module.as_deref();
    // An extension's own wait is not Ruby's.
    let own = |frame: &Frame| {
        let of = frame.module.as_deref();
        of_c_library(frame) || of == module || of == Some(MONITORS)
    };
    if !stack.iter().take(inner).all(own) {
        return None;
    }
    let mut methods = stack
        .iter()
        .skip(inner)
        .filter(|frame| frame.language == Language::Ruby)
        .take_while(|frame| frame.file.is_none())
        .map(|frame| frame.symbol.as_deref().unwrap_or_default());
    let known = |name: &str| WAITS.iter().find(|(method, _)| *method == name);
    let (method, awaited) = *known(methods.next()?)?;
    // What was called for time to pass may be a part of a longer wait.
    let outer = methods.next().and_then(known).map(|(_, outer)| *outer);
    Some(match outer {
        // A condition variable sleeps by the method of its mutex; `Process.wait` has the same name, and calls none.
        _ if awaited == Awaited::Condition => Awaited::Child,
        Some(outer) if method == GIVES_BACK && outer != Awaited::Time && !outer.is_lock() => outer,
        _ => awaited,
    })
}

/// Whether a file is of Ruby, its standard library or an installed gem. Functions that are written in C have no file.
#[must_use]
pub fn of_library(file: &str) -> bool {
    let folders = || file.rsplit('/').skip(1);
    let pairs = || folders().zip(folders().skip(1));
    file.is_empty()
        || file.starts_with(BUILT_IN)
        || folders().any(|folder| INSTALLED.contains(&folder))
        || pairs().any(|(folder, above)| match above {
            GEMS => folder.contains('-'),
            LIBRARY => is_version(folder),
            _ => false,
        })
}

/// `3.1.0`.
fn is_version(folder: &str) -> bool {
    let mut numbers = folder.split('.');
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.clone().count() == 3 && numbers.all(number)
}

#[cfg(test)]
mod tests {
    use super::{Awaited, awaited, of_library};
    use crate::user_code::{Primitive, primitive};
    use holdup_evidence::{Frame, Language};

    #[test]
    fn what_ruby_waits_for_is_not_the_condition_of_the_c_library_below_it() {
        let native = |module: &str, symbol: &str| Frame {
            symbol: Some(symbol.to_owned()),
            module: Some(module.to_owned()),
            ..Frame::default()
        };
        let stack = |method: &str| {
            let ruby = Frame {
                language: Language::Ruby,
                ..native("libruby-3.1.so.3.1.2", method)
            };
            [native("libc.so.6", "pthread_cond_wait"), ruby]
        };
        for (method, waits, of) in [
            ("sleep", Awaited::Time, None),
            ("synchronize", Awaited::Mutex, Some(Primitive::Mutex)),
            ("join", Awaited::ThreadEnd, Some(Primitive::ThreadEnd)),
            ("pop", Awaited::Item, Some(Primitive::Queue)),
        ] {
            assert_eq!(awaited(&stack(method)), Some(waits));
            assert_eq!(primitive(&stack(method)), of);
        }
        assert_eq!(awaited(&stack("each")), None);
        assert_eq!(primitive(&stack("each")), Some(Primitive::Condition));
    }

    #[test]
    fn ruby_its_library_and_gems_are_not_the_program() {
        for file in [
            "",
            "<internal:kernel>",
            "/usr/lib/ruby/3.1.0/open3.rb",
            "/usr/local/lib/ruby/3.4.0/net/http.rb",
            "/usr/lib/ruby/vendor_ruby/rubygems.rb",
            "/usr/local/lib/ruby/site_ruby/3.1.0/rubygems.rb",
            "/usr/share/rubygems-integration/all/gems/rake-13.0.6/lib/rake.rb",
            "/var/lib/gems/3.1.0/gems/puma-6.4.0/lib/puma/server.rb",
            "/srv/shop/vendor/bundle/ruby/3.1.0/gems/pg-1.5.4/lib/pg.rb",
            "/usr/local/bundle/bundler/gems/rails-3f1c2ab9/activerecord/lib/active_record.rb",
        ] {
            assert!(of_library(file), "{file}");
        }
        for file in [
            "/srv/shop/prices.rb",
            "/srv/ruby/app.rb",
            "/srv/ruby/1.2/app.rb",
            "/srv/shop/gems/prices.rb",
            "/srv/gems.rb",
            "(eval)",
            "-e",
            "prices.rb",
        ] {
            assert!(!of_library(file), "{file}");
        }
    }
}
