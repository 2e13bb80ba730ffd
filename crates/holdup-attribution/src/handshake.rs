//! TLS handshakes, by what of them is in the clear: whether a session was taken up again.
//!
//! In: the first records that a connection carried in each direction, as far as they were copied. They are hostile, may be
//! cut anywhere, and need be no TLS at all. Out: whether the handshake was a full one, or nothing where that cannot be determined.

/// Type of a record that carries handshake messages.
const HANDSHAKE: u8 = 22;
/// Type of the record before the first encrypted one, up to TLS 1.2.
const CHANGE_CIPHER: u8 = 20;
/// Bytes before a record's content, and before a message's.
const RECORD_HEAD: usize = 5;
const MESSAGE_HEAD: usize = 4;
/// Longest content of a record in the clear, bytes: longer is no TLS.
const RECORD_MOST: usize = 1 << 14;
/// Bytes of a hello's version and random number.
const BEFORE_SESSION_ID: usize = 34;
/// Longest session id, bytes.
const SESSION_ID_MOST: usize = 32;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const CERTIFICATE: u8 = 11;

const SESSION_TICKET: u16 = 35;
const PRE_SHARED_KEY: u16 = 41;
const SUPPORTED_VERSIONS: u16 = 43;
/// What a server answers in the last of these that speaks TLS 1.3.
const TLS_1_3: [u8; 2] = [3, 4];

/// The random number of a server that asks for another hello (RFC 8446, 4.1.3).
const ASKS_AGAIN: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// A handshake whose kind is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// Whether it is of TLS 1.3.
    pub tls_1_3: bool,
    /// Whether an earlier session was taken up.
    pub resumed: bool,
    /// Whether the client offered one; `None` where its hello does not tell.
    pub offered: Option<bool>,
}

/// What the two hellos tell together; `None` where they do not.
#[must_use]
pub fn read(client: &[u8], server: &[u8]) -> Option<Handshake> {
    let answer = ServerHello::read(server)?;
    let question = ClientHello::read(client)?;
    if answer.tls_1_3 {
        return (!answer.asks_again).then_some(Handshake {
            tls_1_3: true,
            resumed: answer.takes_key,
            offered: question.offers(true),
        });
    }
    // A server that takes a session up repeats the id, also of one that it knows by its ticket (RFC 5077, 3.4).
    let resumed = match (question.session_id, answer.session_id) {
        ([], []) => answer.resumes_silently?,
        (_, []) | ([], _) => false,
        (asked, answered) => asked == answered,
    };
    Some(Handshake {
        tls_1_3: false,
        resumed,
        offered: question.offers(false),
    })
}

/// Whether this is a server's that asks for another hello, before it answers.
#[must_use]
pub fn asks_again(server: &[u8]) -> bool {
    ServerHello::read(server).is_some_and(|answer| answer.tls_1_3 && answer.asks_again)
}

/// Whether these bytes hold the whole first record, or can't be one.
#[must_use]
pub fn is_whole(bytes: &[u8]) -> bool {
    match record(bytes) {
        Some((_, content, _)) => content.len() == claimed(bytes),
        None => bytes.len() >= RECORD_HEAD,
    }
}

/// What the head of a record says of its length; 0 where there is none.
fn claimed(bytes: &[u8]) -> usize {
    match bytes {
        [_, _, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    }
}

/// Type, content (as much as is there) and what follows.
fn record(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(RECORD_HEAD)?;
    let len = claimed(bytes);
    if head[1] != 3 || len == 0 || len > RECORD_MOST {
        return None;
    }
    let (content, after) = rest.split_at(len.min(rest.len()));
    Some((head[0], content, after))
}

/// Type, content (as much as is there), whether that is all, and what follows.
fn message(bytes: &[u8]) -> Option<(u8, &[u8], bool, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (content, whole, after) = field(rest, MESSAGE_HEAD - 1)?;
    Some((*kind, content, whole, after))
}

/// A field with its length before it, in `head` bytes: as much as is there, whether that is all, and what follows.
fn field(bytes: &[u8], head: usize) -> Option<(&[u8], bool, &[u8])> {
    let (len, rest) = bytes.split_at_checked(head)?;
    let len = len.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let (content, after) = rest.split_at(len.min(rest.len()));
    Some((content, content.len() == len, after))
}

/// The session id of a hello, and what follows it.
fn session_id(hello: &[u8]) -> Option<(&[u8], &[u8])> {
    let (id, whole, rest) = field(hello.get(BEFORE_SESSION_ID..)?, 1)?;
    (whole && id.len() <= SESSION_ID_MOST).then_some((id, rest))
}

/// Extensions as far as they are there, and whether that is all of them.
fn extensions(bytes: &[u8]) -> (Vec<(u16, &[u8])>, bool) {
    let mut found = Vec::new();
    // Up to TLS 1.2 there may be none.
    let Some((mut list, mut all, _)) = field(bytes, 2) else {
        return (found, bytes.is_empty());
    };
    while let Some((kind, rest)) = list.split_first_chunk::<2>() {
        let Some((content, whole, after)) = field(rest, 2) else {
            all = false;
            break;
        };
        found.push((u16::from_be_bytes(*kind), content));
        all &= whole;
        list = after;
    }
    (found, all)
}

struct ClientHello<'a> {
    session_id: &'a [u8],
    /// A ticket or a key.
    offers: bool,
    /// Its session id may be random, offering nothing.
    tls_1_3: bool,
    /// Nothing of it is cut off.
    all: bool,
}

impl<'a> ClientHello<'a> {
    fn read(bytes: &'a [u8]) -> Option<ClientHello<'a>> {
        let (HANDSHAKE, content, _) = record(bytes)? else {
            return None;
        };
        let (CLIENT_HELLO, hello, complete, _) = message(content)? else {
            return None;
        };
        let (session_id, rest) = session_id(hello)?;
        let (_, _, rest) = field(rest, 2)?;
        let (_, whole, rest) = field(rest, 1)?;
        let (extensions, all) = extensions(rest);
        let has = |kind| extensions.iter().find(|one| one.0 == kind).map(|one| one.1);
        Some(ClientHello {
            session_id,
            offers: has(SESSION_TICKET).is_some_and(|ticket| !ticket.is_empty())
                || has(PRE_SHARED_KEY).is_some(),
            tls_1_3: has(SUPPORTED_VERSIONS).is_some(),
            all: all && whole && complete,
        })
    }

    /// Whether it offers a session to a server that speaks TLS 1.3, or an earlier version.
    fn offers(&self, tls_1_3: bool) -> Option<bool> {
        match (self.offers, self.session_id) {
            (true, _) => Some(true),
            _ if !self.all => None,
            (false, []) => Some(false),
            (false, _) if tls_1_3 => Some(false),
            (false, _) => (!self.tls_1_3).then_some(true),
        }
    }
}

struct ServerHello<'a> {
    session_id: &'a [u8],
    tls_1_3: bool,
    takes_key: bool,
    asks_again: bool,
    /// By what follows, of TLS 1.2: no certificate.
    resumes_silently: Option<bool>,
}

impl<'a> ServerHello<'a> {
    fn read(bytes: &'a [u8]) -> Option<ServerHello<'a>> {
        let (HANDSHAKE, content, after) = record(bytes)? else {
            return None;
        };
        let (SERVER_HELLO, hello, complete, more) = message(content)? else {
            return None;
        };
        let (session_id, rest) = session_id(hello)?;
        // The cipher and a byte for compression.
        let (extensions, all) = extensions(rest.get(3..)?);
        let has = |kind| extensions.iter().find(|one| one.0 == kind).map(|one| one.1);
        let tls_1_3 = has(SUPPORTED_VERSIONS).is_some_and(|version| version == TLS_1_3);
        let takes_key = has(PRE_SHARED_KEY).is_some();
        // What is cut off may be what would tell.
        if !(all && complete || tls_1_3 && takes_key) {
            return None;
        }
        Some(ServerHello {
            session_id,
            tls_1_3,
            takes_key,
            asks_again: hello[2..BEFORE_SESSION_ID] == ASKS_AGAIN,
            resumes_silently: follows(more, after),
        })
    }
}

/// Whether what follows a ServerHello of TLS 1.2, in its record or the next, takes a session up.
fn follows(more: &[u8], after: &[u8]) -> Option<bool> {
    if let Some((kind, ..)) = message(more) {
        return (kind == CERTIFICATE).then_some(false);
    }
    match record(after)? {
        (CHANGE_CIPHER, ..) => Some(true),
        (HANDSHAKE, content, _) if content.first() == Some(&CERTIFICATE) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ASKS_AGAIN, Handshake, asks_again, is_whole, read};

    fn with_length(content: &[u8], head: usize) -> Vec<u8> {
        let mut bytes = (content.len() as u32).to_be_bytes()[4 - head..].to_vec();
        bytes.extend(content);
        bytes
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [kind.to_be_bytes().to_vec(), with_length(content, 2)].concat()
    }

    fn record(kind: u8, content: &[u8]) -> Vec<u8> {
        [vec![kind, 3, 3], with_length(content, 2)].concat()
    }

    fn message(kind: u8, content: &[u8]) -> Vec<u8> {
        [vec![kind], with_length(content, 3)].concat()
    }

    fn hello(kind: u8, random: [u8; 32], id: &[u8], middle: &[u8], extensions: &[Vec<u8>]) -> Vec<u8> {
        let body = [
            vec![3, 3],
            random.to_vec(),
            with_length(id, 1),
            middle.to_vec(),
            with_length(&extensions.concat(), 2),
        ];
        record(22, &message(kind, &body.concat()))
    }

    fn client(id: &[u8], extensions: &[Vec<u8>]) -> Vec<u8> {
        hello(1, [7; 32], id, &[0, 2, 0x13, 1, 1, 0], extensions)
    }

    fn server(id: &[u8], extensions: &[Vec<u8>]) -> Vec<u8> {
        hello(2, [8; 32], id, &[0x13, 1, 0], extensions)
    }

    fn new_version() -> Vec<u8> {
        extension(43, &[3, 4])
    }

    fn negotiated(client: &[u8], server: &[u8]) -> Option<(bool, Option<bool>)> {
        read(client, server).map(|one| (one.resumed, one.offered))
    }

    #[test]
    fn tls_1_3_resumes_by_a_key() {
        let versions = extension(43, &[2, 3, 4]);
        let fresh = client(&[5; 32], std::slice::from_ref(&versions));
        let again = client(&[5; 32], &[versions, extension(41, &[0; 40])]);
        let full = server(&[5; 32], &[new_version()]);
        let resumed = server(&[5; 32], &[new_version(), extension(41, &[0, 0])]);
        assert_eq!(negotiated(&fresh, &full), Some((false, Some(false))));
        assert_eq!(
            negotiated(&again, &full),
            Some((false, Some(true))),
            "offered in vain"
        );
        assert_eq!(negotiated(&again, &resumed), Some((true, Some(true))));
        assert!(read(&again, &resumed).unwrap().tls_1_3);
    }

    #[test]
    fn a_server_that_asks_for_another_hello_has_not_answered() {
        let asks = hello(2, ASKS_AGAIN, &[], &[0x13, 1, 0], &[new_version()]);
        assert_eq!(read(&client(&[], &[]), &asks), None);
        assert!(asks_again(&asks));
        assert!(!asks_again(&server(&[], &[new_version()])));
    }

    #[test]
    fn tls_1_2_resumes_by_repeating_the_id() {
        let asked = client(&[1; 32], &[]);
        assert_eq!(
            negotiated(&asked, &server(&[1; 32], &[])),
            Some((true, Some(true)))
        );
        assert_eq!(
            negotiated(&asked, &server(&[2; 32], &[])),
            Some((false, Some(true)))
        );
        assert_eq!(negotiated(&asked, &server(&[], &[])), Some((false, Some(true))));
        assert_eq!(
            negotiated(&client(&[], &[]), &server(&[2; 32], &[])),
            Some((false, Some(false)))
        );
    }

    #[test]
    fn without_ids_what_follows_tells() {
        let asked = client(&[], &[extension(35, b"ticket")]);
        let answer = server(&[], &[]);
        let after = |more: Vec<u8>| negotiated(&asked, &[answer.clone(), more].concat());
        assert_eq!(
            after(record(22, &message(11, &[0; 9]))),
            Some((false, Some(true)))
        );
        assert_eq!(after(record(20, &[1])), Some((true, Some(true))));
        assert_eq!(after(Vec::new()), None);
        assert_eq!(after(record(22, &message(4, b"new ticket"))), None);
    }

    #[test]
    fn a_new_clients_random_id_offers_nothing_that_is_known() {
        let asked = client(&[1; 32], &[extension(43, &[2, 3, 4])]);
        assert_eq!(negotiated(&asked, &server(&[], &[])), Some((false, None)));
    }

    #[test]
    fn what_is_cut_off_is_not_guessed() {
        let asked = client(&[5; 32], &[extension(43, &[2, 3, 4]), extension(41, &[0; 40])]);
        let answer = server(&[5; 32], &[new_version(), extension(41, &[0, 0])]);
        let full = Handshake {
            tls_1_3: true,
            resumed: true,
            offered: Some(true),
        };
        for cut in 0..answer.len() {
            assert!(
                matches!(
                    read(&asked, &answer[..cut]),
                    None | Some(Handshake { resumed: true, .. })
                ),
                "{cut}"
            );
            assert!(!is_whole(&answer[..cut]), "{cut}");
        }
        for cut in 0..asked.len() {
            let reading = read(&asked[..cut], &answer);
            assert!(
                reading.is_none_or(|reading| reading == full || reading.offered.is_none()),
                "{cut}: {reading:?}"
            );
        }
        assert_eq!(read(&asked, &answer), Some(full));
        assert!(is_whole(&answer));
        assert!(is_whole(b"GET / HTTP/1.1"), "no TLS is all there is");
    }
}
