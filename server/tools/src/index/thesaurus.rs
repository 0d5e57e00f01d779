//! Synonyms: words that people use for each other when they search for a tool.
//!
//! A synonym never counts as much as the word itself would. So a row may be generous: it changes little where tools have
//! the word itself.

use super::words::stem;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Each row has words for one thing. A word may be in several rows.
const ROWS: &[&str] = &[
    // What is done.
    "get fetch read retrieve show view display give see look load tell",
    "describe inspect explain detail info information about metadata",
    "list all enumerate browse every show what exist",
    "search find look lookup query locate discover seek filter",
    "create add new make insert open start generate build setup",
    "delete remove drop erase clear destroy forget discard uninstall rid purge",
    "update edit change modify set patch alter adjust replace",
    "send post publish reply answer tell notify share",
    "write save store put record remember note",
    "run execute exec invoke launch call perform trigger",
    "move rename relocate transfer rearrange drag",
    "copy duplicate clone fork replicate",
    "upload push import attach",
    "download export pull",
    "connect link relate join associate",
    "stop cancel end close terminate abort kill pause dismiss",
    "start begin launch resume",
    "check verify validate status test done progress",
    "compare diff difference change",
    "count number many total",
    "convert transform translate turn",
    "calculate compute determine",
    "watch monitor track observe notify",
    "undo revert reset restore rollback unstage",
    "sort order arrange",
    "summarize aggregate group sum pivot",
    "type enter fill input",
    "choose select pick",
    "switch checkout",
    "approve review accept",
    "deploy install apply release",
    "scale resize upgrade grow increase replica bigger",
    "log history recent latest event",
    "click press tap push",
    "think reason reflect",
    "scrape extract crawl download",
    "go navigate visit open browse",
    // What it is done to.
    "file document",
    "folder directory path",
    "repository repo project",
    "issue ticket bug task",
    "message chat conversation discussion thread",
    "user member person people account profile developer who",
    "picture image photo screenshot logo icon",
    "website site page web webpage",
    "internet online web",
    "url link address",
    "database db",
    "documentation manual docs doc knowledge guide",
    "kubernetes k8s kubectl",
    "commit revision change",
    "pull merge pr mr request",
    "address location place position coordinate map",
    "error failure exception warning alert problem",
    "spreadsheet excel workbook sheet",
    "sheet tab",
    "column field property attribute",
    "row record entry document item",
    "email mail",
    "configuration config setting option preference",
    "organization org company",
    "environment env",
    "chart plot diagram graph",
    "container pod",
    "paper article literature publication",
    "schema structure field column definition",
    "note comment annotation",
    "direction route drive travel way",
    "size large big space",
    "time clock hour date",
    "permission access allow right",
    "javascript js script code",
    "source code",
    "table collection",
    "emoji reaction",
    "branch version",
    "sql select relational",
    "http network request",
    "dialog popup alert prompt",
    "dropdown option select",
    "index indices",
    "statistic stat usage metric",
    "uncommitted unstaged modification modified change dirty",
    "elevation altitude height high",
    "someone somebody anyone person people user",
    "know knowledge remember recall memory",
    "highlight conditional format color bold font style",
    "shop restaurant cafe hotel business local place nearby near",
    "train bus car walk drive transit direction route",
    "text content body",
    "calendar event meeting appointment schedule",
    "payment charge invoice bill",
    "customer client user",
    "phone call sms text",
    "password secret credential token key",
    "weather forecast temperature",
    "stock price quote",
    "backup snapshot export dump",
    "queue topic stream kafka pipeline",
    "alert alarm incident",
    "login signin authenticate auth session",
    "logout signout",
    "video audio media sound recording",
    "width wide height layout",
    "keyboard key shortcut",
    "mouse cursor pointer",
    "reminder task todo",
    "link hyperlink",
    "subscribe follow watch",
    "label tag category",
    "assign assignee owner",
    "job worker task cron",
    "server host machine instance vm",
    "ci build pipeline check workflow",
    "vulnerability security",
    "slow performance latency",
    "regex pattern glob",
];

static SYNONYMS: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut synonyms: HashMap<String, Vec<String>> = HashMap::new();
    for row in ROWS {
        let stems: Vec<String> = row.split_whitespace().map(stem).collect();
        for word in &stems {
            let others = synonyms.entry(word.clone()).or_default();
            for other in &stems {
                if other != word && !others.contains(other) {
                    others.push(other.clone());
                }
            }
        }
    }
    synonyms
});

/// The stems of the synonyms of a stem.
pub fn synonyms(stem: &str) -> &'static [String] {
    SYNONYMS.get(stem).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_by_stem() {
        assert!(synonyms(&stem("fetching")).contains(&stem("retrieve")));
        assert!(synonyms(&stem("removes")).contains(&stem("delete")));
        assert!(!synonyms(&stem("get")).contains(&stem("get")), "no word is its own synonym");
        assert!(synonyms("quux").is_empty());
    }
}
