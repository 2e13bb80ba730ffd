//! Tests of requests of Ceph: that ended, that go on, and other JSON.

use crate::read_text;
use holdup_evidence::observed::StatementKind;

const TEXT: &str = "{\n    \"size\": 20,\n    \"duration\": 600,\n    \"ops\": [\n        {\n            \
    \"description\": \"osd_op(client.77.0:9 3.1a 3:58::obj:head [write 0~4096] e90)\",\n            \
    \"initiated_at\": \"2026-02-13T22:11:00.197241+0000\",\n            \"age\": 400.1,\n            \"duration\": 5.213,\n            \
    \"type_data\": {\n                \"flag_point\": \"commit sent; apply or cleanup\",\n                \"events\": [\n                    \
    {\n                        \"event\": \"queued_for_pg\",\n                        \"time\": \"2026-02-13T22:11:00.200000+0000\",\n                        \
    \"duration\": 0\n                    },\n                    {\n                        \"event\": \"waiting for subops from 4,7\",\n                        \
    \"time\": \"2026-02-13T22:11:00.210000+0000\",\n                        \"duration\": 0.01\n                    },\n                    {\n                        \
    \"event\": \"sub_op_commit_rec\",\n                        \"time\": \"2026-02-13T22:11:05.410000+0000\",\n                        \
    \"duration\": 5.2\n                    }\n                ]\n            }\n        },\n        {\n            \
    \"description\": \"osd_op(client.77.0:10 3.1b e90)\",\n            \"duration\": 0.2\n        }\n    ]\n}\n";

#[test]
fn the_slowest_request_and_its_longest_step() {
    let reading = read_text("c", TEXT.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "ceph-ops");
    assert_eq!(reading.accounts[0].not_understood, 0);
    assert_eq!(
        reading.texts(),
        [
            "osd_op(client.77.0:9 3.1a 3:58::obj:head [write 0~4096] e90) took 5.21 s, the slowest of 2 requests; its longest step took \
            5.20 s, from \"waiting for subops from 4,7\" to \"sub_op_commit_rec\"; it is at \"commit sent; apply or cleanup\""
        ]
    );
    assert_eq!(reading.observed.statements[0].kind, StatementKind::Took);
}

#[test]
fn requests_that_go_on_in_an_older_form() {
    let text = "{ \"num_ops\": 1,\n  \"ops\": [\n { \"description\": \"osd_op(client.7.0:4 rbd_header [watch] 18.8)\",\n \
        \"received_at\": \"2018-05-24 23:59:21.442995\",\n \"age\": \"1018.638811\",\n \"duration\": \"83.8\",\n \"flag_point\": \"delayed\",\n \
        \"events\": [\n { \"time\": \"2018-05-24 23:59:33.000000\",\n \"event\": \"reached_pg\"},\n { \"time\": \"2018-05-25 00:00:45.000000\",\n \
        \"event\": \"waiting for missing object\"}]}]}\n";
    let reading = read_text("c", text.as_bytes());
    let one = &reading.observed.statements[0];
    assert_eq!(one.kind, StatementKind::Stalled);
    assert_eq!(
        one.text,
        "osd_op(client.7.0:4 rbd_header [watch] 18.8) has been going on for 16 min 59 s, the slowest of 1 request; its longest step \
         took 1 min 12 s, from \"reached_pg\" to \"waiting for missing object\"; it is at \"delayed\""
    );
}

#[test]
fn other_json_is_none() {
    for text in [
        "{\"description\": \"x\", \"time\": \"1\"}\n",
        "\"description\": \"a\\\n\"event\": \n",
    ] {
        let reading = read_text("c", text.as_bytes());
        assert_ne!(reading.observed.sources[0].format, "ceph-ops", "{text}");
    }
}
