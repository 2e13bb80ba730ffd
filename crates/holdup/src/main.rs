//! holdup
fn main() {}
