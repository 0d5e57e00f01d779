//! `codecall_search`: find tools by words.

use super::*;
use crate::catalogue::Entry;
use crate::error::nearest;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Descriptions are cut here; `describe` gives all of them.
const LONGEST_DESCRIPTION: usize = 300;

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
                "minScore": {"type": "number", "minimum": 0, "maximum": 1},
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
            match read(self, request.arguments) {
                Ok(arguments) => self.search(request.hub, arguments),
                Err(refused) => *refused,
            }
        })
    }
}

impl Search {
    fn search(&self, hub: &Hub, arguments: Arguments) -> Answer {
        let several = arguments.queries.is_some();
        let queries = match (arguments.query, arguments.queries) {
            (Some(query), None) => vec![query],
            (None, Some(queries)) => queries.into_vec(),
            (Some(query), Some(queries)) => std::iter::once(query).chain(queries.into_vec()).collect(),
            (None, None) => return refusal(self, "'query' is missing"),
        };
        if queries.is_empty() || queries.len() > 10 || queries.iter().any(|query| query.trim().is_empty()) {
            return refusal(self, "give 1 to 10 queries, none of them empty");
        }
        let top_k = arguments.top_k.unwrap_or(hub.config().top_k);
        if !(1..=50).contains(&top_k) {
            return refusal(self, "'topK' must be from 1 to 50");
        }
        let least = arguments.min_score.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&least) {
            return refusal(self, "'minScore' must be from 0 to 1");
        }
        let snapshot = hub.catalogue().snapshot();
        let mut warnings: Vec<String> = hub.pipeline().troubles();
        let apps = arguments.filter.app_ids.map(Texts::into_vec);
        for app in apps.iter().flatten().filter(|app| !snapshot.apps().any(|known| known == app.as_str())) {
            warnings.push(match nearest(app, snapshot.apps(), 1).first() {
                Some(near) => format!("There is no app '{app}'; did you mean '{near}'?"),
                None => {
                    format!("There is no app '{app}'; there are {}", snapshot.apps().collect::<Vec<_>>().join(", "))
                }
            });
        }
        let tags = arguments.filter.tags.map(Texts::into_vec);
        let (openapi, inline) = (arguments.filter.include_open_api, arguments.filter.include_inline);
        let excluded = arguments.exclude_tool_names.map(Texts::into_vec).unwrap_or_default();
        let keeps = |entry: &Arc<Entry>| {
            let tool = &entry.definition;
            apps.as_ref().is_none_or(|apps| apps.contains(&tool.app))
                && tags.as_ref().is_none_or(|tags| tags.iter().any(|tag| tool.tags.contains(tag)))
                && (openapi != Some(false) || tool.source != "openapi")
                && (inline != Some(false) || tool.source != "inline")
                && !excluded.iter().any(|name| snapshot.lookup(name).is_some_and(|other| other.name == entry.name))
        };
        let mut best: BTreeMap<usize, (f64, Vec<&str>)> = BTreeMap::new();
        for query in &queries {
            for (at, score) in snapshot.index().search(query) {
                if score < least || !keeps(&snapshot.rows()[at]) {
                    continue;
                }
                let row = best.entry(at).or_default();
                row.0 = row.0.max(score);
                row.1.push(query);
            }
        }
        let mut found: Vec<(usize, (f64, Vec<&str>))> = best.into_iter().collect();
        found.sort_by(|a, b| b.1.0.total_cmp(&a.1.0).then(a.0.cmp(&b.0)));
        let tools: Vec<Value> = found
            .into_iter()
            .take(top_k)
            .map(|(at, (score, matched))| {
                let row = &snapshot.rows()[at];
                let mut tool = json!({
                    "name": row.name,
                    "appId": row.definition.app,
                    "source": row.definition.source,
                    "description": shortened(&row.definition.description),
                    "score": score,
                });
                if several {
                    tool["matchedQueries"] = json!(matched);
                }
                tool
            })
            .collect();
        let mut value = json!({"tools": tools, "totalIndexed": snapshot.rows().len()});
        if !warnings.is_empty() {
            value["warnings"] = json!(warnings);
        }
        Answer::ok(value)
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    if text.len() <= LONGEST_DESCRIPTION {
        return text.to_owned();
    }
    let cut = crate::index::cut(text, LONGEST_DESCRIPTION);
    format!("{}…", cut.rsplit_once(char::is_whitespace).map_or(cut, |(words, _)| words))
}
