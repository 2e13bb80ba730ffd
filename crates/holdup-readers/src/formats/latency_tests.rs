//! What tests of a machine's own delays print: the kernel's tracers timerlat, osnoise and hwlat, the latency tracers (`irqsoff`,
//! `preemptoff`, `wakeup`), and cyclictest.
//!
//! In: a line for each measurement. Out: a statement for the longest delay of each, with the CPU and, where the trace names it, what ran
//! instead. Source: the kernel's documentation of its tracers, "OSNOISE Tracer" and "Timerlat tracer".

use crate::find::find;
use crate::format::{Family, Format, Sureness, TextReader, Understood};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("latency-test", Family::Host, recognise)
    .about("latency tracers and cyclictest")
    .openings(&["# tracer: timerlat", "# tracer: osnoise", "# tracer: hwlat"]);

/// A delay from which anything that has to be in time is late; kernels made for that stay below a tenth of it.
const LATE: Ns = 1_000_000;

/// The part of a CPU's time from which noise is much.
const NOISY: f64 = 0.01;

/// Digits of the numbers in a row of cyclictest's histogram.
const HISTOGRAM_DIGITS: usize = 6;

/// CPUs that are kept apart.
const CPUS: usize = 4_096;

/// Bytes of a name that are kept.
const NAME: usize = 80;

fn recognise(head: &[u8]) -> Sureness {
    let known: [&[u8]; 9] = [
        b"# Max Latencies: ",
        b"# Histogram\n000000 ",
        b"# tracer: timerlat",
        b"# tracer: osnoise",
        b"# tracer: hwlat",
        b" timer_latency ",
        b"inner/outer(us)",
        b" latency trace v1.1.5 on ",
        b" Act: ",
    ];
    let cyclictest =
        find(head, b" Act: ").is_none() || find(head, b" Max: ").is_some() && find(head, b"T: ").is_some();
    Sureness::certain_if(cyclictest && known.iter().any(|name| find(head, name).is_some()))
}

/// What ran instead, and for how long.
#[derive(Debug, Clone, Default)]
struct Noise {
    cpu: String,
    what: String,
    ns: Ns,
}

/// The longest that was seen of one kind of test.
#[derive(Debug, Clone)]
struct Longest {
    test: Test,
    ns: Ns,
    share: Option<f64>,
    text: String,
    quote: Quote,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Timer,
    Noise,
    Hardware,
    Section,
    Cyclic,
}

#[derive(Debug, Default)]
struct Reader {
    longest: Vec<Longest>,
    /// The longest since the last measurement of its CPU.
    noise: Vec<Noise>,
    /// The latency tracer's name, and the longest that it says it found.
    section: String,
    /// The mean of each thread of cyclictest, microseconds.
    means: Vec<u64>,
}

impl Reader {
    fn put(&mut self, one: Longest) {
        match self.longest.iter_mut().find(|known| known.test == one.test) {
            Some(known) if known.ns < one.ns => *known = one,
            Some(_) => {}
            None => self.longest.push(one),
        }
    }

    /// `…: #29800 context thread timer_latency 859978 ns`.
    fn timer(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let (before, behind) = text.split_once(" timer_latency ")?;
        let mut words = behind.split_whitespace();
        let ns: Ns = words.next()?.parse().ok()?;
        let context = before.rsplit(' ').next().unwrap_or_default();
        let cpu = cpu(text)?;
        let ran = self.noise.iter().position(|noise| noise.cpu == cpu);
        let ran = ran.map(|at| self.noise.swap_remove(at));
        let instead = ran
            .filter(|noise| noise.ns.saturating_mul(4) >= ns)
            .map_or_else(String::new, |noise| {
                format!("; {} ran for {} of that", noise.what, duration(noise.ns))
            });
        let text = format!(
            "CPU {cpu}: a timer's {context} ran {} late{instead}",
            duration(ns)
        );
        self.put(Longest {
            test: Test::Timer,
            ns,
            share: None,
            text,
            quote: out.here(),
        });
        Some(())
    }

    /// `…: thread_noise:   insmod:1026 start 200.202586933 duration 838681 ns`.
    fn noise(&mut self, text: &str) -> Option<()> {
        let (before, behind) = text.split_once("_noise:")?;
        let kind = before.rsplit(' ').next().unwrap_or_default();
        let mut words = behind.split_whitespace();
        let name = words.next()?;
        let ns: Ns = words
            .skip_while(|word| *word != "duration")
            .nth(1)?
            .parse()
            .ok()?;
        let cpu = cpu(text)?;
        let what: String = match kind {
            "thread" => name.to_owned(),
            kind => format!("{kind} {name}"),
        };
        let what = what.chars().take(NAME).collect();
        let room = self.noise.len() < CPUS;
        match self.noise.iter_mut().find(|noise| noise.cpu == cpu) {
            Some(known) if known.ns < ns => (known.what, known.ns) = (what, ns),
            Some(_) => {}
            None if room => self.noise.push(Noise { cpu, what, ns }),
            None => {}
        }
        Some(())
    }

    /// `<...>-861 [002] .... 81.638193: 1000000  5675  99.43250  202   6   0  1013  25  21`: microseconds, and counts by source.
    fn osnoise(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let (_, behind) = text.split_once(": ")?;
        let words: Vec<f64> = behind
            .split_whitespace()
            .map(|word| crate::numbers::decimal(word.as_bytes()))
            .collect::<Option<_>>()?;
        let [ran, noise, _, single, sources @ ..] = words.as_slice() else {
            return None;
        };
        let [hardware, nmi, irq, softirq, thread] = sources else {
            return None;
        };
        let cpu = cpu(text)?;
        let us = |us: f64| (us.clamp(0.0, 1e12) * 1e3) as Ns;
        let share = noise / ran.max(1.0);
        let text = format!(
            "CPU {cpu}: other things ran for {} of {}, {:.1} % (from {:.0} % on it is much), the longest at a time {}: hardware {hardware:.0}, NMIs \
             {nmi:.0}, interrupts {irq:.0}, softirqs {softirq:.0}, threads {thread:.0} times",
            duration(us(*noise)),
            duration(us(*ran)),
            share * 100.0,
            NOISY * 100.0,
            duration(us(*single)),
        );
        self.put(Longest {
            test: Test::Noise,
            ns: us(*noise),
            share: Some(share),
            text,
            quote: out.here(),
        });
        Some(())
    }

    /// `… #2     inner/outer(us):   1612/9    ts:1581527494.889008092 count:1`.
    fn hardware(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let (_, behind) = text.split_once("inner/outer(us):")?;
        let (inner, outer) = behind.split_whitespace().next()?.split_once('/')?;
        let us: u64 = inner.parse::<u64>().ok()?.max(outer.parse().ok()?);
        let ns = us.checked_mul(1_000)?;
        let text = format!(
            "CPU {}: the hardware or firmware took the CPU for {}, with interrupts off (an SMI, or the host of a virtual machine)",
            cpu(text)?,
            duration(ns)
        );
        self.put(Longest {
            test: Test::Hardware,
            ns,
            share: None,
            text,
            quote: out.here(),
        });
        Some(())
    }

    /// `# latency: 16123 us, …`, and below it `#  => started at: run_timer_softirq`.
    fn section(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let text = text.strip_prefix('#')?.trim();
        if let Some((name, _)) = text.split_once(" latency trace v") {
            self.section = name.chars().take(NAME).collect();
            return Some(());
        }
        if let Some(rest) = text.strip_prefix("latency: ") {
            let us: u64 = rest.split_whitespace().next()?.parse().ok()?;
            let ns = us.checked_mul(1_000)?;
            let test = if self.section.is_empty() {
                "latency"
            } else {
                &self.section
            };
            let text = format!("{test}: the longest section took {}", duration(ns));
            self.put(Longest {
                test: Test::Section,
                ns,
                share: None,
                text,
                quote: out.here(),
            });
            return Some(());
        }
        let rest = text
            .strip_prefix("| task: ")
            .map(|task| format!(", in {}", task.split(" (").next().unwrap_or(task)));
        let rest = rest.or_else(|| {
            text.strip_prefix("=> started at:")
                .map(|at| format!(", from {}", at.trim()))
        });
        let rest = rest.or_else(|| {
            text.strip_prefix("=> ended at:")
                .map(|at| format!(" to {}", at.trim()))
        })?;
        let section = self
            .longest
            .iter_mut()
            .find(|known| known.test == Test::Section)?;
        if section.text.len() < 4 * NAME {
            section.text.extend(rest.chars().take(NAME));
        }
        Some(())
    }

    /// `T: 1 ( 4393) P:95 I:1500 C:  66648 Min:      2 Act:    5 Avg:    5 Max:    8721`: microseconds.
    fn cyclic(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let rest = text.strip_prefix("T:")?;
        let thread = rest.split_whitespace().next()?;
        let after = |name: &str| {
            let (_, value) = rest.split_once(name)?;
            value.split_whitespace().next()?.parse::<u64>().ok()
        };
        let (most, mean) = (
            after("Max:")?.checked_mul(1_000)?,
            after("Avg:")?.checked_mul(1_000)?,
        );
        let thread: String = thread.chars().take(NAME).collect();
        self.woke(&thread, most, Some(mean), out.here());
        Some(())
    }

    /// The sums of cyclictest's histogram, microseconds of each thread: `# Max Latencies: 00012 00471`.
    fn sums(&mut self, text: &str, out: &Out<'_>) -> Option<()> {
        let (name, rest) = text.strip_prefix('#')?.trim().split_once(" Latencies:")?;
        let values: Vec<u64> = rest
            .split_whitespace()
            .take(CPUS)
            .map_while(|word| crate::numbers::whole(word.as_bytes()))
            .collect();
        if name == "Avg" {
            self.means = values;
            return Some(());
        }
        if name != "Max" {
            return Some(());
        }
        let (thread, most) = values.iter().enumerate().max_by_key(|(_, most)| **most)?;
        let mean = self.means.get(thread).and_then(|mean| mean.checked_mul(1_000));
        self.woke(&thread.to_string(), most.checked_mul(1_000)?, mean, out.here());
        Some(())
    }

    /// How late a thread of cyclictest woke. With `-a`, `-S` and `--smp` the threads are numbered as the CPUs.
    fn woke(&mut self, thread: &str, most: Ns, mean: Option<Ns>, quote: Quote) {
        let mean = mean.map_or_else(String::new, |mean| format!(", {} at the mean", duration(mean)));
        let text = format!(
            "thread {thread} (of CPU {thread} where each CPU has one) woke up to {} late{mean}",
            duration(most)
        );
        self.put(Longest {
            test: Test::Cyclic,
            ns: most,
            share: None,
            text,
            quote,
        });
    }
}

/// A row of cyclictest's histogram: microseconds, and how often each thread woke so late: `000004 000120\t000007`.
fn is_bucket(text: &str) -> bool {
    let number =
        |word: &str| word.len() >= HISTOGRAM_DIGITS && word.bytes().all(|byte| byte.is_ascii_digit());
    text.split_whitespace().count() > 1 && text.split_whitespace().all(number)
}

/// The CPU of a line of a trace: `[007]`.
fn cpu(text: &str) -> Option<String> {
    text.split('[').skip(1).find_map(|rest| {
        let number: u32 = rest.split_once(']')?.0.parse().ok()?;
        Some(number.to_string())
    })
}

impl TextReader for Reader {
    fn text(&mut self, text: &str, out: &mut Out<'_>) -> Understood {
        let known = self
            .timer(text, out)
            .or_else(|| self.noise(text))
            .or_else(|| self.hardware(text, out))
            .or_else(|| self.section(text, out))
            .or_else(|| self.cyclic(text, out))
            .or_else(|| self.sums(text, out))
            .or_else(|| self.osnoise(text, out));
        match known {
            Some(()) => Understood::Evidence,
            None if text.starts_with('#')
                || text.starts_with("=>")
                || text.contains("<stack trace>")
                || is_bucket(text) =>
            {
                Understood::Ignorable
            }
            None => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        for one in std::mem::take(&mut self.longest) {
            let much = one.share.map_or(one.ns >= LATE, |share| share >= NOISY);
            let kind = if much {
                StatementKind::Stalled
            } else {
                StatementKind::WithinNorm
            };
            let norm = match one.share {
                None => format!(" (from {} on it is late)", duration(LATE)),
                Some(_) => String::new(),
            };
            let mut told = statements::one(kind, Some(one.ns), one.quote, format!("{}{norm}", one.text));
            told.share = one.share;
            out.statement(told);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Statement, StatementKind};

    fn of(text: &str) -> Vec<Statement> {
        read_text("t", text.as_bytes()).observed.statements
    }

    #[test]
    fn a_late_timer_is_told_with_what_ran_instead() {
        let text = "# tracer: timerlat\n          insmod-1026    [007] dN.h3..   200.202947: irq_noise: local_timer:236 start 200.2 duration 7318 ns\n\
            insmod-1026    [007] d...3..   200.203444: thread_noise:   insmod:1026 start 200.202586933 duration 1838681 ns\n\
            timerlat/7-1001    [007] .......   200.203445: #29800 context thread timer_latency    1859978 ns\n";
        let found = of(text);
        assert_eq!(found[0].kind, StatementKind::Stalled);
        assert_eq!(
            found[0].text,
            "CPU 7: a timer's thread ran 1.9 ms late; insmod:1026 ran for 1.8 ms of that (from 1.0 ms on it is late)"
        );
        let quiet = text.replace("1859978", "11978").replace("1838681", "1000");
        assert_eq!(of(&quiet)[0].kind, StatementKind::WithinNorm);
    }

    #[test]
    fn the_noisiest_cpu_is_told_by_its_part() {
        let text = "# tracer: osnoise\n   <...>-859  [000] ....    81.637220: 1000000   190  99.98100   9   18   0   1007   18   1\n   \
            <...>-861  [002] ....    81.638193: 1000000   256750  74.32500   20200   6   0   1013   25   21\n";
        let found = of(text);
        assert_eq!(found[0].kind, StatementKind::Stalled);
        assert!(
            found[0]
                .text
                .starts_with("CPU 2: other things ran for 257 ms of 1.00 s, 25.7 %"),
            "{}",
            found[0].text
        );
        assert_eq!(
            of(&text.replace("256750", "250"))[0].kind,
            StatementKind::WithinNorm
        );
    }

    #[test]
    fn other_tests_of_delays() {
        let cyclic = "T: 0 ( 4392) P:95 I:1000 C: 100000 Min:      2 Act:    4 Avg:    4 Max:      19\n\
            T: 1 ( 4393) P:95 I:1500 C:  66648 Min:      2 Act:    5 Avg:    5 Max:    8721\n";
        assert_eq!(
            of(cyclic)[0].text,
            "thread 1 (of CPU 1 where each CPU has one) woke up to 8.7 ms late, 5.0 \u{b5}s at the mean (from 1.0 ms on it is late)"
        );
        let sums = "# Total: 000090000 000089981\n# Min Latencies: 00002 00003\n# Avg Latencies: 00005 00006\n# Max Latencies: 00031 04217\n\
            # Histogram Overflows: 00000 00004\n";
        for histogram in [
            sums.to_owned(),
            format!("# Histogram\n000000 000000\t000000\n000003 001200\t000007\n{sums}"),
        ] {
            let reading = read_text("t", histogram.as_bytes());
            assert_eq!(reading.accounts[0].not_understood, 0);
            assert_eq!(
                reading.texts(),
                [
                    "thread 1 (of CPU 1 where each CPU has one) woke up to 4.2 ms late, 6.0 \u{b5}s at the mean (from 1.0 ms on it is late)"
                ]
            );
        }
        let hwlat = "# tracer: hwlat\n<...>-1729  [004] d...   689.556542: #2     inner/outer(us):   1612/9    ts:1581527494.889008092 count:1\n";
        assert!(
            of(hwlat)[0]
                .text
                .starts_with("CPU 4: the hardware or firmware took the CPU for 1.6 ms")
        );
        let irqsoff = "# tracer: irqsoff\n#\n# irqsoff latency trace v1.1.5 on 3.8.0-test+\n# latency: 16123 us, #4/4, CPU#0 | (M:preempt)\n\
            #    | task: swapper/0-0 (uid:0 nice:0 policy:0 rt_prio:0)\n#  => started at: run_timer_softirq\n#  => ended at:   run_timer_softirq\n  \
            <idle>-0       0d.s2    0us+: _raw_spin_lock_irq <-run_timer_softirq\n";
        assert_eq!(
            of(irqsoff)[0].text,
            "irqsoff: the longest section took 16.1 ms, in swapper/0-0, from run_timer_softirq to run_timer_softirq (from 1.0 ms on it is late)"
        );
    }
}
