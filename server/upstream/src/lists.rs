//! Lists of an MCP server, page by page, and what a tool may say of itself. A list that is endless, too long
//! or goes round in circles is not used at all: half of one would hide that something is wrong.

use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::service::ServiceError;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashSet;

/// Pages of a list.
pub const MOST_PAGES: usize = 1_000;
/// Tools, resources, templates or prompts of a server.
pub const MOST_ITEMS: usize = 20_000;
/// All of a list, in bytes of JSON.
pub const MOST_BYTES: usize = 64 << 20;
/// Longest cursor, in bytes.
const LONGEST_CURSOR: usize = 64 << 10;

/// Longest name of a tool, in bytes; a tool with a longer one is left out.
pub const LONGEST_NAME: usize = 256;
/// Longest title, in bytes; more is cut off.
const LONGEST_TITLE: usize = 1 << 10;
/// Longest description, in bytes; more is cut off.
pub const LONGEST_DESCRIPTION: usize = 32 << 10;
/// Longest schema, in bytes of JSON; a tool with a longer one for its input is left out, one for its output
/// is dropped.
pub const LONGEST_SCHEMA: usize = 1 << 20;
/// Longest `annotations` and `_meta`, in bytes of JSON; longer ones are dropped.
const LONGEST_EXTRAS: usize = 256 << 10;

/// A list that is read page by page.
pub struct Pages<T> {
    items: Vec<T>,
    bytes: usize,
    pages: usize,
    cursors: HashSet<String>,
}

/// Why a list is not used.
#[derive(Debug, thiserror::Error)]
pub enum Unlisted {
    /// It could not be asked for.
    #[error("{0}")]
    Service(#[from] ServiceError),
    /// It is longer than allowed, or has no end.
    #[error("{0}")]
    Endless(String),
}

impl<T: Serialize> Pages<T> {
    /// All pages that `ask` gives.
    ///
    /// # Errors
    /// Those of `ask`, and a list without an end.
    pub async fn all<Page>(mut ask: impl FnMut(Option<PaginatedRequestParams>) -> Page) -> Result<Vec<T>, Unlisted>
    where
        Page: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
    {
        let mut pages = Self { items: Vec::new(), bytes: 0, pages: 0, cursors: HashSet::new() };
        let mut cursor = None;
        loop {
            let asked = PaginatedRequestParams::default().with_cursor(cursor);
            let (items, next) = ask(Some(asked)).await?;
            pages.take(items, next.as_deref()).map_err(Unlisted::Endless)?;
            match next {
                None => return Ok(pages.items),
                next => cursor = next,
            }
        }
    }

    fn take(&mut self, items: Vec<T>, next: Option<&str>) -> Result<(), String> {
        self.pages += 1;
        if self.pages > MOST_PAGES {
            return Err(format!("its list has more than {MOST_PAGES} pages"));
        }
        if self.items.len() + items.len() > MOST_ITEMS {
            return Err(format!("its list has more than {MOST_ITEMS} entries"));
        }
        self.bytes = self.bytes.saturating_add(length(&items));
        if self.bytes > MOST_BYTES {
            return Err(format!("its list has more than {MOST_BYTES} bytes"));
        }
        self.items.extend(items);
        let Some(next) = next else { return Ok(()) };
        if next.len() > LONGEST_CURSOR {
            return Err(format!("its list has a cursor of {} bytes", next.len()));
        }
        if !self.cursors.insert(next.to_owned()) {
            return Err("its list comes back to a page that was read already".to_owned());
        }
        Ok(())
    }
}

/// The length of something as JSON, in bytes.
fn length(value: &impl Serialize) -> usize {
    struct Counted(usize);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    match serde_json::to_writer(&mut counted, value) {
        Ok(()) => counted.0,
        // What cannot be written is longer than everything.
        Err(_) => usize::MAX,
    }
}

/// A tool with texts of bounded lengths.
///
/// # Errors
/// It cannot be used, and why.
pub fn bounded(mut tool: Tool) -> Result<Tool, String> {
    if tool.name.is_empty() || tool.name.len() > LONGEST_NAME {
        return Err(format!("a name of {} bytes", tool.name.len()));
    }
    if length(&tool.input_schema) > LONGEST_SCHEMA {
        return Err(format!("an input schema of more than {LONGEST_SCHEMA} bytes"));
    }
    if tool.output_schema.as_ref().is_some_and(|schema| length(schema) > LONGEST_SCHEMA) {
        tool.output_schema = None;
    }
    if tool.annotations.as_ref().is_some_and(|annotations| length(annotations) > LONGEST_EXTRAS) {
        tool.annotations = None;
    }
    if tool.meta.as_ref().is_some_and(|meta| length(meta) > LONGEST_EXTRAS) {
        tool.meta = None;
    }
    if let Some(title) = tool.title.as_mut().filter(|title| title.len() > LONGEST_TITLE) {
        *title = format!("{}…", codecall_base::text::cut(title, LONGEST_TITLE));
    }
    if let Some(description) = tool.description.as_mut().filter(|text| text.len() > LONGEST_DESCRIPTION) {
        *description = Cow::Owned(format!("{}…", codecall_base::text::cut(description, LONGEST_DESCRIPTION)));
    }
    Ok(tool)
}

/// Tools with texts of bounded lengths; the log tells of those that are left out.
pub fn all_bounded(app: &str, tools: Vec<Tool>) -> Vec<Tool> {
    let mut why: Vec<String> = Vec::new();
    let kept = tools.into_iter().filter_map(|tool| bounded(tool).map_err(|reason| why.push(reason)).ok()).collect();
    if let Some(first) = why.first() {
        tracing::warn!(app, "{} of its tools are left out, the first because it has {first}", why.len());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What becomes of a list whose page `n` has `items(n)` and the cursor `next(n)`.
    async fn listed(
        items: impl Fn(usize) -> Vec<String>,
        next: impl Fn(usize) -> Option<String>,
    ) -> Result<usize, String> {
        let mut page = 0;
        let all = Pages::all(|_| {
            page += 1;
            std::future::ready(Ok((items(page), next(page))))
        });
        all.await.map(|items| items.len()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn lists_end() {
        let one = |_: usize| vec!["x".to_owned()];
        assert_eq!(listed(one, |page| (page < 5).then(|| page.to_string())).await, Ok(5));
        let endless = |page: usize| Some(page.to_string());
        assert_eq!(listed(|_| Vec::new(), endless).await, Err("its list has more than 1000 pages".into()));
        assert_eq!(
            listed(|_| vec![String::new(); 500], endless).await,
            Err("its list has more than 20000 entries".into())
        );
        let long = |_: usize| vec!["x".repeat(1 << 20)];
        assert_eq!(listed(long, endless).await, Err("its list has more than 67108864 bytes".into()));
        let circle = |page: usize| Some((page % 3).to_string());
        assert_eq!(listed(one, circle).await, Err("its list comes back to a page that was read already".into()));
        let cursor = |_: usize| Some("x".repeat(100_000));
        assert_eq!(listed(one, cursor).await, Err("its list has a cursor of 100000 bytes".into()));
    }

    #[test]
    fn tools_say_no_more_than_they_may() {
        let tool = |value: serde_json::Value| serde_json::from_value::<Tool>(value).expect("a tool");
        let schema = |length: usize| json!({"type": "object", "description": "x".repeat(length)});
        let long = tool(json!({
            "name": "t", "title": "é".repeat(5_000), "description": "é".repeat(50_000), "inputSchema": schema(9),
            "outputSchema": schema(2 << 20), "_meta": {"x": "x".repeat(1 << 20)},
        }));
        let kept = bounded(long).expect("kept");
        assert!(kept.title.is_some_and(|title| title.len() < 1_100 && title.ends_with('…')));
        assert!(kept.description.is_some_and(|text| text.len() < 33_000 && text.ends_with('…')));
        assert!(kept.output_schema.is_none() && kept.meta.is_none());
        for (name, length) in [("x".repeat(257), 9), (String::new(), 9), ("t".into(), 2 << 20)] {
            assert!(bounded(tool(json!({"name": name, "inputSchema": schema(length)}))).is_err());
        }
    }
}
