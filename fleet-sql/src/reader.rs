//! How the engine gets bytes of objects: through the store that `holdup fleet show` uses, so that both read, retry and count alike.
//!
//! In: a part of a query. Out: what of its object is asked for: the footer, and the columns of the groups that count. What goes wrong is
//! kept, because the engine's own errors do not say of which object they are.

use crate::part::{Part, Trouble};
use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::error::DataFusionError;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use holdup_store::listing::Unreadable;
use holdup_store::store::Store;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Columns of one object that are asked for at a time.
const REQUESTS: usize = 8;

/// What went wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Wrong {
    /// An object is gone that was listed: the store is to be listed again.
    pub(crate) gone: bool,
    /// What the store did not give.
    pub(crate) store: Option<String>,
    /// Segments that are damaged, by object and group, with why.
    pub(crate) damaged: BTreeMap<(String, usize), String>,
}

impl Wrong {
    /// Keeps what is wrong with a part; what the engine is told.
    pub(crate) fn note(&mut self, part: &Part, trouble: Trouble) -> ParquetError {
        let said = match trouble {
            Trouble::Object(Unreadable::Gone) => {
                self.gone = true;
                "it is gone".to_owned()
            }
            Trouble::Object(Unreadable::Store(error)) => {
                let said = error.to_string();
                self.store.get_or_insert_with(|| said.clone());
                said
            }
            Trouble::Object(Unreadable::Damaged(why)) => {
                for group in &part.groups {
                    self.damaged
                        .insert((part.object.place.clone(), group.number), why.clone());
                }
                why
            }
            Trouble::Groups(groups) => {
                let said = groups.first().map(|(_, why)| why.clone()).unwrap_or_default();
                for (number, why) in groups {
                    self.damaged.insert((part.object.place.clone(), number), why);
                }
                said
            }
        };
        ParquetError::General(format!("{}: {said}", part.object.place))
    }
}

/// The same, for all who read at once.
pub(crate) type Shared = Arc<Mutex<Wrong>>;

/// What went wrong.
pub(crate) fn wrong(shared: &Shared) -> std::sync::MutexGuard<'_, Wrong> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes readers of parts.
#[derive(Debug)]
pub(crate) struct Readers {
    pub(crate) store: Arc<Store>,
    pub(crate) wrong: Shared,
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        _: usize,
        file: PartitionedFile,
        _: Option<usize>,
        _: &ExecutionPlanMetricsSet,
    ) -> datafusion::error::Result<Box<dyn AsyncFileReader + Send>> {
        let none = || DataFusionError::Internal("a file that is no part".to_owned());
        let part = file.extension::<Arc<Part>>().ok_or_else(none)?.clone();
        Ok(Box::new(Reader {
            store: self.store.clone(),
            wrong: self.wrong.clone(),
            part,
        }))
    }
}

/// Reads a part.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    pub(crate) store: Arc<Store>,
    pub(crate) wrong: Shared,
    pub(crate) part: Arc<Part>,
}

impl Reader {
    async fn bytes(self, range: Range<u64>) -> Result<Bytes> {
        // What a footer says of places is anybody's.
        if range.start > range.end || range.end > self.part.object.size {
            return Err(ParquetError::EOF("its columns lie behind its end".to_owned()));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let read = self.store.range(&self.part.object.place, range).await;
        read.map_err(|error| wrong(&self.wrong).note(&self.part, Trouble::Object(error.into())))
    }
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        self.clone().bytes(range).boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        let reader = self.clone();
        let requests = ranges.into_iter().map(move |range| reader.clone().bytes(range));
        stream::iter(requests).buffered(REQUESTS).try_collect().boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        let reader = self.clone();
        async move {
            let read = reader.part.metadata(&reader.store).await;
            read.map(Arc::new)
                .map_err(|trouble| wrong(&reader.wrong).note(&reader.part, trouble))
        }
        .boxed()
    }
}
