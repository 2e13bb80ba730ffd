//! Progress that stands still: `Received 49819118 of 54013422 (92.2%)`, the same in each line while the rate falls.
//!
//! In: lines of a text that no reader knows. Out: what was done so far, and over how many lines it has not grown, where it is the last that
//! is told and not all. What grew again after a while was slow at most.

use super::shape;
use super::tables::Fact;
use crate::find::find;
use crate::numbers::decimal;
use holdup_evidence::observed::StatementKind;

/// Words of lines that tell how far something has come.
const WORDS: [&[u8]; 17] = [
    b"eceived", b"ownload", b"pload", b"rogress", b"omplete", b"done", b"rocess", b"ransfer", b"estor",
    b"ecover", b"opied", b"opying", b"ync", b"igrat", b"ebuil", b"riting", b"oading",
];

/// Lines in a row with the same figure from which something stands still.
const MIN_LINES: u64 = 5;

/// Bytes of a line that are looked at, and of a figure.
const LINE: usize = 300;
const FIGURE: usize = 24;

/// Follows the lines of one artefact.
#[derive(Debug, Default)]
pub(super) struct Progress {
    last: Option<Run>,
    /// Of how many steps the last one was, and the smallest that was told of so many.
    least: Option<(u64, u64)>,
}

/// What a line tells.
struct Figure<'a> {
    /// How much is done, as the line has it, and whether that is all.
    done: &'a [u8],
    whole: bool,
    /// The end of the words that are compared.
    end: usize,
    /// The same of steps, as numbers: done, and all.
    steps: Option<(u64, u64)>,
}

/// Lines that tell the same figure.
#[derive(Debug)]
struct Run {
    /// The words of the lines.
    of: u64,
    done: Vec<u8>,
    /// Whether it is all, or nothing can be said about that.
    whole: bool,
    /// Whether it came here from less, where that has to be seen.
    grew: bool,
    lines: u64,
    first: u64,
    text: String,
}

impl Progress {
    /// Takes a line; whether it tells how far something has come.
    pub(super) fn line(&mut self, line: &[u8], number: u64) -> bool {
        let line = line.get(..LINE).unwrap_or(line);
        let Some(Figure {
            done,
            whole,
            end,
            steps,
        }) = done(line)
        else {
            return false;
        };
        let grew = steps.is_none_or(|steps| self.grew(steps));
        // The bar behind the figure moves before that does.
        let bar = line.get(end + 1..).and_then(|rest| rest.strip_prefix(b"|"));
        let bar = bar.and_then(|rest| rest.split(|byte| *byte == b'|').next());
        let all = steps.map_or(0, |(_, all)| all);
        let of = shape::shape(
            line.get(..end).unwrap_or(line),
            bar.map_or(all, |bar| bar.len() as u64),
        );
        match self.last.as_mut().filter(|run| run.of == of && run.done == done) {
            Some(run) => run.lines += 1,
            None => {
                self.last = Some(Run {
                    of,
                    done: done.to_vec(),
                    whole,
                    grew,
                    lines: 1,
                    first: number,
                    text: shape::sentence(line, 0),
                });
            }
        }
        true
    }

    /// Whether fewer of so many steps were told before: figures in brackets alone are no steps, for a name of something has them, too.
    fn grew(&mut self, (done, all): (u64, u64)) -> bool {
        let known = self.least.filter(|(of, _)| *of == all);
        let least = known.map_or(done, |(_, least)| least.min(done));
        self.least = Some((all, least));
        least < done
    }

    /// What stands still at the end.
    pub(super) fn end(&mut self) -> Option<Fact> {
        let run = self
            .last
            .take()
            .filter(|run| run.lines >= MIN_LINES && !run.whole && run.grew)?;
        Some(Fact {
            kind: StatementKind::Stalled,
            share: None,
            ns: None,
            line: run.first,
            text: format!(
                "no progress over the last {} lines, stuck at: {}",
                run.lines, run.text
            ),
        })
    }
}

/// How much a line says is done.
fn done(line: &[u8]) -> Option<Figure<'_>> {
    if let Some(steps) = steps(line) {
        return Some(steps);
    }
    // Nearly every line of a log ends the look here.
    let percent = memchr::memchr(b'%', line)?;
    let several = line.get(percent + 1..).is_some_and(|rest| rest.contains(&b'%'));
    let bar = line.get(percent + 1) == Some(&b'|');
    if several || !bar && !WORDS.iter().any(|word| find(line, word).is_some()) {
        return None;
    }
    let before = line.get(..percent)?.trim_ascii_end();
    let part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let digits = before.iter().rev().take(FIGURE).take_while(part).count();
    let share = before.get(before.len().checked_sub(digits)?..)?;
    let whole = decimal(share)? >= 100.0;
    let of_all = find(line, b" of ").map(|at| line.get(..at).unwrap_or_default());
    let figure = of_all.and_then(|before| {
        let digits = before.iter().rev().take(FIGURE).take_while(part).count();
        before
            .get(before.len() - digits..)
            .filter(|figure| !figure.is_empty())
    });
    Some(Figure {
        done: figure.unwrap_or(share),
        whole,
        end: percent,
        steps: None,
    })
}

/// Steps of a build before what it does: `[45,734 / 45,736] checking cached actions`.
fn steps(line: &[u8]) -> Option<Figure<'_>> {
    let inside = line.strip_prefix(b"[")?;
    let end = memchr::memchr(b']', inside.get(..2 * FIGURE).unwrap_or(inside))?;
    let (done, all) = inside
        .get(..end)?
        .split_at_checked(memchr::memchr(b'/', inside)?)?;
    let (done, all) = (done.trim_ascii(), all.get(1..)?.trim_ascii());
    let count = |text: &[u8]| {
        let digits = text.iter().filter(|byte| **byte != b',');
        let number = digits.map(|byte| byte.is_ascii_digit().then(|| u64::from(byte - b'0')));
        number
            .reduce(|sum, digit| sum?.checked_mul(10)?.checked_add(digit?))
            .flatten()
    };
    let (now, whole) = (count(done)?, count(all)?);
    // What it does stands behind, and is another thing where that is.
    (now > 0).then_some(Figure {
        done,
        whole: now >= whole,
        end: line.len(),
        steps: Some((now, whole)),
    })
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    fn stuck(text: &str) -> Vec<String> {
        let all = read_text("t", text.as_bytes()).observed.statements;
        let stalled = all.into_iter().filter(|one| one.kind == StatementKind::Stalled);
        stalled.map(|one| one.text).collect()
    }

    #[test]
    fn what_does_not_grow_any_more_is_stuck() {
        let mut text = String::from("Received 0 of 54013422 (0.0%), 0.0 MBs/sec\n");
        for rate in 3..12 {
            text.push_str(&format!(
                "Received 49819118 of 54013422 (92.2%), {}.4 MBs/sec\n",
                20 - rate
            ));
        }
        assert!(
            stuck(&text)[0].contains("49819118 of 54013422"),
            "{:?}",
            stuck(&text)
        );
        let text: String = (0..9)
            .map(|second| format!("[00:0{second}] restoring volume: 41% at 0{second}s\n"))
            .collect();
        assert!(stuck(&text)[0].contains("41%"), "{:?}", stuck(&text));
    }

    #[test]
    fn a_bar_that_moves_is_none_that_stands_still() {
        let bar = |parts: usize| format!(" 35%|{}{}| 1.2G\n", "█".repeat(parts), " ".repeat(20 - parts));
        let stands: String = (0..9).map(|_| bar(7)).collect();
        assert!(stuck(&stands)[0].contains("35%"), "{:?}", stuck(&stands));
        let moves: String = (7..16).map(bar).collect();
        assert_eq!(stuck(&moves), Vec::<String>::new());
    }

    #[test]
    fn steps_of_a_build_that_do_not_grow() {
        let text = format!(
            "[45,720 / 45,736] linking a; 7s\n{}",
            "[45,734 / 45,736] checking cached actions\n".repeat(9)
        );
        assert!(stuck(&text)[0].contains("45,734 / 45,736"), "{:?}", stuck(&text));
        let ninja: String = (1..9).map(|step| format!("[{step}/9] CC a{step}.o\n")).collect();
        assert_eq!(stuck(&ninja), Vec::<String>::new());
        assert_eq!(stuck(&"[9/9] Linking\n".repeat(9)), Vec::<String>::new());
        assert_eq!(stuck(&"[0/9] Configuring\n".repeat(9)), Vec::<String>::new());
        assert_eq!(
            stuck(&"[2026/03/03] 9 requests served\n".repeat(9)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn figures_in_brackets_that_are_no_steps_of_a_build() {
        let same = "[1/4] heartbeat ok\n".repeat(9);
        assert_eq!(stuck(&same), Vec::<String>::new());
        let other = "[2/9] heartbeat ok\n".to_owned() + &"[3/4] heartbeat ok\n".repeat(9);
        assert_eq!(stuck(&other), Vec::<String>::new());
        // Each stage of a build of an image has steps of its own.
        let does = ["FROM a", "RUN make", "COPY b", "RUN test", "ENV c", "CMD d"];
        let stage = |stage: u32| -> String {
            let steps = does.iter().zip(1..);
            steps
                .map(|(does, step)| format!("[{stage}/3] STEP {step}/6: {does}\n"))
                .collect()
        };
        assert_eq!(stuck(&(stage(1) + &stage(2))), Vec::<String>::new());
    }

    #[test]
    fn what_grows_or_is_done_is_not() {
        let grows: String = (0..9)
            .map(|part| format!("downloaded {part}1% of it\n"))
            .collect();
        assert_eq!(stuck(&grows), Vec::<String>::new());
        let slow = format!("{}downloading: 42%\n", "downloading: 41%\n".repeat(9));
        assert_eq!(stuck(&slow), Vec::<String>::new());
        assert_eq!(stuck(&"sync complete: 100%\n".repeat(9)), Vec::<String>::new());
        assert_eq!(stuck(&"disk usage 41%\n".repeat(9)), Vec::<String>::new());
    }
}
