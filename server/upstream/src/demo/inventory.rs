//! The app `inventory`: products and their stock.

use super::tool::{DemoTool, Effect, Failure, OrNotFound, default_limit, fail, string_enum, tool};
use rusqlite::{Connection, Row, named_params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(super) fn tools() -> Vec<DemoTool> {
    use Effect::*;
    vec![
        tool(
            "list",
            Reads,
            &["stock"],
            "List products with price and stock, with filtering by category and name, a page at a time.",
            list,
        ),
        tool("get", Reads, &["stock"], "Get one product by SKU with its latest stock movements.", get),
        tool(
            "adjust",
            Adds,
            &["stock"],
            "Book goods in or out and give the reason. The stock never goes below zero (OUT_OF_STOCK).",
            adjust,
        )
        .with_example(
            "Book in a delivery",
            "const { stock } = await callTool('inventory:adjust', { sku: 'MON-03', change: 25, reason: 'delivery' \
             });\nreturn stock;",
        ),
        tool(
            "lowStock",
            Reads,
            &["stock", "analytics"],
            "Products at or below their reorder level, with how many to order and from whom; the scarcest first.",
            low_stock,
        ),
    ]
}

string_enum! {
    /// What a product is for.
    enum Category {
        Peripherals = "peripherals",
        Audio = "audio",
        Displays = "displays",
        Furniture = "furniture",
        Connectivity = "connectivity",
        Travel = "travel",
    }
}

string_enum! {
    /// Why the stock has changed.
    pub(super) enum Reason {
        Delivery = "delivery",
        Count = "count",
        Damage = "damage",
        Return = "return",
        Order = "order",
        Cancellation = "cancellation",
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Product {
    /// Such as KEY-01.
    sku: String,
    name: String,
    category: Category,
    pub(super) price_cents: i64,
    /// How many there are.
    stock: i64,
    /// At this stock or below it is time to reorder.
    reorder_level: i64,
    supplier: String,
}

impl Product {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            sku: row.get("sku")?,
            name: row.get("name")?,
            category: row.get("category")?,
            price_cents: row.get("price_cents")?,
            stock: row.get("stock")?,
            reorder_level: row.get("reorder_level")?,
            supplier: row.get("supplier")?,
        })
    }

    fn by_sku(db: &Connection, sku: &str) -> Result<Self, Failure> {
        db.query_row("SELECT * FROM products WHERE sku = ?1", [sku], Self::from_row).or_not_found("product", sku)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    /// Only products of this category.
    category: Option<Category>,
    /// Only products with this in the name; case does not matter.
    name: Option<String>,
    /// Only products that are in stock (true) or sold out (false).
    in_stock: Option<bool>,
    /// How many at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// How many to skip.
    #[serde(default)]
    offset: u32,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Page {
    products: Vec<Product>,
    /// How many products match in all.
    total: u32,
    /// Whether there are more after these.
    has_more: bool,
}

fn list(db: &Connection, List { category, name, in_stock, limit, offset }: List) -> Result<Page, Failure> {
    let mut query = db.prepare(
        "SELECT * FROM products
         WHERE (:category IS NULL OR category = :category)
           AND (:name IS NULL OR instr(lower(name), lower(:name)) > 0)
           AND (:in_stock IS NULL OR (stock > 0) = :in_stock)
         ORDER BY sku",
    )?;
    let filter = named_params! { ":category": category, ":name": name, ":in_stock": in_stock };
    let matching: Vec<Product> = query.query_map(filter, Product::from_row)?.collect::<Result<_, _>>()?;
    let total = matching.len() as u32;
    let products: Vec<Product> = matching.into_iter().skip(offset as usize).take(limit as usize).collect();
    let has_more = u64::from(offset) + (products.len() as u64) < u64::from(total);
    Ok(Page { products, total, has_more })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BySku {
    /// SKU of the product, such as KEY-01.
    sku: String,
}

#[derive(Serialize, JsonSchema)]
struct WithMovements {
    #[serde(flatten)]
    product: Product,
    /// The latest ten, the newest first.
    movements: Vec<Movement>,
}

#[derive(Serialize, JsonSchema)]
struct Movement {
    /// Positive: goods came in.
    change: i64,
    reason: String,
    /// When, UTC.
    at: String,
}

fn get(db: &Connection, BySku { sku }: BySku) -> Result<WithMovements, Failure> {
    let product = Product::by_sku(db, &sku)?;
    let mut movements =
        db.prepare("SELECT change, reason, at FROM movements WHERE sku = ?1 ORDER BY number DESC LIMIT 10")?;
    let movements = movements
        .query_map([&sku], |row| Ok(Movement { change: row.get(0)?, reason: row.get(1)?, at: row.get(2)? }))?
        .collect::<Result<_, _>>()?;
    Ok(WithMovements { product, movements })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Adjust {
    /// SKU of the product, such as KEY-01.
    sku: String,
    /// Positive: goods come in; negative: they go out.
    #[schemars(range(min = -10_000, max = 10_000))]
    change: i64,
    reason: Reason,
}

fn adjust(db: &Connection, Adjust { sku, change, reason }: Adjust) -> Result<Product, Failure> {
    move_stock(db, &sku, change, reason)
}

/// Changes the stock of a product, never below zero, and records the reason.
pub(super) fn move_stock(db: &Connection, sku: &str, change: i64, reason: Reason) -> Result<Product, Failure> {
    let product = Product::by_sku(db, sku)?;
    if product.stock + change < 0 {
        let (wanted, available) = (-change, product.stock);
        let message = format!("Only {available} of '{sku}' ({}) in stock, {wanted} wanted", product.name);
        let details = json!({ "sku": sku, "requested": wanted, "available": available });
        return Err(fail("OUT_OF_STOCK", message).with_details(details));
    }
    db.execute("UPDATE products SET stock = stock + ?2 WHERE sku = ?1", (sku, change))?;
    db.execute(
        "INSERT INTO movements (sku, change, reason, at) SELECT ?1, ?2, ?3, now FROM calendar",
        (sku, change, reason),
    )?;
    Product::by_sku(db, sku)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LowStockInput {
    /// Only products of this category.
    category: Option<Category>,
}

#[derive(Serialize, JsonSchema)]
struct LowStock {
    products: Vec<Scarce>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Scarce {
    #[serde(flatten)]
    product: Product,
    /// How many bring the stock to three times the reorder level.
    suggested_quantity: i64,
}

fn low_stock(db: &Connection, LowStockInput { category }: LowStockInput) -> Result<LowStock, Failure> {
    let mut query = db.prepare(
        "SELECT * FROM products WHERE stock <= reorder_level AND (?1 IS NULL OR category = ?1) ORDER BY stock, sku",
    )?;
    let products = query
        .query_map([category], |row| {
            let product = Product::from_row(row)?;
            Ok(Scarce { suggested_quantity: product.reorder_level * 3 - product.stock, product })
        })?
        .collect::<Result<_, _>>()?;
    Ok(LowStock { products })
}
