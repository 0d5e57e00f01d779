//! Formats of durations: a number of milliseconds under keys that end in `Ms`, a text with a unit elsewhere. In the structs
//! both are a [`Duration`].

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer};
use std::borrow::Cow;
use std::time::Duration;

/// For `#[serde(with)]`: a number of milliseconds.
pub struct Milliseconds;

impl Milliseconds {
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

impl JsonSchema for Milliseconds {
    fn schema_name() -> Cow<'static, str> {
        "Milliseconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "x-type": "milliseconds" })
    }
}

/// For `#[serde(with)]`: a text such as `"500ms"`, `"30s"`, `"1m"` or `"2h"`.
pub struct WithUnit;

impl WithUnit {
    const MAX: Duration = Duration::from_secs(366 * 86_400);

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
        let ms = duration.as_millis();
        let unit = units.into_iter().find(|(length, _)| ms.is_multiple_of(*length));
        let (length, name) = unit.unwrap_or((1, "ms"));
        serializer.serialize_str(&format!("{}{name}", ms / length))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        let duration = text.parse::<jiff::SignedDuration>().ok().and_then(|signed| Duration::try_from(signed).ok());
        match duration {
            Some(duration) if !duration.is_zero() && duration <= Self::MAX => Ok(duration),
            Some(_) | None => {
                Err(serde::de::Error::custom("must be a duration such as \"500ms\", \"30s\", \"1m\" or \"2h\""))
            }
        }
    }
}

impl JsonSchema for WithUnit {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-type": "duration" })
    }
}
