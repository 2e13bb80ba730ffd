//! What a statement of SQL is about: its command, and the tables that it names.
//!
//! In: the text of a statement, hostile and perhaps cut off. Out: words of the grammar and names of tables, and nothing else of it: literals
//! are what users have typed, and belong in no report.

/// Words of a statement that are looked at.
const MAX_WORDS: usize = 512;

/// Tables that are reported.
const MAX_TABLES: usize = 8;

/// The longest name that is reported, bytes: more than servers allow.
const MAX_NAME_BYTES: usize = 128;

/// Commands of two words.
const OF_TWO: &[&str] = &["ALTER", "CREATE", "DROP", "LOCK", "TRUNCATE", "REFRESH"];

/// Words before the name of a table.
const BEFORE_TABLES: &[&str] = &["FROM", "JOIN", "INTO", "UPDATE", "TABLE", "TRUNCATE"];

/// Words that may stand between those and the name.
const SKIPPED: &[&str] = &["ONLY", "IF", "NOT", "EXISTS", "TABLE", "LATERAL"];

/// What a statement is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// `SELECT`, `ALTER TABLE`; empty where it begins with no word.
    pub command: String,
    /// Tables by their names as it writes them, without quotes, each once.
    pub tables: Vec<String>,
}

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Word(String),
    /// A name in quotes, which is no word of the grammar.
    Quoted(String),
    Comma,
    Other,
}

/// The outline of a statement.
#[must_use]
pub fn outline(statement: &str) -> Outline {
    let pieces = pieces(statement);
    let mut found = Outline::default();
    let mut words = pieces.iter().filter_map(|piece| match piece {
        Piece::Word(word) => Some(word.to_ascii_uppercase()),
        Piece::Quoted(_) | Piece::Comma | Piece::Other => None,
    });
    if let Some(first) = words.next().filter(|word| is_command(word)) {
        let second = words
            .next()
            .filter(|word| OF_TWO.contains(&first.as_str()) && is_command(word));
        found.command = second.map_or_else(|| first.clone(), |second| format!("{first} {second}"));
    }
    let mut at = 0;
    while at < pieces.len() {
        let starts = matches!(&pieces[at], Piece::Word(word) if is_one_of(word, BEFORE_TABLES));
        at += 1;
        if starts {
            at = tables(&pieces, at, &mut found.tables);
        }
    }
    found
}

/// Takes the tables of a list that begins there; returns where it ends.
fn tables(pieces: &[Piece], mut at: usize, found: &mut Vec<String>) -> usize {
    while matches!(pieces.get(at), Some(Piece::Word(word)) if is_one_of(word, SKIPPED)) {
        at += 1;
    }
    loop {
        let name = match pieces.get(at) {
            Some(Piece::Word(name)) if !name.starts_with(|c: char| c.is_ascii_digit()) => name,
            Some(Piece::Quoted(name)) => name,
            _ => return at,
        };
        if found.len() < MAX_TABLES && !found.contains(name) {
            found.push(name.clone());
        }
        at += 1;
        // An alias may stand before the comma.
        for _ in 0..2 {
            if matches!(pieces.get(at), Some(Piece::Word(_)))
                && matches!(pieces.get(at + 1), Some(Piece::Comma))
            {
                at += 1;
            }
        }
        if pieces.get(at) != Some(&Piece::Comma) {
            return at;
        }
        at += 1;
    }
}

fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.iter().any(|one| one.eq_ignore_ascii_case(word))
}

fn is_command(word: &str) -> bool {
    word.len() <= 20 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The pieces of a statement; comments and literals are left out.
fn pieces(statement: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut rest = statement;
    while found.len() < MAX_WORDS {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { break };
        rest = match first {
            '-' if rest.starts_with("--") => rest.split_once('\n').map_or("", |(_, after)| after),
            '/' if rest.starts_with("/*") => rest.split_once("*/").map_or("", |(_, after)| after),
            '\'' => literal(&rest[1..]),
            '"' | '`' => {
                let Some((name, after)) = rest[1..].split_once(first) else {
                    break;
                };
                if name.len() <= MAX_NAME_BYTES {
                    found.push(Piece::Quoted(name.to_owned()));
                }
                after
            }
            ',' => {
                found.push(Piece::Comma);
                &rest[1..]
            }
            _ if first.is_alphanumeric() || first == '_' => {
                let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
                let end = rest.find(|c: char| !part(c)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                if word.len() <= MAX_NAME_BYTES {
                    found.push(Piece::Word(word.to_owned()));
                }
                after
            }
            _ => {
                found.push(Piece::Other);
                &rest[first.len_utf8()..]
            }
        };
    }
    found
}

/// What follows a literal.
fn literal(inside: &str) -> &str {
    let mut rest = inside;
    loop {
        let Some((_, after)) = rest.split_once('\'') else {
            return "";
        };
        // A quote in it is written twice.
        match after.strip_prefix('\'') {
            Some(more) => rest = more,
            None => return after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::outline;

    fn parsed(statement: &str) -> (String, Vec<String>) {
        let found = outline(statement);
        (found.command, found.tables)
    }

    #[test]
    fn commands_and_tables_are_told_and_no_literal_is() {
        let of = |command: &str, tables: &[&str]| {
            (
                command.to_owned(),
                tables.iter().map(|name| (*name).to_owned()).collect(),
            )
        };
        assert_eq!(
            parsed("select count(*) from orders where name = 'from secrets'"),
            of("SELECT", &["orders"])
        );
        assert_eq!(
            parsed("ALTER TABLE IF EXISTS ONLY shop.orders ADD x int"),
            of("ALTER TABLE", &["shop.orders"])
        );
        assert_eq!(
            parsed("/* web */ select * from orders o, \"Items\" as i join stock on true"),
            of("SELECT", &["orders", "Items", "stock"])
        );
        assert_eq!(parsed("update stock set qty = qty - 1"), of("UPDATE", &["stock"]));
        assert_eq!(
            parsed("insert into log values ('it''s', 'from x')"),
            of("INSERT", &["log"])
        );
        assert_eq!(parsed("lock table `a b`"), of("LOCK TABLE", &["a b"]));
        assert_eq!(parsed("delete from only orders"), of("DELETE", &["orders"]));
        assert_eq!(parsed("select 1"), of("SELECT", &[]));
        assert_eq!(parsed("select * from (select 1) x"), of("SELECT", &[]));
    }

    #[test]
    fn what_is_cut_off_or_damaged_ends_somewhere() {
        for text in [
            "",
            "'",
            "select * from \"ab",
            "/*",
            "--",
            "from",
            "select * from a,",
            "é from ü",
        ] {
            let _ = outline(text);
        }
        let long = "select x from a ".repeat(10_000);
        assert_eq!(outline(&long).tables, ["a"]);
    }
}
