//! Script tools: the files of their folder, what is wrong with them, and an editor.

use super::edit::text_area;
use super::layout::{csrf, diff, page, page_with, problem, status, time, value};
use super::query::{Pairs, address};
use super::{Visit, not_found, response, see_other};
use crate::cancel_on_drop;
use agentscript::Language;
use axum::http::StatusCode;
use axum::response::Response;
use codecall_base::files;
use codecall_base::text::diff::unified;
use codecall_hub::hub::run_examples;
use codecall_scripts::folder::{Loaded, MAX_FILE_BYTES};
use codecall_scripts::{ManifestFormat, Problem, ScriptTool, ScriptTools, ToolSource};
use codecall_store::{StoredCode, StoredVersion};
use maud::{Markup, html};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first text of a new tool.
const NEW: &str = r#"/*---
description = "Says hello"

[parameters.properties.name]
type = "string"
default = "world"

[[examples]]
description = "By name"
params = { name = "Ada" }
data = "Hello, Ada"
---*/
async function execute(params, config) {
  return `Hello, ${params.name}`;
}
"#;

/// A tool in the editor.
struct Draft {
    name: String,
    file: PathBuf,
    /// Whether it is in the store, and `file` is only a name to show.
    is_stored: bool,
    language: Language,
    /// The code in the file; empty if there is none.
    saved: String,
    code: String,
    /// The versions of a stored tool, the latest first.
    versions: Vec<StoredVersion>,
}

impl Draft {
    /// Returns it with what a form has sent.
    fn sent(mut self, form: &Pairs) -> Self {
        self.code = form.get("script").unwrap_or_default().to_owned();
        // An older version may be in the other language.
        match form.get("typescript").filter(|_| self.is_stored) {
            Some("true") => self.language = Language::TypeScript,
            Some(_) => self.language = Language::JavaScript,
            None => {}
        }
        self
    }
}

/// Number of versions that are shown.
const MAX_VERSIONS: usize = 50;

/// `GET /ui/script-tools`
pub fn list(visit: &Visit) -> Response {
    let Some(tools) = visit.hub.script_tools() else {
        let content = html! { p.empty { "There are no script tools: " code { "scriptTools.folder" } " names no folder, and " code { "scriptTools.stored" } " is off." } };
        return page(visit, "Script tools", &content);
    };
    let app = &visit.hub.config().script_tools.app;
    let content = html! {
        table.list.stacked.script-tools {
            caption.hidden { "Script tools" }
            thead { tr { th scope="col" { "Name" } th scope="col" { "State" } th scope="col" { "Description" } th scope="col" { "Tool" } } }
            tbody { @for Loaded { name, tool, problems, enabled, .. } in tools.all() { tr {
                td { a href=(address("/ui/script-tool", [("name", name.as_str())])) { (name) } }
                td { @if enabled { (state(tool.is_some(), &problems)) } @else { span.dim { "disabled" } } }
                td.title { (tool.as_ref().map(|tool| visit.clean(&tool.definition.description)).unwrap_or_default()) }
                td { @if tool.is_some() { a href=(address("/ui/tool", [("name", format!("{app}:{name}").as_str())])) { "call" } } }
            } } }
        }
        @if visit.may_edit {
            form.filters method="get" action="/ui/script-tool" aria-label="New tool" {
                label { "Name of a new tool" input name="name" required pattern="[A-Za-z][A-Za-z0-9_\\-]*"; }
                button { "New tool" }
            }
        } @else { p.dim { "Tools can be looked at here; " code { "http.uiEdit" } " lets them be changed, too." } }
    };
    page(visit, "Script tools", &content)
}

fn state(is_used: bool, problems: &[Problem]) -> Markup {
    match (is_used, problems.is_empty()) {
        (_, true) => status("ok"),
        (true, false) => html! { span.status.failed { "broken" } " " span.dim { "(an older version is used)" } },
        (false, false) => html! { span.status.failed { "broken" } },
    }
}

/// `GET /ui/script-tool?name=…`
pub async fn show(visit: &Visit) -> Response {
    match draft(visit, visit.query.get("name").unwrap_or_default()).await {
        Ok(mut draft) => {
            let wanted = visit.query.filled("version").and_then(|number| number.parse::<i64>().ok());
            let older = draft.versions.iter().find(|version| Some(version.version) == wanted);
            let note = older.map(|older| {
                let (language, _) = language_of(&older.code);
                (draft.language, draft.code) = (language, older.code.code.clone());
                html! { p role="status" { "This is version " (older.version) ". Saving makes it the latest one." } }
            });
            let problems = match draft.saved.is_empty() {
                true => Vec::new(),
                false => check_draft(visit, &draft).await.unwrap_or_default(),
            };
            editor(visit, StatusCode::OK, &draft, &problems, note.as_ref())
        }
        Err(response) => response,
    }
}

/// Returns the tool of a name, or a new one.
async fn draft(visit: &Visit, name: &str) -> Result<Draft, Response> {
    let Some(tools) = visit.hub.script_tools() else { return Err(not_found(visit)) };
    let folder = visit.hub.config().script_tools.folder.clone();
    let known = tools.all().into_iter().find(|tool| tool.name == name);
    if known.is_none() && !(visit.may_edit && is_name(name)) {
        return Err(not_found(visit));
    }
    let is_stored = known.as_ref().map_or(folder.is_none(), |tool| tool.version.is_some());
    if is_stored && known.is_some() {
        return stored_draft(visit, tools, name).await;
    }
    let file = known.map_or_else(|| folder.unwrap_or_default().join(format!("{name}.js")), |tool| tool.file);
    // A file that was just saved is not a tool yet.
    let is_new = is_stored || !file.exists();
    let language =
        if file.extension().is_some_and(|end| end == "ts") { Language::TypeScript } else { Language::JavaScript };
    let reading = file.clone();
    let saved = match is_new {
        true => Ok(Ok(String::new())),
        false => tokio::task::spawn_blocking(move || files::read_text(&reading, MAX_FILE_BYTES)).await,
    };
    match saved {
        Ok(Ok(saved)) => {
            let code = if is_new { NEW.to_owned() } else { saved.clone() };
            Ok(Draft { name: name.to_owned(), file, is_stored, language, saved, code, versions: Vec::new() })
        }
        Ok(Err(error)) => {
            let text = format!("The file of the tool cannot be read: {error}");
            Err(problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &text))
        }
        Err(_) => Err(problem(Some(visit), StatusCode::INTERNAL_SERVER_ERROR, "The file of the tool cannot be read.")),
    }
}

/// Returns a tool of the store.
async fn stored_draft(visit: &Visit, tools: &ScriptTools, name: &str) -> Result<Draft, Response> {
    let Some(stored) = tools.stored() else { return Err(not_found(visit)) };
    let versions = match stored.versions(name).await {
        Ok(versions) => versions,
        Err(error) => return Err(problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &error.to_string())),
    };
    let Some(latest) = versions.first() else { return Err(not_found(visit)) };
    let (language, end) = language_of(&latest.code);
    let (saved, code) = (latest.code.code.clone(), latest.code.code.clone());
    let file = PathBuf::from(format!("{name}.{end}"));
    Ok(Draft { name: name.to_owned(), file, is_stored: true, language, saved, code, versions })
}

/// Returns the language of a stored tool, and the end of its name as a file.
fn language_of(code: &StoredCode) -> (Language, &'static str) {
    match code.typescript {
        true => (Language::TypeScript, "ts"),
        false => (Language::JavaScript, "js"),
    }
}

/// Creates the list of the versions of a stored tool, each with what it has changed.
fn versions(visit: &Visit, name: &str, versions: &[StoredVersion]) -> Markup {
    let lines = |text: &str| -> Vec<String> { text.split_terminator('\n').map(str::to_owned).collect() };
    html! {
        section aria-labelledby="versions" {
            h2 #versions { "Versions" }
            @for (at, version) in versions.iter().take(MAX_VERSIONS).enumerate() {
                @let before = versions.get(at + 1).map(|before| lines(&visit.clean(&before.code.code))).unwrap_or_default();
                details {
                    summary { "Version " (version.version) ", " (time(version.stored_ms)) ", " (visit.clean(&version.author)) }
                    p { a href=(address("/ui/script-tool", [("name", name), ("version", &version.version.to_string())])) { "Edit version " (version.version) } }
                    (diff(&unified(&before, &lines(&visit.clean(&version.code.code)))))
                }
            }
        }
    }
}

/// Whether a name can be that of a new file.
fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-')
}

fn editor(visit: &Visit, status: StatusCode, draft: &Draft, problems: &[Problem], note: Option<&Markup>) -> Response {
    let Draft { name, file, saved, code, .. } = draft;
    let name_of_file = file.file_name().unwrap_or_default().to_string_lossy();
    let lines = |text: &str| -> Vec<String> { text.split_terminator('\n').map(str::to_owned).collect() };
    let changes = match saved.is_empty() || saved == code {
        true => Vec::new(),
        false => unified(&lines(&visit.clean(saved)), &lines(&visit.clean(code))),
    };
    let app = &visit.hub.config().script_tools.app;
    let full = format!("{app}:{name}");
    let content = html! {
        p.lead { code { (name_of_file) } " is the tool " a href=(address("/ui/tool", [("name", full.as_str())])) { (full) } ". "
            a href=(address("/ui/runs", [("tool", full.as_str())])) { "Its runs" } }
        @if let Some(note) = note { (note) }
        @if !problems.is_empty() {
            div.alert role="alert" { ul { @for problem in problems { li { (visit.clean(&problem.in_line(&name_of_file))) } } } }
        }
        @if !changes.is_empty() { section { h2 { "Changes that are not saved" } (diff(&changes)) } }
        form.edit method="post" action="/ui/script-tool" data-check="/ui/script-tools/check" {
            (csrf(visit))
            input type="hidden" name="name" value=(name);
            input type="hidden" name="saved" value=(digest(saved));
            @if draft.is_stored {
                input type="hidden" name="typescript" value=(draft.language == Language::TypeScript);
            }
            (text_area(&visit.clean(code), "Code"))
            div.buttons {
                @if visit.may_edit {
                    button name="action" value="save" { "Save" }
                    button.quiet name="action" value="show" { "Check and show changes" }
                }
                @if visit.may_run { button.quiet name="action" value="test" { "Test with its examples" } }
            }
            @if !visit.may_edit { p.dim { "It cannot be saved here: " code { "http.uiEdit" } " is off." } }
        }
        @if !draft.versions.is_empty() { (versions(visit, name, &draft.versions)) }
    };
    page_with(visit, status, name, &content)
}

/// `POST /ui/script-tool`: saves a tool, or shows what is wrong with it.
pub async fn save(visit: &Visit) -> Response {
    let form = &visit.form;
    let draft = match draft(visit, form.get("name").unwrap_or_default()).await {
        Ok(draft) => draft.sent(form),
        Err(response) => return response,
    };
    let checked = match checked(visit, &draft).await {
        Ok(checked) => checked,
        Err(text) => return problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &text),
    };
    let problems = match (checked, form.get("action") == Some("test")) {
        (Ok(tool), true) => return test(visit, &draft, tool).await,
        (Ok(_), false) => Vec::new(),
        (Err(problems), _) => problems,
    };
    let is_saving = form.get("action") == Some("save");
    if !is_saving || !problems.is_empty() {
        let status = if is_saving { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        return editor(visit, status, &draft, &problems, None);
    }
    if !visit.may_edit {
        return problem(Some(visit), StatusCode::FORBIDDEN, "Tools cannot be changed here: 'http.uiEdit' is off.");
    }
    let refuse = |text: &str| {
        let note = html! { p.alert role="alert" { (text) } };
        editor(visit, StatusCode::CONFLICT, &draft, &[], Some(&note))
    };
    if form.get("saved") != Some(digest(&draft.saved).as_str()) {
        return refuse(
            "The file has changed since it was shown. Below is what saving would change now; save again to do so.",
        );
    }
    if visit.clean(&draft.saved) != draft.saved {
        return refuse(
            "The file has a secret in it, which is masked here; saving would lose it. Edit the file itself.",
        );
    }
    if draft.is_stored {
        let Some(tools) = visit.hub.script_tools() else { return not_found(visit) };
        let code = StoredCode { code: draft.code.clone(), typescript: draft.language == Language::TypeScript };
        return match tools.put(&draft.name, &code, "page").await {
            Ok(_) => see_other(&address("/ui/script-tool", [("name", draft.name.as_str())])),
            Err(error) => refuse(&format!("The tool cannot be stored: {error}")),
        };
    }
    let (file, code) = (draft.file.clone(), draft.code.clone());
    match tokio::task::spawn_blocking(move || write(&file, &code)).await {
        Ok(Ok(())) => {
            tracing::info!(tool = draft.name, "a script tool was saved on the page");
            see_other(&address("/ui/script-tool", [("name", draft.name.as_str())]))
        }
        Ok(Err(error)) => refuse(&format!("The file cannot be written: {error}")),
        Err(_) => refuse("The file cannot be written."),
    }
}

/// Runs the examples of a tool as it is in the editor. It calls no other tool and sends no request.
async fn test(visit: &Visit, draft: &Draft, tool: ScriptTool) -> Response {
    if !visit.may_run {
        return problem(Some(visit), StatusCode::FORBIDDEN, "Tools cannot be tested here: 'http.uiRuns' is off.");
    }
    let mut results = match run_examples(visit.hub.config(), &Arc::new(tool)).await {
        Ok(results) => results,
        Err(error) => {
            let note = html! { p.alert role="alert" { (visit.clean(&error.to_string())) } };
            return editor(visit, StatusCode::BAD_REQUEST, draft, &[], Some(&note));
        }
    };
    let passed = results.iter().filter(|result| result.passed).count();
    let redactor = visit.hub.secrets().redactor();
    results.iter_mut().for_each(|result| redactor.redact_value(&mut result.result));
    let note = html! {
        section #test aria-labelledby="test-title" {
            h2 #test-title { "Test" }
            @if results.is_empty() {
                p.empty role="status" { "The manifest has no " code { "examples" } ", which a test runs: parameters, recorded answers, and what is expected." }
            } @else {
                p role="status" { (passed) " of " (results.len()) " examples passed. No tool was called." }
            }
            @for result in &results {
                details open[!result.passed] {
                    summary { (status(if result.passed { "ok" } else { "failed" })) " " (redactor.redact_text(&result.example)) }
                    @if let Some(problem) = &result.problem { p.alert { (redactor.redact_text(problem)) } }
                    (value(&result.result))
                }
            }
        }
    };
    editor(visit, StatusCode::OK, draft, &[], Some(&note))
}

/// Writes a file as a whole, so that nobody reads a part of it.
fn write(file: &Path, code: &str) -> io::Result<()> {
    // Names that begin with a dot are no tools.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = std::fs::write(&beside, code).and_then(|()| {
        if let Ok(before) = file.metadata() {
            std::fs::set_permissions(&beside, before.permissions())?;
        }
        std::fs::rename(&beside, file)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// `POST /ui/script-tools/check`: what is wrong with a tool, as JSON.
pub async fn check(visit: &Visit) -> Response {
    let draft = match draft(visit, visit.form.get("name").unwrap_or_default()).await {
        Ok(draft) => draft.sent(&visit.form),
        Err(response) => return response,
    };
    match check_draft(visit, &draft).await {
        Ok(problems) => {
            let one = |problem: &Problem| json!({"line": problem.line, "column": problem.column.or(problem.line.map(|_| 1)), "message": problem.message, "hint": problem.hint});
            let diagnostics = json!({"diagnostics": problems.iter().map(one).collect::<Vec<_>>()}).to_string();
            response(StatusCode::OK, "application/json", visit.clean(&diagnostics))
        }
        Err(text) => problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &text),
    }
}

/// Returns what is wrong with a tool.
async fn check_draft(visit: &Visit, draft: &Draft) -> Result<Vec<Problem>, String> {
    Ok(checked(visit, draft).await?.err().unwrap_or_default())
}

/// Returns a tool, or what is wrong with it.
async fn checked(visit: &Visit, draft: &Draft) -> Result<Result<ScriptTool, Vec<Problem>>, String> {
    let config = visit.hub.config();
    let (app, policy) = (config.script_tools.app.clone(), config.policy.clone());
    let (name, code, language) = (draft.name.clone(), draft.code.clone(), draft.language);
    let (file, is_stored) = (draft.file.clone(), draft.is_stored);
    // Parsing takes more of the native stack than this thread has.
    let checking = move || {
        let formats = [("toml", ManifestFormat::Toml), ("json", ManifestFormat::Json)];
        let mut beside = formats.into_iter().map(|(end, format)| (file.with_extension(end), format));
        let manifest = beside.find(|(path, _)| !is_stored && path.is_file());
        let manifest = match manifest {
            Some((path, format)) => match files::read_text(&path, MAX_FILE_BYTES) {
                Ok(text) => Some((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text, format)),
                Err(error) => return Err(vec![Problem::new(format!("the manifest cannot be read: {error}"))]),
            },
            None => None,
        };
        let manifest = manifest.as_ref().map(|(name, text, format)| (name.as_str(), text.as_str(), *format));
        let source = ToolSource { name: &name, code: &code, language, manifest };
        ScriptTool::check(&app, source, &policy)
    };
    let (cancel, _guard) = cancel_on_drop();
    visit.hub.stateless().blocking(cancel, checking).await.map_err(|refusal| refusal.to_string())
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
