//! The pages of rules and causes, as `holdup explain` prints them.
//!
//! In: nothing. Out: Markdown, by the id of a rule or cause. The texts lie beside the rules; here they become part of the program, apart from
//! everything else, so that an edit of a page builds this crate again and nothing that takes long. The build script leaves out what `explain` does
//! not print: the evidence of examples.

/// The pages of rules, of lines of an area and an id.
macro_rules! rule_pages {
    ($($area:literal $id:literal)*) => {
        pub(crate) const RULES: &[(&str, &str)] = &[$((
            $id,
            include_str!(concat!(env!("OUT_DIR"), "/rules/", $area, "/", $id, ".md")),
        )),*];
    };
}

/// The pages of causes, of lines of an id.
macro_rules! cause_pages {
    ($($id:literal)*) => {
        pub(crate) const CAUSES: &[(&str, &str)] = &[$((
            $id,
            include_str!(concat!(env!("OUT_DIR"), "/causes/", $id, ".md")),
        )),*];
    };
}

mod list;

/// The page of a rule.
#[must_use]
pub fn rule(id: &str) -> Option<&'static str> {
    find(list::RULES, id)
}

/// The page of a cause.
#[must_use]
pub fn cause(id: &str) -> Option<&'static str> {
    find(list::CAUSES, id)
}

/// The lists are sorted by id.
fn find(list: &[(&str, &'static str)], id: &str) -> Option<&'static str> {
    let place = list.binary_search_by_key(&id, |(id, _)| id).ok()?;
    Some(list[place].1)
}

#[cfg(test)]
mod tests {
    use super::{cause, list, rule};

    #[test]
    fn pages_are_found_by_id() {
        for (list, page) in [
            (list::RULES, rule as fn(&str) -> Option<&'static str>),
            (list::CAUSES, cause),
        ] {
            assert!(!list.is_empty() && list.is_sorted());
            for (id, text) in list {
                assert_eq!(page(id), Some(*text));
                assert!(
                    text.starts_with(&format!("# {id}")),
                    "{id}: the page begins with another name"
                );
                assert!(!text.contains("[["), "{id}: evidence is left in it");
                assert_eq!(text.matches("```").count() % 2, 0, "{id}");
            }
            assert_eq!(page("no-such-id"), None);
        }
    }
}
