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
        // Each argument is a template of twice the one before it.
        let multiplied = |times: usize| {
            let arguments: String = (0..times).map(twice).collect();
            format!("_Z1f1aIiiE{arguments}")
        };
        let few = demangle(&multiplied(4));
        assert!(
            few.starts_with("f(a<int, int>, b<a<int, int>, a<int, int> >"),
            "{few}"
        );
        assert!(few.len() > 16 * "a<int, int>".len());
        let many = multiplied(40);
        assert_eq!(demangle(&many), many);
        let long = format!("_ZN{}E", "1a".repeat(MANGLED_BYTES_MAX));
        assert_eq!(demangle(&long), long);
    }

    /// `b<X, X>` with X the argument before it, which is every second substitution from the second on.
    fn twice(step: usize) -> String {
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let name = if step == 0 {
            "1b".to_owned()
        } else {
            "S1_".to_owned()
        };
        let before = if step == 0 { 0 } else { step + 1 };
        let before = match before {
            0 => "S0_".to_owned(),
            _ if before < 36 => format!("S{}_", digits[before] as char),
            _ => format!("S{}{}_", digits[before / 36] as char, digits[before % 36] as char),
        };
        format!("{name}I{before}{before}E")
    }
}
