//! Peers that a line names: by their form (an address, a name with a port, a URL, a socket) and by the words before them.
//!
//! In: a line. Out: the one that is most likely the peer that failed. The line is taken apart once.

use crate::gather::text_of;
use std::net::{IpAddr, SocketAddr};

/// Words of a line that are looked at, and bytes of a name.
const MAX_WORDS: usize = 400;
const MAX_PEER_BYTES: usize = 120;

/// Words before a peer, in programs' messages.
const BEFORE: &[&str] = &[
    "upstream",
    "to",
    "tcp",
    "tcp4",
    "tcp6",
    "udp",
    "dial",
    "server",
    "broker",
    "brokers",
    "node",
    "peer",
    "addr",
    "address",
    "endpoint",
    "endpoints",
    "remote",
    "backend",
    "target",
    "url",
    "master",
    "primary",
    "leader",
    "replica",
    "connect",
    "destination",
    "dst",
    "service",
    "relay",
    "bootstrap",
    "sentinel",
    "connecting",
    "connection",
    "remoteaddr",
    "uri",
    "reach",
    "hostname",
    "at",
];

/// The same of a peer that is named by nothing but its name.
const BEFORE_NAME: &[&str] = &["upstream", "broker", "host", "peer", "hostname"];

/// Words before an address that is nobody's whom the line waits for.
const NOT_THE_PEER: &[&str] = &[
    "client",
    "clients",
    "referrer",
    "referer",
    "local",
    "laddr",
    "listen",
    "listening",
    "bind",
    "src",
    "source",
    "see",
    "request",
    "user-agent",
    "at=",
    "documentation",
];

/// Endings of names of files, before the number of a line.
const FILES: &[&str] = &[
    "go", "rs", "py", "js", "ts", "java", "c", "cc", "cpp", "h", "rb", "php", "ex", "erl", "scala", "kt",
    "cs", "log", "pl", "lua", "mjs", "cjs", "jsx", "tsx", "sh", "yaml", "yml", "json", "conf", "xml", "txt",
];

/// A word of the line.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let between = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(
                byte,
                b',' | b';'
                    | b'"'
                    | b'\''
                    | b'`'
                    | b'('
                    | b')'
                    | b'<'
                    | b'>'
                    | b'{'
                    | b'}'
                    | b'='
                    | b'|'
                    | b'\\'
            )
    };
    line.split(between)
        .map(bare)
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
}

/// A word without the signs that end a sentence or make it bold.
pub(super) fn bare(word: &[u8]) -> &[u8] {
    let sign = |byte: &u8| matches!(byte, b':' | b'.' | b'!' | b'?' | b'*');
    let from = word.iter().position(|byte| !sign(byte)).unwrap_or(word.len());
    // An address of IPv6 may begin with colons.
    let from = if word.starts_with(b"::") { 0 } else { from };
    let end = word
        .iter()
        .rposition(|byte| !sign(byte))
        .map_or(from, |at| at + 1);
    word.get(from..end.max(from)).unwrap_or_default()
}

fn is_of(list: &[&str], word: &[u8]) -> bool {
    list.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()))
}

/// How a word names a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// A name, which only a word before it makes a peer.
    Name,
    /// An address without a port.
    Address,
    /// A name with a port, which may be one of a file with a line.
    NameAndPort,
    /// What can be nothing else.
    Sure,
}

/// The peer that failed.
pub(super) fn of(line: &[u8]) -> Option<String> {
    let mut best: Option<(u32, String)> = None;
    let (mut before, mut before_that): (&[u8], &[u8]) = (b"", b"");
    // Whether the last word was taken and has no port yet.
    let mut port_follows = false;
    for word in words(line) {
        if port_follows && before.eq_ignore_ascii_case(b"port") && is_port(word) {
            if let Some((_, peer)) = best.as_mut() {
                peer.push(':');
                peer.push_str(&text_of(word));
            }
            port_follows = false;
        }
        // The address behind a name is of the same peer, as the port is.
        port_follows &= word.eq_ignore_ascii_case(b"port") || matches!(form(word), Some((Form::Address, _)));
        let said = is_of(BEFORE, before);
        if !is_of(NOT_THE_PEER, before)
            && let Some((form, peer)) = form(word)
            && is_told(form, before, before_that)
        {
            let score = 2 * form as u32 + if said { 4 } else { 0 };
            if best.as_ref().is_none_or(|(most, _)| score > *most) {
                port_follows = matches!(form, Form::Name | Form::Address);
                best = Some((score, peer));
            }
        }
        before_that = before;
        before = word;
    }
    best.map(|(_, peer)| peer)
}

/// Whether a word of that form is a peer behind these words.
fn is_told(form: Form, before: &[u8], before_that: &[u8]) -> bool {
    let connects = || {
        let verbs: [&[u8]; 6] = [
            b"connect",
            b"connecting",
            b"connection",
            b"reach",
            b"connected",
            b"dial",
        ];
        before.eq_ignore_ascii_case(b"to") && verbs.iter().any(|verb| before_that.eq_ignore_ascii_case(verb))
    };
    match form {
        Form::Sure => true,
        Form::NameAndPort | Form::Address => is_of(BEFORE, before) || is_of(BEFORE_NAME, before),
        Form::Name => {
            // libpq: `server at "db-2" (10.0.0.9), port 5432`.
            let at_server = before.eq_ignore_ascii_case(b"at") && before_that.eq_ignore_ascii_case(b"server");
            is_of(BEFORE_NAME, before) || connects() || at_server
        }
    }
}

/// What a word is, if it may be a peer.
fn form(word: &[u8]) -> Option<(Form, String)> {
    if word.len() > MAX_PEER_BYTES && !word.contains(&b':') {
        return None;
    }
    let word = word.get(..word.len().min(4 * MAX_PEER_BYTES))?;
    let text = std::str::from_utf8(word).ok()?;
    if let Some((scheme, rest)) = text.split_once("://") {
        return url(scheme, rest).map(|url| (Form::Sure, url));
    }
    if text.len() > MAX_PEER_BYTES {
        return None;
    }
    if let Some(path) = text
        .strip_prefix("unix:")
        .or(Some(text))
        .filter(|path| path.starts_with('/'))
        && (path.ends_with(".sock") || path.ends_with(".socket") || path.contains("/.s.PGSQL."))
    {
        return Some((Form::Sure, path.to_owned()));
    }
    // `[es-1][10.0.0.7:9300]`, as Elasticsearch names a node and its address.
    if let Some((name, address)) = text.split_once("][") {
        let (name, address) = (name.strip_prefix('[')?, address.strip_suffix(']')?);
        let resolved = is_host(name) && address.parse::<SocketAddr>().is_ok();
        return resolved.then(|| (Form::Sure, format!("{name}[{address}]")));
    }
    let slashless = text.strip_prefix('/').unwrap_or(text);
    if slashless.parse::<SocketAddr>().is_ok() {
        return Some((Form::Sure, slashless.to_owned()));
    }
    if let Ok(address) = slashless
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>()
    {
        return Some((Form::Address, address.to_string()));
    }
    // `broker-1/10.0.0.7:9092`, as Java prints a resolved name.
    if let Some((name, address)) = text.split_once('/') {
        let resolved =
            is_host(name) && (address.parse::<SocketAddr>().is_ok() || address.parse::<IpAddr>().is_ok());
        return resolved.then(|| (Form::Sure, text.to_owned()));
    }
    // `mx.example.com[192.0.2.7]:25`, as Postfix does.
    if let Some((name, address)) = text.split_once('[') {
        let (address, port) = address.split_once(']')?;
        let port = port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|port| is_port(port.as_bytes()));
        let resolved = is_host(name) && port && address.parse::<IpAddr>().is_ok();
        return resolved.then(|| (Form::Sure, text.to_owned()));
    }
    if let Some((name, port)) = text.rsplit_once(':') {
        let named = is_host(name) && is_port(port.as_bytes()) && has_letter(name) && !is_file(name);
        // What has a point or is known needs no word before it.
        let sure = name == "localhost" || name.split('.').filter(|part| part.len() > 1).count() > 1;
        let form = if sure { Form::Sure } else { Form::NameAndPort };
        return named.then(|| (form, text.to_owned()));
    }
    let signed =
        text.contains(['.', '-']) || text.contains(|char: char| char.is_ascii_digit()) || text == "localhost";
    (is_host(text) && has_letter(text) && signed && !is_file(text)).then(|| (Form::Name, text.to_owned()))
}

/// Scheme and authority of a URL, without the name and the secret of a user.
fn url(scheme: &str, rest: &str) -> Option<String> {
    let part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.' | ':');
    let from = scheme.rfind(|char: char| !part(char)).map_or(0, |at| at + 1);
    let scheme = scheme.get(from..)?;
    if let Some(socket) = rest
        .strip_prefix("unix:")
        .or_else(|| rest.starts_with('/').then_some(rest))
    {
        let end = socket.find(".sock").map(|at| at + ".sock".len())?;
        // `unix:///run/shop.sock`: the authority is empty.
        let path = socket.get(..end)?.trim_start_matches('/');
        return Some(format!("/{path}"));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end)?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_' | ':' | '[' | ']');
    let named = host.contains(|char: char| char.is_ascii_alphanumeric()) && host.chars().all(fits);
    (named && !scheme.is_empty()).then(|| format!("{scheme}://{host}"))
}

fn is_host(name: &str) -> bool {
    let part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_');
    name.starts_with(|char: char| char.is_ascii_alphanumeric())
        && !name.ends_with('-')
        && name.chars().all(part)
}

fn has_letter(name: &str) -> bool {
    name.contains(|char: char| char.is_ascii_alphabetic())
}

fn is_file(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, ending)| FILES.contains(&ending))
}

fn is_port(text: &[u8]) -> bool {
    crate::numbers::whole(text).is_some_and(|port| (1..=u64::from(u16::MAX)).contains(&port))
}

/// A peer that has only a number: `node -1`, `broker 3`.
pub(super) fn node(line: &[u8]) -> Option<String> {
    let mut before: &[u8] = b"";
    for word in words(line) {
        let digits = word.strip_prefix(b"-").unwrap_or(word);
        let numbered = !digits.is_empty() && digits.len() < 8 && digits.iter().all(u8::is_ascii_digit);
        if numbered && is_of(&["node", "broker", "replica", "shard"], before) {
            return Some(format!(
                "{} {}",
                text_of(before).to_ascii_lowercase(),
                text_of(word)
            ));
        }
        before = word;
    }
    None
}
