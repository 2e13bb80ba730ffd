//! What does not belong into a file that is kept and sent around.
//!
//! In: a segment as it was observed. Out: the same with secrets in arguments masked ([`mask`], always), or with whatever tells of people
//! and places taken out too ([`redact`], when asked for). Names of secrets are those that process monitors look for
//! by default (Datadog's agent: password, passwd, mysql_pwd, access_token, auth_token, api_key, secret, credentials …). A
//! word that is one too many costs a reader an argument; one too few gives a password away.

use crate::Segment;
use serde_json::Value;
use std::collections::BTreeMap;

/// What stands in a secret's place.
pub(crate) const MASKED: &str = "***";

/// What secrets are called, in lower case and without `-`, `_` and `.` between.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "accountkey",
    "privatekey",
    "sharedkey",
    "signature",
    "credential",
    "authorization",
    "bearer",
    "cookie",
    "sessionid",
    "passin",
    "passout",
];

/// Names that are these alone, because they are parts of many others.
const WHOLE_NAMES: &[&str] = &["pass", "auth", "pw", "key", "pin"];

/// How tokens begin that say themselves what they are, and how many characters follow at the least: Amazon's access key ids,
/// GitHub's, GitLab's, Slack's and Stripe's tokens, JSON Web Tokens.
const TOKENS: &[(&str, usize)] = &[
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghs_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("sk_live_", 8),
    ("rk_live_", 8),
    ("sk-", 20),
    ("eyJ", 20),
];

/// Options that a program takes a secret by, and that are something else to others: by the beginnings of programs' names.
const OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &[
            "mysql",
            "mariadb",
            "mysqldump",
            "mysqladmin",
            "sshpass",
            "mongo",
            "docker",
            "podman",
        ],
        &["-p"],
    ),
    (&["curl", "wget", "http", "smbclient"], &["-u", "--user", "-U"]),
    (&["redis-cli"], &["-a"]),
    (&["ldap"], &["-w"]),
    (&["snmp"], &["-c", "-A", "-X"]),
    (&["zip", "unzip", "7z"], &["-P"]),
];

/// Masks secrets: in CMD's arguments, in requests, in options of Java machines.
pub fn mask(segment: &mut Segment) {
    segment.head.command = masked_words(&segment.head.command);
    let slow = segment
        .attributed
        .requests
        .as_mut()
        .and_then(|of| of.slow.as_mut());
    if let Some(line) = slow.and_then(|slow| slow.line.as_mut()) {
        *line = masked_text(line);
    }
    for jvm in &mut segment.facts.jvms {
        jvm.options = masked_words(&jvm.options);
    }
    // A kernel's log has what drivers and daemons put there.
    if let Some(look) = &mut segment.look {
        each_text(&mut look.observed.happenings, &masked_text);
        each_text(&mut look.sight, &masked_text);
    }
}

/// Masks secrets, and takes out all arguments, what is called by a home directory, the paths of requests, and the host's name.
pub fn redact(segment: &mut Segment) {
    mask(segment);
    let host = segment.head.host.take();
    let head = &mut segment.head;
    head.redacted = true;
    let left = head.command.len().saturating_sub(1);
    if left > 0 && head.kind == holdup_analysis::report::SubjectKind::Run {
        head.command.truncate(1);
        head.command.push(format!("[{left} arguments taken out]"));
    }
    for jvm in &mut segment.facts.jvms {
        jvm.options.clear();
        jvm.main = None;
    }
    let slow = segment
        .attributed
        .requests
        .as_mut()
        .and_then(|of| of.slow.as_mut());
    if let Some(line) = slow.and_then(|slow| slow.line.as_mut()) {
        let method = line.split_whitespace().next().unwrap_or_default();
        *line = format!("{method} {MASKED}");
    }
    let host = host.filter(|host| host.len() >= SHORTEST_HOST);
    let clean = |text: &str| without_host(&without_home(text), host.as_deref());
    each_text(&mut segment.head, &clean);
    each_text(&mut segment.attributed, &clean);
    each_text(&mut segment.facts, &clean);
    each_text(&mut segment.look, &clean);
}

/// A shorter host name is a part of too many words.
const SHORTEST_HOST: usize = 3;

/// Does it to every text in a value. The ids of enums stand there as texts, too, and a host may be called as one of them is (`disk`,
/// `run`): what would be none any more is left as it is.
fn each_text<T: serde::Serialize + serde::de::DeserializeOwned>(of: &mut T, clean: &dyn Fn(&str) -> String) {
    let value = serde_json::to_value(&*of).expect("a segment's parts are JSON");
    let mut changes = BTreeMap::new();
    texts(&value, &mut |text| {
        let cleaned = clean(text);
        if cleaned != text {
            changes.insert(text.to_owned(), cleaned);
        }
    });
    let with = |changes: &BTreeMap<String, String>| serde_json::from_value(changed(&value, changes));
    *of = with(&changes).unwrap_or_else(|_: serde_json::Error| {
        changes.retain(|text, cleaned| {
            let alone = BTreeMap::from([(text.clone(), cleaned.clone())]);
            with(&alone).is_ok()
        });
        with(&changes).expect("none of what is left is the id of an enum")
    });
}

/// Tells every text in a value, but no key.
fn texts(value: &Value, tell: &mut dyn FnMut(&str)) {
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

/// Where homes are.
const HOMES: &[&str] = &["/home/", "/Users/", "/root/"];

/// `/home/al/mail/x` becomes `/home/***`.
fn without_home(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut left = text;
    while let Some((at, home)) = HOMES
        .iter()
        .filter_map(|home| Some((left.find(home)?, *home)))
        .min()
    {
        let (before, after) = left.split_at(at + home.len());
        clean.push_str(before);
        clean.push_str(MASKED);
        let ends = |character: char| character.is_whitespace() || "\"',;:()[]{}".contains(character);
        left = after.find(ends).map_or("", |end| &after[end..]);
    }
    clean + left
}

fn without_host(text: &str, host: Option<&str>) -> String {
    match host {
        Some(host) if text.contains(host) => text.replace(host, MASKED),
        _ => text.to_owned(),
    }
}

/// A command line with its secrets masked.
pub(crate) fn masked_words(words: &[String]) -> Vec<String> {
    let program = words
        .first()
        .map(|word| base(word))
        .unwrap_or_default()
        .to_owned();
    let mut masked = Vec::with_capacity(words.len());
    let mut next_is_secret = false;
    for (number, word) in words.iter().enumerate() {
        if std::mem::take(&mut next_is_secret) && !word.starts_with('-') {
            masked.push(MASKED.to_owned());
            continue;
        }
        let (shown, opens) = match number {
            0 => (masked_word(word, "").0, false),
            _ => masked_word(word, &program),
        };
        next_is_secret = opens;
        masked.push(shown);
    }
    masked
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A word, masked, and whether the next one is a secret.
fn masked_word(word: &str, program: &str) -> (String, bool) {
    // A command line within one: `sh -c "…"`.
    if word.trim().contains(char::is_whitespace) {
        if let Some(header) = header(word) {
            return (header, false);
        }
        let words: Vec<String> = word.split(char::is_whitespace).map(str::to_owned).collect();
        return (masked_words(&words).join(" "), false);
    }
    for (programs, options) in OPTIONS {
        if !programs.iter().any(|name| program.starts_with(name)) {
            continue;
        }
        for option in *options {
            match word.strip_prefix(option) {
                Some("") => return (word.to_owned(), true),
                // `-pSECRET`, and not `-path`, of those that take it without a blank.
                Some(_) if option.len() == 2 && !word.contains('=') => {
                    return (format!("{option}{MASKED}"), false);
                }
                _ => {}
            }
        }
    }
    if let Some((name, value)) = word.split_once('=')
        && secret(name)
        && !value.is_empty()
    {
        return (format!("{name}={MASKED}"), false);
    }
    if let Some(header) = header(word) {
        return (header, false);
    }
    let named = word.trim_start_matches('-');
    let opens = word.starts_with('-') && !word.contains('=') && secret(named);
    (masked_text(word), opens)
}

/// `Authorization: Bearer x` without what follows the colon.
fn header(word: &str) -> Option<String> {
    let (name, value) = word.split_once(':')?;
    let plain = name
        .chars()
        .all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character));
    (plain && secret(name) && !value.starts_with("//")).then(|| format!("{name}: {MASKED}"))
}

/// Whether a name is one of a secret.
fn secret(name: &str) -> bool {
    let last = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
    let bare = |name: &str| -> String {
        name.chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|character| character.to_ascii_lowercase())
            .collect()
    };
    let whole = bare(name);
    WHOLE_NAMES.contains(&bare(last).as_str())
        || WHOLE_NAMES.contains(&whole.as_str())
        || NAMES.iter().any(|secret| whole.contains(secret))
}

/// Text with what is a secret by its own form masked: passwords in URLs, their parameters, tokens.
fn masked_text(text: &str) -> String {
    let text = without_password(text);
    let text = masked_parameters(&text);
    masked_tokens(&text)
}

/// `scheme://user:password@host` without the password.
fn without_password(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut left = text;
    while let Some(at) = left.find("://") {
        let (before, after) = left.split_at(at + 3);
        clean.push_str(before);
        let end = after
            .find(|character: char| character.is_whitespace() || "/?#\"'".contains(character))
            .unwrap_or(after.len());
        let (authority, rest) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((user, host)) => {
                let user = user.split_once(':').map_or(user, |(user, _)| user);
                clean.push_str(&format!("{user}:{MASKED}@{host}"));
            }
            None => clean.push_str(authority),
        }
        left = rest;
    }
    clean + left
}

/// `?token=x&page=2` without the token.
fn masked_parameters(text: &str) -> String {
    let Some((before, query)) = text.split_once('?') else {
        return text.to_owned();
    };
    let parts: Vec<String> = query
        .split_inclusive(['&', ';', ' ', ','])
        .map(|part| match part.split_once('=') {
            Some((name, value)) if secret(name) => {
                let end = value.find(['&', ';', ' ', ',']).map_or("", |at| &value[at..]);
                format!("{name}={MASKED}{end}")
            }
            _ => part.to_owned(),
        })
        .collect();
    format!("{before}?{}", parts.concat())
}

/// Tokens that say what they are.
fn masked_tokens(text: &str) -> String {
    let mut clean = text.to_owned();
    for (begin, least) in TOKENS {
        let mut from = 0;
        while let Some(at) = clean[from..].find(begin).map(|at| at + from) {
            let after = at + begin.len();
            let inside = |character: char| character.is_ascii_alphanumeric() || "-_.+/=".contains(character);
            let length = clean[after..]
                .find(|character| !inside(character))
                .unwrap_or(clean.len() - after);
            let alone = clean[..at]
                .chars()
                .next_back()
                .is_none_or(|character| !character.is_ascii_alphanumeric());
            if alone && length >= *least {
                clean.replace_range(after..after + length, MASKED);
                from = after + MASKED.len();
            } else {
                from = after;
            }
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::{masked_text, masked_words, without_home};

    fn masked(line: &str) -> String {
        let words: Vec<String> = line.split('|').map(str::to_owned).collect();
        masked_words(&words).join("|")
    }

    #[test]
    fn secrets_by_name_are_masked_and_the_rest_stays() {
        for (line, expected) in [
            ("app|--password=hunter2|-v", "app|--password=***|-v"),
            ("app|--db-password|hunter2|-v", "app|--db-password|***|-v"),
            ("app|--token-file|-v", "app|--token-file|-v"),
            (
                "env|AWS_SECRET_ACCESS_KEY=abc|app",
                "env|AWS_SECRET_ACCESS_KEY=***|app",
            ),
            (
                "java|-Dshop.db.pass=x|-Xmx1g|Main",
                "java|-Dshop.db.pass=***|-Xmx1g|Main",
            ),
            (
                "/usr/bin/mysql|-uroot|-phunter2|shop",
                "/usr/bin/mysql|-uroot|-p***|shop",
            ),
            ("mysqldump|-p|hunter2", "mysqldump|-p|***"),
            ("curl|-u|al:x|http://h/", "curl|-u|***|http://h/"),
            (
                "curl|-H|Authorization: Bearer abc|h",
                "curl|-H|Authorization: ***|h",
            ),
            ("curl|-HX-Api-Key: abc", "curl|-HX-Api-Key: ***"),
            ("redis-cli|-a|x|get|y", "redis-cli|-a|***|get|y"),
            (
                "sh|-c|mysql --password=x shop; ls",
                "sh|-c|mysql --password=*** shop; ls",
            ),
            ("sh|-c|PGPASSWORD=x psql", "sh|-c|PGPASSWORD=*** psql"),
            ("openssl|rsa|-passin|pass:x", "openssl|rsa|-passin|***"),
        ] {
            assert_eq!(masked(line), expected);
        }
        for plain in [
            "tar|-pxf|a.tar",
            "make|-j2|all",
            "ssh|-p|22|host",
            "git|log|--author=al",
            "cp|-p|/etc/passwd|/tmp",
            "mkdir|-p|a/b",
            "http://h:80/x?page=2",
        ] {
            assert_eq!(masked(plain), plain);
        }
    }

    #[test]
    fn secrets_by_form_are_masked() {
        for (text, expected) in [
            ("postgres://al:x@db:5432/shop", "postgres://al:***@db:5432/shop"),
            ("https://ghp_0123456789abcdef0123@h/r", "https://ghp_***:***@h/r"),
            (
                "GET /x?token=abc&page=2 HTTP/1.1",
                "GET /x?token=***&page=2 HTTP/1.1",
            ),
            ("id AKIAIOSFODNN7EXAMPLE.", "id AKIA***"),
            ("task-force", "task-force"),
            ("http://h/?a=1", "http://h/?a=1"),
        ] {
            assert_eq!(masked_text(text), expected);
        }
    }

    #[test]
    fn a_home_is_told_without_whose() {
        assert_eq!(
            without_home("reads /home/al/mail, and /root/x (y)"),
            "reads /home/***, and /root/*** (y)"
        );
        assert_eq!(without_home("/var/lib/x"), "/var/lib/x");
    }
}
