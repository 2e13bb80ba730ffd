//! What Java's TLS says with `-Djavax.net.debug`, of JDK 8 and of later ones, and hellos that were dumped as text.
//!
//! In: events of a line each, most followed by a block. Out: hellos, certificates, resumptions, fatal alerts. Threads write
//! their events one after the other and not into each other, so a block belongs to the event before it; what a handshake's
//! hellos have to do with each other is kept by thread.

mod blocks;

use super::timed_log;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::{Out, quoted};
use blocks::{Block, Hello};
use holdup_evidence::observed::{Happening, TlsEvent, What, When};
use std::collections::HashMap;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("tls-debug", Family::Runtime, recognise)
    .about("javax.net.debug")
    .openings(&["javax.net.ssl|"]);

/// Threads whose handshakes are followed at once.
const THREADS: usize = 4096;

/// Events that are reported one by one.
const MAX_EVENTS: u64 = 5_000;

/// How events begin that say why a session is not taken up.
const NOT_RESUMED: [&[u8]; 5] = [
    b"Can't resume",
    b"abort session resumption",
    b"Invalidate the session",
    b"PSK has no identity",
    b"Session has no resumption",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut lines = head.split(|byte| *byte == b'\n');
    let own = lines.any(|line| {
        let line = line.trim_ascii_start();
        line.starts_with(b"javax.net.ssl|")
            || line.starts_with(b"\"ClientHello\": {")
            || line.starts_with(b"\"ServerHello\": {")
            || line.starts_with(b"*** ClientHello, ")
            || line.starts_with(b"*** ServerHello, ")
    });
    if own { Sureness::Certain } else { Sureness::No }
}

/// What a client said in its hello.
#[derive(Default)]
struct Offered {
    session_id: Vec<u8>,
    /// The server that it asked for.
    server: Option<String>,
}

#[derive(Default)]
struct Reader {
    application: timed_log::Reader,
    /// What the client of the handshake offered in which a thread is.
    offered: HashMap<Vec<u8>, Offered>,
    thread: Vec<u8>,
    at: Option<When>,
    stamps: timed_log::Stamps,
    block: Block,
    reported: u64,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if let Some(event) = line.strip_prefix(b"javax.net.ssl|") {
            self.end_block(out);
            return self.event(event, line, out);
        }
        if let Some(understood) = self.old(line, out) {
            return understood;
        }
        if self.block.takes(line) {
            return match self.block.line(line) {
                true => Understood::Evidence,
                false => Understood::Ignorable,
            };
        }
        if blocks::hello_begins(line).is_some() {
            self.end_block(out);
            self.block = Block::begin(line, self.at, out.here());
            return Understood::Evidence;
        }
        let blank = line
            .iter()
            .all(|byte| byte.is_ascii_whitespace() || matches!(byte, b'.' | b')' | b']' | b'}'));
        if blank || blocks::is_dump(line) {
            return Understood::Ignorable;
        }
        self.application.line(line, out)
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.end_block(out);
        self.application.tell(out);
    }
}

impl Reader {
    /// `DEBUG|2C|thread|2020-12-15 21:27:00.622 CET|File.java:357|What happened (`.
    fn event(&mut self, event: &[u8], line: &[u8], out: &mut Out<'_>) -> Understood {
        let mut fields = event.splitn(6, |byte| *byte == b'|');
        let (Some(_level), Some(id), Some(name), Some(time), Some(_file), Some(what)) = (
            fields.next(),
            fields.next(),
            fields.next(),
            fields.next(),
            fields.next(),
            fields.next(),
        ) else {
            return Understood::No;
        };
        self.thread.clear();
        self.thread.extend_from_slice(id);
        self.thread.push(b'|');
        self.thread.extend_from_slice(name);
        self.at = self.stamps.of(time).and_then(|stamp| stamp.when());
        let what = what.trim_ascii();
        if what.starts_with(b"Fatal (") {
            let why = what.strip_suffix(b"(").unwrap_or(what).trim_ascii();
            self.block = Block::fatal(why, self.at, out.here(), line);
            return Understood::Evidence;
        }
        let made = |what: &[u8]| what.starts_with(b"Produced ") || what.starts_with(b"Consuming ");
        if made(what) && has(what, b"ClientHello handshake message")
            || made(what) && has(what, b"ServerHello handshake message")
        {
            // The hello itself stands in the block.
            return Understood::Evidence;
        }
        if made(what) && has(what, b"Certificate handshake message") {
            // A client's own certificate is part of a full handshake, too, and not another one.
            if has(what, b"server Certificate") {
                let server = self.server();
                self.tell(TlsEvent::Certificate { server }, self.at, out, line);
            }
            self.block = Block::other();
            return Understood::Evidence;
        }
        if made(what) && has(what, b"Finished handshake message") && has(what, b"server Finished") {
            self.tell(TlsEvent::Finished, self.at, out, line);
            self.block = Block::other();
            return Understood::Evidence;
        }
        let why = NOT_RESUMED.iter().any(|beginning| what.starts_with(beginning));
        if why {
            let why = quoted(what.strip_suffix(b"(").unwrap_or(what).trim_ascii());
            self.tell(TlsEvent::NotResumed { why }, self.at, out, line);
        }
        self.block = if what.ends_with(b"(") {
            Block::other()
        } else {
            Block::default()
        };
        if why {
            Understood::Evidence
        } else {
            Understood::Ignorable
        }
    }

    /// The style of JDK 8: `*** ClientHello, TLSv1.2` and lines behind it.
    fn old(&mut self, line: &[u8], out: &mut Out<'_>) -> Option<Understood> {
        if let Some(what) = line.strip_prefix(b"*** ") {
            self.end_block(out);
            self.block = Block::other();
            if blocks::hello_begins(line).is_some() {
                self.block = Block::begin(line, None, out.here());
            } else if what.starts_with(b"Certificate chain") {
                let server = self.server();
                self.tell(TlsEvent::Certificate { server }, None, out, line);
            } else if what.starts_with(b"Finished") {
                return Some(Understood::Ignorable);
            }
            return Some(Understood::Evidence);
        }
        if line == b"***" {
            return Some(Understood::Ignorable);
        }
        if let Some(what) = line.strip_prefix(b"%% ") {
            if what.starts_with(b"Resuming [") || what.starts_with(b"Server resumed [") {
                self.end_block(out);
                let event = TlsEvent::ServerHello {
                    resumed: Some(true),
                    server: self.server(),
                };
                self.tell(event, None, out, line);
                return Some(Understood::Evidence);
            }
            return Some(Understood::Ignorable);
        }
        let alert = memchr::memmem::find(line, b"ALERT:  fatal, description = ");
        if let Some(at) = alert {
            self.end_block(out);
            let why = quoted(line.get(at + 8..).unwrap_or_default().trim_ascii());
            self.tell(TlsEvent::Fatal { why, raised_by: None }, None, out, line);
            return Some(Understood::Evidence);
        }
        None
    }

    /// The server that the client of this thread's handshake asked for.
    fn server(&self) -> Option<String> {
        self.offered.get(&self.thread)?.server.clone()
    }

    /// What a block told becomes evidence.
    fn end_block(&mut self, out: &mut Out<'_>) {
        let Some(ended) = self.block.end() else { return };
        let event = match ended.what {
            Hello::Client {
                session_id,
                server,
                ticket,
            } => {
                if self.offered.len() < THREADS || self.offered.contains_key(&self.thread) {
                    let offered = Offered {
                        session_id: session_id.clone(),
                        server: server.clone(),
                    };
                    self.offered.insert(self.thread.clone(), offered);
                }
                TlsEvent::ClientHello {
                    session_id: u32::try_from(session_id.len()).unwrap_or(u32::MAX),
                    server,
                    ticket,
                }
            }
            Hello::Server {
                session_id,
                version_3,
                psk,
                whole,
                old,
            } => {
                let offered = self.offered.get(&self.thread);
                let resumed = match (version_3, offered) {
                    // The old style says it in a line of its own, and repeats the id in either case.
                    _ if old => None,
                    (true, _) if psk => Some(true),
                    (true, _) => whole.then_some(false),
                    (false, Some(offered)) if whole => {
                        Some(!offered.session_id.is_empty() && offered.session_id == session_id)
                    }
                    _ => None,
                };
                TlsEvent::ServerHello {
                    resumed,
                    server: self.server(),
                }
            }
            Hello::Fatal { why, raised_by } => TlsEvent::Fatal { why, raised_by },
        };
        self.reported += 1;
        if self.reported > MAX_EVENTS {
            out.account().left_out += 1;
            return;
        }
        out.happening(Happening {
            what: What::Tls(event),
            at: ended.at,
            since_boot: None,
            quote: ended.quote,
            text: quoted(&ended.line),
        });
    }

    fn tell(&mut self, event: TlsEvent, at: Option<When>, out: &mut Out<'_>, line: &[u8]) {
        self.reported += 1;
        if self.reported > MAX_EVENTS {
            out.account().left_out += 1;
            return;
        }
        out.happened(What::Tls(event), at, None, line);
    }
}

fn has(what: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(what, text).is_some()
}

#[cfg(test)]
mod tests;
