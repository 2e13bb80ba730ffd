//! `lsblk -P`: block devices as `KEY="value"` pairs, a device a line.
//!
//! In: lines that begin with a key that devices have. Out: devices. What is not printed is not known: without `FSTYPE` nobody
//! can say what is on a device.

use crate::format::{Family, Format, LineReader, Shape, Sureness, Understood};
use crate::gather::Out;
use crate::sizes;
use holdup_evidence::observed::SeenDevice;
use std::borrow::Cow;

pub(crate) static FORMAT: Format = Format::new(
    "lsblk-pairs",
    Family::Host,
    |head| match head.split(|byte| *byte == b'\n').find_map(device) {
        Some(_) => Sureness::Certain,
        None => Sureness::No,
    },
    Shape::Lines(|| Box::new(Reader)),
)
.about("lsblk -P")
.openings(&["NAME=\"", "KNAME=\""]);

struct Reader;

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        if line.trim_ascii().is_empty() {
            return Understood::Ignorable;
        }
        match device(line) {
            Some(device) => {
                out.device(SeenDevice {
                    quote: out.here(),
                    ..device
                });
                Understood::Evidence
            }
            None => Understood::No,
        }
    }
}

fn device(line: &[u8]) -> Option<SeenDevice> {
    let mut device = SeenDevice::default();
    let mut rest = line.trim_ascii();
    while !rest.is_empty() {
        let equals = memchr::memmem::find(rest, b"=\"")?;
        let key = rest.get(..equals)?;
        let is_key = |byte: &u8| byte.is_ascii_uppercase() || b":-_%".contains(byte) || byte.is_ascii_digit();
        if key.is_empty() || !key.iter().all(is_key) {
            return None;
        }
        let behind = rest.get(equals + 2..)?;
        let quote = memchr::memchr(b'"', behind)?;
        let value = unescaped(behind.get(..quote)?);
        rest = behind.get(quote + 1..)?.trim_ascii_start();
        match key {
            b"NAME" => device.name = value,
            b"KNAME" if device.name.is_empty() => device.name = value,
            b"TYPE" => device.kind = value,
            b"SIZE" => {
                // With `-b` without a unit.
                let bytes = crate::numbers::whole(value.as_bytes());
                device.size = bytes.or_else(|| sizes::with_unit(value.as_bytes()).map(|size| size as u64));
            }
            b"FSTYPE" => device.file_system = Some(value),
            b"MOUNTPOINT" | b"MOUNTPOINTS" => {
                // Of several, the first.
                let first = value.split('\n').next().unwrap_or_default();
                device.mount = Some(first.to_owned());
            }
            b"PKNAME" if !value.is_empty() => device.parent = Some(value),
            _ => {}
        }
    }
    (!device.name.is_empty()).then_some(device)
}

/// `/mnt/my\x20disk` with its characters.
fn unescaped(value: &[u8]) -> String {
    let mut bytes: Cow<'_, [u8]> = Cow::Borrowed(value);
    if memchr::memmem::find(value, b"\\x").is_some() {
        let mut plain = Vec::with_capacity(value.len());
        let mut rest = value;
        while let Some((first, behind)) = rest.split_first() {
            let code = rest.strip_prefix(b"\\x").and_then(|code| code.get(..2));
            let code = code.and_then(|code| std::str::from_utf8(code).ok());
            match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
                Some(code) => {
                    plain.push(code);
                    rest = rest.get(4..).unwrap_or_default();
                }
                None => {
                    plain.push(*first);
                    rest = behind;
                }
            }
        }
        bytes = Cow::Owned(plain);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    #[test]
    fn pairs_are_devices_and_rubbish_is_counted() {
        let text = "NAME=\"vda\" MAJ:MIN=\"254:0\" SIZE=\"1.5G\" TYPE=\"disk\" FSTYPE=\"ext4\" MOUNTPOINTS=\"/mnt/my\\x20disk\\x0a/srv\"
NAME=\"vdb1\" SIZE=\"1048576\" TYPE=\"part\" FSTYPE=\"swap\" MOUNTPOINT=\"\" PKNAME=\"vdb\"
NAME=\"vdc
NAME=\"\"
x=\"y\"
NAME=\"vdd\" \\x
\0\n";
        let reading = read_text("l", text.as_bytes());
        let [first, second] = reading.observed.devices.as_slice() else {
            panic!("{:?}", reading.observed.devices)
        };
        assert_eq!((first.name.as_str(), first.size), ("vda", Some(1_610_612_736)));
        assert_eq!(first.mount.as_deref(), Some("/mnt/my disk"));
        assert_eq!(
            (
                second.file_system.as_deref(),
                second.mount.as_deref(),
                second.parent.as_deref()
            ),
            (Some("swap"), Some(""), Some("vdb"))
        );
        assert_eq!(second.size, Some(1_048_576));
        assert_eq!(reading.accounts[0].not_understood, 4, "{:?}", reading.accounts[0]);
    }
}
