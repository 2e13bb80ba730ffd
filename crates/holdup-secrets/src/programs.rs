//! Secrets by the program that takes them: `mysql -px`, `curl -u al:x`, `sqlplus al/x@db`.
//!
//! In: words of a command line. Out: the same, masked. A program counts wherever its name stands, because others start it: `sudo mysql -px`,
//! `docker exec db mysql -px`, `sh -c "cd /x && mysql -px"`. A word that is a command line itself is masked as one.

use crate::names::{is_secret, is_value};
use crate::{MASKED, mask_text as mask_whole};
use std::borrow::Cow;

/// How a program takes a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// `-p x`, `-px`, `--password x`, `--password=x`.
    Value(&'static str),
    /// `-px` alone: with a blank it is something else.
    Joined(&'static str),
    /// `-u user:x`, `--user=user:x`; a value without a colon is no secret.
    After(&'static str, char),
    /// The word at this place behind the program's own options, counted from 0.
    Word(usize),
    /// A word of the form `user/x@host`.
    Slash,
}

/// Programs by their names, a word that must stand somewhere in the command line (or none), and how they take secrets.
type Program = (&'static [&'static str], Option<&'static str>, &'static [Takes]);

use Takes::{After, Joined, Slash, Value, Word};

const PROGRAMS: &[Program] = &[
    (
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mysqlcheck",
            "mysqlshow",
            "mysqlslap",
            "mysqlbinlog",
            "mysqlpump",
            "mysqlsh",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
            "mariabackup",
            "xtrabackup",
            "innobackupex",
            "mycli",
            "mydumper",
            "myloader",
        ],
        None,
        &[Joined("-p"), Value("--password")],
    ),
    (&["sshpass"], None, &[Value("-p")]),
    (
        &[
            "mongo",
            "mongosh",
            "mongodump",
            "mongorestore",
            "mongoexport",
            "mongoimport",
            "mongostat",
        ],
        None,
        &[Value("-p"), Value("--password")],
    ),
    (
        &[
            "docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oras", "crane", "az", "oc", "cf",
            "ibmcloud", "doctl",
        ],
        Some("login"),
        &[
            Value("-p"),
            Value("--password"),
            After("--creds", ':'),
            Value("-t"),
        ],
    ),
    (
        &["skopeo", "buildah"],
        None,
        &[
            After("--creds", ':'),
            After("--src-creds", ':'),
            After("--dest-creds", ':'),
        ],
    ),
    (
        &["curl", "wget2"],
        None,
        &[
            After("-u", ':'),
            After("--user", ':'),
            After("-U", ':'),
            After("--proxy-user", ':'),
            Value("--pass"),
            Value("--key-pass"),
            Value("--oauth2-bearer"),
        ],
    ),
    (
        &["wget"],
        None,
        &[
            Value("--password"),
            Value("--http-password"),
            Value("--ftp-password"),
            Value("--proxy-password"),
        ],
    ),
    (
        &["http", "https", "xh", "httpie"],
        None,
        &[After("-a", ':'), After("--auth", ':')],
    ),
    (
        &["ab", "siege", "wrk", "hey", "vegeta"],
        None,
        &[After("-A", ':'), After("-P", ':')],
    ),
    (
        &["redis-cli", "valkey-cli", "keydb-cli", "redis-benchmark"],
        None,
        &[Value("-a"), Value("--pass")],
    ),
    (
        &[
            "ldapsearch",
            "ldapadd",
            "ldapmodify",
            "ldapdelete",
            "ldapwhoami",
            "ldappasswd",
            "ldapcompare",
            "ldapmodrdn",
        ],
        None,
        &[Value("-w"), Value("-s"), Value("-a")],
    ),
    (
        &[
            "snmpget",
            "snmpwalk",
            "snmpset",
            "snmpbulkwalk",
            "snmpbulkget",
            "snmpgetnext",
            "snmptable",
            "snmptrap",
            "snmpstatus",
        ],
        None,
        &[Value("-c"), Value("-A"), Value("-X")],
    ),
    (&["zip", "unzip"], None, &[Value("-P")]),
    (
        &["7z", "7za", "7zr", "rar", "unrar"],
        None,
        &[Joined("-p"), Joined("-hp")],
    ),
    (
        &["smbclient", "rpcclient", "smbmap", "smbget", "winexe"],
        None,
        &[After("-U", '%'), After("--user", '%'), Value("--password")],
    ),
    (
        &[
            "sqlcmd",
            "bcp",
            "isql",
            "osql",
            "tsql",
            "mosquitto_pub",
            "mosquitto_sub",
            "mosquitto_rr",
        ],
        None,
        &[Value("-P")],
    ),
    (
        &[
            "sqlplus", "sqlldr", "impdp", "expdp", "exp", "imp", "rman", "tnsping", "sqlcl",
        ],
        None,
        &[Slash],
    ),
    (
        &["openssl"],
        None,
        &[
            Value("-passin"),
            Value("-passout"),
            Value("-pass"),
            Value("-password"),
            Value("-k"),
            Value("-K"),
        ],
    ),
    (&["gpg", "gpg2"], None, &[Value("--passphrase")]),
    (
        &["lftp", "ncftp", "ncftpget", "ncftpput", "ftp"],
        None,
        &[After("-u", ','), Value("-p")],
    ),
    (
        &["xfreerdp", "wlfreerdp", "freerdp"],
        None,
        &[Joined("/p:"), Joined("/password:")],
    ),
    (&["rdesktop"], None, &[Value("-p")]),
    (
        &[
            "cqlsh",
            "influx",
            "clickhouse-client",
            "clickhouse",
            "neo4j-admin",
            "cypher-shell",
            "arangosh",
            "couchbase-cli",
            "cbq",
            "db2",
            "vertica",
            "vsql",
            "presto",
            "trino",
            "snowsql",
            "odbcsql",
        ],
        None,
        &[Value("-p"), Value("-password"), Value("--password"), Value("-w")],
    ),
    (&["etcdctl"], None, &[After("--user", ':'), Value("--password")]),
    (&["useradd", "usermod"], None, &[Value("-p")]),
    (&["htpasswd"], Some("-b"), &[Word(2)]),
    (&["htpasswd"], Some("-nb"), &[Word(1)]),
    (&["htpasswd"], Some("-bc"), &[Word(2)]),
    (&["rabbitmqctl"], Some("add_user"), &[Word(2)]),
    (&["rabbitmqctl"], Some("change_password"), &[Word(2)]),
    (&["rabbitmqadmin"], None, &[Value("-p"), Value("--password")]),
    (&["vault"], Some("login"), &[Word(1)]),
    (&["mc"], Some("set"), &[Word(5)]),
    (&["ipmitool"], None, &[Value("-P")]),
    (&["rsync"], None, &[]),
    (
        &["keytool", "jarsigner"],
        None,
        &[
            Value("-storepass"),
            Value("-keypass"),
            Value("-deststorepass"),
            Value("-srcstorepass"),
        ],
    ),
    (&["cadaver", "svn"], None, &[Value("--password")]),
    (&["x11vnc"], None, &[Value("-passwd")]),
    (
        &["vncpasswd", "ansible", "ansible-playbook"],
        None,
        &[Value("--vault-pass")],
    ),
    (&["aws"], Some("aws_secret_access_key"), &[Word(3)]),
    (&["kinit"], None, &[]),
    (
        &["crackmapexec", "nxc", "evil-winrm", "hydra"],
        None,
        &[Value("-p")],
    ),
    (&["nmcli"], Some("password"), &[]),
    (&["wpa_passphrase"], None, &[Word(1)]),
    (&["echo"], None, &[]),
];

/// The masked words.
pub(crate) fn mask_words(words: &[String]) -> Vec<String> {
    let mut masked: Vec<String> = Vec::with_capacity(words.len());
    let mut current: Option<Current> = None;
    let mut next_is: Option<NextIs> = None;
    for (number, word) in words.iter().enumerate() {
        if let Some(next) = next_is.take()
            && !word.starts_with('-')
            && let Some(shown) = next.mask(word)
        {
            masked.push(shown);
            continue;
        }
        if let Some(program) = Current::of(word, words) {
            current = Some(program);
            masked.push(mask_whole(word).into_owned());
            continue;
        }
        if number > 0
            && let Some(program) = &mut current
            && let Some((shown, next)) = program.mask(word)
        {
            next_is = next;
            masked.push(shown);
            continue;
        }
        if let Some((shown, next)) = named(word) {
            next_is = next;
            masked.push(shown);
            continue;
        }
        // `aws configure set aws_secret_access_key x`: a word that is the name of a secret.
        masked.push(mask_whole(word).into_owned());
    }
    masked
}

/// A word that is `name=value` or an option that is a secret's by its name: to the end of the word, whatever stands there.
fn named(word: &str) -> Option<(String, Option<NextIs>)> {
    if word.contains(char::is_whitespace) || word.contains("://") || word.starts_with(['{', '[']) {
        return None;
    }
    match word.split_once('=') {
        Some((name, value)) if is_name(name) && is_secret(name) && is_value(name, value) => {
            Some((format!("{name}={MASKED}"), None))
        }
        None if word.starts_with('-') && is_name(word) && !word.contains(':') && is_secret(word) => {
            Some((word.to_owned(), Some(NextIs::Secret)))
        }
        _ => None,
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "-_.:/".contains(character))
}

/// What the next word is.
#[derive(Debug, Clone, Copy)]
enum NextIs {
    Secret,
    /// What follows the first such character is.
    After(char),
}

impl NextIs {
    fn mask(self, word: &str) -> Option<String> {
        match self {
            NextIs::Secret => is_value("password", word).then(|| MASKED.to_owned()),
            NextIs::After(border) => after(word, border),
        }
    }
}

/// `al:x` without the `x`.
fn after(word: &str, border: char) -> Option<String> {
    let (user, secret) = word.split_once(border)?;
    is_value("password", secret).then(|| format!("{user}{border}{MASKED}"))
}

/// The program whose options these are.
struct Current {
    takes: Vec<Takes>,
    /// Words so far that are no options.
    plain: usize,
}

impl Current {
    /// The program that a word names.
    fn of(word: &str, all: &[String]) -> Option<Current> {
        let base = word.rsplit('/').next().unwrap_or(word);
        let mut takes = Vec::new();
        for (names, with, how) in PROGRAMS {
            let there = |with: &str| all.iter().any(|other| other == with);
            if names.contains(&base) && with.is_none_or(there) {
                takes.extend_from_slice(how);
            }
        }
        (!takes.is_empty()).then_some(Current { takes, plain: 0 })
    }

    /// What is shown of a word, if this program takes a secret by it.
    fn mask(&mut self, word: &str) -> Option<(String, Option<NextIs>)> {
        let place = self.plain;
        self.plain += usize::from(!word.starts_with('-'));
        self.takes.iter().find_map(|takes| match *takes {
            Value(option) if word == option => Some((word.to_owned(), Some(NextIs::Secret))),
            Value(option) | Joined(option) => joined(word, option),
            After(option, border) if word == option => Some((word.to_owned(), Some(NextIs::After(border)))),
            After(option, border) => {
                let value = value_of(word, option)?;
                let shown = after(value, border)?;
                Some((format!("{}{shown}", &word[..word.len() - value.len()]), None))
            }
            Word(wanted) if !word.starts_with('-') && wanted == place => {
                is_value("password", word).then(|| (MASKED.to_owned(), None))
            }
            Word(_) => None,
            Slash => {
                let (user, rest) = word.split_once('/')?;
                let plain = !user.is_empty()
                    && user
                        .chars()
                        .all(|character| character.is_ascii_alphanumeric() || "_$#\"".contains(character));
                let (secret, host) = rest
                    .split_once('@')
                    .map_or((rest, None), |(secret, host)| (secret, Some(host)));
                if !plain || secret.is_empty() || secret.contains('/') {
                    return None;
                }
                let host = host.map_or(String::new(), |host| format!("@{host}"));
                Some((format!("{user}/{MASKED}{host}"), None))
            }
        })
    }
}

/// The value that is written behind an option without a blank: `-px`, `--password=x`.
fn value_of<'a>(word: &'a str, option: &str) -> Option<&'a str> {
    let value = word.strip_prefix(option)?;
    match option.starts_with("--") {
        true => value.strip_prefix('='),
        false => Some(value.strip_prefix('=').unwrap_or(value)),
    }
    .filter(|value| !value.is_empty())
}

fn joined(word: &str, option: &str) -> Option<(String, Option<NextIs>)> {
    let value = value_of(word, option)?;
    // `-pass` of a program that takes `-p`: an option with one dash and a long name is another.
    let long = option.len() == 2 && option.starts_with('-') && OTHERS.contains(&word);
    (!long && is_value("password", value))
        .then(|| (format!("{}{MASKED}", &word[..word.len() - value.len()]), None))
}

/// Options with one dash and more than one letter that begin as a shorter one that takes a secret.
const OTHERS: &[&str] = &[
    "-port",
    "-print",
    "-print0",
    "-path",
    "-prune",
    "-perm",
    "-password",
    "-pass",
    "-passin",
    "-passout",
    "-key",
    "-keyform",
];

/// Masks the words of a text as those of a command line: blanks and quotes stay as they are.
pub(crate) fn mask_text(text: &str) -> Cow<'_, str> {
    let spans = spans(text);
    let words: Vec<String> = spans.iter().map(|span| text[span.clone()].to_owned()).collect();
    // Without a program that takes secrets there is nothing to be found that the names have not.
    if !words.iter().any(|word| Current::of(word, &words).is_some()) {
        return Cow::Borrowed(text);
    }
    let masked = mask_plain(&words);
    if masked == words {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut copied = 0;
    for (span, shown) in spans.iter().zip(&masked) {
        clean.push_str(&text[copied..span.start]);
        clean.push_str(shown);
        copied = span.end;
    }
    clean.push_str(&text[copied..]);
    Cow::Owned(clean)
}

/// The same as for words, where each has been masked by everything else already.
fn mask_plain(words: &[String]) -> Vec<String> {
    let mut current: Option<Current> = None;
    let mut next_is: Option<NextIs> = None;
    let mut masked = Vec::with_capacity(words.len());
    for word in words {
        if let Some(next) = next_is.take()
            && !word.starts_with('-')
            && let Some(shown) = next.mask(word)
        {
            masked.push(shown);
            continue;
        }
        if let Some(program) = Current::of(word, words) {
            current = Some(program);
        } else if let Some((shown, next)) = current.as_mut().and_then(|program| program.mask(word)) {
            next_is = next;
            masked.push(shown);
            continue;
        }
        masked.push(word.clone());
    }
    masked
}

/// Where the words of a text are: between blanks, quotes, and what separates commands.
fn spans(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut spans = Vec::new();
    let mut start = None;
    for (at, character) in text.char_indices() {
        let border = character.is_whitespace() || "\"'`;|()".contains(character);
        match (border, start) {
            (true, Some(from)) => {
                spans.push(from..at);
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    spans.extend(start.map(|from| from..text.len()));
    spans
}
