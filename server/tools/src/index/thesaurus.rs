//! Synonyms: words that people use for each other when they search for a tool.
//!
//! A synonym never counts as much as the word itself would. So a row may be generous: it changes little where tools have
//! the word itself.

use super::words::stem;
use std::collections::{HashMap, HashSet};
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

/// Words of people for words of tools: several for one. All words of the first part must be in the query, in any
/// order, where `|` separates words of which one is enough; then the words of the second part are searched too. A row
/// applies only where its words stand together, so it may have words that mean many things alone.
const PHRASES: &[(&str, &str)] = &[
    // Browsers and the web.
    ("open|visit|go|load|launch page|site|website|webpage|url|link|browser", "navigate url"),
    ("back page|site|browser", "navigate back previous"),
    (
        "grab|get|download|copy|take text|content|article page|site|website|webpage|web|article",
        "scrape fetch url content",
    ),
    ("press|push|hit|tap button|link|icon", "click element"),
    ("write|enter|put|type word|text|name|password|value box|field|input|form", "type text"),
    ("pick|choose|select dropdown|menu|list", "select option"),
    ("fill out|in form", "fill form field"),
    ("snap|take picture|photo|shot page|site|screen|browser|website", "screenshot"),
    ("look like page|site|website", "screenshot snapshot"),
    ("google|lookup|look something|anything|it|that", "web search"),
    ("look internet|online|web|google", "web search"),
    ("every|all|whole page|link site|website", "crawl website"),
    ("gather|collect|harvest page|content|text site|website", "crawl website"),
    ("eye|notified|notify|alert|tell page|site|website|price change|eye|different", "monitor watch"),
    ("keep eye", "monitor watch"),
    ("step|problem|think another|through|careful|hard|tricky", "sequential thinking thought"),
    ("study|literature|science|scientific paper|article|subject|topic|about|sleep|health", "research paper search"),
    // Files.
    ("where file|document|folder|picture", "search files find"),
    ("what|show inside|in|content file", "read file contents"),
    ("what|show|list in|inside folder|directory", "list directory"),
    ("put|bring file|folder else|elsewhere|other|another|somewhere", "move file"),
    ("name file|folder new|another|different|change", "move rename"),
    ("picture|photo|image|song|video disk|file|folder", "media file read"),
    ("turn|convert pdf|document|file markdown|text", "parse document convert"),
    ("comma separated", "csv"),
    // Spreadsheets.
    (
        "bold|italic|color|colour|font|underline|background cell|row|column|header|sheet|spreadsheet|range|text|title",
        "format range style font",
    ),
    (
        "color|colour|highlight|mark when|above|below|if|greater|less|big|small|negative cell|value|number|row",
        "conditional format",
    ),
    ("wide|wider|narrow|narrower|tall|taller|width|height column|row|cell", "layout width column sheet"),
    ("glue|join|combine|put cell together|cell|one", "merge cells"),
    ("number|data|value|sale pie|bar|graph|line|curve", "chart create"),
    ("pie|bar|graph|plot|curve", "chart"),
    ("add|sum|total|count up|per|each|by shop|region|month|category|group|person|customer", "pivot table aggregate"),
    ("alphabetical|ascending|descending|order list|row|table|column|name|by", "sort range"),
    ("swap|exchange|substitute|replace word|text|value sheet|spreadsheet|file|everywhere|document", "replace find"),
    ("double|duplicate|same row|entry|line", "duplicate remove transform"),
    ("new tab|page|sheet spreadsheet|workbook|excel", "create sheet"),
    // Memory.
    (
        "remember|note|memorize|memorise|store|save fact|person|birthday|preference|that|something|someone|friend|my",
        "memory entity observation add",
    ),
    ("jot|note|write|put down", "note observation add"),
    (
        "learned|learnt|heard|found about|out someone|person|colleague|friend|customer|something",
        "memory observation entity add",
    ),
    ("what know|remember|recall about|someone|person|me|us", "memory search node knowledge graph"),
    ("forget told|said|know|person|fact|what|about", "memory delete observation entity"),
    // Messages.
    ("text|tell|ping|write|message|let team|everyone|colleague|people|know|channel|group", "post message channel send"),
    ("what say|said|write|wrote|happen|discuss people|channel|chat|team", "channel history message"),
    ("thumb|heart|emoji|smiley|like up|message|post|give", "reaction emoji add"),
    ("room|group chat|talk|message", "channel list"),
    // Code and version control.
    ("who|what|when change|changed|touch|edit last|recent|recently|project|repo|file|code", "log commit history"),
    ("save|store|keep|record change|code|state|work version|git|code|state|snapshot", "commit git"),
    ("what change|changed|differ|different since|last|commit|yet|now", "diff status"),
    ("go|switch|move|change branch", "checkout branch switch"),
    ("send|submit|propose|offer change|code|work review|look|looked|approve|merge", "pull request create"),
    ("let|accept|take|bring change|work|code in|into", "merge pull request"),
    ("something broken|wrong|bug|crash|fail", "issue create bug report"),
    ("tell|report|file broken|wrong|bug|problem|crash", "issue create"),
    ("still|left|open|todo do|done|todo|task|tracker|work", "issue list open"),
    ("pass|green|ok check|test|ci|build", "status check"),
    // Databases.
    ("what|show in|inside database|db", "list tables collections"),
    ("who|which|get|show|how customer|order|row|record|user list|database|table|db", "query select table"),
    ("throw|get|rid|remove out|away|rid document|record|row|entry", "delete"),
    ("throw|get out|away|rid", "delete remove"),
    ("put|insert|add new|another record|document|entry|row", "insert create"),
    ("get|fetch|look thing|entry|record|document out|of|in|from collection", "find"),
    ("how many record|document|row|match|entry|item", "count"),
    // Clusters.
    ("up|run|running|alive|healthy app|service|pod|website|site|server cluster|kubernetes|k8s|pod", "get status pod"),
    ("what|why|show print|printed|output|say|crash container|pod|app|service", "logs"),
    ("more|fewer|number copy|instance|replica service|app|deployment|pod", "scale replica deployment"),
    ("take|bring|node|server out node|service|rotation|maintenance", "drain cordon node"),
    // Places and times.
    ("how get|drive|go|walk|travel|way|home to|from|there|home|here", "directions route"),
    ("how long|far drive|way|trip|walk|apart|town|city", "distance directions"),
    ("far apart|away|from", "distance"),
    ("place|somewhere|where|spot|something eat|drink|sleep|stay|shop", "local search places restaurant"),
    ("near|close|around here|me|by|home|office", "local places nearby"),
    ("when|open|close|opening shop|store|restaurant|museum|place close|open|hours|opening", "place details opening"),
    ("which|what street|address|place at|spot|here|point|coordinate", "reverse geocode address"),
    ("what|how clock|late|time say|is|in|now", "current time"),
    // Documents.
    ("write|put|take up|down thought|note|idea|meeting page|document|notion", "create page post"),
    ("add|append|put paragraph|text|line|block|sentence|heading page|document|notion|note", "append block children"),
    ("leave|make|write remark|comment|note page|document|issue|task", "comment create"),
];

/// A row of [`PHRASES`] by stems.
struct Phrase {
    /// For each word, the stems of which one is enough.
    words: Vec<Vec<String>>,
    concepts: Vec<String>,
}

static PHRASE_STEMS: LazyLock<Vec<Phrase>> = LazyLock::new(|| {
    let stems = |text: &str, separator: char| text.split(separator).map(stem).collect::<Vec<_>>();
    let phrase = |(words, concepts): &(&str, &str)| Phrase {
        words: words.split(' ').map(|word| stems(word, '|')).collect(),
        concepts: stems(concepts, ' '),
    };
    PHRASES.iter().map(phrase).collect()
});

/// Returns the stems of the concepts that a query describes in several words, each once.
pub fn concepts(query: &HashSet<String>) -> Vec<&'static str> {
    let mut found = Vec::new();
    for phrase in PHRASE_STEMS.iter() {
        if has_each(&phrase.words, query, &mut Vec::new()) {
            for concept in &phrase.concepts {
                if !query.contains(concept) && !found.contains(&concept.as_str()) {
                    found.push(concept.as_str());
                }
            }
        }
    }
    found
}

/// Whether a query has a word of its own for each word of a phrase. `used` are those of the words before.
fn has_each<'q>(words: &[Vec<String>], query: &'q HashSet<String>, used: &mut Vec<&'q str>) -> bool {
    let Some((first, rest)) = words.split_first() else { return true };
    first.iter().any(|stem| {
        let Some(own) = query.get(stem).filter(|own| !used.contains(&own.as_str())) else { return false };
        used.push(own);
        let found = has_each(rest, query, used);
        used.pop();
        found
    })
}

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

    #[test]
    fn concepts_of_several_words() {
        let of = |query: &str| concepts(&query.split(' ').map(stem).collect()).join(" ");
        assert_eq!(of("open a web page"), "navig url");
        assert_eq!(of("navigate page open"), "url", "words of the query are left out");
        assert_eq!(of("open"), "");
        assert_eq!(of("page"), "", "each word of a phrase is another word of the query");
    }
}
