//! Answers that fit: a part of a report, cut to a number of bytes, with ids under which the rest is.
//!
//! In: a report as JSON, and where in it. Out: the same JSON with long lists and texts cut, empty fields left out, and an id for everything
//! that was cut. An id is that of the report, the way to a value in it and, of a list, where to go on: `r1/waits/0/asker/stack@20`.

use serde_json::{Map, Value, json};

/// Bytes of an answer: 4,000 tokens, at three bytes each.
pub(super) const ANSWER: usize = 12_000;

/// Bytes of it for what is no data: its own words, ids, and what the protocol puts around.
const AROUND: usize = 3_500;

/// Bytes of its data.
const DATA: usize = ANSWER - AROUND;

/// Ids that are named; the nearest to the top are.
const IDS: usize = 16;

/// Fields of a report in an answer about all of it, the most important first. Others are named by their ids only.
const FIRST: [&str; 13] = [
    "subject",
    "gate",
    "outcome",
    "comparison",
    "experiment",
    "scaling",
    "findings",
    "account",
    "causes",
    "waits",
    "requests",
    "tasks",
    "coverage",
];

/// Text fields that hold what the person should read whole, if anything.
const SUMMED: [&str; 2] = ["title", "verdict"];

/// How much is kept: tried in turn until it fits.
#[derive(Debug, Clone, Copy)]
struct Keep {
    items: usize,
    text: usize,
    depth: usize,
}

const STEPS: [Keep; 9] = [
    keep(40, 4_000, 12),
    keep(12, 800, 8),
    keep(8, 400, 6),
    keep(5, 300, 5),
    keep(4, 240, 4),
    keep(3, 200, 4),
    keep(2, 160, 3),
    keep(1, 120, 3),
    keep(1, 60, 1),
];

const fn keep(items: usize, text: usize, depth: usize) -> Keep {
    Keep { items, text, depth }
}

/// What is left of a value.
#[derive(Debug)]
pub(super) struct Cut {
    /// The value, cut.
    pub(super) value: Value,
    /// Where the rest is.
    pub(super) more: Vec<More>,
}

/// Something that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct More {
    id: String,
    depth: usize,
    left: usize,
}

impl Cut {
    /// As the part of an answer that programs read.
    pub(super) fn structured(self, id: &str) -> Value {
        let more: Vec<Value> = self
            .more
            .iter()
            .map(|one| json!({"id": one.id, "left": one.left}))
            .collect();
        json!({"id": id, "data": self.value, "more": more})
    }
}

/// A whole report. Each field gets at most half of the room that those before it left.
pub(super) fn summary(report: &Value, id: &str) -> Cut {
    let Some(fields) = report.as_object() else {
        return part(report, id, 0);
    };
    let others = fields
        .iter()
        .filter(|(name, value)| !FIRST.contains(&name.as_str()) && size(value) > 0);
    let mut rest: Vec<More> = others
        .map(|(name, value)| more(format!("{id}/{name}"), 1, value))
        .collect();
    let (mut kept, mut room) = (Map::new(), DATA);
    for name in FIRST {
        let Some(value) = fields.get(name) else { continue };
        let cut = fit(value, &format!("{id}/{name}"), 0, 1, room / 2);
        rest.extend(cut.more);
        if !cut.value.is_null() {
            room = room.saturating_sub(cut.value.to_string().len() + name.len() + 4);
            kept.insert(name.to_owned(), cut.value);
        }
    }
    Cut {
        value: Value::Object(kept),
        more: nearest(rest),
    }
}

/// A part of a report; of a list or a text, from `from` on.
pub(super) fn part(value: &Value, id: &str, from: usize) -> Cut {
    fit(value, id, from, 0, DATA)
}

/// A value cut to so many bytes; `depth`: how far below the top of the answer it stands.
fn fit(value: &Value, id: &str, from: usize, depth: usize, bytes: usize) -> Cut {
    for step in STEPS {
        let mut cutting = Cutting {
            keep: step,
            more: Vec::new(),
        };
        let cut = cutting.cut(value, id, from, depth).unwrap_or(Value::Null);
        if cut.to_string().len() <= bytes {
            return Cut {
                value: cut,
                more: nearest(cutting.more),
            };
        }
    }
    // A very wide object, or no room: it can be asked for by its id, and its fields by their names.
    Cut {
        value: Value::Null,
        more: vec![more(id.to_owned(), depth, value)],
    }
}

/// The ids that are nearest to the top.
fn nearest(mut all: Vec<More>) -> Vec<More> {
    all.sort_by_key(|one| one.depth);
    all.truncate(IDS);
    all
}

struct Cutting {
    keep: Keep,
    more: Vec<More>,
}

impl Cutting {
    /// `None`: nothing to say.
    fn cut(&mut self, value: &Value, id: &str, from: usize, depth: usize) -> Option<Value> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(self.text(text, id, from, depth)),
            Value::Array(items) if items.is_empty() => None,
            Value::Object(fields) if fields.is_empty() => None,
            Value::Array(_) | Value::Object(_) if depth > self.keep.depth => {
                self.more.push(more(id.to_owned(), depth, value));
                None
            }
            Value::Array(items) => Some(self.list(items, id, from, depth)),
            Value::Object(fields) => {
                let cut = fields.iter().filter_map(|(name, value)| {
                    let summed = SUMMED.contains(&name.as_str());
                    let way = format!("{id}/{}", escaped(name));
                    let value = match summed {
                        true => self.with_text(2, |cutting| cutting.cut(value, &way, 0, depth + 1)),
                        false => self.cut(value, &way, 0, depth + 1),
                    };
                    Some((name.clone(), value?))
                });
                Some(Value::Object(cut.collect()))
            }
            other => Some(other.clone()),
        }
    }

    /// With room for texts that are so many times as long.
    fn with_text<T>(&mut self, times: usize, what: impl FnOnce(&mut Cutting) -> T) -> T {
        let before = self.keep;
        self.keep.text *= times;
        let done = what(self);
        self.keep = before;
        done
    }

    fn list(&mut self, items: &[Value], id: &str, from: usize, depth: usize) -> Value {
        let items = items.get(from..).unwrap_or_default();
        let kept: Vec<Value> = items
            .iter()
            .enumerate()
            .take(self.keep.items)
            // An item that is left out would move those behind it: their places are in their ids.
            .map(|(at, item)| {
                let way = format!("{id}/{}", from + at);
                let cut = self.cut(item, &way, 0, depth + 1).unwrap_or(Value::Null);
                match cut {
                    Value::Object(mut fields) if depth == 1 => {
                        fields.insert("id".to_owned(), Value::String(way));
                        Value::Object(fields)
                    }
                    other => other,
                }
            })
            .collect();
        let left = items.len() - kept.len();
        if left > 0 {
            self.more.push(More {
                id: format!("{id}@{}", from + kept.len()),
                depth,
                left,
            });
        }
        Value::Array(kept)
    }

    fn text(&mut self, text: &str, id: &str, from: usize, depth: usize) -> Value {
        let begin = text.ceil_char_boundary(from.min(text.len()));
        let rest = &text[begin..];
        let end = rest.floor_char_boundary(self.keep.text.min(rest.len()));
        if end == rest.len() {
            return Value::String(rest.to_owned());
        }
        self.more.push(More {
            id: format!("{id}@{}", begin + end),
            depth,
            left: rest.len() - end,
        });
        Value::String(format!("{}…", &rest[..end]))
    }
}

fn more(id: String, depth: usize, value: &Value) -> More {
    let left = size(value);
    More { id, depth, left }
}

/// Items, fields or bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::String(text) => text.len(),
        Value::Null => 0,
        _ => 1,
    }
}

/// A name as part of a way: as in a JSON pointer, and the sign before an offset.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1").replace('@', "~2")
}

/// What an id names: the report's id, the names of the way, and the offset.
pub(super) fn way(id: &str) -> Option<(&str, Vec<String>, usize)> {
    let (way, from) = match id.rsplit_once('@') {
        Some((way, from)) => (way, from.parse().ok()?),
        None => (id, 0),
    };
    let mut names = way.split('/');
    let report = names.next()?;
    let names = names.map(|name| name.replace("~2", "@").replace("~1", "/").replace("~0", "~"));
    Some((report, names.collect(), from))
}

/// The value at the end of a way.
pub(super) fn value_at<'a>(report: &'a Value, names: &[String]) -> Option<&'a Value> {
    names.iter().try_fold(report, |value, name| match value {
        Value::Object(fields) => fields.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::{DATA, part, summary, value_at, way};
    use serde_json::{Value, json};

    fn large() -> Value {
        let wait = |at: u64| {
            json!({"cause": "disk.sync", "ns": at, "resource": {"name": "n".repeat(300), "kind": "file"},
            "asker": {"process": "p".repeat(200), "stack": vec![json!({"symbol": "s".repeat(200)}); 60]}, "held_by": null, "holders": []})
        };
        let finding = json!({"rule": "r", "title": "t".repeat(500), "evidence": vec![json!({"text": "e".repeat(900)}); 40]});
        json!({"schema": "x", "subject": {"kind": "run"}, "findings": vec![finding; 50], "waits": (0..200).map(wait).collect::<Vec<_>>(),
               "threads": vec![json!({"pid": 1}); 300], "timeline": {"a/b@c": vec![1; 5_000]}})
    }

    #[test]
    fn every_answer_fits_and_everything_can_be_reached() {
        let report = large();
        let mut open = vec![("r1".to_owned(), summary(&report, "r1"))];
        let mut asked = 0;
        while let Some((id, cut)) = open.pop() {
            assert!(cut.value.to_string().len() <= DATA, "{id}");
            asked += 1;
            if asked > 300 {
                break;
            }
            for more in cut.more {
                let (name, names, from) = way(&more.id).unwrap();
                assert_eq!(name, "r1");
                let value = value_at(&report, &names).unwrap_or_else(|| panic!("{} leads nowhere", more.id));
                open.push((
                    more.id.clone(),
                    part(
                        value,
                        more.id.rsplit_once('@').map_or(&more.id, |(id, _)| id),
                        from,
                    ),
                ));
            }
        }
        assert!(asked > 50);
    }

    #[test]
    fn what_is_small_is_whole_and_what_is_empty_is_left_out() {
        let cut = summary(
            &json!({"subject": {"kind": "run", "exit": null}, "findings": [], "causes": [{"cause": "cpu.user"}]}),
            "r1",
        );
        assert_eq!(
            cut.value,
            json!({"subject": {"kind": "run"}, "causes": [{"cause": "cpu.user", "id": "r1/causes/0"}]})
        );
        assert!(cut.more.is_empty(), "{:?}", cut.more);
    }

    #[test]
    fn a_way_is_read_as_it_was_written() {
        let value = json!({"a/b": [{"c@d": {"~": 7}}]});
        let cut = part(&value, "r1", 0);
        assert_eq!(cut.value["a/b"][0]["id"], "r1/a~1b/0");
        assert_eq!(cut.value["a/b"][0]["c@d"], value["a/b"][0]["c@d"]);
        let (report, names, from) = way("r1/a~1b/0/c~2d/~0@12").unwrap();
        assert_eq!((report, from), ("r1", 12));
        assert_eq!(value_at(&value, &names), Some(&json!(7)));
        for wrong in ["r1/a@b", "r1@-1"] {
            assert_eq!(way(wrong), None, "{wrong}");
        }
        assert_eq!(value_at(&value, &["x".to_owned()]), None);
    }

    #[test]
    fn a_text_goes_on_where_it_was_cut() {
        let value = json!("é".repeat(20_000));
        let cut = part(&value, "r1/t", 0);
        let (_, _, from) = way(&cut.more[0].id).unwrap();
        assert!(
            from > 0
                && part(&value, "r1/t", from)
                    .value
                    .as_str()
                    .is_some_and(|text| text.starts_with('é'))
        );
    }
}
