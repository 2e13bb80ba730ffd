//! `/dev/kmsg`: when the kernel's random generator was seeded.
//!
//! In: the kernel's log records. Out: the time and text of the line that says so. The text has changed over
//! the years (and the version number does not tell which a kernel has, because the whole generator was
//! back-ported), so every form is looked for.

use crate::root::{Problem, Root, note};
use holdup_evidence::Ns;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The most that is read, bytes: the largest log buffer that `log_buf_len` commonly sets.
const LOG_LIMIT: usize = 16 << 20;
/// The kernel hands out at most 8 KiB a record and refuses smaller buffers.
const RECORD_LIMIT: usize = 8 << 10;
/// Facility of what the kernel itself wrote; a program's write to `/dev/kmsg` can't have it.
const KERNEL_FACILITY: u64 = 0;
const NS_PER_US: u64 = 1_000;

/// Begin of the message, in all its forms: 4.8 on, its variants with "(trusting CPU's manufacturer)", and
/// 3.13 to 4.7.
const SEEDED: [&str; 3] = [
    "random: crng init done",
    "random: crng done",
    "random: nonblocking pool is initialized",
];

/// One record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Since boot.
    pub at: Ns,
    /// The message, on one line.
    pub text: String,
}

/// When the kernel log says that the generator was seeded, and the line itself. `None` when the log can't be
/// read or no longer goes back that far.
pub fn seeded(root: &Root, problems: &mut Vec<Problem>) -> Option<(Ns, String)> {
    let file = root.dev.join("kmsg");
    let log = match read(&file) {
        Ok(log) => log,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            note(problems, &file, None, error.to_string());
            return None;
        }
    };
    records(&log)
        .find(|record| SEEDED.iter().any(|start| record.text.starts_with(start)))
        .map(|record| (record.at, record.text))
}

/// The whole log, a record a line as the kernel hands it out, and no waiting for the next one.
///
/// # Errors
/// When it can't be read.
pub fn text(root: &Root) -> std::io::Result<String> {
    read(&root.dev.join("kmsg"))
}

/// The kernel's own records in the text of the log. What isn't a record (continuation lines, and what a
/// concurrent writer cut) is passed over.
fn records(log: &str) -> impl Iterator<Item = Record> + '_ {
    log.lines().filter_map(|line| {
        let (prefix, text) = line.split_once(';')?;
        let mut fields = prefix.split(',');
        let facility = fields.next()?.parse::<u64>().ok()? >> 3;
        let at_us: u64 = fields.nth(1)?.parse().ok()?;
        (facility == KERNEL_FACILITY).then(|| Record {
            at: at_us.saturating_mul(NS_PER_US),
            text: text.to_owned(),
        })
    })
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut kmsg = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(file)?;
    let mut log = Vec::new();
    let mut record = [0; RECORD_LIMIT];
    while log.len() < LOG_LIMIT {
        match kmsg.read(&mut record) {
            Ok(0) => break,
            Ok(length) => log.extend_from_slice(&record[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // The record was overwritten before it was read; the next read goes on with the oldest left.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&log).into_owned())
}

#[cfg(test)]
mod tests {
    use super::seeded;
    use crate::root::Tree;

    fn seeded_in(log: &str) -> Option<(u64, String)> {
        let tree = Tree::new(&[("dev/kmsg", log)]);
        let mut problems = Vec::new();
        let seeded = seeded(&tree.root, &mut problems);
        assert_eq!(problems, []);
        seeded
    }

    #[test]
    fn every_form_of_the_message_is_known() {
        for text in [
            "random: crng init done",
            "random: crng init done (trusting CPU's manufacturer)",
            "random: crng done (trusting CPU's manufacturer)",
            "random: nonblocking pool is initialized",
        ] {
            let log = format!(
                "6,1,0,-;Linux version 6.1\n5,80,2810345,-;{text}\n SUBSYSTEM=x\n6,81,2900000,-;more\n"
            );
            assert_eq!(seeded_in(&log), Some((2_810_345_000, text.to_owned())));
        }
    }

    #[test]
    fn half_seeded_is_not_seeded() {
        assert_eq!(seeded_in("6,1,2000000,-;random: fast init done\n"), None);
        assert_eq!(
            seeded_in("4,1,2000000,-;random: sshd: uninitialized urandom read (32 bytes read)\n"),
            None
        );
    }

    #[test]
    fn what_a_program_wrote_is_not_believed() {
        assert_eq!(seeded_in("12,1,1000000,-;random: crng init done\n"), None);
    }

    #[test]
    fn a_cut_line_does_not_cost_the_rest() {
        assert_eq!(
            seeded_in("garbage\n6,x,;\n6,2,7,-,caller=T1;random: crng init done\n"),
            Some((7_000, "random: crng init done".to_owned()))
        );
    }

    #[test]
    fn the_log_of_this_machine_is_read_to_its_end() {
        // Whatever it says: the read must return although the device would wait for the next record.
        seeded(&crate::Root::system(), &mut Vec::new());
    }
}
