//! Tests of the tools of RAID controllers: each with trouble, and one that is well.

use crate::read_text;
use holdup_evidence::observed::{Statement, StatementKind};

fn of(text: &str) -> Vec<Statement> {
    let reading = read_text("r", text.as_bytes());
    assert_eq!(reading.observed.sources[0].format, "raid-controller", "{text}");
    reading.observed.statements
}

#[test]
fn megacli_names_the_volume_and_the_drives() {
    let text = "Virtual Drive: 0 (Target Id: 0)\nName                :system\nRAID Level          : Primary-1, Secondary-0\n\
        State               : Degraded\n\nEnclosure Device ID: 32\nSlot Number: 3\nMedia Error Count: 0\nFirmware state: Failed\n\n\
        Enclosure Device ID: 32\nSlot Number: 4\nMedia Error Count: 812\nPredictive Failure Count: 2\nFirmware state: Online, Spun Up\n";
    let found = of(text);
    assert_eq!(found[0].kind, StatementKind::Stalled);
    assert_eq!(
        found[0].text,
        "virtual drive 0 is Degraded; drive 32:3 is Failed; drive 32:4 is about to fail (Predictive Failure Count 2)"
    );
    assert_eq!(
        found[1].text,
        "drive 32:4 has had most errors of its medium: 812 (Media Error Count)"
    );
}

#[test]
fn storcli_and_ssacli() {
    let text = "DG/VD TYPE  State Access Consist Cache Cac sCC       Size Name\n0/0   RAID1 Dgrd  RW     Yes     RWBD  -   ON  278.875 GB os\n\
        1/1   RAID5 Optl  RW     Yes     RWBD  -   ON    1.089 TB data\n\nEID:Slt DID State DG       Size Intf Med SED PI SeSz Model Sp\n\
        32:0      0 Onln   0 278.875 GB SAS  HDD N   N  512B M1      U\n32:1      1 Rbld   0 278.875 GB SAS  HDD N   N  512B M1      U\n";
    let found = of(text);
    assert_eq!(found[0].text, "volume 0/0 is Dgrd; drive 32:1 is Rbld");
    let text = "   array A (SAS, Unused Space: 0  MB)\n      logicaldrive 1 (279.4 GB, RAID 1, Interim Recovery Mode)\n      \
        physicaldrive 1I:1:1 (port 1I:box 1:bay 1, SAS, 300 GB, OK)\n      physicaldrive 1I:1:2 (port 1I:box 1:bay 2, SAS, 300 GB, Failed)\n";
    let found = of(text);
    assert_eq!(
        found[0].text,
        "logicaldrive 1 is Interim Recovery Mode; physicaldrive 1I:1:2 is Failed"
    );
    let status = "   logicaldrive 1 (600 GB, RAID 1): OK\n   physicaldrive 1I:1:2 (port 1I:box 1:bay 2, 146 GB): Predictive Failure\n";
    let found = of(status);
    assert_eq!(
        (found[0].kind, found[0].text.as_str()),
        (
            StatementKind::Warned,
            "physicaldrive 1I:1:2 is Predictive Failure"
        )
    );
    let well = of(&text
        .replace("Interim Recovery Mode", "OK")
        .replace("Failed", "OK"));
    assert_eq!(well[0].kind, StatementKind::WithinNorm);
    assert_eq!(well.len(), 1);
}
