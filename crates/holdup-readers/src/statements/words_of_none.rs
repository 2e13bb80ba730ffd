//! Words that say that there was no failure: what takes back a word of failure, and values that are none.

/// Words that take back what follows them: as one of the three words before.
pub(super) const TAKEN_BACK: &[&str] = &[
    "no", "0", "without", "zero", "not", "never", "non", "any", "if", "avoid", "prevent", "ignore",
    "ignoring", "isn't", "wasn't", "didn't", "don't", "when", "on", "log", "none", "nor",
];

/// Values that say that there was none.
pub(super) const NOTHING: &[&str] = &[
    "0",
    "0.0",
    "0.00",
    "0%",
    "nil",
    "null",
    "none",
    "false",
    "no",
    "off",
    "<nil>",
    "<none>",
    "-",
    "n/a",
    "undefined",
    "ok",
    "0x0",
    "success",
];
