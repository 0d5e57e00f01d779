//! Icons and `_meta` of tools, resources and prompts, which are for clients and people: they pass, bounded and without hidden text.

use crate::pagination::json_length;
use codecall_base::hidden::{is_hiding, is_hiding_name, visible};
use rmcp::model::{Icon, MetaObject, Prompt, Resource, ResourceTemplate, Skill};
use serde_json::{Map, Value};

/// Maximum size of `_meta`, in bytes of JSON. Larger ones do not pass.
const MAX_META_BYTES: usize = 16 << 10;
/// Maximum number of icons.
const MAX_ICONS: usize = 8;
/// Maximum length of an address and of an image in place of one, in bytes. Longer ones do not pass.
const MAX_ADDRESS_BYTES: usize = 2 << 10;
const MAX_IMAGE_BYTES: usize = 64 << 10;
/// Members of `_meta` that only this server sets begin with this.
const OWN: &str = "codecall";

/// An entry of a list of a server.
pub trait Listed {
    /// Removes hidden text from what is for people, and what does not pass of its icons and `_meta`.
    fn clean(&mut self);
}

impl Listed for Resource {
    fn clean(&mut self) {
        clean_texts([&mut self.title, &mut self.description]);
        clean_metadata(&mut self.icons, &mut self.meta);
    }
}

impl Listed for ResourceTemplate {
    fn clean(&mut self) {
        clean_texts([&mut self.title, &mut self.description]);
        clean_metadata(&mut self.icons, &mut self.meta);
    }
}

impl Listed for Prompt {
    fn clean(&mut self) {
        clean_texts([&mut self.title, &mut self.description]);
        for argument in self.arguments.iter_mut().flatten() {
            clean_texts([&mut argument.title, &mut argument.description]);
        }
        clean_metadata(&mut self.icons, &mut self.meta);
    }
}

/// Its frontmatter is that of its file, whose digest hosts check: it passes as it is, or not at all.
impl Listed for Skill {
    fn clean(&mut self) {
        clean_metadata(&mut None, &mut self.meta);
    }
}

fn clean_texts(texts: [&mut Option<String>; 2]) {
    for text in texts.into_iter().flatten() {
        if is_hiding(text) {
            *text = visible(text).into_owned();
        }
    }
}

fn clean_metadata(icons: &mut Option<Vec<Icon>>, meta: &mut Option<MetaObject>) {
    *icons = icons.take().map(|icons| self::icons(icons).0).filter(|icons| !icons.is_empty());
    *meta = meta.take().map(|meta| MetaObject(self::meta(meta.0).0)).filter(|meta| !meta.0.is_empty());
}

/// Returns the icons that pass, and why others do not.
pub fn icons(icons: Vec<Icon>) -> (Vec<Icon>, Option<String>) {
    let all = icons.len();
    let passing = icons.into_iter().filter(passes).take(MAX_ICONS);
    let kept: Vec<Icon> = passing.collect();
    let left_out = all - kept.len();
    let reason = (left_out > 0).then(|| format!("{left_out} of its icons are left out: at most {MAX_ICONS} pass, each an image or an address with http or https"));
    (kept, reason)
}

/// Whether an icon is an image or the address of one. A script in place of an address runs where it is shown.
fn passes(icon: &Icon) -> bool {
    let has_scheme = |scheme: &str| icon.src.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme));
    let is_short =
        icon.sizes.iter().flatten().chain(&icon.mime_type).all(|text| text.len() <= 64 && !is_hiding_name(text));
    let fits = if has_scheme("data:image/") {
        icon.src.len() <= MAX_IMAGE_BYTES
    } else {
        (has_scheme("https://") || has_scheme("http://")) && icon.src.len() <= MAX_ADDRESS_BYTES
    };
    fits && is_short && icon.sizes.as_ref().is_none_or(|sizes| sizes.len() <= MAX_ICONS) && !is_hiding_name(&icon.src)
}

/// Returns `_meta` as it passes, and why it does not.
pub fn meta(mut meta: Map<String, Value>) -> (Map<String, Value>, Option<String>) {
    meta.retain(|key, _| key.split('/').next() != Some(OWN));
    let bytes = json_length(&meta);
    if bytes > MAX_META_BYTES {
        return (
            Map::new(),
            Some(format!("its '_meta' is left out: it has {bytes} bytes, of at most {MAX_META_BYTES}")),
        );
    }
    clean_members(&mut meta);
    (meta, None)
}

/// Removes hidden text. Values nest as deeply as readers of JSON follow, so this may recurse.
fn clean_members(members: &mut Map<String, Value>) {
    members.retain(|key, _| !is_hiding_name(key));
    members.values_mut().for_each(clean_value);
}

fn clean_value(value: &mut Value) {
    match value {
        Value::String(text) if is_hiding(text) => *text = visible(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(clean_value),
        Value::Object(members) => clean_members(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_images_and_their_addresses_pass_as_icons() {
        let long = format!("https://h/{}", "x".repeat(3_000));
        let image = |bytes: usize| format!("data:image/png;base64,{}", "A".repeat(bytes));
        let sources = [
            ("https://h/a.png", true),
            ("HTTP://h/a.png", true),
            (&image(1_000), true),
            ("data:image/svg+xml,<svg/>", true),
            ("javascript:alert(1)", false),
            ("JavaScript:alert(1)", false),
            ("data:text/html,<script>", false),
            ("file:///etc/passwd", false),
            ("ws://h", false),
            ("/a.png", false),
            ("", false),
            ("https://h/\u{202e}gnp", false),
            (&long, false),
            (&image(70_000), false),
        ];
        for (source, expected) in sources {
            assert_eq!(passes(&Icon::new(source)), expected, "{source:.60}");
        }
        let (kept, reason) = icons(vec![Icon::new("https://h/a.png"); 20]);
        assert_eq!(kept.len(), MAX_ICONS);
        assert!(reason.is_some_and(|reason| reason.starts_with("12 of its icons are left out")));
    }

    #[test]
    fn metadata_is_bounded_and_has_no_hidden_text() {
        let given = json!({
            "ui": {"resourceUri": "ui://a/b", "csp": [1, "x\u{200b}y"]}, "codecall": {"tags": []}, "codecall/oddities": 1,
            "codecalls": 1, "bad\u{202e}key": 1, "note": "a<!-- send it -->b",
        });
        let expected = json!({"ui": {"resourceUri": "ui://a/b", "csp": [1, "xy"]}, "codecalls": 1, "note": "ab"});
        let object = |value: Value| value.as_object().cloned().expect("an object");
        assert_eq!(meta(object(given)), (object(expected), None));
        let (kept, reason) = meta(object(json!({"x": "x".repeat(20_000)})));
        assert!(kept.is_empty() && reason.is_some_and(|reason| reason.contains("20008 bytes")));
    }
}
