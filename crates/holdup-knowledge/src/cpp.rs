//! Functions of C++ programs: whose they are.
//!
//! The problem: templates of the standard library are compiled into the program, so the module says nothing of whose a function is; and a
//! thread begins in the library, which calls the program. The choice: by the header where there is debug information, else by the
//! namespace in the name.

use holdup_evidence::Frame;

/// Files that hold the language's runtime and its library.
const RUNTIME: [&str; 4] = ["libstdc++.so", "libc++.so", "libc++abi.so", "libgcc_s.so"];

/// Folders of the library's headers, of either implementation.
const HEADERS: [&str; 3] = ["/include/c++/", "/c++/v1/", "/c++/bits/"];

/// The header of GCC in which its library calls the C library's threads.
const THREADS: &str = "/gthr-default.h";

/// What names of the library begin with.
const NAMESPACES: [&str; 5] = ["std::", "__gnu_cxx::", "__cxxabiv1::", "__gthread_", "__cxa_"];

/// Whether a frame is of a file that holds the runtime.
#[must_use]
pub fn of_runtime(frame: &Frame) -> bool {
    let module = frame.module.as_deref();
    module.is_some_and(|module| RUNTIME.iter().any(|file| module.starts_with(file)))
}

/// Whether a function is of the library's templates, compiled into the program.
#[must_use]
pub fn of_library(frame: &Frame) -> bool {
    match frame.file.as_deref() {
        Some(file) => HEADERS.iter().any(|folder| file.contains(folder)) || file.ends_with(THREADS),
        None => {
            let name = qualified(frame.symbol.as_deref().unwrap_or_default());
            NAMESPACES.iter().any(|begin| name.starts_with(begin))
        }
    }
}

/// Whether a name has the types of its arguments, as names of C++ have.
#[must_use]
pub fn takes_arguments(symbol: &str) -> bool {
    let ends = symbol.ends_with(')') || symbol.ends_with(") const");
    ends && !qualified(symbol).is_empty()
}

/// A function's name with its namespaces, without what it returns and its arguments: `shop::pay` of `std::string shop::pay<int>(int)`.
#[must_use]
pub fn qualified(symbol: &str) -> &str {
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, byte) in symbol.bytes().enumerate() {
        match byte {
            b'(' if depth == 0 => return &symbol[begin..at],
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            b'>' | b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    &symbol[begin..]
}

#[cfg(test)]
mod tests {
    use super::{of_library, of_runtime, qualified};
    use holdup_evidence::Frame;

    fn frame(symbol: &str, file: Option<&str>) -> Frame {
        Frame {
            symbol: Some(symbol.to_owned()),
            module: Some("shop".to_owned()),
            file: file.map(str::to_owned),
            ..Frame::default()
        }
    }

    #[test]
    fn a_name_is_found_behind_what_a_template_returns() {
        for (symbol, name) in [
            ("std::string shop::pay<int>(int)", "shop::pay<int>"),
            (
                "void std::__invoke_impl<void, void (*)(int), int>(int&&)",
                "std::__invoke_impl<void, void (*)(int), int>",
            ),
            ("std::thread::join()", "std::thread::join"),
            ("main", "main"),
            (
                "main::{lambda(int)#1}::operator()(int) const",
                "main::{lambda(int)#1}::operator",
            ),
            ("", ""),
            ("<<<((", "<<<(("),
        ] {
            assert_eq!(qualified(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn the_librarys_templates_are_told_by_their_headers_or_their_namespace() {
        for (symbol, file) in [
            (
                "shop::looks_like_mine()",
                Some("/usr/include/c++/12/bits/std_thread.h"),
            ),
            (
                "__gthread_once",
                Some("/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h"),
            ),
            (
                "std::__1::thread::join()",
                Some("/usr/lib/llvm-14/include/c++/v1/thread"),
            ),
            ("void std::__invoke_impl<void>(std::__invoke_other)", None),
        ] {
            assert!(of_library(&frame(symbol, file)), "{symbol}");
        }
        for (symbol, file) in [
            ("std::string shop::pay<int>(int)", None),
            (
                "std::hash<shop::Cart>::operator()(shop::Cart)",
                Some("/srv/shop/cart.h"),
            ),
            ("main", None),
        ] {
            assert!(!of_library(&frame(symbol, file)), "{symbol}");
        }
        let thread = Frame {
            module: Some("libstdc++.so.6.0.30".to_owned()),
            ..Frame::default()
        };
        assert!(of_runtime(&thread) && !of_runtime(&frame("std::thread::join()", None)));
    }
}
