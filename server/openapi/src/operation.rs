//! Operations: what one needs to become a tool.

use crate::body::{self, Body};
use crate::describe::Settings;
use crate::document::{Context, Resolver};
use crate::input::Input;
use crate::limits::{MAX_DESCRIPTION_BYTES, MAX_OUTPUT_SCHEMA_BYTES, MAX_PARAMETERS, MAX_PATH_BYTES};
use crate::parameter::{Described, Parameter, Place, Unused};
use crate::schema::{Converter, Detail, Direction};
use crate::security::{self, Scheme, Schemes};
use crate::server;
use codecall_base::text::truncate;
use codecall_base::tool::{ToolDefinition, glob_matches};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use url::Url;

/// An operation that is a tool.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The tool.
    pub definition: Arc<ToolDefinition>,
    /// The method, in capitals.
    pub method: &'static str,
    /// The server that it is on.
    pub server: Url,
    /// Its path with the names of parameters in braces.
    pub(crate) path: String,
    /// Pairs of its query that are always the same.
    pub(crate) query: String,
    pub(crate) accept: String,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    /// Alternatives of schemes that go together.
    pub(crate) security: Vec<Vec<(String, Scheme)>>,
}

/// Selects operations. Each list has patterns in which `*` stands for any text; an empty list selects all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Patterns of tags.
    pub tags: Vec<String>,
    /// Methods, in any case.
    pub methods: Vec<String>,
    /// Patterns of paths.
    pub paths: Vec<String>,
    /// Patterns of ids.
    pub ids: Vec<String>,
}

/// The parts of an operation that filters look at.
pub(crate) struct Key<'a> {
    pub method: &'static str,
    pub path: &'a str,
    pub id: Option<&'a str>,
    pub tags: Vec<&'a str>,
}

impl Filter {
    fn results(&self, key: &Key<'_>) -> [Option<bool>; 4] {
        let any = |patterns: &[String], matches: &dyn Fn(&str) -> bool| {
            (!patterns.is_empty()).then(|| patterns.iter().any(|pattern| matches(pattern)))
        };
        let is_glob = |pattern: &str, text: &str| glob_matches(&pattern.to_lowercase(), &text.to_lowercase());
        [
            any(&self.tags, &|pattern| key.tags.iter().any(|tag| is_glob(pattern, tag))),
            any(&self.methods, &|pattern| pattern.eq_ignore_ascii_case(key.method)),
            any(&self.paths, &|pattern| is_glob(pattern, key.path)),
            any(&self.ids, &|pattern| key.id.is_some_and(|id| is_glob(pattern, id))),
        ]
    }

    /// Whether every list selects it.
    pub(crate) fn includes(&self, key: &Key<'_>) -> bool {
        self.results(key).into_iter().flatten().all(|matches| matches)
    }

    /// Whether any list names it.
    pub(crate) fn excludes(&self, key: &Key<'_>) -> bool {
        self.results(key).into_iter().flatten().any(|matches| matches)
    }
}

/// The parts that operations of a description share.
pub(crate) struct Shared<'r, 'a> {
    pub resolver: &'r Resolver<'a>,
    pub settings: &'r Settings,
    pub root: &'a Value,
    pub schemes: &'r Schemes,
    pub base: &'r Url,
    /// The server of the whole description.
    pub server: &'r Result<Url, String>,
}

/// Where an operation stands.
pub(crate) struct Found<'a> {
    pub key: Key<'a>,
    pub name: String,
    /// The path item.
    pub item: (Context<'a>, &'a Map<String, Value>),
    pub operation: (Context<'a>, &'a Value),
}

impl Operation {
    /// Converts an operation. Notes on what was left out of it are appended to `notes`.
    ///
    /// # Errors
    /// Why it cannot become a tool.
    pub(crate) fn read<'a>(
        shared: &Shared<'_, 'a>,
        found: &Found<'a>,
        notes: &mut Vec<String>,
    ) -> Result<Self, String> {
        let Found { key, item, operation: (context, operation), .. } = found;
        if key.path.len() > MAX_PATH_BYTES {
            return Err(format!("its path has more than {MAX_PATH_BYTES} bytes"));
        }
        let server = shared.server_of(item.1, operation)?;
        // Some descriptions tell operations of one path apart by a query or a fragment.
        let path = key.path.split('#').next().unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if query.contains('{') {
            return Err("its path has a parameter after '?'".into());
        }
        let templates = templates(path)?;
        let parameters = shared.parameters(found, &templates, notes)?;
        let security = shared.security(operation);
        let hidden = |parameter: &Described<'_>| shared.is_given(parameter, &security);
        let parameters: Vec<Described<'_>> = parameters.into_iter().filter(|parameter| !hidden(parameter)).collect();
        let input =
            Input::new(shared.resolver, &parameters, operation.get("requestBody").map(|body| (*context, body)), notes)?;
        let (accept, output) = shared.responses(*context, &operation["responses"], notes);
        let definition = ToolDefinition {
            app: shared.settings.app.clone(),
            name: found.name.clone(),
            title: text(operation.get("summary")).filter(|text| text.len() <= 200).map(str::to_owned),
            description: description(key, operation, item.1, &parameters, &accept),
            input_schema: input.schema,
            output_schema: output,
            output_is_advisory: true,
            annotations: annotations(key.method),
            tags: key.tags.iter().take(20).map(|tag| truncate(tag, 100).to_owned()).collect(),
            source: "openapi",
            ..ToolDefinition::default()
        };
        Ok(Self {
            definition: Arc::new(definition),
            method: key.method,
            server,
            path: path.to_owned(),
            query: query.to_owned(),
            accept,
            parameters: input.parameters,
            body: input.body,
            security,
        })
    }
}

impl<'a> Shared<'_, 'a> {
    fn server_of(&self, item: &Map<String, Value>, operation: &Value) -> Result<Url, String> {
        if let Some(base) = &self.settings.base_url {
            return Ok(base.clone());
        }
        let first = |servers: Option<&Value>| server::first(servers?, self.base, &self.settings.variables);
        first(operation.get("servers")).or_else(|| first(item.get("servers"))).unwrap_or_else(|| self.server.clone())
    }

    /// Returns the parameters of an operation, with those of its path that it does not replace.
    fn parameters(
        &self,
        found: &Found<'a>,
        templates: &[&'a str],
        notes: &mut Vec<String>,
    ) -> Result<Vec<Described<'a>>, String> {
        let lists =
            [(found.operation.0, found.operation.1.get("parameters")), (found.item.0, found.item.1.get("parameters"))];
        if lists.iter().any(|(_, list)| list.is_some_and(|list| !list.is_array() && !list.is_null())) {
            notes.push("'parameters' is no list".into());
        }
        let mut seen = HashSet::new();
        let mut parameters: Vec<Described<'_>> = Vec::new();
        for (context, list) in lists {
            for value in list.and_then(Value::as_array).into_iter().flatten() {
                if seen.len() > MAX_PARAMETERS || !self.resolver.work(1) {
                    return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
                }
                match Described::read(self.resolver, context, value) {
                    Ok(parameter) => {
                        let is_known = parameter.place != Place::Path || templates.contains(&parameter.name);
                        if seen.insert((parameter.place, parameter.name)) && is_known {
                            parameters.push(parameter);
                        }
                    }
                    Err(Unused::Ignored) => {}
                    Err(Unused::Unusable { reason, required: true }) => return Err(reason),
                    Err(Unused::Unusable { reason, required: false }) => notes.push(reason),
                }
            }
        }
        for name in templates {
            if seen.insert((Place::Path, name)) {
                parameters.push(Described::forgotten(name));
            }
        }
        // In the order in which a person would name them.
        parameters.sort_by_key(|parameter| (!parameter.required, parameter.place as u8));
        Ok(parameters)
    }

    fn security(&self, operation: &Value) -> Vec<Vec<(String, Scheme)>> {
        let usable = |name: String| match self.schemes.get(&name) {
            Some(Ok(scheme)) => Some((name, scheme.clone())),
            Some(Err(_)) | None => None,
        };
        let alternatives = security::alternatives(operation, self.root).into_iter();
        alternatives.filter_map(|names| names.into_iter().map(usable).collect::<Option<Vec<_>>>()).collect()
    }

    /// Whether the configuration gives a parameter, so that no input does.
    fn is_given(&self, parameter: &Described<'_>, security: &[Vec<(String, Scheme)>]) -> bool {
        let settings = self.settings;
        let by_scheme = security.iter().flatten().any(|(scheme, how)| {
            let Scheme::Key { place, name } = how else { return false };
            let is_same = match place {
                Place::Header => name.eq_ignore_ascii_case(parameter.name),
                Place::Query | Place::Cookie | Place::Path => name == parameter.name,
            };
            *place == parameter.place && is_same && settings.secrets.contains(scheme)
        });
        let by_header = parameter.place == Place::Header
            && settings.headers.iter().any(|name| name.eq_ignore_ascii_case(parameter.name));
        by_scheme || by_header
    }

    /// Returns the header `Accept`, and the schema of a JSON response.
    fn responses(
        &self,
        context: Context<'a>,
        responses: &'a Value,
        notes: &mut Vec<String>,
    ) -> (String, Option<Value>) {
        let is_success = |status: &str| status.starts_with('2');
        if !self.resolver.work(responses.as_object().map_or(0, Map::len)) {
            return ("application/json, */*;q=0.5".to_owned(), None);
        }
        let mut successes: Vec<(&String, &Value)> =
            responses.as_object().into_iter().flatten().filter(|(status, _)| is_success(status)).collect();
        successes.sort_by_key(|(status, _)| status.as_str() != "200");
        if successes.is_empty() {
            successes.extend(responses.as_object().into_iter().flatten().filter(|(status, _)| *status == "default"));
        }
        let mut types: Vec<&str> = Vec::new();
        let mut output = None;
        for (_, response) in successes.into_iter().take(5) {
            let (context, response) = match self.resolver.follow(context, response) {
                Ok(found) => found,
                Err(reason) => {
                    notes.push(format!("a response: {reason}"));
                    continue;
                }
            };
            // As in Swagger 2.0.
            if let Some(schema) =
                response.get("schema").filter(|_| output.is_none() && response.get("content").is_none())
            {
                output = Some(self.output(context, schema, notes));
            }
            for (media_type, content) in response["content"].as_object().into_iter().flatten().take(10) {
                let is_plain = media_type.bytes().all(|b| b.is_ascii_graphic() || b == b' ') && media_type.len() < 200;
                if !is_plain || types.contains(&media_type.as_str()) {
                    continue;
                }
                types.push(media_type);
                if output.is_none() && body::is_json(media_type) {
                    output = content.get("schema").map(|schema| self.output(context, schema, notes));
                }
            }
        }
        types.sort_by_key(|media_type| !body::is_json(media_type));
        let best = types.first().copied().unwrap_or("application/json");
        let accept = match (best, types.get(1)) {
            ("*/*", _) => "application/json, */*;q=0.5".to_owned(),
            (best, Some(second)) if *second != "*/*" => format!("{best}, {second};q=0.8, */*;q=0.5"),
            (best, _) => format!("{best}, */*;q=0.5"),
        };
        (accept, output.flatten())
    }

    fn output(&self, context: Context<'a>, schema: &'a Value, notes: &mut Vec<String>) -> Option<Value> {
        let (context, schema) = match self.resolver.follow(context, schema) {
            Ok(found) => found,
            Err(reason) => {
                notes.push(format!("its output schema: {reason}"));
                return None;
            }
        };
        let (direction, detail) = (Direction::Output, Detail::Structure);
        let mut converter = Converter::new(self.resolver, direction, detail, MAX_OUTPUT_SCHEMA_BYTES);
        let mut out = converter.schema(context, schema);
        let definitions = converter.definitions();
        notes.extend(converter.problem().map(|problem| format!("its output schema: {problem}")));
        let members = out.as_object_mut()?;
        if members.is_empty() {
            return None;
        }
        if !definitions.is_empty() {
            members.insert("$defs".into(), Value::Object(definitions));
        }
        Some(out)
    }
}

/// Returns the names of the parameters in a path.
fn templates(path: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("its path has a brace that is not closed")?;
        if name.is_empty() || name.contains('{') {
            return Err("its path has a parameter without a name".into());
        }
        if !names.contains(&name) {
            names.push(name);
        }
        rest = after;
    }
    Ok(names)
}

fn text(value: Option<&Value>) -> Option<&str> {
    value?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// Annotations of MCP. Reading is what RFC 9110 calls safe.
fn annotations(method: &str) -> Map<String, Value> {
    let annotations = match method {
        "GET" | "HEAD" | "OPTIONS" => {
            json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true})
        }
        "PUT" | "DELETE" => {
            json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true})
        }
        _ => json!({"readOnlyHint": false, "idempotentHint": false, "openWorldHint": true}),
    };
    match annotations {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Returns the description of a tool: the texts of the operation, its method and path, and how its results are paged.
fn description(
    key: &Key<'_>,
    operation: &Value,
    item: &Map<String, Value>,
    parameters: &[Described<'_>],
    accept: &str,
) -> String {
    let (summary, long) = (text(operation.get("summary")), text(operation.get("description")));
    let (summary, long) = match (summary, long) {
        (None, None) => (text(item.get("summary")), text(item.get("description"))),
        given => given,
    };
    let mut parts: Vec<String> = Vec::new();
    if let Some(summary) = summary
        && !long.is_some_and(|long| long.starts_with(summary))
    {
        parts.push(truncate(summary, 500).to_owned());
    }
    if let Some(long) = long {
        let short = truncate(long, MAX_DESCRIPTION_BYTES - 1_200);
        parts.push(if short.len() < long.len() { format!("{short}…") } else { short.to_owned() });
    }
    let mut last = format!("{} {}", key.method, truncate(key.path, 300));
    if operation["deprecated"] == true {
        last += " (deprecated)";
    }
    if let Some(hint) = paging(parameters) {
        last += &format!(". {hint}");
    }
    let best = accept.split([',', ';']).next().unwrap_or_default();
    if key.method != "HEAD" && !body::is_json(best) && best != "*/*" {
        last += &format!(". Returns {}", truncate(best, 100));
    }
    parts.push(last);
    parts.join("\n\n")
}

/// Says how results are paged, by the names of the parameters.
fn paging(parameters: &[Described<'_>]) -> Option<String> {
    const SIZES: [&str; 12] = [
        "perpage",
        "pagesize",
        "limit",
        "maxresults",
        "pagelimit",
        "top",
        "$top",
        "count",
        "first",
        "size",
        "take",
        "maxitems",
    ];
    const CURSORS: [&str; 15] = [
        "cursor",
        "pagetoken",
        "nexttoken",
        "startingafter",
        "after",
        "continue",
        "nextpagetoken",
        "pagecursor",
        "nextcursor",
        "marker",
        "continuationtoken",
        "$skiptoken",
        "startafter",
        "exclusivestartkey",
        "paginationtoken",
    ];
    const OFFSETS: [&str; 6] = ["offset", "skip", "$skip", "startat", "startindex", "start"];
    const PAGES: [&str; 4] = ["page", "pagenumber", "pageno", "pageindex"];
    let find = |names: &[&str]| {
        let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '-', '.', '[', ']'], "");
        let query = parameters.iter().filter(|parameter| parameter.place == Place::Query);
        query.map(|parameter| parameter.name).find(|name| names.contains(&plain(name).as_str()))
    };
    let size = find(&SIZES).map(|size| format!(", `{}` is its size", truncate(size, 60))).unwrap_or_default();
    let hint = if let Some(cursor) = find(&CURSORS) {
        format!(
            "Paged: the first call leaves out `{cursor}`, each further one passes the position that the last result gives"
        )
    } else if let Some(page) = find(&PAGES) {
        format!("Paged: `{page}` is the page; the last one is shorter or empty")
    } else if let Some(offset) = find(&OFFSETS) {
        format!("Paged: `{offset}` is how many are left out; the last page is shorter or empty")
    } else {
        return None;
    };
    Some(hint + &size)
}
