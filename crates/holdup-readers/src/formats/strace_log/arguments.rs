//! What the arguments of a traced call say: descriptors and what they are, what decides what the call waits for.
//!
//! In: the text between a call's brackets. Out: numbers and pieces of that text. Strings in it are cut short by strace and
//! hold anything; brackets and quotes are followed only as far as needed.

use super::line::number;
use memchr::{memchr, memmem};

/// The arguments at the top level; strings, brackets and `<…>` are kept whole. Most are never looked at.
pub(super) fn split(args: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(args);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = argument_end(text);
        let one = text.get(..end)?;
        rest = text.get(end + 1..);
        Some(one.trim_ascii())
    })
}

fn argument_end(text: &[u8]) -> usize {
    let (mut depth, mut in_string, mut escaped, mut before) = (0usize, false, false, 0u8);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'(' | b'[' | b'{' => depth += 1,
            // A shift (`1<<3`) opens nothing; a path or an address follows a digit or a name.
            b'<' if before != b'<' => depth += 1,
            b'>' if !matches!(before, b'-' | b'=') => depth = depth.saturating_sub(1),
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            _ => {}
        }
        before = *byte;
    }
    text.len()
}

/// A descriptor and, with `-y`, what it is.
pub(super) fn descriptor(text: &[u8]) -> Option<(u32, Option<&[u8]>)> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let fd = u32::try_from(number(text.get(..digits)?)?).ok()?;
    match text.get(digits) {
        None | Some(b',' | b']' | b')' | b'}' | b' ') => Some((fd, None)),
        Some(b'<') => Some((fd, angle(text.get(digits..)?))),
        _ => None,
    }
}

/// What stands in `<…>`: a path, an address with `->` in it, a device with its number in brackets of its own.
pub(super) fn angle(text: &[u8]) -> Option<&[u8]> {
    let (mut depth, mut before) = (0usize, 0u8);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if before != b'-' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return text.get(1..at);
                }
            }
            _ => {}
        }
        before = *byte;
    }
    None
}

/// A quoted string, as far as strace prints it, without its escapes resolved.
pub(super) fn string(text: &[u8]) -> Option<&str> {
    let rest = text.strip_prefix(b"\"")?;
    let mut from = 0;
    loop {
        let end = from + memchr(b'"', rest.get(from..)?)?;
        let text = rest.get(..end)?;
        let escapes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes % 2 == 0 {
            return std::str::from_utf8(text).ok();
        }
        from = end + 1;
    }
}

/// A number in decimal or hexadecimal digits; `NULL` is 0.
pub(super) fn value(text: &[u8]) -> Option<u64> {
    if text == b"NULL" {
        return Some(0);
    }
    match text.strip_prefix(b"0x") {
        Some(digits) => u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok(),
        None => number(text),
    }
}

/// What a call returned: a number, or a negative error number.
pub(super) fn returned(result: &[u8]) -> Option<i64> {
    let word = result.split(|byte| matches!(byte, b' ' | b'<')).next()?;
    if let Some(digits) = word.strip_prefix(b"-") {
        let error = result.split(|byte| *byte == b' ').nth(1).and_then(errno);
        return error.or_else(|| i64::try_from(number(digits)?).ok().map(i64::wrapping_neg));
    }
    if word == b"?" {
        return result.split(|byte| *byte == b' ').nth(1).and_then(errno);
    }
    i64::try_from(value(word)?).ok()
}

/// Error numbers by name: those that decide something.
fn errno(name: &[u8]) -> Option<i64> {
    Some(match name {
        b"EPERM" => -1,
        b"ENOENT" => -2,
        b"EINTR" => -4,
        b"EAGAIN" | b"EWOULDBLOCK" => -11,
        b"ETIME" => -62,
        b"ETIMEDOUT" => -110,
        b"ECONNREFUSED" => -111,
        b"EHOSTUNREACH" => -113,
        b"EINPROGRESS" => -115,
        // The kernel's own codes for "begin again".
        b"ERESTARTSYS" => -512,
        b"ERESTARTNOINTR" => -513,
        b"ERESTARTNOHAND" => -514,
        b"ERESTART_RESTARTBLOCK" => -516,
        _ => return None,
    })
}

/// The address that a call names, in the form that `-yy` gives an address; `transport` is `TCP`, `UDP`, `UNIX-STREAM` ….
pub(super) fn address(args: &[u8], transport: &str) -> Option<String> {
    let after = |key: &[u8]| args.get(memmem::find(args, key)? + key.len()..);
    let until = |text: &'static [u8], end: u8| {
        let text: &[u8] = after(text)?;
        std::str::from_utf8(text.get(..memchr(end, text)?)?).ok()
    };
    if let Some(port) = until(b"sin_port=htons(", b')') {
        let host = string(after(b"inet_addr(")?)?;
        return Some(format!("{transport}:[->{host}:{port}]"));
    }
    if let Some(port) = until(b"sin6_port=htons(", b')') {
        let host = string(after(b"inet_pton(AF_INET6, ")?)?;
        return Some(format!("{transport}v6:[->[{host}]:{port}]"));
    }
    let path = after(b"sun_path=")?;
    let path = string(path.strip_prefix(b"@").unwrap_or(path))?;
    Some(format!("{transport}:[\"{path}\"]"))
}

/// Descriptors of a poll's or select's set, and of its result: each with what it is and whether room is awaited.
pub(super) fn polled(text: &[u8]) -> impl Iterator<Item = (u32, Option<&[u8]>, bool)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = memmem::find(rest, b"fd=")?;
            rest = rest.get(at + b"fd=".len()..)?;
            let Some((fd, what)) = descriptor(rest) else {
                continue;
            };
            let end = memmem::find(rest, b"events=").map(|at| at + b"events=".len());
            let events = end.and_then(|at| rest.get(at..)).unwrap_or_default();
            let events = events
                .split(|byte| matches!(byte, b'}' | b','))
                .next()
                .unwrap_or_default();
            let writing = events.starts_with(b"POLLOUT") || events.starts_with(b"POLLWRNORM");
            return Some((fd, what, writing));
        }
    })
}

/// Descriptors of one of select's sets: `[3<…> 5]`.
pub(super) fn set(text: &[u8]) -> impl Iterator<Item = (u32, Option<&[u8]>)> {
    let mut rest = text.strip_prefix(b"[").unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let (fd, what) = descriptor(rest)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let more = what.map_or(0, |what| what.len() + 2);
        rest = rest.get(digits + more..)?;
        Some((fd, what))
    })
}

#[cfg(test)]
mod tests {
    use super::{address, descriptor, polled, returned, set, split, string};

    #[test]
    fn arguments_are_split_at_their_own_commas() {
        let args = b"AT_FDCWD</tmp/a, b>, \"x, \\\"y\", O_RDONLY|O_CLOEXEC, {a=1, b=[2, 3]}";
        let parts: Vec<&[u8]> = split(args).collect();
        assert_eq!(parts.len(), 4);
        assert_eq!(string(parts[1]), Some("x, \\\"y"));
    }

    #[test]
    fn descriptors_with_what_they_are() {
        assert_eq!(descriptor(b"3, 1"), Some((3, None)));
        assert_eq!(
            descriptor(b"3<TCP:[1.1.1.1:5->2.2.2.2:80]>, 1"),
            Some((3, Some(&b"TCP:[1.1.1.1:5->2.2.2.2:80]"[..])))
        );
        assert_eq!(
            descriptor(b"0</dev/pts/0<char 136:0>>"),
            Some((0, Some(&b"/dev/pts/0<char 136:0>"[..])))
        );
        assert_eq!(descriptor(b"0x12"), None);
        assert_eq!(descriptor(b"7<cut"), Some((7, None)));
    }

    #[test]
    fn what_was_polled_and_what_came_of_it() {
        let all: Vec<_> = polled(b"[{fd=3, events=POLLIN}, {fd=4</x>, events=POLLOUT}], 2").collect();
        assert_eq!(all, [(3, None, false), (4, Some(&b"/x"[..]), true)]);
        let all: Vec<u32> = set(b"[3<UDP:[a->b]> 17]").map(|(fd, _)| fd).collect();
        assert_eq!(all, [3, 17]);
        assert_eq!(returned(b"-1 ETIMEDOUT (Connection timed out)"), Some(-110));
        assert_eq!(returned(b"3</etc/ld.so.cache>"), Some(3));
        assert_eq!(returned(b"? ERESTARTSYS (To be restarted)"), Some(-512));
    }

    #[test]
    fn addresses_as_they_are_printed_by_yy() {
        let args =
            b"3<TCP:[77]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"1.2.3.4\")}, 16";
        assert_eq!(address(args, "TCP").as_deref(), Some("TCP:[->1.2.3.4:80]"));
        let args = b"3, {sa_family=AF_INET6, sin6_port=htons(80), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, \"::1\", &sin6_addr), sin6_scope_id=0}, 28";
        assert_eq!(address(args, "TCP").as_deref(), Some("TCPv6:[->[::1]:80]"));
        let args = b"3, {sa_family=AF_UNIX, sun_path=\"/run/nscd/socket\"}, 110";
        assert_eq!(
            address(args, "UNIX-STREAM").as_deref(),
            Some("UNIX-STREAM:[\"/run/nscd/socket\"]")
        );
        assert_eq!(address(b"3, 0x7ff, 110", "TCP"), None);
    }
}
