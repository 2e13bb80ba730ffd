//! Tables with a heading, and texts that only look like some.

use crate::{read_as, read_text};
use holdup_evidence::observed::{Statement, StatementKind};

fn said(text: &str) -> Vec<Statement> {
    read_text("t", text.as_bytes()).observed.statements
}

/// Of a table of which there is a reader by now, what it says as any table.
fn said_as_text(text: &str) -> Vec<Statement> {
    read_as(&crate::formats::text::FORMAT, text.as_bytes())
        .observed
        .statements
}

#[test]
fn the_largest_share_with_its_row() {
    let text = "BOX          LOAD %   RAM USED / LIMIT    RAM %    NET OUT\n\
        db-1         12.5%    700 MiB / 2 GiB     34.2%    1.1 MB / 3 kB\n\
        web-7        96.1%    100 MiB / 2 GiB     4.9%     8.0 MB / 1 kB\n";
    let [one] = &said(text)[..] else {
        panic!("{:?}", said(text))
    };
    assert_eq!(
        one.text,
        "web-7: LOAD % 96.1%, RAM USED / LIMIT 100 MiB / 2 GiB, RAM % 4.9%, NET OUT 8.0 MB / 1 kB; the largest of 2 rows"
    );
    assert_eq!(one.share, Some(0.961));
    assert_eq!((one.kind, one.quote.line), (StatementKind::Took, 3));
}

#[test]
fn rates_where_shares_are_small_and_a_text_of_several_words_at_the_end() {
    let text = "  TASK  OWNER     TAPE OUT  TAPE IN  WAIT>    JOB\n\
        \x20    7  root      0.00 B/s  0.00 B/s  0.10 %  logger -f x\n\
        \x20    9  root      7.50 M/s  0.00 B/s  0.00 %  cp -r big dir\n";
    assert!(
        said(text)[0].text.starts_with(
            "9: TAPE OUT 7.50 M/s, OWNER root, TAPE IN 0.00 B/s, WAIT> 0.00 %, JOB cp -r big dir"
        ),
        "{:?}",
        said(text)
    );
}

#[test]
fn a_bad_state_between_signs_and_with_empty_cells() {
    let text = "| node | role | lag | state |\n|------|------|-----|-------|\n| n1 | leader | | running |\n| n2 | replica | 70 | start failed |\n";
    let all = said(text);
    let one = all.iter().find(|one| one.text.starts_with("n2: state")).unwrap();
    assert_eq!(one.kind, StatementKind::Failed);
    assert!(one.text.contains("lag 70"), "{one:?}");
}

#[test]
fn names_of_rows_behind_the_last_name_of_a_column() {
    let text = "      flat  flat%   sum%        cum   cum%\n\
        \x20    0.62s 41.93% 41.93%      1.23s 83.34%  main.plot\n\
        \x20    0.61s 41.41% 83.34%      0.61s 41.41%  main.(*Canvas).dot\n\
        \x20    0.11s  5.76% 89.10%      0.12s  6.28%  runtime.mallocgc\n";
    assert_eq!(
        said_as_text(text)[0].text,
        "main.plot: flat% 41.93%, flat 0.62s, sum% 41.93%, cum 1.23s; the first of 3 rows, which are sorted by it"
    );
}

#[test]
fn names_of_columns_that_go_on_in_a_second_line() {
    let text = "    %-latency  Avg-      Min-       Max-       calls     Op\n\
        \x20             latency   Latency    Latency\n\
        \x20   ____________________________________________________\n\
        \x20   5.82      1132.28   21.00      70970.00   4575    PUT\n\
        \x20   46.35   104235.02 2485.00    7789367.00    488    SYNC\n";
    let all = said(text);
    assert!(
        all[0]
            .text
            .starts_with("SYNC: %-latency 46.35, Avg-latency 104235.02"),
        "{all:?}"
    );
    // A row without a figure is none of them.
    let text = "NAME  KIND  PLACE  SIZE\n one  two\n";
    assert!(said(text).is_empty(), "{:?}", said(text));
}

#[test]
fn prose_and_rubbish_are_no_tables() {
    for text in [
        "This is a line of prose\nand 12 more of 7\n",
        "| | |\n| 1 |\n||||||\n9 % %\n",
        "A B C\n% / %\n1 / /\n\u{0}\t\t9\n",
        "A  B  C\n",
        "\u{301}A  \u{301}B  C\n1\u{301}  2  3 /\n",
    ] {
        assert!(said(text).len() <= 1, "{text}: {:?}", said(text));
    }
}

#[test]
fn a_table_of_cpu_time_has_shares_without_their_sign() {
    let text = "#Time        Cpu  User Nice  Sys Wait IRQ  Soft Steal Idle\n00:46:00       0     7    0    2   29    0    0     0   60\n\
        00:46:00       2     8    0    1   35    0    0     0   53\n";
    let all = said(text);
    assert!(
        all.iter()
            .any(|one| one.text.contains("Wait 35") && one.share == Some(0.35)),
        "{all:?}"
    );
}

#[test]
fn the_last_names_of_a_heading_may_stand_close() {
    let text = "id        name   active rejected queue size\nq7Fa      write      3        0     0    5\nq8Fa      write      7       12    41    5\n";
    let all = said(text);
    assert!(
        all[0].text.starts_with(
            "write cannot keep up: 41 wait, all 7 workers are busy, 12 were turned away so far: q8Fa: "
        ),
        "{all:?}"
    );
    assert_eq!(all.len(), 1, "{all:?}");
}

#[test]
fn times_without_a_unit_as_a_part_of_their_sum() {
    let text = "        query        | calls | total_time | mean_time \n---------------------+-------+------------+-----------\n\
        SELECT * FROM carts |    10 |     900.0 |    90.0\n SELECT 1            |  9000 |     100.0 |     0.1\n";
    let all = said_as_text(text);
    assert!(
        all[0].text.starts_with("SELECT * FROM carts: total_time 900.0"),
        "{all:?}"
    );
    assert!(all[0].text.ends_with("(90 % of all rows)"), "{all:?}");
}

#[test]
fn units_below_a_heading_clocks_and_a_name_in_the_last_column() {
    let text = "Percentile  Tables     Write Latency\n                              (micros)\nMax             3           9268.00\n50%             1             22.00\n";
    let all = said(text);
    assert_eq!(all[0].ns, Some(9_268_000), "{all:?}");
    let text =
        "  job   |  waiting_for \n--------+--------------\n  a     |  00:00:09\n  b     |  01:00:00.5\n";
    assert_eq!(said(text)[0].ns, Some(3_600_500_000_000), "{:?}", said(text));
    let text = " %-latency   Avg-latency   Max-latency    Fop\n 0.50        3.00 us       9.00 us        READ\n 99.50       4.00 us       7.00 us        OPENDIR\n";
    assert!(
        said(text)[0].text.starts_with("OPENDIR: %-latency 99.50"),
        "{:?}",
        said(text)
    );
}

#[test]
fn names_of_columns_over_several_lines_above_dashes() {
    let text = "Wait Events  Snaps: a-b\n-> ordered by time\n\n                                     Avg   %Total\n                              Total   wait   Call\n\
        Event                  Waits  Time (s)  (ms)   Time\n-------------------- ------- --------- ----- ------\n\
        file read by block    74,575     9,438    12   74.2\nlog sync               7,878       270     1    2.1\n";
    let said = read_text("t", text.as_bytes()).observed.statements;
    assert!(
        said.iter().any(|one| one
            .text
            .starts_with("file read by block: %Total Call Time 74.2, Waits 74,575")),
        "{said:?}"
    );
}

#[test]
fn states_of_nodes_and_of_machines_with_their_marks() {
    let nodes = "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nidle         up 7-00:00:00      2   idle e[001-002]\n\
        cpu          up 7-00:00:00     55  drng@ d[001-032]\ncpu          up 7-00:00:00      1  fail* f005\n";
    let first = &said(nodes)[0];
    assert_eq!(first.kind, StatementKind::Stalled, "{first:?}");
    assert!(
        first.text.contains("STATE drng@") && first.text.contains("NODES 55"),
        "{first:?}"
    );
    let quiet = "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nidle         up 7-00:00:00      2  idle* e[001-002]\n\
        cpu          up 7-00:00:00     55    mix d[001-032]\n";
    let bad = said(quiet).iter().any(|one| one.kind != StatementKind::Took);
    assert!(!bad, "{:?}", said(quiet));
}

#[test]
fn names_within_a_frame_and_numbered_rows() {
    let text = "    ┌─database─┬─table──┬─elapsed─┬─num_parts─┐\n 1. │ shop     │ orders │   24855 │        18 │\n 2. │ shop     │ carts  │      12 │         5 │\n    └──────────┴────────┴─────────┴───────────┘\n";
    assert!(
        said(text)[0]
            .text
            .starts_with("orders: elapsed 24855, database shop"),
        "{:?}",
        said(text)
    );
    let text = "   +-name--+-wait_time-+-calls-+\n1. | a-b   |      32.5 |     4 |\n2. | c     |       2.5 |     9 |\n   +-------+-----------+-------+\n";
    assert!(
        said(text)[0].text.starts_with("a-b: wait_time 32.5"),
        "{:?}",
        said(text)
    );
}

#[test]
fn who_is_blocked_by_whom_in_lists_of_any_server() {
    for (text, told) in [
        (
            "spid   blocked waittime  cmd\n------ ------- --------- --------\n57     61      412231    UPDATE\n61     0       0         AWAITING\n",
            "session 57 is blocked by 61: ",
        ),
        (
            "NODE SID KIND EVENT BLOCKING_SESSION\n------ ------ ---- ------------------------------ ----------------\n1 45 TX enq: TX - row lock 74\n",
            "session 45 is blocked by 74: ",
        ),
        (
            "HOLDER HOLDER_USER WAITER LOCK_TYPE\n------ ----------- ------ ---------\n    88 HR              91 TX\n",
            "session 91 is blocked by 88: ",
        ),
        (
            " blocked_pid | blocking_user | blocking_trx | blocking_pid\n-------------+---------------+--------------+--------------\n       14321 | admin         |         5131 |        13202\n",
            "session 14321 is blocked by 13202: ",
        ),
    ] {
        let first = &said(text)[0];
        assert_eq!(first.kind, StatementKind::Stalled, "{first:?}");
        assert!(first.text.starts_with(told), "{first:?}");
        assert!(!first.text.contains("rows of"), "one row is blocked: {first:?}");
    }
    // Who has a lease, and how many tasks are blocked, blame nobody.
    for text in [
        "NAME        HOLDER    AGE\nscheduler   node-1    3d\ncontroller  node-2    3d\n",
        "name   running  blocked\na      3        2\nb      4        0\n",
    ] {
        assert!(
            said(text).iter().all(|one| one.kind == StatementKind::Took),
            "{:?}",
            said(text)
        );
    }
}

#[test]
fn what_waits_now_comes_before_what_was_lost_and_what_ended_well_is_no_trouble() {
    let text = "node    pool    queue  rejected  queue_size\nn1      write       7        12         200\nn2      write       0     93000         200\n";
    assert!(said(text)[0].text.starts_with("n1: queue 7"), "{:?}", said(text));
    let text = "NAMESPACE   NAME        READY   STATUS      RESTARTS   AGE\nshop        migrate-1   0/1     Completed   0          2d\nshop        web-1       1/1     Running     0          3d\n";
    assert!(
        said_as_text(text)
            .iter()
            .all(|one| one.kind == StatementKind::Took),
        "{:?}",
        said_as_text(text)
    );
    let text = text.replace("Completed", "Pending");
    assert!(
        said_as_text(&text)[0].text.starts_with("migrate-1: READY 0/1"),
        "{:?}",
        said_as_text(&text)
    );
}

#[test]
fn a_lead_before_the_first_cell_and_units_in_brackets() {
    let text = "import time: self [us] | cumulative | imported package\nimport time:       312 |        312 |   _io\nimport time:   1204331 |    1311201 |   tensor.wrap\nimport time:       991 |    1711201 | tensor\n";
    let all = said(text);
    assert_eq!(all[0].ns, Some(1_204_331_000), "{all:?}");
    assert!(
        all[0].text.starts_with("tensor.wrap: self [us] 1204331"),
        "{all:?}"
    );
}
