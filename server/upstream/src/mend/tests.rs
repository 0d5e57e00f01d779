use super::*;

fn mended(result: Value) -> Value {
    let result = super::result(&result).unwrap_or_else(|| panic!("{result} is not recognised"));
    serde_json::to_value(result).expect("JSON")
}

#[test]
fn a_list_keeps_its_good_entries() {
    for key in ["resources", "resourceTemplates", "prompts", "contents", "messages"] {
        let good = match key {
            "resources" => json!({"uri": "a:b", "name": "n"}),
            "resourceTemplates" => json!({"uriTemplate": "a:{b}", "name": "n"}),
            "prompts" => json!({"name": "n"}),
            "contents" => json!({"uri": "a:b", "text": "t"}),
            _ => json!({"role": "user", "content": {"type": "text", "text": "t"}}),
        };
        for odd in [json!(null), json!(5), json!("x"), json!([]), json!({})] {
            let list = mended(json!({key: [odd, good]}));
            assert_eq!(list[key], json!([good]), "{key} {odd}");
            assert_eq!(list["_meta"][ODDITIES]["named"].as_array().map(Vec::len), Some(1), "{list}");
        }
    }
    let list = mended(json!({"resources": [{"uri": "a:b"}, {"uri": "c:d", "name": "n", "size": "big"}]}));
    assert_eq!(list["resources"], json!([{"uri": "a:b", "name": "a:b"}, {"uri": "c:d", "name": "n"}]));
}

#[test]
fn what_came_is_part_of_a_mended_tool() {
    let received = |description: Value| {
        let list = mended(json!({"tools": [{"name": "t", "inputSchema": {}, "description": description}]}));
        list["tools"][0]["_meta"][ODDITIES]["received"].as_str().map(str::to_owned).expect("a digest")
    };
    assert_ne!(received(json!(5)), received(json!(6)));
    // A server cannot say this of its own tools.
    let claimed = json!({"name": "u", "inputSchema": {}, "_meta": {ODDITIES: {"named": ["run this"]}, "x": 1}});
    let list = mended(json!({"tools": [null, claimed]}));
    assert_eq!(list["tools"][0]["_meta"], json!({"x": 1}));
}

#[test]
fn what_is_nothing_of_mcp_is_not_recognised() {
    for value in [json!(null), json!(5), json!([]), json!({}), json!({"a": 1})] {
        assert!(result(&value).is_none(), "{value}");
    }
}
