//! Where an object is made to which a function is added as a listener.
//!
//! The problem: the function that is called when a stream has something tells which stream it is, and stands some lines behind the place where
//! that was opened, which is what was asked for. In: the source from the beginning of the function around to that listener. Out: where in it the
//! variable gets the object that the listener is added to; nothing where the object is no variable, or comes from elsewhere.

/// Methods that add a listener.
const ADDS: [&str; 5] = [
    "addListener",
    "on",
    "once",
    "prependListener",
    "prependOnceListener",
];

/// Where the variable gets its object, bytes from the beginning of `before`, which ends where the listener begins.
pub(super) fn made(before: &str) -> Option<usize> {
    let text = before.trim_end();
    let text = text.strip_suffix("async").map_or(text, str::trim_end);
    let text = text.strip_suffix(',')?.trim_end();
    let quote = text
        .chars()
        .next_back()
        .filter(|last| matches!(last, '\'' | '"' | '`'))?;
    let (text, event) = text.strip_suffix(quote)?.rsplit_once(quote)?;
    if event.contains(['\n', ';', '(']) {
        return None;
    }
    let text = text.trim_end().strip_suffix('(')?.trim_end();
    let method = ADDS.iter().find_map(|method| {
        let rest = text.strip_suffix(method)?;
        rest.strip_suffix("?.").or_else(|| rest.strip_suffix('.'))
    });
    let text = method?.trim_end();
    let object = &text[text.trim_end_matches(of_name).len()..];
    if object.is_empty() || object.starts_with(['.', '?']) || text[..text.len() - object.len()].ends_with(')')
    {
        return None;
    }
    let text = &text[..text.len() - object.len()];
    let gets = |(at, _): &(usize, &str)| {
        let rest = text[at + object.len()..].trim_start();
        let assigned = rest.strip_prefix('=');
        assigned.is_some_and(|value| !value.starts_with(['=', '>'])) && !text[..*at].ends_with(of_name)
    };
    text.rmatch_indices(object).find(gets).map(|(at, _)| at)
}

/// Whether a name, or a name within an object, has it.
fn of_name(one: char) -> bool {
    one.is_alphanumeric() || matches!(one, '_' | '$' | '.' | '#')
}

#[cfg(test)]
mod tests {
    use super::made;

    /// What begins where the object is made.
    fn maker(before: &str) -> Option<&str> {
        made(before).map(|at| before[at..].lines().next().unwrap_or_default())
    }

    #[test]
    fn a_listener_is_for_what_its_variable_got() {
        let stream = "const input = fs.createReadStream(file);\nconst reader = lines(input);\n";
        let on = |rest: &str| maker(&format!("{stream}{rest}")).map(str::to_owned);
        let made = Some("input = fs.createReadStream(file);".to_owned());
        assert_eq!(on("input.on('error', "), made);
        assert_eq!(
            on("input . once(\"open\",\n  async "),
            None,
            "no name before the dot"
        );
        assert_eq!(on("input.once(\"open\",\n  async "), made);
        assert_eq!(
            on("reader.prependListener(`line`,"),
            Some("reader = lines(input);".to_owned())
        );
    }

    #[test]
    fn of_several_the_last_counts_and_a_field_is_a_variable() {
        let before =
            "this.out = open(a);\nif (this.out === null) f();\nthis.out = open(b);\nthis.out.on('drain', ";
        assert_eq!(maker(before), Some("this.out = open(b);"));
        assert_eq!(
            maker("myinput = a();\ninput == b;\ninput.on('end', "),
            None,
            "another name, and no assignment"
        );
        assert_eq!(maker("x = (input => 1);\ninput.on('end', "), None, "a parameter");
    }

    #[test]
    fn what_is_no_listener_of_a_variable_has_no_maker() {
        for before in [
            "fs.readFile(path, ",
            "const a = 1;\nfs.createReadStream(a).on('error', ",
            "const input = open();\ninput.pipe('a', ",
            "const input = open();\ninput.on(name, ",
            "input.on('error', ",
            "on('error', ",
            "'",
            "",
        ] {
            assert_eq!(maker(before), None, "{before}");
        }
    }
}
