//! A store, and what was read of it.
//!
//! In: a URL, and the environment for S3. Out: objects by their place below it. What is put is there when `put` returns: a
//! directory's files are synced to the disk. How many objects and bytes were read is counted.

use anyhow::{Context, bail};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long one request is tried again.
const RETRY: Duration = Duration::from_secs(20);

/// Objects of one listing: a month of minutes of two hundred hosts.
const MAX_LISTED: usize = 10_000_000;

/// An object as a listing has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its place below the URL.
    pub place: String,
    /// Its size, bytes.
    pub size: u64,
}

/// What becomes of a directory that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is made.
    Make,
    /// That is an error.
    Refuse,
}

/// What was read.
#[derive(Debug, Default)]
struct Read {
    objects: HashSet<String>,
    bytes: u64,
}

/// A store.
#[derive(Debug)]
pub struct Store {
    inner: Arc<dyn ObjectStore>,
    prefix: Path,
    read: Mutex<Read>,
}

impl Store {
    /// Opens what a URL names. Nothing is asked of it yet.
    ///
    /// # Errors
    /// When it is none that this program knows.
    pub fn open(url: &str, missing: Missing) -> anyhow::Result<Store> {
        let wrong = || {
            crate::Usage(format!(
                "{url:?} is no store; use s3://BUCKET/PREFIX or file:///DIRECTORY"
            ))
        };
        if let Some(path) = url.strip_prefix("file://") {
            if !path.starts_with('/') {
                bail!(wrong());
            }
            let failed = || format!("cannot use the directory {path:?} as a store");
            if missing == Missing::Make {
                std::fs::create_dir_all(path).with_context(failed)?;
            }
            let store = LocalFileSystem::new_with_prefix(path).with_context(failed)?;
            return Ok(Store::new(Arc::new(store.with_fsync(true)), Path::default()));
        }
        let rest = url.strip_prefix("s3://").ok_or_else(wrong)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            bail!(wrong());
        }
        // Clients are made with it, and refuse to be made without one. That it is there already is no error.
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_retry(RetryConfig {
                retry_timeout: RETRY,
                ..RetryConfig::default()
            });
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        if endpoint.is_some_and(|endpoint| is_loopback(&endpoint)) {
            builder = builder.with_allow_http(true);
        }
        let store = builder.build().with_context(|| format!("cannot use {url}"))?;
        let prefix = Path::parse(prefix.trim_matches('/')).map_err(|_| wrong())?;
        Ok(Store::new(Arc::new(store), prefix))
    }

    /// One that is there already.
    #[must_use]
    pub fn new(inner: Arc<dyn ObjectStore>, prefix: Path) -> Store {
        Store {
            inner,
            prefix,
            read: Mutex::default(),
        }
    }

    fn at(&self, place: &str) -> object_store::Result<Path> {
        let path = match self.prefix.as_ref() {
            "" => place.to_owned(),
            prefix => format!("{prefix}/{place}"),
        };
        Ok(Path::parse(path)?)
    }

    fn below(&self, path: &Path) -> Option<String> {
        let place = path.as_ref().strip_prefix(self.prefix.as_ref())?;
        Some(place.trim_start_matches('/').to_owned())
    }

    fn count(&self, place: &str, bytes: usize) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.objects.insert(place.to_owned());
        read.bytes += bytes as u64;
    }

    /// Objects that something was read of, and bytes.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        (read.objects.len() as u64, read.bytes)
    }

    /// Puts an object; it is there when this returns. One of the same place is replaced.
    ///
    /// # Errors
    /// What the store says.
    pub async fn put(&self, place: &str, bytes: Bytes) -> object_store::Result<()> {
        self.inner.put(&self.at(place)?, bytes.into()).await.map(drop)
    }

    /// Removes an object; one that is not there is removed.
    ///
    /// # Errors
    /// What the store says.
    pub async fn delete(&self, place: &str) -> object_store::Result<()> {
        match self.inner.delete(&self.at(place)?).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            other => other,
        }
    }

    /// All objects below a folder.
    ///
    /// # Errors
    /// What the store says.
    pub async fn list(&self, folder: &str) -> object_store::Result<Vec<Listed>> {
        let all = self.inner.list(Some(&self.at(folder)?)).take(MAX_LISTED);
        all.try_filter_map(async |object| {
            let place = self.below(&object.location);
            Ok(place.map(|place| Listed {
                place,
                size: object.size,
            }))
        })
        .try_collect()
        .await
    }

    /// The names of folders in a folder, sorted.
    ///
    /// # Errors
    /// What the store says.
    pub async fn folders(&self, folder: &str) -> object_store::Result<Vec<String>> {
        let at = self.at(folder)?;
        let found = self.inner.list_with_delimiter(Some(&at)).await?;
        let names = found.common_prefixes.iter();
        let mut names: Vec<String> = names
            .filter_map(|path| path.filename().map(str::to_owned))
            .collect();
        names.sort();
        Ok(names)
    }

    /// A whole object, of the size that its listing had.
    ///
    /// # Errors
    /// What the store says.
    pub async fn get(&self, object: &Listed) -> object_store::Result<Bytes> {
        self.range(&object.place, 0..object.size).await
    }

    /// A part of an object.
    ///
    /// # Errors
    /// What the store says.
    pub async fn range(&self, place: &str, range: Range<u64>) -> object_store::Result<Bytes> {
        let options = GetOptions::default();
        let options = match range.is_empty() {
            true => options,
            false => options.with_range(Some(range)),
        };
        let bytes = self
            .inner
            .get_opts(&self.at(place)?, options)
            .await?
            .bytes()
            .await?;
        self.count(place, bytes.len());
        Ok(bytes)
    }
}

/// Whether an endpoint is on this machine, so that nobody on the way reads what goes there.
fn is_loopback(endpoint: &str) -> bool {
    let Some(rest) = endpoint.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return false;
    }
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// What runs requests: one thread, since nothing here computes while it waits.
///
/// # Errors
/// When the system does not give what it needs.
pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for requests")
}

#[cfg(test)]
mod tests {
    use super::{Missing, Store, is_loopback};

    #[test]
    fn only_this_machine_is_asked_without_tls() {
        for yes in ["http://127.0.0.1:9000", "http://localhost", "http://[::1]:9/x"] {
            assert!(is_loopback(yes), "{yes}");
        }
        for no in [
            "https://127.0.0.1",
            "http://10.0.0.1",
            "http://127.0.0.1@evil",
            "http://localhost.evil",
            "",
        ] {
            assert!(!is_loopback(no), "{no}");
        }
    }

    #[test]
    fn a_bucket_is_opened_without_a_request() {
        Store::open("s3://ops/holdup/", Missing::Refuse).unwrap();
        Store::open("s3://ops", Missing::Make).unwrap();
    }

    #[test]
    fn what_is_no_store_is_said_so() {
        for url in ["/tmp/x", "gopher://x", "s3://", "file://x"] {
            let error = Store::open(url, Missing::Refuse).unwrap_err();
            assert!(error.to_string().contains("use s3://BUCKET"), "{error}");
        }
    }
}
