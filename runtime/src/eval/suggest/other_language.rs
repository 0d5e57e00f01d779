//! Tells scripts in other languages, which models send by mistake.

/// Commands that begin a line of a shell and nothing else.
const COMMANDS: &[&str] = &[
    "awk", "bash", "cat", "cd", "chmod", "cp", "curl", "docker", "echo", "find", "git", "grep", "head", "jq",
    "kubectl", "ls", "mkdir", "mv", "node", "npm", "npx", "pip", "pwd", "python", "python3", "rm", "sed", "sh", "sudo",
    "tail", "touch", "uv", "uvx", "wget",
];
/// Words that begin a block of Python, which ends its line with a colon.
const BLOCKS: &[&str] = &[
    "def",
    "class",
    "for",
    "while",
    "if",
    "elif",
    "else",
    "with",
    "try",
    "except",
    "finally",
    "async def",
    "async for",
    "async with",
];

/// Most lines that are looked at.
const MAX_LINES: usize = 200;

/// Returns what to write in place of a script that does not parse, if it is in another language.
#[must_use]
pub fn other_language(source: &str) -> Option<&'static str> {
    let mut lines = source.lines().map(str::trim).filter(|line| !line.is_empty()).take(MAX_LINES);
    let first = lines.next()?;
    if is_command(first) {
        return Some(
            "this is a command of a shell; the script must be JavaScript, such as `return await app.tool({ … })`",
        );
    }
    let is_python = std::iter::once(first).chain(lines).any(is_python);
    is_python.then_some(
        "this is Python; the script must be JavaScript, such as `const rows = await app.tool({ … }); return rows`",
    )
}

fn is_command(line: &str) -> bool {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let mut words = line.split(' ');
    let (command, argument) = (words.next().unwrap_or_default(), words.next());
    let is_expression = argument.is_some_and(|word| word.starts_with(['=', '(', '.', '+', '?', ',', ';']));
    line.starts_with("#!") || COMMANDS.contains(&command) && !is_expression
}

fn is_python(line: &str) -> bool {
    let code = line.split(" #").next().unwrap_or_default().trim_end();
    let begins = |word: &&str| code.strip_prefix(*word).is_some_and(|rest| rest.starts_with([' ', ':', '(']));
    let is_block = code.ends_with(':') && BLOCKS.iter().any(begins);
    let is_import = code.starts_with("from ") && code.contains(" import ")
        || code
            .strip_prefix("import ")
            .is_some_and(|module| module.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ',' | ' ')));
    is_block || is_import
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_languages_are_told() {
        for python in [
            "import os\nprint(1)",
            "from x import y",
            "def f(x):\n  return x",
            "x = 1\nfor a in b:\n  pass",
            "if x: # why\n  y()",
            "try:\n  x()",
        ] {
            assert!(other_language(python).is_some_and(|hint| hint.contains("Python")), "{python}");
        }
        for shell in ["ls -la", "#!/bin/sh\nx", "$ npm install", "curl -s https://example.com | jq .", "pwd"] {
            assert!(other_language(shell).is_some_and(|hint| hint.contains("shell")), "{shell}");
        }
        for script in [
            "",
            "return 1 +",
            "const a: number = ;",
            "import x from 'y'",
            "import { x } from 'y'",
            "find = 1",
            "head.next(",
            "label: for (;;) {",
            "switch (x) { case 1:\n",
            "default:",
            "export default () => 1, 2",
            "export const a = ;",
        ] {
            assert_eq!(other_language(script), None, "{script}");
        }
    }
}
