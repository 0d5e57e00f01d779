//! Checks the language of pages, of module docs and of messages by five rules that a scan can check:
//!
//! 1. A sentence begins with `What`, `Who`, `Which` or `Whoever` only if it asks.
//! 2. The noun is named: no `what is there`, no `those that`, no `such` without a noun.
//! 3. A sentence has at most 25 words.
//! 4. A cell of a table has at most 160 characters.
//! 5. Pages are about the present: no `no longer`, `used to`, `previously`, `formerly` or `was replaced by`.
//!
//! Code is no language: blocks and spans of code are left out, and so are quotes and the pages of generated transcripts.

use std::path::{Path, PathBuf};

/// Stands for code in a text.
const CODE: char = '\u{e000}';
const MOST_WORDS: usize = 25;
const MOST_OF_A_CELL: usize = 160;
/// Pages outside `docs`. `CHANGELOG.md` is about the past.
const PAGES: [&str; 3] = ["README.md", "CONTRIBUTING.md", "SECURITY.md"];
/// Pages that quote agents, scripts and messages. Generators write them.
const TRANSCRIPTS: [&str; 3] = ["docs/reports/transcripts.md", "docs/reports/tasks.md", "docs/reports/mistakes.md"];
const SOURCES: [&str; 6] = ["lang", "runtime", "server", "tests", "benches", "fuzz"];
/// Sources whose `///` are messages too: `--help` and `codecall config explain` print them.
const PRINTED: [&str; 2] = ["server/config/src", "server/cli/src"];
const QUESTION_WORDS: [&str; 4] = ["What", "Who", "Which", "Whoever"];
const BANNED: [&str; 7] =
    ["what is there", "those that", "no longer", "used to", "previously", "formerly", "was replaced by"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the files below `folder` whose names end in `extension`.
fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).expect("a folder").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if entry.file_type().expect("a type").is_dir() {
            if !["node_modules", "target"].contains(&name.as_str()) && !name.starts_with('.') {
                found.extend(files(&path, extension));
            }
        } else if name.ends_with(extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The findings in one file.
struct Scan<'a> {
    file: &'a str,
    findings: Vec<String>,
    sentences: usize,
}

impl<'a> Scan<'a> {
    fn new(file: &'a str) -> Self {
        Self { file, findings: Vec::new(), sentences: 0 }
    }

    fn find(&mut self, line: usize, rule: &str, text: &str) {
        self.findings.push(format!("{}:{line}: {rule}: {text}", self.file));
    }

    /// Checks Markdown, given as lines with their numbers.
    fn markdown<'t>(&mut self, lines: impl Iterator<Item = (usize, &'t str)>) {
        let mut paragraph = String::new();
        let mut begin = 0;
        let mut is_code = false;
        let mut is_comment = false;
        for (number, line) in lines {
            let text = line.trim();
            let is_fence = text.starts_with("```") || text.starts_with("~~~");
            let item = item(text);
            let is_own = text.is_empty() || text.starts_with(['>', '|', '#']) || text.starts_with("<!--");
            if is_fence || is_code || is_comment || is_own || item.is_some() {
                self.text(begin, &std::mem::take(&mut paragraph));
            }
            if is_fence {
                is_code = !is_code;
            } else if is_code {
            } else if is_comment || text.starts_with("<!--") {
                is_comment = !text.contains("-->");
            } else if let Some(row) = text.strip_prefix('|') {
                self.row(number, row);
            } else if let Some(heading) = text.strip_prefix('#') {
                self.text(number, heading.trim_start_matches('#'));
            } else if !text.is_empty() && !text.starts_with('>') {
                if paragraph.is_empty() {
                    begin = number;
                }
                paragraph.push(' ');
                paragraph.push_str(item.unwrap_or(text));
            }
        }
        self.text(begin, &paragraph);
    }

    fn row(&mut self, line: usize, row: &str) {
        let row = row.replace("\\|", "¦");
        for cell in row.trim_end().trim_end_matches('|').split('|') {
            let length = plain(cell.trim()).chars().count();
            if length > MOST_OF_A_CELL {
                self.find(line, &format!("a cell of {length} characters"), cell.trim());
            }
            self.text(line, cell);
        }
    }

    /// Checks the sentences of a text.
    fn text(&mut self, line: usize, text: &str) {
        let text = plain(text);
        for sentence in sentences(&text) {
            self.sentence(line, sentence);
        }
    }

    fn sentence(&mut self, line: usize, sentence: &str) {
        let sentence = sentence.trim().trim_start_matches(['"', '\'', '(']);
        let words: Vec<&str> = sentence
            .split_whitespace()
            .filter(|word| word.contains(|c: char| c.is_alphanumeric() || c == CODE))
            .collect();
        let Some(first) = words.first() else { return };
        self.sentences += 1;
        let asks = sentence.trim_end_matches(['"', '\'', ')']).ends_with('?');
        if QUESTION_WORDS.contains(first) && !asks {
            self.find(line, "begins like a question", sentence);
        }
        if words.len() > MOST_WORDS {
            self.find(line, &format!("a sentence of {} words", words.len()), sentence);
        }
        let lower = sentence.to_lowercase();
        let letters = |text: &str| text.starts_with(char::is_alphanumeric);
        for banned in BANNED {
            for (at, _) in lower.match_indices(banned) {
                let (before, after) = (&lower[..at], &lower[at + banned.len()..]);
                let is_word = !before.ends_with(char::is_alphanumeric) && !letters(after);
                // Something that is used to do something is not history.
                let last = before.split_whitespace().next_back();
                let is_use = banned == "used to"
                    && last.is_some_and(|word| ["is", "are", "be", "and", "or", "not", "only"].contains(&word));
                if is_word && !is_use {
                    self.find(line, &format!("says \"{banned}\""), sentence);
                }
            }
        }
        let is_bare = |word: &&str| word.trim_end_matches([',', '.', ';', ':', ')']) == "such";
        let bare = lower.split_whitespace().find(is_bare);
        if bare.is_some_and(|word| word != "such") || lower.ends_with(" such") {
            self.find(line, "says \"such\" without a noun", sentence);
        }
    }

    /// Checks the string literals of a source text that are sentences.
    fn messages(&mut self, source: &str) {
        let source = source.split_once("#[cfg(test)]\nmod tests {").map_or(source, |(code, _)| code);
        for (number, line) in source.lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for literal in literals(line) {
                if literal.trim().contains(' ') {
                    self.text(number + 1, &literal);
                }
            }
        }
    }
}

/// Returns the text of an item of a list.
fn item(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let ordered = if digits.len() < text.len() { digits.strip_prefix(". ") } else { None };
    ordered.or_else(|| text.strip_prefix("- ")).or_else(|| text.strip_prefix("* "))
}

/// Removes marks, addresses of links and pictures; spans of code become one word.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first == '`' {
            let ticks = rest.len() - rest.trim_start_matches('`').len();
            let (fence, inside) = rest.split_at(ticks);
            if let Some((_, after)) = inside.split_once(fence) {
                // Code after code is one list.
                if !out.trim_end_matches([' ', ',']).ends_with(CODE) {
                    out.push(CODE);
                }
                rest = after;
                continue;
            }
        } else if let Some(inside) = rest.strip_prefix("![") {
            if let Some((_, after)) = inside.split_once("](").and_then(|(_, link)| link.split_once(')')) {
                rest = after;
                continue;
            }
        } else if let Some((name, after)) = rest.strip_prefix('[').and_then(|link| link.split_once("]("))
            && name.ends_with(".md")
            && !name.contains([' ', '['])
        {
            // The name of a file is code.
            out.push(CODE);
            rest = after.split_once(')').map_or("", |(_, after)| after);
            continue;
        } else if let Some((_, after)) = rest.strip_prefix("](").and_then(|link| link.split_once(')')) {
            rest = after;
            continue;
        } else if let Some((tag, after)) = rest.strip_prefix('<').and_then(|tag| tag.split_once('>'))
            && tag.starts_with(|c: char| c.is_alphabetic() || c == '/')
        {
            rest = after;
            continue;
        }
        if !['*', '[', ']'].contains(&first) {
            out.push(first);
        }
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// Splits a text after each full stop, question mark or exclamation mark that a new sentence follows.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, mark) in text.char_indices().filter(|(_, c)| ['.', '!', '?'].contains(c)) {
        let end = at + mark.len_utf8();
        let after = text[end..].trim_start_matches(['"', '\'', ')']);
        let next = after.trim_start();
        let opened = next.trim_start_matches(['"', '\'', '(']);
        if next.len() < after.len() && opened.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == CODE)
        {
            let end = text.len() - after.len();
            found.push(&text[begin..end]);
            begin = end;
        }
    }
    found.push(&text[begin..]);
    found
}

/// Returns the string literals that begin and end in a line of code, without escapes.
fn literals(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = line.chars();
    while letters.by_ref().any(|letter| letter == '"') {
        let mut literal = String::new();
        loop {
            match letters.next() {
                Some('"') => break found.push(literal),
                Some('\\') => literal.push(if letters.next() == Some('n') { ' ' } else { '\'' }),
                Some(letter) => literal.push(letter),
                None => break,
            }
        }
    }
    found
}

/// Returns the lines of a source text that begin with `mark`, and empty lines in place of the others.
fn comments<'t>(source: &'t str, mark: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    let text = move |line: &'t str| line.trim_start().strip_prefix(mark).filter(|rest| !rest.starts_with('/'));
    source.lines().enumerate().map(move |(number, line)| (number + 1, text(line).unwrap_or("")))
}

fn is_of_tests(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/") || path.starts_with("tests/")
}

fn check(files: impl Iterator<Item = String>, least: usize, scan: impl Fn(&mut Scan<'_>, &str)) {
    let mut findings = Vec::new();
    let mut sentences = 0;
    for file in files {
        let text = std::fs::read_to_string(root().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut found = Scan::new(&file);
        scan(&mut found, &text);
        sentences += found.sentences;
        findings.extend(found.findings);
    }
    assert!(sentences > least, "only {sentences} sentences");
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn pages_obey_the_rules() {
    let read_me = SOURCES.into_iter().flat_map(|folder| files(folder, ".md"));
    let pages = PAGES.map(str::to_owned).into_iter().chain(files("docs", ".md"));
    let pages = pages.chain(read_me.filter(|page| !page.starts_with("tests/corpus/")));
    let pages = pages.filter(|page| !TRANSCRIPTS.contains(&page.as_str()));
    check(pages, 5_000, |scan, text| scan.markdown(text.lines().enumerate().map(|(at, line)| (at + 1, line))));
}

#[test]
fn module_docs_obey_the_rules() {
    let sources = SOURCES.into_iter().flat_map(|folder| files(folder, ".rs"));
    check(sources, 1_000, |scan, text| scan.markdown(comments(text, "//!")));
}

#[test]
fn messages_obey_the_rules() {
    let sources = ["lang", "runtime", "server"].into_iter().flat_map(|folder| files(folder, ".rs"));
    check(sources.filter(|path| !is_of_tests(path)), 1_000, |scan, text| {
        scan.messages(text);
        if PRINTED.iter().any(|folder| scan.file.starts_with(folder)) {
            scan.markdown(comments(text, "///"));
        }
    });
}

/// Returns the findings in a text, by rule.
fn findings(text: &str) -> Vec<String> {
    let mut scan = Scan::new("page");
    scan.markdown(text.lines().enumerate());
    scan.findings.iter().map(|finding| finding.split(": ").nth(1).unwrap_or_default().to_owned()).collect()
}

#[test]
fn each_rule_finds_what_breaks_it() {
    let long = "word ".repeat(26);
    let cell = format!("| {} |", "word. Word ".repeat(20));
    for (text, rule) in [
        ("What the store has is masked.", "begins like a question"),
        ("It is so.\nWhich is good.", "begins like a question"),
        ("| Who asks |", "begins like a question"),
        ("It reads what is there.", "says \"what is there\""),
        ("- those that wait", "says \"those that\""),
        ("A key no longer counts.", "says \"no longer\""),
        ("It used to count.", "says \"used to\""),
        ("Rates and such.", "says \"such\" without a noun"),
        (long.as_str(), "a sentence of 26 words"),
        (cell.as_str(), "a cell of 219 characters"),
    ] {
        assert_eq!(findings(text), [rule], "{text}");
    }
    for text in [
        "What is it? A tool, such as `x`.",
        "It is used to count.",
        "```\nWhat the store has is masked.\n```",
        "> What a quote has",
        "`What no longer counts`",
        "<!-- What is there -->",
        "[a](What/those that)",
    ] {
        assert_eq!(findings(text), [""; 0], "{text}");
    }
    let mut scan = Scan::new("source");
    scan.messages("let x = \"What was done\";\n// \"What else\"\n#[cfg(test)]\nmod tests {\n    \"What now\"");
    assert_eq!(scan.findings, ["source:1: begins like a question: What was done"]);
}
