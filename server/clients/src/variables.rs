//! References to variables in values: from the spelling of a client to ours.

use crate::client::Variables;
use std::path::Path;

/// The values that a value can refer to.
pub struct Scope<'a> {
    /// How the client spells references.
    pub spelling: Variables,
    /// The folder that the client was opened in.
    pub folder: &'a Path,
    /// The user's home.
    pub home: &'a Path,
    /// The separator between the parts of a path.
    pub separator: char,
    /// The variable for an input of the file, with what stands in its place if it is not set.
    pub input: &'a dyn Fn(&str) -> (String, Option<String>),
}

/// A value in our spelling.
pub struct Translated {
    /// The value.
    pub text: String,
    /// Variables without a default.
    pub needs: Vec<String>,
    /// Whether it refers to the folder.
    pub uses_folder: bool,
}

/// Translates a value.
///
/// # Errors
/// It refers to something that only the client has: the reference.
pub fn translate(text: &str, scope: &Scope<'_>) -> Result<Translated, String> {
    let mut out = Translated { text: String::with_capacity(text.len()), needs: Vec::new(), uses_folder: false };
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        out.text.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let Some(end) = after.find('}').filter(|_| scope.spelling != Variables::None) else {
            out.text.push_str("$${");
            rest = after;
            continue;
        };
        // `$${` is how we write a plain `${`.
        if out.text.ends_with('$') {
            return Err(format!("$${{{}}}", &after[..end]));
        }
        reference(&after[..end], scope, &mut out)?;
        rest = &after[end + 1..];
    }
    out.text.push_str(rest);
    Ok(out)
}

fn reference(inner: &str, scope: &Scope<'_>, out: &mut Translated) -> Result<(), String> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let foreign = || Err(format!("${{{inner}}}"));
    match scope.spelling {
        Variables::Shell => {
            let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
            if !is_name(name) {
                return foreign();
            }
            if default.is_none() {
                out.needs.push(name.to_owned());
            }
            out.text.push_str(&format!("${{{inner}}}"));
        }
        Variables::Editor | Variables::Env => match inner.split_once(':') {
            Some(("env", name)) if is_name(name) => {
                // It is empty if it is not set.
                out.text.push_str(&format!("${{{name}:-}}"));
            }
            Some(("input", id)) if scope.spelling == Variables::Editor => match (scope.input)(id) {
                (name, Some(default)) => out.text.push_str(&format!("${{{name}:-{default}}}")),
                (name, None) => {
                    out.text.push_str(&format!("${{{name}}}"));
                    out.needs.push(name);
                }
            },
            None if scope.spelling == Variables::Editor => {
                let folder = match inner {
                    "workspaceFolder" | "workspaceRoot" | "cwd" => scope.folder.display().to_string(),
                    "workspaceFolderBasename" => {
                        scope.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
                    }
                    "userHome" => {
                        out.text.push_str(&scope.home.display().to_string());
                        return Ok(());
                    }
                    "pathSeparator" | "/" => {
                        out.text.push(scope.separator);
                        return Ok(());
                    }
                    _ => return foreign(),
                };
                out.text.push_str(&folder);
                out.uses_folder = true;
            }
            _ => return foreign(),
        },
        Variables::None => return foreign(),
    }
    Ok(())
}
