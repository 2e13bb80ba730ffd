//! The report inside a page: small enough to send, harmless in HTML, and back again.
//!
//! In: a report. Out: JSON in which stacks stand once however many waits share them, and lists of equal records stand as
//! columns; and, from such JSON, the report. A page is anybody's when it comes back: sizes, numbers and depth are bounded.

use super::PageError;
use crate::text::is_unprintable;
use holdup_model::report::Report;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Bytes of data in a page. With the page's own some 100 KB it stays below the 5 MB that mail and chats take.
pub(super) const MOST_BYTES: usize = 4_600_000;

/// Bytes of a page that is read back: what one of ours can have, and room for an editor's blanks.
pub const MOST_READ: usize = 2 * MOST_BYTES;

/// Stacks, frames of all stacks, and records that a page read back may unfold to: some ten times what one of ours has. A few
/// bytes of a hostile page could else stand for gigabytes.
const MOST_FRAMES: usize = 2_000_000;

/// Bytes of text that they come to: a frame has some hundred, and a value takes several times its text in memory.
const MOST_UNFOLDED: usize = 256 << 20;

/// Keys whose lists are kept once.
const SHARED: [&str; 2] = ["stack", "kernel_stack"];

/// Lists that are long and whose records are all alike.
const COLUMNS: [&str; 6] = [
    "/timeline/pieces",
    "/timeline/tasks",
    "/timeline/rest",
    "/comparison/stacks/nodes",
    "/waits",
    "/threads",
];

/// A list of such records in each of one of those: it stands as columns too.
const WITHIN: (&str, &str) = ("/threads", "causes");

/// Bytes of a column's name: each record that it unfolds to has it.
const LONGEST_NAME: usize = 64;

/// Lists that may be cut from their end, least first, how they are called, and by how much longer than another each must be to be cut
/// before it: without its thread a piece has no row.
const CUT: [(&str, &str, usize); 4] = [
    (
        "/timeline/pieces",
        "single waits of the time line, the shortest",
        1,
    ),
    (
        "/timeline/rest",
        "sums of threads' shorter waits on the time line, the smallest",
        2,
    ),
    ("/waits", "waits, the shortest", 1),
    ("/threads", "threads, those at the end of the list", 8),
];

/// What a page holds.
#[derive(Debug)]
pub(super) struct Packed {
    /// The JSON, not yet escaped for HTML.
    pub(super) json: String,
    /// How many of what were left out.
    pub(super) left_out: Vec<(String, u64)>,
}

/// Makes it, within [`MOST_BYTES`].
pub(super) fn pack(report: &Report) -> Packed {
    pack_within(report, MOST_BYTES)
}

fn pack_within(report: &Report, most: usize) -> Packed {
    let mut whole = serde_json::to_value(report).expect("a report is JSON");
    let mut left_out: Vec<(String, u64)> = Vec::new();
    loop {
        let text = escaped(&packed(&whole).to_string());
        if text.len() <= most {
            return Packed { json: text, left_out };
        }
        // The longest of those lists loses a quarter; what is left of none is a page of words alone.
        let longest = CUT
            .iter()
            .filter(|(key, ..)| bytes(&whole, key) > 2)
            .max_by_key(|(key, _, spared)| bytes(&whole, key) / spared);
        let Some((key, words, _)) = longest else {
            return Packed {
                json: escaped("null"),
                left_out: vec![("the report itself, which --json writes".to_owned(), 1)],
            };
        };
        let lost = shorten(&mut whole, key);
        match left_out.iter_mut().find(|(known, _)| known == words) {
            Some((_, count)) => *count += lost,
            None => left_out.push(((*words).to_owned(), lost)),
        }
    }
}

/// About how many bytes a list has, by a few of its items.
fn bytes(whole: &Value, place: &str) -> usize {
    list(whole, place).map_or(0, |list| {
        let parts = list.iter().step_by(list.len() / SAMPLED + 1);
        let (count, sum) = parts.fold((0, 0), |(count, sum), one| {
            (count + 1, sum + one.to_string().len())
        });
        sum * list.len() / std::cmp::max(count, 1)
    })
}

/// Items of a list that tell how large the others are.
const SAMPLED: usize = 64;

fn list<'a>(whole: &'a Value, place: &str) -> Option<&'a Vec<Value>> {
    whole.pointer(place)?.as_array()
}

fn list_mut<'a>(whole: &'a mut Value, place: &str) -> &'a mut [Value] {
    let found = whole.pointer_mut(place).and_then(Value::as_array_mut);
    found.map_or(&mut [], Vec::as_mut_slice)
}

/// What an item of the time line's lists comes to.
fn weight(one: &Value) -> u64 {
    match &one["ns"] {
        Value::Array(parts) => parts.iter().filter_map(Value::as_u64).sum(),
        other => other.as_u64().unwrap_or(0),
    }
}

/// Takes a quarter off a list, the least of it, and mends what refers to that. Returns how many there were.
fn shorten(whole: &mut Value, place: &str) -> u64 {
    let Some(list) = whole.pointer_mut(place).and_then(Value::as_array_mut) else {
        return 0;
    };
    let before = list.len();
    let keep = before * 3 / 4;
    if place.starts_with("/timeline") {
        // They stay in their order.
        let mut weights: Vec<u64> = list.iter().map(weight).collect();
        weights.sort_unstable();
        let least = weights[before - keep - 1];
        list.retain(|one| weight(one) > least);
        return (before - list.len()) as u64;
    }
    list.truncate(keep);
    let gone = |one: &Value| one.as_u64().is_some_and(|at| at as usize >= keep);
    let (holders, field) = match place {
        "/threads" => ("/timeline/tasks", "thread"),
        _ => ("/timeline/pieces", "wait"),
    };
    for one in list_mut(whole, holders) {
        if gone(&one[field]) {
            one[field] = Value::Null;
        }
    }
    if place == "/threads"
        && let Some(rest) = whole.pointer_mut("/timeline/rest").and_then(Value::as_array_mut)
    {
        rest.retain(|one| !gone(&one["thread"]));
    }
    (before - keep) as u64
}

/// `<` and its like would end the element or begin another, two line ends are none in older scripts, and what does not print would be acted upon
/// by who opens the page in an editor.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ if !character.is_ascii() && is_unprintable(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(character),
        }
    }
    out
}

/// Escapes any other value for an element of data.
pub(super) fn text(value: &Value) -> String {
    escaped(&value.to_string())
}

/// Lists that are kept once, and where each is.
#[derive(Default)]
struct Lists {
    items: Vec<Value>,
    item_numbers: HashMap<String, usize>,
    lists: Vec<Vec<usize>>,
    list_numbers: HashMap<Vec<usize>, usize>,
}

impl Lists {
    fn number(&mut self, list: Vec<Value>) -> usize {
        let list: Vec<usize> = list.into_iter().map(|item| self.item(item)).collect();
        *self.list_numbers.entry(list).or_insert_with_key(|list| {
            self.lists.push(list.clone());
            self.lists.len() - 1
        })
    }

    fn item(&mut self, item: Value) -> usize {
        *self.item_numbers.entry(item.to_string()).or_insert_with(|| {
            self.items.push(item);
            self.items.len() - 1
        })
    }
}

fn packed(whole: &Value) -> Value {
    let mut report = whole.clone();
    let mut lists = Lists::default();
    share(&mut report, &mut lists);
    within(&mut report, Value::is_array, columns);
    for key in COLUMNS {
        if let Some(list) = report.pointer_mut(key)
            && let Some(columns) = columns(list)
        {
            *list = columns;
        }
    }
    json!({"report": report, "items": lists.items, "lists": lists.lists})
}

fn share(value: &mut Value, lists: &mut Lists) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| share(item, lists)),
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                match field {
                    Value::Array(list) if SHARED.contains(&key.as_str()) => {
                        *field = lists.number(std::mem::take(list)).into();
                    }
                    _ => share(field, lists),
                }
            }
        }
        _ => {}
    }
}

/// Turns the lists within the records of a list, those that are of this kind and can be turned.
fn within(report: &mut Value, of_kind: fn(&Value) -> bool, turn: fn(&Value) -> Option<Value>) {
    for record in list_mut(report, WITHIN.0) {
        if let Some(list) = record.get_mut(WITHIN.1).filter(|list| of_kind(list))
            && let Some(turned) = turn(list)
        {
            *list = turned;
        }
    }
}

/// A list of records as one list a field; what a record does not have is null. `None` where there are no records.
fn columns(list: &Value) -> Option<Value> {
    let list = list.as_array()?;
    let mut columns: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (at, one) in list.iter().enumerate() {
        for (key, value) in one.as_object()? {
            let column = columns.entry(key).or_default();
            column.resize(at, Value::Null);
            column.push(value.clone());
        }
    }
    columns
        .values_mut()
        .for_each(|column| column.resize(list.len(), Value::Null));
    (!columns.is_empty()).then(|| json!(columns))
}

/// The JSON of the report out of such JSON.
pub(super) fn unpack(json: &str) -> Result<String, PageError> {
    let mut packed: Value =
        serde_json::from_str(json).map_err(|error| PageError::Unreadable(error.to_string()))?;
    if packed.is_null() {
        return Err(PageError::LeftOut);
    }
    let strange = || PageError::Unreadable("its parts do not fit together".to_owned());
    let mut part = |name: &str| packed.get_mut(name).map(Value::take).ok_or_else(strange);
    let (items, lists, mut report) = (part("items")?, part("lists")?, part("report")?);
    let items = items.as_array().ok_or_else(strange)?;
    let lists: Vec<Vec<usize>> = serde_json::from_value(lists).map_err(|_| strange())?;
    for key in COLUMNS {
        if let Some(list) = report.pointer_mut(key)
            && list.is_object()
        {
            *list = records(list).ok_or_else(strange)?;
        }
    }
    within(&mut report, Value::is_object, records);
    let sizes: Vec<usize> = items.iter().map(|item| item.to_string().len()).collect();
    let mut room = Room {
        frames: MOST_FRAMES,
        bytes: MOST_UNFOLDED,
    };
    unshare(&mut report, items, &sizes, &lists, &mut room).ok_or_else(strange)?;
    Ok(report.to_string())
}

fn records(columns: &Value) -> Option<Value> {
    let columns = columns.as_object()?;
    let length = columns.values().next()?.as_array()?.len();
    if columns
        .values()
        .any(|column| column.as_array().map(Vec::len) != Some(length))
        || columns.keys().any(|name| name.len() > LONGEST_NAME)
    {
        return None;
    }
    // As many values as stand in the text: nothing unfolds but the names, which are short.
    let record = |at: usize| -> Value {
        let fields = columns
            .iter()
            .map(|(key, column)| (key.clone(), column[at].clone()));
        Value::Object(fields.filter(|(_, value)| !value.is_null()).collect())
    };
    Some((0..length).map(record).collect::<Vec<Value>>().into())
}

/// What may still be unfolded: a page may be anybody's, and a list of it that is named often is there as often.
struct Room {
    frames: usize,
    /// Of their text.
    bytes: usize,
}

fn unshare(
    value: &mut Value,
    items: &[Value],
    sizes: &[usize],
    lists: &[Vec<usize>],
    room: &mut Room,
) -> Option<()> {
    match value {
        Value::Array(all) => all
            .iter_mut()
            .try_for_each(|one| unshare(one, items, sizes, lists, room)),
        Value::Object(fields) => fields.iter_mut().try_for_each(|(key, field)| {
            if !SHARED.contains(&key.as_str()) || !field.is_u64() {
                return unshare(field, items, sizes, lists, room);
            }
            let list = lists.get(usize::try_from(field.as_u64()?).ok()?)?;
            room.frames = room.frames.checked_sub(list.len())?;
            let size: usize = list.iter().filter_map(|at| sizes.get(*at)).sum();
            room.bytes = room.bytes.checked_sub(size)?;
            let list: Option<Vec<Value>> = list.iter().map(|at| items.get(*at).cloned()).collect();
            *field = list?.into();
            Some(())
        }),
        _ => Some(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, columns, pack_within, records};
    use crate::html::tests::report;
    use crate::html::{PageError, tests};
    use serde_json::json;

    fn unpack(json: &str) -> Result<Report, PageError> {
        tests::read(super::unpack(json))
    }

    #[test]
    fn records_and_columns_are_the_same() {
        let list = json!([{"a": 1}, {"a": 2, "b": "x"}, {"a": 3}]);
        let columns = columns(&list).expect("they are records");
        assert_eq!(columns, json!({"a": [1, 2, 3], "b": [null, "x", null]}));
        assert_eq!(records(&columns), Some(list));
        assert_eq!(super::columns(&json!([])), None);
        assert_eq!(records(&json!({"a": [1], "b": []})), None);
        assert_eq!(records(&json!({"a".repeat(1_000): [1]})), None);
    }

    #[test]
    fn stacks_that_are_shared_stand_once() {
        let mut one = report();
        let wait = one.waits[0].clone();
        let alone = pack_within(&one, usize::MAX).json.len();
        one.waits = vec![wait; 200];
        let all = pack_within(&one, usize::MAX);
        assert_eq!(unpack(&all.json).expect("it was ours").waits, one.waits);
        let frames = all.json.matches("RAND_status").count();
        assert!(frames < 2 * 200 && all.json.len() > alone, "{frames}");
        assert_eq!(all.json.matches("__libc_start_main").count(), 1);
    }

    #[test]
    fn threads_with_their_causes_stand_as_columns_and_come_back() {
        let mut one = report();
        let thread = one.threads[0].clone();
        assert!(thread.causes.len() > 1);
        let alone = pack_within(&one, usize::MAX).json.matches("max_ns").count();
        one.threads = vec![thread; 500];
        one.threads[7].causes.clear();
        let all = pack_within(&one, usize::MAX);
        assert_eq!(unpack(&all.json).expect("it was ours").threads, one.threads);
        assert!(all.json.matches("wall_ns").count() < 10);
        assert!(all.json.matches("max_ns").count() <= alone + 500);
        // They are cut last: a piece without its thread has no row.
        one.waits = vec![one.waits[0].clone(); 60];
        let most = pack_within(&one, usize::MAX).json.len();
        one.waits = vec![one.waits[0].clone(); 100];
        let cut = pack_within(&one, most);
        assert_eq!(cut.left_out.len(), 1);
        assert_eq!(unpack(&cut.json).expect("it was ours").threads.len(), 500);
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_counted() {
        let mut one = report();
        let wait = one.waits[0].clone();
        one.waits = vec![wait; 400];
        let most = pack_within(&one, usize::MAX).json.len() / 3;
        let cut = pack_within(&one, most);
        assert!(cut.json.len() <= most);
        let left = unpack(&cut.json).expect("it was ours").waits.len() as u64;
        assert_eq!(cut.left_out, [("waits, the shortest".to_owned(), 400 - left)]);
        assert!(left > 0);
        let nothing = pack_within(&one, 10);
        assert!(matches!(unpack(&nothing.json), Err(PageError::LeftOut)));
    }

    #[test]
    fn what_is_not_ours_is_an_error_and_never_more_than_it_may_be() {
        let unfolds = json!({"report": {"waits": vec![json!({"stack": 0}); 3_000]}, "items": ["x"],
            "lists": [vec![0; 1_000]]});
        for text in [
            "",
            "{}",
            "null",
            "[]",
            r#"{"report":{"stack":7},"items":[],"lists":[]}"#,
            r#"{"report":{"stack":0},"items":[],"lists":[[3]]}"#,
            r#"{"report":{"timeline":{"pieces":{"a":[1],"b":[]}}},"items":[],"lists":[]}"#,
            &unfolds.to_string(),
        ] {
            assert!(unpack(text).is_err(), "{text:.60}");
        }
        assert!(unpack(&"[".repeat(100_000)).is_err());
    }
}
