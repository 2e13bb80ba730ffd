//! TLS handshakes. Input: two bytes with the length of what the client sent first, that, and what the server answered.

use holdup_attribution::handshake::{is_whole, read};

/// How many mutations the ordinary tests try.
pub(crate) const MUTATIONS: usize = 20_000;

/// Reads both, and the halves cut where a source may cut them.
pub(crate) fn run(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let (client, server) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
    let _ = (is_whole(client), is_whole(server));
    let reading = read(client, server);
    for cut in [1, 5, 6, 43, 44, 100] {
        let part = &server[..cut.min(server.len())];
        // Less of the answer may tell less, and never something else.
        if let (Some(less), Some(all)) = (read(client, part), reading) {
            assert_eq!(less.tls_1_3, all.tls_1_3);
            assert_eq!(less.resumed, all.resumed);
        }
    }
}
