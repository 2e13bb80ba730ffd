//! What a session of MySQL or MariaDB waits for within a statement.
//!
//! Each connection has a thread, which reads a command and works on it until it is done: what it waits for meanwhile it waits
//! for on behalf of its client. The servers export their functions to plugins; those of the storage engine have names only
//! where the symbols are there.

use super::{bare, split, within};
use holdup_evidence::Frame;
use holdup_evidence::facts::LockKind;
use holdup_model::attributed::Common;

/// Files of the servers.
const SERVERS: &[&str] = &["mysqld", "mariadbd"];

/// Functions that work on a command which has been read, outermost first: of a deep stack the outer part is not seen.
const WORKS: &[&str] = &["dispatch_command", "mysql_parse", "mysql_execute_command"];

/// Condition variables of the C library, with a time limit: so is each wait for a lock of a row or of a definition.
const TIMED: &[&str] = &["pthread_cond_timedwait", "pthread_cond_clockwait"];

/// Functions of the server that ask for a lock, innermost first, and what they want.
const LOCKED: &[(&[&str], &str)] = &[
    (
        &[
            "lock_wait",
            "lock_wait_suspend_thread",
            "lock_wait_table_reserve_slot",
        ],
        Common::LockedRow.name(),
    ),
    (&["Item_func_get_lock::val_int"], "a user lock (GET_LOCK)"),
    (
        &["Global_read_lock::lock_global_read_lock"],
        "the global read lock",
    ),
    (&["MDL_wait::timed_wait", "MDL_context::acquire_lock"], METADATA),
    (&["thr_lock", "thr_multi_lock", "mysql_lock_tables"], "a table"),
];

/// What is known of a metadata lock by the stack alone: the function that waits is the same for all of them.
pub const METADATA: &str = "a metadata lock (of a table, or of the whole server)";

/// Where MariaDB and MySQL have what a session is said to wait for, by the kind of metadata lock: a table that the server exports.
pub const STAGES: &str = "_ZN7MDL_key30m_namespace_to_wait_state_nameE";

/// What a session waits for, by the server's own words for the stage of its statement, in ours, and what the lock is on.
const BY_STAGE: &[(&str, &str, LockKind)] = &[
    (
        "Waiting for backup lock",
        "the lock of the whole server for backups (FLUSH TABLES WITH READ LOCK or BACKUP STAGE)",
        LockKind::Server,
    ),
    (
        "Waiting for global read lock",
        "the global read lock (FLUSH TABLES WITH READ LOCK)",
        LockKind::Server,
    ),
    (
        "Waiting for commit lock",
        "the lock of the whole server for commits",
        LockKind::Server,
    ),
    (
        "Waiting for schema metadata lock",
        "a database's definition (a metadata lock)",
        LockKind::Schema,
    ),
    (
        "Waiting for table metadata lock",
        "a table's definition (a metadata lock)",
        LockKind::Definition,
    ),
    (
        "Waiting for stored function metadata lock",
        "a stored function's definition (a metadata lock)",
        LockKind::Other,
    ),
    (
        "Waiting for stored procedure metadata lock",
        "a stored procedure's definition (a metadata lock)",
        LockKind::Other,
    ),
    (
        "Waiting for trigger metadata lock",
        "a trigger's definition (a metadata lock)",
        LockKind::Other,
    ),
    (
        "Waiting for event metadata lock",
        "an event's definition (a metadata lock)",
        LockKind::Other,
    ),
    ("User lock", "a user lock (GET_LOCK)", LockKind::User),
];

/// What of MariaDB's memory is read of sessions and their locks, all of it exported to plugins: the list of sessions; the tables of functions
/// of sessions and of claims on definitions; functions that hand out a session's number, its part for such locks, its data of a storage
/// engine, its command, and whether it is connected; the table of stages.
pub const SYMBOLS: &[&str] = &[
    "server_threads",
    "_ZTV3THD",
    "_ZTV10MDL_ticket",
    "thd_get_thread_id",
    "thd_mdl_context",
    "thd_get_ha_data",
    "thd_current_command",
    "thd_is_connected",
    STAGES,
];

/// What a lock is on for which a session waits in that stage.
#[must_use]
pub fn lock_of_stage(stage: &str) -> LockKind {
    let known = BY_STAGE.iter().find(|(name, ..)| *name == stage);
    known.map_or(LockKind::Other, |(.., kind)| *kind)
}

/// The same lock, by a stage that the server names; `None` of others.
pub fn by_stage(stage: &str) -> Option<&'static str> {
    BY_STAGE
        .iter()
        .find(|(name, ..)| *name == stage)
        .map(|(_, what, _)| *what)
}

/// The stage of that text; `None` of others.
pub fn stage(text: &str) -> Option<&'static str> {
    BY_STAGE
        .iter()
        .find(|(name, ..)| *name == text)
        .map(|(name, ..)| *name)
}

/// Whether that is a file or a process of such a server.
pub fn is_server(name: &str) -> bool {
    SERVERS.contains(&name)
}

/// The function of `SLEEP()`.
const SLEEP: &str = "Item_func_sleep::val_int";

/// Calls into a storage engine that read or write rows: below them a wait with a time limit is for a row's lock.
const OF_ROWS: &str = "handler::";

/// What a session waits for that another session has locked, in words; `None` of anything else.
pub fn lock(stack: &[Frame]) -> Option<&'static str> {
    let (library, callers) = split(stack);
    if !works(callers) {
        return None;
    }
    let named = LOCKED.iter().find(|(functions, _)| {
        callers
            .iter()
            .filter_map(bare)
            .any(|name| functions.contains(&name))
    });
    if let Some((_, what)) = named {
        return Some(what);
    }
    let timed = library.iter().filter_map(bare).any(|name| TIMED.contains(&name));
    let outermost_unnamed = callers.iter().find_map(bare);
    let of_rows = outermost_unnamed.is_some_and(|name| name.starts_with(OF_ROWS));
    (timed && of_rows).then_some(Common::LockedRow.name())
}

/// Whether a statement asked to sleep.
pub fn sleeps(stack: &[Frame]) -> bool {
    works(stack) && stack.iter().filter_map(bare).any(|name| name == SLEEP)
}

/// Whether a thread of the server is at work on a client's command.
pub fn works(stack: &[Frame]) -> bool {
    stack
        .iter()
        .any(|frame| within(frame, SERVERS) && bare(frame).is_some_and(|name| WORKS.contains(&name)))
}

#[cfg(test)]
mod tests {
    use super::{lock, sleeps, works};
    use holdup_evidence::Frame;

    fn stack(names: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(symbol, module): &(&str, &str)| Frame {
            symbol: (!symbol.is_empty()).then(|| (*symbol).to_owned()),
            module: Some((*module).to_owned()),
            ..Frame::default()
        };
        names.iter().map(frame).collect()
    }

    const WORKS: (&str, &str) = (
        "dispatch_command(enum_server_command, THD*, char*, unsigned int, bool)",
        "mariadbd",
    );

    #[test]
    fn a_row_is_waited_for_below_a_call_for_rows() {
        let waits = ("pthread_cond_timedwait", "libc.so.6");
        let rows = (
            "handler::ha_index_read_map(unsigned char*, unsigned char const*)",
            "mariadbd",
        );
        let row = Some("a row that another transaction has locked");
        assert_eq!(lock(&stack(&[waits, ("", "mariadbd"), rows, WORKS])), row);
        let named = ("lock_wait_suspend_thread(que_thr_t*)", "mysqld");
        assert_eq!(
            lock(&stack(&[waits, named, ("dispatch_command(THD*)", "mysqld")])),
            row
        );
        let untimed = ("pthread_cond_wait", "libc.so.6");
        assert_eq!(
            lock(&stack(&[untimed, ("", "mariadbd"), rows, WORKS])),
            None,
            "something of the engine's own"
        );
        let commits = ("ha_commit_trans(THD*, bool)", "mariadbd");
        assert_eq!(
            lock(&stack(&[waits, ("", "mariadbd"), commits, rows, WORKS])),
            None
        );
        assert_eq!(
            lock(&stack(&[waits, ("", "mariadbd"), rows])),
            None,
            "no client's"
        );
        assert!(works(&stack(&[untimed, commits, WORKS])));
        let sleep = ("Item_func_sleep::val_int()", "mariadbd");
        assert!(sleeps(&stack(&[waits, sleep, WORKS])) && lock(&stack(&[waits, sleep, WORKS])).is_none());
    }

    #[test]
    fn a_definition_is_waited_for_by_name() {
        let waits = [
            ("pthread_cond_timedwait", "libc.so.6"),
            (
                "MDL_wait::timed_wait(MDL_context_owner*, timespec*, bool, PSI_stage_info_v1 const*)",
                "mariadbd",
            ),
            ("MDL_context::acquire_lock(MDL_request*, double)", "mariadbd"),
            WORKS,
        ];
        assert_eq!(lock(&stack(&waits)), Some(super::METADATA));
    }
}
