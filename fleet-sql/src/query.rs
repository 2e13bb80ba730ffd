//! A query, from its text to its rows.
//!
//! In: the command line. Out: rows on stdout; on stderr what was read, and what could not be. Rows are printed once all of them are known: what
//! turns out damaged half way is left out, and the query is run again without it.

use crate::cli::Args;
use crate::output::{self, Output};
use crate::part::{Part, Trouble};
use crate::reader::{self, Reader, Shared};
use crate::recordings::{Asked, Recordings};
use crate::say;
use anyhow::{Context, bail};
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use holdup_store::Usage;
use holdup_store::listing::{self, Gone};
use holdup_store::store::{Missing, Store};
use holdup_times::Window;
use jiff::tz::TimeZone;
use std::num::NonZero;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

/// How often a query is begun anew because objects were replaced, or turned out damaged.
const TRIES: u32 = 5;

/// Letters of what the engine says of a query.
const MAX_SAID: usize = 600;

/// The tables of one kind of rows each, and the kind.
const TABLES: [(&str, &str); 5] = [
    ("waits", "wait"),
    ("paths", "path"),
    ("threads", "thread"),
    ("requests", "request"),
    ("figures", "figure"),
];

/// Runs it.
///
/// # Errors
/// When the query makes no sense, the store can't be read, or the memory does not suffice.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let store = Arc::new(Store::open(&args.url, Missing::Refuse)?);
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("cannot start the threads that run queries")?;
    runtime.block_on(queried(args, &store, threads))
}

async fn queried(args: &Args, store: &Arc<Store>, threads: usize) -> anyhow::Result<()> {
    let window = window(args, store).await?;
    let wrong = Shared::default();
    for _ in 0..TRIES {
        let asked = Arc::new(Mutex::new(Asked::default()));
        let recordings = Recordings::new(store.clone(), window, wrong.clone(), asked.clone());
        let done = rows(args, recordings, threads).await;
        let asked = std::mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
        match done {
            Ok(output) => return printed(output, &asked, store, &wrong),
            Err(error) => understood(error, &asked, store, &wrong).await?,
        }
    }
    bail!(Gone)
}

/// The time that is asked for; all, where none is.
async fn window(args: &Args, store: &Store) -> anyhow::Result<Window> {
    let newest = match args.at.is_some() || args.last.is_some() {
        true => listing::newest(store).await?.unwrap_or_default(),
        false => 0,
    };
    let asked = Window::asked(args.at.as_deref(), args.last, newest, &TimeZone::system());
    Ok(asked.map_err(Usage)?)
}

/// All rows of the query.
async fn rows(args: &Args, recordings: Recordings, threads: usize) -> Result<Output, anyhow::Error> {
    let memory = usize::try_from(args.memory).unwrap_or(usize::MAX);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(memory)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .build_arc()?;
    let config = SessionConfig::new()
        .with_information_schema(true)
        .with_target_partitions(threads)
        .with_repartition_file_scans(false);
    let context = SessionContext::new_with_config_rt(config, runtime);
    context.register_table("recordings", Arc::new(recordings))?;
    for (table, kind) in TABLES {
        let view = format!(
            "CREATE VIEW {table} AS SELECT *, boot_id AS boot, unit AS service, cgroup AS container FROM recordings WHERE kind = '{kind}'"
        );
        context.sql(&view).await?.collect().await?;
    }
    // A query reads: nothing in it writes a file, sets an option or makes a table.
    let only_queries = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    let frame = context.sql_with_options(&args.query, only_queries).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let mut output = Output::new(args.format, &schema)?;
    let mut batches = frame.execute_stream().await?;
    while let Some(batch) = batches.next().await {
        output.write(&batch?).map_err(DataFusionError::from)?;
    }
    Ok(output)
}

/// Prints rows, and says what was read for them.
fn printed(output: Output, asked: &Asked, store: &Store, wrong: &Shared) -> anyhow::Result<()> {
    let cut = output.print().context("cannot write the rows")?;
    if cut {
        say(&format!(
            "only the first {} rows are printed; all of them with --format csv",
            output::most()
        ));
    }
    for problem in &asked.problems {
        say(&format!("left out: {problem}"));
    }
    for ((place, number), why) in &reader::wrong(wrong).damaged {
        say(&format!(
            "left out: {place}, segment {}: {why}",
            number.saturating_add(1)
        ));
    }
    let (objects, bytes) = store.counts();
    say(&format!(
        "{objects} of {} listed objects read, {bytes} bytes",
        asked.listed
    ));
    Ok(())
}

/// What becomes of a query that failed: it is run again where objects were replaced or turned out damaged.
///
/// # Errors
/// When it makes no sense to run it again.
async fn understood(
    error: anyhow::Error,
    asked: &Asked,
    store: &Arc<Store>,
    wrong: &Shared,
) -> anyhow::Result<()> {
    if std::mem::take(&mut reader::wrong(wrong).gone) {
        return Ok(());
    }
    let said = reader::wrong(wrong).store.take();
    if let Some(said) = said {
        bail!("cannot read the store: {said}");
    }
    let error = match error.downcast::<DataFusionError>() {
        Ok(error) => error,
        Err(error) => return Err(error),
    };
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => bail!(
            "the query needs more memory than --memory allows; ask for less time, fewer groups or fewer columns, or give it more"
        ),
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Diagnostic(..)
        | DataFusionError::Collection(_) => bail!(Usage(sentence(&error))),
        _ => {}
    }
    if let DataFusionError::External(_) = error.find_root() {
        return listed(error);
    }
    // Whatever fails while it runs may be somebody's object: all that were asked for are looked through.
    let before = reader::wrong(wrong).damaged.len();
    for (part, columns) in &asked.parts {
        checked(part, columns, store, wrong).await;
    }
    if std::mem::take(&mut reader::wrong(wrong).gone) || reader::wrong(wrong).damaged.len() > before {
        return Ok(());
    }
    match error.find_root() {
        DataFusionError::Internal(_) | DataFusionError::ExecutionJoin(_) => bail!("{}", sentence(&error)),
        _ => bail!(Usage(sentence(&error))),
    }
}

/// What listing said is wrong; a listing that another process made old is none.
fn listed(error: DataFusionError) -> anyhow::Result<()> {
    let mut error = error;
    loop {
        error = match error {
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => *inner,
            DataFusionError::External(inner) => {
                let text = inner.to_string();
                let Ok(inner) = inner.downcast::<Listed>() else {
                    bail!("{text}");
                };
                return match inner.0.is::<Gone>() {
                    true => Ok(()),
                    false => Err(inner.0),
                };
            }
            other => bail!("{}", sentence(&other)),
        };
    }
}

/// What went wrong while the store was listed, on its way through the engine.
#[derive(Debug)]
pub(crate) struct Listed(pub(crate) anyhow::Error);

impl std::fmt::Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Listed {}

/// Reads a part to its end, and keeps what is wrong with it.
async fn checked(part: &Arc<Part>, columns: &[String], store: &Arc<Store>, wrong: &Shared) {
    if let Err(trouble) = part.metadata(store).await {
        reader::wrong(wrong).note(part, trouble);
        return;
    }
    for group in &part.groups {
        let read = AssertUnwindSafe(decoded(part, group.number, columns, store, wrong)).catch_unwind();
        let why = match read.await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "its columns cannot be read".to_owned(),
        };
        // What the store did not give is no damage.
        let (gone, store) = {
            let wrong = reader::wrong(wrong);
            (wrong.gone, wrong.store.is_some())
        };
        if !gone && !store {
            let damage = Trouble::Groups(vec![(group.number, format!("its columns: {why}"))]);
            reader::wrong(wrong).note(part, damage);
        }
    }
}

/// Decodes the columns of a segment.
async fn decoded(
    part: &Arc<Part>,
    number: usize,
    columns: &[String],
    store: &Arc<Store>,
    wrong: &Shared,
) -> parquet::errors::Result<()> {
    let reader = Reader {
        store: store.clone(),
        wrong: wrong.clone(),
        part: part.clone(),
    };
    let builder = ParquetRecordBatchStreamBuilder::new(reader).await?;
    let roots = builder
        .parquet_schema()
        .root_schema()
        .get_fields()
        .iter()
        .enumerate();
    let roots = roots.filter(|(_, field)| columns.iter().any(|name| name == field.name()));
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots.map(|(at, _)| at));
    let batches = builder
        .with_row_groups(vec![number])
        .with_projection(mask)
        .build()?;
    batches.try_for_each(|_| std::future::ready(Ok(()))).await
}

/// What the engine says, in one line.
fn sentence(error: &DataFusionError) -> String {
    let said = error.strip_backtrace();
    let words: Vec<&str> = said.split_whitespace().collect();
    words.join(" ").chars().take(MAX_SAID).collect()
}
