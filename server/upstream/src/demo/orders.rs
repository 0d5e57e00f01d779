//! The app `orders`: orders, their lines and their status.

use super::billing;
use super::inventory::{self, Reason};
use super::tool::{DemoTool, Effect, Failure, OrNotFound, default_limit, fail, string_enum, tool};
use super::users::{User, UserStatus};
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
            &["sales"],
            "List orders, the latest first, with filtering by status, user and day. One page at a time: pass nextCursor \
             as cursor until it is null.",
            list,
        )
        .with_example(
            "All orders of a month, page by page",
            "const orders = [];\nlet cursor;\nfor (let page = 0; page < 20; page++) {\n  const answer = await \
             callTool('orders:list', { from: '2026-05-01', to: '2026-05-31', limit: 100, cursor });\n  \
             orders.push(...answer.orders);\n  if (!answer.nextCursor) break;\n  cursor = answer.nextCursor;\n}\n\
             return { count: orders.length, totalCents: orders.reduce((sum, order) => sum + order.totalCents, 0) };",
        ),
        tool("get", Reads, &["sales"], "Get one order with its lines and its invoice.", get),
        tool(
            "create",
            Adds,
            &["sales"],
            "Place an order: takes the goods from stock and issues an invoice. All or nothing; fails with NOT_FOUND, \
             USER_NOT_ACTIVE or OUT_OF_STOCK.",
            create,
        )
        .with_example(
            "Order two products",
            "return await callTool('orders:create', {\n  userId: 'usr_003',\n  lines: [{ sku: 'KEY-01', quantity: 1 \
             }, { sku: 'CBL-02', quantity: 2 }],\n});",
        ),
        tool(
            "updateStatus",
            Sets,
            &["sales", "fulfilment"],
            "Move an order on: pending to paid, paid to shipped, shipped to delivered. Other steps are refused \
             (INVALID_TRANSITION).",
            update_status,
        ),
        tool(
            "cancel",
            Destroys,
            &["sales"],
            "Cancel an order that is not shipped: puts the goods back, voids the invoice, refunds what was paid.",
            cancel,
        ),
        tool(
            "stats",
            Reads,
            &["sales", "analytics"],
            "Count and sum up orders, grouped by status, month, country or category.",
            stats,
        ),
    ]
}

string_enum! {
    /// How far an order has come.
    pub(super) enum OrderStatus {
        Pending = "pending",
        Paid = "paid",
        Shipped = "shipped",
        Delivered = "delivered",
        Cancelled = "cancelled",
    }
}

impl OrderStatus {
    /// Returns the status that follows.
    fn next(self) -> Option<Self> {
        match self {
            Self::Pending => Some(Self::Paid),
            Self::Paid => Some(Self::Shipped),
            Self::Shipped => Some(Self::Delivered),
            Self::Delivered | Self::Cancelled => None,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Order {
    /// Such as ord_0001.
    id: String,
    user_id: String,
    status: OrderStatus,
    /// When it was placed, UTC.
    created_at: String,
    /// When its status has changed last, UTC.
    updated_at: String,
    /// How many pieces.
    item_count: u32,
    total_cents: i64,
}

impl Order {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            user_id: row.get("user_id")?,
            status: row.get("status")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
            item_count: row.get("item_count")?,
            total_cents: row.get("total_cents")?,
        })
    }

    fn by_id(db: &Connection, id: &str) -> Result<Self, Failure> {
        db.query_row("SELECT * FROM order_totals WHERE id = ?1", [id], Self::from_row).or_not_found("order", id)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    /// Only orders of this status.
    status: Option<OrderStatus>,
    /// Only orders of this user.
    user_id: Option<String>,
    /// Only orders placed on this day (YYYY-MM-DD, UTC) or later.
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2}$"))]
    from: Option<String>,
    /// Only orders placed on this day (YYYY-MM-DD, UTC) or earlier.
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2}$"))]
    to: Option<String>,
    /// How many at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// The nextCursor of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Page {
    orders: Vec<Order>,
    /// How many orders match in all.
    total: u32,
    /// For the next page; null on the last one.
    next_cursor: Option<String>,
}

fn list(db: &Connection, input: List) -> Result<Page, Failure> {
    let List { status, user_id, from, to, limit, cursor } = input;
    if let Some(cursor) = &cursor {
        Order::by_id(db, cursor).map_err(|_| {
            fail("INVALID_CURSOR", format!("'{cursor}' is not a cursor: pass the nextCursor of the page before"))
        })?;
    }
    let mut query = db.prepare(
        "SELECT * FROM order_totals
         WHERE (:status IS NULL OR status = :status)
           AND (:user IS NULL OR user_id = :user)
           AND (:from IS NULL OR date(created_at) >= :from)
           AND (:to IS NULL OR date(created_at) <= :to)
         ORDER BY number DESC",
    )?;
    let filter = named_params! { ":status": status, ":user": user_id, ":from": from, ":to": to };
    let matching: Vec<Order> = query.query_map(filter, Order::from_row)?.collect::<Result<_, _>>()?;
    let total = matching.len() as u32;
    let mut rest = matching.into_iter().skip_while(|order| cursor.as_ref().is_some_and(|cursor| order.id >= *cursor));
    let orders: Vec<Order> = rest.by_ref().take(limit as usize).collect();
    let next_cursor = rest.next().and(orders.last()).map(|last| last.id.clone());
    Ok(Page { orders, total, next_cursor })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById {
    /// Id of the order, such as ord_0001.
    id: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FullOrder {
    #[serde(flatten)]
    order: Order,
    lines: Vec<Line>,
    invoice_id: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Line {
    sku: String,
    /// Name of the product.
    name: String,
    quantity: u32,
    unit_price_cents: i64,
}

fn get(db: &Connection, ById { id }: ById) -> Result<FullOrder, Failure> {
    let order = Order::by_id(db, &id)?;
    let mut lines = db.prepare(
        "SELECT sku, name, quantity, unit_price_cents FROM order_lines JOIN products USING (sku)
         WHERE order_id = ?1 ORDER BY sku",
    )?;
    let lines = lines
        .query_map([&id], |row| {
            Ok(Line { sku: row.get(0)?, name: row.get(1)?, quantity: row.get(2)?, unit_price_cents: row.get(3)? })
        })?
        .collect::<Result<_, _>>()?;
    let invoice_id = db.query_row("SELECT id FROM invoices WHERE order_id = ?1", [&id], |row| row.get(0))?;
    Ok(FullOrder { order, lines, invoice_id })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Create {
    /// Id of the customer, such as usr_001.
    user_id: String,
    /// What is ordered; each product once.
    #[schemars(length(min = 1, max = 20))]
    lines: Vec<NewLine>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewLine {
    /// The product, such as KEY-01.
    sku: String,
    #[schemars(range(min = 1, max = 100))]
    quantity: u32,
}

fn create(db: &Connection, Create { user_id, lines }: Create) -> Result<FullOrder, Failure> {
    let user = User::by_id(db, &user_id)?;
    if user.status != UserStatus::Active {
        let message = format!("User '{user_id}' is {} and cannot order", user.status.as_str());
        return Err(fail("USER_NOT_ACTIVE", message).with_details(json!({ "status": user.status })));
    }
    let id: String = db.query_row(
        "INSERT INTO orders (user_id, status, created_at, updated_at) SELECT ?1, 'pending', now, now FROM calendar
         RETURNING id",
        [&user_id],
        |row| row.get(0),
    )?;
    for NewLine { sku, quantity } in &lines {
        let product = inventory::move_stock(db, sku, -i64::from(*quantity), Reason::Order)?;
        let added = db.execute(
            "INSERT OR IGNORE INTO order_lines VALUES (?1, ?2, ?3, ?4)",
            (&id, sku, quantity, product.price_cents),
        )?;
        if added == 0 {
            return Err(fail("DUPLICATE_LINE", format!("'{sku}' is in two lines: add up their quantities")));
        }
    }
    billing::issue_invoice(db, &id)?;
    get(db, ById { id })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateStatus {
    /// Id of the order, such as ord_0001.
    id: String,
    /// The new status.
    status: OrderStatus,
}

fn update_status(db: &Connection, UpdateStatus { id, status }: UpdateStatus) -> Result<Order, Failure> {
    let order = Order::by_id(db, &id)?;
    if order.status == status {
        return Ok(order);
    }
    if order.status.next() != Some(status) {
        let (from, to) = (order.status.as_str(), status.as_str());
        let allowed = order.status.next();
        let message = format!("An order cannot go from {from} to {to}");
        return Err(
            fail("INVALID_TRANSITION", message).with_details(json!({ "from": from, "to": to, "allowed": allowed }))
        );
    }
    set_status(db, &id, status)?;
    Order::by_id(db, &id)
}

/// Sets a status without checking the transition.
pub(super) fn set_status(db: &Connection, id: &str, status: OrderStatus) -> Result<(), Failure> {
    db.execute("UPDATE orders SET status = ?2, updated_at = (SELECT now FROM calendar) WHERE id = ?1", (id, status))?;
    Ok(())
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Cancelled {
    order: Order,
    /// What goes back to the customer.
    refunded_cents: i64,
}

fn cancel(db: &Connection, ById { id }: ById) -> Result<Cancelled, Failure> {
    let order = Order::by_id(db, &id)?;
    match order.status {
        OrderStatus::Pending | OrderStatus::Paid => {}
        OrderStatus::Shipped | OrderStatus::Delivered | OrderStatus::Cancelled => {
            let message = format!("Order '{id}' is {} and cannot be cancelled", order.status.as_str());
            return Err(fail("NOT_CANCELLABLE", message).with_details(json!({ "status": order.status })));
        }
    }
    for line in get(db, ById { id: id.clone() })?.lines {
        inventory::move_stock(db, &line.sku, i64::from(line.quantity), Reason::Cancellation)?;
    }
    let refunded_cents = billing::void_invoice(db, &id)?;
    set_status(db, &id, OrderStatus::Cancelled)?;
    Ok(Cancelled { order: Order::by_id(db, &id)?, refunded_cents })
}

string_enum! {
    /// What orders are put together by.
    enum Grouping { Status = "status", Month = "month", Country = "country", Category = "category" }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StatsInput {
    /// What to group by. Cancelled orders count for status only.
    group_by: Grouping,
}

#[derive(Serialize, JsonSchema)]
struct Stats {
    groups: Vec<Group>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Group {
    /// The status, the month (YYYY-MM), the country or the category.
    key: String,
    /// How many orders.
    orders: u32,
    total_cents: i64,
}

fn stats(db: &Connection, StatsInput { group_by }: StatsInput) -> Result<Stats, Failure> {
    let mut query = db.prepare(
        "SELECT CASE ?1
                    WHEN 'status' THEN orders.status
                    WHEN 'month' THEN substr(orders.created_at, 1, 7)
                    WHEN 'country' THEN country
                    ELSE category
                END AS key,
                count(DISTINCT orders.id),
                sum(quantity * unit_price_cents) AS total
         FROM orders
         JOIN users ON users.id = user_id
         JOIN order_lines ON order_id = orders.id
         JOIN products USING (sku)
         WHERE ?1 = 'status' OR orders.status <> 'cancelled'
         GROUP BY key
         ORDER BY iif(?1 = 'month', key, ''), total DESC",
    )?;
    let groups = query
        .query_map([group_by], |row| Ok(Group { key: row.get(0)?, orders: row.get(1)?, total_cents: row.get(2)? }))?
        .collect::<Result<_, _>>()?;
    Ok(Stats { groups })
}
