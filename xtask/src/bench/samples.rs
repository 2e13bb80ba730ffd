//! Figures from samples.

/// The middle of some samples; `None` of none.
pub(super) fn median(samples: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = samples.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The least and the greatest; `None` of none.
pub(super) fn range(samples: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    samples.into_iter().fold(None, |range, sample| match range {
        None => Some((sample, sample)),
        Some((least, greatest)) => Some((sample.min(least), sample.max(greatest))),
    })
}

#[cfg(test)]
mod tests {
    use super::{median, range};

    #[test]
    fn medians_and_ranges() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(range([]), None);
        assert_eq!(range([2.0, 1.0, 3.0]), Some((1.0, 3.0)));
    }
}
