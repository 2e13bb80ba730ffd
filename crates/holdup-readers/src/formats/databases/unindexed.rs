//! A step of a plan that reads a whole table and throws nearly all of it away: an index on the columns of its filter is missing.
//!
//! In: a step with the rows that it kept and those that its filter removed. Out: what that comes to. A table that is small, or of which much
//! is wanted, is read as a whole with good reason: then nothing is said.

use super::explain::Step;

/// Rows of a table from which reading them all for a few costs more than an index would.
const MANY_ROWS: f64 = 1_000.0;

/// So many rows are thrown away for each that is kept.
const WASTED: f64 = 20.0;

/// Columns that are named.
const COLUMNS: usize = 4;

/// How steps that read a whole table begin, in plans of PostgreSQL and of MySQL.
const WHOLE: [&str; 3] = ["Seq Scan on ", "Parallel Seq Scan on ", "Table scan on "];

/// What a step throws away, and of which columns an index is missing.
pub(super) fn told(step: &Step) -> Option<String> {
    let table = WHOLE.iter().find_map(|begin| step.name.strip_prefix(begin))?;
    // Of what the query itself has made there is no index: `<temporary>`, `<subquery2>`.
    let table = table
        .split_whitespace()
        .next()
        .filter(|table| !table.starts_with('<'))?;
    let removed = step.removed?;
    let kept = step.kept.or(step.took.map(|(_, rows, _)| rows)).unwrap_or(0.0);
    if !is_wasted(removed, kept) {
        return None;
    }
    let columns = columns(&step.filter);
    let index = match columns.as_slice() {
        [] => "an index for its filter is missing".to_owned(),
        some => format!("an index on {} is missing", some.join(", ")),
    };
    let loops = step.took.map_or(1.0, |(_, _, loops)| loops);
    let each = if loops > 1.0 { " in each loop" } else { "" };
    Some(format!(
        "; a full scan: it reads all of {table}, throws {removed:.0} rows away and keeps {kept:.0}{each}, so {index} or not used"
    ))
}

/// Whether so many rows were thrown away for those that were kept that an index would save the work.
pub(super) fn is_wasted(removed: f64, kept: f64) -> bool {
    removed >= MANY_ROWS && removed >= WASTED * kept.max(1.0)
}

/// In plans of MySQL the filter is a step of its own, right above the one that reads: what it threw away is of that one.
pub(super) fn take_filters(steps: &mut [Step]) {
    for at in 1..steps.len() {
        let (Some(above), Some(below)) = (steps.get(at - 1), steps.get(at)) else {
            return;
        };
        let Some(filter) = above
            .name
            .strip_prefix("Filter: ")
            .filter(|_| above.depth < below.depth)
        else {
            continue;
        };
        let (Some((_, kept, _)), Some((_, read, _))) = (above.took, below.took) else {
            continue;
        };
        let filter = filter.to_owned();
        if let Some(below) = steps.get_mut(at).filter(|below| below.removed.is_none()) {
            below.removed = Some((read - kept).max(0.0));
            below.kept = Some(kept);
            below.filter = filter;
        }
    }
}

/// The columns that a filter compares, as far as they stand before a sign: `((a.shop_id = 7) AND (state > 3))`. What a function makes of a
/// column is no column.
pub(super) fn columns(filter: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    let mut quoted = false;
    for (at, sign) in filter.char_indices() {
        // Text may have any signs: `url = '/?page=7'`.
        quoted ^= sign == '\'';
        if quoted || !matches!(sign, '=' | '<' | '>') {
            continue;
        }
        let before = filter
            .get(..at)
            .unwrap_or_default()
            .trim_end_matches([' ', '!', '<', '>', '=']);
        // `(name)::text = ...`: the type that it is taken as.
        let before = match before.rsplit_once("::") {
            Some((cast, of))
                if of
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b' ') =>
            {
                cast.trim_end_matches(')')
            }
            _ => before,
        };
        let begin = before
            .rfind(|char: char| !char.is_alphanumeric() && !matches!(char, '_' | '.' | '"'))
            .map_or(0, |at| at + 1);
        let name = before.get(begin..).unwrap_or_default();
        let name = name.rsplit('.').next().unwrap_or(name).trim_matches('"');
        let is_name = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
        // `lower(name)::text`.
        let called = before
            .get(..begin)
            .and_then(|before| before.strip_suffix('('))
            .is_some_and(|before| before.ends_with(|last: char| last.is_alphanumeric() || last == '_'));
        if is_name && !called && !found.contains(&name) && found.len() < COLUMNS {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::columns;
    use crate::read_text;

    fn said(rows: &str, removed: &str, step: &str) -> String {
        let text = format!(
            " Limit  (cost=0.00..90.00 rows=1 width=8) (actual time=90.000..90.100 rows={rows} loops=1)\n\
             \x20  ->  {step}  (cost=0.00..80.00 rows=1 width=8) (actual time=0.400..89.800 rows={rows} loops=1)\n\
             \x20        Filter: ((o.shop_id = 7) AND (state > 3))\n\x20        Rows Removed by Filter: {removed}\n\
             \x20Execution Time: 90.500 ms\n"
        );
        read_text("p", text.as_bytes()).observed.statements[0]
            .text
            .clone()
    }

    #[test]
    fn a_scan_that_throws_nearly_all_away_misses_an_index() {
        let told = "a full scan: it reads all of orders, throws 74121 rows away and keeps 0, so an index on shop_id, state is missing";
        let text = said("0", "74121", "Seq Scan on orders o");
        assert!(text.contains(told), "{text}");
        let text = said("2", "74121", "Parallel Seq Scan on orders o");
        assert!(text.contains("throws 74121 rows away and keeps 2"), "{text}");
        let text = said("0", "2000", "Seq Scan on shop.orders");
        assert!(text.contains("reads all of shop.orders"), "{text}");
    }

    #[test]
    fn a_small_table_a_wanted_one_and_an_index_are_well() {
        for (rows, removed, step) in [
            ("0", "120", "Seq Scan on orders o"),
            ("70000", "74121", "Seq Scan on orders o"),
            ("0", "74121", "Index Scan using o_pk on orders o"),
        ] {
            let text = said(rows, removed, step);
            assert!(!text.contains("missing"), "{text}");
        }
    }

    #[test]
    fn a_filter_of_mysql_is_a_step_of_its_own() {
        let text = "-> Filter: (orders.shop_id = 7)  (cost=9 rows=9) (actual time=40..400 rows=3 loops=1)\n    \
            -> Table scan on orders  (cost=9 rows=90000) (actual time=0.1..390 rows=90000 loops=1)\n";
        let text = &read_text("p", text.as_bytes()).observed.statements[0].text;
        assert!(
            text.contains("throws 89997 rows away and keeps 3, so an index on shop_id is missing"),
            "{text}"
        );
    }

    #[test]
    fn what_a_query_made_has_no_index() {
        let text = "-> Filter: (t.total > 100)  (cost=9 rows=9) (actual time=40..400 rows=3 loops=1)\n    \
            -> Table scan on <temporary>  (cost=9 rows=90000) (actual time=0.1..390 rows=90000 loops=1)\n";
        let text = &read_text("p", text.as_bytes()).observed.statements[0].text;
        assert!(!text.contains("missing") && !text.contains("full scan"), "{text}");
    }

    #[test]
    fn columns_of_a_filter() {
        assert_eq!(
            columns("((a.b = 7) AND (c <> 3) AND (\"d\" >= 1))"),
            ["b", "c", "d"]
        );
        assert_eq!(columns("(url = 'http://x/?page=7&a>b'::text)"), ["url"]);
        assert_eq!(columns("((a = 'it''s b=3') AND (c = '<d>'))"), ["a", "c"]);
        assert_eq!(columns("(lower(name) = 'x')"), Vec::<&str>::new());
        assert_eq!(columns("((name)::text = 'x'::text)"), ["name"]);
        assert_eq!(columns("(lower(name)::text = 'x'::text)"), Vec::<&str>::new());
        assert_eq!(columns("=<>==\u{e9}= \u{e9} ="), ["\u{e9}"]);
    }
}
