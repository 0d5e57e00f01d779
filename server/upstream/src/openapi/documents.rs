//! Reads the documents of a description: those in the folder of a file, or at the origin of an address. Finds out whether
//! they have changed.

use super::client::{Answer, Client, Validators};
use codecall_base::files;
use codecall_base::offload;
use codecall_config::OpenApiConfig;
use codecall_openapi::limits::MAX_BYTES;
use codecall_openapi::{Documents, Parsed};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use url::Url;

/// Where documents may come from.
enum Source<'a> {
    /// Files in this folder or below it.
    Folder(PathBuf),
    /// Addresses of this origin.
    Origin(url::Origin, &'a Client),
}

/// The documents of a description as they were when they were looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentVersions(Vec<(Url, Version)>);

/// A document as it was when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Version {
    /// There was none.
    Missing,
    /// A file: when it was written, and its length.
    File(SystemTime, u64),
    /// A response: a digest of its body.
    Response(Validators, [u8; 32]),
}

/// Reads the description and all documents that it refers to.
pub async fn read(config: &OpenApiConfig, client: &Client) -> Result<(Documents, DocumentVersions), String> {
    let (source, url) = if config.is_remote() {
        let url = Url::parse(&config.spec).map_err(|_| "'spec' is not an address")?;
        (Source::Origin(url.origin(), client), url)
    } else {
        let path =
            Path::new(&*config.spec).canonicalize().map_err(|error| format!("its file cannot be opened: {error}"))?;
        let folder = path.parent().unwrap_or(&path).to_owned();
        let url = Url::from_file_path(&path).map_err(|()| "its file has no absolute path")?;
        (Source::Folder(folder), url)
    };
    let mut left = MAX_BYTES;
    let (root, version) = source.document(&url, &mut left).await?;
    let mut seen = DocumentVersions(vec![(url.clone(), version)]);
    let mut documents = Documents::new(url.clone(), root.value)?;
    documents.report(&url, root.problems);
    loop {
        let missing = documents.missing();
        if missing.is_empty() {
            return Ok((documents, seen));
        }
        for url in missing {
            let read = source.document(&url, &mut left).await;
            let version = read.as_ref().map_or(Version::Missing, |(_, version)| version.clone());
            seen.0.push((url.clone(), version));
            let (document, problems) = match read {
                Ok((Parsed { value, problems }, _)) => (Ok(value), problems),
                Err(reason) => (Err(reason), Vec::new()),
            };
            documents.add(url.clone(), document);
            documents.report(&url, problems);
        }
    }
}

impl DocumentVersions {
    /// Looks at the documents again.
    ///
    /// # Errors
    /// A server does not answer.
    pub async fn look(&self, client: &Client) -> Result<Self, String> {
        let mut now = Vec::new();
        for (url, version) in &self.0 {
            let version = match (url.to_file_path(), version) {
                (Ok(path), _) => file_version(path).await,
                (Err(()), Version::Response(validators, digest)) => {
                    match client.get_if_changed(url.clone(), validators, MAX_BYTES).await? {
                        Some(Answer { bytes, validators, .. }) => {
                            let now = Sha256::digest(&bytes).into();
                            // Other validators of the same text are no change.
                            let is_same = now == *digest;
                            if is_same { version.clone() } else { Version::Response(validators, now) }
                        }
                        None => version.clone(),
                    }
                }
                // What another origin would have had to give.
                (Err(()), Version::Missing | Version::File(..)) => version.clone(),
            };
            now.push((url.clone(), version));
        }
        Ok(Self(now))
    }
}

async fn file_version(path: PathBuf) -> Version {
    let reading = tokio::task::spawn_blocking(move || {
        let metadata = std::fs::metadata(path)?;
        Ok::<_, std::io::Error>(Version::File(metadata.modified()?, metadata.len()))
    });
    reading.await.ok().and_then(Result::ok).unwrap_or(Version::Missing)
}

impl Source<'_> {
    /// Reads a document of at most `left` bytes, which decreases by its length.
    async fn document(&self, url: &Url, left: &mut usize) -> Result<(Parsed, Version), String> {
        let (bytes, media_type, version) = match self {
            Self::Folder(folder) => {
                let path = url.to_file_path().map_err(|()| "only files beside the description are read")?;
                let path = path.canonicalize().map_err(|error| error.to_string())?;
                if !path.starts_with(folder) {
                    return Err("only files in the folder of the description are read".into());
                }
                // Before it is read: what changes meanwhile is a change.
                let version = file_version(path.clone()).await;
                let max = u64::try_from(*left).unwrap_or(u64::MAX);
                let reading = tokio::task::spawn_blocking(move || files::read(&path, max));
                let bytes = reading.await.map_err(|_| "reading was interrupted")?.map_err(|error| error.to_string())?;
                (bytes, String::new(), version)
            }
            Self::Origin(origin, client) => {
                if url.origin() != *origin {
                    return Err("only documents of the server of the description are read".into());
                }
                let response = client.get_if_changed(url.clone(), &Validators::default(), *left).await?;
                let Answer { bytes, media_type, validators } = response.unwrap_or_default();
                let digest = Sha256::digest(&bytes).into();
                (bytes, media_type, Version::Response(validators, digest))
            }
        };
        *left = left.saturating_sub(bytes.len());
        // YAML may be a hundred times as long.
        let work = bytes.len().saturating_mul(10);
        let parsed = offload::run(work, || codecall_openapi::parse(&bytes, &media_type)).await;
        let parsed = parsed.map_err(|busy| busy.to_string())?;
        Ok((parsed?, version))
    }
}
