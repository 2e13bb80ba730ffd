//! Of a whole machine: to whom its waits lead.
//!
//! The problem: on a machine with a hundred threads a fault of one to three of them is a small share of all threads' time, and most of
//! that time is ordinary waiting. A wait for another thread is not an answer but a pointer. The choice: each wait is followed to where
//! the time went ([`path`]), and the time is added up there ([`roots`]). What counts is how long somebody waited behind a root, and
//! never its share of all threads' time. In: attributed waits. Out: the roots that others waited behind for long enough, worst first.

pub(crate) mod behind;
pub(crate) mod crowd;
pub(crate) mod ends;
mod files;
pub(crate) mod names;
pub(crate) mod onward;
pub(crate) mod path;
mod room;
pub(crate) mod roots;
pub(crate) mod seen;
pub(crate) mod sessions;
mod weight;
