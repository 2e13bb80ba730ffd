//! Interpreters that are installed here: what is read of a program that runs is compared with what the program says of itself.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test stops at what it does not expect"
)]

mod bash;
mod node;
mod numbered;
mod perl;
mod php;
mod python;
mod python_locks;
mod python_tasks;
mod pythons;
mod ruby;
mod support;
