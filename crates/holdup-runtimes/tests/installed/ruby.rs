//! Rubies that are installed here, asleep in methods, blocks, evaluated code and C: function, file and line of every frame are compared
//! with the backtraces that the program itself prints of its threads.

use crate::support::{Sleeper, place_of};
use holdup_runtimes::interpreted::LockKind;
use holdup_runtimes::ruby::{Interpreter, Place, RubyFrame, SYMBOLS, Version, may_be_in};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Threads that sleep for a time, before an empty queue and before a lock. The code around is of each kind that has frames of its own.
/// `LINES` are those of a long method, whose table of lines has several blocks.
const PROGRAM: &str = r##"
require "monitor"

class Shop
  define_method(:pay) do |item, &wait|
    [item].each do |one|
      settle(one, &wait)
    end
  end

  def settle(one, &wait)
    raise ArgumentError if one
  rescue ArgumentError
    eval("long_one(&wait)", binding, "evaluated.rb", 7)
  ensure
    one = nil
  end

  def long_one
    a = 0
LINES
    yield a
  end

  def self.open(&wait)
    Monitor.new.synchronize do
      new.send(:pay, "tea", &wait)
    end
  end
end

def deep(left, &block)
  return block.call if left.zero?

  deep(left - 1, &block)
end

held = Mutex.new
held.lock
waits = [
  -> { sleep 600 },
  -> { Queue.new.pop },
  -> { held.lock },
  -> { deep(30) { [3, 1].sort_by { |x| sleep 600 } } }
]
threads = waits.map do |wait|
  Thread.new { Shop.open { |a| wait.call } }
end
Thread.pass until threads.all?(&:stop?)
threads.each do |thread|
  thread.backtrace_locations.each do |at|
    label = at.label.gsub(/(\A| )[\w:]+[#.](?=\w)/, '\1')
    puts "#{label}|#{at.absolute_path || at.path}|#{at.lineno}"
  end
  puts "end"
end
puts "ready"
$stdout.flush
threads.first.join
"##;

/// Lines of the long method.
const LONG: usize = 700;

/// Rubies in the folders where they usually are, each real file once.
fn rubies() -> BTreeSet<PathBuf> {
    let mut folders: Vec<PathBuf> = ["/usr/bin", "/usr/local/bin"].map(PathBuf::from).to_vec();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    for many in [
        home.join(".rbenv/versions"),
        home.join(".rubies"),
        PathBuf::from("/opt"),
    ] {
        let versions = std::fs::read_dir(many).into_iter().flatten().flatten();
        folders.extend(versions.map(|version| version.path().join("bin")));
    }
    let names = [
        "ruby", "ruby2.7", "ruby3.0", "ruby3.1", "ruby3.2", "ruby3.3", "ruby3.4",
    ];
    let files = folders
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name)));
    files
        .filter_map(|file| std::fs::canonicalize(file).ok())
        .collect()
}

/// Where a process has the interpreter.
fn place(pid: u32) -> Option<Place> {
    place_of(pid, may_be_in, SYMBOLS, |_, addresses| Place::of(&addresses))
}

/// Function, file and line. Of methods written in C, and of those that are part of Ruby itself, the program prints its caller's place.
fn same(frame: &RubyFrame, said: &str) -> bool {
    let mut said = said.split('|');
    let [label, file, line] = [(); 3].map(|()| said.next());
    let of_ruby = frame
        .frame
        .file
        .as_deref()
        .is_none_or(|file| file.starts_with("<internal:"));
    frame.frame.symbol.as_deref() == label
        && (of_ruby
            || frame.frame.file.as_deref() == file
                && frame.frame.line.map(|line| line.to_string()).as_deref() == line)
}

fn shown(frames: &[RubyFrame]) -> Vec<String> {
    let each = frames.iter().map(|one| {
        let (name, file) = (&one.frame.symbol, &one.frame.file);
        let [name, file] = [name, file].map(|text| text.as_deref().unwrap_or_default());
        format!("{name}|{file}|{}", one.frame.line.unwrap_or_default())
    });
    each.collect()
}

/// Reads a sleeper of this interpreter; its version, and how many frames were right.
fn reads(ruby: &Path, file: &Path) -> (Version, usize) {
    let mut sleeper = Sleeper::start(Command::new(ruby).arg(file));
    let mut backtraces: Vec<Vec<String>> = vec![Vec::new()];
    for line in sleeper.lines_to("ready\n") {
        match line.trim_end() {
            "end" => backtraces.push(Vec::new()),
            line => backtraces.last_mut().unwrap().push(line.to_owned()),
        }
    }
    assert_eq!(backtraces.pop(), Some(Vec::new()), "{}", ruby.display());
    assert_eq!(backtraces.len(), 4, "{}", ruby.display());
    let pid = sleeper.pid();
    let place = place(pid).unwrap_or_else(|| panic!("{}: no ruby_version", ruby.display()));
    let memory = sleeper.memory();
    let mut interpreter = Interpreter::find(memory, place).unwrap();
    let threads = interpreter.threads().unwrap();
    assert_eq!(threads.len(), 5, "{}", ruby.display());
    let stacks: Vec<Vec<RubyFrame>> = threads
        .iter()
        .map(|thread| interpreter.frames_of(*thread).unwrap())
        .collect();
    let mut right = 0;
    for said in &backtraces {
        let equal = |frames: &&Vec<RubyFrame>| {
            frames.len() == said.len() && frames.iter().zip(said).all(|(frame, said)| same(frame, said))
        };
        assert!(
            stacks.iter().any(|frames| equal(&frames)),
            "{}: {said:#?} is none of {:#?}",
            ruby.display(),
            stacks.iter().map(|frames| shown(frames)).collect::<Vec<_>>()
        );
        right += said.len();
    }
    // The main thread waits for the first of them.
    let main = interpreter.frames(pid).unwrap();
    let names: Vec<&str> = main
        .iter()
        .filter_map(|one| one.frame.symbol.as_deref())
        .collect();
    assert_eq!(names, ["join", "<main>"], "{}", ruby.display());
    assert!(main[1].entry && interpreter.executor().is_some());
    (interpreter.version(), right)
}

/// A thread that has two locks and a monitor, and others that wait for each, for a condition variable, and for that thread's end.
const LOCKS: &str = r#"
require "monitor"

$plain, $other, $again, $mutex = Mutex.new, Mutex.new, Monitor.new, Mutex.new
$changed = ConditionVariable.new

def keep
  $plain.lock
  $other.synchronize { $again.synchronize { sleep 600 } }
end

def want_plain
  $plain.synchronize { 1 }
end

def want_again
  $again.synchronize { 1 }
end

def rest
  $mutex.synchronize { $changed.wait($mutex) }
end

keeper = Thread.new { keep }
Thread.pass until keeper.stop?
waiters = [Thread.new { want_plain }, Thread.new { want_again }, Thread.new { rest }]
Thread.pass until waiters.all?(&:stop?)
puts "ready"
$stdout.flush
keeper.join
"#;

/// Reads who waits for which lock, by the method in which a thread stands.
fn locks(ruby: &Path, file: &Path) {
    let mut sleeper = Sleeper::start(Command::new(ruby).arg(file));
    assert_eq!(sleeper.line(), "ready\n", "{}", ruby.display());
    let pid = sleeper.pid();
    let memory = sleeper.memory();
    let mut interpreter = Interpreter::find(memory, place(pid).unwrap()).unwrap();
    let all = interpreter.threads().unwrap();
    let mut found = |method: &str| {
        let stands = |frames: Vec<RubyFrame>| {
            let mut symbols = frames.iter().map(|one| one.frame.symbol.as_deref());
            symbols.any(|symbol| symbol == Some(method))
        };
        let mut of = all.iter();
        *of.find(|thread| interpreter.frames_of(**thread).is_ok_and(stands))
            .unwrap()
    };
    let [keeper, plain, again, rest] = ["keep", "want_plain", "want_again", "rest"].map(&mut found);
    let mut lock = |thread| interpreter.awaited_lock(thread, &all).unwrap();
    for waiter in [plain, again] {
        let owner = lock(waiter).map(|lock| lock.owner);
        assert_eq!(owner, Some(Some(keeper.tid)), "{}", ruby.display());
    }
    assert_ne!(lock(plain).unwrap().address, lock(again).unwrap().address);
    assert_eq!([lock(keeper), lock(rest)], [None, None], "{}", ruby.display());
}

#[test]
fn who_has_a_lock_is_read_of_all_installed_versions() {
    let folder = std::env::temp_dir().join(format!("holdup-ruby-locks-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("locks.rb");
    std::fs::write(&file, LOCKS).unwrap();
    let rubies = rubies();
    for ruby in &rubies {
        locks(ruby, &file);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(!rubies.is_empty(), "no Ruby is installed: install ruby");
}

#[test]
fn sleepers_of_all_installed_versions_are_read() {
    let folder = std::env::temp_dir().join(format!("holdup-rubies-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("asleep.rb");
    std::fs::write(&file, PROGRAM.replace("LINES", &"    a += 1\n".repeat(LONG))).unwrap();
    let read: Vec<(PathBuf, (Version, usize))> = rubies()
        .into_iter()
        .map(|ruby| (ruby.clone(), reads(&ruby, &file)))
        .collect();
    std::fs::remove_dir_all(&folder).unwrap();
    for (ruby, (version, right)) in &read {
        eprintln!("{}: Ruby {version}, {right} of {right} frames", ruby.display());
    }
    assert!(!read.is_empty(), "no Ruby is installed: install ruby");
}

/// One thread computes, and others want to run now and then.
const COMPUTES: &str = r#"
def crunch
  x = 0
  loop { x += 1 if "aaaa".match?(/b/) }
end

def tick
  loop { sleep 0.001 }
end

Thread.new { crunch }
3.times { Thread.new { tick } }
puts "ready"
$stdout.flush
sleep 600
"#;

#[test]
fn the_thread_that_runs_has_the_global_lock_and_others_wait_for_it() {
    let folder = std::env::temp_dir().join(format!("holdup-ruby-runs-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("computes.rb");
    std::fs::write(&file, COMPUTES).unwrap();
    for ruby in &rubies() {
        let mut sleeper = Sleeper::start(Command::new(ruby).arg(&file));
        assert_eq!(sleeper.line(), "ready\n", "{}", ruby.display());
        let pid = sleeper.pid();
        let memory = sleeper.memory();
        let mut interpreter = Interpreter::find(memory, place(pid).unwrap()).unwrap();
        let stands_in = |frames: &[RubyFrame], name: &str| {
            let mut frames = frames.iter();
            frames.any(|one| one.frame.symbol.as_deref() == Some(name))
        };
        let (mut holder, mut waiter) = (None, None);
        for _ in 0..1_000_000 {
            let threads = interpreter.threads().unwrap_or_default();
            if let Ok(Some(held)) = interpreter.holder()
                && stands_in(&held.frames, "crunch")
            {
                holder = Some(held.tid);
            }
            for thread in &threads {
                let lock = interpreter.awaited_lock(*thread, &threads).ok().flatten();
                let lock = lock.filter(|lock| lock.kind == LockKind::RubyGlobal);
                let frames = interpreter.frames_of(*thread).unwrap_or_default();
                if lock.is_some_and(|lock| lock.owner.is_some() && lock.owner == holder)
                    && stands_in(&frames, "tick")
                {
                    waiter = Some(thread.tid);
                }
            }
            if holder.is_some() && waiter.is_some() {
                break;
            }
            std::thread::yield_now();
        }
        assert!(
            holder.is_some() && waiter.is_some(),
            "{}: {holder:?} {waiter:?}",
            ruby.display()
        );
        assert_ne!(holder, waiter);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
