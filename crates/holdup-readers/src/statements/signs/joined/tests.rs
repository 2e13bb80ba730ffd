//! Tests of what lines tell together, through the reader of texts and logs.

use crate::read_text;
use holdup_evidence::observed::StatementKind;

fn said(text: &str) -> Vec<(StatementKind, String)> {
    let all = read_text("t", text.as_bytes()).observed.statements;
    all.into_iter().map(|one| (one.kind, one.text)).collect()
}

fn has(text: &str, wanted: &str) -> StatementKind {
    let all = said(text);
    let found = all.iter().find(|(_, said)| said.contains(wanted));
    found.unwrap_or_else(|| panic!("{wanted}: {all:#?}")).0
}

fn has_not(text: &str, wanted: &str) {
    let all = said(text);
    assert!(
        all.iter().all(|(_, said)| !said.contains(wanted)),
        "{wanted}: {all:#?}"
    );
}

fn collection(second: u32, took: &str, over: &str, old: &str) -> String {
    format!(
        "[2023-05-06T10:00:{second:02},100][WARN ][o.e.m.j.JvmGcMonitorService] [data-3] [gc][old][51{second}][91] duration [{took}], collections [1]/[{over}], \
         total [{took}]/[1.2h], memory [7.9gb]->[7.8gb]/[8gb], all_pools {{[young] [90mb]->[4mb]/[0b]}}{{[old] {old}}}{{[survivor] [0b]->[0b]/[0b]}}\n"
    )
}

#[test]
fn collections_that_free_nothing() {
    let text = collection(1, "9s", "10s", "[7.8gb]->[7.8gb]/[8gb]")
        + &collection(12, "8s", "10s", "[7.8gb]->[7.7gb]/[8gb]");
    let wanted = "the heap of data-3 is full: after 2 collections of the old generation 7.7gb of 8gb (96 %) are still in use, so that they free hardly \
        anything; they took 17.00 s of 20.00 s (85 %), the longest 9.00 s";
    assert_eq!(has(&text, wanted), StatementKind::Exhausted);
    // Where the old generation has no limit of its own, the heap's counts.
    has(
        &collection(1, "9s", "10s", "[7.8gb]->[7.8gb]/[0b]"),
        "7.8gb of 8gb",
    );
    // One that frees much, and one that is rare.
    has_not(
        &collection(1, "900ms", "1.2s", "[7.8gb]->[2.1gb]/[8gb]"),
        "is full",
    );
    has_not(&collection(1, "1s", "40s", "[7.8gb]->[7.7gb]/[8gb]"), "is full");
}

#[test]
fn daemons_that_are_slow_again_and_again() {
    let update = |second: u32, names: &str| {
        format!(
            "2023-01-02T10:00:{second:02}.1+0000 mon.a (mon.0) 9{second} : cluster [WRN] Health check update: 2 slow ops, oldest one blocked for {} sec, \
             daemons [{names}] have slow ops. (SLOW_OPS)\n",
            30 + second
        )
    };
    let text =
        update(1, "osd.3,osd.7") + &update(6, "osd.3") + &update(11, "osd.3,osd.9") + &update(16, "osd.3");
    let wanted = "slow requests (slow ops) of Ceph in 4 reports, the oldest request blocked for 46.00 s: the same daemon comes again and again: osd.3 in 4 of \
        them; 2 others less often (osd.7 once)";
    assert_eq!(has(&text, wanted), StatementKind::Stalled);
    let old = "cluster [WRN] Health check update: 7 slow requests are blocked > 32 sec. Implicated osds 4,11 (REQUEST_SLOW)\n".repeat(4);
    has(
        &old,
        "the same daemons come again and again: osd.11 in 4 of them, osd.4 in 4 of them",
    );
    let all_others: String = (0..8)
        .map(|number| update(number, &format!("osd.{number}")))
        .collect();
    has_not(&all_others, "again and again");
    has_not(
        &"10:00:01 INFO restarting daemons [osd.1]\n".repeat(4),
        "again and again",
    );
}

#[test]
fn a_job_that_does_not_end() {
    let celery = "[2022-03-04 10:00:00,100: INFO/MainProcess] Received task: shop.sync[aaaaaaaa-1111]\n\
        [2022-03-04 10:00:02,100: INFO/ForkPoolWorker-1] Task shop.sync[aaaaaaaa-1111] succeeded in 2.01s: None\n\
        [2022-03-04 10:01:00,100: INFO/MainProcess] Task shop.sync[bbbbbbbb-2222] received\n\
        [2022-03-04 11:31:00,100: INFO/MainProcess] worker: Warm shutdown (MainProcess)\n";
    let wanted = "the worker took the job shop.sync[bbbbbbbb-2222] and did not end it in 90 min 0 s, where others of its name took 2.01 s at most, until \
        the worker was ended";
    assert_eq!(has(celery, wanted), StatementKind::Stalled);
    let sidekiq = "2022-03-04T10:00:00.100Z pid=9 tid=1 class=Mail jid=0011223344 INFO: start\n2022-03-04T10:00:01.100Z pid=9 tid=1 class=Mail jid=0011223344 INFO: done: 1.0 sec\n\
        2022-03-04T10:00:02.100Z pid=9 tid=1 class=Mail jid=5566778899 INFO: start\n2022-03-04T10:40:02.100Z pid=9 tid=1 class=Mail jid=aabbccddee INFO: start\n";
    has(sidekiq, "the job Mail[5566778899] and did not end it in 40 min");
    // A job that runs as long as others do, one that is to run later, and one that has ended.
    has_not(&celery.replace("11:31:00", "10:01:20"), "did not end it");
    has_not(
        &celery.replace(
            "[bbbbbbbb-2222] received",
            "[aaaaaaaa-1111] succeeded in 3.1s: None",
        ),
        "did not end it",
    );
    let later = celery.replace(
        "Task shop.sync[bbbbbbbb-2222] received",
        "Received task: shop.sync[bbbbbbbb-2222]  ETA:[2022-03-05]",
    );
    has_not(&later, "did not end it");
    // One that was given up, and one that was fetched while a long one ran before it.
    let revoked = celery.replace(
        "[2022-03-04 11:31:00",
        "[2022-03-04 10:01:01,000: INFO/MainProcess] Discarding revoked task: shop.sync[bbbbbbbb-2222]\n[2022-03-04 11:31:00",
    );
    has_not(&revoked, "did not end it");
    let fetched = "[2022-03-04 10:00:00,100: INFO/MainProcess] Received task: shop.export[aaaaaaaa-1111]\n\
        [2022-03-04 10:00:00,200: INFO/MainProcess] Received task: shop.mail[bbbbbbbb-1111]\n\
        [2022-03-04 10:00:00,300: INFO/MainProcess] Received task: shop.mail[cccccccc-1111]\n\
        [2022-03-04 10:00:00,400: INFO/ForkPoolWorker-2] Task shop.mail[bbbbbbbb-1111] succeeded in 0.1s: None\n\
        [2022-03-04 10:20:00,400: INFO/ForkPoolWorker-1] Task shop.export[aaaaaaaa-1111] succeeded in 1200.1s: None\n";
    has_not(fetched, "did not end it");
}

#[test]
fn the_part_of_a_request_that_took_the_time() {
    let text = "Rendered carts/_row.html.erb (12.1ms)\nRendered carts/index.html.erb within layouts/application (1502.4ms)\n\
        Completed 200 OK in 2004ms (Views: 1702.5ms | ActiveRecord: 101.2ms)\n";
    has(
        text,
        "a request took 2004 ms, and 85 % of that, 1702.5 ms, is rendering the views; the application's own code and what it calls 200.3 ms (10.0 %), the \
         database (ActiveRecord) 101.2 ms (5.0 %); the slowest template is index.html.erb with 1502.4 ms (75 %)",
    );
    has(
        "Completed 200 OK in 5200ms (Views: 31.0ms | ActiveRecord: 4900.2ms (812 queries, 3 cached) | GC: 3.0ms)\n",
        "94 % of that, 4900.2 ms, is the database (ActiveRecord)",
    );
    has(
        "method=GET path=/a format=html status=200 duration=3000.00 view=10.00 db=200.00\n",
        "93 % of that, 2790.0 ms, is the application's own code",
    );
    has_not(
        "ts=2024-03-01T10:00:00Z msg=\"render done\" path=/a view=2 duration=1500 items=3\n",
        "of that",
    );
    has_not(
        "Completed 200 OK in 120ms (Views: 100.0ms | ActiveRecord: 2.0ms)\n",
        "of that",
    );
}

#[test]
fn a_repair_that_starts_over() {
    let text = "# zpool status tank | grep scanned\n10:00:01  2.10T scanned out of 8.00T at 200M/s, 8h to go\n10:00:31  2.11T scanned out of 8.00T at 200M/s, 8h to go\n\
        10:01:01  20.3M scanned out of 8.00T at 1M/s, (scan is slow, no estimated time)\n\n\
        Mar  3 10:00:40 box kernel: [ 81.1] sd 4:0:1:0: [sdq]  Add. Sense: Unrecovered read error\n";
    let wanted = "the scan of tank (resilver or scrub) started over and lost its progress: 2.11T of 8.00T were scanned at 10:00:31, and 20.3M at 10:01:01; \
        sdq (4:0:1:0) reported unrecovered read error at 10:00:40";
    assert_eq!(has(text, wanted), StatementKind::Stalled);
    has(
        &text.replace(
            "sd 4:0:1:0: [sdq]  Add. Sense: Unrecovered read error",
            "blk_update_request: I/O error, dev sdx, sector 9",
        ),
        "; sdx reported i/o error at 10:00:40",
    );
    has_not(&text.replace("20.3M", "2.12T"), "started over");
    // Another pool, which is another size.
    has_not(
        &text.replace("20.3M scanned out of 8.00T", "20.3M scanned out of 1.00T"),
        "started over",
    );
    // The next scrub, and another pool of the same size.
    has_not(&text.replace("2.11T", "7.50T"), "started over");
    has_not(
        &text.replace("10:01:01  20.3M", "# zpool status dozer\n10:01:01  20.3M"),
        "started over",
    );
}

#[test]
fn memory_that_the_kernel_could_not_give() {
    let zone = "[  90.1] Node 0 Normal free:1800kB min:9000kB low:11000kB high:13000kB active_file:500000kB inactive_file:524000kB managed:4000000kB\n";
    let failure = "[  90.0] rx: page allocation failure. order:0, mode:0x20\n";
    let text = format!("{failure}{zone}[  90.2] Free swap  = 2097152kB\n");
    let wanted = "the kernel could not give rx a piece of 4.0 KiB (page allocation failure, order:0, mode:0x20): zone Normal of node 0 has only 1800 kB free, \
        below its lowest mark (min) of 9000 kB";
    assert_eq!(has(&text, wanted), StatementKind::Exhausted);
    has(
        &text,
        "1000 MiB of file cache are there to be freed, 2.0 GiB of swap are free",
    );
    let pieces = "Mar  1 10:00:00 box kernel: java: page allocation failure: order:4, mode:0x40d0(GFP_KERNEL|__GFP_COMP)\n\
        Mar  1 10:00:00 box kernel: Node 0 Normal free:800000kB min:9000kB low:11000kB high:13000kB\n\
        Mar  1 10:00:00 box kernel: Node 0 Normal: 199000*4kB (UE) 500*8kB (U) 0*16kB 0*32kB 0*64kB 0*128kB = 800000kB\n";
    has(
        pieces,
        "a piece of 64.0 KiB (page allocation failure, order:4, mode:0x40d0(GFP_KERNEL|__GFP_COMP)): zone Normal of node 0 has 781 MiB free, but no piece larger than 8.0 KiB: its memory is fragmented",
    );
    // Zones without a failure, as of a key that asks for them.
    has_not(zone, "could not give");
    has_not(&pieces.replace("0*64kB", "7*64kB"), "fragmented");
}

#[test]
fn ranks_that_went_different_ways() {
    let waited = |rank: u32, step: u32, kind: &str| {
        format!(
            "[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={step}, OpType={kind}, \
             NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600043 milliseconds before timing out.\n"
        )
    };
    let all = waited(0, 71, "ALLREDUCE")
        + &waited(1, 71, "ALLREDUCE")
        + &waited(2, 70, "BROADCAST")
        + &waited(3, 71, "ALLREDUCE");
    let wanted = "3 ranks waited for the others in ALLREDUCE (SeqNum 71), while rank 2 in BROADCAST (SeqNum 70) waited in another step";
    assert_eq!(has(&all, wanted), StatementKind::TimedOut);
    let missing = waited(0, 71, "ALLREDUCE") + &waited(1, 71, "ALLREDUCE") + &waited(3, 71, "ALLREDUCE");
    has(&missing, "and of rank 2 nothing is told");
    let same = waited(0, 71, "ALLREDUCE") + &waited(1, 71, "ALLREDUCE") + &waited(2, 71, "ALLREDUCE");
    has_not(&same, "ranks waited");
}

#[test]
fn cron_jobs_in_trees() {
    has(
        "systemd─┬─cron───14*[cron───sh───report.sh───mysql]\n        └─nginx───4*[nginx]\n",
        "14 runs of the same cron job are alive at once",
    );
    let run = |pid: u32| {
        format!(
            "             ├─ {pid} /usr/sbin/CRON -f\n             ├─ {} /bin/sh -c /opt/sync.sh\n",
            pid + 1
        )
    };
    let text = format!(
        "● cron.service - Regular background program processing daemon\n     CGroup: /system.slice/cron.service\n             ├─ 61 /usr/sbin/cron -f\n{}{}{}",
        run(91),
        run(93),
        run(95)
    );
    has(
        &text,
        "3 copies of the cron job `/opt/sync.sh` run at once (pids 92, 94, 96)",
    );
    has_not(
        "systemd─┬─cron───4*[cron───sh───php]\n        └─sshd\n",
        "cron job",
    );
    let again = format!(
        "● cron.service\n             ├─ 61 /usr/sbin/cron -f\n{}",
        run(91)
    );
    has_not(&again.repeat(3), "cron job");
}
