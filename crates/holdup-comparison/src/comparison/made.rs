//! What was made anew in a run: what it is, and how a comparison names it.

use std::fmt;

/// What was made, and where that was counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Made {
    /// What.
    pub what: Thing,
    /// Whether its lines in a log were counted: they tell of the whole log, and not of one unit of work.
    pub in_log: bool,
}

/// Things that are made anew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// Threads.
    Threads,
    /// Processes.
    Processes,
    /// Connections to a peer.
    Connections,
    /// TLS handshakes that made new keys.
    FullHandshakes,
    /// TLS handshakes that took up an earlier session.
    ResumedHandshakes,
    /// TLS handshakes, however they ended.
    HandshakesBegun,
    /// TLS handshakes in which the client had an earlier session to take up.
    HandshakesOffering,
    /// Certificates that a server sent.
    Certificates,
    /// Alerts that end a TLS connection.
    FatalAlerts,
    /// Threads in a state, in words.
    ThreadsIn(&'static str),
    /// Calls, by name.
    Calls(String),
}

impl Thing {
    /// Whether it is better to have more of them.
    pub(super) fn is_good(&self) -> bool {
        matches!(self, Thing::ResumedHandshakes | Thing::HandshakesOffering)
    }

    /// How it is called in a few words, and how one of them is; `None` of what has no other name.
    pub(super) fn brief(&self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Thing::Threads => ("threads", "a thread made"),
            Thing::Processes => ("processes", "a process started"),
            Thing::Connections => ("connections", "a connection made"),
            Thing::FullHandshakes => ("full TLS handshakes", "a full TLS handshake"),
            Thing::ResumedHandshakes => ("TLS sessions taken up again", "a TLS session taken up again"),
            Thing::HandshakesBegun
            | Thing::HandshakesOffering
            | Thing::Certificates
            | Thing::FatalAlerts
            | Thing::ThreadsIn(_)
            | Thing::Calls(_) => return None,
        })
    }
}

impl From<Thing> for Made {
    fn from(what: Thing) -> Made {
        Made { what, in_log: false }
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.what {
            Thing::Threads => "threads made",
            Thing::Processes => "processes made",
            Thing::Connections => "connections made",
            Thing::FullHandshakes => "TLS handshakes in full",
            Thing::ResumedHandshakes => "TLS handshakes resumed",
            Thing::HandshakesBegun => "TLS handshakes begun",
            Thing::HandshakesOffering => "TLS handshakes that offer an earlier session",
            Thing::Certificates => "certificates sent (a full TLS handshake)",
            Thing::FatalAlerts => "fatal TLS alerts",
            Thing::ThreadsIn(state) => return write!(f, "threads {state}"),
            Thing::Calls(call) => return write!(f, "calls of {call}"),
        };
        f.write_str(what)?;
        match self.in_log {
            true => f.write_str(", in the log"),
            false => Ok(()),
        }
    }
}
