//! Secrets by their place in an address: `scheme://user:secret@host`, `u/secret@host`, `/reset/SECRET`, `?sig=SECRET`, web hooks.

use crate::names::looks_random;
use crate::{expression, replace};
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// `scheme://user:secret@host`; the secret may have any character but blanks and quotes.
static USER: LazyLock<Regex> = LazyLock::new(|| {
    expression(r#"(?i)\b[a-z][a-z0-9+.\-]*://(?P<user>[^\s"'<>@/:]*):(?P<secret>[^\s"'<>]+)@"#)
});

/// `scheme://secret@host`.
static ALONE: LazyLock<Regex> =
    LazyLock::new(|| expression(r#"(?i)\b[a-z][a-z0-9+.\-]*://(?P<secret>[^\s"'<>@/:]{16,})@"#));

/// `jdbc:oracle:thin:user/secret@host`.
static ORACLE: LazyLock<Regex> =
    LazyLock::new(|| expression(r#"(?i)\bjdbc:oracle:[a-z]+:[^/\s"']+/(?P<secret>[^@\s"']+)@"#));

/// `user:secret@tcp(host:3306)/db`, as Go's drivers write it.
static IN_GO: LazyLock<Regex> =
    LazyLock::new(|| expression(r#"[A-Za-z0-9_.\-]+:(?P<secret>[^\s"'@]+)@(?:tcp|unix|tcp6)\("#));

/// A line of PostgreSQL's password file: `host:port:database:user:secret`.
static PASSWORD_FILE: LazyLock<Regex> = LazyLock::new(|| {
    expression(
        r#"(?:^|[\s"'])[A-Za-z0-9_.*\-]+:(?:\d{2,5}|\*):[A-Za-z0-9_*\-]+:[A-Za-z0-9_*\-]+:(?P<secret>[^\s"':]+)(?:$|[\s"'])"#,
    )
});

/// `?key=secret`: names that are no secrets' elsewhere.
static QUERY: LazyLock<Regex> =
    LazyLock::new(|| expression(r#"[?&#;](?:key|code|sid|st|access|hmac|h|t|s|k)=(?P<secret>[^\s"'&;#]+)"#));

/// A step of a path after which a secret comes: `/reset/SECRET`.
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    expression(
        r#"(?i)/(?:reset|reset[_-]?password|password[_-]?reset|invite|invites|invitation|invitations|confirm|confirmation|verify|verification|unsubscribe|magic|magic[_-]?link|activate|activation|share|shared|tokens?|oauth|sso|signin|login|recover|recovery|unlock|s|dl|download)/(?P<secret>[A-Za-z0-9_\-.~=]{12,})"#,
    )
});

/// Addresses to which anybody may post who knows them.
static HOOK: LazyLock<Regex> = LazyLock::new(|| {
    expression(
        r#"(?xi)
        (?: hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/
          | discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/
          | [a-z0-9\-]+\.webhook\.office\.com/webhookb2/
          | outlook\.office(?:365)?\.com/webhook/
          | hooks\.zapier\.com/hooks/catch/
          | maker\.ifttt\.com/trigger/[^/\s]+/(?:json/)?with/key/
          | api\.telegram\.org/bot
          | [a-z0-9.\-]+\.logic\.azure\.com(?::443)?/workflows/
          | open\.feishu\.cn/open-apis/bot/v2/hook/
          | hc-ping\.com/
          | /hooks?/ )
        (?P<secret>[^\s"'<>?\#]{12,})"#,
    )
});

pub(crate) fn mask(text: &str) -> Cow<'_, str> {
    let masked = replace(text, &USER, |found| !is_port(&found["secret"]));
    let masked = crate::then(masked, |text| {
        replace(text, &ALONE, |found| looks_random(&found["secret"]))
    });
    let masked = crate::then(masked, |text| replace(text, &ORACLE, |_| true));
    let masked = crate::then(masked, |text| replace(text, &IN_GO, |_| true));
    let masked = crate::then(masked, |text| replace(text, &PASSWORD_FILE, |_| true));
    let masked = crate::then(masked, |text| {
        replace(text, &QUERY, |found| looks_random(&found["secret"]))
    });
    let masked = crate::then(masked, |text| replace(text, &HOOK, |_| true));
    crate::then(masked, |text| {
        replace(text, &PATH, |found| has_letters_and_digits(&found["secret"]))
    })
}

/// `host:8080/@scope/package` has a port behind the colon, and an `@` in its path.
fn is_port(secret: &str) -> bool {
    let port = secret.split('/').next().unwrap_or_default();
    secret.contains('/') && !port.is_empty() && port.chars().all(|character| character.is_ascii_digit())
}

/// A name of a page has letters alone, a number digits alone.
fn has_letters_and_digits(text: &str) -> bool {
    text.chars().any(|character| character.is_ascii_digit())
        && text.chars().filter(char::is_ascii_alphabetic).count() >= 2
        && !is_version(text)
}

/// `app-1.2.3.tar.gz`: a file with a version in its name.
fn is_version(text: &str) -> bool {
    text.contains('.') && text.split('.').any(|part| part.len() <= 3)
}
