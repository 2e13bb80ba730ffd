//! Rounds over a `/proc` that is made by hand: files that are missing, ids that are used again, processes that go while they are
//! read.

use super::on_cpu::Registers;
use super::{Sampler, Stacks};
use crate::clocks::monotonic;
use crate::maps::Mapping;
use crate::root::Tree;
use holdup_evidence::{End, Event, Ns, OpenState, UserStackId, Wait, Waker};

/// No stacks.
struct NoStacks;

impl Stacks for NoStacks {
    fn born(&mut self, _: u32, _: u32) {}
    fn mapped(&mut self, _: u32, _: &[Mapping]) {}
    fn ended(&mut self, _: u32) {}
    fn wanted(&mut self, _: Ns) -> bool {
        false
    }
    fn knows(&self, _: u32, _: u64) -> bool {
        false
    }
    fn stack(
        &mut self,
        _: u32,
        _: (u32, Option<u64>),
        _: Ns,
        _: (u64, u64),
        _: &[u8],
    ) -> Option<UserStackId> {
        None
    }
    fn running(&mut self, _: u32, _: Ns, _: &Registers, _: &[u8]) -> Option<UserStackId> {
        None
    }
}

const OWN: u32 = 1;
const CALL: &str = "230 0x1 0x0 0x7ffc0 0x0 0x0 0x0 0x7ffff0331b78 0x7ff262eb1503\n";

/// What a thread's `stat` says, with when it began.
fn stat(pid: u32, began: u64) -> String {
    format!("{pid} (sleeper) S {OWN} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {began} 0 0 0 0 0 0")
}

/// A process as those have it who look at all of them.
fn add_child(tree: &Tree, pid: u32, parent: u32) {
    add(tree, pid, 5, &["children"]);
    let text = stat(pid, 5).replace(&format!("S {OWN} "), &format!("S {parent} "));
    tree.write(&format!("proc/{pid}/task/{pid}/stat"), &text);
    tree.write(&format!("proc/{pid}/stat"), &text);
}

#[test]
fn children_that_are_not_listed_are_found_by_their_parents() {
    let tree = Tree::new(&[]);
    for (pid, parent) in [(7, OWN), (8, 7), (9, 8), (20, 19)] {
        add_child(&tree, pid, parent);
    }
    let mut sampler = sampler(&tree);
    round(&mut sampler);
    assert!(
        sampler.follows(8) && sampler.follows(9),
        "a grandchild with its parent"
    );
    assert!(!sampler.follows(20), "another's");
    // Nobody runs from now on: who sleeps has made nothing since, as far as the kernel's counts go.
    add_child(&tree, 10, 7);
    while !sampler.follows(10) {
        round(&mut sampler);
    }
    assert!(sampler.shortfall().without_children.is_some(), "and it is said");
}

#[test]
fn no_more_threads_are_followed_than_there_are_files_for() {
    let tree = Tree::new(&[]);
    add(&tree, 7, 5, &["children"]);
    tree.write("proc/7/task/7/children", "8 9 10 11 ");
    for child in 8..12 {
        add(&tree, child, 5, &[]);
    }
    let mut sampler = sampler(&tree);
    sampler.keep_within(30);
    round(&mut sampler);
    let followed = (8..12).filter(|child| sampler.follows(*child)).count();
    assert_eq!((followed, sampler.most_threads()), (2, 3));
    assert!(sampler.shortfall().threads > 0, "and it is said");
}

/// A process that sleeps in `clock_nanosleep`, without some of its files.
fn add(tree: &Tree, pid: u32, began: u64, without: &[&str]) {
    for (name, text) in [
        ("stat", stat(pid, began).as_str()),
        (
            "status",
            "voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t0\n",
        ),
        ("schedstat", "1000000 2000 4\n"),
        ("syscall", CALL),
        ("wchan", "hrtimer_nanosleep"),
        ("children", ""),
    ] {
        if !without.contains(&name) {
            tree.write(&format!("proc/{pid}/task/{pid}/{name}"), text);
        }
    }
}

/// It is gone: its folder is, and what is still open of it reads as nothing, as the kernel's files do.
fn go(tree: &Tree, pid: u32) {
    tree.write(&format!("proc/{pid}/task/{pid}/schedstat"), "");
    std::fs::remove_dir_all(tree.path(&format!("proc/{pid}"))).unwrap();
}

fn sampler(tree: &Tree) -> Sampler {
    let mut sampler = Sampler::new(tree.root.clone(), OWN);
    assert!(sampler.begin(7, monotonic()));
    sampler
}

/// A round, with what it reported.
fn round(sampler: &mut Sampler) -> Vec<Event> {
    sampler.round(monotonic(), &mut NoStacks)
}

/// Rounds until something is known of what the thread sleeps in: the reader beside the loop may be late. How it ended, then.
fn sampled(tree: &Tree) -> (Sampler, End) {
    let mut sampler = sampler(tree);
    loop {
        round(&mut sampler);
        let mut sites = sampler
            .threads
            .values()
            .filter_map(|thread| thread.account.asleep());
        if sites.any(|(waiting, _)| waiting.site.call.is_some() || waiting.site.function.is_some()) {
            break;
        }
    }
    let events = sampler.leave(monotonic());
    let end = events.into_iter().find_map(|event| match event {
        Event::End(end) => Some(*end),
        _ => None,
    });
    (sampler, end.unwrap())
}

fn open(end: &End) -> &Wait {
    match &end.open {
        Some(OpenState::Blocked(wait)) => wait,
        other => panic!("it sleeps: {other:?}"),
    }
}

#[test]
fn each_missing_file_costs_what_it_told_and_nothing_else() {
    for missing in ["", "status", "schedstat", "syscall", "wchan", "children"] {
        let tree = Tree::new(&[]);
        add(&tree, 7, 5, &[missing]);
        let (sampler, end) = sampled(&tree);
        let wait = open(&end);
        let lived = end.at - end.born;
        let clock = end.clock;
        assert_eq!(
            clock.cpu + clock.queued + clock.blocked,
            lived,
            "{missing}: all time is told"
        );
        assert_eq!(
            wait.call.name(),
            (missing != "syscall").then_some("clock_nanosleep"),
            "{missing}"
        );
        assert_eq!(wait.kernel_stack.is_some(), missing != "wchan", "{missing}");
        let shortfall = sampler.shortfall();
        assert_eq!(shortfall.without_turns, missing == "schedstat", "{missing}");
        assert_eq!(shortfall.without_blockings, missing == "status", "{missing}");
    }
}

#[test]
fn an_id_that_is_used_again_is_another_thread() {
    let tree = Tree::new(&[]);
    add(&tree, 7, 5, &[]);
    tree.write("proc/7/task/7/children", "8 ");
    add(&tree, 8, 6, &[]);
    let mut sampler = sampler(&tree);
    let mut events = round(&mut sampler);
    // It is gone, and by the next round another has its id.
    go(&tree, 8);
    add(&tree, 8, 9, &[]);
    // The parent has run, so its children are asked for.
    for count in 5..8 {
        tree.write("proc/7/task/7/schedstat", &format!("1000000 2000 {count}\n"));
        events.extend(round(&mut sampler));
    }
    let of_it = |event: &Event| match event {
        Event::Start(start) if start.task.pid == 8 => Some((start.thread, true)),
        Event::End(end) if end.task.pid == 8 => Some((end.thread, false)),
        _ => None,
    };
    let lives: Vec<_> = events.iter().filter_map(of_it).collect();
    let [(first, true), (gone, false), (second, true)] = lives[..] else {
        panic!("{lives:?}");
    };
    assert!(first == gone && first != second);
}

#[test]
fn who_goes_while_it_is_read_has_ended() {
    for file in ["stat", "status", "schedstat"] {
        let tree = Tree::new(&[]);
        add(&tree, 7, 5, &[]);
        let mut sampler = sampler(&tree);
        round(&mut sampler);
        // One file can't be read any more, and the thread has run; then all is gone.
        tree.write("proc/7/task/7/schedstat", "1500000 2000 5\n");
        tree.write(&format!("proc/7/task/7/{file}"), "");
        round(&mut sampler);
        go(&tree, 7);
        round(&mut sampler);
        assert_eq!(sampler.living(), 0, "{file}");
    }
}

/// A private futex without a time limit.
const FUTEX: &str = "202 0x7000 0x80 0x2 0x0 0x0 0x0 0x7ffff0331b78 0x7ff262eb1503\n";

/// Thread 8 of process 7 waits for what its threads 7 and 9 may do; the next round finds these to have run, and it too. By whom its wait
/// was ended then, if that was reported.
fn woken_after(ran: &[u32]) -> Vec<Waker> {
    const STEP: Ns = 10_000_000;
    let tree = Tree::new(&[]);
    add(&tree, 7, 5, &[]);
    for tid in [8, 9] {
        add(&tree, tid, 5, &[]);
        let (from, to) = (
            tree.path(&format!("proc/{tid}/task/{tid}")),
            tree.path(&format!("proc/7/task/{tid}")),
        );
        std::fs::rename(from, to).unwrap();
    }
    tree.write("proc/7/task/8/syscall", FUTEX);
    let mut sampler = sampler(&tree);
    let mut at = monotonic() + 100 * STEP;
    let in_futex = |sampler: &Sampler| sampler.threads.values().any(|thread| thread.reach().is_some());
    while !in_futex(&sampler) || sampler.living() < 3 {
        at += STEP;
        sampler.round(at, &mut NoStacks);
    }
    for tid in ran.iter().chain(&[8]) {
        tree.write(&format!("proc/7/task/{tid}/schedstat"), "3000000 2000 5\n");
        tree.write(
            &format!("proc/7/task/{tid}/status"),
            "voluntary_ctxt_switches:\t4\nnonvoluntary_ctxt_switches:\t0\n",
        );
    }
    let mut events = Vec::new();
    for _ in 0..2 {
        at += STEP;
        events.extend(sampler.round(at, &mut NoStacks));
    }
    let waits = events.into_iter().filter_map(|event| match event {
        Event::Wait(wait) if wait.call.name() == Some("futex") => Some(wait.waker),
        _ => None,
    });
    waits.collect()
}

#[test]
fn who_alone_has_run_has_woken_who_waited_for_a_thread() {
    let named = |wakers: &[Waker]| wakers.iter().any(|waker| matches!(waker, Waker::Thread { .. }));
    assert!(named(&woken_after(&[9])));
    let by_any = woken_after(&[7, 9]);
    assert!(
        !by_any.is_empty() && !named(&by_any),
        "it may have been either: {by_any:?}"
    );
    let by_nobody = woken_after(&[]);
    assert!(!by_nobody.is_empty() && !named(&by_nobody), "{by_nobody:?}");
}
