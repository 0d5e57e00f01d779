use super::*;
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A shop that records which of its tools were called.
struct TestShop {
    apps: Vec<Arc<dyn Upstream>>,
    called: BTreeSet<String>,
}

impl TestShop {
    fn new() -> Self {
        Self { apps: open(), called: BTreeSet::new() }
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.apps.iter().flat_map(|app| app.tools()).collect()
    }

    /// Calls a tool and checks its input and output against its schemas.
    #[track_caller]
    fn call(&mut self, name: &str, input: Value) -> Result<Value, ToolError> {
        let tool = self.tools().into_iter().find(|tool| tool.full_name() == name).expect("the tool exists");
        let app = self.apps.iter().find(|app| app.app() == tool.app).expect("the app exists");
        assert_fits(&format!("input of {name}"), &tool.input_schema, &input);
        self.called.insert(name.into());
        let Value::Object(input) = input else { panic!("the input is an object") };
        let call = UpstreamCall {
            tool: Arc::clone(&tool),
            input,
            timeout: Duration::from_secs(30),
            cancel: CancellationToken::new(),
            run: None,
            client: codecall_base::client::Client::default(),
            sink: crate::UpdateSink::default(),
            sent: Arc::default(),
        };
        let output = runtime().block_on(app.call(call))?.into_data(name)?;
        assert_fits(&format!("output of {name}"), tool.output_schema.as_ref().expect("a schema"), &output);
        Ok(output)
    }

    #[track_caller]
    fn ok(&mut self, name: &str, input: Value) -> Value {
        self.call(name, input).unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }

    #[track_caller]
    fn code(&mut self, name: &str, input: Value) -> String {
        self.call(name, input).expect_err("it fails").code
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

#[track_caller]
fn assert_fits(what: &str, schema: &Value, value: &Value) {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{what}: {errors:?}\n{value:#}");
}

#[test]
fn the_output_of_every_tool_fits_its_schema() {
    let mut shop = TestShop::new();

    let page = shop.ok("users:list", json!({ "status": "active", "limit": 3, "offset": 2 }));
    assert_eq!(page["users"].as_array().map(Vec::len), Some(3));
    assert_eq!(page["hasMore"], true);
    assert_eq!(shop.ok("users:get", json!({ "id": "usr_001" }))["email"], "ada.almeida@example.com");
    assert_eq!(shop.code("users:get", json!({ "id": "usr_999" })), "NOT_FOUND");
    assert!(shop.ok("users:getProfile", json!({ "id": "usr_002" }))["orderCount"].as_u64() > Some(0));
    assert_eq!(shop.ok("users:search", json!({ "query": "ALMEIDA" }))["users"][0]["id"], "usr_001");

    let nia = json!({ "name": "Nia Mensah", "email": "nia@example.com", "city": "Accra", "country": "gh" });
    let created = shop.ok("users:create", nia.clone());
    assert_eq!((&created["id"], &created["country"]), (&json!("usr_061"), &json!("GH")));
    assert_eq!(shop.code("users:create", nia), "EMAIL_TAKEN");
    let renamed = shop.ok("users:update", json!({ "id": "usr_061", "name": "Nia M.", "role": "manager" }));
    assert_eq!((&renamed["name"], &renamed["city"]), (&json!("Nia M."), &json!("Accra")));
    assert_eq!(shop.ok("users:delete", json!({ "id": "usr_061" }))["deleted"], true);
    assert_eq!(shop.code("users:delete", json!({ "id": "usr_061" })), "NOT_FOUND");
    assert_eq!(shop.code("users:delete", json!({ "id": "usr_002" })), "USER_HAS_ORDERS");

    let low = shop.ok("inventory:lowStock", json!({}));
    assert!(low["products"].as_array().is_some_and(|products| (3..30).contains(&products.len())), "{low:#}");
    let list = shop.ok("inventory:list", json!({ "category": "displays", "inStock": true, "limit": 2 }));
    assert_eq!(list["products"][0]["category"], "displays");
    let before = shop.ok("inventory:get", json!({ "sku": "KEY-01" }))["stock"].clone();
    shop.ok("inventory:adjust", json!({ "sku": "KEY-01", "change": 30, "reason": "delivery" }));
    let after = shop.ok("inventory:get", json!({ "sku": "KEY-01" }));
    assert_eq!(after["stock"].as_i64(), before.as_i64().map(|stock| stock + 30));
    assert_eq!(after["movements"][0]["reason"], "delivery");
    let all = json!({ "sku": "KEY-01", "change": -5_000, "reason": "count" });
    assert_eq!(shop.code("inventory:adjust", all), "OUT_OF_STOCK");

    assert!(shop.ok("orders:stats", json!({ "groupBy": "month" }))["groups"][5]["orders"].as_u64() > Some(30));
    for group_by in ["status", "country", "category"] {
        shop.ok("orders:stats", json!({ "groupBy": group_by }));
    }
    let report = shop.ok("billing:report", json!({ "from": "2026-03" }));
    assert_eq!(report["months"].as_array().map(Vec::len), Some(4));
    assert_eq!(shop.code("billing:syncLedger", json!({})), "LEDGER_UNAVAILABLE");
    an_order_from_cart_to_refund(&mut shop);
    assert_eq!(shop.ok("orders:list", json!({ "userId": "usr_001" }))["orders"][0]["status"], "paid");
    let void = shop.ok("billing:listInvoices", json!({ "userId": "usr_001", "status": "void" }));
    assert_eq!(void["invoices"][0]["amountCents"], 11_800);

    let all: BTreeSet<String> = shop.tools().iter().map(|tool| tool.full_name()).collect();
    assert_eq!(all, shop.called, "every tool is called");
}

fn an_order_from_cart_to_refund(shop: &mut TestShop) {
    let cart = |quantity| json!({ "userId": "usr_001", "lines": [{ "sku": "KEY-01", "quantity": quantity }] });
    let order = shop.ok("orders:create", cart(2));
    assert_eq!((&order["totalCents"], &order["status"]), (&json!(11_800), &json!("pending")));
    let (order, invoice) = (order["id"].clone(), order["invoiceId"].clone());

    let part = json!({ "invoiceId": invoice, "amountCents": 800, "method": "transfer" });
    assert_eq!(shop.ok("billing:charge", part)["dueCents"], 11_000);
    let more = json!({ "invoiceId": invoice, "amountCents": 11_001 });
    assert_eq!(shop.code("billing:charge", more), "AMOUNT_TOO_HIGH");
    assert_eq!(shop.ok("billing:charge", json!({ "invoiceId": invoice }))["status"], "paid");
    assert_eq!(shop.code("billing:charge", json!({ "invoiceId": invoice })), "ALREADY_PAID");
    assert_eq!(shop.ok("orders:get", json!({ "id": order }))["status"], "paid");

    let back = json!({ "invoiceId": invoice, "amountCents": 1_000, "reason": "scratched" });
    assert_eq!(shop.ok("billing:refund", back)["refundedCents"], 1_000);
    let delivered = json!({ "id": order, "status": "delivered" });
    assert_eq!(shop.code("orders:updateStatus", delivered), "INVALID_TRANSITION");
    assert_eq!(shop.ok("orders:cancel", json!({ "id": order }))["refundedCents"], 10_800);
    assert_eq!(shop.code("orders:cancel", json!({ "id": order })), "NOT_CANCELLABLE");
    assert_eq!(shop.ok("billing:getInvoice", json!({ "id": invoice }))["status"], "void");

    let second = shop.ok("orders:create", cart(1))["id"].clone();
    assert_eq!(shop.ok("orders:updateStatus", json!({ "id": second, "status": "paid" }))["status"], "paid");
}

#[test]
fn pages_follow_each_other_without_gap_or_overlap() {
    for (tool, key) in [("orders:list", "orders"), ("billing:listInvoices", "invoices")] {
        let mut shop = TestShop::new();
        let (mut seen, mut input) = (BTreeSet::new(), Map::from_iter([("limit".into(), json!(100))]));
        let total = loop {
            let page = shop.ok(tool, Value::Object(input.clone()));
            for item in page[key].as_array().expect("a list") {
                assert!(seen.insert(item["id"].to_string()), "{item} comes twice");
            }
            match &page["nextCursor"] {
                Value::Null => break page["total"].clone(),
                cursor => input.insert("cursor".into(), cursor.clone()),
            };
        };
        assert_eq!((total, seen.len()), (json!(250), 250));
        assert_eq!(shop.code(tool, json!({ "cursor": "page 2" })), "INVALID_CURSOR");
    }
}

#[test]
fn a_call_that_fails_changes_nothing() {
    let mut shop = TestShop::new();
    let stock = |shop: &mut TestShop| shop.ok("inventory:get", json!({ "sku": "CBL-01" }))["stock"].clone();
    let before = stock(&mut shop);
    let lines = json!([{ "sku": "CBL-01", "quantity": 1 }, { "sku": "NIL-01", "quantity": 1 }]);
    assert_eq!(shop.code("orders:create", json!({ "userId": "usr_001", "lines": lines })), "NOT_FOUND");
    let twice = json!([{ "sku": "CBL-01", "quantity": 1 }, { "sku": "CBL-01", "quantity": 1 }]);
    assert_eq!(shop.code("orders:create", json!({ "userId": "usr_001", "lines": twice })), "DUPLICATE_LINE");
    assert_eq!(stock(&mut shop), before);
}

#[test]
fn the_shop_is_the_same_every_time() {
    let read_all = || {
        let mut shop = TestShop::new();
        (shop.ok("orders:list", json!({ "limit": 100 })), shop.ok("billing:report", json!({})))
    };
    assert_eq!(read_all(), read_all());
}

#[test]
fn the_shop_has_records_of_every_status() {
    let mut shop = TestShop::new();
    for status in ["open", "overdue", "paid", "refunded", "void"] {
        let invoices = shop.ok("billing:listInvoices", json!({ "status": status }));
        assert!(invoices["total"].as_u64() >= Some(3), "{status}: {}", invoices["total"]);
    }
    for status in ["pending", "paid", "shipped", "delivered", "cancelled"] {
        let orders = shop.ok("orders:list", json!({ "status": status }));
        assert!(orders["total"].as_u64() >= Some(3), "{status}: {}", orders["total"]);
    }
    for status in ["inactive", "suspended"] {
        assert!(shop.ok("users:list", json!({ "status": status }))["total"].as_u64() >= Some(1), "{status}");
    }
}

#[test]
fn every_usage_example_is_a_script() {
    let options = agentscript::CompileOptions::default();
    for tool in TestShop::new().tools() {
        for example in &tool.examples {
            let compiled = agentscript::compile(&example.code, &options).map_err(|error| error.diagnostics);
            assert!(compiled.is_ok(), "{}: {:?}\n{}", tool.full_name(), compiled.err(), example.code);
        }
    }
}
