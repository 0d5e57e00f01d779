//! Servers: where operations are.

use codecall_base::text::truncate;
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// Returns the address of the first server of a list, with its variables replaced; `None` if the list is empty.
///
/// # Errors
/// The address is not one of HTTP.
pub fn first(servers: &Value, base: &Url, variables: &BTreeMap<String, String>) -> Option<Result<Url, String>> {
    let server = servers.as_array()?.first()?;
    Some(address(server, base, variables))
}

/// Returns the address that `host`, `basePath` and `schemes` name, as in Swagger 2.0; `None` if there is no host.
///
/// # Errors
/// It is not one of HTTP.
pub fn of_host(root: &Value, base: &Url) -> Option<Result<Url, String>> {
    let host = root["host"].as_str().map(str::trim).filter(|host| !host.is_empty())?;
    let schemes: Vec<&str> = root["schemes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let scheme = if schemes.contains(&"http") && !schemes.contains(&"https") { "http" } else { "https" };
    let path = root["basePath"].as_str().unwrap_or("/").trim();
    let server = serde_json::json!({ "url": format!("{scheme}://{host}/{}", path.trim_start_matches('/')) });
    Some(address(&server, base, &BTreeMap::new()))
}

fn address(server: &Value, base: &Url, variables: &BTreeMap<String, String>) -> Result<Url, String> {
    let template = server["url"].as_str().unwrap_or("/");
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            return Err(format!("the server '{}' has a brace that is not closed", truncate(template, 200)));
        };
        let value = variables.get(name).map(String::as_str);
        let default = || match &server["variables"][name]["default"] {
            Value::String(text) => Some(text.clone()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
            _ => None,
        };
        let Some(value) = value.map(str::to_owned).or_else(default) else {
            return Err(format!(
                "the server '{}' needs a value for '{}'; give it in 'variables'",
                truncate(template, 200),
                truncate(name, 100)
            ));
        };
        text.push_str(&value);
        rest = after;
    }
    text.push_str(rest);
    let url = base.join(text.trim()).map_err(|_| format!("the server '{}' is not an address", truncate(&text, 200)))?;
    check(url).map_err(|_| {
        let hint = if base.scheme() == "file" { "; give 'baseUrl'" } else { "" };
        format!("the server '{}' is not an address of HTTP{hint}", truncate(&text, 200))
    })
}

/// Checks an address to which paths are appended.
///
/// # Errors
/// It is not one of HTTP.
pub fn check(mut url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("it must begin with http:// or https://".into());
    }
    url.set_fragment(None);
    url.set_query(None);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_of_servers() {
        let base = Url::parse("https://docs.example.com/api/openapi.json").expect("an address");
        let variables = BTreeMap::from([("region".to_owned(), "eu".to_owned())]);
        let first = |server: Value| match first(&json!([server]), &base, &variables).expect("a server") {
            Ok(url) => url.to_string(),
            Err(problem) => problem,
        };
        let given = json!({"url": "https://{region}.{host}/v{n}", "variables": {"region": {"default": "us"}, "host": {"default": "example.com"}, "n": {"default": 2}}});
        assert_eq!(first(given), "https://eu.example.com/v2");
        assert_eq!(first(json!({"url": "/v1"})), "https://docs.example.com/v1");
        assert_eq!(first(json!({"url": "v1/"})), "https://docs.example.com/api/v1/");
        assert_eq!(first(json!({})), "https://docs.example.com/");
        assert!(first(json!({"url": "https://{x}/"})).contains("needs a value for 'x'"));
        assert!(first(json!({"url": "ftp://x/"})).contains("not an address of HTTP"));
        assert!(first(json!({"url": "https://{x"})).contains("not closed"));
    }
}
