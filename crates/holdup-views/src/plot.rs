//! What a plot of throughput against workers shows, for every view that draws one.
//!
//! In: a [`Scaling`]. Out: values relative to one worker, so that subject, control and ideal have one axis, and places on axes that
//! double at each step: then the ideal is a straight line, and two curves that differ by a factor are as far apart anywhere.

use holdup_model::report::Scaling;

/// One number of workers; everything in times of what one worker does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spot {
    pub(crate) workers: u32,
    pub(crate) subject: f64,
    pub(crate) subject_interval: [f64; 2],
    pub(crate) control: f64,
    pub(crate) control_interval: [f64; 2],
    pub(crate) fitted: Option<f64>,
}

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plot {
    pub(crate) spots: Vec<Spot>,
    /// The lowest line of the axis of throughput, as a power of two.
    pub(crate) lowest: i32,
    /// The highest.
    pub(crate) highest: i32,
}

/// Doublings below one worker that are drawn at most: what does less than a sixteenth of one stands at the foot.
const LOWEST: i32 = -4;

/// Doublings above one worker: those of the most workers that there can be.
const HIGHEST: i32 = 12;

impl Plot {
    /// Of fewer than two points there is none, nor where one worker did nothing.
    pub(crate) fn new(scaling: &Scaling) -> Option<Plot> {
        let one = scaling.points.first()?;
        let usable = |rate: f64| rate.is_finite() && rate > 0.0;
        if scaling.points.len() < 2 || !usable(one.throughput) || !usable(one.control) {
            return None;
        }
        let spots: Vec<Spot> = scaling
            .points
            .iter()
            .map(|point| Spot {
                workers: point.workers.max(1),
                subject: point.throughput / one.throughput,
                subject_interval: point.throughput_interval.map(|rate| rate / one.throughput),
                control: point.control / one.control,
                control_interval: point.control_interval.map(|rate| rate / one.control),
                fitted: point.fitted.map(|rate| rate / one.throughput),
            })
            .collect();
        let values = spots.iter().flat_map(|spot| {
            let [a, b] = spot.subject_interval;
            let [c, d] = spot.control_interval;
            [a, b, c, d, spot.subject, spot.control, f64::from(spot.workers)]
        });
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for value in values.filter(|value| usable(*value)).map(f64::log2) {
            low = low.min(value);
            high = high.max(value);
        }
        Some(Plot {
            lowest: (low.floor() as i32).max(LOWEST),
            highest: (high.ceil() as i32).clamp(1, HIGHEST),
            spots,
        })
    }

    /// Where so many workers stand, from 0 (one) to 1 (the most).
    pub(crate) fn across(&self, workers: u32) -> f64 {
        let most = self.spots.last().map_or(2, |spot| spot.workers.max(2));
        f64::from(workers.max(1)).log2() / f64::from(most).log2()
    }

    /// How high so many times stand, from 0 (the foot) to 1 (the head).
    pub(crate) fn up(&self, times: f64) -> f64 {
        let (low, high) = (f64::from(self.lowest), f64::from(self.highest));
        let at = match times {
            times if times.is_finite() && times > 0.0 => times.log2(),
            _ => low,
        };
        ((at - low) / (high - low)).clamp(0.0, 1.0)
    }
}

/// `1/4`, `1`, `16`: a power of two.
pub(crate) fn power(of_two: i32) -> String {
    match of_two {
        0.. => (1_u64 << of_two.min(62)).to_string(),
        _ => format!("1/{}", 1_u64 << of_two.unsigned_abs().min(62)),
    }
}

/// Operations a second with three digits: `64.9k`, `1.02M`, `20.6`.
pub(crate) fn rate(rate: f64) -> String {
    let digits = |value: f64, unit: &str| match value {
        _ if value < 9.995 => format!("{value:.2}{unit}"),
        _ if value < 99.95 => format!("{value:.1}{unit}"),
        _ => format!("{value:.0}{unit}"),
    };
    match rate {
        _ if !rate.is_finite() => "-".to_owned(),
        _ if rate < 999.5 => digits(rate, ""),
        _ if rate < 999_500.0 => digits(rate / 1e3, "k"),
        _ if rate < 999_500_000.0 => digits(rate / 1e6, "M"),
        _ => digits(rate / 1e9, "G"),
    }
}

#[cfg(test)]
mod tests {
    use super::{power, rate};

    #[test]
    fn rates_have_three_digits() {
        for (number, text) in [
            (0.0, "0.00"),
            (20.64, "20.6"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (64_874.0, "64.9k"),
            (1_020_000.0, "1.02M"),
            (2.5e9, "2.50G"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(rate(number), text);
        }
        assert_eq!([-2, 0, 4].map(power), ["1/4", "1", "16"]);
    }
}
