//! Programs whose threads block on futures, as the compiler of this machine makes them, with and without optimisation.

use super::{Place, Question, answerer};
use holdup_proc::{Root, maps, tasks};
use holdup_runtimes::tokio::Task;
use holdup_symbols::{Futures, Mapping, ProcessKey, UserStacks};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// `await`s are in the lines 24, 29 and 37.
const SOURCE: &str = r#"use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
struct Wakes(Thread);
impl Wake for Wakes { fn wake(self: Arc<Self>) { self.0.unpark() } }
mod executor {
    use super::*;
    pub fn block_on<F: Future>(future: F) -> F::Output {
        let waker = Waker::from(Arc::new(Wakes(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(value) = run(future.as_mut(), &mut context) { return value; }
            thread::park();
        }
    }
}
struct Till { sums: [u64; 8], name: String }
impl Till {
    async fn pay(&mut self, by: u64) -> u64 {
        std::future::pending::<()>().await;
        self.sums[0] += by; self.sums[0]
    }
}
async fn serve(mut till: Till, by: u64) -> u64 {
    let paid = till.pay(by).await;
    paid + till.name.len() as u64
}
async fn soon(mut till: Till) -> u64 { till.sums[1] += 1; std::future::ready(till.sums[1]).await }
fn till(name: &str) -> Till { Till { sums: [9; 8], name: name.to_owned() } }
/// It stands in its future, and not at an `await`.
async fn rests(till: Till) -> u64 {
    thread::sleep(Duration::from_secs(till.sums[0] * 200));
    std::future::ready(till.sums[1]).await
}
fn main() {
    let how = std::env::args().nth(1).unwrap();
    let sum = match how.as_str() {
        "plain" => executor::block_on(serve(till("a"), 7)),
        "boxed" => executor::block_on(Box::pin(serve(till("b"), 7)) as Pin<Box<dyn Future<Output = u64>>>),
        "thread" => thread::spawn(|| executor::block_on(async { serve(till("c"), 7).await })).join().unwrap(),
        // Threes beside it look like the state of a future that stands at its first `await`.
        "doubtful" => executor::block_on(serve(Till { sums: [3; 8], name: String::new() }, 3)),
        "rests" => executor::block_on(rests(till("d"))),
        _ => {
            let sum = executor::block_on(soon(till("e")));
            thread::sleep(Duration::from_secs(600));
            sum
        }
    };
    println!("{sum}");
}
#[inline(never)]
fn run<F: Future>(future: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> { future.poll(context) }
"#;

/// A process that ends with the test.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn build(folder: &Path, options: &[&str]) -> PathBuf {
    let (source, program) = (folder.join("shop.rs"), folder.join("shop"));
    fs::write(&source, SOURCE).unwrap();
    let built = Command::new("rustc")
        .args(["--edition", "2024", "-C", "debuginfo=2", "-A", "warnings"])
        .args(options)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(built.expect("rustc is installed where this is built").success());
    program
}

/// Starts it; all its threads sleep then.
fn start(program: &Path, how: &str) -> Started {
    let child = Command::new(program)
        .arg(how)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (started, root) = (Started(child), Root::system());
    let until = Instant::now() + Duration::from_secs(20);
    let threads = if how == "thread" { 2 } else { 1 };
    let mut quiet = 0;
    // A thread may sleep for a moment before that.
    while quiet < 5 {
        let all = tasks::threads(&root, started.0.id());
        let asleep = all.iter().all(|tid| tasks::stack_pointer(&root, *tid).is_some());
        quiet = match asleep && all.len() == threads {
            true => quiet + 1,
            false => 0,
        };
        assert!(Instant::now() < until, "its threads sleep");
        std::thread::sleep(Duration::from_millis(20));
    }
    started
}

fn read(started: &Started) -> Vec<Task> {
    let (pid, root) = (started.0.id(), Root::system());
    let (mut stacks, key) = (UserStacks::new(), ProcessKey(0));
    for one in maps::executable(&root, pid).unwrap() {
        let mapping = Mapping {
            start: one.start,
            end: one.end,
            offset: one.offset,
            path: one.path.clone(),
            device: one.device,
            inode: one.inode,
        };
        stacks.map(key, pid, mapping);
    }
    let Futures::Found(found) = stacks.futures(key, Duration::from_secs(60)) else {
        panic!("its debug information describes its futures")
    };
    let place = Place {
        layouts: Arc::clone(&found.layouts),
        moved: found.moved,
        mapped: found.mapped.clone(),
    };
    answerer()(Question { pid, place }).unwrap().all
}

/// Functions and lines in which a task stands, innermost first.
fn stands(task: &Task) -> Vec<(&str, Option<u32>)> {
    let frames = task.frames.iter();
    let own = frames.filter(|frame| {
        frame
            .file
            .as_deref()
            .is_some_and(|file| file.ends_with("/shop.rs"))
    });
    own.map(|frame| (frame.symbol.as_deref().unwrap(), frame.line))
        .collect()
}

fn each_way_of_building(test: impl Fn(&Path)) {
    for options in [&[][..], &["-O"][..]] {
        let folder = TempDir::new().unwrap();
        test(&build(folder.path(), options));
    }
}

#[test]
fn the_future_that_a_thread_blocks_on_stands_at_its_await() {
    each_way_of_building(|program| {
        for how in ["plain", "boxed", "thread"] {
            let started = start(program, how);
            let all = read(&started);
            let [task] = all.as_slice() else {
                panic!("{how} in {}: {all:?}", program.display())
            };
            assert_eq!(task.thread == Some(started.0.id()), how != "thread", "{how}");
            assert_eq!(
                stands(task)[..2],
                [("shop::Till::pay", Some(24)), ("shop::serve", Some(29))],
                "{how}"
            );
        }
    });
}

#[test]
fn of_what_may_begin_at_several_places_nothing_wrong_is_said() {
    each_way_of_building(|program| {
        for task in read(&start(program, "doubtful")) {
            assert_eq!(
                stands(&task)[..2],
                [("shop::Till::pay", Some(24)), ("shop::serve", Some(29))]
            );
        }
    });
}

#[test]
fn a_future_that_is_over_or_runs_for_the_first_time_stands_nowhere() {
    each_way_of_building(|program| {
        for how in ["over", "rests"] {
            assert_eq!(read(&start(program, how)), [], "{how}");
        }
    });
}
