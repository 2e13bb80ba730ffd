//! Masks every text of a value: of a report, a recording, a list of facts.
//!
//! In: anything that can be written as JSON and read from it. Out: the same with other texts in it. Names of fields are none of its
//! texts. Ids of enums are texts there, too: what would be no value any more is left as it is.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// Masks what is secret in every text of a value.
pub fn mask_value<T: Serialize + DeserializeOwned>(of: &mut T) {
    each_text(of, &|text| crate::mask_text(text).into_owned());
}

/// Does it to every text in a value, to each different one once.
///
/// # Panics
/// When the value can't be written as JSON, or not be read from what was written.
pub fn each_text<T: Serialize + DeserializeOwned>(of: &mut T, clean: &dyn Fn(&str) -> String) {
    // By way of text, which reports and recordings are written as and read from anyway: to and from JSON's values each of their types would
    // be compiled once more.
    let text = serde_json::to_vec(&*of).expect("a report's parts are JSON");
    let value: Value = serde_json::from_slice(&text).expect("it was written as JSON");
    let mut changes = BTreeMap::new();
    let mut seen = HashSet::new();
    texts(&value, &mut |text| {
        if seen.insert(text) {
            let cleaned = clean(text);
            if cleaned != text {
                changes.insert(text.to_owned(), cleaned);
            }
        }
    });
    if changes.is_empty() {
        return;
    }
    let with = |changes: &BTreeMap<String, String>| {
        serde_json::from_slice(changed(&value, changes).to_string().as_bytes())
    };
    *of = with(&changes).unwrap_or_else(|_: serde_json::Error| {
        changes.retain(|text, cleaned| {
            let alone = BTreeMap::from([(text.clone(), cleaned.clone())]);
            with(&alone).is_ok()
        });
        with(&changes).expect("none of what is left is the id of an enum")
    });
}

/// Tells every text in a value, but no key.
fn texts<'a>(value: &'a Value, tell: &mut dyn FnMut(&'a str)) {
    match value {
        Value::String(text) => tell(text),
        Value::Array(list) => list.iter().for_each(|one| texts(one, tell)),
        Value::Object(fields) => fields.values().for_each(|one| texts(one, tell)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The same value with other texts in it.
fn changed(value: &Value, changes: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(changes.get(text).unwrap_or(text).clone()),
        Value::Array(list) => list.iter().map(|one| changed(one, changes)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, one)| (key.clone(), changed(one, changes)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
