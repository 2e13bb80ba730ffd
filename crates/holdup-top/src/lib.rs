//! The screen of `holdup top`.
//!
//! In: [`Look`](holdup_views::Look)s and what the person presses, as [`Event`]s. Out: the next [`State`], what the program has to do for it
//! ([`Effect`]), and the screen, drawn into a buffer of cells ([`draw`]). Nothing here reads a clock, a terminal or a file, so every screen
//! is tested without any. Words on waits are `holdup-views`' own; those of the screen itself are in [`lines`].

mod draw;
mod lines;
mod moments;
mod state;
#[cfg(test)]
mod tests;

pub use draw::{Paper, draw};
pub use moments::Moments;
pub use state::{Effect, Event, Key, Order, State};
