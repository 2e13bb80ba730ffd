//! Where the kernel's files are, and how one is read.
//!
//! In: a path below one of the five roots. Out: its text, or `None`. A file that does not exist is not a
//! problem: kernels differ. Anything else that goes wrong is one.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The most that is read of one file, bytes: a mount table of ten thousand mounts is 2 MiB.
const READ_LIMIT: u64 = 4 << 20;

/// The five trees that facts are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// `/etc`.
    pub etc: PathBuf,
    /// `/dev`.
    pub dev: PathBuf,
    /// `/var`.
    pub var: PathBuf,
}

impl Root {
    /// The machine that holdup runs on.
    #[must_use]
    pub fn system() -> Root {
        Root::below(Path::new("/"))
    }

    /// `/run`, beside `/var`.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.var.with_file_name("run")
    }

    /// A tree laid out below `directory`.
    #[must_use]
    pub fn below(directory: &Path) -> Root {
        Root {
            proc: directory.join("proc"),
            sys: directory.join("sys"),
            etc: directory.join("etc"),
            dev: directory.join("dev"),
            var: directory.join("var"),
        }
    }
}

/// Something that could not be read or understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1, where there is one.
    pub line: Option<usize>,
    /// What was expected, or what the system said.
    pub expected: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.expected)
    }
}

/// The text of a file; `None` when it isn't there or can't be read.
pub fn text(file: &Path, problems: &mut Vec<Problem>) -> Option<String> {
    match read(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            note(problems, file, None, error.to_string());
            None
        }
    }
}

/// The text of a file that may come and go (a process's, a cgroup's): whatever goes wrong, it is not there.
#[must_use]
pub fn text_if_there(file: &Path) -> Option<String> {
    read(file).ok()
}

/// The first line of a file, without white space around it.
pub fn word(file: &Path, problems: &mut Vec<Problem>) -> Option<String> {
    let text = text(file, problems)?;
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// The number that a file holds.
pub fn number<T: FromStr>(file: &Path, problems: &mut Vec<Problem>) -> Option<T> {
    let word = word(file, problems)?;
    let parsed = word.parse().ok();
    if parsed.is_none() {
        note(
            problems,
            file,
            Some(1),
            format!("a number expected, found {word:?}"),
        );
    }
    parsed
}

/// Adds a problem to the list.
pub fn note(problems: &mut Vec<Problem>, file: &Path, line: Option<usize>, expected: impl Into<String>) {
    problems.push(Problem {
        file: file.to_owned(),
        line,
        expected: expected.into(),
    });
}

/// Names are bytes to the kernel; what is not UTF-8 is replaced rather than the file refused.
fn read(file: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(file)?
        .take(READ_LIMIT)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A tree of files in a temporary directory, for tests.
#[cfg(test)]
pub(crate) struct Tree {
    directory: tempfile::TempDir,
    pub(crate) root: Root,
}

#[cfg(test)]
impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Tree {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::below(directory.path());
        let tree = Tree { directory, root };
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::{Tree, number, text};

    #[test]
    fn what_is_absent_is_no_problem_and_what_is_wrong_is_one() {
        let tree = Tree::new(&[
            ("proc/good", "42\n"),
            ("proc/bad", "forty-two\n"),
            ("proc/dir/x", ""),
        ]);
        let mut problems = Vec::new();
        assert_eq!(
            number::<u32>(&tree.root.proc.join("good"), &mut problems),
            Some(42)
        );
        assert_eq!(number::<u32>(&tree.root.proc.join("none"), &mut problems), None);
        assert!(problems.is_empty());
        assert_eq!(number::<u32>(&tree.root.proc.join("bad"), &mut problems), None);
        assert_eq!(text(&tree.root.proc.join("dir"), &mut problems), None);
        assert_eq!(problems.len(), 2);
        assert!(
            problems[0]
                .to_string()
                .ends_with("bad:1: a number expected, found \"forty-two\"")
        );
    }

    #[test]
    fn bytes_that_are_no_text_do_not_cost_the_file() {
        let tree = Tree::new(&[("proc/x", "")]);
        std::fs::write(tree.path("proc/x"), b"a\xffb\n").unwrap();
        assert_eq!(
            text(&tree.path("proc/x"), &mut Vec::new()).unwrap(),
            "a\u{fffd}b\n"
        );
    }
}
