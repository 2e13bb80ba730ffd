//! holdup-symbols
