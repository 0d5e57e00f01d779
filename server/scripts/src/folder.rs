//! The folder of script tools: which files it has, and the tools made of them.
//!
//! A file that is broken does not affect other tools, and the last good version of its tool stays in use.

use crate::{ManifestFormat, Problem, ScriptTool, ToolSource};
use agentscript::{Language, Policy};
use codecall_base::files;
use codecall_upstream::BrokenTool;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum size of a file, in bytes. A longer one is not read.
pub const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of tools of a folder.
const MAX_TOOLS: usize = 1_000;

/// The metadata of the files of a folder, to see whether one has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature(Vec<(PathBuf, u64, Option<SystemTime>)>);

/// A tool of a folder, as it was loaded.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its name: that of the file.
    pub name: String,
    /// The file with its code, or what a stored tool is called in messages.
    pub file: PathBuf,
    /// The tool: the file as it is now, or its last good version. `None`: there was none.
    pub tool: Option<Arc<ScriptTool>>,
    /// Why the file cannot be used; empty if it can.
    pub problems: Vec<Problem>,
    /// The version of a stored tool; `None`: it is one of the folder.
    pub version: Option<i64>,
    /// Whether it can be called. Only stored tools can be disabled.
    pub enabled: bool,
}

impl Loaded {
    /// Creates a tool of the folder that could not be loaded.
    #[must_use]
    pub fn new(name: &str, file: PathBuf) -> Self {
        Self { name: name.to_owned(), file, tool: None, problems: Vec::new(), version: None, enabled: true }
    }

    /// Returns what is wrong, a line for each problem.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let file = self.file.display().to_string();
        self.problems.iter().map(|problem| problem.in_line(&file)).collect()
    }

    /// Returns it as clients see it if it cannot be used. Files have names without their folder there.
    #[must_use]
    pub fn broken(&self) -> Option<BrokenTool> {
        let file = file_name(&self.file);
        let named = |problem: &Problem| Problem {
            file: problem.file.as_ref().map(|file| file_name(Path::new(file))),
            ..problem.clone()
        };
        let problems: Vec<Problem> = self.problems.iter().map(named).collect();
        let first = problems.first()?;
        let more = if problems.len() > 1 { format!(" (and {} more)", problems.len() - 1) } else { String::new() };
        Some(BrokenTool {
            name: self.name.clone(),
            reason: format!("{}{more}", first.in_line(&file)),
            file,
            code: first.code.to_owned(),
            diagnostics: serde_json::to_value(&problems).unwrap_or_default(),
            has_good_version: self.tool.is_some(),
        })
    }
}

#[derive(Default)]
struct ToolFiles {
    code: Vec<PathBuf>,
    manifests: Vec<PathBuf>,
}

/// Returns the signature of a folder.
///
/// # Errors
/// The folder cannot be read: why, for people.
pub fn signature(folder: &Path) -> Result<Signature, String> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        // A file that is gone already has the signature of a file that is not there.
        let metadata = path.metadata().ok();
        let bytes = metadata.as_ref().map_or(0, std::fs::Metadata::len);
        found.push((path, bytes, metadata.and_then(|metadata| metadata.modified().ok())));
    }
    Ok(Signature(found))
}

/// Returns the files of a folder that can be tools or their manifests, in the order of their names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error: std::io::Error| match folder.metadata() {
        Ok(metadata) if !metadata.is_dir() => {
            format!("{}: it is a file; scriptTools.folder names the folder of the tools", folder.display())
        }
        Ok(_) => format!("{}: the folder cannot be read: {error}", folder.display()),
        Err(error) => format!("{}: there is no such folder: {error}", folder.display()),
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with('.') && !name.ends_with(".d.ts") && kind(&path).is_some() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

enum FileKind {
    Code(Language),
    Manifest(ManifestFormat),
}

fn kind(path: &Path) -> Option<FileKind> {
    match path.extension()?.to_str()? {
        "js" => Some(FileKind::Code(Language::JavaScript)),
        "ts" => Some(FileKind::Code(Language::TypeScript)),
        "toml" => Some(FileKind::Manifest(ManifestFormat::Toml)),
        "json" => Some(FileKind::Manifest(ManifestFormat::Json)),
        _ => None,
    }
}

/// Loads all tools of a folder, by name. `before` are those of the last time, whose good versions stay in use.
///
/// # Errors
/// The folder cannot be read: why, for people.
pub fn load(
    folder: &Path,
    app: &str,
    policy: &Policy,
    before: &BTreeMap<String, Loaded>,
) -> Result<BTreeMap<String, Loaded>, String> {
    let mut files: BTreeMap<String, ToolFiles> = BTreeMap::new();
    let entries = entries(folder)?;
    for path in &entries {
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        // Names that differ in case only cannot be told apart on every system.
        let own = files.entry(stem.to_lowercase()).or_default();
        match kind(path) {
            Some(FileKind::Code(_)) => own.code.push(path.clone()),
            Some(FileKind::Manifest(_)) => own.manifests.push(path.clone()),
            None => {}
        }
    }
    // Other files of JSON and TOML may be beside the tools.
    files.retain(|_, own| !own.code.is_empty());
    if files.len() > MAX_TOOLS {
        return Err(format!("{}: the folder has more than {MAX_TOOLS} tools, which is the limit", folder.display()));
    }
    let loaded = files.into_values().map(|own| {
        let file = own.code.first().cloned().unwrap_or_default();
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let last = before.get(&name).and_then(|before| before.tool.clone());
        let (tool, problems) = match load_tool(&name, &own, app, policy) {
            // What has not changed stays the same tool.
            Ok(tool) => match last {
                Some(last) if last.is_same(&tool) => (Some(last), Vec::new()),
                Some(_) | None => (Some(Arc::new(tool)), Vec::new()),
            },
            Err(problems) => (last, problems),
        };
        (name.clone(), Loaded { tool, problems, ..Loaded::new(&name, file) })
    });
    Ok(loaded.collect())
}

fn load_tool(name: &str, files: &ToolFiles, app: &str, policy: &Policy) -> Result<ScriptTool, Vec<Problem>> {
    let one = |problem: Problem| vec![problem];
    let (code_file, manifest_file) = match (files.code.as_slice(), files.manifests.as_slice()) {
        ([code], []) => (code, None),
        ([code], [manifest]) => (code, Some(manifest)),
        ([_, other, ..], _) | (_, [_, other, ..]) => {
            let message = format!("there are two files of this name: the other is {}", file_name(other));
            return Err(one(Problem::new(message).with_hint("rename or delete one of them")));
        }
        ([], _) => return Err(one(Problem::new("there is no code"))),
    };
    let code = read(code_file).map_err(one)?;
    let manifest = match manifest_file {
        Some(file) => {
            let name = file.display().to_string();
            Some((read(file).map_err(|problem| one(problem.in_file(&name)))?, name, file))
        }
        None => None,
    };
    let manifest = manifest.as_ref().and_then(|(text, name, path)| match kind(path) {
        Some(FileKind::Manifest(format)) => Some((name.as_str(), text.as_str(), format)),
        Some(FileKind::Code(_)) | None => None,
    });
    let language = match kind(code_file) {
        Some(FileKind::Code(language)) => language,
        Some(FileKind::Manifest(_)) | None => Language::JavaScript,
    };
    ScriptTool::check(app, ToolSource { name, code: &code, language, manifest }, policy)
}

fn read(path: &Path) -> Result<String, Problem> {
    files::read_text(path, MAX_FILE_BYTES).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            Problem::new(error.to_string()).with_hint("put data elsewhere, and read it by a tool")
        }
        _ => Problem::new(format!("it cannot be read: {error}")),
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Loads one file, which need not be in a folder of tools.
#[must_use]
pub fn load_file(path: &Path, app: &str, policy: &Policy) -> Loaded {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let beside = ["toml", "json"].map(|extension| path.with_extension(extension));
    let manifests = beside.into_iter().filter(|path| path.is_file()).collect();
    let files = ToolFiles { code: vec![path.to_owned()], manifests };
    let (tool, problems) = match kind(path) {
        Some(FileKind::Code(_)) => match load_tool(&name, &files, app, policy) {
            Ok(tool) => (Some(Arc::new(tool)), Vec::new()),
            Err(problems) => (None, problems),
        },
        Some(FileKind::Manifest(_)) | None => {
            (None, vec![Problem::new("the name of a file of code ends in .js or .ts")])
        }
    };
    Loaded { tool, problems, ..Loaded::new(&name, path.to_owned()) }
}
