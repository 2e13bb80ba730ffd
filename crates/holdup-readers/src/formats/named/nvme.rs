//! `nvme smart-log`: the health of an NVMe drive.
//!
//! Out: its critical warnings, its spare and worn part, its errors. Source of the names and bits: NVM Express Base Specification,
//! "SMART / Health Information".

use super::{Names, Reader, has};
use crate::format::{Family, Format, Shape};
use holdup_evidence::observed::{Statement, StatementKind};

pub(crate) static FORMAT: Format = Format::new(
    "nvme-smart-log",
    Family::Host,
    |head| has(head, NAMES, 3),
    Shape::Lines(|| Reader::once("critical_warning", judge)),
)
.about("nvme smart-log")
.openings(&["Smart Log for NVME device"]);

const NAMES: &[&str] = &[
    "critical_warning",
    "available_spare",
    "available_spare_threshold",
    "percentage_used",
    "media_errors",
    "num_err_log_entries",
];

/// What the bits of the critical warning say, lowest first.
const WARNINGS: [&str; 6] = [
    "its spare is below the threshold",
    "it is too hot or too cold",
    "its reliability is degraded",
    "it can only be read",
    "its backup of memory failed",
    "its persistent memory is unreliable",
];

/// The part of its life, in per cent, from which a drive is worn out.
const WORN: f64 = 100.0;

fn judge(names: &Names) -> Vec<Statement> {
    let device = names.all.iter().find_map(|(name, value, _)| {
        let is_heading = name.starts_with("Smart Log for NVME device");
        is_heading.then(|| value.split_whitespace().next().unwrap_or_default().to_owned())
    });
    let device = device.unwrap_or_else(|| "the drive".to_owned());
    let of = |name| {
        let value = names.text(name).split([' ', '%']).next().unwrap_or_default();
        let hexadecimal = value
            .strip_prefix("0x")
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        hexadecimal
            .map(f64::from)
            .or_else(|| crate::numbers::decimal(value.as_bytes()))
    };
    let warning = of("critical_warning").unwrap_or(0.0) as u32;
    let (spare, threshold) = (of("available_spare"), of("available_spare_threshold"));
    let (worn, errors) = (of("percentage_used"), of("media_errors"));
    let mut bad: Vec<String> = Vec::new();
    let bits = WARNINGS.iter().enumerate();
    bad.extend(
        bits.filter(|(bit, _)| warning & (1 << bit) != 0)
            .map(|(_, says)| (*says).to_owned()),
    );
    if let Some((spare, threshold)) = spare
        .zip(threshold)
        .filter(|(spare, threshold)| spare < threshold)
    {
        bad.push(format!(
            "{spare:.0} % of its spare is left (at least {threshold:.0} %)"
        ));
    }
    if let Some(worn) = worn.filter(|worn| *worn >= WORN) {
        bad.push(format!("{worn:.0} % of its life is used"));
    }
    if let Some(errors) = errors.filter(|errors| *errors > 0.0) {
        bad.push(format!("{errors:.0} media errors"));
    }
    let kind = match bad.is_empty() {
        false if warning != 0 => StatementKind::Failed,
        false => StatementKind::Warned,
        true => StatementKind::WithinNorm,
    };
    let text = match bad.is_empty() {
        true => format!(
            "{device} has no critical warning and no media errors; {:.0} % of its life is used (from {WORN:.0} % on it is worn out)",
            worn.unwrap_or(0.0)
        ),
        false => format!(
            "{device} is unhealthy (critical warning {}): {}",
            names.text("critical_warning"),
            bad.join(", ")
        ),
    };
    vec![names.say(kind, "critical_warning", text)]
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    #[test]
    fn a_worn_drive_is_told_and_a_whole_one_is_within_its_norm() {
        let text = |warning, spare, used, errors| {
            format!(
                "Smart Log for NVME device:nvme0n1 namespace-id:ffffffff\ncritical_warning : {warning}\ntemperature : 38 C\n\
                 available_spare : {spare}%\navailable_spare_threshold : 10%\npercentage_used : {used}%\nmedia_errors : {errors}\n"
            )
        };
        let reading = read_text("n", text("0x4", 3, 104, 13).as_bytes());
        let one = &reading.observed.statements[0];
        assert_eq!(one.kind, StatementKind::Failed);
        assert_eq!(
            one.text,
            "nvme0n1 is unhealthy (critical warning 0x4): its reliability is degraded, 3 % of its spare is left (at least 10 %), \
             104 % of its life is used, 13 media errors"
        );
        let reading = read_text("n", text("0", 100, 2, 0).as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
    }
}
