//! Locks of SQLite databases: which bytes of which file stand for what.

/// The lock page of a database file: who has this byte lets nobody else begin to read, the next one is the writer's, and readers share the
/// rest (`sqlite3`, file locking).
const PENDING: u64 = 0x4000_0000;
const SHARED_LAST: u64 = PENDING + 511;

/// In the shared memory of a write-ahead log: the writer's lock, the checkpoint's and the one of recovery.
const WAL_WRITE: u64 = 120;
const WAL_RECOVER: u64 = 122;

/// Whether an exclusive lock of these bytes keeps other connections from writing.
#[must_use]
pub fn keeps_writers_out((first, last): (u64, u64)) -> bool {
    let of_database = (PENDING..=SHARED_LAST).contains(&first) && last <= SHARED_LAST;
    let of_log = (WAL_WRITE..=WAL_RECOVER).contains(&first) && last <= WAL_RECOVER;
    of_database || of_log
}

/// The database that such a file belongs to: its shared memory is beside it.
#[must_use]
pub fn database_of(file: &str) -> &str {
    file.strip_suffix("-shm").unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::{database_of, keeps_writers_out};

    #[test]
    fn the_lock_bytes_of_a_database_and_of_its_log_are_known() {
        assert!(keeps_writers_out((1_073_741_825, 1_073_741_825)), "reserved");
        assert!(keeps_writers_out((1_073_741_826, 1_073_742_335)), "exclusive");
        assert!(keeps_writers_out((120, 120)), "a writer of the log");
        assert!(!keeps_writers_out((123, 123)), "a reader of the log");
        assert!(!keeps_writers_out((0, u64::MAX)), "a whole file");
        assert_eq!(database_of("/srv/shop.db-shm"), "/srv/shop.db");
        assert_eq!(database_of("/srv/shop.db"), "/srv/shop.db");
    }
}
