//! What the wait events of Oracle's database mean, in words.
//!
//! In: the name of an event, as a list of the top events has it. Out: what sessions wait for. Source: Oracle Database Reference, "Oracle Wait
//! Events".

/// Beginnings of names, the more particular ones first.
const MEANINGS: [(&str, &str); 22] = [
    (
        "gc buffer busy",
        "instances of the cluster contend for the same blocks: each waits while another has or fetches them",
    ),
    (
        "gc cr ",
        "blocks come from other instances of the cluster, over the interconnect",
    ),
    (
        "gc current ",
        "blocks come from other instances of the cluster, over the interconnect",
    ),
    (
        "global cache ",
        "blocks come from other instances of the cluster, over the interconnect",
    ),
    (
        "enq: tx - row lock",
        "sessions wait for rows that other transactions have locked",
    ),
    (
        "enq: tx - index",
        "sessions wait for another one to split a block of an index",
    ),
    (
        "enq: tx - allocate itl",
        "blocks have no room for another transaction (INITRANS)",
    ),
    (
        "enq: tm",
        "sessions wait for the lock of a table, as of a foreign key without an index",
    ),
    (
        "enq: hw",
        "sessions wait for each other to extend a segment (high-water mark)",
    ),
    (
        "enq: sq",
        "sessions wait for numbers of a sequence, whose cache is small",
    ),
    ("log file sync", "commits wait for the log writer"),
    ("log file parallel write", "the log writer waits for its disk"),
    (
        "log file switch",
        "sessions wait for the next redo log: its archiving or checkpoint is not done",
    ),
    (
        "log buffer space",
        "sessions write redo faster than the log writer writes it to its disk",
    ),
    (
        "db file sequential read",
        "single blocks are read from the disk, mostly by an index",
    ),
    (
        "db file scattered read",
        "many blocks are read from the disk at once, mostly by a full scan",
    ),
    (
        "direct path",
        "blocks are read or written past the cache, as by a parallel scan, a sort or a load",
    ),
    (
        "read by other session",
        "sessions wait for blocks that another one reads from the disk",
    ),
    (
        "buffer busy waits",
        "sessions contend for the same blocks in memory",
    ),
    (
        "free buffer waits",
        "no free buffer is left: the database writer is slower than the changes",
    ),
    (
        "cursor: ",
        "sessions contend for the same cursor in the shared pool",
    ),
    (
        "library cache",
        "sessions wait for a statement or an object's definition in the shared pool",
    ),
];

/// What it means; `None` of others.
pub(super) fn meaning(event: &str) -> Option<&'static str> {
    let event = event.to_ascii_lowercase();
    let found = MEANINGS.iter().find(|(name, _)| event.starts_with(name));
    found.map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::meaning;

    #[test]
    fn names_of_old_and_new_versions_are_known_by_their_beginnings() {
        let of = |name: &str| meaning(name).unwrap_or_default();
        assert!(of("gc buffer busy acquire").contains("contend for the same blocks"));
        assert!(of("gc cr multi block request").contains("interconnect"));
        assert!(of("enq: TX - row lock contention").contains("rows"));
        assert!(of("enq: TX - index contention").contains("index"));
        assert_eq!(meaning("CPU time"), None);
        assert_eq!(meaning("DB CPU"), None);
    }
}
