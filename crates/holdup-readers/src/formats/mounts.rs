//! Mounted file systems and their options: `/proc/mounts`, `mount`, `/proc/self/mountinfo`.

use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::{Out, text_of};
use crate::numbers::{whole, words};
use holdup_evidence::observed::SeenFileSystem;
use memchr::memmem;

pub(crate) static FORMAT: Format = Format::new(
    "mounts",
    Family::Host,
    recognise,
    Shape::Lines(|| Box::new(Reader)),
)
.about("mount, /proc/mounts");

/// Lines that are looked at, and mounts among them from which it is no chance.
const LOOKED_AT: usize = 20;
const MIN_MOUNTS: usize = 2;

/// Bytes of options that are kept: an overlay names all its layers there.
const OPTIONS: usize = 400;

/// Bytes of a path that are kept.
const PATH: usize = 400;

fn recognise(head: &[u8]) -> Sureness {
    let lines = head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty());
    let (mut all, mut mounts) = (0, 0);
    for line in lines.take(LOOKED_AT) {
        all += 1;
        mounts += usize::from(mount(line).is_some());
    }
    Sureness::certain_if(mounts >= MIN_MOUNTS || (mounts > 0 && mounts == all))
}

/// Parts of a line.
#[derive(Debug, Clone, Copy)]
struct Mount<'a> {
    source: &'a [u8],
    target: &'a [u8],
    kind: &'a [u8],
    options: &'a [u8],
    /// Options of the file system beside those of the mount, as `mountinfo` has them.
    more: &'a [u8],
}

fn mount(line: &[u8]) -> Option<Mount<'_>> {
    of_command(line)
        .or_else(|| of_file(line))
        .or_else(|| of_mountinfo(line))
}

fn is_options(text: &[u8]) -> bool {
    let mut options = text.split(|byte| *byte == b',');
    options.any(|option| option == b"rw" || option == b"ro")
}

/// `/dev/sda1 on / type ext4 (rw,relatime)`.
fn of_command(line: &[u8]) -> Option<Mount<'_>> {
    let line = line.trim_ascii();
    let kind = memmem::rfind(line, b" type ")?;
    let on = memmem::find(line.get(..kind)?, b" on /")?;
    let behind = line.get(kind + b" type ".len()..)?;
    let open = memmem::find(behind, b" (")?;
    // A label may stand behind it: `[root]`.
    let options = behind.get(open + 2..)?;
    let options = options.get(..memchr::memrchr(b')', options)?)?;
    is_options(options).then_some(Mount {
        source: line.get(..on)?,
        target: line.get(on + b" on ".len()..kind)?,
        kind: behind.get(..open)?,
        options,
        more: b"",
    })
}

/// `/dev/sda1 / ext4 rw,relatime 0 0`.
fn of_file(line: &[u8]) -> Option<Mount<'_>> {
    let mut words = words(line);
    let (source, target, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let numbers = whole(words.next()?).is_some() && whole(words.next()?).is_some();
    let is_it = target.starts_with(b"/") && is_options(options) && numbers && words.next().is_none();
    is_it.then_some(Mount {
        source,
        target,
        kind,
        options,
        more: b"",
    })
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn of_mountinfo(line: &[u8]) -> Option<Mount<'_>> {
    let dash = memmem::find(line, b" - ")?;
    let mut front = words(line.get(..dash)?);
    whole(front.next()?)?;
    whole(front.next()?)?;
    let numbers = front.next()?;
    let (_, target, options) = (front.next()?, front.next()?, front.next()?);
    let mut back = words(line.get(dash + b" - ".len()..)?);
    let (kind, source, more) = (back.next()?, back.next()?, back.next().unwrap_or_default());
    let is_it = numbers.contains(&b':') && target.starts_with(b"/") && is_options(options);
    is_it.then_some(Mount {
        source,
        target,
        kind,
        options,
        more,
    })
}

#[derive(Debug)]
struct Reader;

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        let Some(mount) = mount(line) else {
            return Understood::No;
        };
        let cut = |bytes: &[u8], most: usize| text_of(bytes.get(..most).unwrap_or(bytes));
        let mut options = cut(mount.options, OPTIONS);
        if !mount.more.is_empty() {
            options.push(',');
            options.push_str(&cut(mount.more, OPTIONS));
        }
        out.file_system(SeenFileSystem {
            source: plain(&cut(mount.source, PATH)),
            kind: Some(cut(mount.kind, PATH)),
            mount: plain(&cut(mount.target, PATH)),
            options: Some(options),
            quote: out.here(),
            ..SeenFileSystem::default()
        });
        Understood::Evidence
    }
}

/// The kernel writes blanks in names as `\040`.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, behind) = rest.split_at(at);
        plain.push_str(before);
        let code = behind
            .get(1..4)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(|code| matches!(code, b' ' | b'\t' | b'\\' | b'#')) {
            Some(code) => {
                plain.push(char::from(code));
                rest = behind.get(4..).unwrap_or_default();
            }
            None => {
                plain.push('\\');
                rest = behind.get(1..).unwrap_or_default();
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::{mount, plain};
    use crate::read_text;

    #[test]
    fn three_ways_to_list_a_mount() {
        let text = "/dev/sda1 on / type ext4 (ro,relatime,errors=remount-ro)\n/dev/sdb1 on /a type b on /c type xfs (rw) [x]\n";
        let reading = read_text("m", text.as_bytes());
        let [root, other] = reading.observed.file_systems.as_slice() else {
            panic!("{reading:?}")
        };
        assert_eq!((&*root.source, &*root.mount), ("/dev/sda1", "/"));
        assert_eq!(root.options.as_deref(), Some("ro,relatime,errors=remount-ro"));
        assert_eq!(
            (&*other.mount, other.kind.as_deref()),
            ("/a type b on /c", Some("xfs"))
        );
        let text = "proc /proc proc rw,nosuid 0 0\n/dev/sdc1 /my\\040disk ext4 rw 0 0\n";
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.file_systems[1].mount, "/my disk");
        let line = b"36 35 98:0 / /mnt ro,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(
            mount(line).map(|mount| mount.more),
            Some(&b"rw,errors=continue"[..])
        );
    }

    #[test]
    fn rubbish() {
        assert_eq!(plain("a\\040b\\"), "a b\\");
        assert_eq!(plain("\\999\\04"), "\\999\\04");
        for text in [
            "",
            "on type (ro)",
            " on / type (ro",
            "1 2 3 4 5 6 - ",
            "a /b c ro 0",
            "\\",
        ] {
            assert!(mount(text.as_bytes()).is_none(), "{text}");
        }
    }
}
