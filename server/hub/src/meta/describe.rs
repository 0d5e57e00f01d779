//! `codecall_describe`: schemas and examples of tools.

use super::*;
use codecall_base::offload;
use codecall_base::text::nearest;
use codecall_base::tool::{ToolDefinition, is_reserved};
use codecall_tools::catalogue::{Entry, Snapshot};
use codecall_tools::pipeline::shared_name;
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of tools in an answer.
const MAX_TOOLS: usize = 100;
/// Maximum number of examples of a tool in the text for a model.
const MAX_EXAMPLES: usize = 2;
/// Maximum size of a schema that is repeated, in bytes.
const MAX_REPEATED_BYTES: usize = 200;
/// Maximum number of unknown names with a suggestion.
const MAX_SUGGESTIONS: usize = 20;

pub struct Describe;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    /// Names as codecall_search gives them, e.g. ["users:list"]
    tool_names: Option<Vec<String>>,
    /// The same as toolNames
    tools: Option<Vec<String>>,
    /// How many at most (default 8)
    #[schemars(range(min = 1, max = MAX_TOOLS))]
    max: Option<usize>,
    /// Default typescript
    #[serde(default)]
    format: Format,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Format {
    JsonSchema,
    #[default]
    #[serde(rename = "typescript")]
    TypeScript,
}

impl MetaTool for Describe {
    fn id(&self) -> &'static str {
        "describe"
    }

    fn title(&self) -> &'static str {
        "Describe tools"
    }

    fn description(&self) -> &'static str {
        "Get whole signatures and examples. Only needed where a signature ends in `…`."
    }

    fn input_schema(&self) -> Value {
        schema::input_schema::<Arguments>()
    }

    fn listed_arguments(&self) -> Option<&'static [&'static str]> {
        Some(&["toolNames"])
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
                        "title": {"type": "string"},
                        "description": {"type": "string"},
                        "inputSchema": {"type": "object"},
                        "outputSchema": {"type": "object"},
                        "signature": {"type": "string"},
                        "seenResult": {
                            "type": "object",
                            "properties": {"type": {"type": "string"}, "results": {"type": "integer"}},
                            "required": ["type", "results"],
                        },
                        "note": {"type": "string"},
                        "annotations": {"type": "object"},
                        "execution": {"type": "object"},
                        "icons": {"type": "array", "items": {"type": "object"}},
                        "_meta": {"type": "object"},
                        "usageExamples": {"type": "array", "items": {
                            "type": "object",
                            "properties": {"description": {"type": "string"}, "code": {"type": "string"}},
                            "required": ["description", "code"],
                        }},
                    },
                    "required": ["name", "appId", "description", "annotations", "usageExamples"],
                }},
                "notFound": {"type": "array", "items": {"type": "string"}},
                "warnings": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["tools"],
        })
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new().read_only(true).idempotent(true).open_world(false)
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let parsed = match parse::<Arguments>(self, request.arguments) {
                Ok(arguments) => {
                    let names = [&arguments.tool_names, &arguments.tools].into_iter().flatten().flat_map(Vec::as_slice);
                    let names: Vec<String> = names.take(MAX_TOOLS).cloned().collect();
                    let known = request.hub.wait_for_named(&names);
                    if request.cancel.run_until_cancelled(known).await.is_none() {
                        return Answer::cancelled();
                    }
                    let snapshot = request.hub.catalogue().snapshot();
                    for entry in names.iter().filter_map(|name| snapshot.lookup(name)) {
                        request.hub.pipeline().result_shapes().load(&entry.definition.app).await;
                    }
                    Ok(arguments)
                }
                Err(invalid) => Err(invalid),
            };
            match parsed {
                // Always large work: it compiles schemas and runs the examples of authors.
                Ok(arguments) => {
                    let described =
                        offload::run(offload::INLINE_LIMIT + 1, || self.describe(request.hub, arguments)).await;
                    described.unwrap_or_else(|busy| Answer::refused(busy.to_string()))
                }
                Err(invalid) => invalid.into(),
            }
        })
    }
}

impl Describe {
    fn describe(&self, hub: &Hub, arguments: Arguments) -> Answer {
        let names = match (arguments.tool_names, arguments.tools) {
            (Some(names), None) | (None, Some(names)) => names,
            (None, None) => return InvalidArguments::new(self, "'toolNames' is missing").into(),
            (Some(_), Some(_)) => {
                return InvalidArguments::new(self, "give either 'toolNames' or 'tools', which mean the same").into();
            }
        };
        let names = match parse_names("toolNames", names) {
            Ok(names) => names,
            Err(problem) => return InvalidArguments::new(self, &problem).into(),
        };
        let max = arguments.max.unwrap_or(hub.config().max_definitions);
        if names.is_empty() {
            return InvalidArguments::new(self, "'toolNames' must hold at least one name").into();
        }
        if !(1..=MAX_TOOLS).contains(&max) {
            return InvalidArguments::new(self, &format!("'max' must be from 1 to {MAX_TOOLS}")).into();
        }
        let snapshot = hub.catalogue().snapshot();
        let mut entries: Vec<&Entry> = Vec::new();
        let mut not_found: Vec<&str> = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for name in &names {
            match snapshot.lookup(name).filter(|_| !is_reserved(name)) {
                Some(entry) if seen.insert(&entry.name) => entries.push(entry),
                None if seen.insert(name) => not_found.push(name),
                Some(_) | None => {}
            }
        }
        let left_out: Vec<&str> = entries.iter().skip(max).map(|entry| entry.name.as_str()).collect();
        let tools: Vec<Value> =
            entries.iter().take(max).map(|entry| describe_entry(hub, &snapshot, entry, arguments.format)).collect();
        let mut value = json!({"tools": tools});
        if !not_found.is_empty() {
            value["notFound"] = json!(not_found);
        }
        let why = |name: &&str| hub.pipeline().broken_reason(name).or_else(|| suggestion(&snapshot, name));
        let mut warnings: Vec<String> = not_found.iter().take(MAX_SUGGESTIONS).filter_map(why).collect();
        if !left_out.is_empty() {
            warnings.push(format!("Only {max} tools are described at once; ask again for {}", left_out.join(", ")));
        }
        let text = (arguments.format == Format::TypeScript).then(|| {
            let shown = &entries[..entries.len().min(max)];
            let described = shown.iter().enumerate().map(|(at, entry)| describe_in_words(hub, entry, &shown[..at]));
            let described: String = described.collect();
            let unknown = (!not_found.is_empty()).then(|| format!("Not found: {}\n", not_found.join(", ")));
            let notes = unknown.into_iter().chain(warnings.iter().map(|warning| format!("{warning}\n")));
            format!("{described}{}", notes.collect::<String>()).trim_end().to_owned()
        });
        if !warnings.is_empty() {
            value["warnings"] = warnings.into();
        }
        Answer { text, ..Answer::ok(value) }
    }
}

/// Returns a tool as a model reads it: its description, signature, and the examples of its author, which generated ones with invented
/// values do not equal. Their examples have been checked before. A type of results that one of the tools `before` has is not repeated.
fn describe_in_words(hub: &Hub, entry: &Entry, before: &[&Entry]) -> String {
    let definition = &entry.definition;
    let seen = hub.pipeline().result_shapes().of(definition);
    let has_same = |other: &&&Entry| {
        definition.output_schema.is_some() && other.definition.output_schema == definition.output_schema
    };
    let signature = match before.iter().find(has_same).filter(|_| output_bytes(definition) > MAX_REPEATED_BYTES) {
        Some(other) => typescript::signature_as(definition, &other.name),
        None => typescript::signature(definition, seen.as_ref()),
    };
    let note = unknown_result(entry, seen.is_some()).map(|note| format!("// {note}\n")).unwrap_or_default();
    let examples = entry.examples(|_| false).iter().take(MAX_EXAMPLES);
    let examples = examples.map(|example| format!("// Example: {}\n{}\n", example.description, example.code.trim()));
    let description = entry.definition.description.trim();
    let comment = description.lines().map(|line| format!("// {line}\n")).collect::<String>();
    format!("{comment}{signature}\n{note}{}\n", examples.collect::<String>())
}

/// Returns about how many bytes the schema of results has.
fn output_bytes(definition: &ToolDefinition) -> usize {
    definition.output_schema.as_ref().map_or(0, weight)
}

/// Returns what to do if nothing is known of the results of a tool.
fn unknown_result(entry: &Entry, is_seen: bool) -> Option<String> {
    let tool = Value::from(entry.name.as_str());
    (entry.definition.output_schema.is_none() && !is_seen).then(|| {
        format!(
            "The shape of its result is unknown. Look at a part of one first: \
             return JSON.stringify(await callTool({tool}, {{…}})).slice(0, 1500)"
        )
    })
}

/// Returns a warning with the names that are similar to an unknown one. Meta-tools are not suggested.
fn suggestion(snapshot: &Snapshot, name: &str) -> Option<String> {
    if is_reserved(name) {
        return None;
    }
    let meant = snapshot.meant_by(name);
    if meant.len() > 1 {
        return Some(shared_name(name, &meant));
    }
    let near = nearest(name, snapshot.rows().iter().map(|row| row.name.as_str()), 3);
    let near: Vec<String> = near.into_iter().map(|name| format!("'{name}'")).collect();
    (!near.is_empty()).then(|| format!("There is no tool '{name}'; did you mean {}?", near.join(" or ")))
}

/// Inserts what is for clients and people. An image in place of an address would be thousands of tokens.
fn insert_metadata(members: &mut Map<String, Value>, tool: &ToolDefinition) {
    let is_image = |icon: &&Value| {
        icon["src"].as_str().is_some_and(|src| src.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")))
    };
    let icons: Vec<Value> = tool.icons.iter().filter(|icon| !is_image(icon)).cloned().collect();
    members.extend(tool.title.as_ref().map(|title| ("title".to_owned(), title.as_str().into())));
    members.extend(tool.execution.as_ref().map(|execution| ("execution".to_owned(), execution.clone())));
    if !icons.is_empty() {
        members.insert("icons".into(), icons.into());
    }
    if !tool.meta.is_empty() {
        members.insert("_meta".into(), tool.meta.clone().into());
    }
}

fn describe_entry(hub: &Hub, snapshot: &Arc<Snapshot>, entry: &Entry, format: Format) -> Value {
    let mut value = entry.described();
    let seen = hub.pipeline().result_shapes().of(&entry.definition);
    if let Some(members) = value.as_object_mut() {
        // A schema that is not there is no `null`, which the output schema refuses.
        members.retain(|_, member| !member.is_null());
        match (format, seen) {
            (Format::TypeScript, seen) => {
                members.shift_remove("inputSchema");
                members.shift_remove("outputSchema");
                members.insert("signature".into(), typescript::signature(&entry.definition, seen.as_ref()).into());
                if let Some(note) = unknown_result(entry, seen.is_some()) {
                    members.insert("note".into(), note.into());
                }
            }
            (Format::JsonSchema, Some(seen)) => {
                let kind = seen.shape.to_type(typescript::MAX_SEEN_BYTES);
                members.insert("seenResult".into(), json!({"type": kind, "results": seen.results}));
            }
            (Format::JsonSchema, None) => {}
        }
        if format == Format::JsonSchema {
            insert_metadata(members, &entry.definition);
        }
        let watchdog = hub.config().pool.watchdog;
        let examples = examples::for_tool(hub.executor(), watchdog, snapshot, entry);
        members.insert("usageExamples".into(), examples.into());
    }
    value
}
