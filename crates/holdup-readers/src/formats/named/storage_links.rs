//! `iscsiadm -m session -P 1`, and `btrfs device stats`.
//!
//! Out: a session that is not logged in; the device with errors, and which.

use super::{Names, Reader, has};
use crate::find::find;
use crate::format::{Family, Format, Shape, Sureness};
use holdup_evidence::observed::{Statement, StatementKind};

pub(crate) static ISCSI: Format = Format::new(
    "iscsi-session",
    Family::Host,
    |head| {
        has(
            head,
            &["iSCSI Connection State", "iSCSI Session State", "Current Portal"],
            2,
        )
    },
    Shape::Lines(|| Reader::once("Target", session)),
)
.about("iscsiadm's sessions");

pub(crate) static BTRFS: Format = Format::new(
    "btrfs-device-stats",
    Family::Host,
    |head| Sureness::certain_if(find(head, b"].write_io_errs").is_some()),
    Shape::Lines(|| Reader::boxed(devices)),
)
.about("btrfs device stats");

fn session(names: &Names) -> Vec<Statement> {
    let state = names.text("iSCSI Connection State");
    if state.is_empty() {
        return Vec::new();
    }
    let first = |name| names.text(name).split(' ').next().unwrap_or_default().to_owned();
    let (target, portal) = (first("Target"), first("Current Portal"));
    let thing = format!("iSCSI target {target} at {portal}");
    let kind = match state == "LOGGED IN" {
        true => StatementKind::WithinNorm,
        false => StatementKind::Unreachable,
    };
    let session = names.text("iSCSI Session State");
    let text = format!("{thing}: the connection is {state}, the session {session}");
    vec![names.say(kind, "iSCSI Connection State", text)]
}

fn devices(names: &Names) -> Vec<Statement> {
    let mut said: Vec<(String, Vec<String>, String)> = Vec::new();
    let mut whole = 0_u64;
    for (name, value, _) in &names.all {
        let Some((device, counter)) = name.strip_prefix('[').and_then(|rest| rest.split_once("].")) else {
            continue;
        };
        whole += 1;
        if value == "0" || value.is_empty() {
            continue;
        }
        let counted = format!("{counter} {value}");
        match said.iter_mut().find(|(known, _, _)| known == device) {
            Some((_, all, _)) => all.push(counted),
            None => said.push((device.to_owned(), vec![counted], name.clone())),
        }
    }
    if said.is_empty() && whole > 0 {
        let text = "no device of the file system has counted an error".to_owned();
        return vec![names.say(StatementKind::WithinNorm, "", text)];
    }
    said.into_iter()
        .map(|(device, all, name)| {
            let text = format!("{device} has errors: {}", all.join(", "));
            names.say(StatementKind::Failed, &name, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::{Statement, StatementKind};

    fn of(text: &str) -> Vec<Statement> {
        read_text("b", text.as_bytes()).observed.statements
    }

    #[test]
    fn a_session_that_waits_to_be_logged_in() {
        let text = |state| {
            format!(
                "Target: iqn.2001-05.com.example:vol1 (non-flash)\n\tCurrent Portal: 10.10.5.10:3260,1\n\t\tiSCSI Connection State: {state}\n\
                 \t\tiSCSI Session State: FREE\n"
            )
        };
        let found = of(&text("TRANSPORT WAIT"));
        assert_eq!(found[0].kind, StatementKind::Unreachable);
        assert_eq!(
            found[0].text,
            "iSCSI target iqn.2001-05.com.example:vol1 at 10.10.5.10:3260,1: the connection is TRANSPORT WAIT, the session FREE"
        );
        assert_eq!(of(&text("LOGGED IN"))[0].kind, StatementKind::WithinNorm);
    }

    #[test]
    fn a_device_with_errors_is_named_with_all_of_them() {
        let whole = "[/dev/sda1].write_io_errs    0\n[/dev/sda1].read_io_errs     0\n";
        assert_eq!(of(whole)[0].kind, StatementKind::WithinNorm);
        let text = format!("{whole}[/dev/sdb1].write_io_errs    4121\n[/dev/sdb1].read_io_errs   1931\n");
        let found = of(&text);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].text,
            "/dev/sdb1 has errors: write_io_errs 4121, read_io_errs 1931"
        );
    }
}
