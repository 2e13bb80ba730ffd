//! Times as people write them on a command line: lengths, sizes, and windows of what was recorded.
//!
//! In: text. Out: numbers, or one sentence that says what would be right. Every program of holdup reads them alike.

pub mod lengths;
mod window;

pub use window::Window;
