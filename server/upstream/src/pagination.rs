//! Reads the lists of an MCP server page by page, and limits the sizes of the tools in them.
//!
//! A list that is too long, does not end or repeats a page is not used at all: a part of it would hide the problem.

use codecall_base::text::truncate;
use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::service::ServiceError;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashSet;

/// Maximum number of pages of a list.
pub const MAX_PAGES: usize = 1_000;
/// Maximum number of items of a list.
pub const MAX_ITEMS: usize = 20_000;
/// Maximum size of all pages of a list, in bytes of JSON.
pub const MAX_LIST_BYTES: usize = 64 << 20;
/// Maximum length of a cursor, in bytes.
const MAX_CURSOR_BYTES: usize = 64 << 10;

/// Maximum length of a tool's name, in bytes. A tool with a longer name is dropped.
pub const MAX_NAME_BYTES: usize = 256;
/// Maximum length of a title, in bytes. A longer title is truncated.
const MAX_TITLE_BYTES: usize = 1 << 10;
/// Maximum length of a description, in bytes. A longer description is truncated.
pub const MAX_DESCRIPTION_BYTES: usize = 32 << 10;
/// Maximum size of a schema, in bytes of JSON. A tool with a larger input schema is dropped; a larger output schema is
/// removed from its tool.
pub const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// Maximum size of `annotations` and of `_meta`, in bytes of JSON. Larger ones are removed.
const MAX_METADATA_BYTES: usize = 256 << 10;

/// Why a list is not used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A request for a page has failed.
    #[error("{0}")]
    Service(#[from] ServiceError),
    /// The list is too long or does not end.
    #[error("{0}")]
    LimitExceeded(String),
}

/// Returns the items of all pages that `request_page` returns.
///
/// # Errors
/// A request fails, or the list exceeds a limit.
pub async fn list_all<T: Serialize, Page>(
    mut request_page: impl FnMut(Option<PaginatedRequestParams>) -> Page,
) -> Result<Vec<T>, ListError>
where
    Page: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let mut pages = Pages { items: Vec::new(), bytes: 0, pages: 0, cursors: HashSet::new() };
    let mut cursor = None;
    loop {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let (items, next) = request_page(Some(params)).await?;
        pages.add(items, next.as_deref()).map_err(ListError::LimitExceeded)?;
        match next {
            None => return Ok(pages.items),
            next => cursor = next,
        }
    }
}

/// The pages of a list that were read so far.
struct Pages<T> {
    items: Vec<T>,
    bytes: usize,
    pages: usize,
    cursors: HashSet<String>,
}

impl<T: Serialize> Pages<T> {
    fn add(&mut self, items: Vec<T>, next: Option<&str>) -> Result<(), String> {
        self.pages += 1;
        if self.pages > MAX_PAGES {
            return Err(format!("its list has more than {MAX_PAGES} pages"));
        }
        if self.items.len() + items.len() > MAX_ITEMS {
            return Err(format!("its list has more than {MAX_ITEMS} entries"));
        }
        self.bytes = self.bytes.saturating_add(json_length(&items));
        if self.bytes > MAX_LIST_BYTES {
            return Err(format!("its list has more than {MAX_LIST_BYTES} bytes"));
        }
        self.items.extend(items);
        let Some(next) = next else { return Ok(()) };
        if next.len() > MAX_CURSOR_BYTES {
            return Err(format!("its list has a cursor of {} bytes", next.len()));
        }
        if !self.cursors.insert(next.to_owned()) {
            return Err("its list returns to a page that was already read".to_owned());
        }
        Ok(())
    }
}

/// Returns the length of a value as JSON, in bytes.
fn json_length(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // A value that has no JSON exceeds every limit.
        Err(_) => usize::MAX,
    }
}

/// Limits the sizes of a tool's texts and schemas.
///
/// # Errors
/// The tool cannot be used: the reason.
pub fn limit_tool(mut tool: Tool) -> Result<Tool, String> {
    if tool.name.is_empty() || tool.name.len() > MAX_NAME_BYTES {
        return Err(format!("a name of {} bytes", tool.name.len()));
    }
    if json_length(&tool.input_schema) > MAX_SCHEMA_BYTES {
        return Err(format!("an input schema of more than {MAX_SCHEMA_BYTES} bytes"));
    }
    if tool.output_schema.as_ref().is_some_and(|schema| json_length(schema) > MAX_SCHEMA_BYTES) {
        tool.output_schema = None;
    }
    if tool.annotations.as_ref().is_some_and(|annotations| json_length(annotations) > MAX_METADATA_BYTES) {
        tool.annotations = None;
    }
    if tool.meta.as_ref().is_some_and(|meta| json_length(meta) > MAX_METADATA_BYTES) {
        tool.meta = None;
    }
    if let Some(title) = tool.title.as_mut().filter(|title| title.len() > MAX_TITLE_BYTES) {
        *title = format!("{}…", truncate(title, MAX_TITLE_BYTES));
    }
    if let Some(description) = tool.description.as_mut().filter(|text| text.len() > MAX_DESCRIPTION_BYTES) {
        *description = Cow::Owned(format!("{}…", truncate(description, MAX_DESCRIPTION_BYTES)));
    }
    Ok(tool)
}

/// Limits the sizes of all tools of a list. Tools that cannot be used are dropped, which is logged.
pub fn limit_tools(app: &str, tools: Vec<Tool>) -> Vec<Tool> {
    let mut reasons: Vec<String> = Vec::new();
    let usable = tools.into_iter().filter_map(|tool| limit_tool(tool).map_err(|reason| reasons.push(reason)).ok());
    let usable = usable.collect();
    if let Some(first) = reasons.first() {
        tracing::warn!(app, "{} of its tools are left out, the first because it has {first}", reasons.len());
    }
    usable
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Reads a list whose page `n` has the items `items(n)` and the cursor `next(n)`, and counts its items.
    async fn count_items(
        items: impl Fn(usize) -> Vec<String>,
        next: impl Fn(usize) -> Option<String>,
    ) -> Result<usize, String> {
        let mut page = 0;
        let all = list_all(|_| {
            page += 1;
            std::future::ready(Ok((items(page), next(page))))
        });
        all.await.map(|items| items.len()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_list_that_does_not_end_is_refused() {
        let one = |_: usize| vec!["x".to_owned()];
        assert_eq!(count_items(one, |page| (page < 5).then(|| page.to_string())).await, Ok(5));
        let endless = |page: usize| Some(page.to_string());
        assert_eq!(count_items(|_| Vec::new(), endless).await, Err("its list has more than 1000 pages".into()));
        assert_eq!(
            count_items(|_| vec![String::new(); 500], endless).await,
            Err("its list has more than 20000 entries".into())
        );
        let long = |_: usize| vec!["x".repeat(1 << 20)];
        assert_eq!(count_items(long, endless).await, Err("its list has more than 67108864 bytes".into()));
        let cycle = |page: usize| Some((page % 3).to_string());
        assert_eq!(count_items(one, cycle).await, Err("its list returns to a page that was already read".into()));
        let cursor = |_: usize| Some("x".repeat(100_000));
        assert_eq!(count_items(one, cursor).await, Err("its list has a cursor of 100000 bytes".into()));
    }

    #[test]
    fn texts_and_schemas_of_tools_are_limited() {
        let tool = |value: serde_json::Value| serde_json::from_value::<Tool>(value).expect("a tool");
        let schema = |length: usize| json!({"type": "object", "description": "x".repeat(length)});
        let long = tool(json!({
            "name": "t", "title": "é".repeat(5_000), "description": "é".repeat(50_000), "inputSchema": schema(9),
            "outputSchema": schema(2 << 20), "_meta": {"x": "x".repeat(1 << 20)},
        }));
        let kept = limit_tool(long).expect("usable");
        assert!(kept.title.is_some_and(|title| title.len() < 1_100 && title.ends_with('…')));
        assert!(kept.description.is_some_and(|text| text.len() < 33_000 && text.ends_with('…')));
        assert!(kept.output_schema.is_none() && kept.meta.is_none());
        for (name, length) in [("x".repeat(257), 9), (String::new(), 9), ("t".into(), 2 << 20)] {
            assert!(limit_tool(tool(json!({"name": name, "inputSchema": schema(length)}))).is_err());
        }
    }
}
