//! The keywords of the extension `u` of canonical tags: read, and what the crate leaves undone in their canonical form.
//!
//! bounded: by a tag

/// The keywords of a canonical tag: keys and values, with `""` for `true`.
pub fn of(tag: &str) -> Vec<(String, String)> {
    let parts: Vec<&str> = tag.split('-').collect();
    extension(&parts).map_or_else(Vec::new, |(start, end)| read(&parts[start + 1..end]).1)
}

/// The canonical form of a tag, whose keywords may have old values, and whose variant may be one of POSIX.
pub fn completed(tag: String) -> String {
    let has_posix = tag.contains("-posix");
    if !has_posix && !tag.contains("-u-") {
        return tag;
    }
    let mut parts: Vec<&str> = tag.split('-').collect();
    let name = super::without_extensions(&tag).split('-').count();
    // The variant is a keyword where it is the only one.
    let is_variant = |part: &&str| part.len() > 4 || part.len() == 4 && part.as_bytes()[0].is_ascii_digit();
    let variants: Vec<&str> = parts[1..name].iter().copied().filter(|part| is_variant(part)).collect();
    let is_posix = variants == ["posix"];
    if is_posix {
        parts.remove(name - 1);
    }
    let (start, end) = extension(&parts).unwrap_or_else(|| {
        let behind = |part: &&str| part.len() == 1 && (**part > *"u" || **part == *"x");
        let at = parts.iter().skip(1).position(behind).map_or(parts.len(), |at| at + 1);
        (at, at)
    });
    let inner = if start == end { &[][..] } else { &parts[start + 1..end] };
    let (attributes, mut keywords) = read(inner);
    for (key, value) in &mut keywords {
        if value == "yes" {
            value.clear();
        }
        if let Some(&(_, _, new)) = ALIASES.iter().find(|(name, old, _)| name == key && old == value) {
            *value = new.into();
        }
        if key == "tz"
            && let Some(&(_, new)) = ZONES.iter().find(|(old, _)| old == value)
        {
            *value = new.into();
        }
    }
    if is_posix && keywords.iter().all(|(key, _)| key != "va") {
        keywords.push(("va".into(), "posix".into()));
        keywords.sort();
    }
    let mut out = parts[..start].join("-");
    if !attributes.is_empty() || !keywords.is_empty() {
        out.push_str("-u");
    }
    let words = keywords.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
    for word in attributes.into_iter().chain(words).chain(parts[end..].iter().copied()).filter(|word| !word.is_empty())
    {
        out.push('-');
        out.push_str(word);
    }
    out
}

/// Where the extension begins, with its letter, and ends.
fn extension(parts: &[&str]) -> Option<(usize, usize)> {
    let singletons = || parts.iter().enumerate().skip(1).filter(|(_, part)| part.len() == 1);
    let (start, _) = singletons().find(|(_, part)| matches!(**part, "u" | "x"))?;
    if parts[start] == "x" {
        // All that follows is private.
        return None;
    }
    let end = singletons().map(|(at, _)| at).find(|&at| at > start).unwrap_or(parts.len());
    Some((start, end))
}

/// The attributes and the keywords of an extension.
fn read<'a>(parts: &[&'a str]) -> (Vec<&'a str>, Vec<(String, String)>) {
    let (mut attributes, mut keywords) = (Vec::new(), Vec::<(String, String)>::new());
    for &part in parts {
        match keywords.last_mut() {
            _ if part.len() == 2 => keywords.push((part.into(), String::default())),
            None => attributes.push(part),
            Some((_, value)) => {
                if !value.is_empty() {
                    value.push('-');
                }
                value.push_str(part);
            }
        }
    }
    (attributes, keywords)
}

/// Old values of keywords.
const ALIASES: &[(&str, &str, &str)] = &[
    ("ca", "islamicc", "islamic-civil"),
    ("ca", "ethiopic-amete-alem", "ethioaa"),
    ("ks", "primary", "level1"),
    ("ks", "tertiary", "level3"),
    ("ms", "imperial", "uksystem"),
];

/// Old codes of time zones.
const ZONES: &[(&str, &str)] = &[
    ("aqams", "aqmcm"),
    ("aukns", "auhba"),
    ("caffs", "cawnp"),
    ("camtr", "cator"),
    ("canpg", "cator"),
    ("capnt", "caiql"),
    ("cathu", "cator"),
    ("cayzf", "caedm"),
    ("cet", "bebru"),
    ("cnckg", "cnsha"),
    ("cnhrb", "cnsha"),
    ("cnkhg", "cnurc"),
    ("cst6cdt", "uschi"),
    ("cuba", "cuhav"),
    ("eet", "grath"),
    ("egypt", "egcai"),
    ("eire", "iedub"),
    ("est", "papty"),
    ("est5edt", "usnyc"),
    ("factory", "unk"),
    ("gaza", "gazastrp"),
    ("gmt0", "gmt"),
    ("hongkong", "hkhkg"),
    ("hst", "ushnl"),
    ("iceland", "isrey"),
    ("iran", "irthr"),
    ("israel", "jeruslm"),
    ("jamaica", "jmkin"),
    ("japan", "jptyo"),
    ("libya", "lytip"),
    ("met", "bebru"),
    ("mncoq", "mnuln"),
    ("mst", "usphx"),
    ("mst7mdt", "usden"),
    ("mxstis", "mxtij"),
    ("navajo", "usden"),
    ("poland", "plwaw"),
    ("portugal", "ptlis"),
    ("prc", "cnsha"),
    ("pst8pdt", "uslax"),
    ("roc", "twtpe"),
    ("rok", "krsel"),
    ("turkey", "trist"),
    ("uaozh", "uaiev"),
    ("uauzh", "uaiev"),
    ("uct", "utc"),
    ("umjon", "ushnl"),
    ("usnavajo", "usden"),
    ("wet", "ptlis"),
    ("zulu", "utc"),
];
