//! How objects are called: `day=2026-11-29/hour=08/host_id=db-3.1f2e3d4c5b6a/NAME`.
//!
//! In: heads of segments, names of objects. Out: the other. A name says when its segment began, how long it lasted, and which it is, so that
//! a listing alone tells which objects a question needs. The same segment has the same name however often it is put. Whoever may
//! write to the store can name anything: what a name says is checked against the head when the object is read.

use holdup_evidence::Ns;
use holdup_recording::Head;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Nanoseconds of an hour.
pub const HOUR: i64 = 3_600_000_000_000;

/// How names of segments and of hours end.
const EXTENSION: &str = ".parquet";

/// How the identity of an object with many segments begins; no boot's id does, since its letters are those of hexadecimal numbers.
const HOUR_IDENTITY: &str = "hour-";

/// How the names of counts of dropped segments begin and end.
const DROPPED: (&str, &str) = ("dropped_", ".json");

/// Letters of a host's name in its id.
const NAME_LETTERS: usize = 64;

/// Letters of an identity at most.
const IDENTITY_LETTERS: usize = 64;

/// A segment or an hour of them, as its name tells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// When it began, Unix time, nanoseconds.
    pub from: i64,
    /// How long it lasted, nanoseconds.
    pub length: Ns,
    /// Which it is.
    pub identity: String,
}

impl Name {
    /// Of a segment.
    #[must_use]
    pub fn of(head: &Head) -> Name {
        Name {
            from: head.started_unix,
            length: head.length,
            identity: head.identity(),
        }
    }

    /// Of an object with all of these; the same ones make the same name.
    #[must_use]
    pub fn of_hour<'a>(segments: impl IntoIterator<Item = &'a Name>) -> Name {
        let mut all: Vec<&Name> = segments.into_iter().collect();
        all.sort();
        let texts: Vec<String> = all.iter().map(|name| name.text()).collect();
        let hash = twox_hash::XxHash3_128::oneshot(texts.join("\n").as_bytes());
        let from = all.iter().map(|name| name.from).min().unwrap_or_default();
        let to = all.iter().map(|name| name.to()).max().unwrap_or_default();
        Name {
            from,
            length: u64::try_from(to.saturating_sub(from)).unwrap_or_default(),
            identity: format!("{HOUR_IDENTITY}{hash:032x}"),
        }
    }

    /// When it ended.
    #[must_use]
    pub fn to(&self) -> i64 {
        self.from
            .saturating_add(i64::try_from(self.length).unwrap_or(i64::MAX))
    }

    /// Whether it is an object with many segments.
    #[must_use]
    pub fn is_hour(&self) -> bool {
        self.identity.starts_with(HOUR_IDENTITY)
    }

    /// As an object is called.
    #[must_use]
    pub fn text(&self) -> String {
        let at = timestamp(self.from);
        let nanos = self.from.rem_euclid(1_000_000_000);
        format!(
            "{}.{nanos:09}Z_{}_{}{EXTENSION}",
            at.strftime("%Y%m%dT%H%M%S"),
            self.length,
            self.identity
        )
    }

    /// Reads one; `None` of what is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Name> {
        let mut parts = text.strip_suffix(EXTENSION)?.splitn(3, '_');
        let from: Timestamp = parts.next()?.parse().ok()?;
        let name = Name {
            from: i64::try_from(from.as_nanosecond()).ok()?,
            length: parts.next()?.parse().ok()?,
            identity: parts.next()?.to_owned(),
        };
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let fits = name.identity.len() <= IDENTITY_LETTERS && name.identity.chars().all(plain);
        // One name for one segment: no other spelling of it.
        (fits && name.text() == text).then_some(name)
    }
}

/// What a file in a host's hour is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// One segment.
    Segment(Name),
    /// Many of them.
    Hour(Name),
    /// What its host had to drop, of one boot or of what was dropped in it.
    Dropped,
}

impl Kind {
    fn of(file: &str) -> Option<Kind> {
        if file.starts_with(DROPPED.0) && file.ends_with(DROPPED.1) {
            return Some(Kind::Dropped);
        }
        let name = Name::parse(file)?;
        Some(match name.is_hour() {
            true => Kind::Hour(name),
            false => Kind::Segment(name),
        })
    }
}

/// The id of a host, by what it calls itself and by what nobody else is: its machine's id, of which a part of a hash is shown. 48 bits of a
/// hash of 122 tell two of a million hosts apart, if those had the same name too, and do not tell the id, which systemd wants kept secret.
#[must_use]
pub fn host_id(name: Option<&str>, machine: &str) -> String {
    let hash = twox_hash::XxHash3_128::oneshot(machine.trim().as_bytes()) as u64 >> 16;
    format!("{}.{hash:012x}", plain(name.unwrap_or("host")))
}

/// A name whose letters no store and no engine takes for anything else.
fn plain(name: &str) -> String {
    let plain = |letter: char| match letter.is_ascii_alphanumeric() || "-_.".contains(letter) {
        true => letter,
        false => '_',
    };
    name.chars().take(NAME_LETTERS).map(plain).collect()
}

/// Whether a host with this id may call itself so.
#[must_use]
pub fn is_of(id: &str, name: Option<&str>) -> bool {
    id.rsplit_once('.')
        .is_some_and(|(begin, _)| begin == plain(name.unwrap_or("host")))
}

/// The name in an id.
#[must_use]
pub fn name_in(id: &str) -> &str {
    id.rsplit_once('.').map_or(id, |(name, _)| name)
}

fn timestamp(unix: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(unix)).unwrap_or_default()
}

/// An instant as RFC 3339.
#[must_use]
pub fn rfc3339(unix: i64) -> String {
    timestamp(unix).to_string()
}

/// The folder of the hour of an instant.
#[must_use]
pub fn hour(unix: i64) -> String {
    let at = timestamp(unix).to_zoned(TimeZone::UTC);
    at.strftime("day=%Y-%m-%d/hour=%H").to_string()
}

/// The begin of the hour of a folder.
#[must_use]
pub fn hour_of(folder: &str) -> Option<i64> {
    let (day, hour) = folder.strip_prefix("day=")?.split_once("/hour=")?;
    let begin: Timestamp = format!("{day}T{hour}:00:00Z").parse().ok()?;
    i64::try_from(begin.as_nanosecond()).ok()
}

/// Where a segment of a host belongs.
#[must_use]
pub fn place(id: &str, name: &Name) -> String {
    format!("{}/host_id={id}/{}", hour(name.from), name.text())
}

/// Where counts of an hour belong; `which`: of which part of the host's history.
#[must_use]
pub fn dropped_place(id: &str, hour: &str, which: &str) -> String {
    format!("{hour}/host_id={id}/{}{which}{}", DROPPED.0, DROPPED.1)
}

/// Folder of the hour, host and kind of an object by its place; `None` of what nobody here has written.
#[must_use]
pub fn parse(place: &str) -> Option<(&str, &str, Kind)> {
    let (folder, file) = place.rsplit_once('/')?;
    let (hour, host) = folder.rsplit_once('/')?;
    hour_of(hour)?;
    let host = host.strip_prefix("host_id=").filter(|id| !id.is_empty())?;
    Some((hour, host, Kind::of(file)?))
}

#[cfg(test)]
mod tests {
    use super::{Kind, Name, host_id, hour, hour_of, is_of, parse, place};

    fn name(from: i64) -> Name {
        Name {
            from,
            length: 60_000_000_123,
            identity: "0123456789abcdef-42".to_owned(),
        }
    }

    /// 2026-11-29 08:59:00.000000007 UTC.
    const AT: i64 = 1_795_942_740_000_000_007;

    #[test]
    fn a_name_tells_all_of_a_segment_and_there_is_one_for_each() {
        let text = name(AT).text();
        assert_eq!(
            text,
            "20261129T085900.000000007Z_60000000123_0123456789abcdef-42.parquet"
        );
        assert_eq!(Name::parse(&text), Some(name(AT)));
        for other in [
            "20261129T085900.000000007Z_060000000123_0123456789abcdef-42.parquet",
            "20261129T085900.000000007Z_60000000123_../x.parquet",
            "20261129T085900Z_1_a",
            "x.parquet",
            "",
        ] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        let id = host_id(Some("db-3"), "f00d");
        let at = place(&id, &name(AT));
        assert!(at.starts_with("day=2026-11-29/hour=08/host_id=db-3."), "{at}");
        let (folder, host, kind) = parse(&at).unwrap();
        assert_eq!((host, kind), (id.as_str(), Kind::Segment(name(AT))));
        assert_eq!(hour_of(folder), Some(AT - AT.rem_euclid(super::HOUR)));
        assert_eq!(hour(AT), folder);
        for foreign in [
            "x",
            "day=2026-11-29/hour=08/a.parquet",
            "day=x/hour=08/host_id=a/b",
        ] {
            assert_eq!(parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn two_hosts_of_one_name_are_two_and_no_name_leaves_its_folder() {
        assert_ne!(host_id(Some("web"), "1"), host_id(Some("web"), "2"));
        assert_eq!(host_id(Some("web"), "1\n"), host_id(Some("web"), "1"));
        let id = host_id(Some("../a b/=c"), "1");
        assert!(id.starts_with(".._a_b__c."), "{id}");
        assert!(is_of(&id, Some("../a b/=c")) && !is_of(&id, Some("web")));
        assert!(is_of(&host_id(None, "1"), None));
    }

    #[test]
    fn an_hour_is_called_by_what_it_holds() {
        let (one, two) = (name(AT), name(AT + super::HOUR / 60));
        let both = Name::of_hour([&two, &one]);
        assert_eq!(both, Name::of_hour([&one, &two]));
        assert_ne!(both, Name::of_hour([&one]));
        assert_eq!((both.from, both.to()), (one.from, two.to()));
        assert!(both.is_hour() && Name::parse(&both.text()) == Some(both));
    }
}
