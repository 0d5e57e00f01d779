//! The meaning of the keys of a description for the values below them.

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An object of OpenAPI or a schema: its keys are those of [`place`].
    Object,
    /// Objects by names that the author chooses.
    Named,
    /// Variables of a server by name; they have texts, whatever they look like.
    Variables,
    /// A variable of a server.
    Variable,
    /// A text, or a list of texts.
    Text,
    /// A truth value.
    Truth,
    /// A number.
    Number,
    /// Values that the schema allows, which are beside it in the object: one, or a list of them.
    Choices,
    /// A value that the schema describes.
    Sample,
    /// Several of these.
    Samples,
    /// Any data.
    Data,
}

/// Returns what the value of a key is.
pub fn place(of: Place, key: &str) -> Place {
    match (of, key) {
        (Place::Named, _) => Place::Object,
        (Place::Variables, _) => Place::Variable,
        (Place::Variable, "enum" | "default" | "description") => Place::Text,
        (Place::Object, key) => of_object(key),
        _ => Place::Data,
    }
}

fn of_object(key: &str) -> Place {
    match key {
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" | "schemas" | "responses"
        | "parameters" | "requestBodies" | "headers" | "securitySchemes" | "links" | "callbacks" | "pathItems"
        | "paths" | "webhooks" | "content" | "encoding" => Place::Named,
        "variables" => Place::Variables,
        "mapping" | "scopes" | "dependentRequired" => Place::Text,
        "$ref" | "$dynamicRef" | "$id" | "$anchor" | "$dynamicAnchor" | "$schema" | "$comment" | "openapi"
        | "swagger" | "jsonSchemaDialect" | "title" | "version" | "summary" | "description" | "termsOfService"
        | "email" | "url" | "operationId" | "tags" | "name" | "in" | "style" | "type" | "format" | "pattern"
        | "contentEncoding" | "contentMediaType" | "contentType" | "scheme" | "bearerFormat" | "propertyName"
        | "authorizationUrl" | "tokenUrl" | "refreshUrl" | "openIdConnectUrl" | "operationRef" | "identifier" => {
            Place::Text
        }
        "required"
        | "deprecated"
        | "nullable"
        | "readOnly"
        | "writeOnly"
        | "uniqueItems"
        | "explode"
        | "allowReserved"
        | "allowEmptyValue"
        | "exclusiveMinimum"
        | "exclusiveMaximum"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "unevaluatedItems" => Place::Truth,
        "minimum" | "maximum" | "multipleOf" | "minLength" | "maxLength" | "minItems" | "maxItems"
        | "minProperties" | "maxProperties" | "minContains" | "maxContains" => Place::Number,
        "enum" | "const" => Place::Choices,
        "default" | "example" => Place::Sample,
        "examples" => Place::Samples,
        key if key.starts_with("x-") => Place::Data,
        _ => Place::Object,
    }
}
