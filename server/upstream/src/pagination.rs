//! Reads the lists of an MCP server page by page, and limits the sizes of the tools in them.
//!
//! Of a list that is too long, does not end or repeats a page, the part before that is used, and the reason is named.

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

/// A page of a list.
pub struct Page<T> {
    /// Its entries.
    pub items: Vec<T>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// Its oddities: a sentence each.
    pub oddities: Vec<String>,
}

impl<T> Page<T> {
    /// Creates a page with nothing odd.
    pub fn new(items: Vec<T>, next: Option<String>) -> Self {
        Self { items, next, oddities: Vec::new() }
    }
}

/// A list as far as it can be read.
pub struct Listing<T> {
    /// Its entries.
    pub items: Vec<T>,
    /// Its oddities: a sentence each.
    pub oddities: Vec<String>,
}

/// Returns the entries of all pages that `request_page` returns. A list that is too long, does not advance or breaks off
/// ends there.
///
/// # Errors
/// The first page cannot be read, or the connection has ended.
pub async fn list_all<T: Serialize, Fut>(
    mut request_page: impl FnMut(Option<PaginatedRequestParams>) -> Fut,
) -> Result<Listing<T>, ServiceError>
where
    Fut: Future<Output = Result<Page<T>, ServiceError>>,
{
    let mut pages = Pages { items: Vec::new(), oddities: Vec::new(), bytes: 0, pages: 0, cursors: HashSet::new() };
    let mut cursor = None;
    loop {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = match request_page(Some(params)).await {
            Ok(page) => page,
            Err(
                error @ (ServiceError::McpError(_) | ServiceError::UnexpectedResponse | ServiceError::Timeout { .. }),
            ) if pages.pages > 0 => {
                pages.end(&format!("page {} cannot be read: {error}", pages.pages + 1));
                break;
            }
            Err(error) => return Err(error),
        };
        match pages.add(page) {
            Ok(Some(next)) => cursor = Some(next),
            Ok(None) => break,
            Err(reason) => {
                pages.end(&reason);
                break;
            }
        }
    }
    Ok(Listing { items: pages.items, oddities: pages.oddities })
}

/// The pages of a list that were read so far.
struct Pages<T> {
    items: Vec<T>,
    oddities: Vec<String>,
    bytes: usize,
    pages: usize,
    cursors: HashSet<String>,
}

impl<T: Serialize> Pages<T> {
    /// Adds a page. Returns the cursor of the next one.
    ///
    /// # Errors
    /// There is no next page, though the list has not ended: the reason.
    fn add(&mut self, page: Page<T>) -> Result<Option<String>, String> {
        self.pages += 1;
        self.oddities.extend(page.oddities);
        self.bytes = self.bytes.saturating_add(json_length(&page.items));
        if self.bytes > MAX_LIST_BYTES {
            return Err(format!("it has more than {MAX_LIST_BYTES} bytes"));
        }
        self.items.extend(page.items);
        if self.items.len() > MAX_ITEMS {
            self.items.truncate(MAX_ITEMS);
            return Err(format!("it has more than {MAX_ITEMS} entries"));
        }
        let Some(next) = page.next.filter(|next| !next.is_empty()) else { return Ok(None) };
        if self.pages == MAX_PAGES {
            return Err(format!("it has more than {MAX_PAGES} pages"));
        }
        if next.len() > MAX_CURSOR_BYTES {
            return Err(format!("it has a cursor of {} bytes", next.len()));
        }
        if !self.cursors.insert(next.clone()) {
            return Err("it returns to a page that was already read".to_owned());
        }
        Ok(Some(next))
    }

    /// Notes why the list ends before its end.
    fn end(&mut self, reason: &str) {
        self.oddities.push(format!("its list is used up to entry {}: {reason}", self.items.len()));
    }
}

/// Returns the length of a value as JSON, in bytes.
pub fn json_length(value: &impl Serialize) -> usize {
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
    if tool.name.is_empty() {
        return Err("an empty name".into());
    }
    if tool.name.len() > MAX_NAME_BYTES {
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

/// Limits the sizes of all tools of a list. Returns the usable ones, and why others are left out.
pub fn limit_tools(tools: Vec<Tool>) -> (Vec<Tool>, Vec<String>) {
    let mut reasons: Vec<String> = Vec::new();
    let usable = tools.into_iter().filter_map(|tool| limit_tool(tool).map_err(|reason| reasons.push(reason)).ok());
    let usable = usable.collect();
    let oddities = reasons.first().map(|first| match reasons.len() {
        1 => format!("a tool is left out: it has {first}"),
        many => format!("{many} tools are left out, the first because it has {first}"),
    });
    (usable, oddities.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Reads a list whose page `n` has the items `items(n)` and the cursor `next(n)`. Returns the number of its items, and
    /// what is odd about it.
    async fn count_items(
        items: impl Fn(usize) -> Vec<String>,
        next: impl Fn(usize) -> Option<String>,
    ) -> (usize, Vec<String>) {
        let mut page = 0;
        let all = list_all(|_| {
            page += 1;
            std::future::ready(Ok(Page::new(items(page), next(page))))
        });
        let all = all.await.unwrap_or_else(|error| panic!("{error}"));
        (all.items.len(), all.oddities)
    }

    #[tokio::test]
    async fn a_list_that_does_not_end_is_used_as_far_as_it_is_read() {
        let one = |_: usize| vec!["x".to_owned()];
        let odd = |count: usize, reason: &str| (count, vec![format!("its list is used up to entry {count}: {reason}")]);
        assert_eq!(count_items(one, |page| (page < 5).then(|| page.to_string())).await, (5, Vec::new()));
        assert_eq!(count_items(one, |_| Some(String::new())).await, (1, Vec::new()));
        let endless = |page: usize| Some(page.to_string());
        assert_eq!(count_items(one, endless).await, odd(1_000, "it has more than 1000 pages"));
        assert_eq!(
            count_items(|_| vec![String::new(); 501], endless).await,
            odd(20_000, "it has more than 20000 entries")
        );
        let long = |_: usize| vec!["x".repeat(1 << 20)];
        assert_eq!(count_items(long, endless).await, odd(63, "it has more than 67108864 bytes"));
        let cycle = |page: usize| Some((page % 3).to_string());
        assert_eq!(count_items(one, cycle).await, odd(4, "it returns to a page that was already read"));
        let cursor = |_: usize| Some("x".repeat(100_000));
        assert_eq!(count_items(one, cursor).await, odd(1, "it has a cursor of 100000 bytes"));
    }

    #[tokio::test]
    async fn a_page_that_cannot_be_read_ends_a_list() {
        let mut page = 0;
        let all = list_all(|_| {
            page += 1;
            std::future::ready(match page {
                1 => Ok(Page::new(vec!["x"], Some("2".into()))),
                _ => Err(ServiceError::UnexpectedResponse),
            })
        });
        let all = all.await.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((all.items.len(), all.oddities.len()), (1, 1));
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
