//! The blocks behind the events: what a hello offers, who raised an alert.

use crate::numbers::words;
use holdup_evidence::observed::{Quote, When};

/// Frames of a trace that are looked at.
const FRAMES: usize = 64;

/// Lines that a block may have: beyond that something else has begun.
const LINES: usize = 4_000;

/// A block that is being read.
#[derive(Debug, Default)]
pub(super) struct Block {
    kind: Kind,
    at: Option<When>,
    quote: Quote,
    line: Vec<u8>,
    lines: usize,
    session_id: Option<Vec<u8>>,
    server: Option<String>,
    ticket: bool,
    psk: bool,
    version_3: bool,
    extensions: bool,
    cut: bool,
    in_ticket: bool,
    frames: Vec<String>,
    why: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    /// None is open.
    #[default]
    None,
    /// One that says nothing to us.
    Other,
    Client,
    Server,
    OldClient,
    OldServer,
    Fatal,
}

/// What a block told.
pub(super) struct Ended {
    pub what: Hello,
    pub at: Option<When>,
    pub quote: Quote,
    pub line: Vec<u8>,
}

pub(super) enum Hello {
    Client {
        session_id: Vec<u8>,
        server: Option<String>,
        ticket: Option<bool>,
    },
    Server {
        session_id: Vec<u8>,
        version_3: bool,
        psk: bool,
        whole: bool,
        old: bool,
    },
    Fatal {
        why: String,
        raised_by: Option<String>,
    },
}

/// Whether a line begins a hello: of a client, of a server; whether in the old style.
pub(super) fn hello_begins(line: &[u8]) -> Option<(bool, bool)> {
    let line = line.trim_ascii_start();
    match () {
        () if line.starts_with(b"\"ClientHello\": {") => Some((true, false)),
        () if line.starts_with(b"\"ServerHello\": {") => Some((false, false)),
        () if line.starts_with(b"*** ClientHello, ") => Some((true, true)),
        () if line.starts_with(b"*** ServerHello, ") => Some((false, true)),
        () => None,
    }
}

/// Whether a line is of a dump as Java's TLS prints them: indented, a name in quotes, a field of the old style, hex.
pub(super) fn is_dump(line: &[u8]) -> bool {
    let old = [
        &b"RandomCookie:"[..],
        b"Session ID:",
        b"Cipher Suite",
        b"Compression Method",
        b"Extension ",
        b"Allow ",
        b"Is ",
        b"[read]",
        b"[write]",
        b"[Raw ",
        b"Found trusted",
        b"SESSION KEYGEN",
        b"CONNECTION KEYGEN",
        b"Client Nonce",
        b"Server Nonce",
        b"Master Secret",
        b"PreMaster",
        b"Client MAC",
        b"Server MAC",
        b"Client write",
        b"Server write",
        b"verify_data",
        b"Using SSLEngineImpl",
        b"Ignoring ",
        b"trigger seeding",
        b"done seeding",
        b"adding as trusted",
        b"Signature Algorithm",
        b"Warning: no suitable",
        b"Server key",
        b"ECDH ",
        b"DH ",
        b"chain [",
        b"found key for",
        b"keyStore",
        b"trustStore",
        b"init ",
    ];
    line.first()
        .is_some_and(|first| matches!(first, b' ' | b'\t' | b'"' | b'(' | b'}' | b']' | b'<'))
        || old.iter().any(|start| line.starts_with(start))
        || is_hex(line)
        || memchr::memmem::find(line, b", WRITE: TLS").is_some()
        || memchr::memmem::find(line, b", READ: TLS").is_some()
        || memchr::memmem::find(line, b", called close").is_some()
        || memchr::memmem::find(line, b", SEND TLS").is_some()
        || memchr::memmem::find(line, b", RECV TLS").is_some()
}

/// `0000: 0B 57 C4 …`.
fn is_hex(line: &[u8]) -> bool {
    matches!(line, [a, b, c, d, b':', b' ', ..] if [a, b, c, d].iter().all(|byte| byte.is_ascii_hexdigit()))
}

impl Block {
    /// A block in which nothing is looked for.
    pub(super) fn other() -> Block {
        Block {
            kind: Kind::Other,
            ..Block::default()
        }
    }

    /// A hello begins with this line.
    pub(super) fn begin(line: &[u8], at: Option<When>, quote: Quote) -> Block {
        let kind = match hello_begins(line) {
            Some((true, false)) => Kind::Client,
            Some((false, false)) => Kind::Server,
            Some((true, true)) => Kind::OldClient,
            Some((false, true)) => Kind::OldServer,
            None => Kind::Other,
        };
        Block {
            kind,
            at,
            quote,
            line: line.to_vec(),
            version_3: memchr::memmem::find(line, b"TLSv1.3").is_some(),
            ..Block::default()
        }
    }

    /// A fatal alert, whose trace follows.
    pub(super) fn fatal(why: &[u8], at: Option<When>, quote: Quote, line: &[u8]) -> Block {
        Block {
            kind: Kind::Fatal,
            at,
            quote,
            line: line.to_vec(),
            why: crate::gather::quoted(why),
            ..Block::default()
        }
    }

    /// Whether the line belongs to the block.
    pub(super) fn takes(&self, line: &[u8]) -> bool {
        match self.kind {
            Kind::None => false,
            _ if self.lines >= LINES => false,
            Kind::Other => hello_begins(line).is_none() && (line.trim_ascii().is_empty() || is_dump(line)),
            Kind::OldClient | Kind::OldServer => is_dump(line) || line.trim_ascii().is_empty(),
            Kind::Fatal => {
                is_dump(line) || line == b")" || line.trim_ascii().is_empty() || frame(line).is_some()
            }
            Kind::Client | Kind::Server => {
                is_dump(line) || line == b")" || line.starts_with(b"...") || line.trim_ascii().is_empty()
            }
        }
    }

    /// Takes a line of it; whether it said something.
    pub(super) fn line(&mut self, line: &[u8]) -> bool {
        self.lines += 1;
        let text = line.trim_ascii();
        match self.kind {
            Kind::Client | Kind::Server => self.of_hello(text),
            Kind::OldClient | Kind::OldServer => self.of_old_hello(text),
            Kind::Fatal => match frame(text).filter(|_| self.frames.len() < FRAMES) {
                Some(frame) => {
                    self.frames.push(frame);
                    true
                }
                None => false,
            },
            Kind::Other | Kind::None => false,
        }
    }

    fn of_hello(&mut self, text: &[u8]) -> bool {
        if text == b"..." {
            self.cut = true;
            return false;
        }
        let Some(rest) = text.strip_prefix(b"\"") else {
            if let Some(name) = value(text, b"value=") {
                self.server = Some(String::from_utf8_lossy(name).into_owned());
                return true;
            }
            // A ticket that is not empty is offered; an empty one only says that tickets are understood.
            if self.in_ticket && !text.is_empty() {
                self.ticket |= text != b"<empty>" && !text.starts_with(b"}");
                self.in_ticket = false;
            }
            return false;
        };
        let ticket = self.in_ticket;
        self.in_ticket = false;
        let name = rest
            .get(..memchr::memchr(b'"', rest).unwrap_or(rest.len()))
            .unwrap_or_default();
        match name {
            b"session id" => self.session_id = quoted_value(rest).map(hex),
            b"extensions" => self.extensions = true,
            b"selected version" => self.version_3 |= memchr::memmem::find(text, b"TLSv1.3").is_some(),
            b"ticket" if ticket => self.ticket = true,
            _ if name.starts_with(b"pre_shared_key") => self.psk = true,
            _ if name.starts_with(b"session_ticket") => self.in_ticket = true,
            _ => return false,
        }
        true
    }

    fn of_old_hello(&mut self, text: &[u8]) -> bool {
        if let Some(id) = text.strip_prefix(b"Session ID:") {
            let inner = id.trim_ascii().strip_prefix(b"{").unwrap_or_default();
            let inner = inner.strip_suffix(b"}").unwrap_or(inner);
            let bytes = inner.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            self.session_id = Some(
                bytes
                    .filter_map(|byte| crate::numbers::whole(byte).and_then(|value| u8::try_from(value).ok()))
                    .collect(),
            );
            return true;
        }
        if text.starts_with(b"Extension server_name") {
            self.server = value(text, b"value=").map(|name| String::from_utf8_lossy(name).into_owned());
            return true;
        }
        false
    }

    /// The block is over: what it told, if anything.
    pub(super) fn end(&mut self) -> Option<Ended> {
        let block = std::mem::take(self);
        let what = match block.kind {
            Kind::None | Kind::Other => return None,
            Kind::Client | Kind::OldClient => Hello::Client {
                session_id: block.session_id?,
                server: block.server,
                // JDK 8 has no tickets.
                ticket: match block.kind {
                    Kind::OldClient => Some(false),
                    _ => (block.extensions && !block.cut).then_some(block.ticket || block.psk),
                },
            },
            Kind::Server | Kind::OldServer => Hello::Server {
                session_id: block.session_id?,
                version_3: block.version_3,
                psk: block.psk,
                whole: !block.cut,
                old: block.kind == Kind::OldServer,
            },
            Kind::Fatal => Hello::Fatal {
                raised_by: raised_by(&block.frames),
                why: block.why,
            },
        };
        Some(Ended {
            what,
            at: block.at,
            quote: block.quote,
            line: block.line,
        })
    }
}

/// Who raised an alert: the first function that is not of the machinery of alerts, and who called it from outside of TLS.
fn raised_by(frames: &[String]) -> Option<String> {
    const MACHINERY: [&str; 3] = [".Alert.", ".TransportContext.", ".Alerts."];
    let mut frames = frames
        .iter()
        .skip_while(|frame| MACHINERY.iter().any(|part| frame.contains(part)));
    let first = frames.next()?;
    let tls = |frame: &&String| frame.starts_with("sun.security.ssl.");
    let caller = frames.find(|frame| !tls(frame)).filter(|_| tls(&first));
    Some(match caller {
        Some(caller) => format!("{first}, called by {caller}"),
        None => first.clone(),
    })
}

/// The function of `at java.base/sun.security.ssl.Alert.createSSLException(Alert.java:133)`.
fn frame(text: &[u8]) -> Option<String> {
    let function = text.trim_ascii().strip_prefix(b"at ")?;
    let function = function.get(..memchr::memchr(b'(', function)?)?;
    // The module and its loader stand before the last slash.
    let function = function.rsplit(|byte| *byte == b'/').next()?;
    let sane = !function.is_empty() && words(function).count() == 1;
    sane.then(|| String::from_utf8_lossy(function).into_owned())
}

/// What stands in quotes behind a colon.
fn quoted_value(rest: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', rest)?;
    let text = rest.get(colon + 1..)?.trim_ascii().strip_prefix(b"\"")?;
    text.get(..memchr::memchr(b'"', text)?)
}

/// The word behind a name.
fn value<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = memchr::memmem::find(text, name)? + name.len();
    let rest = text.get(at..)?;
    let end = rest
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b']' | b',' | b'}'))
        .unwrap_or(rest.len());
    rest.get(..end).filter(|word| !word.is_empty())
}

/// Bytes of hexadecimal digits, with or without blanks between them.
fn hex(text: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = text
        .iter()
        .filter_map(|byte| {
            char::from(*byte)
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        })
        .collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect()
}
