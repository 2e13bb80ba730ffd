//! Lines of `perf stat`, as text and with signs between the values.

use crate::formats::report::name_of;
use crate::numbers::decimal;

/// Digits behind the point of the time of an interval.
const INTERVAL_DIGITS: usize = 9;

/// Fields of a line that are looked at.
const MAX_FIELDS: usize = 12;

/// Signs that stand between values.
const SIGNS: [char; 3] = [',', ';', '\t'];

/// Counters by whose names a line without a heading is recognised.
const KNOWN: [&str; 17] = [
    "task-clock",
    "cpu-clock",
    "context-switches",
    "cpu-migrations",
    "page-faults",
    "major-faults",
    "minor-faults",
    "cycles",
    "instructions",
    "branches",
    "branch-misses",
    "cache-references",
    "cache-misses",
    "LLC-loads",
    "LLC-load-misses",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
];

/// What was counted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    Command(String),
    /// A process or thread that already ran.
    Task(String),
    Machine,
}

/// One counter.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counter {
    pub(super) name: String,
    /// Milliseconds of clocks, else a number; `None` where it was not counted.
    pub(super) value: Option<f64>,
    /// The end of its interval, in seconds from the beginning.
    pub(super) at_s: Option<f64>,
    /// Whether the line has more than a number and a name: a metric, or signs between its fields.
    marked: bool,
}

impl Counter {
    /// Whether no other tool prints such a line.
    pub(super) fn is_marked(&self) -> bool {
        self.marked && KNOWN.contains(&self.name.as_str())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    Heading(Subject),
    Elapsed(f64),
    User(f64),
    System(f64),
    Counter(Counter),
    /// A metric on a line of its own, which the counters above it make.
    Metric,
}

impl Line {
    pub(super) fn of(text: &str) -> Option<Line> {
        if let Some(rest) = text.strip_prefix(super::HEADING) {
            return Some(Line::Heading(Subject::of(rest)));
        }
        if let Some(line) = time(text) {
            return Some(line);
        }
        if text.starts_with('#') {
            // `# 0.42 insn per cycle` below what it is made of.
            return text.contains("per cycle").then_some(Line::Metric);
        }
        signed(text).or_else(|| row(text)).map(Line::Counter)
    }
}

impl Subject {
    /// `'make -j4' (3 runs):`, `process id '812':`, `'system wide':`, `'CPU(s) 0-3':`.
    fn of(rest: &str) -> Subject {
        let rest = rest.trim_end().trim_end_matches(':');
        let rest = match rest.rsplit_once(" (") {
            Some((before, behind)) if behind.ends_with("runs)") => before,
            _ => rest,
        };
        let bare = rest.trim().trim_matches('\'');
        if rest.starts_with("process id") || rest.starts_with("thread id") {
            let which = rest.replace('\'', "").replace(" id", "");
            return Subject::Task(name_of(&which));
        }
        match bare {
            "system wide" => Subject::Machine,
            bare if bare.starts_with("CPU(s) ") => Subject::Machine,
            bare => Subject::Command(name_of(bare)),
        }
    }
}

/// `12.5 seconds time elapsed`, `0.03 +- 0.01 seconds time elapsed  ( +-  2.43% )`, `1.5 seconds user`.
fn time(text: &str) -> Option<Line> {
    let (before, behind) = text.split_once(" seconds ")?;
    let first = before.split_whitespace().next()?;
    let seconds = decimal(first.as_bytes()).filter(|seconds| (0.0..1e10).contains(seconds))?;
    let behind = behind.trim();
    if behind.starts_with("time elapsed") {
        return Some(Line::Elapsed(seconds));
    }
    match behind.split_whitespace().next()? {
        "user" => Some(Line::User(seconds)),
        "sys" => Some(Line::System(seconds)),
        _ => None,
    }
}

/// The name of an event without its modifiers: `cycles:u`, `cpu_core/cycles/`, `cpu/cache-misses/u`.
fn event(word: &str) -> Option<String> {
    let inner = match word.split_once('/') {
        Some((_, rest)) => rest.split('/').next().unwrap_or_default(),
        None => word,
    };
    let name = inner.split(':').next().unwrap_or_default();
    let known = match name {
        "cs" => "context-switches",
        "faults" => "page-faults",
        "migrations" | "CPU-migrations" => "cpu-migrations",
        "cpu-cycles" => "cycles",
        "task-clock-msecs" => "task-clock",
        name => name,
    };
    let is_name = known.starts_with(|first: char| first.is_ascii_alphabetic());
    is_name.then(|| name_of(known))
}

/// A number as a locale writes it: with signs between its thousands, or behind its whole part.
fn figure(word: &str, is_count: bool) -> Option<f64> {
    let value = match is_count {
        true => {
            let digits: String = word.chars().filter(char::is_ascii_digit).collect();
            let others = word.chars().filter(|char| !char.is_ascii_digit());
            let only_signs = others.clone().all(|char| matches!(char, ',' | '.' | '\''));
            // With signs a count has groups of three; anything else has a fraction.
            let mut groups = word.split([',', '.', '\'']).skip(1);
            let whole = only_signs && groups.all(|group| group.len() == 3);
            match whole {
                true => digits.parse::<f64>().ok()?,
                false => decimal(word.as_bytes())?,
            }
        }
        false => match word.rfind(['.', ',']) {
            // The last sign stands before the fraction.
            Some(at) => {
                let (whole, part) = word.split_at_checked(at)?;
                let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
                format!("{whole}.{}", part.get(1..)?).parse::<f64>().ok()?
            }
            None => word.parse::<f64>().ok()?,
        },
    };
    (0.0..1e18).contains(&value).then_some(value)
}

/// The end of an interval: seconds with nine digits behind the point.
fn interval(word: &str) -> Option<f64> {
    let (whole, part) = word.split_once(['.', ','])?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(part) && part.len() == INTERVAL_DIGITS)
        .then(|| decimal(word.as_bytes()))
        .flatten()
}

/// A clock counts milliseconds with a fraction.
fn is_clock(name: &str) -> bool {
    matches!(name, "task-clock" | "cpu-clock")
}

/// `737.10,msec,cpu-clock,737109749,100.00,2.000,CPUs utilized`, with the interval or the CPU before it.
fn signed(text: &str) -> Option<Counter> {
    let sign = SIGNS.into_iter().find(|sign| text.matches(*sign).count() >= 3)?;
    let fields: Vec<&str> = text.split(sign).take(MAX_FIELDS).map(str::trim).collect();
    let at = fields
        .iter()
        .position(|field| event(field).is_some_and(|name| KNOWN.contains(&name.as_str())))?;
    let name = event(fields.get(at)?)?;
    let before = |back: usize| at.checked_sub(back).and_then(|place| fields.get(place)).copied();
    let is_value = |field: &str| field.starts_with('<') || decimal(field.as_bytes()).is_some();
    let place = [1, 2]
        .into_iter()
        .find(|back| before(*back).is_some_and(is_value))?;
    let word = before(place)?;
    let value = match word.starts_with("<not ") {
        true => None,
        false => Some(decimal(word.as_bytes()).filter(|value| (0.0..1e18).contains(value))?),
    };
    // The time that it was counted for stands behind it.
    let counted = fields
        .get(at + 1..)?
        .iter()
        .any(|field| field.parse::<u64>().is_ok());
    counted.then(|| Counter {
        name,
        value,
        at_s: fields
            .first()
            .filter(|_| at > place)
            .and_then(|first| interval(first)),
        marked: true,
    })
}

/// `1,234,567      cycles:u     #    2.95 GHz    ( +-  0.33% )`.
fn row(text: &str) -> Option<Counter> {
    let (figures, metric) = match text.split_once('#') {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    };
    // Deviations, and shares of the time.
    let figures = figures.split(" (").next().unwrap_or_default();
    let mut words: Vec<&str> = figures.split_whitespace().take(MAX_FIELDS).collect();
    let at_s = words
        .first()
        .and_then(|first| interval(first))
        .filter(|_| words.len() > 2);
    if at_s.is_some() {
        words.remove(0);
    }
    // `S0-D0-C0 2` of a core and its CPUs, `CPU0`.
    let of_core = words.first().is_some_and(|first| {
        let rest = first.trim_start_matches(|char: char| char.is_ascii_uppercase());
        rest.len() < first.len() && rest.starts_with(|char: char| char.is_ascii_digit())
    });
    if of_core {
        let is_cpu = words.first().is_some_and(|first| first.starts_with("CPU"));
        let names = if is_cpu { 1 } else { words.len().min(2) };
        words.drain(..names);
    }
    let marked = metric.is_some() || at_s.is_some() || figures.contains("<not ");
    let counter = |name: &str, value| {
        Some(Counter {
            name: event(name)?,
            value,
            at_s,
            marked,
        })
    };
    match words.as_slice() {
        ["<not", "counted>" | "supported>", name, ..] => counter(name, None),
        [value, "msec" | "msecs" | "Joules", name] => counter(name, Some(figure(value, false)?)),
        [value, name] => {
            let of_clock = event(name).is_some_and(|name| is_clock(&name));
            counter(name, Some(figure(value, !of_clock)?))
        }
        // Blanks between thousands.
        [digits @ .., name] if digits.len() >= 2 && is_spaced(digits) => {
            counter(name, Some(digits.concat().parse().ok()?))
        }
        _ => None,
    }
}

/// Whether words are the thousands of one number.
fn is_spaced(words: &[&str]) -> bool {
    let digits = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    words.iter().all(digits) && words.iter().skip(1).all(|word| word.len() == 3)
}
