//! The image for containers: one layer with the binary and nothing else, in the layout that every container runtime reads
//! (the OCI image specification, version 1.0). It is made of JSON and checksums, so no daemon is needed.

use super::{Release, packages, sha256};
use anyhow::Context;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// `holdup-0.1.0-image.tar`, to be loaded with `podman load`, `ctr image import` or `skopeo copy oci-archive:…`.
pub(super) fn make(release: &Release) -> anyhow::Result<PathBuf> {
    let files = folder()?;
    let binary = files.path().join("usr/bin/holdup");
    std::fs::create_dir_all(files.path().join("usr/bin")).context("make the image's folders")?;
    std::fs::copy(&release.binary, &binary).context("put the binary into the image")?;
    // What it works in: without a file system of its own for it, a container that may not write has none.
    std::fs::create_dir(files.path().join("tmp")).context("make the image's folders")?;
    std::fs::set_permissions(files.path().join("tmp"), Permissions::from_mode(0o1777))
        .context("open the image's folder for what is written meanwhile")?;
    let tar = packages::tarred(release, files.path())?;
    let contents = sha256(&tar)?;

    let layout = folder()?;
    let blobs = layout.path().join("blobs/sha256");
    std::fs::create_dir_all(&blobs).context("make the folder of the image")?;
    let layer = release.to.join("layer.tar.gz");
    packages::compress(&tar, &layer)?;
    let layer = keep_file(&blobs, &layer, LAYER)?;
    let config = json!({
        "created": time(release)?,
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/usr/bin/holdup"], "Env": ["PATH=/usr/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{contents}")]},
        "history": [{"created": time(release)?, "created_by": "cargo xtask dist"}],
    });
    let config = keep(&blobs, &config, CONFIG)?;
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
    let mut manifest = keep(&blobs, &manifest, MANIFEST)?;
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    write(
        &layout.path().join("index.json"),
        &json!({"schemaVersion": 2, "manifests": [manifest]}),
    )?;
    write(
        &layout.path().join("oci-layout"),
        &json!({"imageLayoutVersion": "1.0.0"}),
    )?;
    let tar = packages::tarred(release, layout.path())?;
    let file = release.to.join(format!("holdup-{}-image.tar", release.version));
    std::fs::rename(&tar, &file).with_context(|| format!("write {}", file.display()))?;
    Ok(file)
}

fn folder() -> anyhow::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir().context("make a folder for the image")?;
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).context("open that folder")?;
    Ok(folder)
}

/// The commit's time as JSON has times.
fn time(release: &Release) -> anyhow::Result<String> {
    let mut date = std::process::Command::new("date");
    date.args([
        "--utc",
        "+%Y-%m-%dT%H:%M:%SZ",
        &format!("--date=@{}", release.made),
    ]);
    Ok(crate::process::output(&mut date)?.trim().to_owned())
}

/// Puts a file among the image's, under its checksum, and says what points to it.
fn keep_file(blobs: &Path, file: &Path, kind: &str) -> anyhow::Result<Value> {
    let sum = sha256(file)?;
    let size = std::fs::metadata(file)
        .context("look at a part of the image")?
        .len();
    let to = blobs.join(&sum);
    std::fs::copy(file, &to).context("put a part into the image")?;
    std::fs::remove_file(file).context("put a part into the image")?;
    Ok(json!({"mediaType": kind, "digest": format!("sha256:{sum}"), "size": size}))
}

fn keep(blobs: &Path, value: &Value, kind: &str) -> anyhow::Result<Value> {
    let file = blobs.join("new");
    write(&file, value)?;
    keep_file(blobs, &file, kind)
}

fn write(file: &Path, value: &Value) -> anyhow::Result<()> {
    std::fs::write(file, value.to_string()).with_context(|| format!("write {}", file.display()))
}
