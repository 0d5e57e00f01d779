//! References of a schema that lead nowhere: to a definition that is not there, into another document, or to an address.

use super::{cost, keywords};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The keywords that refer to a schema.
pub const KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Removes references that lead nowhere from a schema, so that any value fits that part. Returns them.
pub fn prune(schema: &mut Value) -> BTreeSet<String> {
    let unresolved = cost::unresolved(schema);
    if !unresolved.is_empty() {
        remove(schema, &unresolved);
    }
    unresolved
}

fn remove(schema: &mut Value, unresolved: &BTreeSet<String>) {
    let Value::Object(members) = schema else { return };
    for key in KEYWORDS {
        if members.get(key).and_then(Value::as_str).is_some_and(|reference| unresolved.contains(reference)) {
            members.shift_remove(key);
        }
    }
    each_subschema(members, &mut |schema| remove(schema, unresolved));
}

/// Calls a function with each subschema of a schema.
pub fn each_subschema(members: &mut Map<String, Value>, visit: &mut impl FnMut(&mut Value)) {
    for (key, part) in members.iter_mut() {
        match (keywords::subschemas(key), part) {
            (Some(keywords::Subschemas::Map), Value::Object(schemas)) => schemas.values_mut().for_each(&mut *visit),
            (Some(keywords::Subschemas::Schema | keywords::Subschemas::List), Value::Array(schemas)) => {
                schemas.iter_mut().for_each(&mut *visit);
            }
            (Some(keywords::Subschemas::Schema), schema) => visit(schema),
            // A reference may lead into an unknown keyword.
            (None, Value::Object(schemas)) if !keywords::is_data(key) => schemas.values_mut().for_each(&mut *visit),
            (Some(_) | None, _) => {}
        }
    }
}
