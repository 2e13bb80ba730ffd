//! `/proc/self/mountinfo`: mounts of holdup's own mount namespace, and where the cgroup hierarchies are.
//!
//! Fields are separated by blanks; blanks within a field are written as octal escapes (`\040`).

use crate::root::{Problem, Root, note, text};
use holdup_evidence::DeviceNumber;
use holdup_evidence::facts::Mount;
use holdup_knowledge::file_systems;
use std::path::Path;

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The kernel's number of the mount.
    pub number: u32,
    /// That of the mount that it is on.
    pub parent: u32,
    /// The directory of the file system that is mounted (`/` unless a part of it is).
    pub root: String,
    /// Options of the file system itself; a version 1 cgroup hierarchy names its controllers here.
    pub super_options: String,
    /// Device of the file system.
    pub device: DeviceNumber,
    /// Where it is mounted.
    pub target: String,
    /// Its type.
    pub file_system: String,
    /// What is mounted.
    pub source: String,
    /// Options of the mount itself.
    pub options: String,
}

impl Line {
    /// As the table of file systems asks for it.
    #[must_use]
    pub fn known(&self) -> file_systems::Mount<'_> {
        file_systems::Mount {
            target: &self.target,
            file_system: &self.file_system,
            source: &self.source,
            options: &self.super_options,
        }
    }
}

impl From<Line> for Mount {
    fn from(line: Line) -> Mount {
        let mut options = line.options;
        for option in line.super_options.split(',') {
            if !options.split(',').any(|known| known == option) {
                options.push(',');
                options.push_str(option);
            }
        }
        Mount {
            device: line.device,
            target: line.target,
            file_system: line.file_system,
            source: line.source,
            options,
        }
    }
}

/// All mounts, in the kernel's order: of two on the same directory the later one is seen.
pub fn read(root: &Root, problems: &mut Vec<Problem>) -> Vec<Line> {
    read_file(&root.proc.join("self/mountinfo"), problems)
}

/// All mounts that a process sees. For a process that can be left behind: whoever mounts or unmounts there holds a lock.
pub fn of_process(root: &Root, pid: u32, problems: &mut Vec<Problem>) -> Vec<Line> {
    read_file(&root.proc.join(pid.to_string()).join("mountinfo"), problems)
}

/// The mount that a path leads to, which has no links and no `..` in it: from the root on, whatever is mounted on a directory of
/// it is entered. `None` where the root's own mount is not in the table, as in a directory that a process has made its root.
#[must_use]
pub fn of_path<'a>(lines: &'a [Line], path: &str) -> Option<&'a Line> {
    let path = Path::new(path);
    let outermost = |line: &&Line| {
        lines
            .iter()
            .all(|other| other.number != line.parent || other.number == line.number)
    };
    let mut found = lines.iter().filter(outermost).find(|line| line.target == "/")?;
    // Of each mount once: the table of a hostile namespace may lead in a circle, if a reading met it changing.
    for _ in 0..lines.len() {
        let on_it = lines
            .iter()
            .filter(|line| line.parent == found.number && line.number != found.number);
        let on_the_way = on_it.filter(|line| path.starts_with(&line.target));
        // The shortest is met first, and hides what was mounted below it before.
        let Some(next) = on_the_way.min_by_key(|line| line.target.len()) else {
            return Some(found);
        };
        found = next;
    }
    None
}

fn read_file(file: &Path, problems: &mut Vec<Problem>) -> Vec<Line> {
    let Some(text) = text(file, problems) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match parse(line) {
            Some(mount) => lines.push(mount),
            None => note(
                problems,
                file,
                Some(index + 1),
                "a mount as proc(5) describes it expected",
            ),
        }
    }
    lines
}

fn parse(line: &str) -> Option<Line> {
    let mut fields = line.split(' ');
    let number = fields.next()?.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = DeviceNumber {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    };
    let root = unescape(fields.next()?);
    let target = unescape(fields.next()?);
    let options = fields.next()?.to_owned();
    // Any number of optional fields, then a lone dash.
    fields.find(|field| *field == "-")?;
    Some(Line {
        number,
        parent,
        root,
        device,
        target,
        options,
        file_system: unescape(fields.next()?),
        source: unescape(fields.next()?),
        super_options: fields.next().unwrap_or_default().to_owned(),
    })
}

/// Replaces `\ooo` by the byte it stands for; a backslash with anything else behind it stays.
fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|digits| byte == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit)))
            .map(|digits| {
                digits
                    .iter()
                    .fold(0_u16, |value, digit| value * 8 + u16::from(digit - b'0'))
            })
            .and_then(|value| u8::try_from(value).ok());
        match octal {
            Some(value) => {
                bytes.push(value);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{of_path, read, unescape};
    use crate::root::Tree;
    use holdup_evidence::DeviceNumber;
    use holdup_evidence::facts::Mount;

    #[test]
    fn optional_fields_escapes_and_options() {
        let tree = Tree::new(&[(
            "proc/self/mountinfo",
            "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
             99 27 0:44 /sub /mnt/a\\040b\\134c rw,nosuid shared:1 master:2 - fuse.sshfs host:/x\\011y rw,user_id=0\n\
             broken line\n",
        )]);
        let mut problems = Vec::new();
        let mounts: Vec<Mount> = read(&tree.root, &mut problems)
            .into_iter()
            .map(Mount::from)
            .collect();
        assert_eq!(mounts[0].options, "rw,relatime,discard");
        assert_eq!(
            mounts[1],
            Mount {
                device: DeviceNumber { major: 0, minor: 44 },
                target: "/mnt/a b\\c".into(),
                file_system: "fuse.sshfs".into(),
                source: "host:/x\ty".into(),
                options: "rw,nosuid,user_id=0".into(),
            }
        );
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].line, Some(3));
    }

    #[test]
    fn a_path_is_on_what_is_seen_there() {
        let tree = Tree::new(&[(
            "proc/self/mountinfo",
            "5 20 0:4 / /proc rw - proc proc rw\n\
             20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             30 20 0:40 / /a/b rw - fuse one rw\n\
             31 20 8:2 / /a rw - ext4 /dev/sda2 rw\n\
             32 20 0:41 / /mnt rw - tmpfs two rw\n\
             33 32 0:42 / /mnt rw - fuse three rw\n\
             34 33 0:43 / /mnt/c rw - fuse four rw\n",
        )]);
        let lines = read(&tree.root, &mut Vec::new());
        let on = |path| of_path(&lines, path).map(|line| line.number);
        assert_eq!(on("/srv/x"), Some(20));
        assert_eq!(on("/proc/1"), Some(5), "mounted before the root was");
        assert_eq!(on("/a/b/c"), Some(31), "what was mounted there before is hidden");
        assert_eq!(on("/mnt/x"), Some(33), "the last on the directory is seen");
        assert_eq!(on("/mnt/c/x"), Some(34));
        assert_eq!(on("/mntx"), Some(20));
        assert_eq!(of_path(&lines[..1], "/proc/1").map(|line| line.number), None);
        // One that is on itself leads nowhere.
        let tree = Tree::new(&[(
            "proc/self/mountinfo",
            "1 1 0:1 / / rw - rootfs rootfs rw\n2 3 0:2 / /a rw - x x rw\n3 2 0:3 / /a rw - x x rw\n",
        )]);
        let lines = read(&tree.root, &mut Vec::new());
        assert_eq!(of_path(&lines, "/a/x").map(|line| line.number), Some(1));
    }

    #[test]
    fn odd_backslashes_stay() {
        assert_eq!(unescape("a\\"), "a\\");
        assert_eq!(unescape("a\\09x"), "a\\09x");
        assert_eq!(unescape("\\777"), "\\777");
        assert_eq!(unescape("\\303\\244"), "ä");
    }
}
