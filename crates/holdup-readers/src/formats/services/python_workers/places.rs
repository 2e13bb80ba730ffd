//! The places in an application at which workers were killed, and how many were killed at each.

use super::lines::{Frame, Killed};
use crate::gather::Out;
use crate::statements;
use holdup_evidence::observed::{Quote, Statement, StatementKind};

/// Places in the application that are kept apart.
const MAX_PLACES: usize = 200;

/// A worker that was killed, and what is known of it.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) killed: Killed,
    pub(super) quote: Quote,
    pub(super) request: String,
    pub(super) kernel: String,
    pub(super) own: Option<Frame>,
    pub(super) inner: Option<Frame>,
}

#[derive(Debug)]
struct Place {
    server: &'static str,
    at: String,
    text: String,
    times: u64,
    quote: Quote,
}

/// The places so far.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<Place>);

impl Places {
    /// Takes a worker of which no more will be known.
    pub(super) fn settle(&mut self, open: Open, out: &mut Out<'_>) {
        let mut at = String::new();
        if let Some(own) = &open.own {
            at = format!(" while it was in {}", own.told());
        }
        if let Some(inner) = open
            .inner
            .as_ref()
            .filter(|inner| Some(*inner) != open.own.as_ref())
        {
            let word = if open.own.is_some() {
                ", within"
            } else {
                " while it was in"
            };
            at.push_str(&format!("{word} {}", inner.told()));
        }
        if !open.kernel.is_empty() {
            at.push_str(&format!(", in the kernel's {}", open.kernel));
        }
        let server = open.killed.server;
        if let Some(known) = self
            .0
            .iter_mut()
            .find(|known| known.server == server && known.at == at)
        {
            known.times = known.times.saturating_add(1);
            return;
        }
        if self.0.len() >= MAX_PLACES {
            out.account().left_out += 1;
            return;
        }
        let what = match server {
            "uWSGI" => "was killed for its timeout (harakiri)",
            _ => "was killed for its timeout",
        };
        let request = match open.request.as_str() {
            "" => String::new(),
            request => format!(", for {request}"),
        };
        let text = format!("worker {} of {server} {what}{at}{request}", open.killed.pid);
        self.0.push(Place {
            server,
            at,
            text,
            times: 1,
            quote: open.quote,
        });
    }

    /// A statement for each of them.
    pub(super) fn state(self, out: &mut Out<'_>) {
        for place in self.0 {
            let more = match place.times {
                1 => String::new(),
                times => format!("; {times} workers were killed like this"),
            };
            let text = format!("{}{more}", place.text);
            out.statement(Statement {
                times: place.times,
                ..statements::one(StatementKind::TimedOut, None, place.quote, text)
            });
        }
    }
}
