//! holdup-bpf
