//! holdup-proc
