//! `explain()` of MongoDB: whether a query reads a whole collection, and how many documents it examines for those that it returns.
//!
//! In: a document as its shells print it, with names in quotation marks or without, whole or cut. Out: a statement about the query.
//! Source: MongoDB's manual, "Explain Results".

use super::current_op::Pairs;
use crate::format::{Family, Format, LineReader, Sureness, Understood};
use crate::formats::report::{holds, name_of, number, rounded};
use crate::gather::{Out, text_of};
use crate::statements;
use holdup_evidence::Ns;
use holdup_evidence::observed::{Quote, StatementKind};
use holdup_evidence::units::duration;

pub(crate) static FORMAT: Format =
    Format::lines::<Reader>("mongo-explain", Family::Databases, recognise).about("explain() of MongoDB");

/// Milliseconds from which MongoDB itself calls an operation slow (`slowOpThresholdMs`, 100 where nobody sets it).
const SLOW_MS: f64 = 100.0;

/// Bytes of a line that are looked at, and pairs of it.
const LINE_BYTES: usize = 256 << 10;
const MAX_PAIRS: usize = 20_000;

fn recognise(head: &[u8]) -> Sureness {
    let has = |name: &str| holds(head, name);
    let now = has("totalDocsExamined") && (has("executionTimeMillis") || has("nReturned"));
    let before = has("nscannedObjects") && has("cursor");
    let plan = has("winningPlan") && has("queryPlanner");
    Sureness::certain_if(now || before || plan)
}

#[derive(Debug, Default)]
struct Reader {
    collection: String,
    returned: Option<f64>,
    ms: Option<f64>,
    keys: Option<f64>,
    documents: Option<f64>,
    /// Whether a stage reads the whole collection, or sorts what no index has in order.
    scans: bool,
    sorts: bool,
    on_disk: bool,
    index: String,
    /// Plans that were not chosen follow.
    rejected: bool,
    of_old_server: bool,
    quote: Option<Quote>,
}

impl Reader {
    /// Takes a name and its value; whether they are the server's.
    fn pair(&mut self, name: &str, value: &str, out: &mut Out<'_>) -> bool {
        let figure = number(value);
        match name {
            "queryPlanner" | "explainVersion" if self.documents.is_some() => self.end(out),
            "namespace" | "ns" if self.collection.is_empty() => self.collection = name_of(value),
            "rejectedPlans" | "allPlansExecution" => self.rejected = true,
            "executionStats" => self.rejected = false,
            "stage" | "cursor" if !self.rejected => {
                self.scans |= matches!(value, "COLLSCAN" | "BasicCursor");
                self.sorts |= value == "SORT";
                self.of_old_server |= name == "cursor";
                if let Some(index) = value.strip_prefix("BtreeCursor ") {
                    self.index = name_of(index);
                }
            }
            "indexName" if self.index.is_empty() && !self.rejected => self.index = name_of(value),
            "usedDisk" => self.on_disk |= value == "true",
            // A field of the application's may have the name of the old server's count.
            "n" if !self.of_old_server => return false,
            "nReturned" | "n" if self.returned.is_none() => self.returned = figure,
            "executionTimeMillis" | "millis" if self.ms.is_none() => self.ms = figure,
            "totalKeysExamined" | "nscanned" if self.keys.is_none() => self.keys = figure,
            "totalDocsExamined" | "nscannedObjects" if self.documents.is_none() => self.documents = figure,
            _ => return false,
        }
        self.quote.get_or_insert_with(|| out.here());
        true
    }
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> Understood {
        let text = text_of(line.get(..LINE_BYTES).unwrap_or(line));
        let mut any = false;
        for (name, value) in Pairs(&text).take(MAX_PAIRS) {
            any |= self.pair(name, value, out);
        }
        // What else is in the document is the filter, which is data of the application; the line of a log ends otherwise.
        let of_document = text
            .trim_end()
            .ends_with(['{', '}', '[', ']', ',', '(', ')', ';', '"', '\'']);
        match any || of_document {
            true => Understood::Evidence,
            false => Understood::No,
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let read = std::mem::take(self);
        let Some(quote) = read.quote else { return };
        let query = match read.collection.as_str() {
            "" => "the query".to_owned(),
            collection => format!("the query on {collection}"),
        };
        let how = match (read.scans, read.index.as_str()) {
            (true, _) => "reads the whole collection (COLLSCAN)".to_owned(),
            (false, "") => "is planned".to_owned(),
            (false, index) => format!("uses the index {index}"),
        };
        let mut text = format!("{query} {how}");
        if let Some(ms) = read.ms {
            text.push_str(&format!(" and takes {}", duration(ns(ms))));
        }
        if let Some((documents, returned)) = read.documents.zip(read.returned) {
            text.push_str(&format!(
                ": it examines {documents:.0} documents to return {returned:.0}"
            ));
            if returned > 0.0 && documents > returned {
                text.push_str(&format!(", {} for each", rounded(documents / returned)));
            }
        }
        if let Some(keys) = read.keys.filter(|keys| *keys > 0.0) {
            text.push_str(&format!("; {keys:.0} keys of the index"));
        }
        if read.sorts {
            text.push_str(if read.on_disk {
                "; it sorts on disk"
            } else {
                "; it sorts in memory"
            });
        }
        let slow = read.ms.is_none_or(|ms| ms >= SLOW_MS);
        let known = read.ms.is_some() || read.scans;
        let kind = match slow {
            true => StatementKind::Took,
            false => {
                text.push_str(&format!("; less than {SLOW_MS:.0} ms is well"));
                StatementKind::WithinNorm
            }
        };
        if known {
            out.statement(statements::one(kind, read.ms.map(ns), quote, text));
        }
    }
}

fn ns(ms: f64) -> Ns {
    (ms.clamp(0.0, 1e12) * 1e6) as Ns
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use holdup_evidence::observed::StatementKind;

    const PLAN: &str = "{\n  queryPlanner: {\n    namespace: 'shop.orders',\n    winningPlan: { stage: 'COLLSCAN', direction: 'forward' },\n\
        \x20   rejectedPlans: []\n  },\n  executionStats: {\n    executionSuccess: true,\n    nReturned: 20,\n    executionTimeMillis: 1840,\n\
        \x20   totalKeysExamined: 0,\n    totalDocsExamined: 500000,\n    executionStages: { stage: 'COLLSCAN', nReturned: 20 }\n  }\n}\n";

    #[test]
    fn a_query_that_reads_the_whole_collection() {
        let reading = read_text("m", PLAN.as_bytes());
        assert_eq!(reading.observed.sources[0].format, "mongo-explain");
        let told = "the query on shop.orders reads the whole collection (COLLSCAN) and takes 1.84 s: it examines 500000 documents to return \
                    20, 25000 for each";
        assert_eq!(reading.texts(), [told]);
        assert_eq!(reading.observed.statements[0].kind, StatementKind::Took);
    }

    #[test]
    fn a_query_that_an_index_serves_is_well() {
        let text = r#"{"queryPlanner":{"namespace":"shop.orders","winningPlan":{"stage":"FETCH","inputStage":{"stage":"IXSCAN","indexName":"by_day"}},"rejectedPlans":[{"stage":"COLLSCAN"}]},"executionStats":{"nReturned":20,"executionTimeMillis":2,"totalKeysExamined":20,"totalDocsExamined":20}}"#;
        let reading = read_text("m", text.as_bytes());
        assert_eq!(reading.observed.statements[0].kind, StatementKind::WithinNorm);
        assert!(
            reading.texts()[0].starts_with("the query on shop.orders uses the index by_day and takes 2.0 ms"),
            "{reading:?}"
        );
    }

    #[test]
    fn other_documents_are_none() {
        let text = "{ stage: 'COLLSCAN', n: 3 }\n";
        assert_ne!(
            read_text("m", text.as_bytes()).observed.sources[0].format,
            "mongo-explain"
        );
    }
}
