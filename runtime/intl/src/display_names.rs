//! Names of languages, regions, scripts, currencies, calendars and fields of dates (ECMA-402 12).
//!
//! bounded: by a code

use crate::locale::{self, Available};
use crate::pack::{self, CURRENCIES, NAMES, PHRASES};

/// The values of the option `style`.
pub const STYLES: &[&str] = &["narrow", "short", "long"];
/// The values of the option `type`.
pub const TYPES: &[&str] = &["language", "region", "script", "currency", "calendar", "dateTimeField"];
/// The values of the option `fallback`.
pub const FALLBACKS: &[&str] = &["none", "code"];
/// The values of the option `languageDisplay`.
pub const DISPLAYS: &[&str] = &["standard", "dialect"];

/// The resolved options.
#[derive(Clone, Debug)]
pub struct DisplayNames {
    /// The resolved tag.
    pub tag: String,
    /// The locale.
    pub locale: Available,
    /// An index of [`STYLES`].
    pub style: usize,
    /// An index of [`TYPES`].
    pub kind: usize,
    /// Whether a code stands for itself where it has no name.
    pub has_fallback: bool,
    /// Whether languages are named with their regions, as in "British English".
    pub is_dialect: bool,
}

/// A code has not the form of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidCode;

/// The fields of dates, and what CLDR calls them.
const FIELDS: &[(&str, &str)] = &[
    ("era", "era"),
    ("year", "year"),
    ("quarter", "quarter"),
    ("month", "month"),
    ("weekOfYear", "week"),
    ("weekday", "weekday"),
    ("day", "day"),
    ("dayPeriod", "dayperiod"),
    ("hour", "hour"),
    ("minute", "minute"),
    ("second", "second"),
    ("timeZoneName", "zone"),
];

/// Regions that are no more, and those that stand for them, as in ICU.
const RENAMED: &[(&str, &str)] = &[
    ("AN", "CW"),
    ("BU", "MM"),
    ("CS", "RS"),
    ("DD", "DE"),
    ("DY", "BJ"),
    ("FX", "FR"),
    ("HV", "BF"),
    ("NH", "VU"),
    ("RH", "ZW"),
    ("SU", "RU"),
    ("TP", "TL"),
    ("UK", "GB"),
    ("VD", "VN"),
    ("YD", "YE"),
    ("YU", "RS"),
    ("ZR", "CD"),
];

impl DisplayNames {
    /// The name of a code, or the code in its canonical form where there is a fallback.
    pub fn of(&self, code: &str) -> Result<Option<String>, InvalidCode> {
        let is_alpha = code.bytes().all(|byte| byte.is_ascii_alphabetic());
        let mut canonical = None;
        let name = match TYPES[self.kind] {
            "language" => {
                let tag = locale::language(code).map_err(|_| InvalidCode)?;
                let name = self.language(&tag);
                // The root is `und`, and has no name.
                canonical = Some(if tag == "und" { "root".into() } else { tag });
                name
            }
            "region" => {
                let is_number = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
                if !(is_number || code.len() == 2 && is_alpha || code.is_empty()) {
                    return Err(InvalidCode);
                }
                // As in V8, in capitals only.
                self.region(code).map(Into::into)
            }
            "script" => {
                if !matches!(code.len(), 0 | 4) || !is_alpha {
                    return Err(InvalidCode);
                }
                self.script(code).map(Into::into)
            }
            "currency" => {
                if code.len() != 3 || !is_alpha {
                    return Err(InvalidCode);
                }
                self.currency(&code.to_ascii_uppercase()).map(Into::into)
            }
            "calendar" => {
                if !locale::is_type(code) {
                    return Err(InvalidCode);
                }
                let known = match code {
                    "gregory" => "gregorian",
                    "ethioaa" => "ethiopic-amete-alem",
                    other => other,
                };
                self.find("C", known).map(Into::into)
            }
            _ => {
                let (_, field) = FIELDS.iter().find(|(name, _)| *name == code).ok_or(InvalidCode)?;
                let find = |style: &str| PHRASES.get(self.locale.data, &format!("f/{field}/{style}"));
                find(["n", "s", "l"][self.style]).or_else(|| find("l")).map(Into::into)
            }
        };
        let fallback = || self.has_fallback.then(|| canonical.unwrap_or_else(|| code.to_owned()));
        Ok(name.or_else(fallback))
    }

    fn find(&self, table: &str, code: &str) -> Option<&'static str> {
        NAMES.get(self.locale.data, &format!("{table}/{code}"))
    }

    /// The short name where that is wanted and there is one.
    fn short(&self, table: &str, code: &str) -> Option<&'static str> {
        let short = || self.find(&format!("{table}s"), code);
        if self.style < 2
            && let Some(name) = short()
        {
            Some(name)
        } else {
            self.find(table, code)
        }
    }

    fn region(&self, code: &str) -> Option<&'static str> {
        let today = || RENAMED.iter().find(|(old, _)| *old == code).and_then(|(_, new)| self.short("T", new));
        self.short("T", code).or_else(today)
    }

    fn script(&self, code: &str) -> Option<&'static str> {
        self.short("S", code)
    }

    /// As in V8, the style makes no difference.
    fn currency(&self, code: &str) -> Option<&'static str> {
        CURRENCIES.get(self.locale.data, &format!("n/{code}"))?.split(pack::FIELD).next()
    }

    /// The name of a language with its script, region and variants (`LocaleDisplayNames` of ICU).
    fn language(&self, tag: &str) -> Option<String> {
        let tag = locale::without_extensions(tag);
        let mut parts = tag.split('-').peekable();
        let language = parts.next().filter(|language| *language != "und").unwrap_or("root");
        let mut script = parts.next_if(|part| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
        let is_region =
            |part: &&str| part.len() == 2 || part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit());
        let mut region = parts.next_if(is_region);
        let variants: Vec<String> = parts.map(str::to_ascii_uppercase).collect();
        let named = |tag: &str| self.short("L", tag);
        let mut name = None;
        if self.is_dialect {
            let key = [Some(language), script, region].into_iter().flatten().collect::<Vec<_>>().join("-");
            name = named(&key);
            if name.is_some() {
                (script, region) = (None, None);
            }
        }
        let mut rest: Vec<String> = Vec::new();
        let known = |name: Option<&str>, code: &str| match name {
            Some(name) => Some(name.to_owned()),
            None => self.has_fallback.then(|| code.to_owned()),
        };
        if let Some(code) = script {
            rest.push(known(self.script(code), code)?);
        }
        if let Some(code) = region {
            rest.push(known(self.region(code), code)?);
        }
        if !variants.is_empty() {
            let all = variants.join("_");
            rest.push(known(self.find("V", &all), &all)?);
        }
        let name = match name.or_else(|| named(language)) {
            Some(name) => name,
            None if rest.is_empty() => return None,
            None if !self.has_fallback => return None,
            None => language,
        };
        let patterns = NAMES.get(self.locale.data, "pattern").unwrap_or_default();
        let [pattern, separator, _]: [&'static str; 3] = pack::fields(patterns);
        let mut rest = rest.into_iter();
        let Some(mut inner) = rest.next() else { return Some(name.into()) };
        for more in rest {
            inner = separator.replace("{0}", &inner).replace("{1}", &more);
        }
        let (open, close, inside) =
            if pattern.contains('（') { ('（', '）', ['［', '］']) } else { ('(', ')', ['[', ']']) };
        let replace = |text: &str| {
            text.replace(open, inside[0].encode_utf8(&mut [0; 4])).replace(close, inside[1].encode_utf8(&mut [0; 4]))
        };
        Some(pattern.replace("{0}", name).replace("{1}", &replace(&inner)))
    }
}
