//! Symbol names as their authors wrote them.
//!
//! In comes a linker's name, out comes the name in the source for Rust and C++; a C name is left as it is. A
//! few bytes of a mangled name can refer back to themselves until gigabytes come out, so both the length
//! that goes in and the length that comes out are bounded, and a name beyond that stays as it was.

use std::fmt::{self, Write};

/// Longest mangled name that is tried, in bytes. Template-heavy C++ reaches a few thousand.
const MANGLED_BYTES_MAX: usize = 16 * 1024;

/// Longest demangled name that is kept, in bytes. No report can show more.
const DEMANGLED_BYTES_MAX: usize = 64 * 1024;

/// How deep a mangled C++ name may nest.
const CPP_DEPTH_MAX: u32 = 128;

/// The name in the source, or the given one if it is not mangled.
pub(crate) fn demangle(name: &str) -> String {
    if name.len() > MANGLED_BYTES_MAX {
        return name.to_owned();
    }
    rust(name)
        .or_else(|| cpp(name))
        .unwrap_or_else(|| name.to_owned())
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded::default();
    // The alternate form leaves out the hash.
    write!(out, "{demangled:#}").ok()?;
    Some(out.0)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let parsing = cpp_demangle::ParseOptions::default().recursion_limit(CPP_DEPTH_MAX);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &parsing).ok()?;
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(CPP_DEPTH_MAX);
    let mut out = Bounded::default();
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// A string that refuses to grow beyond the bound.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > DEMANGLED_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_cpp_and_c_names() {
        assert_eq!(
            demangle("_ZN3std2io5Write9write_all17h0123456789abcdefE"),
            "std::io::Write::write_all"
        );
        assert_eq!(demangle("_ZN4pool6worker3runEi"), "pool::worker::run(int)");
        assert_eq!(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangle("RAND_status"), "RAND_status");
        assert_eq!(demangle("_Znonsense"), "_Znonsense");
        assert_eq!(demangle(""), "");
    }

    #[test]
    fn a_name_that_multiplies_itself_stays_as_it_is() {
        // Each template argument list repeats the one before it twice.
        let mut name = String::from("_Z1fI1aIiiE");
        for back in 0..40 {
            let id = if back == 0 {
                "S_".to_owned()
            } else {
                format!("S{}_", to_base36(back - 1))
            };
            name.push_str(&format!("1bI{id}{id}E"));
        }
        name.push_str("Evv");
        assert!(demangle(&name).len() <= DEMANGLED_BYTES_MAX);
        let long = format!("_ZN{}E", "1a".repeat(MANGLED_BYTES_MAX));
        assert_eq!(demangle(&long), long);
    }

    fn to_base36(mut number: usize) -> String {
        let mut digits = Vec::new();
        loop {
            digits.push(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[number % 36]);
            number /= 36;
            if number == 0 {
                break;
            }
        }
        digits.reverse();
        String::from_utf8(digits).unwrap()
    }
}
