//! Secrets by the name that stands before them: `DB_PASS=x`, `"password": "x"`, `--db-pass x`, `Authorization: Bearer x`.
//!
//! A name is a secret's if one of its words is (`db-pass`, `dbPass`, `DB_PASS` are all `db`, `pass`), and its last word does not say that it is something
//! about the secret: a file, a length, a policy. Sources of the words: what Datadog's agent and Sentry's clients mask by default, and the
//! variables that the manuals of PostgreSQL, MySQL, Redis, AWS, Azure and npm name.

use crate::{expression, replace};
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Words that make a name a secret's.
const SECRET: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "passcode",
    "pass",
    "pwd",
    "pw",
    "psk",
    "secret",
    "secrets",
    "token",
    "bearer",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "auth",
    "jsessionid",
    "phpsessid",
    "sessionid",
    "sig",
    "signature",
    "otp",
    "apikey",
    "passin",
    "passout",
    "creds",
    "pat",
];

/// The same within a word that has no other border: `mysqlpassword`.
const WITHIN: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "authtoken",
    "accesstoken",
];

/// Words that make a key of what follows a secret: `api_key`, and not `sort_key`.
const OF_KEYS: &[&str] = &[
    "api",
    "access",
    "account",
    "private",
    "shared",
    "encryption",
    "signing",
    "master",
    "secret",
    "auth",
    "storage",
    "primary",
    "secondary",
    "session",
    "aes",
    "hmac",
    "license",
    "service",
    "deploy",
    "webhook",
    "cipher",
    "app",
    "client",
    "server",
    "subscription",
    "integration",
    "routing",
    "ssl",
    "sas",
];

/// A name that ends so is of something about a secret, and not the secret.
const ABOUT: &[&str] = &[
    "file",
    "files",
    "path",
    "dir",
    "directory",
    "stdin",
    "fd",
    "url",
    "uri",
    "endpoint",
    "name",
    "type",
    "ttl",
    "length",
    "len",
    "size",
    "min",
    "max",
    "count",
    "limit",
    "policy",
    "prompt",
    "command",
    "cmd",
    "env",
    "enabled",
    "required",
    "expiry",
    "expires",
    "expiration",
    "expire",
    "timeout",
    "age",
    "algorithm",
    "alg",
    "method",
    "mode",
    "provider",
    "host",
    "port",
    "store",
    "arn",
    "version",
    "rotation",
    "header",
    "prefix",
    "regex",
    "pattern",
    "field",
    "column",
    "class",
    "bucket",
    "cache",
    "user",
    "username",
    "domain",
    "plugin",
    "driver",
    "source",
    "format",
    "service",
    "server",
    "manager",
    "helper",
    "check",
    "strength",
    "ref",
    "index",
    "id",
];

/// Names that are these alone are secrets' only with a value that does not look like a word.
const WEAK: &[&str] = &[
    "key",
    "auth",
    "pass",
    "pw",
    "pat",
    "sig",
    "cookie",
    "token",
    "secret",
    "secrets",
    "pin",
    "creds",
    "credentials",
];

/// Values that are none.
const NO_VALUES: &[&str] = &[
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "none",
    "null",
    "nil",
    "undefined",
    "required",
    "optional",
    "enabled",
    "disabled",
    "basic",
    "ntlm",
    "plain",
    "digest",
    "bearer",
    "negotiate",
    "kerberos",
    "md5",
    "scram",
    "login",
    "cram-md5",
    "xoauth2",
    "any",
    "prompt",
    "ask",
    "auto",
    "default",
    "empty",
    "string",
    "int",
];

/// Whether what stands behind a name is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let words = words(name);
    let Some(last) = words.last() else { return false };
    let known =
        |word: &String| SECRET.contains(&word.as_str()) || WITHIN.iter().any(|part| word.contains(part));
    if words.len() > 1 && ABOUT.contains(&last.as_str()) {
        // AWS_ACCESS_KEY_ID goes with a secret, and tells who has it.
        return words.ends_with(&["access".to_owned(), "key".to_owned(), "id".to_owned()]);
    }
    words.iter().any(known)
        || words
            .windows(2)
            .any(|pair| OF_KEYS.contains(&pair[0].as_str()) && pair[1] == "key")
}

/// `dbPass`, `db-pass`, `DB_PASS2` as `db`, `pass`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut lower_before = false;
    for character in name.chars() {
        let border = !character.is_alphabetic() || (character.is_uppercase() && lower_before);
        if border && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphabetic() {
            word.extend(character.to_lowercase());
        }
        lower_before = character.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether a value that stands behind `name` can be a secret.
pub(crate) fn is_value(name: &str, value: &str) -> bool {
    let bare = value.trim_matches(['"', '\'', '\\', ',', '}', ']', ')']);
    // A variable, or a placeholder, is not what it stands for.
    let variable = bare.strip_prefix('$').is_some_and(|rest| {
        rest.starts_with(|first: char| first.is_ascii_alphabetic() || "_{(".contains(first))
    });
    let stands_for = variable
        || bare.starts_with('<')
        || bare.starts_with("{{")
        || bare.starts_with('%') && bare.ends_with('%');
    if bare.is_empty() || stands_for || bare.chars().all(|character| character == '*') {
        return false;
    }
    let lower = bare.to_ascii_lowercase();
    if NO_VALUES.contains(&lower.as_str()) {
        return false;
    }
    let name = words(name);
    let weak = matches!(name.as_slice(), [word] if WEAK.contains(&word.as_str()));
    // `token=3`, `auth=yes`: a flag, a number of something.
    !(weak && bare.len() < 5 && bare.chars().all(|character| character.is_ascii_digit()))
        && !(name == ["key"] && !looks_random(bare))
}

/// Whether it has what words lack: many characters, digits among letters.
pub(crate) fn looks_random(text: &str) -> bool {
    const CHARACTERS_MIN: usize = 16;
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let letters = text.chars().filter(char::is_ascii_alphabetic).count();
    let other = text.len() - digits - letters;
    text.len() >= CHARACTERS_MIN && digits >= 2 && letters >= 4 && other * 4 <= text.len()
}

/// `name=value`, `name: value`, `"name":"value"`, `name => 'value'`: up to the value.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    expression(r#"(?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)\\?["']?\s{0,2}(?:=>|:=|=|:)\s{0,2}(?P<quote>\\?["'])?"#)
});

/// `--name value` in a text.
static OPTION: LazyLock<Regex> = LazyLock::new(|| {
    expression(r#"(?:^|[\s"'(\[])--?(?P<name>[A-Za-z][A-Za-z0-9_.\-]*)\s+["']?(?P<secret>[^\s"'\-][^\s"']*)"#)
});

/// A header, to the end of its quotes or line.
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    expression(
        r#"(?i)(?:^|[\s"'(,{]|-H)(?P<name>(?:proxy-)?authorization|(?:set-)?cookie|x-[a-z0-9\-]*(?:key|token|secret|auth)[a-z0-9\-]*|private-token|job-token|api-key|apikey)\s*:\s*(?P<secret>(?:="[^"\r\n]*"|[^"'\r\n])+)"#,
    )
});

/// SQL and its dialects.
static SQL: LazyLock<Regex> = LazyLock::new(|| {
    expression(
        r#"(?i)\b(?:identified\s+(?:with\s+\S+\s+)?by|password\s*=|password\s*\(|password\s|password\s+for\s+\S+\s*=|requirepass|masterauth)\s*=?\s*["'](?P<secret>[^"']+)"#,
    )
});

/// A scheme of authentication and what follows it.
static SCHEME: LazyLock<Regex> = LazyLock::new(|| {
    expression(r"(?i)\b(?:bearer|basic|digest|token)\s+(?P<secret>[A-Za-z0-9._~+/=\-]{16,})")
});

pub(crate) fn mask(text: &str) -> Cow<'_, str> {
    let masked = replace(text, &HEADER, |_| true);
    let masked = crate::then(masked, |text| replace(text, &SQL, |_| true));
    let masked = crate::then(masked, |text| {
        replace(text, &SCHEME, |found| looks_random(&found["secret"]))
    });
    let masked = crate::then(masked, named);
    crate::then(masked, |text| {
        replace(text, &OPTION, |found| {
            let (name, value) = (&found["name"], &found["secret"]);
            is_secret(name) && is_value(name, value) && !value.contains('=')
        })
    })
}

/// The value of each secret name. What follows `:` in a URL or a path is none of its.
fn named(text: &str) -> Cow<'_, str> {
    let mut clean: Option<String> = None;
    let mut copied = 0;
    for found in NAMED.captures_iter(text) {
        let (whole, name) = (found.get(0).expect("the match"), &found["name"]);
        // It may be a part of a value that is masked already. Names first: a value may be long.
        if whole.start() < copied || !is_secret(name) {
            continue;
        }
        let rest = &text[whole.end()..];
        let end = match found.name("quote").map(|quote| quote.as_str()) {
            Some(quote) if quote.ends_with('"') => rest.find(['"', '\\']),
            Some(_) => rest.find('\''),
            None => rest.find(|character: char| character.is_whitespace() || "\"'&;".contains(character)),
        };
        let value = &rest[..end.unwrap_or(rest.len())];
        if value.starts_with("//")
            || value == crate::MASKED
            || !is_value(name, value)
            || is_place(&found[0], value)
        {
            continue;
        }
        let clean = clean.get_or_insert_with(String::new);
        clean.push_str(&text[copied..whole.end()]);
        clean.push_str(crate::MASKED);
        copied = whole.end() + value.len();
    }
    match clean {
        None => Cow::Borrowed(text),
        Some(mut clean) => {
            clean.push_str(&text[copied..]);
            Cow::Owned(clean)
        }
    }
}

/// `PasswordEncoder.java:41`: a line of a source file.
fn is_place(name: &str, value: &str) -> bool {
    let line = value.trim_end_matches([')', ',', ']', ':']);
    name.contains('.')
        && name.ends_with(':')
        && !line.is_empty()
        && line.chars().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{is_secret, is_value};

    #[test]
    fn a_name_is_told_by_its_words() {
        for name in [
            "password",
            "DB_PASS",
            "dbPass",
            "--db-pass",
            "ENCRYPTION_KEY",
            "REDIS_AUTH",
            "apiKey",
            "X-Amz-Signature",
            "mysqlpassword",
            "_authToken",
            "client_secret",
            "AWS_ACCESS_KEY_ID",
            "sessionid",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "PASSWORD_FILE",
            "--password-stdin",
            "token_type",
            "max_tokens",
            "sort_key",
            "author",
            "keyspace",
            "monkey",
            "compass",
            "passenger",
            "key",
            "tokenizer",
            "primary_key_name",
            "authority",
            "KEYSTORE",
            "auth_method",
        ] {
            assert!(!is_secret(name) || name == "key", "{name}");
        }
    }

    #[test]
    fn a_placeholder_is_no_value() {
        for value in ["$PASS", "${PASS}", "<secret>", "***", "true", "{{password}}", ""] {
            assert!(!is_value("password", value), "{value}");
        }
        assert!(is_value("password", "hunter2"));
        assert!(!is_value("token", "3"));
    }
}
