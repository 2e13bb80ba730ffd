//! What the time of a profile went to.
//!
//! In: the stacks of [`Samples`]. Out: [`Part`]s, heaviest first: stacks that do the same thing, asked for by the same code.
//! A sleeping thread is known by the functions of the kernel that it sleeps in, by the same tables as a live run's; a Java
//! thread by its innermost Java frames, as in a thread dump; else by the function of the C library that it is in. Weights
//! are of threads: a profile does not tell which of them anyone waited for.

use super::dumps::{self, Doing};
use super::stacks;
use holdup_attribution::attribution::choose;
use holdup_attribution::classify::{self, Site};
use holdup_evidence::observed::{Samples, Weight};
use holdup_evidence::units::duration;
use holdup_evidence::{Call, Cause, Frame, Language, Observed, TaskState, Waker};
use std::collections::{BTreeMap, HashMap};

/// What a stack shows its thread doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Does {
    /// It waits, or it runs ([`Cause::on_cpu`]).
    For(Cause),
    /// It has no work.
    Idle,
    /// It waits, and for what cannot be determined.
    Unknown,
}

/// Stacks that do the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What they do.
    pub does: Does,
    /// Whether it is a lock that others hold.
    pub contended: bool,
    /// The function that shows it.
    pub function: String,
    /// The function that asked.
    pub asker: String,
    /// How many samples, or how much of what was counted.
    pub weight: u64,
}

/// Functions of the scheduler: a thread that has them innermost sleeps.
const SCHEDULER: [&str; 9] = [
    "schedule",
    "__schedule",
    "finish_task_switch",
    "io_schedule",
    "schedule_timeout",
    "schedule_hrtimeout_range",
    "schedule_preempt_disabled",
    "io_schedule_timeout",
    "__cond_resched",
];

/// Functions of the C library and of runtimes that wait, and for what; where a profile has no kernel frames.
const LIBRARY: [(&str, Cause); 24] = [
    ("ObjectMonitor::enter", Cause::LockMonitor),
    ("ReentrantLock$Sync.lock", Cause::LockMonitor),
    ("__lll_lock_wait", Cause::LockFutex),
    ("___pthread_mutex_lock", Cause::LockFutex),
    ("__pthread_mutex_lock", Cause::LockFutex),
    ("pthread_mutex_lock", Cause::LockFutex),
    ("pthread_rwlock_", Cause::LockFutex),
    ("__futex_abstimed_wait", Cause::LockFutex),
    ("pthread_cond_", Cause::LockFutex),
    ("__pthread_cond_wait", Cause::LockFutex),
    ("sem_wait", Cause::LockFutex),
    ("runtime.futex", Cause::LockFutex),
    ("sync.(*Mutex).", Cause::LockFutex),
    ("sync.(*RWMutex).", Cause::LockFutex),
    ("clock_nanosleep", Cause::TimerSleep),
    ("__GI___clock_nanosleep", Cause::TimerSleep),
    ("nanosleep", Cause::TimerSleep),
    ("time.Sleep", Cause::TimerSleep),
    ("epoll_wait", Cause::PollWait),
    ("__poll", Cause::PollWait),
    ("poll", Cause::PollWait),
    ("__libc_recv", Cause::NetReceive),
    ("__GI___wait4", Cause::ProcessChild),
    ("wait4", Cause::ProcessChild),
];

/// Functions that are entered only where another holds the lock.
const CONTENDED: [&str; 15] = [
    "__lll_lock_wait",
    "__pthread_mutex_lock_slow",
    "__mutex_lock",
    "mutex_spin_on_owner",
    "rwsem_down_",
    "rwsem_spin_on_owner",
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
    "queued_write_lock_slowpath",
    "queued_read_lock_slowpath",
    "ObjectMonitor::enter",
    "ObjectSynchronizer::enter",
    // As the reader of `jfr print` writes a wait for one; a frame of a stack has its package before it.
    "ReentrantLock$Sync.lock",
    "sync.(*Mutex).Lock",
];

/// The parts of a profile, heaviest first.
pub fn parts(observed: &Observed, samples: &Samples) -> Vec<Part> {
    let mut all: BTreeMap<(Does, bool, String, String), u64> = BTreeMap::new();
    // Profiles have thousands of stacks of the same few functions.
    let mut known: HashMap<&str, Frame> = HashMap::new();
    for (stack, weight) in &samples.stacks {
        let names = observed.stacks.frames(*stack);
        let frames = names.map(|name| known.entry(name).or_insert_with(|| of_profiler(name)).clone());
        let listed = part(frames.collect(), samples.waiting);
        let sum = all.entry(listed).or_default();
        *sum = sum.saturating_add(*weight);
    }
    let mut parts: Vec<Part> = all
        .into_iter()
        .map(|((does, contended, function, asker), weight)| Part {
            does,
            contended,
            function,
            asker,
            weight,
        })
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.weight));
    parts
}

/// What shares of a profile are shares of.
pub fn whole(samples: &Samples) -> &'static str {
    match (samples.weight, samples.waiting) {
        (Weight::Count, _) => "of the samples",
        (_, Some(true)) => "of the time in which threads waited",
        (_, _) => "of the time in it",
    }
}

/// A weight in its unit.
pub fn amount(samples: &Samples, weight: u64) -> String {
    match samples.weight {
        Weight::Count => weight.to_string(),
        Weight::Ns => duration(weight),
        Weight::Us => duration(weight.saturating_mul(1_000)),
    }
}

/// A frame's function, and whose it is.
fn of_profiler(text: &str) -> Frame {
    for (suffix, language) in [
        ("_[k]", Language::Kernel),
        ("_[j]", Language::Java),
        ("_[i]", Language::Java),
        ("_[0]", Language::Java),
        ("_[1]", Language::Java),
    ] {
        if let Some(name) = text.strip_suffix(suffix) {
            // async-profiler writes classes with `/`.
            let java = language == Language::Java;
            return Frame {
                symbol: Some(if java {
                    name.replace('/', ".")
                } else {
                    name.to_owned()
                }),
                language,
                ..Frame::default()
            };
        }
    }
    let mut frame = stacks::frame(text);
    let module = frame.module.as_deref().unwrap_or_default();
    if module.starts_with("[kernel") || module.starts_with("[guest.kernel") {
        frame.language = Language::Kernel;
    }
    // Without suffixes a class with its package is still one: `java/net/Socket.read`, `org.apache.X.run`.
    if let Some(name) = frame.symbol.as_deref().filter(|_| frame.module.is_none())
        && is_java(name)
    {
        frame.symbol = Some(name.replace('/', "."));
        frame.language = Language::Java;
    }
    frame
}

/// Whether a name is a method with its class and package.
fn is_java(name: &str) -> bool {
    let packages = [
        "java/", "javax/", "jdk/", "sun/", "com/", "org/", "io/", "java.", "javax.", "jdk.", "sun.",
    ];
    packages.iter().any(|start| name.starts_with(start)) && name.contains('.')
}

/// Whether a function is the way into the kernel: all below it is the kernel's.
fn is_entry(name: &str) -> bool {
    let starts = [
        "entry_SYSCALL",
        "__x64_sys_",
        "__arm64_sys_",
        "asm_exc_",
        "asm_sysvec_",
    ];
    starts.iter().any(|start| name.starts_with(start))
        || matches!(name, "do_syscall_64" | "el0_svc" | "el0t_64_sync")
}

/// What a stack shows.
fn part(mut frames: Vec<Frame>, waiting: Option<bool>) -> (Does, bool, String, String) {
    let entry = frames
        .iter()
        .rposition(|frame| frame.symbol.as_deref().is_some_and(is_entry));
    for frame in frames.iter_mut().take(entry.map_or(0, |at| at + 1)) {
        frame.language = Language::Kernel;
    }
    let symbols: Vec<String> = frames.iter().filter_map(|frame| frame.symbol.clone()).collect();
    let symbol = |frame: &Frame| frame.symbol.clone().unwrap_or_default();
    let java_frames: Vec<&str> = frames
        .iter()
        .filter(|frame| frame.language == Language::Java)
        .filter_map(|frame| frame.symbol.as_deref())
        .collect();
    let (doing, java_asker) = dumps::by_frames(&java_frames);
    // Without modules the C library's frames are known by their names only.
    let of_library = |frame: &&Frame| {
        let name = frame.symbol.as_deref().unwrap_or_default();
        let known = LIBRARY.iter().any(|(start, _)| name.starts_with(start))
            || matches!(name, "recv" | "send" | "sem_timedwait" | "usleep" | "sleep")
            || Call::named(name).number != Call::NONE;
        frame.module.is_none()
            && (known || name.starts_with("__") || CONTENDED.iter().any(|start| name.starts_with(start)))
    };
    let user: Vec<Frame> = frames
        .iter()
        .filter(|frame| frame.language != Language::Kernel)
        .skip_while(of_library)
        .cloned()
        .collect();
    let asker = java_asker.map(str::to_owned).or_else(|| {
        // The outermost is the process or thread, not a function.
        let inner = user.get(..user.len().saturating_sub(1)).unwrap_or_default();
        choose(if inner.is_empty() { &user } else { inner }).frame
    });
    let asker = asker.unwrap_or_default();
    let lock = symbols
        .iter()
        .find(|name| CONTENDED.iter().any(|function| name.starts_with(function)));
    let sleeps = waiting == Some(true)
        || symbols.iter().take(4).any(|name| {
            let plain = name.split('.').next().unwrap_or(name);
            SCHEDULER.contains(&plain)
        });
    let shown = java_frames.first().map(|name| (*name).to_owned());
    let done = |does: Does, function: String| {
        (
            does,
            lock.is_some(),
            lock.cloned().unwrap_or(function),
            asker.clone(),
        )
    };
    let java_waits = match doing {
        Doing::Waits(cause) => Some(Does::For(cause)),
        Doing::Idle => Some(Does::Idle),
        Doing::WaitsForPool | Doing::WaitsForTask => Some(Does::For(Cause::LockMonitor)),
        Doing::WaitsUnknown if lock.is_some() => Some(Does::For(Cause::LockMonitor)),
        _ => None,
    };
    // What Java frames name is a wait whether the profiler shows the kernel below it or not, unless it says that the
    // thread ran.
    if let Some(does) = java_waits.filter(|_| waiting != Some(false)) {
        return done(does, shown.unwrap_or_default());
    }
    if sleeps {
        let cause = asleep(&symbols);
        let by_library = || library(&symbols);
        return match cause.filter(|cause| *cause != Cause::Unknown).or_else(by_library) {
            Some(cause) => done(Does::For(cause), waits_in(&symbols)),
            None => done(Does::Unknown, waits_in(&symbols)),
        };
    }
    if waiting.is_none()
        && let Some(cause) = symbols
            .first()
            .and_then(|_| library(symbols.get(..1).unwrap_or_default()))
    {
        return done(Does::For(cause), symbols.first().cloned().unwrap_or_default());
    }
    let innermost = frames.first();
    let kernel = innermost.is_some_and(|frame| frame.language == Language::Kernel);
    let cause = if kernel { Cause::CpuKernel } else { Cause::CpuUser };
    done(Does::For(cause), innermost.map(symbol).unwrap_or_default())
}

/// What a sleeping thread waits for, by its kernel functions.
fn asleep(symbols: &[String]) -> Option<Cause> {
    let call = symbols.iter().find_map(|name| {
        let starts = [
            "__x64_sys_",
            "__arm64_sys_",
            "__se_sys_",
            "__do_sys_",
            "ksys_",
            "__sys_",
            "do_sys_",
        ];
        let name = starts.iter().find_map(|start| name.strip_prefix(start))?;
        Some(Call::named(name)).filter(|call| call.number != Call::NONE)
    });
    let mut call = call.unwrap_or_default();
    // Arguments are not there: a poll of something, a wait of any kind.
    call.args = [1, 2, 1, 0];
    let found = classify::wait(&Site {
        call,
        state: TaskState::Interruptible,
        iowait: symbols.iter().any(|name| name.starts_with("io_schedule")),
        object: None,
        ready: None,
        woken_by_socket: None,
        kernel_stack: Some(symbols),
        kernel_lock: None,
        nobody_asked: false,
        memory: None,
        objects: &|_| None,
        waker: &Waker::Unknown,
        duration: 0,
    });
    Some(found.cause)
}

fn library(symbols: &[String]) -> Option<Cause> {
    symbols.iter().find_map(|name| {
        let known = LIBRARY.iter().find(|(start, _)| name.starts_with(start));
        known.map(|(_, cause)| *cause)
    })
}

/// Whether a function is one in which every wait ends, whatever it is for.
#[must_use]
pub fn is_scheduler(name: &str) -> bool {
    let name = name.strip_suffix("_[k]").unwrap_or(name);
    let plain = name.split(['.', '+', ' ']).next().unwrap_or(name);
    SCHEDULER.contains(&plain) || plain.contains("sched_switch") || plain.starts_with("__switch_to")
}

/// The innermost function that says what is waited for rather than that it is.
fn waits_in(symbols: &[String]) -> String {
    symbols
        .iter()
        .find(|name| !is_scheduler(name))
        .cloned()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Does, of_profiler, part};
    use holdup_evidence::Cause;

    fn of(stack: &str, waiting: Option<bool>) -> (Does, bool, String, String) {
        part(stack.split(';').rev().map(of_profiler).collect(), waiting)
    }

    #[test]
    fn a_java_thread_in_a_native_read_waits() {
        let stack = "java/lang/Thread.run_[j];shop/Till.pay_[j];java/net/SocketInputStream.socketRead0_[j];__libc_recv;entry_SYSCALL_64_[k];sk_wait_data_[k];schedule_[k]";
        let (does, contended, function, asker) = of(stack, None);
        assert_eq!((does, contended), (Does::For(Cause::NetReceive), false));
        assert_eq!(
            (function.as_str(), asker.as_str()),
            ("java.net.SocketInputStream.socketRead0", "shop.Till.pay")
        );
    }

    #[test]
    fn sleeping_threads_are_told_by_the_kernels_functions() {
        let stack = "sshd;main;RAND_bytes;entry_SYSCALL_64;__x64_sys_getrandom;wait_for_random_bytes;schedule;finish_task_switch";
        assert_eq!(of(stack, Some(true)).0, Does::For(Cause::RandomUnseeded));
        let stack = "db;main;commit;__x64_sys_fsync;jbd2_log_wait_commit;schedule;__schedule";
        let (does, _, function, asker) = of(stack, None);
        assert_eq!(
            (does, function.as_str(), asker.as_str()),
            (Does::For(Cause::DiskSync), "jbd2_log_wait_commit", "commit")
        );
    }

    #[test]
    fn a_lock_that_others_hold_is_told_running_or_not() {
        let spinning = "app;main;alloc (app);do_syscall_64 ([kernel.kallsyms]);native_queued_spin_lock_slowpath ([kernel.kallsyms])";
        let (does, contended, _, asker) = of(spinning, Some(false));
        assert_eq!(
            (does, contended, asker.as_str()),
            (Does::For(Cause::CpuKernel), true, "alloc")
        );
        let (does, contended, ..) = of("app;main;put;__lll_lock_wait", None);
        assert_eq!((does, contended), (Does::For(Cause::LockFutex), true));
    }

    #[test]
    fn running_code_and_idle_workers_are_no_waits() {
        assert_eq!(of("app;main;crunch", Some(false)).0, Does::For(Cause::CpuUser));
        let idle = "java/lang/Thread.run_[j];java/util/concurrent/ThreadPoolExecutor.getTask_[j];jdk/internal/misc/Unsafe.park_[j]";
        assert_eq!(of(idle, None).0, Does::Idle);
        assert_eq!(of("", None).0, Does::For(Cause::CpuUser));
    }
}
