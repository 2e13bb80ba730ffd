//! Files of Python code: whose they are.
//!
//! In: the path that a code object names. Out: whether it belongs to the standard library or to an installed package, and not to
//! the program.

/// Folders into which packages are installed.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];

/// Code that is part of the interpreter's binary: `<frozen importlib._bootstrap>`.
const FROZEN: &str = "<frozen ";

/// Files in which threads and programs begin.
const BEGIN: [&str; 2] = ["threading.py", "runpy.py"];

/// Whether a file is of the standard library or of an installed package.
#[must_use]
pub fn of_library(file: &str) -> bool {
    let folders = || file.rsplit('/').skip(1);
    file.starts_with(FROZEN)
        || folders().any(|folder| PACKAGES.contains(&folder))
        || folders()
            .zip(folders().skip(1))
            .any(|(folder, above)| is_version(folder) && matches!(above, "lib" | "lib64"))
}

/// Whether a file of the library is one in which a thread or a program begins, whatever it does later.
#[must_use]
pub fn begins(file: &str) -> bool {
    file.starts_with(FROZEN) || file.rsplit('/').next().is_some_and(|name| BEGIN.contains(&name))
}

/// `python3.11`, `python3.13t`.
fn is_version(folder: &str) -> bool {
    let minor = folder.strip_prefix("python3.").unwrap_or_default();
    let digits = minor.trim_end_matches('t');
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{begins, of_library};

    #[test]
    fn the_library_and_packages_are_not_the_program() {
        for file in [
            "/usr/lib/python3.11/threading.py",
            "/usr/lib64/python3.9/asyncio/base_events.py",
            "/opt/python/lib/python3.13t/queue.py",
            "/srv/venv/lib/python3.12/site-packages/flask/app.py",
            "/usr/lib/python3/dist-packages/gunicorn/workers/sync.py",
            "<frozen importlib._bootstrap>",
        ] {
            assert!(of_library(file), "{file}");
        }
        for file in [
            "/srv/shop/app.py",
            "/srv/lib/python/app.py",
            "/srv/python3.11/app.py",
            "/usr/lib/python3.x/app.py",
            "app.py",
            "<string>",
            "<stdin>",
            "",
        ] {
            assert!(!of_library(file), "{file}");
        }
        assert!(begins("/usr/lib/python3.8/threading.py") && begins("<frozen runpy>"));
        assert!(!begins("/usr/lib/python3.8/queue.py"));
    }
}
