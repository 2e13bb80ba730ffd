//! A table of names: what `/etc/hosts` and `/etc/nsswitch.conf` are to say, so that nobody has to be asked.
//!
//! In: the names that a run asked name servers for, with how long it waited for each; what the answers are; the two files and the search
//! list as they are. Out: the two files as they are to be, and what the table has no line for. Pure: who is asked is in [`super::resolve`].
//!
//! Names and answers are anybody's: what is no host name gets no line, or a line break in one would make lines of its own.

use holdup_evidence::{Cause, Ns};
use holdup_model::attributed::Attributed;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names that are asked for again, those first that were waited for most: a table of more is no table any more.
const MAX_NAMES: usize = 1_000;

/// Bytes of a name (RFC 1035, 2.3.4).
const MAX_NAME_BYTES: usize = 253;

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The name has these addresses.
    Addresses(Vec<IpAddr>),
    /// The address that the question was for has this name.
    Name(IpAddr, String),
    /// No answer, or that there is none.
    Nothing,
}

/// Names that were asked for, and how long was waited for each.
pub(crate) fn asked(run: &Attributed) -> BTreeMap<String, Ns> {
    let mut all: BTreeMap<&str, Ns> = BTreeMap::new();
    for wait in run.waits.iter().filter(|wait| wait.cause == Cause::NetDns) {
        if let Some(name) = &wait.resource.detail.name {
            *all.entry(name).or_default() += wait.ns;
        }
    }
    let mut longest: Vec<(&str, Ns)> = all.into_iter().collect();
    longest.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    longest.truncate(MAX_NAMES);
    longest
        .into_iter()
        .map(|(name, ns)| (name.to_owned(), ns))
        .collect()
}

/// Whether it can stand in a line of the table: letters, digits, and what else host names have.
pub(crate) fn is_host_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('.')
}

/// The address for whose name is asked under `in-addr.arpa` and `ip6.arpa` (RFC 1035, 3.5; RFC 3596, 2.5).
pub(crate) fn reversed(name: &str) -> Option<IpAddr> {
    if let Some(digits) = name.strip_suffix(".in-addr.arpa") {
        let bytes: Vec<u8> = digits
            .split('.')
            .rev()
            .map(|byte| byte.parse().ok())
            .collect::<Option<_>>()?;
        return Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into());
    }
    let mut bits = 0_u128;
    let mut count = 0;
    for digit in name.strip_suffix(".ip6.arpa")?.split('.').rev() {
        let value = u128::from_str_radix(digit, 16)
            .ok()
            .filter(|_| digit.len() == 1)?;
        bits = bits << 4 | value;
        count += 1;
    }
    (count == 32).then(|| Ipv6Addr::from(bits).into())
}

/// What stands before a domain of the search list.
fn stem<'a>(name: &'a str, domain: &str) -> Option<&'a str> {
    let domain = domain.trim_matches('.').to_ascii_lowercase();
    let stem = name.strip_suffix(&domain)?.strip_suffix('.')?;
    (!domain.is_empty() && !stem.is_empty()).then_some(stem)
}

/// The table that answers make, beside the lines that `/etc/hosts` has; `None` where none of them is an answer.
///
/// What a resolver makes of a short name, by the search list, is asked for under the long one; a program looks for the short one in the
/// table, so it stands there as well, unless it is a name by itself. Of several domains behind which it has an address, the first counts.
pub(crate) fn hosts(before: &[u8], answers: &BTreeMap<String, Answer>, search: &[String]) -> Option<Vec<u8>> {
    let with_address = |name: &str| matches!(answers.get(name), Some(Answer::Addresses(_)));
    let mut short: BTreeMap<&str, &str> = BTreeMap::new();
    for domain in search {
        for name in answers.keys().filter(|name| with_address(name)) {
            if let Some(stem) = stem(name, domain).filter(|stem| !with_address(stem)) {
                short.entry(stem).or_insert(name);
            }
        }
    }
    let mut lines = Vec::new();
    // The first line with an address tells its name.
    for answer in answers.values() {
        if let Answer::Name(address, name) = answer
            && is_host_name(name)
        {
            lines.push(format!("{address} {name}"));
        }
    }
    for (name, answer) in answers {
        let Answer::Addresses(addresses) = answer else {
            continue;
        };
        if !is_host_name(name) {
            continue;
        }
        // Who writes the last dot looks for it in the table too.
        let mut words = format!("{name} {name}.");
        for (short, long) in &short {
            if long == name {
                words += &format!(" {short}");
            }
        }
        lines.extend(addresses.iter().map(|address| format!("{address} {words}")));
    }
    let mut text = before.to_vec();
    text.extend_from_slice(b"\n# The table of holdup try, for this run alone.\n");
    text.extend(lines.iter().flat_map(|line| format!("{line}\n").into_bytes()));
    (!lines.is_empty()).then_some(text)
}

/// Names that have no answer and of which that is the end: those that are no first steps of the search list to one that has. With how
/// long was waited for them.
pub(crate) fn unanswered<'a>(
    asked: &'a BTreeMap<String, Ns>,
    answers: &BTreeMap<String, Answer>,
    search: &[String],
) -> (BTreeSet<&'a str>, Ns) {
    let has = |name: &str| matches!(answers.get(name), Some(answer) if *answer != Answer::Nothing);
    let on_the_way = |name: &str| {
        let mut stems = search.iter().filter_map(|domain| stem(name, domain));
        stems.any(|stem| {
            has(stem)
                || search
                    .iter()
                    .any(|domain| has(&format!("{stem}.{}", domain.trim_matches('.'))))
        })
    };
    // The other way round: the short name is tried as it is, and then with a domain.
    let continued = |name: &str| {
        search
            .iter()
            .any(|domain| has(&format!("{name}.{}", domain.trim_matches('.'))))
    };
    let lost = asked
        .iter()
        .filter(|(name, _)| !has(name) && !on_the_way(name) && !continued(name));
    let mut sum = 0;
    let names = lost.map(|(name, ns)| {
        sum += ns;
        name.as_str()
    });
    (names.collect(), sum)
}

/// `/etc/nsswitch.conf` with files asked first for hosts; `None` where that is so already.
pub(crate) fn files_first(before: &str) -> Option<String> {
    let sources = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        line.trim_start()
            .strip_prefix("hosts:")
            .map(|rest| rest.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    let Some(words) = before.lines().find_map(sources) else {
        // What it is without a line has differed from one version of the C library to another.
        return Some(format!("{before}\nhosts: files dns\n"));
    };
    if words.first().is_some_and(|first| first == "files") {
        return None;
    }
    let mut others = Vec::new();
    let mut of_files = false;
    for word in words {
        // What is to be done after files came to nothing stood behind another source, and is for there.
        of_files = word == "files" || of_files && word.starts_with('[');
        if !of_files {
            others.push(word);
        }
    }
    let lines = before.lines().map(|line| match sources(line) {
        Some(_) => format!("hosts: files {}\n", others.join(" ")),
        None => format!("{line}\n"),
    });
    Some(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::{Answer, files_first, hosts, is_host_name, reversed, unanswered};
    use std::collections::{BTreeMap, BTreeSet};

    fn to(address: &str) -> Answer {
        Answer::Addresses(vec![address.parse().unwrap()])
    }

    fn answers(of: &[(&str, Answer)]) -> BTreeMap<String, Answer> {
        of.iter()
            .map(|(name, answer)| ((*name).to_owned(), answer.clone()))
            .collect()
    }

    fn table(of: &[(&str, Answer)], search: &[&str]) -> Option<Vec<String>> {
        let search: Vec<String> = search.iter().map(|domain| (*domain).to_owned()).collect();
        let text = String::from_utf8(hosts(b"127.0.0.1 localhost", &answers(of), &search)?).unwrap();
        let mut lines = text.lines().map(str::to_owned);
        assert_eq!(lines.next().as_deref(), Some("127.0.0.1 localhost"));
        Some(lines.filter(|line| !line.starts_with('#')).collect())
    }

    #[test]
    fn each_address_is_a_line_behind_those_that_were_there() {
        let both = Answer::Addresses(vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()]);
        assert_eq!(
            table(&[("db.test", both), ("gone.test", Answer::Nothing)], &[]).unwrap(),
            ["192.0.2.1 db.test db.test.", "2001:db8::1 db.test db.test."]
        );
        assert_eq!(table(&[("gone.test", Answer::Nothing)], &[]), None);
    }

    #[test]
    fn a_short_name_is_the_first_long_one_that_has_an_address() {
        let lines = table(
            &[
                ("db.south.test", to("192.0.2.2")),
                ("db.north.test", to("192.0.2.1")),
                ("db.east.test", Answer::Nothing),
            ],
            &["east.test", "North.test.", "south.test"],
        );
        assert_eq!(
            lines.unwrap(),
            [
                "192.0.2.1 db.north.test db.north.test. db",
                "192.0.2.2 db.south.test db.south.test."
            ]
        );
        let by_itself = table(
            &[("db", to("192.0.2.3")), ("db.test", to("192.0.2.1"))],
            &["test"],
        );
        assert_eq!(
            by_itself.unwrap(),
            ["192.0.2.3 db db.", "192.0.2.1 db.test db.test."]
        );
    }

    #[test]
    fn names_of_addresses_come_first_and_what_is_no_name_never() {
        let name = |name: &str| Answer::Name("192.0.2.1".parse().unwrap(), name.to_owned());
        let lines = table(
            &[
                ("1.2.0.192.in-addr.arpa", name("host.test")),
                ("a.test", to("192.0.2.1")),
            ],
            &[],
        );
        assert_eq!(
            lines.unwrap(),
            ["192.0.2.1 host.test", "192.0.2.1 a.test a.test."]
        );
        assert_eq!(
            table(&[("1.2.0.192.in-addr.arpa", name("x\n0.0.0.0 bank.test"))], &[]),
            None
        );
        assert_eq!(table(&[("a#b.test", to("192.0.2.1"))], &[]), None);
        for wrong in ["", ".", "a b", "a\tb", "a\nb", "ä", &"a".repeat(254)] {
            assert!(!is_host_name(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn questions_for_names_tell_the_address() {
        let of = |name: &str| reversed(name).map(|address| address.to_string());
        assert_eq!(of("10.2.0.192.in-addr.arpa").as_deref(), Some("192.0.2.10"));
        let six = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
        assert_eq!(of(six).as_deref(), Some("2001:db8::1"));
        for none in [
            "db.test",
            "1.2.3.in-addr.arpa",
            "256.1.1.1.in-addr.arpa",
            "1.ip6.arpa",
            "in-addr.arpa",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn a_step_of_the_search_list_is_no_name_without_an_answer() {
        let asked = [
            "db.shop.test.svc.test",
            "db.shop.test",
            "gone.test.svc.test",
            "gone.test",
            "api",
            "api.svc.test",
        ];
        let asked = asked.map(|name| (name.to_owned(), 10)).into();
        let known = answers(&[
            ("db.shop.test", to("192.0.2.1")),
            ("api.svc.test", to("192.0.2.2")),
        ]);
        let (names, ns) = unanswered(&asked, &known, &["svc.test".to_owned()]);
        assert_eq!(names, BTreeSet::from(["gone.test", "gone.test.svc.test"]));
        assert_eq!(ns, 20);
    }

    #[test]
    fn files_are_asked_first_and_other_databases_stay() {
        assert_eq!(files_first("passwd: files\nhosts: files dns # as ever\n"), None);
        assert_eq!(
            files_first("passwd: db files\nhosts: resolve [!UNAVAIL=return] files [NOTFOUND=return] myhostname dns\nnetworks: files\n")
                .as_deref(),
            Some("passwd: db files\nhosts: files resolve [!UNAVAIL=return] myhostname dns\nnetworks: files\n")
        );
        assert_eq!(
            files_first("passwd: files").as_deref(),
            Some("passwd: files\nhosts: files dns\n")
        );
        assert_eq!(
            files_first("#hosts: dns\nhosts:\tdns").as_deref(),
            Some("#hosts: dns\nhosts: files dns\n")
        );
    }
}
