//! What is asked for in a request, by what it begins with: a line of HTTP/1, a command of Redis's protocol.
//!
//! In: the first bytes of a request, hostile. Out: a name for it, with nothing in it of the users'.

/// What a request begins with that names what is asked for, and nothing of the users'.
pub(super) fn named(begins: &[u8]) -> Option<String> {
    request_line(begins).or_else(|| command(begins))
}

/// `EVAL`: the command of a request in Redis's protocol, an array of strings: `*3\r\n$4\r\neval\r\n…`. What follows is the users'.
fn command(begins: &[u8]) -> Option<String> {
    /// Longest name of a command, bytes: of Redis's own the longest has 17.
    const MAX_CHARS: usize = 24;
    let mut lines = begins
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r"));
    let number = |line: &[u8], mark: u8| -> Option<usize> {
        let digits = line.strip_prefix(&[mark])?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    number(lines.next()??, b'*')?;
    let length = number(lines.next()??, b'$').filter(|length| *length <= MAX_CHARS)?;
    let name = lines.next()??;
    let plain = name.len() == length
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphabetic() || *byte == b'.');
    (plain && length > 0).then(|| String::from_utf8_lossy(name).to_ascii_uppercase())
}

/// `GET /checkout`: method and path of an HTTP/1 request that begins so. What follows a question mark is the
/// users', and is left out.
fn request_line(begins: &[u8]) -> Option<String> {
    const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
    let text = std::str::from_utf8(begins.split(|byte| byte.is_ascii_control()).next()?).ok()?;
    let (method, rest) = text.split_once(' ')?;
    let end = rest.find([' ', '?']).unwrap_or(rest.len());
    let path = &rest[..end];
    (METHODS.contains(&method) && path.starts_with('/')).then(|| format!("{method} {path}"))
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn a_request_line_is_method_and_path_and_no_more() {
        assert_eq!(
            named(b"GET /checkout?card=1 HTTP/1.1\r\nHost"),
            Some("GET /checkout".into())
        );
        assert_eq!(named(b"POST /a HTTP/1.1\r\n"), Some("POST /a".into()));
        assert_eq!(named(b"*1\r\n$4\r\nping\r\n"), Some("PING".into()));
        assert_eq!(named(b"*2\r\n$9\r\nping\r\n"), None);
        assert_eq!(named(b"*2\r\n$4\r\np\x1b[2\r\n"), None);
        assert_eq!(named(b"\x16\x03\x01\x02"), None);
        assert_eq!(named(b"GET nothing"), None);
        assert_eq!(named(&[0; 64]), None);
        assert_eq!(named("GET /\u{1b}[2J".as_bytes()), Some("GET /".into()));
    }
}
