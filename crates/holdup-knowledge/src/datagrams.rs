//! Protocols over UDP in which a message is a request, and its receiver owes an answer.
//!
//! In: how a datagram begins, its size and the port that it went to. Out: the protocol, if the datagram is a request of it. Figures for a
//! statistics server and lines for a log look like none of these: nobody answers them. Written from the protocols' own documents: RFC 1035,
//! 2865, 3261, 5905, 3416 and 8489.

use holdup_model::attributed::DatagramProtocol as Protocol;

/// Bytes of a header of DNS.
const DNS_HEADER: usize = 12;

/// Bytes of the longest label of a name.
const MAX_LABEL: usize = 63;

/// What RADIUS calls a request: for access, of accounts, for the status.
const RADIUS_REQUESTS: [u8; 3] = [1, 4, 12];

/// Bytes of a message of RADIUS, at least and at most.
const RADIUS_SIZE: std::ops::RangeInclusive<usize> = 20..=4096;

/// Requests of SIP that are answered; an acknowledgement is not.
const SIP_METHODS: [&str; 12] = [
    "INVITE",
    "REGISTER",
    "OPTIONS",
    "SUBSCRIBE",
    "NOTIFY",
    "MESSAGE",
    "BYE",
    "UPDATE",
    "PUBLISH",
    "INFO",
    "REFER",
    "CANCEL",
];

/// Ports where a message is told by its first bytes only beside the port.
const NTP_PORT: u16 = 123;
const SNMP_PORT: u16 = 161;

/// Bytes of a message of NTP without keys.
const NTP_SIZE: usize = 48;

/// Of NTP's first byte: the mode of a client.
const NTP_CLIENT: u8 = 3;

/// After the type and the length of a message of STUN.
const STUN_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const STUN_BINDING_REQUEST: [u8; 2] = [0, 1];
const STUN_HEADER: usize = 20;

/// The protocol of which this datagram is a request. `size` is that of all of it, bytes.
#[must_use]
pub fn request(begins: &[u8], size: u64, port: u16) -> Option<Protocol> {
    let size = usize::try_from(size).ok()?;
    let found = match () {
        () if is_dns(begins, size) => Protocol::Dns,
        () if is_radius(begins, size) => Protocol::Radius,
        () if is_sip(begins) => Protocol::Sip,
        () if port == NTP_PORT && is_ntp(begins, size) => Protocol::Ntp,
        () if port == SNMP_PORT && is_snmp(begins) => Protocol::Snmp,
        () if is_stun(begins, size) => Protocol::Stun,
        () => return None,
    };
    Some(found)
}

fn is_dns(begins: &[u8], size: usize) -> bool {
    let Some((header, mut rest)) = begins.split_at_checked(DNS_HEADER) else {
        return false;
    };
    // A question of the ordinary kind: not truncated, no outcome yet, one name, no answers.
    let [_, _, flags, outcome, 0, 1, 0, 0, 0, 0, 0, extra] = *header else {
        return false;
    };
    if flags & !1 != 0 || outcome & 0x0f != 0 || extra > 2 {
        return false;
    }
    let whole = size == begins.len();
    loop {
        match rest.split_first() {
            // The rest was not kept.
            None => return !whole,
            Some((0, after)) => {
                // Its kind, and the class of the Internet.
                return match after {
                    [_, _, 0, 1, ..] => true,
                    [_, _, _, _, ..] => false,
                    _ => !whole,
                };
            }
            Some((&len, after)) if usize::from(len) <= MAX_LABEL => {
                let Some(next) = after.get(usize::from(len)..) else {
                    return !whole;
                };
                rest = next;
            }
            Some(_) => return false,
        }
    }
}

fn is_radius(begins: &[u8], size: usize) -> bool {
    let [code, _, high, low, ..] = *begins else {
        return false;
    };
    RADIUS_REQUESTS.contains(&code)
        && usize::from(u16::from_be_bytes([high, low])) == size
        && RADIUS_SIZE.contains(&size)
}

fn is_sip(begins: &[u8]) -> bool {
    SIP_METHODS.iter().any(|method| {
        let rest = begins.strip_prefix(method.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b" sip:") || rest.starts_with(b" sips:"))
    })
}

fn is_ntp(begins: &[u8], size: usize) -> bool {
    let first = begins.first().copied().unwrap_or_default();
    size >= NTP_SIZE && first & 7 == NTP_CLIENT && (1..=4).contains(&(first >> 3 & 7))
}

fn is_snmp(begins: &[u8]) -> bool {
    // A sequence with a number of one byte first, its version; a length of more than 127 has more bytes.
    matches!(
        begins,
        [0x30, 0..=0x7f, 2, 1, 0 | 1 | 3, ..]
            | [0x30, 0x81, _, 2, 1, 0 | 1 | 3, ..]
            | [0x30, 0x82, _, _, 2, 1, 0 | 1 | 3, ..]
    )
}

fn is_stun(begins: &[u8], size: usize) -> bool {
    let Some((kind, rest)) = begins.split_first_chunk::<2>() else {
        return false;
    };
    let Some((len, rest)) = rest.split_first_chunk::<2>() else {
        return false;
    };
    *kind == STUN_BINDING_REQUEST
        && rest.starts_with(&STUN_COOKIE)
        && size.checked_sub(STUN_HEADER) == Some(usize::from(u16::from_be_bytes(*len)))
}

#[cfg(test)]
mod tests {
    use super::{Protocol, request};

    fn of(bytes: &[u8], port: u16) -> Option<Protocol> {
        let kept = bytes.get(..64).unwrap_or(bytes);
        request(kept, bytes.len() as u64, port)
    }

    fn question(name: &[&str], flags: u8) -> Vec<u8> {
        let mut all = vec![7, 9, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name {
            all.push(u8::try_from(label.len()).unwrap());
            all.extend(label.as_bytes());
        }
        all.extend([0, 0, 1, 0, 1]);
        all
    }

    #[test]
    fn requests_are_told_on_any_port() {
        assert_eq!(of(&question(&["api", "example"], 1), 5999), Some(Protocol::Dns));
        let long = "a".repeat(60);
        assert_eq!(of(&question(&[&long, "example"], 1), 53), Some(Protocol::Dns));
        let mut access = vec![1, 77, 0, 90];
        access.resize(90, 5);
        assert_eq!(of(&access, 2812), Some(Protocol::Radius));
        let invite = b"INVITE sip:1001@192.0.2.1 SIP/2.0\r\nVia: x\r\n";
        assert_eq!(of(invite, 5062), Some(Protocol::Sip));
        let mut time = vec![0x23];
        time.resize(48, 0);
        assert_eq!(of(&time, 123), Some(Protocol::Ntp));
        assert_eq!(
            of(b"\x30\x29\x02\x01\x01\x04\x06public", 161),
            Some(Protocol::Snmp)
        );
        let mut binding = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
        binding.resize(20, 3);
        assert_eq!(of(&binding, 3478), Some(Protocol::Stun));
    }

    #[test]
    fn answers_and_what_nobody_answers_are_no_requests() {
        assert_eq!(of(&question(&["api", "example"], 0x81), 53), None, "an answer");
        assert_eq!(of(b"hits.login:1|c\nhits.cart:3|c\n", 8125), None);
        assert_eq!(of(b"<34>Oct 11 22:14:15 web su: failed for root", 514), None);
        assert_eq!(of(b"SIP/2.0 200 OK\r\n", 5060), None);
        assert_eq!(of(b"ACK sip:1001@192.0.2.1 SIP/2.0\r\n", 5060), None);
        let mut accept = vec![2, 77, 0, 44];
        accept.resize(44, 5);
        assert_eq!(of(&accept, 1812), None);
        let mut time = vec![0x24];
        time.resize(48, 0);
        assert_eq!(of(&time, 123), None, "a server's answer");
        assert_eq!(of(&[], 53), None);
        let cut = &question(&["api", "example"], 1)[..18];
        assert_eq!(of(cut, 53), None, "a name without its end");
    }
}
