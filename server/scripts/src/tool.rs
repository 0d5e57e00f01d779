//! A script tool: its manifest and its code, checked.

use crate::defaults::{defaults_fit, with_defaults};
use crate::types::schema_of_parameter;
use crate::{Manifest, ManifestFormat, Placed, Problem};
use agentscript::{CompileOptions, Language, Policy};
use agentscript_lang::Diagnostic;
use agentscript_lang::ast::{Arena, Declares, ExprKind, Function, PatternKind, Script, StmtKind};
use agentscript_lang::parse::parse;
use codecall_base::schema::{self, CheckError, Schema};
use codecall_base::text::{path_in, truncate};
use codecall_base::tool::{Example, ToolDefinition};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Maximum length of the name of a tool, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Maximum number of errors in a message.
const MAX_ERRORS: usize = 5;

/// The parts that a tool is made of.
#[derive(Clone, Copy, Debug)]
pub struct ToolSource<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its code.
    pub code: &'a str,
    /// The language of the code.
    pub language: Language,
    /// The manifest beside the code: the name of its file, its text and its format. `None`: it is in the code.
    pub manifest: Option<(&'a str, &'a str, ManifestFormat)>,
}

/// A tool that can be called. It never changes: a changed file is another one.
pub struct ScriptTool {
    /// The manifest.
    pub manifest: Manifest,
    /// Its code.
    pub code: Arc<str>,
    /// The language of the code.
    pub language: Language,
    /// The definition for the catalogue.
    pub definition: Arc<ToolDefinition>,
    /// The code with the call of its function.
    pub(crate) script: Arc<str>,
    parameters: Schema,
    result: Option<Schema>,
}

impl std::fmt::Debug for ScriptTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptTool").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// The call of the function of a tool. Its own copies of the parameters can be changed.
const CALL: &str =
    "\n;return await execute(structuredClone(codecallContext.params), structuredClone(codecallContext.config));";

impl ScriptTool {
    /// Checks a tool of an app, on a thread of its own: the parser may need more of the native stack than the caller has.
    /// `policy` are the limits of the configuration.
    ///
    /// # Errors
    /// The problems, in the order of the text.
    pub fn check(app: &str, source: ToolSource<'_>, policy: &Policy) -> Result<Self, Vec<Problem>> {
        aside(|| Self::check_here(app, source, policy)).map_err(|problem| vec![problem])?
    }

    fn check_here(app: &str, source: ToolSource<'_>, policy: &Policy) -> Result<Self, Vec<Problem>> {
        let ToolSource { name, code, language, .. } = source;
        check_name(name).map_err(|problem| vec![problem])?;
        let manifest = manifest(source).map_err(|problem| vec![problem])?;
        let policy = manifest.policy(policy).map_err(|message| vec![Problem::new(message)])?;
        let found = check_code(code, language, &policy)?;
        let manifest_file = source.manifest.map(|(file, ..)| file);
        let in_manifest = |problem: Problem| match manifest_file {
            Some(file) => vec![problem.in_file(file)],
            None => vec![problem],
        };
        let parameters = match &manifest.parameters {
            Some(schema) => schema.clone(),
            None if language == Language::TypeScript => {
                let typed = schema_of_parameter(code, found).map_err(|problem| vec![problem])?;
                typed.unwrap_or_default()
            }
            None => Map::new(),
        };
        let parameters = object_schema(parameters).map_err(|message| in_manifest(Problem::new(message)))?;
        let compiled = schema::compile(&parameters)
            .map_err(|error| in_manifest(Problem::new(format!("parameters: it is no JSON schema: {error}"))))?;
        defaults_fit(&parameters).map_err(|message| in_manifest(Problem::new(format!("parameters: {message}"))))?;
        let output = manifest.result.clone().map(Value::Object);
        let result = output.as_ref().map(schema::compile).transpose();
        let result =
            result.map_err(|error| in_manifest(Problem::new(format!("result: it is no JSON schema: {error}"))))?;
        let definition = definition(app, name, &manifest, parameters, output.unwrap_or_else(|| json!({})));
        let tool = Self {
            code: code.into(),
            language,
            definition: Arc::new(definition),
            script: format!("{code}{CALL}").into(),
            parameters: compiled,
            result,
            manifest,
        };
        for (at, example) in tool.manifest.examples.iter().enumerate() {
            let checked = tool.parameters(example.params.clone());
            // An example may show how wrong parameters are refused.
            if let (Err(message), None) = (checked, &example.error) {
                return Err(in_manifest(Problem::new(format!("examples[{at}].params: {message}"))));
            }
        }
        Ok(tool)
    }

    /// Whether another tool is made of the same code and manifest.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.code == other.code && self.manifest == other.manifest && self.definition == other.definition
    }

    /// Returns its name, without its app.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Returns the parameters of a call with defaults for those that are left out.
    ///
    /// # Errors
    /// They do not fit the schema.
    pub fn parameters(&self, given: Map<String, Value>) -> Result<Value, String> {
        let mut parameters = Value::Object(given);
        with_defaults(&mut parameters, &self.definition.input_schema);
        fits(&self.parameters, &parameters, "the parameters").map(|()| parameters)
    }

    /// Checks the data that the tool returns.
    ///
    /// # Errors
    /// It does not fit the schema.
    pub fn check_result(&self, data: &Value) -> Result<(), String> {
        self.result.as_ref().map_or(Ok(()), |schema| fits(schema, data, "the result"))
    }
}

/// Whether code declares a function `execute`; `false` if it cannot be parsed.
pub(crate) fn declares_execute(code: &str, language: Language) -> bool {
    let declares = || {
        let arena = Arena::for_source(code.len());
        parse(&arena, code, language).is_ok_and(|script| find_execute(&script, code.len()).is_some())
    };
    aside(declares).unwrap_or(false)
}

/// Works on a thread with a stack for the parser.
fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Problem> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("tool check".into()).stack_size(codecall_runs::STACK);
        let working = thread.spawn_scoped(scope, work);
        let working = working.map_err(|error| Problem::new(format!("no thread can check it: {error}")))?;
        Ok(working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Returns why a name cannot be that of a tool.
fn check_name(name: &str) -> Result<(), Problem> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_name = name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_part);
    if is_name {
        return Ok(());
    }
    let name = truncate(name, MAX_NAME_BYTES);
    Err(Problem::new(format!("'{name}' cannot be the name of a tool"))
        .with_hint(format!("begin with a letter, go on with letters, digits, '_' and '-', {MAX_NAME_BYTES} at most")))
}

fn manifest(source: ToolSource<'_>) -> Result<Manifest, Problem> {
    match (Placed::find(source.code)?, source.manifest) {
        (Some(placed), None) => Manifest::parse(placed.text, ManifestFormat::Toml, placed.lines_before),
        (None, Some((file, text, format))) => Manifest::parse(text, format, 0).map_err(|problem| problem.in_file(file)),
        (Some(_), Some((file, ..))) => Err(Problem::new(format!("there are two manifests: this one, and {file}"))
            .with_hint("delete one of them")
            .at(source.code, 0)),
        (None, None) => Err(Problem::new("there is no manifest")
            .with_hint("begin the file with /*---, a line such as description = \"What it does\", and ---*/")
            .at(source.code, 0)),
    }
}

/// Checks the code. Returns the offset behind the pattern of the first parameter of `execute`, or the end of the code.
fn check_code(code: &str, language: Language, policy: &Policy) -> Result<usize, Vec<Problem>> {
    let options = CompileOptions { language: Some(language), ..CompileOptions::for_policy(policy) };
    let problem = |diagnostic: &Diagnostic, source: &str| {
        let problem = Problem::of_script(diagnostic, source);
        match diagnostic.message.contains("'fetch'") {
            true => {
                problem.with_hint("name the hosts that it may reach in the manifest: hosts = [\"api.example.com\"]")
            }
            false => problem,
        }
    };
    let all = |source: &str| {
        agentscript::compile(source, &options)
            .map(drop)
            .map_err(|error| error.diagnostics.iter().map(|found| problem(found, source)).collect::<Vec<_>>())
    };
    all(code)?;
    let arena = Arena::for_source(code.len());
    let found = match parse(&arena, code, language) {
        Ok(script) => find_execute(&script, code.len()),
        Err(diagnostic) => return Err(vec![Problem::of_script(&diagnostic, code)]),
    };
    let missing = || {
        vec![Problem::new("missing execute function").with_hint("write async function execute(params, config) { … }")]
    };
    let found = found.ok_or_else(missing)?;
    // Together with the call it may be too long, or the name may be taken.
    all(&format!("{code}{CALL}"))?;
    Ok(found)
}

fn find_execute(script: &Script<'_>, end: usize) -> Option<usize> {
    let behind = |function: &Function<'_>| {
        function.params.first().map_or(end, |pattern| {
            let pattern = match &pattern.kind {
                PatternKind::Default(target, _) => target.span,
                _ => pattern.span,
            };
            pattern.end as usize
        })
    };
    script.body.iter().find_map(|statement| match &statement.kind {
        StmtKind::Function(function) if function.name.is_some_and(|name| name.text == "execute") => {
            Some(behind(function))
        }
        StmtKind::Declare(Declares::Const | Declares::Let | Declares::Var, declarators) => {
            declarators.iter().find_map(|declarator| match (&declarator.target.kind, declarator.init) {
                (PatternKind::Name("execute"), Some(init)) => match &init.kind {
                    ExprKind::Function(function) => Some(behind(function)),
                    _ => Some(end),
                },
                _ => None,
            })
        }
        _ => None,
    })
}

/// Returns a schema of parameters, which are an object.
fn object_schema(mut schema: Map<String, Value>) -> Result<Value, String> {
    match schema.get("type") {
        None => drop(schema.shift_insert(0, "type".into(), "object".into())),
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("parameters: the type must be 'object'".into()),
    }
    Ok(schema.into())
}

fn definition(app: &str, name: &str, manifest: &Manifest, parameters: Value, data: Value) -> ToolDefinition {
    let annotations = serde_json::to_value(&manifest.annotations).unwrap_or_default();
    let output = json!({
        "type": "object",
        "properties": {"success": {"const": true}, "data": data},
        "required": ["success", "data"]
    });
    let examples = manifest.examples.iter().filter(|example| example.error.is_none()).map(|example| {
        let params = Value::Object(example.params.clone());
        Example {
            description: example.description.clone(),
            code: format!("return await callTool('{app}:{name}', {params});"),
        }
    });
    ToolDefinition {
        app: app.to_owned(),
        name: name.to_owned(),
        title: manifest.title.clone(),
        description: manifest.description.trim().to_owned(),
        input_schema: parameters,
        output_schema: Some(output),
        annotations: annotations.as_object().cloned().unwrap_or_default(),
        tags: manifest.tags.clone(),
        examples: examples.collect(),
        source: "script",
        approval: manifest.approval,
        ..ToolDefinition::default()
    }
}

/// Checks a value. `what` names it, for the message.
fn fits(schema: &Schema, value: &Value, what: &str) -> Result<(), String> {
    let errors = match schema.check(value) {
        Ok(()) => return Ok(()),
        Err(CheckError::TooComplex) => return Err(format!("{what} cannot be checked: it would take too long")),
        Err(CheckError::Errors(errors)) => errors,
    };
    let lines = errors.iter().take(MAX_ERRORS).map(|error| {
        let path = path_in(value, &error.instance_path().to_string());
        let message = error.to_string();
        let message = truncate(&message, 300);
        match path.as_str() {
            "" => message.to_owned(),
            path => format!("{}: {message}", truncate(path, 100)),
        }
    });
    let lines: Vec<String> = lines.collect();
    Err(format!("{what} must fit the schema: {}", lines.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: Language, code: &str) -> Result<ScriptTool, String> {
        let source = ToolSource { name: "weather", code, language, manifest: None };
        ScriptTool::check("tools", source, &Policy::default())
            .map_err(|problems| problems.iter().map(|p| p.in_line("weather.js")).collect::<Vec<_>>().join("\n"))
    }

    fn with_manifest(manifest: &str, code: &str) -> Result<ScriptTool, String> {
        check(Language::JavaScript, &format!("/*---\ndescription = 'x'\n{manifest}\n---*/\n{code}"))
    }

    const EXECUTE: &str = "async function execute(params) { return params; }";

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let check = |code| check(Language::JavaScript, code).map(drop);
        assert_eq!(
            check(EXECUTE),
            Err("weather.js:1:1: there is no manifest; begin the file with /*---, a line such as description = \"What it \
                 does\", and ---*/".into())
        );
        for (manifest, code, expected) in [
            (
                "",
                "function run() {}",
                "weather.js: missing execute function; write async function execute(params, config) { … }",
            ),
            ("tag = []", EXECUTE, "weather.js:3:1: unknown key 'tag'; did you mean 'tags'?"),
            ("[parameters]\ntype = 'array'", EXECUTE, "weather.js: parameters: the type must be 'object'"),
            ("[parameters.properties.a]\ntype = 'strin'", EXECUTE, "weather.js: parameters: it is no JSON schema: "),
            (
                "[parameters.properties.a]\ntype = 'string'\ndefault = 3",
                EXECUTE,
                "weather.js: parameters: the default of 'a' does not fit its own schema",
            ),
            ("[result]\nrequired = 3", EXECUTE, "weather.js: result: it is no JSON schema: "),
            (
                "[parameters.properties.a]\ntype = 'string'\n[[examples]]\nparams = {a = 3}",
                EXECUTE,
                "weather.js: examples[0].params: the parameters must fit the schema: a: 3 is not of type \"string\"",
            ),
            ("", "async function execute() { return require('fs') }", "weather.js:5:35: "),
            ("", "async function execute( { }", "weather.js:5:"),
        ] {
            let problem = with_manifest(manifest, code).map(drop).expect_err(code);
            assert!(problem.starts_with(expected), "{manifest} {code}: {problem}");
        }
    }

    #[test]
    fn every_form_of_the_function_is_found() {
        for code in [
            EXECUTE,
            "function execute({ city }) {}",
            "const execute = async (params, config) => ({ success: true, data: 1 });",
            "const run = () => 1; let execute = run;",
        ] {
            with_manifest("", code).unwrap_or_else(|problem| panic!("{code}: {problem}"));
        }
        for code in ["{ function execute() {} }", "const execute2 = 1", "execute()"] {
            assert!(with_manifest("", code).is_err(), "{code}");
        }
    }

    #[test]
    fn the_schema_is_that_of_the_manifest_or_of_the_type() {
        let code = "/*---\ndescription = 'x'\n---*/\nasync function execute({ city }: { city: string } = { city: 'x' }) { return city }";
        let tool = check(Language::TypeScript, code).expect("valid");
        assert_eq!(tool.definition.input_schema["required"], json!(["city"]));
        assert!(tool.parameters(Map::new()).is_err());
        let tool = with_manifest("approval = 'always'\n[parameters.properties.units]\ndefault = 'celsius'", EXECUTE)
            .expect("valid");
        assert_eq!(tool.parameters(Map::new()), Ok(json!({"units": "celsius"})));
        assert_eq!(tool.definition.approval, Some(codecall_base::tool::Approval::Always));
        assert_eq!(tool.definition.input_schema["type"], "object");
    }
}
