//! Shapes in which figures stand: pairs, samples of exporters, JSON, tables; and what is none.

use super::{MAX_STATEMENTS, MAX_THINGS};
use crate::read_text;
use holdup_evidence::observed::Statement;

fn known(text: &str) -> Vec<Statement> {
    let mut all = read_text("t", text.as_bytes()).observed.statements;
    all.retain(|one| one.known.is_some() && one.of_reader);
    all
}

fn texts(text: &str) -> Vec<String> {
    known(text).into_iter().map(|one| one.text).collect()
}

#[test]
fn a_name_and_its_value_stand_in_many_shapes() {
    for line in [
        "UnderReplicatedPartitions: 5",
        "UnderReplicatedPartitions=5",
        "UnderReplicatedPartitions 5",
        "UnderReplicatedPartitions\t5",
        "UnderReplicatedPartitions          5",
        "UnderReplicatedPartitions ..... : 5",
        "Under replicated partitions = 5",
        "under-replicated-partitions => 5",
        "| UnderReplicatedPartitions | 5 |",
        "\u{2502} UnderReplicatedPartitions \u{2502} 5 \u{2502}",
        "  \"underReplicatedPartitions\" : \"5\",",
        "STAT under_replicated_partitions 5",
        "kafka_server_ReplicaManager_UnderReplicatedPartitions 5.0",
        "kafka_server_replicamanager_underreplicatedpartitions_value 5",
        "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions 5",
        "<UnderReplicatedPartitions>5</UnderReplicatedPartitions>",
        "{\\\"under_replicated_partitions\\\":5}",
        "2026-03-03 10:00:00,123 INFO [main] UnderReplicatedPartitions=5, offline=0",
        "broker-1: under_replicated_partitions_total: 1,005.",
    ] {
        let all = texts(line);
        assert_eq!(all.len(), 1, "{line}: {all:?}");
        assert!(all[0].contains(" = 5") || all[0].contains(" = 1,005"), "{all:?}");
    }
}

#[test]
fn limits_conditions_parts_of_other_names_and_other_figures_are_none() {
    for line in [
        "UnderReplicatedPartitions: 0",
        "UnderReplicatedPartitions",
        "UnderReplicatedPartitions > 5",
        "UnderReplicatedPartitions>5",
        "UnderReplicatedPartitions >= 5",
        "UnderReplicatedPartitions == 5",
        "max_under_replicated_partitions: 5",
        "max under replicated partitions: 5",
        "maxUnderReplicatedPartitions = 5",
        "under_replicated_partitions_limit = 5",
        "if UnderReplicatedPartitions = 5 then",
        "# HELP under_replicated_partitions 5 of them",
        "# under_replicated_partitions = 5",
        "// under_replicated_partitions = 5",
        "under_replicated_partitions_bucket{le=\"5\"} 5",
        "under_replicated_partitions{quantile=\"0.9\"} 5",
        "UnderReplicatedPartitions: 5/7",
        "UnderReplicatedPartitions: 5-7",
        "UnderReplicatedPartitions: 5.1.2",
        "UnderReplicatedPartitions: -1",
        "UnderReplicatedPartitions: | | 5",
        "SELECT under_replicated_partitions 5 FROM t",
        "Seconds_Behind_Master: NULL",
        "Seconds_Behind_Master (max): 9000",
        "smartmon_current_pending_sector_value{disk=\"/dev/sda\"} 100",
        "seconds_behind_master_seconds_total: 9000",
        "seconds_behind_master_seconds_count 9000",
    ] {
        assert_eq!(texts(line), [""; 0], "{line}");
    }
}

#[test]
fn a_figure_says_what_it_is_of() {
    for (text, of) in [
        (
            "under_replicated_partitions{topic=\"orders\",broker=\"1\"} 5 1700000000",
            "topic=\"orders\",broker=\"1\"",
        ),
        ("UnderReplicatedPartitions[broker-1]: 5", "broker-1"),
        ("Broker 7:\n  UnderReplicatedPartitions: 5\n", "Broker 7"),
        ("[broker-7]\nUnderReplicatedPartitions: 5\n", "broker-7"),
        (
            "{\n \"node-1\": {\n  \"name\": \"es-hot\",\n  \"jvm\": {\n   \"heap_used_percent\" : 97\n",
            "node-1, es-hot, jvm",
        ),
        (
            "{\"a\":[{\"name\":\"n1\",\"heap_used_percent\":97},{\"name\":\"n2\",\"heap_used_percent\":7}]}",
            "n1",
        ),
        ("{\"heap_used_percent\":97,\"host\":\"h1\"}", "h1"),
        (
            "2026-03-03 10:00:00 INFO [broker 7] state: UnderReplicatedPartitions=5, live=9",
            "[broker 7] state: UnderReplicatedPartitions=5, live=9",
        ),
    ] {
        let all = texts(text);
        assert_eq!(all.len(), 1, "{text}: {all:?}");
        assert!(all[0].ends_with(&format!("({of})")), "{all:?}");
    }
}

#[test]
fn units_are_those_of_the_value_else_of_the_name_else_of_the_row() {
    for (line, bad) in [
        ("Seconds_Behind_Master: 601", true),
        ("Seconds_Behind_Master: 599", false),
        ("seconds_behind_master_ms: 601", false),
        ("seconds_behind_master_ms: 601000", true),
        ("Seconds Behind Master (ms): 601", false),
        ("Seconds Behind Master: 11 m", false),
        ("Seconds Behind Master: 11m", true),
        ("Seconds Behind Master: 00:10:01", true),
        ("heap_used_percent: 98%", true),
        ("heap_used_percent: 98", true),
        ("heap_used_percent_ratio: 0.98", true),
        ("heap_used_percent: 98 ms", false),
    ] {
        assert_eq!(!texts(line).is_empty(), bad, "{line}");
    }
    let one = &known("Seconds_Behind_Master: 11 min")[0];
    assert_eq!(one.ns, Some(660_000_000_000));
    assert_eq!(known("heap_used_percent: 98%")[0].share, Some(0.98));
}

#[test]
fn columns_of_tables_have_figures_and_the_first_word_of_a_row_is_what_they_are_of() {
    for table in [
        "BROKER   UNDER_REPLICATED_PARTITIONS   STATE\nb1       0                             ok\nb2       5                             ok\n",
        "broker underReplicatedPartitions state\nb1 0 ok\nb2 5 ok\n",
        "| id | broker | under replicated partitions |\n|----|--------|----|\n| 1 | b1 | 0 |\n| 2 | b2 | 5 |\n",
        " id | broker | under_replicated_partitions \n----+--------+----\n 1 | b1 | 0\n 2 | b2 | 5\n(2 rows)\n",
        "broker,under_replicated_partitions\nb1,0\nb2,5\n",
        "broker\tunder_replicated_partitions\nb1\t0\nb2\t5\n",
        "+----+----+\n| broker | UnderReplicatedPartitions |\n+----+----+\n| b1 | 0 |\n| b2 | 5 |\n+----+----+\n",
    ] {
        let all = texts(table);
        assert_eq!(all.len(), 1, "{table}: {all:?}");
        assert!(all[0].ends_with(" = 5 (b2)"), "{all:?}");
    }
}

#[test]
fn a_row_tells_its_first_names_and_its_other_figures() {
    let table = " database | user | cl_active | cl_waiting | sv_active | sv_idle | pool_mode \n----------+------+-----------+------------+-----------+---------+----\n \
                 shop | app | 357 | 419 | 80 | 0 | transaction\n shop | dba | 0 | 0 | 0 | 0 | session\n";
    assert_eq!(
        texts(table),
        ["cl_waiting = 419 (shop app; cl_active 357, sv_active 80)"]
    );
}

#[test]
fn no_figures_are_rows_of_other_lengths_prose_and_what_comes_behind_a_table() {
    for text in [
        "broker under_replicated_partitions state\nb1 5\n",
        "look at the UnderReplicatedPartitions metric now.\nthat has the value 5 for us now.\n",
        "broker   under_replicated_partitions\nb1       0\n\nb2 5 and more words\n",
        "name   under_replicated_partitions   max\n\nwhatever   none   7\n",
    ] {
        assert_eq!(texts(text), [""; 0], "{text}");
    }
}

#[test]
fn the_worst_of_each_thing_is_told_with_how_often_and_only_so_many() {
    let mut log = String::new();
    for (second, lag) in [(1, 700), (2, 9_000), (3, 800)] {
        log.push_str(&format!(
            "2026-03-03 10:00:0{second} replica shop is late: seconds_behind_master={lag}, more to come\n"
        ));
    }
    let all = known(&log);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].times, all[0].quote.line), (3, 2));
    assert!(all[0].text.contains("9000") && all[0].first != all[0].last);
    let many: String = (1..=50)
        .map(|at| format!("under_replicated_partitions{{topic=\"t{at}\"}} {at}\n"))
        .collect();
    let all = known(&many);
    assert!(all.len() <= MAX_THINGS.min(MAX_STATEMENTS), "{all:?}");
    assert!(all.iter().any(|one| one.text.contains("\"t50\"")));
}

#[test]
fn lines_that_differ_in_long_numbers_alone_are_all_judged() {
    let mut text = String::new();
    for value in ["100000", "299999", "200000"] {
        text.push_str(&format!("sent 123456 heap_used_percent 0.00{value} x\n"));
        text.push_str(&format!("state 123456: seconds_behind_master_ms {value} x\n"));
    }
    text.push_str("state 123456: seconds_behind_master_ms 999999 x\n");
    let all = texts(&text);
    assert!(all.iter().any(|one| one.contains("999999")), "{all:?}");
}

#[test]
fn hostile_lines_cost_little_and_cuts_anywhere_are_survived() {
    let long = "UnderReplicatedPartitions=1 ".repeat(200_000);
    assert!(known(&long).len() <= MAX_STATEMENTS);
    let braces = "a{} 5".repeat(100_000);
    assert!(known(&braces).is_empty());
    let brackets = "] = 5 ".repeat(100_000);
    assert!(known(&brackets).is_empty());
    let text = "x{a=\"b\"} 5\nunder_replicated_partitions{t=\"\u{e9}\"} 5\n| \u{e9} | UnderReplicatedPartitions |\n|--|--|\n| a | 1e5 |\n\
        \"heap_used_percent\" : 9.7e1,\nUnderReplicatedPartitions (ms): 5\nlag[\u{e9}]: 5\n";
    for end in 0..text.len() {
        let _ = read_text("t", text.as_bytes().get(..end).unwrap_or_default());
    }
}
