//! `Intl.DisplayNames` (ECMA-402 12).

use super::locale::Available;
use super::pack::{self, CURRENCIES, NAMES, PHRASES};
use super::{MATCHERS, SUPPORTED_LOCALES_OF, choice, incompatible, locale, needs_new, resolved, word};
use crate::builtins::{Body, Global, Row, arg, native};
use crate::heap::InternalSlots;
use crate::thrown::{Result, Thrown};
use crate::value::Value;
use crate::vm::Vm;

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "DisplayNames",
    length: 2,
    call: Body::Native(|vm, _, _| Err(needs_new(vm, "DisplayNames"))),
    construct: Some(Body::Native(construct)),
    functions: &[SUPPORTED_LOCALES_OF],
    numbers: &[],
};

/// Its methods.
pub const METHODS: &[Row] = &[native("resolvedOptions", 0, resolved_options), native("of", 1, of)];

/// The internal slots of an `Intl.DisplayNames`.
#[derive(Clone, Debug)]
pub struct DisplayNames {
    tag: String,
    locale: Available,
    style: usize,
    kind: usize,
    has_fallback: bool,
    is_dialect: bool,
}

const STYLES: &[&str] = &["narrow", "short", "long"];
const TYPES: &[&str] = &["language", "region", "script", "currency", "calendar", "dateTimeField"];
const FALLBACKS: &[&str] = &["none", "code"];
const DISPLAYS: &[&str] = &["standard", "dialect"];

/// `new Intl.DisplayNames(locales, options)`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let service = "Intl.DisplayNames";
    vm.work(4)?;
    let requested = resolved(vm, arg(arguments, 0))?;
    let options = arg(arguments, 1);
    if !options.is_object() {
        return Err(vm.type_error("invalid_argument"));
    }
    choice(vm, options, service, "localeMatcher", MATCHERS)?;
    let style = choice(vm, options, service, "style", STYLES)?.unwrap_or(2);
    let Some(kind) = choice(vm, options, service, "type", TYPES)? else {
        return Err(vm.type_error("invalid_argument"));
    };
    let has_fallback = choice(vm, options, service, "fallback", FALLBACKS)? != Some(0);
    let is_dialect = choice(vm, options, service, "languageDisplay", DISPLAYS)? != Some(0);
    let tag = requested.tag(|_, _| false);
    let names = DisplayNames { tag, locale: requested.locale, style, kind, has_fallback, is_dialect };
    Ok(vm.heap.new_with_slots(InternalSlots::DisplayNames(Box::new(names))))
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<DisplayNames> {
    match vm.heap.internal_slots_of(this) {
        Some(InternalSlots::DisplayNames(names)) => Ok((**names).clone()),
        _ => Err(incompatible(vm, this, "DisplayNames", method)),
    }
}

/// `names.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let names = receiver(vm, this, "resolvedOptions")?;
    let object = vm.heap.new_object();
    super::put_text(vm, object, "locale", &names.tag);
    super::put_text(vm, object, "style", STYLES[names.style]);
    super::put_text(vm, object, "type", TYPES[names.kind]);
    super::put_text(vm, object, "fallback", FALLBACKS[usize::from(names.has_fallback)]);
    if names.kind == 0 {
        super::put_text(vm, object, "languageDisplay", DISPLAYS[usize::from(names.is_dialect)]);
    }
    Ok(object)
}

#[cold]
fn invalid(vm: &mut Vm) -> Thrown {
    vm.range_error("invalid_argument")
}

/// `names.of(code)`
fn of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let names = receiver(vm, this, "of")?;
    let code = word(vm, arg(arguments, 0))?;
    vm.work(16)?;
    let is_alpha = code.bytes().all(|byte| byte.is_ascii_alphabetic());
    let (canonical, name) = match TYPES[names.kind] {
        "language" => {
            // The root is `und`, and has no name.
            let Ok(tag) = locale::language(&code) else { return Err(invalid(vm)) };
            let name = names.language(&tag);
            (if tag == "und" { "root".into() } else { tag }, name)
        }
        "region" => {
            let is_number = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
            if !(is_number || code.len() == 2 && is_alpha || code.is_empty()) {
                return Err(invalid(vm));
            }
            // As in V8, in capitals only.
            let name = names.region(&code).map(Into::into);
            (code, name)
        }
        "script" => {
            if !matches!(code.len(), 0 | 4) || !is_alpha {
                return Err(invalid(vm));
            }
            let name = names.script(&code).map(Into::into);
            (code, name)
        }
        "currency" => {
            if code.len() != 3 || !is_alpha {
                return Err(invalid(vm));
            }
            let name = names.currency(&code.to_ascii_uppercase()).map(Into::into);
            (code, name)
        }
        "calendar" => {
            let fits =
                |part: &str| (3..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !code.split('-').all(fits) {
                return Err(invalid(vm));
            }
            let known = match code.as_str() {
                "gregory" => "gregorian",
                "ethioaa" => "ethiopic-amete-alem",
                other => other,
            };
            let name = names.find("C", known).map(Into::into);
            (code, name)
        }
        _ => {
            let Some((_, field)) = FIELDS.iter().find(|(name, _)| *name == code) else {
                return Err(invalid(vm));
            };
            // bounded: a field
            let find = |style: &str| PHRASES.get(names.locale.data, &format!("f/{field}/{style}"));
            let name = find(["n", "s", "l"][names.style]).or_else(|| find("l")).map(Into::into);
            (code, name)
        }
    };
    match name {
        Some(name) => Ok(vm.string(&name)),
        None if names.has_fallback => Ok(vm.string(&canonical)),
        None => Ok(Value::UNDEFINED),
    }
}

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
    fn find(&self, table: &str, code: &str) -> Option<&'static str> {
        // bounded: a code
        NAMES.get(self.locale.data, &format!("{table}/{code}"))
    }

    /// The short name where that is wanted and there is one.
    fn short(&self, table: &str, code: &str) -> Option<&'static str> {
        // bounded: a letter
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
        // bounded: a code
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
        // bounded: by a tag, here and below
        let variants: Vec<String> = parts.map(str::to_ascii_uppercase).collect();
        let named = |tag: &str| self.short("L", tag);
        let mut name = None;
        if self.is_dialect {
            // bounded: a tag
            let key = [Some(language), script, region].into_iter().flatten().collect::<Vec<_>>().join("-");
            name = named(&key);
            if name.is_some() {
                (script, region) = (None, None);
            }
        }
        let mut rest: Vec<String> = Vec::new(); // bounded: by a tag
        let known = |name: Option<&str>, code: &str| match name {
            Some(name) => Some(name.to_owned()),                // bounded: a name
            None => self.has_fallback.then(|| code.to_owned()), // bounded: a code
        };
        if let Some(code) = script {
            rest.push(known(self.script(code), code)?);
        }
        if let Some(code) = region {
            rest.push(known(self.region(code), code)?);
        }
        if !variants.is_empty() {
            let all = variants.join("_"); // bounded: by a tag
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
