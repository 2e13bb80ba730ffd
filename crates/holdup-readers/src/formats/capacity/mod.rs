//! How much room pools, file systems and users have left, where that is not `df`'s to tell: a pool that is full slows or stops all that writes to
//! it, a user at a quota alone fails.

pub(super) mod btrfs_usage;
pub(super) mod quota;
pub(super) mod zfs;

/// Bytes of a size as these tools print it: `7.12T`, `2.94GiB`, `0B`, `0`; without a unit it is of `unit` bytes.
fn size(text: &str, unit: f64) -> Option<f64> {
    let end = text
        .find(|char: char| !char.is_ascii_digit() && char != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let number: f64 = number.parse().ok()?;
    let factor = match suffix.trim_end_matches("iB").trim_end_matches('B') {
        "" if suffix.is_empty() => unit,
        "" => 1.0,
        "k" | "K" => 1024.0,
        "M" => 1_048_576.0,
        "G" => 1_073_741_824.0,
        "T" => 1_099_511_627_776.0,
        "P" => 1_125_899_906_842_624.0,
        _ => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_with_and_without_units() {
        assert_eq!(size("2.5G", 1.0), Some(2_684_354_560.0));
        assert_eq!(size("1.00MiB", 1.0), Some(1_048_576.0));
        assert_eq!((size("0B", 1024.0), size("7", 1024.0)), (Some(0.0), Some(7168.0)));
        assert_eq!((size("-", 1.0), size("7x", 1.0)), (None, None));
    }
}
