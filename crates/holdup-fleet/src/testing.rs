//! What tests share: stores in memory, stores that fail at a request, segments.

use crate::store::Store;
use async_trait::async_trait;
use futures_util::stream::BoxStream;
use holdup_evidence::{Cause, SystemFacts};
use holdup_model::attributed::Attributed;
use holdup_model::report::{Backend, SubjectKind};
use holdup_recording::{Head, Segment};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// 2026-11-29 08:00 UTC.
pub(crate) const EIGHT: i64 = 1_795_939_200_000_000_000;

const MINUTE: u64 = 60_000_000_000;

/// An empty store, and what it is on.
pub(crate) fn memory() -> (Store, Arc<InMemory>) {
    let inner = Arc::new(InMemory::new());
    (Store::new(inner.clone(), Path::default()), inner)
}

/// A segment of that minute of an hour.
pub(crate) fn segment(host: &str, minute: u64) -> Segment {
    let started = 1_000_000_000 + minute * MINUTE;
    let unix = EIGHT + (minute * MINUTE).cast_signed();
    let head = Head {
        host: Some(host.to_owned()),
        boot_id: Some(format!("{:016x}-boot", host.len())),
        kernel: Some("6.1".to_owned()),
        ..Head::new((SubjectKind::Attach, Backend::Bpf), (started, unix), MINUTE)
    };
    let attributed: Attributed = serde_json::from_value(serde_json::json!({
        "of_threads": true, "elapsed": MINUTE, "wall": MINUTE,
        "waits": [{
            "cause": Cause::DiskSync, "ns": 1_000_000_007 + minute, "count": 3, "max": 900_000_000,
            "resource": {"name": "nvme0n1"}, "asker": {"name": {"pid": 7, "tid": 7, "process": "db"}},
        }],
    }))
    .expect("only fields that exist");
    Segment {
        head,
        attributed,
        facts: SystemFacts::default(),
        look: None,
    }
}

/// Puts one into a recorder's directory.
pub(crate) fn add_segment(directory: &std::path::Path, host: &str, minute: u64) -> Head {
    let segment = segment(host, minute);
    let path = directory.join(format!("holdup-{minute:02}.parquet"));
    holdup_recording::save(&segment, &path).unwrap();
    segment.head
}

/// A store whose so-manieth changing request fails, before or after it was done.
#[derive(Debug)]
pub(crate) struct Failing {
    inner: Arc<InMemory>,
    left: AtomicUsize,
}

impl Failing {
    pub(crate) fn at(inner: Arc<InMemory>, request: usize) -> Failing {
        Failing {
            inner,
            left: AtomicUsize::new(request),
        }
    }

    /// Whether this request is the one.
    fn fails(&self) -> bool {
        let before = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                Some(left.wrapping_sub(1))
            });
        before == Ok(0)
    }

    fn error() -> object_store::Error {
        object_store::Error::Generic {
            store: "test",
            source: "this request fails".into(),
        }
    }
}

impl std::fmt::Display for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failing")
    }
}

#[async_trait]
impl ObjectStore for Failing {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if self.fails() {
            return Err(Failing::error());
        }
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        if self.fails() {
            return Box::pin(futures_util::stream::once(async { Err(Failing::error()) }));
        }
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
