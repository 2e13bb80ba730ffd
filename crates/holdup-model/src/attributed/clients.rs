//! The clients that an idle server waits for, as the name of a resource.
//!
//! The name is made and read in this file, and nowhere else. Reports and recordings have it as text.

use std::fmt;

/// Before the address at which a server waits for a connection.
const CONNECTION: &str = "a client on ";

/// Before the address at which a server waits on a connection that it has accepted.
const REQUEST: &str = "the next request on ";

/// What an idle server waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AwaitedClients {
    /// A new connection to this listener: an address and port, or the path of a Unix socket.
    Connection(String),
    /// A request on a connection that was accepted here.
    Request(String),
}

impl AwaitedClients {
    /// Reads the name of a resource; `None` where it is of something else.
    #[must_use]
    pub fn read(name: &str) -> Option<AwaitedClients> {
        if let Some(at) = name.strip_prefix(CONNECTION) {
            return Some(AwaitedClients::Connection(at.to_owned()));
        }
        let at = name.strip_prefix(REQUEST)?;
        Some(AwaitedClients::Request(at.to_owned()))
    }

    /// Where the server waits for them.
    #[must_use]
    pub fn at(&self) -> &str {
        match self {
            AwaitedClients::Connection(at) | AwaitedClients::Request(at) => at,
        }
    }
}

impl fmt::Display for AwaitedClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AwaitedClients::Connection(at) => write!(f, "{CONNECTION}{at}"),
            AwaitedClients::Request(at) => write!(f, "{REQUEST}{at}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AwaitedClients;

    #[test]
    fn a_name_is_read_as_it_was_made() {
        for clients in [
            AwaitedClients::Connection("0.0.0.0:80".to_owned()),
            AwaitedClients::Request("/run/app.sock".to_owned()),
        ] {
            assert_eq!(AwaitedClients::read(&clients.to_string()), Some(clients));
        }
        assert_eq!(AwaitedClients::read("listening on 0.0.0.0:80"), None);
    }
}
