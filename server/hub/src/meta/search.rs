//! `codecall_search`: find tools by words.

mod text;

use super::*;
use codecall_base::text::nearest;
use codecall_tools::catalogue::Entry;
use codecall_tools::index::Hit;
use codecall_tools::search::{Found as Hits, interleave};
use std::collections::{BTreeSet, HashMap, HashSet};
use text::Found;

/// Maximum number of queries in a request.
const MAX_QUERIES: usize = 10;
/// Maximum number of tools in an answer.
const MAX_TOP_K: usize = 50;
/// Maximum length of a description in bytes; `describe` gives the whole.
const MAX_DESCRIPTION_BYTES: usize = 300;
/// Maximum number of known apps or tags in a warning.
const MAX_KNOWN_NAMES: usize = 20;
/// Maximum length of a query in a warning, in bytes.
const MAX_QUERY_BYTES: usize = 200;
/// Maximum number of tools in the text of an answer that only share a word with a query.
const MAX_NEAREST: usize = 2;
/// Maximum number of unknown apps or tags with a warning.
const MAX_UNKNOWN_NAMES: usize = 10;

pub struct Search;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    /// What the tool should do, e.g. "list unpaid invoices"; leave it out to list the tools of filter.appIds
    query: Option<String>,
    /// Several searches at once, instead of query
    #[schemars(length(min = 1, max = MAX_QUERIES))]
    queries: Option<Vec<String>>,
    /// How many tools at most (default 8)
    #[schemars(range(min = 1, max = MAX_TOP_K))]
    top_k: Option<usize>,
    #[serde(default)]
    filter: Filter,
    /// Without a query: how many tools to skip, as `next` of the last page says
    offset: Option<usize>,
    /// Tools you know already
    exclude_tool_names: Option<Vec<String>>,
    /// Minimum score of a tool for a query
    #[schemars(range(min = 0, max = 1))]
    min_score: Option<f64>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Filter {
    /// Only tools of these apps
    app_ids: Option<Vec<String>>,
    /// Only tools with one of these tags
    tags: Option<Vec<String>>,
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
        "Find tools by what they do: `query` in a few words, or several `queries`. Gives signatures for codecall_execute. \
         `filter.appIds` alone lists an app's tools."
    }

    fn input_schema(&self) -> Value {
        schema::input_schema::<Arguments>()
    }

    fn listed_arguments(&self) -> Option<&'static [&'static str]> {
        Some(&["query", "queries", "filter.appIds"])
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
                "total": {"type": "integer"},
                "next": {"type": "integer"},
                "warnings": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["tools", "totalIndexed"],
        })
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new().read_only(true).idempotent(true).open_world(false)
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            match parse::<Arguments>(self, request.arguments)
                .and_then(|arguments| Criteria::new(self, request.hub, arguments))
            {
                Ok(criteria) => {
                    let searched = request.cancel.run_until_cancelled(search_started(request.hub, &criteria));
                    searched.await.unwrap_or_else(Answer::cancelled)
                }
                Err(invalid) => invalid.into(),
            }
        })
    }
}

/// The validated arguments.
struct Criteria {
    /// The queries without duplicates. None: what the filters select is listed.
    queries: Vec<String>,
    offset: usize,
    /// Whether the answer says which queries a tool matches.
    names_queries: bool,
    top_k: usize,
    min_score: f64,
    apps: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    openapi: bool,
    inline: bool,
    excluded: Vec<String>,
}

impl Criteria {
    fn new(tool: &Search, hub: &Hub, arguments: Arguments) -> Result<Self, InvalidArguments> {
        let refused = |problem: &str| Err(InvalidArguments::new(tool, problem));
        let names_queries = arguments.queries.is_some();
        let has_query = names_queries || arguments.query.is_some();
        let requested: Vec<String> = arguments.query.into_iter().chain(arguments.queries.unwrap_or_default()).collect();
        // Models fill what they leave out with empty texts and lists.
        let is_filled = |names: &Vec<String>| !names.is_empty();
        let app_ids = arguments.filter.app_ids.filter(is_filled);
        let tags = arguments.filter.tags.filter(is_filled);
        let may_list = app_ids.is_some() || tags.is_some();
        let requested: Vec<String> = requested.into_iter().filter(|query| !query.trim().is_empty()).collect();
        let lists = may_list && requested.is_empty();
        if !has_query && !lists {
            return refused("'query' is missing; without it, 'filter.appIds' must say whose tools to list");
        }
        if arguments.offset.is_some() && !lists {
            return refused("'offset' belongs to a list without 'query'; a search gives the best tools first");
        }
        if requested.is_empty() && !lists || requested.len() > MAX_QUERIES {
            return refused(&format!("give 1 to {MAX_QUERIES} queries, none of them empty"));
        }
        let top_k = arguments.top_k.unwrap_or(hub.config().top_k);
        if !(1..=MAX_TOP_K).contains(&top_k) {
            return refused(&format!("'topK' must be from 1 to {MAX_TOP_K}"));
        }
        let min_score = arguments.min_score.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&min_score) {
            return refused("'minScore' must be from 0 to 1");
        }
        let mut queries = Vec::new();
        for query in requested {
            if !queries.contains(&query) {
                queries.push(query);
            }
        }
        let names = |key: &str, names: Option<Vec<String>>| {
            let names = names.map(|names| parse_names(key, names)).transpose();
            names.map_err(|problem| InvalidArguments::new(tool, &problem))
        };
        Ok(Self {
            queries,
            offset: arguments.offset.unwrap_or(0),
            names_queries: names_queries && !lists,
            top_k,
            min_score,
            apps: names("filter.appIds", app_ids)?,
            tags: names("filter.tags", tags)?,
            openapi: arguments.filter.include_open_api != Some(false),
            inline: arguments.filter.include_inline != Some(false),
            excluded: names("excludeToolNames", arguments.exclude_tool_names)?.unwrap_or_default(),
        })
    }

    /// Whether the filters select a tool. `excluded` has full names.
    fn selects(&self, entry: &Entry, excluded: &HashSet<&str>) -> bool {
        let tool = &entry.definition;
        self.apps.as_ref().is_none_or(|apps| apps.contains(&tool.app))
            && self.tags.as_ref().is_none_or(|tags| tags.iter().any(|tag| tool.tags.contains(tag)))
            && (self.openapi || tool.source != "openapi")
            && (self.inline || tool.source != "inline")
            && !excluded.contains(entry.name.as_str())
    }
}

/// Searches, and again while nothing fits and there may be new tools: a server that is starting may have what is wanted.
async fn search_started(hub: &Hub, criteria: &Criteria) -> Answer {
    let texts: Vec<&str> = criteria.queries.iter().chain(criteria.apps.iter().flatten()).map(String::as_str).collect();
    hub.wait_for_search(&texts).await;
    loop {
        let (answer, fits) = search(hub, criteria).await;
        if fits || !hub.wait_for_one_more().await {
            return answer;
        }
    }
}

/// Returns the answer, and whether something fits each query.
async fn search(hub: &Hub, criteria: &Criteria) -> (Answer, bool) {
    let snapshot = hub.catalogue().snapshot();
    let rows = snapshot.rows();
    let found = match criteria.queries.as_slice() {
        [] => Hits::default(),
        queries => hub.search().search(&snapshot, queries).await,
    };
    let mut warnings = hub.pipeline().troubles();
    let waiting = snapshot.pending().len();
    if waiting > 0 && rows.is_empty() {
        warnings.push(format!("{waiting} tools wait for approval by a person: see 'codecall tools pending'"));
    }
    warnings.extend(hub.pipeline().oddities());
    warnings.extend(found.warning);
    warnings.extend(unknown_names("app", criteria.apps.as_deref(), &snapshot.apps().collect()));
    let tags = rows.iter().flat_map(|row| row.definition.tags.iter().map(String::as_str));
    warnings.extend(unknown_names("tag", criteria.tags.as_deref(), &tags.collect()));
    let excluded: HashSet<&str> =
        criteria.excluded.iter().filter_map(|name| snapshot.lookup(name)).map(|entry| entry.name.as_str()).collect();
    let mut lists: Vec<Vec<Hit>> = Vec::new();
    let mut worth_reading: HashSet<usize> = HashSet::new();
    let (mut fits_all, starting) = (true, hub.catalogue().starting_apps().len());
    for (number, (query, hits)) in criteria.queries.iter().zip(found.hits).enumerate() {
        let selected: Vec<Hit> =
            hits.iter().copied().filter(|(at, _)| criteria.selects(&rows[*at], &excluded)).collect();
        let good: Vec<Hit> = selected.iter().copied().filter(|(_, score)| *score >= criteria.min_score).collect();
        if good.is_empty() && starting > 0 {
            let query = codecall_base::text::truncate(query, MAX_QUERY_BYTES);
            warnings.push(format!("No tool fits '{query}' yet: {}. Search again soon", count_starting(starting)));
        } else if good.is_empty() {
            let below = found.below.get(number).copied().flatten();
            warnings.push(no_match(query, rows.len(), hits.len(), selected.first(), below));
        }
        let fits = found.fits.any(number, &good);
        fits_all &= fits;
        if !fits && !good.is_empty() {
            let query = codecall_base::text::truncate(query, MAX_QUERY_BYTES);
            let soon =
                if starting > 0 { format!("; {}. Search again soon", count_starting(starting)) } else { String::new() };
            warnings.push(format!("Nothing fits '{query}'; the nearest tools only share a word with it{soon}"));
        }
        worth_reading.extend(good.iter().take(if fits { usize::MAX } else { MAX_NEAREST }).map(|(at, _)| *at));
        lists.push(good);
    }
    let mut matched: HashMap<usize, Vec<&str>> = HashMap::new();
    for (query, list) in criteria.queries.iter().zip(&lists) {
        for (at, _) in list {
            matched.entry(*at).or_default().push(query);
        }
    }
    let row = |(at, score): &Hit| {
        let tool = &rows[*at].definition;
        let mut row = json!({
            "name": rows[*at].name,
            "appId": tool.app,
            "source": tool.source,
            "description": truncate(&tool.description),
            "score": score,
        });
        if criteria.names_queries {
            row["matchedQueries"] = json!(matched.get(at));
        }
        row
    };
    let is_list = criteria.queries.is_empty();
    let mut all = 0;
    let shown: Vec<Hit> = if is_list {
        // All answer the request equally well.
        let selected = (0..rows.len()).filter(|at| criteria.selects(&rows[*at], &excluded)).map(|at| (at, 1.0));
        let selected: Vec<Hit> = selected.collect();
        all = selected.len();
        fits_all = all > 0;
        selected.into_iter().skip(criteria.offset).take(criteria.top_k).collect()
    } else {
        interleave(lists).into_iter().take(criteria.top_k).collect()
    };
    let tools: Vec<Value> = shown.iter().map(row).collect();
    let mut value = json!({"tools": tools, "totalIndexed": rows.len()});
    let mut next = None;
    if is_list {
        value["total"] = all.into();
        let end = criteria.offset.saturating_add(shown.len());
        if end < all {
            value["next"] = end.into();
            next = Some((end, all));
        }
    }
    if !warnings.is_empty() {
        value["warnings"] = json!(warnings);
    }
    let is_read = |(at, _): &&Hit| is_list || worth_reading.contains(at);
    let entries: Vec<&Entry> = shown.iter().filter(is_read).map(|(at, _)| &*rows[*at]).collect();
    for app in entries.iter().map(|entry| entry.definition.app.as_str()).collect::<BTreeSet<_>>() {
        hub.pipeline().result_shapes().load(app).await;
    }
    let text = Found { snapshot: &snapshot, entries, next, with_others: !is_list, warnings: &warnings }.to_text(hub);
    (Answer::with_text(value, text), fits_all)
}

/// Says how many servers are starting.
fn count_starting(servers: usize) -> String {
    if servers == 1 { "a server is still starting".to_owned() } else { format!("{servers} servers are still starting") }
}

/// Returns warnings about names of a filter that do not exist.
fn unknown_names(kind: &str, names: Option<&[String]>, known: &BTreeSet<&str>) -> Vec<String> {
    let missing = names.into_iter().flatten().filter(|name| !known.contains(name.as_str()));
    let warning = |name: &String| match (nearest(name, known.iter().copied(), 1).first(), known.is_empty()) {
        (Some(near), _) => format!("There is no {kind} '{name}'; did you mean '{near}'?"),
        (None, true) => format!("There is no {kind} '{name}'; there are none at all"),
        (None, false) => {
            let all: Vec<&str> = known.iter().copied().take(MAX_KNOWN_NAMES).collect();
            let more = if known.len() > MAX_KNOWN_NAMES { ", …" } else { "" };
            format!("There is no {kind} '{name}'; there are {}{more}", all.join(", "))
        }
    };
    missing.take(MAX_UNKNOWN_NAMES).map(warning).collect()
}

/// Returns the warning that a query has no tools: why, and what to do.
fn no_match(query: &str, indexed: usize, before_filter: usize, best: Option<&Hit>, below: Option<f64>) -> String {
    let query = codecall_base::text::truncate(query, MAX_QUERY_BYTES);
    if let Some(score) = below {
        return format!(
            "No tool fits '{query}' as well as 'search.similarityThreshold' of the configuration asks for; the best has {score}"
        );
    }
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

fn truncate(text: &str) -> String {
    let text = text.trim();
    if text.len() <= MAX_DESCRIPTION_BYTES {
        return text.to_owned();
    }
    let cut = codecall_base::text::truncate(text, MAX_DESCRIPTION_BYTES);
    format!("{}…", cut.rsplit_once(char::is_whitespace).map_or(cut, |(words, _)| words))
}

#[cfg(test)]
mod tests;
