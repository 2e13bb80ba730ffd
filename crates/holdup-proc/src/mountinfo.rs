//! `/proc/self/mountinfo`: mounts of holdup's own mount namespace, and where the cgroup hierarchies are.
//!
//! Fields are separated by blanks; blanks within a field are written as octal escapes (`\040`).

use crate::root::{Problem, Root, note, text};
use holdup_evidence::DeviceNumber;
use holdup_evidence::facts::Mount;

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
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
    let file = root.proc.join("self/mountinfo");
    let Some(text) = text(&file, problems) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match parse(line) {
            Some(mount) => lines.push(mount),
            None => note(
                problems,
                &file,
                Some(index + 1),
                "a mount as proc(5) describes it expected",
            ),
        }
    }
    lines
}

fn parse(line: &str) -> Option<Line> {
    let mut fields = line.split(' ');
    let (major, minor) = fields.nth(2)?.split_once(':')?;
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
    use super::{read, unescape};
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
    fn odd_backslashes_stay() {
        assert_eq!(unescape("a\\"), "a\\");
        assert_eq!(unescape("a\\09x"), "a\\09x");
        assert_eq!(unescape("\\777"), "\\777");
        assert_eq!(unescape("\\303\\244"), "ä");
    }
}
