//! Object storage with the recordings of many hosts.
//!
//! In: a store's URL and a window. Out: how its objects are called ([`layout`]), which segments a question needs, each once ([`listing`]), and their
//! bytes ([`store`]). A crate of its own, because two programs read stores: `holdup-fleet`, and the one that runs queries, which is built
//! apart from all others.

pub mod layout;
pub mod listing;
pub mod store;

/// What was asked for makes no sense: one sentence that says what would.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
