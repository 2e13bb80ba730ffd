//! Folders of somebody else: no link of his is followed, nothing of his is opened, and what is written is whole or not there.
//!
//! Root runs these tests; what belongs to somebody else is nobody's.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use holdup_files::{Destination, Guard, Last, Missing, NewFile, Refused, folder};
use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// A folder of nobody's with root's file beside it.
struct Stage {
    place: TempDir,
}

impl Stage {
    fn new() -> Stage {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        let stage = Stage { place };
        std::fs::create_dir(stage.at("theirs")).unwrap();
        chown(stage.at("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
        std::fs::create_dir(stage.at("own")).unwrap();
        std::fs::write(stage.at("own/secret"), "root's").unwrap();
        stage
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A link of nobody's.
    fn their_link(&self, target: &Path, name: &str) -> PathBuf {
        let link = self.at(name);
        symlink(target, &link).unwrap();
        lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
        link
    }

    fn untouched(&self) {
        let text = std::fs::read_to_string(self.at("own/secret")).unwrap();
        assert_eq!(
            (text.as_str(), names(&self.at("own"))),
            ("root's", vec!["secret".to_owned()])
        );
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn write(path: &Path, text: &str) -> Result<(), Refused> {
    match Destination::open(path)? {
        Destination::New(mut file) => {
            file.file().write_all(text.as_bytes())?;
            file.finish()
        }
        Destination::Stream(mut stream) => Ok(stream.write_all(text.as_bytes())?),
    }
}

#[test]
fn a_foreign_link_is_followed_nowhere_on_the_way() {
    let stage = Stage::new();
    let file = stage.their_link(&stage.at("own/secret"), "theirs/report.json");
    let way = stage.their_link(&stage.at("own"), "theirs/way");
    let relative = stage.their_link(Path::new("../own"), "theirs/relative");
    // Somebody else's link can lead to one of root's.
    symlink(&way, stage.at("own-link")).unwrap();
    for path in [
        file,
        way.join("new"),
        relative.join("new"),
        way.join("../own/new"),
        stage.at("own-link/new"),
        stage.at("theirs/../theirs/way/secret"),
    ] {
        let refused = write(&path, "x");
        assert!(
            matches!(refused, Err(Refused::Link { owner: NOBODY, .. })),
            "{path:?}: {refused:?}"
        );
        let refused = NewFile::open(&path, Last::RegularOnly).map(drop);
        assert!(refused.is_err(), "{path:?}");
        stage.untouched();
    }
}

#[test]
fn own_links_are_followed_but_not_one_that_was_given_a_second_name_in_a_foreign_folder() {
    let stage = Stage::new();
    symlink("secret", stage.at("own/link")).unwrap();
    symlink(stage.at("own"), stage.at("to-own")).unwrap();
    write(&stage.at("own/link"), "one").unwrap();
    assert_eq!(std::fs::read_to_string(stage.at("own/secret")).unwrap(), "one");
    write(&stage.at("to-own/secret"), "two").unwrap();
    assert_eq!(std::fs::read_to_string(stage.at("own/secret")).unwrap(), "two");
    assert!(
        std::fs::symlink_metadata(stage.at("own/link"))
            .unwrap()
            .is_symlink()
    );
    std::fs::hard_link(stage.at("to-own"), stage.at("theirs/second")).unwrap();
    assert!(matches!(
        write(&stage.at("theirs/second/secret"), "x"),
        Err(Refused::Link { .. })
    ));
    symlink("loop", stage.at("own/loop")).unwrap();
    assert_eq!(
        write(&stage.at("own/loop"), "x").unwrap_err().errno(),
        Some(libc::ELOOP)
    );
}

#[test]
fn a_file_is_whole_or_not_there_and_for_its_owner_alone() {
    let stage = Stage::new();
    let path = stage.at("theirs/report");
    let mut file = NewFile::open(&path, Last::FollowOwn).unwrap();
    file.file().write_all(b"half").unwrap();
    assert!(!path.exists());
    drop(file);
    assert_eq!(names(&stage.at("theirs")), [""; 0]);
    write(&path, "whole").unwrap();
    let about = path.metadata().unwrap();
    assert_eq!((about.mode() & 0o7777, about.uid(), about.nlink()), (0o600, 0, 1));
    // What was there with another owner, mode and second name is replaced, and not written to.
    std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    chown(&path, Some(NOBODY), None).unwrap();
    std::fs::hard_link(&path, stage.at("theirs/second")).unwrap();
    write(&path, "new").unwrap();
    assert_eq!(
        std::fs::read_to_string(stage.at("theirs/second")).unwrap(),
        "whole"
    );
    let about = path.metadata().unwrap();
    assert_eq!((about.mode() & 0o7777, about.uid()), (0o600, 0));
    assert_eq!(names(&stage.at("theirs")), ["report", "second"]);
}

#[test]
fn what_is_no_file_is_refused_at_once_unless_it_is_the_callers_own() {
    let stage = Stage::new();
    let fifo = stage.at("theirs/fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(write(&fifo, "x"), Err(Refused::NoReader)));
    let mut reader = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&fifo)
        .unwrap();
    write(&fifo, "text").unwrap();
    let mut text = [0; 4];
    reader.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"text");
    chown(&fifo, Some(NOBODY), None).unwrap();
    assert!(matches!(write(&fifo, "x"), Err(Refused::Fifo { owner: NOBODY })));
    assert!(matches!(
        write(Path::new("/dev/full"), "x"),
        Err(Refused::Special)
    ));
    assert!(matches!(write(&stage.at("own"), "x"), Err(Refused::Directory)));
    assert!(matches!(write(Path::new("/"), "x"), Err(Refused::Directory)));
    let socket = stage.at("own/socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(matches!(write(&socket, "x"), Err(Refused::Special)));
    write(Path::new("/dev/null"), "x").unwrap();
}

#[test]
fn descriptors_are_named_by_number_and_not_opened_again() {
    use std::os::fd::AsRawFd;
    let (mut reader, writer) = std::io::pipe().unwrap();
    for folder in ["/dev/fd", "/proc/self/fd"] {
        write(&Path::new(folder).join(writer.as_raw_fd().to_string()), "text").unwrap();
        let mut text = [0; 4];
        reader.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"text");
    }
    let readable = format!("/dev/fd/{}", reader.as_raw_fd());
    for wrong in ["/dev/fd/-1", "/dev/fd/123456", readable.as_str()] {
        assert_eq!(
            write(Path::new(wrong), "x").unwrap_err().errno(),
            Some(libc::EBADF),
            "{wrong}"
        );
    }
}

#[test]
fn a_folder_of_ones_own_is_so_up_to_the_root() {
    let stage = Stage::new();
    let of = |name: &str| folder(&stage.at(name), Guard::Own, Missing::Make);
    assert_eq!(of("own").unwrap().path, stage.at("own").canonicalize().unwrap());
    let made = of("new/er").unwrap();
    assert_eq!(made.path.metadata().unwrap().mode() & 0o7777, 0o700);
    assert!(matches!(of("theirs"), Err(Refused::Folder { owner: NOBODY, .. })));
    // Whoever owns the folder above can put another one in its place.
    std::fs::create_dir(stage.at("theirs/roots")).unwrap();
    assert!(matches!(
        of("theirs/roots"),
        Err(Refused::Folder { owner: NOBODY, .. })
    ));
    for (mode, refused) in [(0o755, false), (0o775, true), (0o757, true), (0o1777, true)] {
        std::fs::set_permissions(stage.at("own"), Permissions::from_mode(mode)).unwrap();
        assert_eq!(
            matches!(of("own"), Err(Refused::Shared { .. })),
            refused,
            "{mode:o}"
        );
    }
    // In a sticky one only the owner can rename what is below it.
    std::fs::create_dir(stage.at("own/below")).unwrap();
    assert!(of("own/below").is_ok());
    std::fs::set_permissions(stage.at("own"), Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(of("own/below"), Err(Refused::Shared { .. })));
    let link = stage.their_link(&stage.at("new"), "to-new");
    assert!(matches!(
        folder(&link, Guard::Anybody, Missing::Refuse),
        Err(Refused::Link { .. })
    ));
}
