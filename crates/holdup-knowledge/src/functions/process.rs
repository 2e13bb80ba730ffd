//! Stopping, freezing, children, execve and ending; and the frames every sleeping stack begins with.

use super::{
    Line,
    Meaning::{Innermost, Is, Sleep},
    Rank::{Edge, Object, Scheduler},
};
use holdup_evidence::Cause::{
    IpcSignal, ProcessChild, ProcessExec, ProcessExit, ProcessFrozen, ProcessStopped, TimerSleep,
};

pub(super) const TABLE: &[Line] = &[
    // Present when the stack was taken by the thread itself; left out when another took it.
    ("__schedule", Sleep),
    ("__traceiter_sched_switch", Sleep),
    ("bpf_trace_run*", Sleep),
    ("bpf_prog_*", Sleep),
    ("io_schedule", Sleep),
    ("io_schedule_timeout", Sleep),
    ("preempt_schedule*", Sleep),
    ("schedule", Sleep),
    ("schedule_hrtimeout*", Sleep),
    ("schedule_preempt_disabled", Sleep),
    ("schedule_timeout*", Sleep),
    ("rt_mutex_schedule", Sleep),
    ("wait_woken", Sleep),
    // Stopped and frozen.
    ("__refrigerator", Is(Scheduler, ProcessFrozen)),
    ("refrigerator", Is(Scheduler, ProcessFrozen)),
    ("cgroup_enter_frozen", Is(Scheduler, ProcessFrozen)),
    ("do_freezer_trap", Is(Scheduler, ProcessFrozen)),
    // The unified hierarchy's freezer sleeps in get_signal itself, all its other sleeps have a frame inside.
    ("get_signal", Innermost(Scheduler, ProcessFrozen)),
    ("do_jobctl_trap", Is(Scheduler, ProcessStopped)),
    ("do_signal_stop", Is(Scheduler, ProcessStopped)),
    ("ptrace_do_notify", Is(Scheduler, ProcessStopped)),
    ("ptrace_notify", Is(Scheduler, ProcessStopped)),
    ("ptrace_stop", Is(Scheduler, ProcessStopped)),
    ("ptrace_signal", Is(Scheduler, ProcessStopped)),
    // Children. `kernel_clone` sleeps itself only for vfork: its other waits have inner frames.
    ("do_wait", Is(Object, ProcessChild)),
    ("kernel_wait4", Is(Object, ProcessChild)),
    ("kernel_waitid", Is(Object, ProcessChild)),
    ("wait_for_vfork_done", Innermost(Object, ProcessChild)),
    ("kernel_clone", Innermost(Object, ProcessChild)),
    ("_do_fork", Innermost(Object, ProcessChild)),
    ("do_fork", Innermost(Object, ProcessChild)),
    // execve.
    ("bprm_execve", Is(Edge, ProcessExec)),
    ("do_execve*", Is(Edge, ProcessExec)),
    ("__do_execve_file", Is(Edge, ProcessExec)),
    ("exec_binprm", Is(Edge, ProcessExec)),
    ("search_binary_handler", Is(Edge, ProcessExec)),
    ("load_elf_binary", Is(Edge, ProcessExec)),
    ("load_script", Is(Edge, ProcessExec)),
    ("begin_new_exec", Is(Edge, ProcessExec)),
    ("de_thread", Is(Edge, ProcessExec)),
    // Ending. While others dump core, the rest of the process sleeps in do_exit.
    ("coredump_wait", Is(Edge, ProcessExit)),
    ("coredump_task_exit", Is(Edge, ProcessExit)),
    ("do_coredump", Is(Edge, ProcessExit)),
    ("vfs_coredump", Is(Edge, ProcessExit)),
    ("do_exit", Is(Edge, ProcessExit)),
    ("do_group_exit", Is(Edge, ProcessExit)),
    ("exit_mmap", Is(Edge, ProcessExit)),
    ("zap_pid_ns_processes", Is(Edge, ProcessExit)),
    // Signals and time.
    ("__do_sys_pause", Is(Object, IpcSignal)),
    ("__x64_sys_pause", Is(Object, IpcSignal)),
    ("sys_pause", Is(Object, IpcSignal)),
    ("sigsuspend", Is(Object, IpcSignal)),
    ("do_sigtimedwait", Is(Object, IpcSignal)),
    ("do_nanosleep", Is(Object, TimerSleep)),
    ("hrtimer_nanosleep*", Is(Object, TimerSleep)),
    ("alarm_timer_nsleep", Is(Object, TimerSleep)),
    ("alarmtimer_do_nsleep", Is(Object, TimerSleep)),
    ("timerfd_read*", Is(Object, TimerSleep)),
];
