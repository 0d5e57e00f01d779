//! The app `billing`: invoices, payments, and an external ledger that is always down.

use super::orders::{OrderStatus, set_status};
use super::tool::{DemoTool, Effect, Failure, OrNotFound, default_limit, fail, not_found, string_enum, tool};
use super::users::{User, UserStatus};
use codecall_base::tool::ErrorCode;
use rusqlite::{Connection, Row, named_params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(super) fn tools() -> Vec<DemoTool> {
    use Effect::*;
    vec![
        tool(
            "listInvoices",
            Reads,
            &["money"],
            "List invoices, the latest first, with filtering by status and user. One page at a time: pass nextCursor as \
             cursor until it is null.",
            list,
        )
        .with_example(
            "The overdue invoices and their amounts",
            "const { invoices, total } = await callTool('billing:listInvoices', { status: 'overdue', limit: 100 });\n\
             return { total, dueCents: invoices.reduce((sum, invoice) => sum + invoice.dueCents, 0) };",
        ),
        tool("getInvoice", Reads, &["money"], "Get one invoice with its payments and refunds.", get),
        tool(
            "charge",
            Adds,
            &["money"],
            "Charge the customer for an invoice, in full or in part. Fails with ALREADY_PAID, INVOICE_VOID, \
             AMOUNT_TOO_HIGH or PAYMENT_DECLINED.",
            charge,
        ),
        tool(
            "refund",
            Destroys,
            &["money"],
            "Pay back money that was received for an invoice, in full or in part. Fails with NOTHING_TO_REFUND or \
             AMOUNT_TOO_HIGH.",
            refund,
        ),
        tool(
            "report",
            Reads,
            &["money", "analytics"],
            "Invoiced, received and refunded money by month, and what is still due. Takes one to two seconds.",
            report,
        )
        .with_delay(1_500),
        tool(
            "syncLedger",
            Sets,
            &["money"],
            "Send new payments to the external ledger. The ledger of this demo is always down (LEDGER_UNAVAILABLE).",
            sync_ledger,
        )
        .with_example(
            "Go on when the ledger is down",
            "const sync = await callTool('billing:syncLedger', {}, { throwOnError: false });\nreturn sync.success ? \
             sync.data : { skipped: sync.error.code };",
        ),
    ]
}

string_enum! {
    /// What an invoice is worth today.
    enum InvoiceStatus { Open = "open", Overdue = "overdue", Paid = "paid", Refunded = "refunded", Void = "void" }
}

string_enum! {
    /// How money moves.
    enum Method { Card = "card", Transfer = "transfer", Cash = "cash" }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Invoice {
    /// Such as inv_0001.
    id: String,
    order_id: String,
    user_id: String,
    status: InvoiceStatus,
    /// YYYY-MM-DD
    issued_on: String,
    /// YYYY-MM-DD
    due_on: String,
    amount_cents: i64,
    /// What the customer has paid.
    received_cents: i64,
    /// What of it was paid back.
    refunded_cents: i64,
    /// What the customer still owes.
    due_cents: i64,
}

impl Invoice {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let status = row.get("status")?;
        let (amount_cents, received_cents): (i64, i64) = (row.get("amount_cents")?, row.get("received_cents")?);
        let due_cents = match status {
            InvoiceStatus::Open | InvoiceStatus::Overdue => amount_cents - received_cents,
            InvoiceStatus::Paid | InvoiceStatus::Refunded | InvoiceStatus::Void => 0,
        };
        Ok(Self {
            id: row.get("id")?,
            order_id: row.get("order_id")?,
            user_id: row.get("user_id")?,
            status,
            issued_on: row.get("issued_on")?,
            due_on: row.get("due_on")?,
            amount_cents,
            received_cents,
            refunded_cents: row.get("refunded_cents")?,
            due_cents,
        })
    }

    fn by_id(db: &Connection, id: &str) -> Result<Self, Failure> {
        db.query_row("SELECT * FROM invoice_states WHERE id = ?1", [id], Self::from_row).or_not_found("invoice", id)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    /// Only invoices of this status.
    status: Option<InvoiceStatus>,
    /// Only invoices of this user.
    user_id: Option<String>,
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
    invoices: Vec<Invoice>,
    /// How many invoices match in all.
    total: u32,
    /// For the next page; null on the last one.
    next_cursor: Option<String>,
}

fn list(db: &Connection, List { status, user_id, limit, cursor }: List) -> Result<Page, Failure> {
    if let Some(cursor) = &cursor {
        Invoice::by_id(db, cursor).map_err(|_| {
            fail("INVALID_CURSOR", format!("'{cursor}' is not a cursor: pass the nextCursor of the page before"))
        })?;
    }
    let mut query = db.prepare(
        "SELECT * FROM invoice_states
         WHERE (:status IS NULL OR status = :status) AND (:user IS NULL OR user_id = :user)
         ORDER BY number DESC",
    )?;
    let filter = named_params! { ":status": status, ":user": user_id };
    let matching: Vec<Invoice> = query.query_map(filter, Invoice::from_row)?.collect::<Result<_, _>>()?;
    let total = matching.len() as u32;
    let is_before = |invoice: &Invoice| cursor.as_ref().is_some_and(|cursor| invoice.id >= *cursor);
    let mut rest = matching.into_iter().skip_while(is_before);
    let invoices: Vec<Invoice> = rest.by_ref().take(limit as usize).collect();
    let next_cursor = rest.next().and(invoices.last()).map(|last| last.id.clone());
    Ok(Page { invoices, total, next_cursor })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById {
    /// Id of the invoice, such as inv_0001.
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct WithPayments {
    #[serde(flatten)]
    invoice: Invoice,
    payments: Vec<Payment>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Payment {
    /// Such as pay_0001.
    id: String,
    /// Positive: received; negative: paid back.
    amount_cents: i64,
    method: Method,
    /// Why it was paid back.
    note: Option<String>,
    /// When, UTC.
    at: String,
}

fn get(db: &Connection, ById { id }: ById) -> Result<WithPayments, Failure> {
    let invoice = Invoice::by_id(db, &id)?;
    let mut payments =
        db.prepare("SELECT id, amount_cents, method, note, at FROM payments WHERE invoice_id = ?1 ORDER BY number")?;
    let payments = payments
        .query_map([&id], |row| {
            Ok(Payment {
                id: row.get(0)?,
                amount_cents: row.get(1)?,
                method: row.get(2)?,
                note: row.get(3)?,
                at: row.get(4)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(WithPayments { invoice, payments })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Charge {
    /// Id of the invoice, such as inv_0001.
    invoice_id: String,
    /// How much; all that is due when left out.
    #[schemars(range(min = 1))]
    amount_cents: Option<i64>,
    /// By card when left out.
    method: Option<Method>,
}

fn charge(db: &Connection, Charge { invoice_id, amount_cents, method }: Charge) -> Result<WithPayments, Failure> {
    let invoice = Invoice::by_id(db, &invoice_id)?;
    match invoice.status {
        InvoiceStatus::Open | InvoiceStatus::Overdue => {}
        InvoiceStatus::Paid | InvoiceStatus::Refunded => {
            return Err(fail("ALREADY_PAID", format!("Nothing is due for invoice '{invoice_id}'")));
        }
        InvoiceStatus::Void => return Err(fail("INVOICE_VOID", format!("Invoice '{invoice_id}' is void"))),
    }
    let amount = check_amount("due", amount_cents, invoice.due_cents)?;
    if User::by_id(db, &invoice.user_id)?.status == UserStatus::Suspended {
        let message = format!("The bank of user '{}' has declined the payment", invoice.user_id);
        return Err(fail("PAYMENT_DECLINED", message).with_details(json!({ "userId": invoice.user_id })));
    }
    pay(db, &invoice_id, amount, method.unwrap_or(Method::Card), None)?;
    if amount == invoice.due_cents {
        advance_order(db, &invoice.order_id)?;
    }
    get(db, ById { id: invoice_id })
}

/// Sets a pending order whose invoice is paid to `paid`.
fn advance_order(db: &Connection, order: &str) -> Result<(), Failure> {
    let status: OrderStatus = db.query_row("SELECT status FROM orders WHERE id = ?1", [order], |row| row.get(0))?;
    if status == OrderStatus::Pending {
        set_status(db, order, OrderStatus::Paid)?;
    }
    Ok(())
}

/// Returns the requested amount; without one, the whole `limit`. It is an error if the amount exceeds the limit.
fn check_amount(what: &str, amount: Option<i64>, limit: i64) -> Result<i64, Failure> {
    match amount {
        None => Ok(limit),
        Some(amount) if amount < 1 => Err(fail(ErrorCode::InvalidInput, "amountCents must be at least 1")),
        Some(amount) if amount > limit => {
            let message = format!("{amount} cents are more than the {limit} cents that are {what}");
            Err(fail("AMOUNT_TOO_HIGH", message).with_details(json!({ "amountCents": amount, "limitCents": limit })))
        }
        Some(amount) => Ok(amount),
    }
}

fn pay(db: &Connection, invoice: &str, amount: i64, method: Method, note: Option<&str>) -> Result<(), Failure> {
    db.execute(
        "INSERT INTO payments (invoice_id, amount_cents, method, note, at) SELECT ?1, ?2, ?3, ?4, now FROM calendar",
        (invoice, amount, method, note),
    )?;
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Refund {
    /// Id of the invoice, such as inv_0001.
    invoice_id: String,
    /// How much; all that was received when left out.
    #[schemars(range(min = 1))]
    amount_cents: Option<i64>,
    /// For the books.
    #[schemars(length(min = 1, max = 200))]
    reason: String,
}

fn refund(db: &Connection, Refund { invoice_id, amount_cents, reason }: Refund) -> Result<WithPayments, Failure> {
    let invoice = Invoice::by_id(db, &invoice_id)?;
    let remaining = invoice.received_cents - invoice.refunded_cents;
    if remaining <= 0 {
        let message = format!("Nothing was received for invoice '{invoice_id}' that is not refunded yet");
        return Err(fail("NOTHING_TO_REFUND", message));
    }
    let amount = check_amount("left to refund", amount_cents, remaining)?;
    pay(db, &invoice_id, -amount, last_payment_method(db, &invoice_id)?, Some(&reason))?;
    get(db, ById { id: invoice_id })
}

/// Returns the method of the last payment: a refund uses the same one.
fn last_payment_method(db: &Connection, invoice: &str) -> Result<Method, Failure> {
    let sql = "SELECT method FROM payments WHERE invoice_id = ?1 AND amount_cents > 0 ORDER BY number DESC LIMIT 1";
    db.query_row(sql, [invoice], |row| row.get(0)).or_not_found("payment of invoice", invoice)
}

/// Issues the invoice of a new order.
pub(super) fn issue_invoice(db: &Connection, order: &str) -> Result<(), Failure> {
    db.execute(
        "INSERT INTO invoices (order_id, amount_cents, issued_on, due_on)
         SELECT id, total_cents, today, date(today, '+14 days') FROM order_totals, calendar WHERE id = ?1",
        [order],
    )?;
    Ok(())
}

/// Voids the invoice of a cancelled order and refunds what was received. Returns the refunded amount.
pub(super) fn void_invoice(db: &Connection, order: &str) -> Result<i64, Failure> {
    let invoice = db
        .query_row("SELECT * FROM invoice_states WHERE order_id = ?1", [order], Invoice::from_row)
        .map_err(|_| not_found("invoice of order", order))?;
    let remaining = invoice.received_cents - invoice.refunded_cents;
    if remaining > 0 {
        pay(db, &invoice.id, -remaining, last_payment_method(db, &invoice.id)?, Some("order cancelled"))?;
    }
    db.execute("UPDATE invoices SET void = 1 WHERE id = ?1", [&invoice.id])?;
    Ok(remaining)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReportInput {
    /// First month, YYYY-MM.
    #[schemars(regex(pattern = r"^\d{4}-\d{2}$"))]
    from: Option<String>,
    /// Last month, YYYY-MM.
    #[schemars(regex(pattern = r"^\d{4}-\d{2}$"))]
    to: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Report {
    months: Vec<Month>,
    /// What customers owe today, of all invoices.
    due_cents: i64,
    /// The part of it that is overdue.
    overdue_cents: i64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Month {
    /// YYYY-MM
    month: String,
    invoiced_cents: i64,
    received_cents: i64,
    refunded_cents: i64,
}

fn report(db: &Connection, ReportInput { from, to }: ReportInput) -> Result<Report, Failure> {
    let mut query = db.prepare(
        "WITH entries (month, invoiced, received, refunded) AS (
             SELECT substr(issued_on, 1, 7), amount_cents, 0, 0 FROM invoices WHERE NOT void
             UNION ALL
             SELECT substr(at, 1, 7), 0, max(amount_cents, 0), max(-amount_cents, 0) FROM payments
         )
         SELECT month, sum(invoiced), sum(received), sum(refunded) FROM entries
         WHERE (?1 IS NULL OR month >= ?1) AND (?2 IS NULL OR month <= ?2)
         GROUP BY month ORDER BY month",
    )?;
    let months = query
        .query_map((from, to), |row| {
            Ok(Month {
                month: row.get(0)?,
                invoiced_cents: row.get(1)?,
                received_cents: row.get(2)?,
                refunded_cents: row.get(3)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    let (due_cents, overdue_cents) = db.query_row(
        "SELECT coalesce(sum(amount_cents - received_cents), 0),
                coalesce(sum(iif(status = 'overdue', amount_cents - received_cents, 0)), 0)
         FROM invoice_states WHERE status IN ('open', 'overdue')",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(Report { months, due_cents, overdue_cents })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SyncLedger {}

#[derive(Serialize, JsonSchema)]
struct Synced {
    /// How many payments were sent.
    sent: u32,
}

fn sync_ledger(_db: &Connection, SyncLedger {}: SyncLedger) -> Result<Synced, Failure> {
    let message = "The ledger at ledger.example.com does not answer; try again in 5 minutes";
    Err(fail("LEDGER_UNAVAILABLE", message).with_details(json!({ "retryAfterSeconds": 300 })))
}
