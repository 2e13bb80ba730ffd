//! Files of JavaScript code: whose they are.
//!
//! In: the path or name that a script has. Out: whether it belongs to Node.js or to an installed package, and not to the program.

use holdup_evidence::{Frame, Language};

/// Code that is part of Node.js: `node:fs`, `node:internal/timers`.
const BUILT_IN: &str = "node:";

/// The folder into which packages are installed.
const PACKAGES: &str = "node_modules";

/// Whether a script is of Node.js or of an installed package. Code of the engine has no script.
#[must_use]
pub fn of_library(file: &str) -> bool {
    file.is_empty() || file.starts_with(BUILT_IN) || is_installed(file)
}

/// Whether a script is of an installed package.
#[must_use]
pub fn is_installed(file: &str) -> bool {
    file.rsplit('/').skip(1).any(|folder| folder == PACKAGES)
}

/// The function of libuv that runs an event loop, and that of Node.js that waits for a child process with a loop of its own.
const RUNS_LOOP: &str = "uv_run";
const AWAITS_CHILD: &str = "node::SyncProcessRunner::";

/// Whether a thread stood in JavaScript that its event loop had called.
#[must_use]
pub fn keeps_event_loop(stack: &[Frame]) -> bool {
    let outermost = stack
        .iter()
        .rposition(|frame| frame.language == Language::JavaScript);
    let is_loop = |frame: &Frame| frame.symbol.as_deref() == Some(RUNS_LOOP);
    outermost.is_some_and(|at| stack[at..].iter().any(is_loop))
}

/// Whether a thread waited for the end of a child process: `execSync` and its like.
#[must_use]
pub fn awaits_child(stack: &[Frame]) -> bool {
    let symbols = stack.iter().filter_map(|frame| frame.symbol.as_deref());
    let mut native = symbols.filter(|symbol| symbol.starts_with(AWAITS_CHILD));
    native.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::{is_installed, of_library};

    #[test]
    fn node_and_packages_are_not_the_program() {
        for file in [
            "node:fs",
            "node:internal/modules/cjs/loader",
            "/srv/shop/node_modules/express/lib/router/index.js",
            "",
        ] {
            assert!(of_library(file), "{file}");
        }
        for file in [
            "/srv/shop/app.js",
            "/srv/node_modules.js",
            "app.mjs",
            "evalmachine.<anonymous>",
        ] {
            assert!(!of_library(file), "{file}");
        }
        assert!(is_installed("/srv/node_modules/a.js") && !is_installed("node:fs"));
    }
}
