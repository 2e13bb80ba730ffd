//! Reports of CPUs that do not go on, of several machines and copied in several ways.

use crate::read_text;
use holdup_evidence::observed::{Happening, KernelEvent, Stall, What};

#[test]
fn a_lockup_is_quoted_with_its_task_and_functions() {
    let text = "watchdog: BUG: soft lockup - CPU#21 stuck for 67s!
[kworker/u513:2:795]
Workqueue: writeback wb_workfn (flush-259:8)
RIP: 0010:queued_read_lock_slowpath+0x52/0x130
Call Trace:
 <TASK>
 start_this_handle+0x99/0x520 [jbd2]
";
    let reading = read_text("d", text.as_bytes());
    let [lockup] = reading.observed.happenings.as_slice() else {
        panic!("{reading:?}")
    };
    let What::Kernel(KernelEvent::SoftLockup { process, .. }) = &lockup.what else {
        panic!("{lockup:?}")
    };
    assert_eq!(process, "kworker/u513:2:795");
    assert!(
        lockup.text.ends_with(
            "67s! … work writeback wb_workfn (flush-259:8), in queued_read_lock_slowpath < start_this_handle"
        ),
        "{}",
        lockup.text
    );
    let stall = "[ 393.750282] INFO: rcu_sched self-detected stall on CPU
[  393.764498] \t (t=105000 jiffies g=29066 c=29065 q=1109)
[  393.778490] Task dump for CPU 1:
[  393.781838] syz-executor5   R running task on cpu   1     0 16797   3934
[  393.817802]  <IRQ>  [<ffffffff8170cafa>] sched_show_task+0x31a/0x325
[  393.824517]  [<ffffffff8170d27f>] apic_timer_interrupt+0x10/0x12
[  393.830211]  [<ffffffff8170d424>] kvm_vm_compat_ioctl+0x7e/0x83
";
    let reading = read_text("d", stall.as_bytes());
    let text = &reading.observed.happenings[0].text;
    assert!(
        text.ends_with(" … task syz-executor5, 105000 jiffies, in kvm_vm_compat_ioctl"),
        "{text}"
    );
}

#[test]
fn a_stall_tells_its_cpus_and_who_has_them() {
    let stalls = |text: &str| -> Vec<Stall> {
        let happenings = read_text("log", text.as_bytes()).observed.happenings;
        let stall = |one: Happening| match one.what {
            What::Kernel(KernelEvent::CpuStall(stall)) => Some(stall),
            _ => None,
        };
        happenings.into_iter().filter_map(stall).collect()
    };
    // Of POWER, whose frames have two addresses.
    let power = "[  193.4] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:
[  193.5] rcu: \t7-...0: (1 GPs behind) idle=f3e/1/0x4 softirq=5/5 fqs=28
[  193.5] rcu: \t9-....: (1 GPs behind) idle=792/1/0x4 softirq=1/1 fqs=28
[  193.6] \t(detected by 5, t=6002 jiffies, g=79, q=72)
[  199.2] irq_soft_mask: 0x01 in_mce: 0 in_nmi: 0 current: 21 (kworker/7:0H)
[  199.3] Call Trace:
[  199.4] [c000000012973420] [c000000000933008] take_it_all+0x78/0x110
";
    let found = stalls(power);
    let [stall] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((stall.cpus.as_slice(), stall.jiffies), (&[7, 9][..], Some(6002)));
    assert_eq!(
        (stall.task.as_str(), stall.stack.as_slice()),
        ("kworker/7:0H (pid 21)", &["take_it_all".to_owned()][..])
    );
    // RCU's own thread is who got no CPU, and not who had it.
    let starved = "[ 2122.1] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:
[ 2122.2] rcu: rcu_sched kthread starved for 600 jiffies! g36205 f0x2 RCU_GP_WAIT_FQS(5) ->state=0x0 ->cpu=0
[ 2122.3] task:rcu_sched       state:R  running task     stack:  0 pid:   15 ppid:     2 flags:0x0
[ 2122.4]  rcu_gp_fqs_loop+0x30e/0x3d0
[ 2122.5] Task dump for CPU 0:
[ 2122.6] task:flusher     state:R  running task     stack:  0 pid:16943 ppid:     2 flags:0x4
[ 2122.7] Workqueue: out write_all [blk]
[ 2122.8]  hrtimer_interrupt+0x150/0x2d0
[ 2122.9]  write_all+0x150/0x2d0
";
    let found = stalls(starved);
    let [stall] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert!(stall.starved);
    assert_eq!(
        (stall.task.as_str(), stall.work.as_str()),
        ("flusher (pid 16943)", "out write_all [blk]")
    );
    assert_eq!(stall.stack, ["write_all"]);
    let arm = "[ 8.1] rcu: INFO: rcu_sched self-detected stall on CPU
[ 8.2] CPU: 0 PID: 0 Comm: swapper/0 Not tainted 5.1.0 #27
[ 8.3] PC is at __do_softirq+0x7c/0x344
";
    assert_eq!(stalls(arm)[0].stack, ["__do_softirq"]);
}
