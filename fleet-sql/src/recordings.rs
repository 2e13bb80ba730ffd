//! The store as a table.
//!
//! In: which columns and conditions the engine asks for. Out: the objects that can have such rows, and of each the segments that count. Folders
//! are ruled out by conditions on day, hour and host before anything in them is listed.

use crate::condition;
use crate::part::{self, Part};
use crate::query::Listed;
use crate::reader::{self, Readers, Shared};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetAccessPlan;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use futures_util::{StreamExt, TryStreamExt, stream};
use holdup_recording::{COLUMNS, Values};
use holdup_store::Usage;
use holdup_store::layout::HOUR;
use holdup_store::listing::{self, Listing, MAX_HOURS, REQUESTS};
use holdup_store::store::Store;
use holdup_times::Window;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The columns that are folders, outermost first.
const FOLDERS: [&str; 3] = ["day", "hour", "host_id"];

/// What the engine asked for, in this query.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The parts, each with the names of the columns.
    pub(crate) parts: Vec<(Arc<Part>, Arc<Vec<String>>)>,
    /// Objects that were listed.
    pub(crate) listed: u64,
    /// What could not be read while it was listed, with why.
    pub(crate) problems: BTreeSet<String>,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Recordings {
    store: Arc<Store>,
    window: Window,
    schema: TableSchema,
    wrong: Shared,
    asked: Arc<Mutex<Asked>>,
}

impl Recordings {
    pub(crate) fn new(
        store: Arc<Store>,
        window: Window,
        wrong: Shared,
        asked: Arc<Mutex<Asked>>,
    ) -> Recordings {
        let folders = FOLDERS.map(|name| Arc::new(Field::new(name, DataType::Utf8, false)));
        Recordings {
            store,
            window,
            schema: TableSchema::builder(columns())
                .with_table_partition_cols(folders.to_vec())
                .build(),
            wrong,
            asked,
        }
    }

    /// The segments that can have such rows.
    async fn listing(&self, state: &dyn Session, conditions: &[Expr]) -> anyhow::Result<Listing> {
        let folders: Vec<String> = self.hours().await?;
        let values: Vec<[String; 2]> = folders.iter().map(|folder| day_and_hour(folder)).collect();
        let [day, hour, host] = FOLDERS;
        let kept = condition::kept(state, conditions, [day, hour], &values);
        let mut folders: Vec<String> = only(folders, &kept);
        if folders.len() > usize::try_from(MAX_HOURS).unwrap_or(usize::MAX) {
            anyhow::bail!(Usage(format!(
                "the query is about {} hours, at most {MAX_HOURS} (a month) are read; use --last, or a condition on day",
                folders.len()
            )));
        }
        let asks_for_hosts = |one: &Expr| {
            condition::is_about(one, &FOLDERS) && one.column_refs().iter().any(|column| column.name == host)
        };
        if conditions.iter().any(asks_for_hosts) {
            folders = self.hosts(state, conditions, folders).await?;
        }
        listing::of_folders(&self.store, self.window, folders).await
    }

    /// The folders of hours that can have something of the window.
    async fn hours(&self) -> anyhow::Result<Vec<String>> {
        // A segment lasts an hour at most, and one that began in the hour before may reach into this one.
        let first = self.window.from.saturating_sub(HOUR);
        let hours = listing::hours(&self.store).await?;
        let in_window = hours
            .into_iter()
            .filter(|(begin, _)| begin.saturating_add(HOUR) > first && *begin <= self.window.to);
        Ok(in_window.map(|(_, folder)| folder).collect())
    }

    /// The folders of hosts in them that can have such rows.
    async fn hosts(
        &self,
        state: &dyn Session,
        conditions: &[Expr],
        hours: Vec<String>,
    ) -> anyhow::Result<Vec<String>> {
        let found: Vec<Vec<String>> = stream::iter(&hours)
            .map(async |hour| self.store.folders(hour).await)
            .buffered(REQUESTS)
            .try_collect()
            .await?;
        let mut folders = Vec::new();
        let mut values = Vec::new();
        for (hour, hosts) in hours.iter().zip(found) {
            for folder in hosts {
                if let Some(id) = folder.strip_prefix("host_id=") {
                    let [day, hour] = day_and_hour(hour);
                    values.push([day, hour, id.to_owned()]);
                }
                folders.push(format!("{hour}/{folder}"));
            }
        }
        // What is no host's folder has nothing that counts, and would shift the others.
        folders.retain(|folder| folder.contains("/host_id="));
        let kept = condition::kept(state, conditions, FOLDERS, &values);
        Ok(only(folders, &kept))
    }

    /// The parts of a listing without what is known to be damaged.
    fn parts(&self, listing: Listing, columns: Vec<String>) -> Vec<Arc<Part>> {
        let wrong = reader::wrong(&self.wrong);
        let damaged = |place: &str, number: usize| wrong.damaged.contains_key(&(place.to_owned(), number));
        let parts: Vec<Arc<Part>> = listing
            .hosts
            .iter()
            .flat_map(|(host, found)| part::parts(host, found, damaged))
            .map(Arc::new)
            .collect();
        let columns = Arc::new(columns);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.listed = asked.listed.saturating_add(listing.objects);
        asked.problems.extend(listing.problems);
        asked
            .parts
            .extend(parts.iter().map(|part| (part.clone(), columns.clone())));
        parts
    }
}

/// Day and hour of an hour's folder.
fn day_and_hour(folder: &str) -> [String; 2] {
    let (day, hour) = folder.split_once('/').unwrap_or((folder, ""));
    let value = |text: &str| text.split_once('=').map_or(text, |(_, value)| value).to_owned();
    [value(day), value(hour)]
}

fn only(folders: Vec<String>, kept: &[bool]) -> Vec<String> {
    let both = folders.into_iter().zip(kept);
    both.filter(|(_, kept)| **kept)
        .map(|(folder, _)| folder)
        .collect()
}

/// The columns of a segment as the engine has them.
fn columns() -> SchemaRef {
    let kind = |values: Values| match values {
        Values::Integer => DataType::Int64,
        Values::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Values::Number => DataType::Float64,
        Values::Boolean => DataType::Boolean,
        Values::Text => DataType::Utf8,
        Values::Texts => DataType::List(Arc::new(Field::new("element", DataType::Utf8, false))),
    };
    let fields = COLUMNS
        .iter()
        .map(|column| Field::new(column.name, kind(column.values()), true));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// A part as the engine has files: with the values of its folders, and the groups of rows that count.
fn file(part: &Arc<Part>) -> PartitionedFile {
    let mut groups = ParquetAccessPlan::new_none(part.of);
    for group in &part.groups {
        groups.scan(group.number);
    }
    let values = [&part.day, &part.hour, &part.host].map(|value| ScalarValue::Utf8(Some(value.clone())));
    PartitionedFile::new(part.object.place.clone(), part.object.size)
        .with_partition_values(values.to_vec())
        .with_extension(groups)
        .with_extension(part.clone())
}

#[async_trait]
impl TableProvider for Recordings {
    fn schema(&self) -> SchemaRef {
        self.schema.table_schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// The engine asks all conditions again of each row: here they only rule objects out.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // What lists the store is bound to this thread, and the engine's futures are not.
        let runtime = tokio::runtime::Handle::current();
        let listing = tokio::task::block_in_place(|| runtime.block_on(self.listing(state, filters)));
        let listing = listing.map_err(|error| DataFusionError::External(Box::new(Listed(error))))?;
        let schema = self.schema();
        let projected = match projection {
            Some(columns) => Arc::new(schema.project(columns)?),
            None => schema,
        };
        let names = projected.fields().iter().map(|field| field.name().clone());
        let parts = self.parts(listing, names.collect());
        if parts.is_empty() {
            return Ok(Arc::new(EmptyExec::new(projected)));
        }
        let at_once = state.config().target_partitions().max(1);
        let groups = parts.chunks(parts.len().div_ceil(at_once));
        let groups = groups.map(|parts| FileGroup::new(parts.iter().map(file).collect()));
        let source = ParquetSource::new(self.schema.clone())
            .with_parquet_file_reader_factory(Arc::new(Readers {
                store: self.store.clone(),
                wrong: self.wrong.clone(),
            }))
            .with_enable_page_index(false)
            .with_bloom_filter_on_read(false)
            .with_pushdown_filters(true);
        // Its store is never asked: the readers have their own.
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(groups.collect())
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

#[cfg(test)]
mod tests {
    use super::{columns, day_and_hour};
    use holdup_recording::COLUMNS;

    #[test]
    fn folders_are_read_as_engines_read_them() {
        assert_eq!(day_and_hour("day=2026-11-29/hour=08"), ["2026-11-29", "08"]);
    }

    #[test]
    fn the_table_has_the_columns_of_a_segment() {
        assert_eq!(columns().fields().len(), COLUMNS.len());
    }
}
