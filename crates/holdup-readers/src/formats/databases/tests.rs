//! What the samples do not have: cells with bars and lines of their own, lengths of days, prefixes of all kinds, and lists
//! that are cut.

use super::postgresql_log;
use crate::{read_as, read_text};
use holdup_evidence::observed::{SeenSession, SessionDoing, What};

const SECOND: u64 = 1_000_000_000;

fn of(reading: crate::Reading) -> Vec<SeenSession> {
    let happenings = reading.observed.happenings.into_iter();
    happenings
        .filter_map(|one| match one.what {
            What::Session(session) => Some(session),
            _ => None,
        })
        .collect()
}

fn sessions(text: &str) -> Vec<SeenSession> {
    of(read_text("s", text.as_bytes()))
}

#[test]
fn a_statement_may_have_bars_and_lines_of_its_own() {
    let list = " pid |        state        | query                    | runtime\n\
                -----+---------------------+--------------------------+----------------\n\
                \x20  7 | active              | select a || '|' || b    +| 1 day 02:00:01\n\
                \x20    |                     | from t                   | \n\
                \x20  8 | idle in transaction | update t set a = 1       | 00:00:02.5\n\
                (2 rows)\n";
    let found = sessions(list);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].statement, "select a || '|' || b +");
    assert_eq!(found[0].doing_ns, Some((86_400 + 7_200 + 1) * SECOND));
    assert_eq!(found[1].doing, SessionDoing::IdleInTransaction);
    assert_eq!(found[1].doing_ns, Some(2_500_000_000));
}

#[test]
fn an_instant_is_told_by_the_youngest_of_the_list() {
    let csv = "pid,state,state_change,query_start,wait_event_type,wait_event,query\n\
               7,active,2026-11-23 11:00:05+00,2026-11-23 11:00:05+00,,,\"select 1, 2\"\n\
               8,active,2026-11-23 13:00:02+02,2026-11-23 13:00:02+02,Lock,tuple,update t\n";
    let found = sessions(csv);
    assert_eq!(found[0].statement, "select 1, 2");
    assert_eq!(
        (found[1].doing, found[1].doing_ns),
        (SessionDoing::Waits, Some(3 * SECOND))
    );
}

#[test]
fn the_servers_own_threads_are_no_sessions() {
    let list = "| Id | User | Host | db | Command | Time | State | Info |\n\
                | 1 | system user | | NULL | Daemon | NULL | InnoDB purge | NULL |\n\
                | 2 | repl | 10.0.0.2 | NULL | Binlog Dump | 86400 | Has sent all | NULL |\n\
                | 3 | shop | 10.0.0.3 | shop | Query | 51 | Waiting for table level lock | select 1 |\n\
                | 4 | shop | 10.0.0.3 | shop | Query | 5 | Waiting for tables | select 1 |\n";
    let found = sessions(list);
    let rows: Vec<(&str, SessionDoing, &str)> = found
        .iter()
        .map(|one| (one.id.as_str(), one.doing, one.lock.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            ("3", SessionDoing::Waits, "table level lock"),
            ("4", SessionDoing::Works, "")
        ]
    );
}

#[test]
fn a_prefix_of_any_kind_stands_before_the_level() {
    for prefix in [
        "2026-11-23 11:26:36.478 UTC [9] shop@shop ",
        "2026-11-23 11:26:36 UTC [9]: user=shop,db=shop,app=web,client=10.0.0.7 ",
        "<2026-11-23 11:26:36.478 UTC:10.0.0.7(51234):[9]> ",
    ] {
        let log = format!(
            "{prefix}LOG:  process 7 still waiting for ShareLock on transaction 5 after 1000.1 ms\n\
             {prefix}DETAIL:  Process holding the lock: 3. Wait queue: 7.\n\
             {prefix}STATEMENT:  select\t1\n\tfrom t\n\
             {prefix}ERROR:  canceling statement due to lock timeout\n"
        );
        let found = of(read_as(&postgresql_log::FORMAT, log.as_bytes()));
        let [waits, gave_up] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((waits.id.as_str(), waits.doing_ns), ("7", Some(1_000_100_000)));
        assert_eq!(
            (waits.held_by.as_slice(), waits.statement.as_str()),
            (&["3".to_owned()][..], "select 1")
        );
        assert_eq!((gave_up.id.as_str(), gave_up.doing), ("9", SessionDoing::GaveUp));
    }
}

#[test]
fn a_page_that_makes_one_blank_of_two_and_marks_words_hides_no_holder() {
    let log = "2026-11-23 11:26:36.478 EET [7] shop@shop LOG: process 7 still waiting for ShareLock on transaction 5 after 1000.1 ms\n\
        2026-11-23 11:26:36.478 EET [7] shop@shop DETAIL: Process holding the *lock*: 3. Wait queue: 7.\n\
        2026-11-23 11:26:36.478 EET [7] shop@shop STATEMENT: update t set a = 1\n";
    let found = of(read_as(&postgresql_log::FORMAT, log.as_bytes()));
    let [waits] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(
        (waits.id.as_str(), waits.held_by.as_slice()),
        ("7", &["3".to_owned()][..])
    );
    assert_eq!(waits.statement, "update t set a = 1");
}

#[test]
fn a_list_of_locks_joined_with_the_sessions_tells_who_waits_where_all_locks_are_granted() {
    let text = " relname | pid | mode | granted | wait_event_type | wait_event | state | query\n\
        ---------+-----+------+---------+-----------------+------------+-------+------\n \
        t | 12 | RowExclusiveLock | t | Lock | transactionid | active | update t set a = 1\n \
        t | 15 | RowExclusiveLock | t | Client | ClientRead | idle in transaction | update t set a = 2\n";
    let all = sessions(text);
    let doing: Vec<(&str, SessionDoing)> = all.iter().map(|one| (one.id.as_str(), one.doing)).collect();
    assert_eq!(
        doing,
        [
            ("12", SessionDoing::Waits),
            ("15", SessionDoing::IdleInTransaction)
        ]
    );
}

#[test]
fn rows_with_a_bar_before_them_and_none_behind_are_rows() {
    let text = "+----+------+---------+------+-------\n  | Id | Command | Time | State              | Info\n +----+------+---\n  \
        |  3 | Query  |   7 | Waiting for table metadata lock | select 1\n";
    let all = sessions(text);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].id.as_str(), all[0].doing), ("3", SessionDoing::Waits));
}

#[test]
fn what_is_cut_or_made_up_is_told_as_far_as_it_goes() {
    for text in [
        "-[ RECORD 1 ]-\npid | \nstate | active\n",
        "*** 1. row ***\nId: x\nCommand: Query\nTime: -1\n",
        " pid | state\n-----+---\n | \n99999999999999999999 | active\n",
        "| Id | Command | Time | State |\n| 1 |\n",
        "pid,state\n\"7,active\n",
    ] {
        assert_eq!(sessions(text), [], "{text}");
    }
    let cut = "LOG:  process 7 still waiting for x\nLOG:  process  acquired ShareLock on y after z ms\n";
    assert_eq!(of(read_as(&postgresql_log::FORMAT, cut.as_bytes())), []);
}

#[test]
fn innodb_tells_who_waits_and_who_has_locks() {
    let status = "=====================================\n\
                  2026-11-23 12:20:01 0x7fa INNODB MONITOR OUTPUT\n\
                  LATEST DETECTED DEADLOCK\n\
                  *** (1) TRANSACTION:\n\
                  TRANSACTION 9, ACTIVE 90 sec starting index read\n\
                  MySQL thread id 90, OS thread handle 1, query id 2 localhost root updating\n\
                  LIST OF TRANSACTIONS FOR EACH SESSION:\n\
                  ---TRANSACTION 4, not started\n\
                  0 lock struct(s), heap size 1128, 0 row lock(s)\n\
                  ---TRANSACTION 24, ACTIVE 11 sec starting index read\n\
                  LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)\n\
                  MySQL thread id 6, OS thread handle 14, query id 8 10.0.0.7 shop updating\n\
                  update orders set state = 1\n\
                  ------- TRX HAS BEEN WAITING 11 SEC FOR THIS LOCK TO BE GRANTED:\n\
                  RECORD LOCKS space id 5 page no 3 n bits 320 index PRIMARY of table `shop`.`orders` trx id 24 lock_mode X waiting\n\
                  ------------------\n\
                  ---TRANSACTION 23, ACTIVE (PREPARED) 12 sec\n\
                  2 lock struct(s), heap size 1128, 1 row lock(s), undo log entries 1\n\
                  MySQL thread id 5, OS thread handle 14, query id 7 10.0.0.8 shop\n\
                  --------\n\
                  FILE I/O\n\
                  --------\n\
                  MySQL thread id 7, OS thread handle 14, query id 7 10.0.0.8 shop\n";
    let rows: Vec<(String, SessionDoing, Option<u64>, String)> = sessions(status)
        .into_iter()
        .map(|one| (one.id, one.doing, one.doing_ns, one.lock))
        .collect();
    let lock = "a lock on `shop`.`orders`".to_owned();
    assert_eq!(
        rows,
        [
            ("6".to_owned(), SessionDoing::Waits, Some(11 * SECOND), lock),
            (
                "5".to_owned(),
                SessionDoing::IdleInTransaction,
                Some(12 * SECOND),
                String::new()
            ),
        ]
    );
}

/// Some clients put values into single quotation marks, and a statement has those of its own; what is cut is still a row.
#[test]
fn a_list_with_commas_and_single_quotation_marks_is_read() {
    let text = "Id, User, Host, db, Command, Time, State, Info, Progress\n\
        7, 'app', 'web:6', 'shop', 'Query', 240, 'Waiting for table metadata lock', 'select a, b from carts where kind='small'', 0.000\n\
        8, 'app', 'web:7', 'shop', 'Query', 300, 'Repair by sorting', 'CREATE TABLE `c` (\n";
    let all = sessions(text);
    let texts: Vec<_> = all
        .iter()
        .map(|one| {
            (
                one.id.as_str(),
                one.doing_ns.map(|ns| ns / 1_000_000_000),
                one.lock.as_str(),
            )
        })
        .collect();
    assert_eq!(
        texts,
        [("7", Some(240), "table metadata lock"), ("8", Some(300), "")]
    );
}
