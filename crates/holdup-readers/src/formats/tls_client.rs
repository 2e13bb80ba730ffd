//! What `openssl s_client` prints of the connections that it makes, one or, with `-reconnect`, six.
//!
//! In: its output, with what it says on stderr or without, and with what the peer sent. Out: for each connection whether it
//! took up an earlier session, and alerts that ended one. A connection that comes back offers the session of before, but not
//! of TLS 1.3 as long as no ticket has come: `-reconnect` does not wait for one, and such a connection proves nothing.

use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::gather::Out;
use crate::numbers::{whole, words};
use holdup_evidence::observed::{TlsEvent, What};
use memchr::memmem::find;

pub(crate) static FORMAT: Format = Format::lines::<Reader>("tls-client", Family::Runtime, recognise)
    .about("openssl s_client")
    .openings(&[CONNECTED]);

/// What a connection begins with, on stdout.
const CONNECTED: &str = "CONNECTED(0";

/// What lines begin with that say nothing to us, whitespace left out.
const IGNORABLE: &[&str] = &[
    "---",
    "depth=",
    "verify ",
    "Verif",
    "Certificate chain",
    "Server certificate",
    "-----BEGIN ",
    "-----END ",
    "subject=",
    "issuer=",
    "no peer certificate",
    "No client certificate",
    "Acceptable client certificate",
    "Client Certificate Types:",
    "Requested Signature Algorithms:",
    "Shared Requested Signature Algorithms:",
    "Peer ",
    "Negotiated ",
    "Server Temp Key:",
    "Server public key ",
    "Secure Renegotiation ",
    "Compression:",
    "Expansion:",
    "ALPN ",
    "No ALPN ",
    "Early data ",
    "SSL-Session:",
    "Connecting to ",
    "Can't use SSL_get_servername",
    "Protocol: ",
    "This TLS version ",
    "DONE",
    "closed",
    "read R BLOCK",
    "read:errno=",
    "s:",
    "i:",
    "a:",
    "v:",
];

fn recognise(head: &[u8]) -> Sureness {
    let mut connected = false;
    let mut found = false;
    for line in head.split(|byte| *byte == b'\n') {
        connected |= line.starts_with(CONNECTED.as_bytes());
        found |= line.starts_with(b"SSL handshake has read ") || result(line).is_some();
    }
    match (connected, found) {
        (true, true) => Sureness::Certain,
        (true, false) => Sureness::Likely,
        _ => Sureness::No,
    }
}

#[derive(Debug, Default)]
struct Reader {
    /// Whether this connection comes back after another.
    again: bool,
    /// Whether a ticket of TLS 1.3 has come, for those behind it.
    ticket: bool,
    /// Whether an alert ended the handshake, so that what is reported of it is half of one.
    failed: bool,
    /// Connections that were reported: from then on any line may be the peer's.
    reported: u64,
    /// Bytes of the handshake that came from the peer.
    bytes: Option<u64>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let line = line.trim_ascii();
        if let Some(result) = result(line) {
            self.reported += 1;
            let bytes = self.bytes.take();
            if !std::mem::take(&mut self.failed) && result.version != b"(NONE)" {
                let offered = self.again && (result.version != b"TLSv1.3" || self.ticket);
                let event = TlsEvent::Tried {
                    resumed: result.resumed,
                    offered,
                    bytes,
                };
                out.happened(What::Tls(event), None, None, line);
            }
            return Understood::Evidence;
        }
        if let Some(rest) = line.strip_prefix(b"SSL handshake has read ") {
            self.bytes = words(rest).next().and_then(whole);
            return Understood::Evidence;
        }
        if line == b"drop connection and then reconnect" {
            self.again = true;
            return Understood::Evidence;
        }
        if line.starts_with(CONNECTED.as_bytes()) {
            return Understood::Evidence;
        }
        if line == b"Post-Handshake New Session Ticket arrived:" {
            self.ticket = true;
            return Understood::Evidence;
        }
        if let Some(why) = alert(line) {
            self.failed = true;
            let why = String::from_utf8_lossy(why).into_owned();
            let event = TlsEvent::Fatal { why, raised_by: None };
            out.happened(What::Tls(event), None, None, line);
            return Understood::Evidence;
        }
        let known = line.is_empty()
            || self.reported > 0
            || is_base64(line)
            || begins_with_digit(line)
            || IGNORABLE.iter().any(|start| line.starts_with(start.as_bytes()));
        if known {
            Understood::Ignorable
        } else {
            Understood::No
        }
    }
}

/// The result of a handshake.
struct HandshakeResult<'a> {
    resumed: bool,
    version: &'a [u8],
}

/// `New, TLSv1.2, Cipher is ECDHE-RSA-AES256-GCM-SHA384`, `Reused, TLSv1.3, …`, `New, (NONE), Cipher is (NONE)`; before
/// OpenSSL 1.1 with a slash for the second comma.
fn result(line: &[u8]) -> Option<HandshakeResult<'_>> {
    let (resumed, rest) = match line.strip_prefix(b"New, ") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix(b"Reused, ")?),
    };
    let end = rest.iter().position(|byte| matches!(byte, b',' | b'/'))?;
    find(rest, b"Cipher is ")?;
    let version = rest.get(..end)?;
    Some(HandshakeResult { resumed, version })
}

/// The text of `…:error:0A00042E:SSL routines:ssl3_read_bytes:tlsv1 alert protocol version:…:SSL alert number 70`: an alert
/// that the peer sent. Or of a certificate that this side refused, which it tells by an alert.
fn alert(line: &[u8]) -> Option<&[u8]> {
    let at = find(line, b":error:")?;
    let mut fields = line.get(at..)?.split(|byte| *byte == b':').skip(3);
    let (library, _function, text) = (fields.next()?, fields.next()?, fields.next()?);
    let of_tls = library == b"SSL routines";
    let sent = text == b"certificate verify failed" || find(line, b":SSL alert number ").is_some();
    (of_tls && sent).then_some(text)
}

/// A line of a certificate.
fn is_base64(line: &[u8]) -> bool {
    line.iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte))
}

/// `0 s:CN = …` of a chain, `40B7…:error:…`, `0000 - …` of a ticket.
fn begins_with_digit(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use crate::{read_as, read_text};
    use holdup_evidence::observed::{TlsEvent, What};

    fn events(text: &str) -> Vec<TlsEvent> {
        let reading = read_text("s", text.as_bytes());
        let happenings = reading.observed.happenings.into_iter();
        happenings
            .filter_map(|one| match one.what {
                What::Tls(event) => Some(event),
                _ => None,
            })
            .collect()
    }

    fn connection(result: &str, version: &str) -> String {
        format!(
            "CONNECTED(00000003)\n---\nSSL handshake has read 1428 bytes and written 302 bytes\n---\n{result}, {version}, Cipher is X\n"
        )
    }

    const AGAIN: &str = "drop connection and then reconnect\n";

    #[test]
    fn a_connection_that_comes_back_offers_its_session_unless_no_ticket_has_come() {
        let tried = |resumed, offered| TlsEvent::Tried {
            resumed,
            offered,
            bytes: Some(1428),
        };
        let twice = |result, version| connection("New", version) + AGAIN + &connection(result, version);
        assert_eq!(
            events(&twice("Reused", "TLSv1.2")),
            [tried(false, false), tried(true, true)]
        );
        assert_eq!(
            events(&twice("New", "TLSv1.2")),
            [tried(false, false), tried(false, true)]
        );
        assert_eq!(
            events(&twice("New", "TLSv1.3")),
            [tried(false, false), tried(false, false)]
        );
        let ticket = "Post-Handshake New Session Ticket arrived:\n";
        let late = connection("New", "TLSv1.3") + ticket + AGAIN + &connection("New", "TLSv1.3");
        assert_eq!(events(&late), [tried(false, false), tried(false, true)]);
    }

    #[test]
    fn a_handshake_that_an_alert_ended_is_none() {
        let refused = "4077:error:0A00042E:SSL routines:ssl3_read_bytes:tlsv1 alert protocol version:a.c:1:SSL alert number 70\n\
             CONNECTED(00000003)\n---\nNew, (NONE), Cipher is (NONE)\n---\n";
        let fatal = TlsEvent::Fatal {
            why: "tlsv1 alert protocol version".to_owned(),
            raised_by: None,
        };
        assert_eq!(events(refused), [fatal]);
    }

    #[test]
    fn rubbish_and_cut_lines() {
        let whole = connection("New", "TLSv1.2") + AGAIN + &connection("Reused", "TLSv1.2");
        for cut in 0..whole.len() {
            let mut text = whole.as_bytes()[..cut].to_vec();
            text.extend_from_slice(b"\nNew, \nReused, ,\n:error::::\nSSL handshake has read -1\x00\xff\n");
            let reading = read_as(&super::FORMAT, &text);
            assert!(reading.accounts[0].lines >= 5, "{cut}");
        }
    }
}
