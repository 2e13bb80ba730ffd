//! What a recording keeps of a look at a machine, however large that is.
//!
//! The problem: a machine with 500 CPUs and 500 disks has ten thousand figures, each 120 times in a long look; a recording is read within
//! bounds, and that is beyond them. The choice: every second report of all figures, or every fourth, and so on, and the greatest of
//! each figure in any case. What one report shows was measured together, so reports stay whole. In: a look. Out: the same within the
//! bound, which says what was left out.

use holdup_evidence::host::{Hole, HostLook};
use holdup_evidence::observed::Series;

/// Single values of figures: three objects each of the half million that a recording may have.
pub(crate) const MOST_POINTS: usize = 60_000;

/// Keeps a look within the bound.
pub fn bound_look(look: &mut HostLook) {
    let series = &mut look.observed.series;
    let count = |series: &[Series]| series.iter().map(|one| one.points.len()).sum::<usize>();
    let mut step = 1;
    while count(series) > MOST_POINTS && step < u32::MAX / 2 {
        step *= 2;
        let before = count(series);
        series.iter_mut().for_each(|one| thin(one, step));
        // The last and the greatest of each are left: there is nothing more to take.
        if count(series) == before && before <= 3 * series.len() {
            break;
        }
    }
    if step > 1 {
        look.sight.holes.push(Hole {
            what: "each reading of the machine's counters".to_owned(),
            why: format!(
                "a recording keeps {MOST_POINTS} values of figures: one of {step} of each, and its greatest"
            ),
            fix: "a shorter -d".to_owned(),
        });
    }
}

/// Leaves each `step`th report, the last one, and the greatest value. Number and sum stay those of all.
fn thin(series: &mut Series, step: u32) {
    let last = series.points.last().map(|point| point.report);
    let greatest = series.greatest().map(|point| point.report);
    series.points.retain(|point| {
        point.report % step == 0 || Some(point.report) == last || Some(point.report) == greatest
    });
}

#[cfg(test)]
mod tests {
    use super::{MOST_POINTS, bound_look};
    use holdup_evidence::host::HostLook;
    use holdup_evidence::observed::{Metric, Point, Series};

    fn look(figures: usize, reports: u32) -> HostLook {
        let mut look = HostLook::default();
        look.observed.series = (0..figures)
            .map(|number| Series {
                metric: Metric::DiskUtilPercent,
                of: format!("sd{number}"),
                source: 0,
                points: (0..reports)
                    .map(|report| Point {
                        report,
                        value: if report == 7 { 90.0 } else { 1.0 },
                        ..Point::default()
                    })
                    .collect(),
                count: u64::from(reports),
                sum: f64::from(reports) + 89.0,
            })
            .collect();
        look
    }

    #[test]
    fn a_look_at_an_ordinary_machine_stays_as_it_is() {
        let mut small = look(400, 120);
        let before = small.clone();
        bound_look(&mut small);
        assert_eq!(small, before);
    }

    #[test]
    fn of_a_large_one_reports_stay_whole_and_the_greatest_is_kept() {
        let mut large = look(10_000, 120);
        bound_look(&mut large);
        let points: usize = large.observed.series.iter().map(|one| one.points.len()).sum();
        assert!(points <= MOST_POINTS, "{points}");
        for one in &large.observed.series {
            let reports: Vec<u32> = one.points.iter().map(|point| point.report).collect();
            assert_eq!(reports, [0, 7, 32, 64, 96, 119]);
            assert_eq!(one.greatest().unwrap().value, 90.0);
            assert_eq!((one.count, one.sum), (120, 209.0));
        }
        assert!(
            large.sight.holes[0].why.contains("one of 32"),
            "{:?}",
            large.sight.holes
        );
    }
}
