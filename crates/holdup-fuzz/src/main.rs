//! The long run: `fuzz TARGET [LIBFUZZER OPTION…]`, led by coverage. `cargo xtask fuzz` builds and calls it.

use holdup_fuzz::Target;
use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;

/// The chosen target; libFuzzer's callback takes no context.
static RUN: OnceLock<fn(&[u8])> = OnceLock::new();

type Callback = extern "C" fn(*const u8, usize) -> c_int;

unsafe extern "C" {
    fn LLVMFuzzerRunDriver(argc: *mut c_int, argv: *mut *mut *mut c_char, callback: Callback) -> c_int;
}

// Keeps the library that has the driver.
use libfuzzer_sys as _;

/// libfuzzer-sys refers to the two symbols that its macro would define.
#[unsafe(no_mangle)]
extern "C" fn rust_fuzzer_test_input(data: *const u8, size: usize) -> c_int {
    read(data, size)
}

extern "C" fn read(data: *const u8, size: usize) -> c_int {
    // SAFETY: libFuzzer hands out `size` bytes that are valid during this call; for 0 the pointer may be anything.
    let bytes = if size == 0 {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(data, size) }
    };
    let run = RUN.get().expect("main sets it before the first call");
    if std::panic::catch_unwind(|| run(bytes)).is_err() {
        // libFuzzer keeps the input of a process that aborts.
        std::process::abort();
    }
    0
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let Some(target) = words.get(1).and_then(|name| Target::named(name)) else {
        let names: Vec<&str> = holdup_fuzz::TARGETS.iter().map(|target| target.name).collect();
        panic!("which target? one of: {}", names.join(", "));
    };
    RUN.get_or_init(|| target.run);
    let seeds = target.seed_folder();
    let seeds = seeds.map(|folder| folder.to_string_lossy().into_owned());
    let strings: Vec<CString> = words
        .into_iter()
        .chain(seeds)
        .enumerate()
        .filter(|(place, _)| *place != 1)
        .map(|(_, word)| CString::new(word).expect("an argument has no NUL"))
        .collect();
    let mut pointers: Vec<*mut c_char> = strings.iter().map(|word| word.as_ptr().cast_mut()).collect();
    let mut count = c_int::try_from(pointers.len()).expect("few arguments");
    pointers.push(std::ptr::null_mut());
    let mut list = pointers.as_mut_ptr();
    // SAFETY: as main gets them: a count, and that many NUL-terminated strings with a null behind them, all alive
    // until the process ends.
    let status = unsafe { LLVMFuzzerRunDriver(&raw mut count, &raw mut list, read) };
    std::process::exit(status);
}
