//! The table that a statement is mainly about: that of its own `FROM`, `UPDATE` or `INTO`, and none of those in brackets.
//!
//! In: the text of a statement, hostile and perhaps cut. Out: a name as the statement writes it, without quotes.

/// Words of a statement that are looked at.
const MAX_WORDS: usize = 4_096;

/// Bytes of a name: more than servers allow.
const MAX_NAME_BYTES: usize = 128;

/// Words behind which the table stands.
const BEFORE_TABLE: [&str; 4] = ["FROM", "UPDATE", "INTO", "TABLE"];

/// Words that may stand between.
const BETWEEN: [&str; 7] = ["ONLY", "IGNORE", "LOW_PRIORITY", "IF", "NOT", "EXISTS", "TABLE"];

/// The table that a statement is mainly about.
pub(super) fn main_table(statement: &str) -> Option<String> {
    let mut depth: u32 = 0;
    let mut awaits = false;
    // Values are data: a bracket or a word within quotes is none.
    let mut quoted: Option<char> = None;
    let part = |char: char| char.is_whitespace() || matches!(char, '(' | ')' | ',' | ';');
    for word in statement.split_inclusive(part).take(MAX_WORDS) {
        let bare = word.trim_end_matches(part);
        if quoted.is_none() && depth == 0 && !bare.is_empty() {
            let is = |known: &[&str]| known.iter().any(|one| bare.eq_ignore_ascii_case(one));
            if awaits && !is(&BETWEEN) {
                let name: String = bare
                    .chars()
                    .filter(|char| !matches!(char, '`' | '"' | '[' | ']'))
                    .collect();
                let fits = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
                return Some(name).filter(|name| fits && name.len() <= MAX_NAME_BYTES);
            }
            awaits |= is(&BEFORE_TABLE);
        }
        for char in word.chars() {
            match (quoted, char) {
                (None, '\'') => quoted = Some(char),
                (Some(open), close) if open == close => quoted = None,
                (None, '(') => {
                    depth += 1;
                    // `FROM (SELECT …)`: the table is that within.
                    if awaits {
                        (depth, awaits) = (0, false);
                    }
                }
                (None, ')') => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::main_table;

    #[test]
    fn the_table_of_the_statement_and_not_of_what_is_within_it() {
        for (statement, table) in [
            (
                "select a, (select max(x) from logs) from `shop`.`orders` o where b = 'from x'",
                "shop.orders",
            ),
            ("UPDATE stock SET n = 1", "stock"),
            ("INSERT IGNORE INTO log (a) VALUES ('into y')", "log"),
            (
                "delete from only events where id in (select id from old)",
                "events",
            ),
            ("SELECT count(*) FROM (SELECT DISTINCT a FROM visits) v", "visits"),
            ("SELECT 'it (is' FROM t1, t2", "t1"),
            ("ALTER TABLE IF EXISTS carts ADD x int", "carts"),
        ] {
            assert_eq!(main_table(statement).as_deref(), Some(table), "{statement}");
        }
        for statement in [
            "select 1",
            "show status",
            "",
            "select a from",
            "FROM 7",
            "update ((((",
            "from '",
        ] {
            assert_eq!(main_table(statement), None, "{statement}");
        }
    }
}
