//! Queries of MongoDB that look at very much for the little that they return, as its log of slow operations tells them.
//!
//! In: lines with `docsExamined` and `nreturned`, in JSON or not. Out: the one that looked at most: how many documents
//! it looked at for each that it returned, by which plan, and how many of them it passed over for a `skip`.

use super::tables::Fact;
use crate::find::find;
use crate::gather::text_of;
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;

/// Bytes of a line that are looked at: a query may be long.
const LINE_BYTES: usize = 16 << 10;

/// Documents from which a query looks at many, and from which it does for one that it returns.
const MIN_DOCUMENTS: u64 = 100_000;
const MIN_DOCUMENTS_FOR_ONE: u64 = 1_000;

/// Bytes of a name and of a plan.
const MAX_NAME_BYTES: usize = 120;

#[derive(Debug)]
struct Query {
    of: String,
    plan: String,
    documents: u64,
    keys: Option<u64>,
    returned: u64,
    skip: Option<u64>,
    ns: Option<Ns>,
    number: u64,
}

#[derive(Debug, Default)]
pub(super) struct Examined {
    worst: Option<Query>,
    times: u64,
}

/// The number behind a name: `"docsExamined":947594`, `docsExamined:947594`, `skip: 20`.
fn count(line: &[u8], name: &[u8]) -> Option<u64> {
    let at = find(line, name)?;
    let rest = line.get(at + name.len()..)?;
    let gap = rest
        .iter()
        .take(4)
        .take_while(|byte| matches!(byte, b'"' | b':' | b' '))
        .count();
    let digits: Vec<u8> = rest
        .iter()
        .skip(gap)
        .take(19)
        .take_while(|byte| byte.is_ascii_digit())
        .copied()
        .collect();
    let colon = rest.get(..gap)?.contains(&b':');
    std::str::from_utf8(&digits).ok().filter(|_| colon)?.parse().ok()
}

/// The text behind a name up to one of some signs.
fn words(line: &[u8], name: &[u8], ends: &[u8]) -> Option<String> {
    let at = find(line, name)?;
    let rest = line.get(at + name.len()..)?;
    let end = rest
        .iter()
        .take(MAX_NAME_BYTES)
        .take_while(|byte| !ends.contains(byte))
        .count();
    let text = text_of(rest.get(..end)?).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

impl Examined {
    /// Takes a line.
    pub(super) fn line(&mut self, line: &[u8], number: u64) {
        // Nearly every line ends the look here.
        if find(line, b"xamined").is_none() {
            return;
        }
        let line = line.get(..LINE_BYTES).unwrap_or(line);
        let documents = count(line, b"docsExamined");
        let (Some(documents), Some(returned)) = (documents, count(line, b"nreturned")) else {
            return;
        };
        if documents < MIN_DOCUMENTS || documents / returned.max(1) < MIN_DOCUMENTS_FOR_ONE {
            return;
        }
        // It counts or sums up what it reads, and returns little whatever its index is.
        if [&b"$group"[..], b"$count"]
            .iter()
            .any(|stage| find(line, stage).is_some())
        {
            return;
        }
        self.times += 1;
        if self
            .worst
            .as_ref()
            .is_some_and(|worst| worst.documents >= documents)
        {
            return;
        }
        let of = words(line, b"\"ns\":\"", b"\"")
            .or_else(|| words(line, b" command ", b" {"))
            .or_else(|| words(line, b" query ", b" {"));
        let plan = words(line, b"planSummary\":\"", b"\"").or_else(|| {
            let plan = words(line, b"planSummary: ", b"}")?;
            let (first, rest) = plan.split_once(' ').unwrap_or((plan.as_str(), ""));
            let keyed = rest.trim_start().starts_with('{');
            Some(if keyed { plan } else { first.to_owned() })
        });
        let ms = count(line, b"durationMillis").or_else(|| last_ms(line));
        self.worst = Some(Query {
            of: of.unwrap_or_else(|| "a query".to_owned()),
            plan: plan.unwrap_or_default(),
            documents,
            keys: count(line, b"keysExamined"),
            returned,
            skip: count(line, b"\"skip\"")
                .or_else(|| count(line, b" skip:"))
                .filter(|skip| *skip > 0),
            ns: ms.and_then(|ms| ms.checked_mul(1_000_000)),
            number,
        });
    }

    /// What the worst of them did.
    pub(super) fn end(&mut self) -> Option<Fact> {
        let times = std::mem::take(&mut self.times);
        let worst = self.worst.take()?;
        let each = worst.documents / worst.returned.max(1);
        let keys = worst
            .keys
            .filter(|keys| *keys > 0)
            .map_or_else(String::new, |keys| format!(" and {keys} keys"));
        let plan = match worst.plan.as_str() {
            "" => String::new(),
            plan if plan.contains('{') && !plan.contains('}') => format!(" ({plan} }})"),
            plan => format!(" ({plan})"),
        };
        let skip = worst.skip.map_or_else(String::new, |skip| {
            format!("; skip {skip} walks over what it leaves out, from the beginning, for every page")
        });
        let others = match times {
            1 => String::new(),
            times => format!("; {times} queries are like that"),
        };
        Some(Fact {
            kind: StatementKind::Took,
            share: None,
            ns: worst.ns,
            line: worst.number,
            text: format!(
                "{}: {} documents{keys} were read for {} that were returned, {each} for each{plan}: its index does not fit the filter or \
                 the order{skip}{others}",
                worst.of, worst.documents, worst.returned
            ),
        })
    }
}

/// ` 5432ms` at the end of a line.
fn last_ms(line: &[u8]) -> Option<u64> {
    let word = line.trim_ascii_end().rsplit(|byte| *byte == b' ').next()?;
    std::str::from_utf8(word.strip_suffix(b"ms")?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::read_text;

    fn told(text: &str) -> Vec<String> {
        let all = read_text("m", text.as_bytes()).observed.statements;
        let texts = all.into_iter().map(|one| one.text);
        texts.filter(|text| text.contains("were read for")).collect()
    }

    #[test]
    fn a_page_far_behind_the_beginning() {
        let text = "{\"t\":{\"$date\":\"2024-02-03T10:00:01.000+00:00\"},\"s\":\"I\",\"c\":\"COMMAND\",\"id\":51803,\"ctx\":\"conn9\",\"msg\":\"Slow query\",\
            \"attr\":{\"type\":\"command\",\"ns\":\"shop.orders\",\"command\":{\"find\":\"orders\",\"skip\":400000,\"limit\":20},\"planSummary\":\"IXSCAN { at: -1 }\",\
            \"keysExamined\":400020,\"docsExamined\":400020,\"nreturned\":20,\"durationMillis\":2104}}\n";
        let told = told(text);
        assert!(
            told[0].starts_with(
                "shop.orders: 400020 documents and 400020 keys were read for 20 that were returned, 20001 for each (IXSCAN { at: -1 })"
            ),
            "{told:?}"
        );
        assert!(told[0].contains("skip 400000"), "{told:?}");
    }

    #[test]
    fn lines_of_older_servers() {
        let text = "2017-05-06T07:08:09.100+0000 I COMMAND  [conn41] command shop.carts command: find { find: \"carts\" } planSummary: COLLSCAN \
            keysExamined:0 docsExamined:2501000 cursorExhausted:1 numYields:19539 nreturned:1 reslen:210 locks:{} protocol:op_query 1830ms\n";
        let told = told(text);
        assert!(
            told[0].contains("2501000 documents were read for 1 that were returned"),
            "{told:?}"
        );
    }

    #[test]
    fn what_returns_what_it_looks_at_is_well() {
        let text = "{\"msg\":\"Slow query\",\"attr\":{\"ns\":\"a.b\",\"docsExamined\":500000,\"nreturned\":500000,\"durationMillis\":900}}\n\
            {\"msg\":\"Slow query\",\"attr\":{\"ns\":\"a.b\",\"docsExamined\":2000,\"nreturned\":1}}\n";
        assert_eq!(told(text), Vec::<String>::new());
        let counts = "{\"msg\":\"Slow query\",\"attr\":{\"ns\":\"a.b\",\"command\":{\"aggregate\":\"b\",\"pipeline\":[{\"$group\":{\"_id\":null}}]},\
            \"docsExamined\":500000,\"nreturned\":1,\"durationMillis\":900}}\n";
        assert_eq!(told(counts), Vec::<String>::new());
        assert_eq!(
            told("nreturned docsExamined:9999999\nnreturned:\n"),
            Vec::<String>::new()
        );
    }
}
