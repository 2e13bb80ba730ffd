//! Names of resources, and time on a CPU.

use super::{Case, object};
use crate::classify::on_cpu;
use holdup_evidence::{Call, Cause, TaskState};
use holdup_model::attributed::ResourceKind;

#[test]
fn resources_have_names_that_people_know() {
    let name = |case: Case| case.classify().resource.name;
    let read = || Case::new("read", [3, 0, 1, 0]);
    assert_eq!(name(read().on("pipe")), "pipe:[77]");
    assert_eq!(name(read().on("udp 10.0.0.1:53")), "10.0.0.1:53 (udp)");
    assert_eq!(name(read().on("tcp [::ffff:10.0.0.1]:80")), "10.0.0.1:80 (tcp)");
    assert_eq!(
        name(Case::new("accept", [0; 4]).on("tcp listen 0.0.0.0:80")),
        "listening on 0.0.0.0:80"
    );
    assert_eq!(name(read().on("unix")), "unix socket of pid 42");
    assert_eq!(name(Case::new("wait4", [1234, 0, 0, 0])), "process 1234");
    assert_eq!(name(Case::new("wait4", [0xffff_ffff, 0, 0, 0])), "a child");
    let dns = read().on("udp 10.0.0.1:53").classify();
    assert_eq!(dns.resource.detail.texts()["server"], "10.0.0.1");
    assert_eq!(dns.resource.detail.texts()["port"], "53");
    assert_eq!(dns.resource.detail.texts()["call"], "read");
    assert_eq!(dns.resource.kind, ResourceKind::Socket);
    assert_eq!(dns.bytes, Some(1));
    let lock = Case::new("unlink", [0; 4])
        .blocked(false)
        .stack("down_write do_unlinkat")
        .classify();
    assert_eq!(
        (lock.resource.kind, lock.resource.name.as_str()),
        (ResourceKind::Lock, "do_unlinkat")
    );
    let opened = Case::new("openat", [0; 4])
        .blocked(false)
        .stack("fanotify_handle_event fsnotify do_dentry_open vfs_open")
        .classify();
    assert_eq!(
        (opened.cause, opened.resource.name.as_str()),
        (Cause::SecurityDecision, "a scanner of files (fanotify)")
    );
    let sent = Case::new("sendfile", [4, 3, 0, 9]).on("file ext4 7:0 /srv/f");
    let sent = sent
        .stack("wait_woken sk_stream_wait_memory tcp_sendmsg do_sendfile")
        .classify();
    assert_eq!(
        (sent.cause, sent.resource.name.as_str()),
        (Cause::NetSend, "sendfile")
    );
}

#[test]
fn on_a_cpu_the_object_is_named_and_an_unseeded_generator_is_a_wait() {
    let call = |name| Case::new(name, [3, 0, 4096, 0]).call;
    let stack = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let looping = stack("try_to_generate_entropy wait_for_random_bytes __do_sys_getrandom");
    let urandom = object("char 1:9 /dev/urandom");
    let got = on_cpu(call("read"), false, Some(&urandom), None);
    assert_eq!(
        (got.cause, got.resource.name.as_str()),
        (Cause::CpuKernel, "/dev/urandom")
    );
    assert_eq!(got.call, Some("read"));
    let contended = stack("native_queued_spin_lock_slowpath _raw_spin_lock_irqsave extract_buf urandom_read");
    let got = on_cpu(call("read"), false, Some(&urandom), Some(&contended));
    assert_eq!(got.resource.detail.texts()["spinlock"], "extract_buf");
    assert_eq!(
        on_cpu(call("getrandom"), false, None, Some(&looping)).cause,
        Cause::RandomUnseeded
    );
    assert_eq!(
        on_cpu(call("getrandom"), false, None, None).cause,
        Cause::CpuKernel
    );
    assert_eq!(on_cpu(Call::none(), true, None, None).cause, Cause::CpuUser);
    let fault = on_cpu(
        Call::none(),
        false,
        None,
        Some(&stack("clear_page handle_mm_fault exc_page_fault")),
    );
    assert_eq!(fault.resource.name, "page fault");
    for (frames, work) in [
        (
            "shrink_folio_list try_to_free_mem_cgroup_pages handle_mm_fault exc_page_fault",
            "mem.reclaim",
        ),
        (
            "lzo1x_decompress swap_read_folio do_swap_page exc_page_fault",
            "mem.swapin",
        ),
    ] {
        let got = on_cpu(Call::none(), false, None, Some(&stack(frames)));
        assert_eq!(
            (got.cause, got.resource.detail.texts()["memory_work"].as_str()),
            (Cause::CpuKernel, work)
        );
    }
}

#[test]
fn a_ring_on_which_nobody_has_asked_awaits_work() {
    let mut case = Case::new("io_uring_enter", [7, 0, 1, 1]);
    assert_eq!(case.classify().cause, Cause::IoAsync);
    case.nobody_asked = true;
    let found = case.classify();
    assert_eq!(
        (found.cause, found.resource.name.as_str()),
        (Cause::Idle, "a request to be made on its io_uring")
    );
    // What it sleeps for without being woken by a signal is no completion.
    case.state = TaskState::Uninterruptible;
    case.stack = Some(vec!["nobody_knows_this".to_owned()]);
    assert_ne!(case.classify().cause, Cause::Idle);
}
