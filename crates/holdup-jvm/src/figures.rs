//! What the entries of a JVM's performance data mean: version, collector, heap, options, and what it has counted.
//!
//! In: a copy of that memory and its [`Index`]. Out: a [`Jvm`], and its [`JvmCounters`] at the instant of the copy. What a
//! version of the JVM does not tell stays unknown.

use crate::hsperfdata::Index;
use holdup_evidence::jvm::Figures;
use holdup_evidence::{Collector, Jvm, JvmCounters, Ns};

/// Collectors and generations that are looked for; every JVM has three at most.
const MOST_COLLECTORS: usize = 8;
/// Options kept.
const MOST_OPTIONS: usize = 64;
/// Options about seeds for random numbers.
const SECURITY: [&str; 2] = ["-Djava.security.egd=", "-Djava.security.properties="];
/// Bytes of a text from which the machine may have cut it (`-XX:PerfMaxStringConstLength`, less its end).
const CUT: usize = 1_023;
/// What the size of a heap is a multiple of, bytes.
const PAGE: u64 = 4_096;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// What the names of collectors begin with, in the words of JDK 8 to 25.
const COLLECTORS: [(&str, Collector); 12] = [
    ("Serial ", Collector::Serial),
    ("Copy", Collector::Serial),
    ("MSC", Collector::Serial),
    ("Parallel ", Collector::Parallel),
    ("PSScavenge", Collector::Parallel),
    ("PSParallelCompact", Collector::Parallel),
    ("CMS", Collector::Cms),
    ("PCopy", Collector::Cms),
    ("G1 ", Collector::G1),
    ("Z concurrent", Collector::Z),
    ("ZGC ", Collector::Z),
    ("Shenandoah", Collector::Shenandoah),
];

/// One copy of the memory, and where things are in it.
#[derive(Debug, Clone, Copy)]
pub struct Copy<'a> {
    /// Where things are.
    pub index: &'a Index,
    /// The copy.
    pub bytes: &'a [u8],
}

impl Copy<'_> {
    fn count(&self, name: &str) -> Option<u64> {
        self.index.count(self.bytes, name)
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = self.index.text(self.bytes, name)?;
        (!text.is_empty()).then_some(text)
    }

    /// The machine's ticks as nanoseconds.
    fn ticks(&self, name: &str) -> Option<Ns> {
        let frequency = self.count("sun.os.hrt.frequency").filter(|hertz| *hertz > 0)?;
        let ns = u128::from(self.count(name)?) * u128::from(SECOND) / u128::from(frequency);
        Ns::try_from(ns).ok()
    }

    /// Everything that does not change; counters as they are in this copy.
    #[must_use]
    pub fn jvm(&self, pid: u32) -> Jvm {
        let arguments = self.text("java.rt.vmArgs");
        let options = options(arguments.as_deref().unwrap_or_default());
        let collector = self.collector(&options);
        Jvm {
            pid,
            figures: Figures::Read,
            version: self.text("java.property.java.version"),
            name: self.text("java.property.java.vm.name"),
            vendor: self.text("java.property.java.vm.vendor"),
            collector,
            max_heap: self.max_heap(collector),
            main: self.text("sun.rt.javaCommand").as_deref().and_then(main),
            security: security(arguments.as_deref().unwrap_or_default()),
            options,
            uptime: self.ticks("sun.os.hrt.ticks"),
            before: self.counters(),
            after: self.counters(),
            ..Jvm::default()
        }
    }

    /// What it has counted so far.
    #[must_use]
    pub fn counters(&self) -> JvmCounters {
        let mut counters = JvmCounters {
            last_cause: self.cause(),
            safepoints: self.count("sun.rt.safepoints"),
            stopped: self.ticks("sun.rt.safepointTime"),
            reaching: self.ticks("sun.rt.safepointSyncTime"),
            classes: self.count("java.cls.loadedClasses"),
            shared_classes: self.count("java.cls.sharedLoadedClasses"),
            loading: self.ticks("sun.cls.time"),
            compiling: self.ticks("java.ci.totalTime"),
            ..JvmCounters::default()
        };
        for number in 0..MOST_COLLECTORS {
            let of = |what: &str| format!("sun.gc.collector.{number}.{what}");
            let Some(begun) = self.count(&of("invocations")) else {
                break;
            };
            let entered = self.count(&of("lastEntryTime")).unwrap_or(0);
            let left = self.count(&of("lastExitTime")).unwrap_or(0);
            // A collection is counted as it begins, and is reported here when it is over.
            let over = begun.saturating_sub(u64::from(entered > left));
            counters.collections = counters.collections.saturating_add(over);
            let took = self.ticks(&of("time")).unwrap_or(0);
            counters.collecting = counters.collecting.saturating_add(took);
        }
        counters
    }

    /// The cause of the last collection; while one goes on, its own is reported, and there is no last one.
    fn cause(&self) -> Option<String> {
        let mut causes = ["sun.gc.lastCause", "sun.gc.cause"]
            .iter()
            .filter_map(|name| self.text(name));
        causes.find(|cause| cause != "No GC")
    }

    fn collector(&self, options: &[String]) -> Option<Collector> {
        if options.iter().any(|option| option == "-XX:+UseEpsilonGC") {
            return Some(Collector::Epsilon);
        }
        let name = self.text("sun.gc.collector.0.name")?;
        let known = COLLECTORS.iter().find(|(begins, _)| name.starts_with(begins));
        known.map(|(_, collector)| *collector)
    }

    /// The largest that the heap may become: that of the generations together, but where each of them may have all of it.
    fn max_heap(&self, collector: Option<Collector>) -> Option<u64> {
        let generations: Vec<u64> = (0..2)
            .map_while(|number| self.count(&format!("sun.gc.generation.{number}.maxCapacity")))
            .collect();
        let greatest = generations.iter().max().copied()?;
        match collector {
            Some(Collector::Serial | Collector::Parallel | Collector::Cms) => Some(
                generations
                    .iter()
                    .fold(0, |sum: u64, one| sum.saturating_add(*one)),
            ),
            _ => Some(greatest),
        }
        // G1 adds some bytes to each of its generations, so that none is ever empty.
        .map(|heap| heap - heap % PAGE)
        .filter(|heap| *heap > 0)
    }
}

/// Those that begin with `-X`, each word for itself.
fn options(arguments: &str) -> Vec<String> {
    let words = arguments.split_whitespace().filter(|word| word.starts_with("-X"));
    words.take(MOST_OPTIONS).map(str::to_owned).collect()
}

/// Of the others those about random numbers' seeds; `None` where the machine may have cut the text.
fn security(arguments: &str) -> Option<Vec<String>> {
    let about = |word: &&str| SECURITY.iter().any(|option| word.starts_with(option));
    let words = arguments.split_whitespace().filter(about);
    (arguments.len() < CUT).then(|| words.take(MOST_OPTIONS).map(str::to_owned).collect())
}

/// The main class, module or archive, without what is passed to it.
fn main(command: &str) -> Option<String> {
    let first = command.split_whitespace().next()?;
    let name = first.rsplit('/').next().filter(|name| !name.is_empty());
    // A module's class comes after a slash too.
    let name = if first.ends_with(".jar") {
        name
    } else {
        Some(first)
    };
    name.map(str::to_owned)
}

#[cfg(test)]
mod tests;
