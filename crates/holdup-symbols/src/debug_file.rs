//! Debug files that are installed apart from what they describe.
//!
//! In comes an ELF file, out comes the file with its full symbol table, if a package has installed one:
//! `/usr/lib/debug/.build-id/ab/cdef….debug`, found by the build id in the file. The folder is this machine's
//! own and never one that the observed program sees; the file may name any build id, but an id is only
//! hexadecimal digits, and the debug file must have the same one.

use crate::elf::Elf;
use crate::mounts::Mounts;
use crate::open::regular;
use object::elf::NT_GNU_BUILD_ID;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Where packages put debug files.
const FOLDER: &str = "/usr/lib/debug/.build-id";

/// Longest section of notes that is read for a build id, in bytes; it has 36.
const NOTE_BYTES_MAX: u64 = 1024;

/// Shortest and longest build id, in bytes. Linkers write 16 (a UUID, MD5) or 20 (SHA-1), and can be reported others.
const ID_BYTES: std::ops::RangeInclusive<usize> = 8..=64;

/// The debug file of `elf`, where there is one.
pub(crate) fn debug_file(elf: &Elf) -> Option<Elf> {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = Mounts::parse(&String::from_utf8_lossy(&mounts));
    if mounts.remote_path(FOLDER) {
        return None;
    }
    in_folder(elf, Path::new(FOLDER))
}

fn in_folder(elf: &Elf, folder: &Path) -> Option<Elf> {
    let id = build_id(elf)?;
    let (first, rest) = id.split_at(2);
    let opened = regular(&folder.join(first).join(format!("{rest}.debug")))?;
    let found = Elf::read(opened.file).ok()?;
    (build_id(&found).as_ref() == Some(&id)).then_some(found)
}

/// The build id in hexadecimal digits.
pub(crate) fn build_id(elf: &Elf) -> Option<String> {
    let notes = elf.bytes(elf.section(".note.gnu.build-id")?, NOTE_BYTES_MAX)?;
    let number = |at: usize| {
        let word = notes.get(at..at + 4)?;
        Some(u32::from_le_bytes(
            word.try_into().expect("the range has four bytes"),
        ))
    };
    if number(0)? != 4 || number(8)? != NT_GNU_BUILD_ID.0 || notes.get(12..16)? != b"GNU\0" {
        return None;
    }
    let length = usize::try_from(number(4)?).ok()?;
    let id = notes
        .get(16..)?
        .get(..length)
        .filter(|id| ID_BYTES.contains(&id.len()))?;
    Some(id.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a string takes any text");
        digits
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::process::Command;
    use tempfile::TempDir;

    /// A program with the build id 0123456789abcdef…, as it is and stripped.
    fn programs(directory: &Path, id: &str) -> (PathBuf, PathBuf) {
        let source = directory.join("a.c");
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let build = |name: &str, stripped: &[&str]| {
            let program = directory.join(name);
            let status = Command::new("cc")
                .arg(format!("-Wl,--build-id=0x{id}"))
                .args(stripped)
                .arg("-o")
                .arg(&program)
                .arg(&source)
                .status();
            assert!(status.expect("a C compiler named cc is installed").success());
            program
        };
        (build("whole", &[]), build("stripped", &["-s"]))
    }

    fn elf(path: &Path) -> Elf {
        Elf::read(File::open(path).unwrap()).unwrap()
    }

    #[test]
    fn the_debug_file_has_the_same_build_id_and_is_a_regular_file() {
        let directory = TempDir::new().unwrap();
        let (whole, stripped) = programs(directory.path(), "0123456789abcdef");
        assert_eq!(build_id(&elf(&stripped)).as_deref(), Some("0123456789abcdef"));
        let folder = directory.path().join("ids");
        assert!(in_folder(&elf(&stripped), &folder).is_none());
        fs::create_dir_all(folder.join("01")).unwrap();
        let place = folder.join("01/23456789abcdef.debug");
        symlink(&whole, &place).unwrap();
        let found = in_folder(&elf(&stripped), &folder).unwrap();
        assert!(found.section(".symtab").is_some());

        let (other, _) = programs(directory.path(), "ffff456789abcdef");
        fs::remove_file(&place).unwrap();
        symlink(&other, &place).unwrap();
        assert!(in_folder(&elf(&stripped), &folder).is_none());

        fs::remove_file(&place).unwrap();
        nix::unistd::mkfifo(&place, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(in_folder(&elf(&stripped), &folder).is_none());
    }
}
