//! What a table says: the rows in a bad state, and the row with most of what its columns measure.

use super::{Column, Fact, MAX_SENTENCE_BYTES, MIN_PART, MIN_SHARE, MOST_NS, Row, SUMS, Table};
use crate::statements::cells::{Value, clock, number, value};
use holdup_evidence::Ns;
use holdup_evidence::observed::StatementKind;

impl Table {
    /// What it says.
    pub(super) fn facts(self) -> Vec<Fact> {
        let mut facts = Vec::new();
        if self.rows == 0 {
            return facts;
        }
        if let Some((at, row, count)) = &self.blocked {
            let like = match count {
                1 => String::new(),
                more => format!("; {more} rows of {} are blocked by another", self.rows),
            };
            facts.push(Fact {
                kind: StatementKind::Stalled,
                share: None,
                ns: None,
                line: row.line,
                text: format!("{}{}{like}", self.blocked_by(row, *at), self.sentence(row, *at)),
            });
        }
        let waits = self
            .transactions
            .as_ref()
            .and_then(super::transactions::Transactions::fact);
        let told = waits.is_some();
        facts.extend(waits);
        if let Some((kind, at, row, count)) = self.bad.as_ref().filter(|_| !told) {
            let like = match count {
                1 => String::new(),
                more => format!("; {more} rows of {} are in a bad state", self.rows),
            };
            facts.push(Fact {
                kind: *kind,
                share: None,
                ns: None,
                line: row.line,
                text: format!("{}{like}", self.sentence(row, *at)),
            });
        }
        let full = self
            .full
            .as_ref()
            .and_then(|(_, row, rows)| self.full(row, *rows));
        let mut largest = self.largest();
        for mut meant in full.into_iter().chain(self.unread()) {
            // The row itself stands behind what it comes to.
            if let Some(row) = largest.take_if(|largest| largest.line == meant.line) {
                meant.text = format!("{}: {}", meant.text, row.text);
            }
            facts.push(meant);
        }
        facts.extend(largest);
        facts
    }

    /// The row that has most, by the column that says most.
    fn largest(&self) -> Option<Fact> {
        let of = |row: &Row, at: usize| match self.rows {
            1 => self.sentence(row, at),
            rows => format!("{}; the largest of {rows} rows", self.sentence(row, at)),
        };
        let took = |row: &Row, text: String| Fact {
            kind: StatementKind::Took,
            share: None,
            ns: None,
            line: row.line,
            text,
        };
        let by_share = |(share, at, row): &(f64, usize, Row)| Fact {
            share: Some(share / 100.0),
            ..took(row, of(row, *at))
        };
        if let Some(large) = self.share.as_ref().filter(|(share, _, _)| *share >= MIN_SHARE) {
            return Some(by_share(large));
        }
        // What waits comes before what there is much of.
        if let Some((ns, at, row)) = self.length.as_ref().filter(|(ns, _, _)| *ns < MOST_NS) {
            return Some(Fact {
                ns: Some(*ns as Ns),
                ..took(row, of(row, *at))
            });
        }
        let queue = self
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.is_queue());
        let queue = queue.filter_map(|(at, column)| Some((at, column.largest.as_ref()?)));
        let queue = queue.filter(|(_, (most, _))| *most > 0.0);
        let is_of_now = |at: usize| self.columns.get(at).is_some_and(Column::is_of_now);
        let longest = queue.max_by(|(at, (one, _)), (other_at, (other, _))| {
            is_of_now(*at)
                .cmp(&is_of_now(*other_at))
                .then(one.total_cmp(other))
        });
        if let Some((at, (_, row))) = longest {
            return Some(took(row, of(row, at)));
        }
        // Of times without a unit the sums come first, and what was waited for.
        let timed = self.columns.iter().enumerate();
        let timed =
            timed.filter_map(|(at, column)| Some((column.times()?, at, column, column.largest.as_ref()?)));
        let timed = timed.filter(|(_, _, _, (most, _))| *most > 0.0);
        if let Some((weight, at, column, (most, row))) =
            timed.max_by_key(|(weight, at, _, _)| (*weight, usize::MAX - at))
        {
            let is_sum = weight == SUMS && self.rows > 1 && column.sum > 0.0;
            let part = is_sum.then(|| format!(" ({:.0} % of all rows)", 100.0 * most / column.sum));
            return Some(took(row, format!("{}{}", of(row, at), part.unwrap_or_default())));
        }
        if self.of_records {
            return None;
        }
        // Sizes and rates before counts; of those the column that one row has most of. Three of three are less than nearly all
        // of thousands.
        let part = |column: &Column| {
            let (largest, _) = column.largest.as_ref()?;
            let part = if column.sum > 0.0 {
                largest / column.sum
            } else {
                0.0
            };
            (part >= MIN_PART).then_some((column.unit, part * largest.ln_1p()))
        };
        let best = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(at, column)| Some((part(column)?, at, &column.largest.as_ref()?.1)))
            .max_by(|((unit, part), _, _), ((other_unit, other), _, _)| {
                unit.cmp(other_unit).then(part.total_cmp(other))
            });
        match best {
            Some((_, at, row)) => Some(took(row, of(row, at))),
            None => self.share.as_ref().map(by_share),
        }
    }

    /// The cell that names its row: the first, unless that is a figure; then the first that is a text.
    pub(super) fn naming(&self, row: &Row) -> usize {
        let figure = |at: usize| {
            let (Some(column), Some(cell)) = (self.columns.get(at), row.cells.get(at)) else {
                return false;
            };
            match value(&column.name, cell) {
                Some(Value::Count(_)) => column.times().is_some() || column.is_queue() || column.is_tally(),
                told => told.is_some() || cell.is_empty() || clock(cell).is_some(),
            }
        };
        let text = |at: &usize| {
            let column = self.columns.get(*at);
            let cell = row.cells.get(*at).map_or("", String::as_str);
            let switch = matches!(cell, "true" | "false" | "null" | "yes" | "no");
            !figure(*at)
                && !switch
                && number(cell).is_none()
                && column.is_some_and(|column| !column.is_state())
        };
        // A group of rows is no row's name.
        let is =
            |column: &Column, known: &[&str]| known.iter().any(|name| column.name.eq_ignore_ascii_case(name));
        let grouped = self
            .columns
            .first()
            .is_some_and(|first| is(first, &["namespace", "database"]));
        let named = |column: &Column| is(column, &["name", "table"]);
        let placed = self.columns.iter().position(named).filter(|_| grouped);
        if let Some(at) = placed.filter(|at| row.cells.get(*at).is_some_and(|cell| !cell.is_empty())) {
            return at;
        }
        match figure(0) {
            true => (0..row.cells.len()).find(text).unwrap_or(0),
            false => 0,
        }
    }

    /// Who is blocked by whom, where both are numbers of sessions.
    fn blocked_by(&self, row: &Row, at: usize) -> String {
        // A table may have numbers of sessions and of threads: `blocking_thread_id` goes with `waiting_thread_id`.
        let twin = self
            .columns
            .get(at)
            .map(|column| column.name.replace("blocking", "waiting"));
        let twin = twin.filter(|twin| twin.contains("waiting"));
        let named = |twin: String| self.columns.iter().position(|column| column.name == twin);
        let session = twin
            .and_then(named)
            .or_else(|| self.columns.iter().position(Column::is_session));
        let cell = |at: usize| row.cells.get(at).map_or("", String::as_str);
        let numbered = |cell: &str| cell.starts_with(|first: char| first.is_ascii_digit() || first == '{');
        match session.filter(|session| *session != at && numbered(cell(*session)) && numbered(cell(at))) {
            Some(session) => format!("session {} is blocked by {}: ", cell(session), cell(at)),
            None => String::new(),
        }
    }

    /// A row with the names of its columns, the column that matters first.
    fn sentence(&self, row: &Row, first: usize) -> String {
        let named = self.naming(row);
        let name = row.cells.get(named).map_or("", String::as_str);
        let mut found = name.to_owned();
        let pairs = self.columns.iter().zip(&row.cells).enumerate();
        let order = pairs
            .clone()
            .filter(|(at, _)| *at == first)
            .chain(pairs.filter(|(at, _)| *at != first));
        let mut between = ": ";
        for (at, (column, cell)) in order {
            if at == named || cell.is_empty() || found.len() > MAX_SENTENCE_BYTES {
                continue;
            }
            found.push_str(&format!("{between}{} {cell}", column.name));
            between = ", ";
        }
        if first == named
            && let Some(column) = self.columns.get(named)
        {
            found = format!("{} {found}", column.name);
        }
        found
    }
}
