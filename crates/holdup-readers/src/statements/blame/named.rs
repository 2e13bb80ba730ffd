//! Things other than peers that a line blames, by the words before them: names, pools, paths, processes, pods, servers behind a proxy.

use super::peers::bare;
use crate::gather::text_of;

/// Words of a line that are looked at, and bytes of a name.
const MAX_WORDS: usize = 400;
const MAX_NAME_BYTES: usize = 160;

/// Words with what quotes and joins them taken away.
fn words(line: &[u8]) -> Vec<&[u8]> {
    let between = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(
                byte,
                b',' | b';' | b'"' | b'\'' | b'`' | b'(' | b')' | b'{' | b'}' | b'=' | b'\\' | b'<' | b'>'
            )
    };
    line.split(between)
        .map(bare)
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
        .collect()
}

fn is(word: &[u8], text: &str) -> bool {
    word.eq_ignore_ascii_case(text.as_bytes())
}

fn named(word: &[u8]) -> Option<String> {
    (word.len() <= MAX_NAME_BYTES).then(|| text_of(word))
}

/// What a name begins behind, of a name that does not resolve.
const BEFORE_HOST: &[&[&str]] = &[
    &["lookup"],
    &["resolve", "host"],
    &["resolve", "hostname"],
    &["resolve", "address"],
    &["resolve", "name"],
    &["resolve"],
    &["resolving", "host"],
    &["resolving"],
    &["translate", "host", "name"],
    &["unknown", "host"],
    &["unknown", "mysql", "server", "host"],
    &["enotfound"],
    &["eai_again"],
    &["eai_noname"],
    &["upstream"],
    &["find", "host"],
    &["nxdomain"],
    &["host"],
    &["to"],
];

/// The name that does not resolve.
pub(super) fn host(line: &[u8]) -> Option<String> {
    let words = words(line);
    let fits = |word: &[u8]| {
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
        let stop: [&str; 16] = [
            "in", "on", "not", "name", "the", "address", "host", "hostname", "for", "to", "error", "failed",
            "with", "is", "found", "and",
        ];
        word.len() > 1
            && word.iter().all(part)
            && word.iter().any(u8::is_ascii_alphabetic)
            && !stop.iter().any(|one| is(word, one))
    };
    for before in BEFORE_HOST {
        let found = words.windows(before.len() + 1).find_map(|window| {
            let (name, said) = window.split_last()?;
            let said = said.iter().zip(*before).all(|(word, text)| is(word, text));
            (said && fits(name)).then_some(*name)
        });
        if let Some(name) = found {
            // The port is not looked up.
            let end = name.iter().position(|byte| *byte == b':').unwrap_or(name.len());
            return named(name.get(..end)?);
        }
    }
    let java = words.windows(2).find(|two| {
        two.first()
            .is_some_and(|word| word.ends_with(b"UnknownHostException"))
    })?;
    java.last().filter(|name| fits(name)).and_then(|name| named(name))
}

/// The pool that had nothing free.
pub(super) fn pool(line: &[u8]) -> Option<String> {
    let words = words(line);
    let own = words.iter().find(|word| {
        let text = word.to_ascii_lowercase();
        let number = text.iter().any(u8::is_ascii_digit) || text.contains(&b'-') || text.contains(&b'_');
        memchr::memchr(b'/', &text).is_none()
            && number
            && !text.contains(&b'.')
            && text.windows(4).any(|four| four == b"pool")
    });
    let behind = || {
        words.windows(2).find_map(|two| match two {
            [said, name]
                if is(said, "pool") && name.iter().any(|byte| matches!(byte, b'-' | b'_' | b'0'..=b'9')) =>
            {
                Some(name)
            }
            _ => None,
        })
    };
    let name = own.or_else(behind);
    Some(match name {
        Some(name) => format!("the connection pool {}", named(name)?),
        None => "the connection pool".to_owned(),
    })
}

/// The path or device that could not be used.
pub(super) fn path(line: &[u8]) -> Option<String> {
    let words = words(line);
    let mut paths = words.iter().filter(|word| {
        let rooted = word.first() == Some(&b'/')
            && word.len() > 2
            && word.get(1).is_some_and(u8::is_ascii_alphanumeric);
        rooted
            && word.iter().all(|byte| byte.is_ascii_graphic() || *byte >= 0x80)
            && !word.ends_with(b".sock")
    });
    // `path/to.go:12`: a place in a program.
    let place = |word: &&&[u8]| {
        word.iter().rev().take_while(|byte| byte.is_ascii_digit()).count() > 0 && word.contains(&b':')
    };
    paths.find(|word| !place(word)).and_then(|word| named(word))
}

/// The process that was killed or given up: `(pid:7214)`, `process 7214 (worker)`, `worker 3 exited on signal 9`.
pub(super) fn process(line: &[u8]) -> Option<String> {
    let words = words(line);
    let number = |word: &[u8]| !word.is_empty() && word.len() < 9 && word.iter().all(u8::is_ascii_digit);
    for word in &words {
        let joined = word
            .get(..4)
            .filter(|start| is(start, "pid:"))
            .and_then(|_| word.get(4..));
        if let Some(pid) = joined.filter(|pid| number(pid)) {
            return named(pid).map(|pid| format!("process {pid}"));
        }
    }
    words.windows(2).find_map(|two| match two {
        [said, pid] if ["pid", "process", "child"].iter().any(|text| is(said, text)) && number(pid) => {
            named(pid).map(|pid| format!("process {pid}"))
        }
        [said, pid] if is(said, "worker") && number(pid) => named(pid).map(|pid| format!("worker {pid}")),
        _ => None,
    })
}

/// The pod: `pod "shop_web-1(…)"`, `pod shop/web-1`, `pod/web-1`.
pub(super) fn pod(line: &[u8]) -> Option<String> {
    let words = words(line);
    let fits = |name: &[u8]| {
        let part = |byte: &u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'/' | b'_' | b'.')
        };
        name.len() > 2 && name.iter().all(part) && name.iter().any(|byte| matches!(byte, b'-' | b'/' | b'_'))
    };
    let joined = words
        .iter()
        .find_map(|word| word.strip_prefix(b"pod/").filter(|name| fits(name)));
    let behind = || {
        words.windows(2).find_map(|two| match two {
            [said, name] if is(said, "pod") && fits(name) => Some(*name),
            _ => None,
        })
    };
    joined
        .or_else(behind)
        .and_then(named)
        .map(|name| format!("pod {name}"))
}

/// The server behind a proxy: HAProxy's `Server shop/web-1 is DOWN`, `Health check for server shop/web-1 failed`.
pub(super) fn server(line: &[u8]) -> Option<String> {
    let words = words(line);
    words.windows(4).find_map(|four| match four {
        [said, name, first, second] if is(said, "server") => {
            let down = is(first, "is") && is(second, "down") || is(first, "failed");
            let fits = !name.contains(&b':') && name.first().is_some_and(u8::is_ascii_alphanumeric);
            (down && fits).then(|| named(name).map(|name| format!("server {name}")))?
        }
        _ => None,
    })
}
