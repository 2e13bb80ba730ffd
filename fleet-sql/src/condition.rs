//! Conditions of a query that folders answer.
//!
//! In: the conditions that the engine hands to a table, and folders by their values of some columns. Out: which of those folders can have rows. A
//! condition that asks for anything else, or that cannot be evaluated, rules nothing out: the engine asks it again of each row.

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use std::sync::Arc;

/// Whether a condition is about these columns and no other.
pub(crate) fn is_about(condition: &Expr, columns: &[&str]) -> bool {
    let asked = condition.column_refs();
    !asked.is_empty()
        && !condition.is_volatile()
        && asked.iter().all(|column| columns.contains(&column.name.as_str()))
}

/// Which folders can have rows.
pub(crate) fn kept<const N: usize>(
    state: &dyn Session,
    conditions: &[Expr],
    columns: [&str; N],
    folders: &[[String; N]],
) -> Vec<bool> {
    let mut kept = vec![true; folders.len()];
    let Some((schema, batch)) = batch(columns, folders) else {
        return kept;
    };
    for condition in conditions.iter().filter(|one| is_about(one, &columns)) {
        let Some(answer) = answer(state, condition, &schema, &batch) else {
            continue;
        };
        for (kept, at) in kept.iter_mut().zip(0..answer.len()) {
            *kept &= answer.is_valid(at) && answer.value(at);
        }
    }
    kept
}

fn batch<const N: usize>(columns: [&str; N], folders: &[[String; N]]) -> Option<(DFSchema, RecordBatch)> {
    let fields = columns
        .iter()
        .map(|name| Field::new(*name, DataType::Utf8, false));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
    let values = (0..N).map(|column| {
        let values = folders
            .iter()
            .map(|folder| folder.get(column).map(String::as_str));
        Arc::new(values.collect::<StringArray>()) as ArrayRef
    });
    let batch = RecordBatch::try_new(schema.clone(), values.collect()).ok()?;
    Some((DFSchema::try_from(schema).ok()?, batch))
}

fn answer(
    state: &dyn Session,
    condition: &Expr,
    schema: &DFSchema,
    batch: &RecordBatch,
) -> Option<BooleanArray> {
    let condition = state.create_physical_expr(condition.clone(), schema).ok()?;
    let answer = condition
        .evaluate(batch)
        .ok()?
        .into_array(batch.num_rows())
        .ok()?;
    answer.as_any().downcast_ref::<BooleanArray>().cloned()
}

#[cfg(test)]
mod tests {
    use super::{is_about, kept};
    use datafusion::prelude::{SessionContext, col, lit, random};

    #[test]
    fn conditions_on_folders_rule_folders_out_and_others_do_not() {
        let state = SessionContext::new().state();
        let folders = ["08", "09"].map(|hour| ["2026-11-29".to_owned(), hour.to_owned()]);
        let kept = |condition| kept(&state, &[condition], ["day", "hour"], &folders);
        assert_eq!(kept(col("hour").eq(lit("09"))), [false, true]);
        assert_eq!(kept(col("day").gt(lit("2026-11-29"))), [false, false]);
        let either = col("hour").eq(lit("08")).or(col("cause").eq(lit("idle")));
        assert_eq!(kept(either), [true, true]);
        assert_eq!(
            kept(col("hour").eq(lit(datafusion::common::ScalarValue::Utf8(None)))),
            [false, false]
        );
        assert!(!is_about(
            &random().gt(lit(0.5)).and(col("day").eq(lit("x"))),
            &["day"]
        ));
    }
}
