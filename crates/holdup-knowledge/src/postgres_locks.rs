//! Locks of PostgreSQL, as its own table of kinds and the numbers of a lock name them.
//!
//! In: the server's word for a kind, and the numbers. Out: what that is, and which.

use holdup_evidence::facts::LockKind;

/// What of the server's memory is read: where each process has its entry in the table of processes; the table of kinds; where each has
/// its status; and the name that its client gave itself. All of them are exported to extensions.
pub const SYMBOLS: &[&str] = &["MyProc", "LockTagTypeNames", "MyBEEntry", "application_name"];

/// How an advisory lock was asked for: by one number of 64 bits, or by two of 32.
const BY_ONE: u16 = 1;

/// The kind of a lock, and which of that kind it is; empty where its numbers say nothing to a person.
#[must_use]
pub fn named(kind: &str, fields: [u32; 3], last: u16) -> (LockKind, String) {
    let [_, second, third] = fields;
    match kind {
        "relation" | "extend" => (LockKind::Table, second.to_string()),
        "tuple" | "page" | "transactionid" | "spectoken" => (LockKind::Row, String::new()),
        "virtualxid" => (LockKind::Transaction, String::new()),
        "advisory" | "userlock" => {
            let name = match last {
                BY_ONE => {
                    let both = u64::from(second) << 32 | u64::from(third);
                    both.cast_signed().to_string()
                }
                _ => format!("{}, {}", second.cast_signed(), third.cast_signed()),
            };
            (LockKind::Advisory, name)
        }
        _ => (LockKind::Other, String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::named;
    use holdup_evidence::facts::LockKind;

    #[test]
    fn an_advisory_lock_is_called_as_it_was_asked_for() {
        let key = |fields, last| named("advisory", fields, last).1;
        assert_eq!(key([5, 0, 1000], 1), "1000");
        assert_eq!(key([5, u32::MAX, u32::MAX], 1), "-1");
        assert_eq!(key([5, 3, u32::MAX], 2), "3, -1");
    }

    #[test]
    fn kinds_are_known_by_the_servers_words() {
        let kind = |word| named(word, [5, 16_384, 0], 0);
        assert_eq!(kind("relation"), (LockKind::Table, "16384".to_owned()));
        assert_eq!(kind("transactionid").0, LockKind::Row);
        assert_eq!(kind("applytransaction").0, LockKind::Other);
    }
}
