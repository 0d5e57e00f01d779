//! `codecall_search`: find tools by words.

use super::*;
use codecall_base::text::nearest;
use codecall_tools::catalogue::Entry;
use codecall_tools::index::Hit;
use codecall_tools::search::fuse;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Descriptions are cut here; `describe` gives all of them.
const LONGEST_DESCRIPTION: usize = 300;
/// How many apps or tags a warning names at most.
const MOST_NAMED: usize = 20;
/// Longest query in a message, in bytes.
const LONGEST_QUERY: usize = 200;
/// Unknown apps and tags that are told.
const MOST_UNKNOWN: usize = 10;

pub struct Search;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    query: Option<String>,
    queries: Option<Texts>,
    top_k: Option<usize>,
    #[serde(default)]
    filter: Filter,
    exclude_tool_names: Option<Texts>,
    min_score: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Filter {
    app_ids: Option<Texts>,
    tags: Option<Texts>,
    include_open_api: Option<bool>,
    include_inline: Option<bool>,
}

impl MetaTool for Search {
    fn id(&self) -> &'static str {
        "search"
    }

    fn title(&self) -> &'static str {
        "Search tools"
    }

    fn description(&self) -> &'static str {
        "Find tools by what they do. Start here: none of the tools behind this server are listed, and names must not be guessed. \
         Say the task in a few words (`query`), or several tasks at once (`queries`). Gives tool names with a score; \
         then get their schemas with codecall_describe and call them in one script with codecall_execute."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, e.g. \"list unpaid invoices\""},
                "queries": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 10, "description": "Several searches at once, instead of query"},
                "topK": {"type": "integer", "minimum": 1, "maximum": 50, "description": "How many tools at most (default 8)"},
                "filter": {
                    "type": "object",
                    "properties": {
                        "appIds": strings("Only tools of these apps"),
                        "tags": strings("Only tools with one of these tags"),
                        "includeOpenApi": {"type": "boolean"},
                        "includeInline": {"type": "boolean"},
                    },
                    "additionalProperties": false,
                },
                "excludeToolNames": strings("Tools you know already"),
                "minScore": {"type": "number", "minimum": 0, "maximum": 1, "description": "Least score of a tool for a query"},
            },
            "additionalProperties": false,
        })
    }

    fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "tools": {"type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "appId": {"type": "string"},
                        "source": {"type": "string"},
                        "description": {"type": "string"},
                        "score": {"type": "number"},
                        "matchedQueries": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["name", "appId", "source", "description", "score"],
                }},
                "totalIndexed": {"type": "integer"},
                "warnings": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["tools", "totalIndexed"],
        })
    }

    fn annotations(&self) -> Value {
        json!({"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false})
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            match read::<Arguments>(self, request.arguments)
                .and_then(|arguments| Asked::of(self, request.hub, arguments))
            {
                Ok(asked) => search(request.hub, &asked).await,
                Err(refused) => *refused,
            }
        })
    }
}

/// A request that makes sense.
struct Asked {
    /// Each once.
    queries: Vec<String>,
    /// Whether the answer says which of them a tool fits.
    several: bool,
    top_k: usize,
    min_score: f64,
    apps: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    openapi: bool,
    inline: bool,
    excluded: Vec<String>,
}

impl Asked {
    fn of(tool: &Search, hub: &Hub, arguments: Arguments) -> Result<Self, Box<Answer>> {
        let refused = |problem: &str| Err(Box::new(refusal(tool, problem)));
        let several = arguments.queries.is_some();
        let given: Vec<String> =
            arguments.query.into_iter().chain(arguments.queries.map(Texts::into_vec).unwrap_or_default()).collect();
        if given.is_empty() && !several {
            return refused("'query' is missing");
        }
        if given.is_empty() || given.len() > 10 || given.iter().any(|query| query.trim().is_empty()) {
            return refused("give 1 to 10 queries, none of them empty");
        }
        let top_k = arguments.top_k.unwrap_or(hub.config().top_k);
        if !(1..=50).contains(&top_k) {
            return refused("'topK' must be from 1 to 50");
        }
        let min_score = arguments.min_score.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&min_score) {
            return refused("'minScore' must be from 0 to 1");
        }
        let mut queries = Vec::new();
        for query in given {
            if !queries.contains(&query) {
                queries.push(query);
            }
        }
        let named = |key: &str, texts: Option<Texts>| {
            texts.map(|texts| names(key, texts).map_err(|problem| Box::new(refusal(tool, &problem)))).transpose()
        };
        Ok(Self {
            queries,
            several,
            top_k,
            min_score,
            apps: named("filter.appIds", arguments.filter.app_ids)?,
            tags: named("filter.tags", arguments.filter.tags)?,
            openapi: arguments.filter.include_open_api != Some(false),
            inline: arguments.filter.include_inline != Some(false),
            excluded: named("excludeToolNames", arguments.exclude_tool_names)?.unwrap_or_default(),
        })
    }

    /// Whether a tool may be in the answer at all. `excluded` are full names.
    fn keeps(&self, entry: &Entry, excluded: &HashSet<&str>) -> bool {
        let tool = &entry.definition;
        self.apps.as_ref().is_none_or(|apps| apps.contains(&tool.app))
            && self.tags.as_ref().is_none_or(|tags| tags.iter().any(|tag| tool.tags.contains(tag)))
            && (self.openapi || tool.source != "openapi")
            && (self.inline || tool.source != "inline")
            && !excluded.contains(entry.name.as_str())
    }
}

async fn search(hub: &Hub, asked: &Asked) -> Answer {
    let snapshot = hub.catalogue().snapshot();
    let rows = snapshot.rows();
    let found = hub.search().search(&snapshot, &asked.queries).await;
    let mut warnings = hub.pipeline().troubles();
    warnings.extend(found.warning);
    warnings.extend(unknown("app", asked.apps.as_deref(), &snapshot.apps().collect()));
    let tags = rows.iter().flat_map(|row| row.definition.tags.iter().map(String::as_str));
    warnings.extend(unknown("tag", asked.tags.as_deref(), &tags.collect()));
    let excluded: HashSet<&str> =
        asked.excluded.iter().filter_map(|name| snapshot.lookup(name)).map(|entry| entry.name.as_str()).collect();
    let mut lists: Vec<Vec<Hit>> = Vec::new();
    for (query, hits) in asked.queries.iter().zip(found.hits) {
        let fitting: Vec<Hit> = hits.iter().copied().filter(|(at, _)| asked.keeps(&rows[*at], &excluded)).collect();
        let good: Vec<Hit> = fitting.iter().copied().filter(|(_, score)| *score >= asked.min_score).collect();
        if good.is_empty() {
            warnings.push(nothing(query, rows.len(), hits.len(), fitting.first()));
        }
        lists.push(good);
    }
    let mut matched: HashMap<usize, Vec<&str>> = HashMap::new();
    for (query, list) in asked.queries.iter().zip(&lists) {
        for (at, _) in list {
            matched.entry(*at).or_default().push(query);
        }
    }
    let row = |(at, score): Hit| {
        let tool = &rows[at].definition;
        let mut row = json!({
            "name": rows[at].name,
            "appId": tool.app,
            "source": tool.source,
            "description": shortened(&tool.description),
            "score": score,
        });
        if asked.several {
            row["matchedQueries"] = json!(matched.get(&at));
        }
        row
    };
    let tools: Vec<Value> = fuse(lists).into_iter().take(asked.top_k).map(row).collect();
    let mut value = json!({"tools": tools, "totalIndexed": rows.len()});
    if !warnings.is_empty() {
        value["warnings"] = json!(warnings);
    }
    Answer::ok(value)
}

/// What is asked for in a filter and is not there.
fn unknown(kind: &str, asked: Option<&[String]>, known: &BTreeSet<&str>) -> Vec<String> {
    let missing = asked.into_iter().flatten().filter(|name| !known.contains(name.as_str()));
    let told = |name: &String| match (nearest(name, known.iter().copied(), 1).first(), known.is_empty()) {
        (Some(near), _) => format!("There is no {kind} '{name}'; did you mean '{near}'?"),
        (None, true) => format!("There is no {kind} '{name}'; there are none at all"),
        (None, false) => {
            let all: Vec<&str> = known.iter().copied().take(MOST_NAMED).collect();
            let more = if known.len() > MOST_NAMED { ", …" } else { "" };
            format!("There is no {kind} '{name}'; there are {}{more}", all.join(", "))
        }
    };
    missing.take(MOST_UNKNOWN).map(told).collect()
}

/// Why a query has no tools, and what to do.
fn nothing(query: &str, indexed: usize, before_filter: usize, best: Option<&Hit>) -> String {
    let query = codecall_base::text::truncate(query, LONGEST_QUERY);
    match (indexed, before_filter, best) {
        (0, _, _) => "There are no tools at the moment".into(),
        (_, 0, _) => format!("No tool fits '{query}'; say in other words what the tool should do"),
        (_, others, None) => {
            format!("No tool fits '{query}' within 'filter' and 'excludeToolNames'; {others} do without them")
        }
        (_, _, Some((_, score))) => {
            format!("No tool fits '{query}' as well as 'minScore' asks for; the best has {score}")
        }
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    if text.len() <= LONGEST_DESCRIPTION {
        return text.to_owned();
    }
    let cut = codecall_base::text::truncate(text, LONGEST_DESCRIPTION);
    format!("{}…", cut.rsplit_once(char::is_whitespace).map_or(cut, |(words, _)| words))
}

#[cfg(test)]
mod tests;
