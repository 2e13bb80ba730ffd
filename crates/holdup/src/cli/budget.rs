//! `--budget`: how much CPU time observing may take.

use clap::Args;

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct BudgetArgs {
    /// CPU time that holdup may use while it observes, as a percentage of one CPU
    ///
    /// Counts the BPF programs, measured on this machine, and the processes of holdup. If the observed processes use more than one CPU, it is
    /// a percentage of their CPU time. Start and report are not part of it; the report states them. Above the limit, holdup leaves out
    /// evidence: single requests, stacks, then repeated waits. Totals of time stay exact. With a duration, attach ends once the CPU time of
    /// the whole duration is used. Default: none; 2% for host and without BPF.
    #[arg(long, value_name = "P%", value_parser = share)]
    pub(crate) budget: Option<f64>,
}

/// Reads `3%` or `0.5%`; the sign may be left out.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    number
        .trim()
        .parse()
        .ok()
        .filter(|percent| (0.1..=100.0).contains(percent))
        .map(|percent: f64| percent / 100.0)
        .ok_or_else(|| "a percentage from 0.1% to 100%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_budget_is_a_percentage() {
        assert_eq!(share("3%"), Ok(0.03));
        assert_eq!(share("0.5"), Ok(0.005));
        for wrong in ["", "%", "0%", "101%", "-1%", "many", "NaN"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
