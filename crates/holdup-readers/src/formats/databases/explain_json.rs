//! `EXPLAIN (FORMAT JSON)` of PostgreSQL, run or not.
//!
//! In: a document, whole or cut, as psql frames it or as a program prints it on one line. Out: what the text form gives: the step that took
//! longest without the steps below it, with what its notes say. Source: `ExplainNode` in `explain.c` of PostgreSQL.

use super::explain::{NAME, NOTES, Reader as Plan, STEPS, Step};
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{holds, number};
use crate::gather::{Out, text_of};

pub(crate) static FORMAT: Format = Format::lines::<Reader>("query-plan-json", Family::Databases, recognise)
    .about("EXPLAIN (FORMAT JSON) of PostgreSQL");

/// Bytes of a line that are looked at: a program prints the whole document on one.
const LINE_BYTES: usize = 4 << 20;

/// Objects within each other: each step of a plan is within two brackets, and the server's own limit of a stack is far below.
const MAX_DEPTH: usize = 4_000;

/// Bytes of a name and of a value.
const MAX_TEXT: usize = 400;

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &str| holds(head, name);
    Sureness::certain_if(has("\"Node Type\":") && (has("\"Total Cost\":") || has("\"Actual Loops\":")))
}

#[derive(Debug, Default)]
struct Reader {
    plan: Plan,
    /// The objects that are open, each with the step that it is.
    objects: Vec<Option<usize>>,
    /// Objects that are open beyond the limit.
    too_deep: usize,
    /// A name whose value follows.
    name: Option<String>,
    /// A string of which it does not show yet whether it is a name.
    string: Option<String>,
    /// The trigger that is being read.
    trigger: String,
    trigger_calls: f64,
}

impl Reader {
    /// Takes the marks and words of a line.
    fn scan(&mut self, text: &str, out: &mut Out<'_>) {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let behind = rest.get(first.len_utf8()..).unwrap_or_default();
            rest = match first {
                '"' => {
                    let (string, after) = string(behind);
                    match self.name.take() {
                        Some(name) => self.pair(&name, &string, out),
                        None => self.string = Some(string),
                    }
                    after
                }
                ':' => {
                    self.name = self.string.take();
                    behind
                }
                '{' => {
                    self.name = None;
                    match self.objects.len() < MAX_DEPTH {
                        true => self.objects.push(None),
                        false => self.too_deep += 1,
                    }
                    behind
                }
                '}' => {
                    match self.too_deep {
                        0 => {
                            self.objects.pop();
                        }
                        _ => self.too_deep -= 1,
                    }
                    behind
                }
                '[' => {
                    self.name = None;
                    behind
                }
                first if first.is_ascii_alphanumeric() || first == '-' => {
                    let end = rest
                        .find(|char: char| !(char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '+')))
                        .unwrap_or(rest.len());
                    let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
                    if let Some(name) = self.name.take() {
                        self.pair(&name, word, out);
                    }
                    after
                }
                _ => behind,
            };
        }
    }

    fn pair(&mut self, name: &str, value: &str, out: &mut Out<'_>) {
        let figure = number(value);
        match name {
            "Node Type" => self.begin(value, out),
            "Execution Time" | "Total Runtime" => self.plan.whole = figure.or(self.plan.whole),
            "Trigger Name" => self.trigger = value.chars().take(NAME).collect(),
            "Calls" => self.trigger_calls = figure.unwrap_or(1.0),
            "Time" if !self.trigger.is_empty() => {
                if let Some(ms) = figure.filter(|_| self.plan.triggers.len() < STEPS) {
                    let trigger = std::mem::take(&mut self.trigger);
                    self.plan
                        .triggers
                        .push((trigger, ms, self.trigger_calls, out.here()));
                }
            }
            "Workers Launched" => {
                let step = self.objects.last().copied().flatten();
                let depth = step.and_then(|at| self.plan.steps.get(at)).map(|step| step.depth);
                if let Some((depth, workers)) = depth.zip(figure) {
                    self.plan.gathers.push((depth, workers + 1.0));
                }
            }
            _ => {
                let step = self.objects.last().copied().flatten();
                if let Some(step) = step.and_then(|at| self.plan.steps.get_mut(at)) {
                    take(step, name, value, figure);
                }
            }
        }
    }

    /// A step begins.
    fn begin(&mut self, node: &str, out: &mut Out<'_>) {
        // A second plan begins where the first has its whole.
        if self.plan.whole.is_some() {
            self.plan.end(out);
        }
        let step = Step {
            depth: self.objects.len() + self.too_deep,
            name: node.chars().take(NAME).collect(),
            quote: out.here(),
            processes: 1.0,
            ..Step::default()
        };
        if !self.plan.push(step) {
            out.account().left_out += 1;
            return;
        }
        let at = self.plan.steps.len().checked_sub(1);
        if let Some(object) = self.objects.last_mut() {
            *object = at;
        }
    }
}

/// A string's text and what stands behind it.
fn string(text: &str) -> (String, &str) {
    let mut escaped = false;
    let mut all = String::new();
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => {
                escaped = false;
                if all.len() < MAX_TEXT {
                    all.push(if char == 'n' { ' ' } else { char });
                }
            }
            '\\' => escaped = true,
            '"' => return (all, text.get(at + 1..).unwrap_or_default()),
            char if all.len() < MAX_TEXT => all.push(char),
            _ => {}
        }
    }
    (all, "")
}

/// Gives a step one of its values.
fn take(step: &mut Step, name: &str, value: &str, figure: Option<f64>) {
    let mut extend = |before: &str| {
        if step.name.len() < NAME {
            step.name.push_str(before);
            step.name.extend(value.chars().take(NAME));
        }
    };
    match name {
        "Relation Name" | "CTE Name" | "Function Name" => return extend(" on "),
        "Index Name" => return extend(" using "),
        "Parallel Aware" if value == "true" => step.name.insert_str(0, "Parallel "),
        "Total Cost" => step.cost = figure,
        "Plan Rows" => step.expected = figure,
        "Actual Total Time" => step.took.get_or_insert_default().0 = figure.unwrap_or(0.0),
        "Actual Rows" => step.took.get_or_insert_default().1 = figure.unwrap_or(0.0),
        "Actual Loops" => step.took.get_or_insert_default().2 = figure.unwrap_or(0.0),
        "Rows Removed by Filter" => step.removed = figure,
        "Filter" => step.filter = value.chars().take(NOTES).collect(),
        _ => {}
    }
    let some = figure.is_some_and(|figure| figure > 0.0);
    let noted = match name {
        "Sort Method" => value.starts_with("external"),
        "Sort Space Used" => step.notes.contains("Sort Method"),
        "Filter" => true,
        "Hash Batches" => figure.is_some_and(|batches| batches > 1.0),
        "Lossy Heap Blocks" | "Heap Fetches" | "I/O Read Time" | "I/O Write Time" | "Disk Usage" => some,
        name => some && name.starts_with("Rows Removed by"),
    };
    if noted && step.notes.len() < NOTES {
        if !step.notes.is_empty() {
            step.notes.push_str(", ");
        }
        let unit = match name {
            "Sort Space Used" | "Disk Usage" => " kB",
            "I/O Read Time" | "I/O Write Time" => " ms",
            _ => "",
        };
        let value: String = value.chars().take(NOTES).collect();
        step.notes.push_str(&format!("{name}: {value}{unit}"));
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        // psql ends each line of a value but the last with a sign.
        let text = text.trim().trim_end_matches('+').trim();
        if text.is_empty() {
            return Understood::Ignorable;
        }
        let is_part = text.starts_with(['"', '{', '}', '[', ']']);
        if !is_part && self.objects.is_empty() {
            let frame = text == "QUERY PLAN" || text.starts_with("---") || text.ends_with("row)");
            return match frame {
                true => Understood::Ignorable,
                false => Understood::No,
            };
        }
        self.scan(text, out);
        Understood::Evidence
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.plan.end(out);
        *self = Reader::default();
    }
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    const PLAN: &str = r#"                       QUERY PLAN
---------------------------------------------------------
 [                                                      +
   {                                                    +
     "Plan": {                                          +
       "Node Type": "Nested Loop",                      +
       "Parallel Aware": false,                         +
       "Join Type": "Inner",                            +
       "Total Cost": 800.00,                            +
       "Plan Rows": 5,                                  +
       "Actual Total Time": 890.000,                    +
       "Actual Rows": 5,                                +
       "Actual Loops": 1,                               +
       "Plans": [                                       +
         {                                              +
           "Node Type": "Seq Scan",                     +
           "Relation Name": "item",                     +
           "Total Cost": 2.00,                          +
           "Plan Rows": 1000,                           +
           "Actual Total Time": 10.000,                 +
           "Actual Rows": 1000,                         +
           "Actual Loops": 1                            +
         },                                             +
         {                                              +
           "Node Type": "Seq Scan",                     +
           "Relation Name": "orders",                   +
           "Total Cost": 3.00,                          +
           "Plan Rows": 100,                            +
           "Actual Total Time": 0.800,                  +
           "Actual Rows": 1,                            +
           "Actual Loops": 1000,                        +
           "Filter": "(note = '}{\"'::text)",           +
           "Rows Removed by Filter": 9000               +
         }                                              +
       ]                                                +
     },                                                 +
     "Planning Time": 0.200,                            +
     "Triggers": [                                      +
     ],                                                 +
     "Execution Time": 902.500                          +
   }                                                    +
 ]
(1 row)
"#;

    fn said(text: &str) -> Vec<String> {
        let reading = read_text("plan", text.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "query-plan-json", "{text}");
        let statements = reading.observed.statements.into_iter();
        statements.map(|one| one.text).collect()
    }

    #[test]
    fn the_step_that_took_longest_itself() {
        let all = said(PLAN);
        assert_eq!(
            all,
            [
                "Seq Scan on orders takes 800 ms of its own, 89 % of the query's 903 ms, 1000 loops, 1 rows a loop where 100 were expected; \
                 Filter: (note = '}{\"'::text), Rows Removed by Filter: 9000; a full scan: it reads all of orders, throws 9000 rows away and \
                 keeps 1 in each loop, so an index on note is missing or not used"
            ]
        );
        let line: String = PLAN
            .lines()
            .skip(2)
            .map(|line| line.trim().trim_end_matches('+').trim())
            .collect();
        let line = line.replace("(1 row)", "");
        assert_eq!(said(&line), all);
    }

    #[test]
    fn a_sort_on_disk_and_a_plan_that_is_cut() {
        let cut: String = PLAN.lines().take(22).map(|line| format!("{line}\n")).collect();
        let cut = cut.replace(
            "\"Join Type\": \"Inner\",",
            "\"Sort Method\": \"external merge\", \"Sort Space Used\": 51200,",
        );
        assert!(
            said(&cut)[0].starts_with("Nested Loop takes 880 ms of its own, 99 % of the query's 890 ms; Sort Method: external merge, \
                Sort Space Used: 51200 kB"),
            "{:?}",
            said(&cut)
        );
    }

    #[test]
    fn rubbish_is_no_plan() {
        let deep = format!(
            "{{\"Node Type\": \"a\", \"Total Cost\": 1, {}",
            "{\"x\": [".repeat(9_000)
        );
        for text in [
            deep.as_str(),
            "\"Node Type\": \"Total Cost\": 1e999}}}}]]]",
            "{\"Node Type\": \"a\\",
            "{\"Node Type\": \"\", \"Total Cost\": nan, \"Actual Loops\": -1}",
        ] {
            let _ = read_text("plan", text.as_bytes());
        }
    }
}
