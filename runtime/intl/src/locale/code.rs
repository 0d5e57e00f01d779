//! Codes of languages that `Intl.DisplayNames` takes: tags of RFC 5646, which are more than those of UTS 35.
//!
//! bounded: by a tag

use super::{Invalid, UNKNOWN, canonical_form, check, keywords, without_extensions};

/// The canonical tag of a code, without extensions; `und` where there is no language.
pub fn language(code: &str) -> Result<String, Invalid> {
    let code = code.to_ascii_lowercase();
    if let Some(&(_, tag)) = LEGACY.iter().find(|(old, _)| *old == code) {
        return canonical_form(tag);
    }
    let parts: Vec<&str> = code.split('-').collect();
    let first_singleton = parts.iter().position(|part| part.len() == 1).unwrap_or(parts.len());
    let (name, extensions) = parts.split_at(first_singleton);
    check_extensions(extensions)?;
    let Some((&language, rest)) = name.split_first() else {
        let is_private = extensions.first() == Some(&"x");
        return if is_private { Ok("und".into()) } else { Err(Invalid::Language) };
    };
    let is_language = |part: &str| (2..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_language(language) {
        return Err(Invalid::Language);
    }
    // Up to three extended languages, of which the first one is the language.
    let is_extended = |part: &&&str| part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_alphabetic());
    let extended = if language.len() <= 3 { rest.iter().take(3).take_while(is_extended).count() } else { 0 };
    let language = if extended > 0 { rest[0] } else { language };
    let rest = &rest[extended..];
    check(&[&[UNKNOWN], rest].concat().join("-"))?;
    let tag = canonical_form(&[&[language], rest].concat().join("-"))?;
    // The variant of POSIX is a keyword of canonical tags.
    let has_posix = |tag: &str| keywords::of(tag).contains(&("va".into(), "posix".into()));
    let has_variants = rest.iter().any(|part| part.len() >= 4 && !is_script(part));
    let is_posix = has_posix(&tag) || has_posix(&code) && !has_variants;
    Ok([without_extensions(&tag), if is_posix { "-posix" } else { "" }].concat())
}

fn is_script(part: &str) -> bool {
    part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Whether each extension has parts, and none is there twice.
fn check_extensions(parts: &[&str]) -> Result<(), Invalid> {
    let mut seen = Vec::new();
    let mut parts = parts.iter().copied().peekable();
    let is_word = |part: &str| part.len() <= 8 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    while let Some(singleton) = parts.next() {
        let is_private = singleton == "x";
        let mut count = 0;
        while parts.next_if(|part| is_word(part) && part.len() > usize::from(!is_private)).is_some() {
            count += 1;
        }
        if singleton.len() != 1 || !is_word(singleton) || count == 0 || seen.contains(&singleton) {
            return Err(Invalid::Rest);
        }
        seen.push(singleton);
    }
    Ok(())
}

/// Tags from before RFC 4646, and what stands for them.
const LEGACY: &[(&str, &str)] = &[
    ("", "und"),
    ("root", "und"),
    ("art-lojban", "jbo"),
    ("cel-gaulish", "xtg"),
    ("en-gb-oed", "en-GB-oxendict"),
    ("i-ami", "ami"),
    ("i-bnn", "bnn"),
    ("i-default", "en"),
    ("i-enochian", "und"),
    ("i-hak", "hak"),
    ("i-klingon", "tlh"),
    ("i-lux", "lb"),
    ("i-mingo", "see"),
    ("i-navajo", "nv"),
    ("i-pwn", "pwn"),
    ("i-tao", "tao"),
    ("i-tay", "tay"),
    ("i-tsu", "tsu"),
    ("no-bok", "nb"),
    ("no-nyn", "nn"),
    ("sgn-be-fr", "sfb"),
    ("sgn-be-nl", "vgt"),
    ("sgn-ch-de", "sgg"),
    ("zh-guoyu", "cmn"),
    ("zh-hakka", "hak"),
    ("zh-min", "nan"),
    ("zh-min-nan", "nan"),
    ("zh-xiang", "hsn"),
];
