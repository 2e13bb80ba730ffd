//! Steps that tell how long they took and which part of that was a wait: `Time 9.8 (9.9)  Data 9.6 (9.7)`, `time: 1.24, data_time: 1.10`.
//!
//! In: lines of a text with a length of a whole step and one of its input, as programs that train models print for each step. Out: how much of
//! all steps was the input, where that is most: the step waits for what feeds it, and not for what computes.

use super::Told;
use crate::statements::tables::Fact;
use holdup_evidence::observed::StatementKind;

/// Steps from which it is a habit and no first step, which fills its queues.
const MIN_STEPS: u64 = 5;

/// The part of the steps that is their input from which they wait for it.
const MIN_PART: f64 = 0.5;

/// Names of a whole step, and of the wait for its input within it, in small letters.
const WHOLE: [&str; 7] = [
    "time",
    "batch_time",
    "step_time",
    "iter_time",
    "batch time",
    "step time",
    "iter time",
];
const INPUT: [&str; 10] = [
    "data",
    "data_time",
    "data time",
    "dataload",
    "data_load",
    "dataloader",
    "data_loading",
    "load_time",
    "loader",
    "input_time",
];

/// Units of an amount or a rate, which is no length of time.
const AMOUNTS: [&str; 11] = ["b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "k", "m", "g"];

/// Whether such a unit, or the sign of a part, stands behind a number.
fn is_amount(behind: &str) -> bool {
    let unit = behind.trim_start();
    let end = unit
        .find(|char: char| !char.is_ascii_alphanumeric() && char != '_')
        .unwrap_or(unit.len());
    unit.starts_with('%') || unit.get(..end).is_some_and(|unit| AMOUNTS.contains(&unit))
}

/// Bytes of a name.
const MAX_NAME_BYTES: usize = 16;

/// The longest time of a step, seconds: a day.
const MAX_STEP: f64 = 86_400.0;

/// The steps of one artefact.
#[derive(Debug, Default)]
pub(super) struct Parts {
    steps: u64,
    whole: f64,
    input: f64,
    longest: f64,
    /// The line with the longest wait.
    line: u64,
    lines: Vec<u64>,
}

/// A number with the name before it: `Time 0.154`, `data_time: 0.5`, `Data  67.544`.
fn value(lower: &str, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|name| {
        lower.match_indices(name).find_map(|(at, _)| {
            let word = |char: char| char.is_ascii_alphanumeric() || char == '_';
            let before = lower.get(..at)?.chars().next_back();
            let behind = lower.get(at + name.len()..)?;
            if before.is_some_and(word) || !behind.starts_with([' ', '\t', ':', '=']) {
                return None;
            }
            let rest = behind.trim_start_matches([' ', '\t', ':', '=']);
            let end = rest
                .find(|char: char| !char.is_ascii_digit() && char != '.')
                .unwrap_or(rest.len());
            let (number, behind) = rest.split_at_checked(end)?;
            // A time of day or a date is no length.
            let is_length = number.contains('.')
                && !behind.starts_with([':', '-', '/'])
                && !is_amount(behind)
                && name.len() <= MAX_NAME_BYTES;
            let value: f64 = number.parse().ok().filter(|_| is_length)?;
            (0.0..MAX_STEP).contains(&value).then_some(value)
        })
    })
}

impl Parts {
    /// Takes a line that has a word for an input.
    pub(super) fn line(&mut self, text: &str, number: u64) {
        let lower = text.to_ascii_lowercase();
        let (Some(input), Some(whole)) = (value(&lower, &INPUT), value(&lower, &WHOLE)) else {
            return;
        };
        // The input is a part of the step, or it is something else.
        if input > whole || whole <= 0.0 {
            return;
        }
        self.steps += 1;
        self.whole += whole;
        self.input += input;
        if input > self.longest {
            self.longest = input;
            self.line = number;
        }
        if self.lines.len() < super::MAX_TOLD {
            self.lines.push(number);
        }
    }

    /// What the steps say together.
    pub(super) fn end(&mut self, told: &mut Told) -> Option<Fact> {
        let all = std::mem::take(self);
        let part = all.input / all.whole;
        if all.steps < MIN_STEPS || part < MIN_PART || !part.is_finite() {
            return None;
        }
        for line in &all.lines {
            told.add(*line);
        }
        Some(Fact {
            kind: StatementKind::Stalled,
            share: Some(part.min(1.0)),
            ns: None,
            line: all.line,
            text: format!(
                "the steps wait for their input data: {:.2} of {:.2} s of {} steps ({:.0} %) is data loading, in one step {:.2} s; what \
                 computes (GPU) is idle meanwhile: the disk, or the workers that load and prepare the data, are too slow",
                all.input,
                all.whole,
                all.steps,
                part * 100.0,
                all.longest
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn stalled(text: &str) -> Vec<String> {
        let all = read_text("t", text.as_bytes()).observed.statements;
        let stalled = all.into_iter().filter(|one| one.kind == StatementKind::Stalled);
        stalled.map(|one| one.text).collect()
    }

    #[test]
    fn steps_that_wait_for_their_data() {
        let steps: String = (0..8)
            .map(|step| {
                format!("Epoch: [0][{step}/900]\tTime 4.154 (8.010)\tData 4.001 (7.720)\tLoss 6.9 (6.9)\n")
            })
            .collect();
        let told = stalled(&steps);
        assert!(told[0].contains("32.01 of 33.23 s of 8 steps (96 %)"), "{told:?}");
        let other: String = (0..8)
            .map(|step| format!("iter {step} loss: 0.5, time: 1.250, data_time: 1.001, memory: 900\n"))
            .collect();
        assert!(stalled(&other)[0].contains("(80 %)"), "{:?}", stalled(&other));
    }

    #[test]
    fn steps_that_compute_and_a_first_one_that_fills_its_queues_are_well() {
        let well: String = (0..8)
            .map(|step| format!("Epoch: [0][{step}/900]\tTime 0.154 (0.2)\tData 0.001 (0.0)\tLoss 6.9\n"))
            .collect();
        assert_eq!(stalled(&well), Vec::<String>::new());
        let few = "Epoch: [0][0/900]\tTime 9.154 (9.2)\tData 9.001 (9.0)\n".repeat(2);
        assert_eq!(stalled(&few), Vec::<String>::new());
        for unit in [" MB", "MB/s", " GiB", "%", "k"] {
            let amount = format!("file 7 time: 12.50 s, data: 9.80{unit}\n").repeat(9);
            assert_eq!(stalled(&amount), Vec::<String>::new(), "{unit}");
        }
        let other = "time 10.5 data 99.5 records\nupdate 12:00:01 data 7.0 time 7:01.5\n".repeat(9);
        assert_eq!(stalled(&other), Vec::<String>::new());
    }
}
