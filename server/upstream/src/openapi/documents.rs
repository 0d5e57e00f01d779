//! Reads the documents of a description: those in the folder of a file, or at the origin of an address.

use super::client::Client;
use codecall_base::files;
use codecall_base::offload;
use codecall_config::OpenApiConfig;
use codecall_openapi::Documents;
use codecall_openapi::limits::MAX_BYTES;
use serde_json::Value;
use std::path::{Path, PathBuf};
use url::Url;

/// Where documents may come from.
enum Source<'a> {
    /// Files in this folder or below it.
    Folder(PathBuf),
    /// Addresses of this origin.
    Origin(url::Origin, &'a Client),
}

/// Reads the description and all documents that it refers to.
pub async fn read(config: &OpenApiConfig, client: &Client) -> Result<Documents, String> {
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
    let root = source.document(&url, &mut left).await?;
    let mut documents = Documents::new(url, root)?;
    loop {
        let missing = documents.missing();
        if missing.is_empty() {
            return Ok(documents);
        }
        for url in missing {
            let document = source.document(&url, &mut left).await;
            documents.add(url, document);
        }
    }
}

impl Source<'_> {
    /// Reads a document of at most `left` bytes, which decreases by its length.
    async fn document(&self, url: &Url, left: &mut usize) -> Result<Value, String> {
        let bytes = match self {
            Self::Folder(folder) => {
                let path = url.to_file_path().map_err(|()| "only files beside the description are read")?;
                let path = path.canonicalize().map_err(|error| error.to_string())?;
                if !path.starts_with(folder) {
                    return Err("only files in the folder of the description are read".into());
                }
                let max = u64::try_from(*left).unwrap_or(u64::MAX);
                let reading = tokio::task::spawn_blocking(move || files::read(&path, max));
                reading.await.map_err(|_| "reading was interrupted")?.map_err(|error| error.to_string())?
            }
            Self::Origin(origin, client) => {
                if url.origin() != *origin {
                    return Err("only documents of the server of the description are read".into());
                }
                client.get(url.clone(), *left).await?
            }
        };
        *left = left.saturating_sub(bytes.len());
        // YAML may be a hundred times as long.
        let work = bytes.len().saturating_mul(10);
        offload::run(work, || codecall_openapi::parse(&bytes)).await.map_err(|busy| busy.to_string())?
    }
}
