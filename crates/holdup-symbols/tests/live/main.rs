//! Stacks of real processes, through stock libraries and programs made here without frame pointers.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

mod subject;

use holdup_evidence::{Frame, UserStackId};
use holdup_symbols::{KernelSymbols, Mapping, ProcessKey, RawStack, Refused, UserStacks};
use std::fs;
use std::path::{Path, PathBuf};
use subject::{KEY, Subject, compile};
use tempfile::TempDir;

fn names(frames: &[Frame]) -> Vec<&str> {
    frames
        .iter()
        .map(|frame| frame.symbol.as_deref().unwrap_or("-"))
        .collect()
}

/// Asserts that `wanted` occur in this order, whatever is in between.
fn assert_in_order(frames: &[Frame], wanted: &[&str]) {
    let mut rest = frames.iter();
    for name in wanted {
        assert!(
            rest.any(|frame| frame.symbol.as_deref() == Some(name)),
            "{name} is missing or out of order in {frames:#?}"
        );
    }
}

fn is_libc(frame: &Frame) -> bool {
    frame.module.as_deref() == Some("libc.so.6")
}

/// Asserts that the stack goes down to where the C library starts a program.
fn assert_complete(frames: &[Frame]) {
    assert_in_order(frames, &["__libc_start_main"]);
}

const NESTED: &str = r#"
#include <time.h>
#include <unistd.h>
static struct timespec long_time = { 1000, 0 };
__attribute__((noinline)) int innermost(int n) { return nanosleep(&long_time, 0) + n; }
__attribute__((noinline)) int middle(int n) { volatile char room[300]; room[n] = 1; return innermost(n) + room[n]; }
__attribute__((noinline)) int outermost(int n) { return middle(n + 1) * 3; }
int main(int count, char **words) { return outermost(count) + 1; }
"#;

#[test]
fn functions_without_frame_pointers_are_found_in_order() {
    let directory = TempDir::new().unwrap();
    let subject = Subject::start(&compile(&directory, NESTED, &[]), &[]);
    let frames = subject.frames(&subject.in_call(libc::SYS_clock_nanosleep));
    assert_in_order(
        &frames,
        &[
            "clock_nanosleep",
            "nanosleep",
            "innermost",
            "middle",
            "outermost",
            "main",
            "__libc_start_main",
        ],
    );
    let innermost = frames
        .iter()
        .find(|frame| frame.symbol.as_deref() == Some("innermost"))
        .unwrap();
    assert_eq!(innermost.module.as_deref(), Some("subject"));
    // Without debug information there are no lines, and an offset is from the function's start.
    assert_eq!(
        (&innermost.file, innermost.line, innermost.inlined),
        (&None, None, false)
    );
    assert!((1..64).contains(&innermost.offset), "{innermost:?}");
}

#[test]
fn stock_programs_are_unwound_and_named_as_far_as_their_symbols_reach() {
    let subject = Subject::start(Path::new("/bin/sleep"), &["1000"]);
    let frames = subject.frames(&subject.in_call(libc::SYS_clock_nanosleep));
    // The library is stripped: its exported functions have names, and so has the innermost frame.
    assert!(
        is_libc(&frames[0]) && frames[0].symbol.as_deref() == Some("clock_nanosleep"),
        "{frames:#?}"
    );
    // The program is stripped: its frames are addresses in it, as objdump prints them.
    let own: Vec<&Frame> = frames
        .iter()
        .filter(|frame| frame.module.as_deref() == Some("sleep"))
        .collect();
    assert!(!own.is_empty(), "{frames:#?}");
    let text = fs::metadata("/bin/sleep").unwrap().len();
    assert!(
        own.iter()
            .all(|frame| frame.symbol.is_none() && (1..text).contains(&frame.offset)),
        "{own:#?}"
    );
    assert_complete(&frames);
    // What follows the C library's start is the program's entry, and nothing follows that.
    assert_eq!(frames.last().unwrap().module.as_deref(), Some("sleep"));
}

#[test]
fn an_address_that_no_symbol_covers_keeps_its_place_in_the_file() {
    let subject = Subject::start(Path::new("/bin/sleep"), &["1000"]);
    let frames = subject.frames(&subject.in_call(libc::SYS_clock_nanosleep));
    // main is called from a function of the C library that is not exported: the exported one before it in
    // memory does not reach that far, and must not lend its name.
    let main = frames
        .iter()
        .rposition(|frame| frame.symbol.as_deref() == Some("__libc_start_main"))
        .unwrap();
    let caller_of_main = &frames[main - 1];
    assert!(is_libc(caller_of_main), "{frames:#?}");
    match &caller_of_main.symbol {
        None => assert!(caller_of_main.offset > 0x1000),
        // Where the library's debug file is installed.
        Some(name) => assert_eq!(name, "__libc_start_call_main"),
    }
}

#[test]
fn frame_information_that_was_left_for_debuggers_serves() {
    let directory = TempDir::new().unwrap();
    let options = ["-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let subject = Subject::start(&compile(&directory, NESTED, &options), &[]);
    let frames = subject.frames(&subject.in_call(libc::SYS_clock_nanosleep));
    assert_in_order(
        &frames,
        &["nanosleep", "innermost", "middle", "outermost", "main"],
    );
    assert_complete(&frames);
}

const WRITTEN: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
int main(void) {
    char *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char name[64];
    memcpy(made, code, sizeof code);
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE *list = fopen(name, "wx");
    fprintf(list, "%lx %zx JS:*made /a b.js:1\n", (long)made, sizeof code);
    fclose(list);
    ((int (*)(int (*)(void)))made)(pause);
    return 1;
}
"#;

#[test]
fn code_that_was_written_at_run_time_has_the_name_that_the_program_gives_it() {
    let directory = TempDir::new().unwrap();
    let subject = Subject::start(&compile(&directory, WRITTEN, &[]), &[]);
    let frames = subject.frames(&subject.in_call_with_registers(libc::SYS_pause));
    fs::remove_file(format!("/tmp/perf-{}.map", subject.pid())).unwrap();
    assert_in_order(&frames, &["pause", "JS:*made /a b.js:1", "main"]);
    let made = &frames[1];
    assert_eq!((made.module.as_deref(), made.offset), (None, 6));
    assert_complete(&frames);
}

#[test]
fn debug_information_gives_inlined_functions_files_and_lines() {
    let source = r#"
#include <unistd.h>
static inline __attribute__((always_inline)) int deepest(int n) {
    int result = pause();
    __asm__ volatile("" ::: "memory");
    return result + n;
}
static inline __attribute__((always_inline)) int deeper(int n) {
    return deepest(n) * 2;
}
__attribute__((noinline)) int outer(int n) {
    return deeper(n) + 1;
}
int main(int count, char **words) { return outer(count) + 1; }
"#;
    let directory = TempDir::new().unwrap();
    let subject = Subject::start(&compile(&directory, source, &["-g"]), &[]);
    let frames = subject.frames(&subject.in_call(libc::SYS_pause));
    let own: Vec<(&str, u32, bool)> = frames
        .iter()
        .filter(|frame| {
            frame
                .file
                .as_deref()
                .is_some_and(|file| file.ends_with("subject.c"))
        })
        .map(|frame| {
            (
                frame.symbol.as_deref().unwrap(),
                frame.line.unwrap(),
                frame.inlined,
            )
        })
        .collect();
    assert_eq!(
        own,
        [
            ("deepest", 4, true),
            ("deeper", 9, true),
            ("outer", 12, false),
            ("main", 14, false)
        ],
        "{frames:#?}"
    );
    assert!(frames.iter().all(|frame| frame.module.is_some()));
}

#[test]
fn a_function_in_two_pieces_has_files_lines_and_inlined_functions() {
    // The compiler puts what is rarely run apart, `main.cold`.
    let source = r#"
#include <stdlib.h>
#include <unistd.h>
__attribute__((cold, noinline)) void failed(int n) { if (n > 7) exit(n); }
static inline __attribute__((always_inline)) int waits(int n) {
    int result = pause();
    __asm__ volatile("" ::: "memory");
    return result + n;
}
int main(int count, char **words) {
    if (count > 50) { failed(count); write(2, words[0], 1); write(2, words[1], 1); failed(count + 1); abort(); }
    return waits(count) + 1;
}
"#;
    let directory = TempDir::new().unwrap();
    let program = compile(&directory, source, &["-g", "-freorder-blocks-and-partition"]);
    let pieces = fs::read(&program).unwrap();
    assert!(
        pieces.windows(9).any(|name| name == b"main.cold"),
        "the compiler has not made two pieces"
    );
    let subject = Subject::start(&program, &[]);
    let frames = subject.frames(&subject.in_call(libc::SYS_pause));
    let own: Vec<_> = frames
        .iter()
        .filter(|frame| frame.line.is_some())
        .map(|frame| {
            (
                frame.symbol.as_deref().unwrap(),
                frame.line.unwrap(),
                frame.inlined,
            )
        })
        .collect();
    assert_eq!(own, [("waits", 6, true), ("main", 12, false)], "{frames:#?}");
    assert!(frames.iter().all(|frame| frame.offset < 4_096), "{frames:#?}");
}

#[test]
fn names_of_cpp_and_rust_are_those_of_the_source() {
    let source = r#"
#include <unistd.h>
__attribute__((noinline)) int run(int n) __asm__("_ZN4pool6worker3runEi");
__attribute__((noinline)) int wait(int n) __asm__("_ZN4pool4wait17h0123456789abcdefE");
int wait(int n) { return pause() + n; }
int run(int n) { return wait(n) * 2; }
int main(int count, char **words) { return run(count) + 1; }
"#;
    for options in [&[][..], &["-g"]] {
        let directory = TempDir::new().unwrap();
        let subject = Subject::start(&compile(&directory, source, options), &[]);
        let frames = subject.frames(&subject.in_call(libc::SYS_pause));
        assert_in_order(&frames, &["pool::wait", "pool::worker::run(int)", "main"]);
    }
}

#[test]
fn a_signal_handler_is_unwound_to_what_it_interrupted() {
    let source = r#"
#include <signal.h>
#include <unistd.h>
__attribute__((noinline)) void handler(int number) { pause(); __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) int interrupted(int n) { raise(SIGUSR1); return n + 1; }
int main(int count, char **words) { signal(SIGUSR1, handler); return interrupted(count) + 1; }
"#;
    let directory = TempDir::new().unwrap();
    let subject = Subject::start(&compile(&directory, source, &[]), &[]);
    let frames = subject.frames(&subject.in_call_with_registers(libc::SYS_pause));
    assert_in_order(
        &frames,
        &[
            "pause",
            "handler",
            "raise",
            "interrupted",
            "main",
            "__libc_start_main",
        ],
    );
}

#[test]
fn a_frame_that_is_found_through_saved_registers_and_memory_is_unwound() {
    // Stricter alignment than the caller's makes the compiler keep the frame's address in memory that rbp
    // points to; the allocation of unknown size takes rsp away as a way to it.
    let source = r#"
#include <alloca.h>
#include <unistd.h>
__attribute__((noinline)) int aligned(int n) {
    volatile char room[128] __attribute__((aligned(64)));
    volatile char *more = alloca(n);
    room[n] = 1;
    more[0] = 1;
    pause();
    return room[n] + more[0];
}
__attribute__((noinline)) int outer(int n) { return aligned(n * 100) + 1; }
int main(int count, char **words) { return outer(count) + 1; }
"#;
    let directory = TempDir::new().unwrap();
    let subject = Subject::start(&compile(&directory, source, &[]), &[]);
    let frames = subject.frames(&subject.in_call_with_registers(libc::SYS_pause));
    assert_in_order(
        &frames,
        &["pause", "aligned", "outer", "main", "__libc_start_main"],
    );
}

#[test]
fn code_without_frame_information_is_unwound_by_its_frame_pointers() {
    let options = [
        "-fno-omit-frame-pointer",
        "-fno-asynchronous-unwind-tables",
        "-fcf-protection=none",
    ];
    let directory = TempDir::new().unwrap();
    let subject = Subject::start(&compile(&directory, NESTED, &options), &[]);
    let frames = subject.frames(&subject.in_call_with_registers(libc::SYS_clock_nanosleep));
    assert_in_order(&frames, &["innermost", "middle", "main"]);
}

#[test]
fn a_stack_that_was_copied_in_part_is_unwound_in_part() {
    let directory = TempDir::new().unwrap();
    let subject = Subject::start(&compile(&directory, NESTED, &[]), &[]);
    let mut seen = subject.in_call(libc::SYS_clock_nanosleep);
    let whole = subject.frames(&seen);
    let mut lengths = Vec::new();
    for bytes in (0..=1024).rev().step_by(8) {
        seen.bytes.truncate(bytes);
        let part = subject.frames(&seen);
        assert_eq!(part[..], whole[..part.len()], "{bytes} bytes");
        lengths.push(part.len());
    }
    assert!(lengths.is_sorted_by(|longer, shorter| longer >= shorter));
    assert_eq!(lengths.last(), Some(&1));
}

#[test]
fn equal_stacks_share_a_number_also_across_processes() {
    let directory = TempDir::new().unwrap();
    let program = compile(&directory, NESTED, &[]);
    let subjects = [Subject::start(&program, &[]), Subject::start(&program, &[])];
    let other = Subject::start(Path::new("/bin/sleep"), &["1000"]);
    let mut stacks = UserStacks::new();
    let mut ids = Vec::new();
    for (key, subject) in subjects.iter().chain([&other]).enumerate() {
        let process = ProcessKey(key as u32);
        // Once it sleeps, all that it maps is mapped.
        let seen = subject.in_call(libc::SYS_clock_nanosleep);
        for mapping in subject.mappings() {
            stacks.map(process, subject.pid(), mapping);
        }
        for _ in 0..2 {
            ids.push(stacks.intern(&RawStack {
                process,
                ..subject.stack(&seen)
            }));
        }
    }
    assert_eq!(ids.iter().map(|id| id.0).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1]);
    assert_eq!(stacks.refused(), Refused::default());
    assert_eq!(stacks.finish().len(), 2);
}

/// A stack of a program that is gone by now; its file is there, in a folder of its own.
fn one_of_nested() -> (TempDir, PathBuf, UserStacks, UserStackId) {
    let directory = TempDir::new().unwrap();
    let program = compile(&directory, NESTED, &["-g"]);
    let mut stacks = UserStacks::new();
    let id = {
        let subject = Subject::start(&program, &[]);
        let seen = subject.in_call(libc::SYS_clock_nanosleep);
        for mapping in subject.mappings() {
            stacks.map(KEY, subject.pid(), mapping);
        }
        stacks.intern(&subject.stack(&seen))
    };
    (directory, program, stacks, id)
}

#[test]
fn a_program_that_is_gone_by_the_end_keeps_its_names() {
    let (directory, program, stacks, id) = one_of_nested();
    fs::remove_file(&program).unwrap();
    drop(directory);
    let frames = &stacks.finish()[id.0 as usize];
    assert_in_order(frames, &["innermost", "middle", "outermost", "main"]);
    assert!(frames.iter().any(|frame| frame.line.is_some()));
}

#[test]
fn a_program_that_is_cut_short_costs_names_and_nothing_else() {
    let (_directory, program, stacks, id) = one_of_nested();
    fs::OpenOptions::new()
        .write(true)
        .open(&program)
        .unwrap()
        .set_len(100)
        .unwrap();
    let frames = &stacks.finish()[id.0 as usize];
    assert_complete(frames);
    let own: Vec<&Frame> = frames
        .iter()
        .filter(|frame| frame.module.as_deref() == Some("subject"))
        .collect();
    assert!(
        own.len() >= 4 && own.iter().all(|frame| frame.symbol.is_none()),
        "{own:#?}"
    );
}

#[test]
fn a_replaced_program_is_not_mistaken_for_the_mapped_one() {
    let directory = TempDir::new().unwrap();
    let program = compile(&directory, NESTED, &[]);
    let subject = Subject::start(&program, &[]);
    let seen = subject.in_call(libc::SYS_clock_nanosleep);
    let mut stacks = UserStacks::new();
    for mapping in subject.mappings() {
        // A process that does not exist has no link to the file, so that only the path is left; another
        // inode number than what is there now stands for the file that was.
        let inode = if mapping.path.ends_with("/subject") {
            mapping.inode + 1
        } else {
            mapping.inode
        };
        stacks.map(KEY, u32::MAX, Mapping { inode, ..mapping });
    }
    let id = stacks.intern(&subject.stack(&seen));
    let frames = &stacks.finish()[id.0 as usize];
    assert!(is_libc(&frames[0]) && frames[0].symbol.is_some(), "{frames:#?}");
    assert!(!names(frames).contains(&"innermost"), "{frames:#?}");
}

#[test]
fn a_stock_interpreter_is_unwound_by_its_exported_functions() {
    let subject = Subject::start(
        Path::new("/usr/bin/perl"),
        &["-e", "sub wait_for { sleep $_[0] } wait_for(1000)"],
    );
    let frames = subject.frames(&subject.in_call(libc::SYS_clock_nanosleep));
    assert_in_order(
        &frames,
        &[
            "sleep",
            "Perl_pp_sleep",
            "Perl_runops_standard",
            "perl_run",
            "main",
        ],
    );
    assert_complete(&frames);
}

#[test]
fn the_vdso_is_named_from_our_own() {
    let subject = Subject::start(Path::new("/bin/sleep"), &["1000"]);
    let seen = subject.in_call(libc::SYS_clock_nanosleep);
    let vdso = subject
        .mappings()
        .into_iter()
        .find(|mapping| mapping.path == "[vdso]")
        .unwrap();
    let mut stacks = UserStacks::new();
    stacks.map(KEY, subject.pid(), vdso.clone());
    for ip in vdso.start..vdso.end {
        stacks.intern(&RawStack {
            ip,
            bytes: &[],
            ..subject.stack(&seen)
        });
    }
    let stacks = stacks.finish();
    let found: Vec<&Frame> = stacks
        .iter()
        .flatten()
        .filter(|frame| frame.symbol.is_some())
        .collect();
    assert!(
        found
            .iter()
            .any(|frame| frame.symbol.as_deref() == Some("clock_gettime")
                || frame.symbol.as_deref() == Some("__vdso_clock_gettime")),
        "{found:?}"
    );
    assert!(
        stacks
            .iter()
            .flatten()
            .all(|frame| frame.module.as_deref() == Some("[vdso]"))
    );
}

#[test]
fn the_kernels_own_symbols_are_read() {
    let text = fs::read_to_string("/proc/kallsyms").unwrap();
    let line = text.lines().find(|line| line.ends_with(" T schedule")).unwrap();
    let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let symbols = KernelSymbols::load("/proc/kallsyms").unwrap();
    // Without privilege the kernel shows zeros.
    assert_eq!(symbols.hidden(), address == 0);
    assert_eq!(symbols.name(address + 1), (address != 0).then_some("schedule"));
}
