-- The demo shop. Money is in cents, times are UTC in ISO 8601, days are YYYY-MM-DD: they sort as text.

CREATE TABLE users (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT GENERATED ALWAYS AS (printf('usr_%03d', number)) STORED UNIQUE,
    name       TEXT NOT NULL,
    email      TEXT NOT NULL UNIQUE COLLATE NOCASE,
    role       TEXT NOT NULL CHECK (role IN ('customer', 'manager', 'admin')),
    status     TEXT NOT NULL CHECK (status IN ('active', 'inactive', 'suspended')),
    city       TEXT NOT NULL,
    country    TEXT NOT NULL,
    created_at TEXT NOT NULL
);

CREATE TABLE products (
    sku           TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    category      TEXT NOT NULL,
    price_cents   INTEGER NOT NULL CHECK (price_cents > 0),
    stock         INTEGER NOT NULL CHECK (stock >= 0),
    reorder_level INTEGER NOT NULL,
    supplier      TEXT NOT NULL
);

CREATE TABLE movements (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    sku    TEXT NOT NULL REFERENCES products (sku),
    change INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at     TEXT NOT NULL
);

CREATE TABLE orders (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT GENERATED ALWAYS AS (printf('ord_%04d', number)) STORED UNIQUE,
    user_id    TEXT NOT NULL REFERENCES users (id),
    status     TEXT NOT NULL CHECK (status IN ('pending', 'paid', 'shipped', 'delivered', 'cancelled')),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

CREATE TABLE order_lines (
    order_id         TEXT NOT NULL REFERENCES orders (id),
    sku              TEXT NOT NULL REFERENCES products (sku),
    quantity         INTEGER NOT NULL CHECK (quantity > 0),
    unit_price_cents INTEGER NOT NULL,
    PRIMARY KEY (order_id, sku)
) WITHOUT ROWID;

CREATE TABLE invoices (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT GENERATED ALWAYS AS (printf('inv_%04d', number)) STORED UNIQUE,
    order_id     TEXT NOT NULL UNIQUE REFERENCES orders (id),
    amount_cents INTEGER NOT NULL,
    issued_on    TEXT NOT NULL,
    due_on       TEXT NOT NULL,
    void         INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE payments (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT GENERATED ALWAYS AS (printf('pay_%04d', number)) STORED UNIQUE,
    invoice_id   TEXT NOT NULL REFERENCES invoices (id),
    -- Positive: received from the customer; negative: refunded.
    amount_cents INTEGER NOT NULL CHECK (amount_cents <> 0),
    method       TEXT NOT NULL CHECK (method IN ('card', 'transfer', 'cash')),
    note         TEXT,
    at           TEXT NOT NULL
);

CREATE INDEX orders_by_user ON orders (user_id);
CREATE INDEX payments_by_invoice ON payments (invoice_id);

-- The current day of the shop is fixed, so that a script gets the same results every time.
CREATE TABLE calendar (today TEXT NOT NULL, now TEXT NOT NULL);
INSERT INTO calendar VALUES ('2026-06-30', '2026-06-30T12:00:00Z');

CREATE VIEW order_totals AS
SELECT orders.*,
       sum(quantity) AS item_count,
       sum(quantity * unit_price_cents) AS total_cents
FROM orders JOIN order_lines ON order_id = orders.id
GROUP BY orders.id;

CREATE VIEW balances AS
SELECT invoices.*,
       user_id,
       (SELECT coalesce(sum(amount_cents), 0) FROM payments WHERE invoice_id = invoices.id AND amount_cents > 0)
           AS received_cents,
       (SELECT coalesce(-sum(amount_cents), 0) FROM payments WHERE invoice_id = invoices.id AND amount_cents < 0)
           AS refunded_cents
FROM invoices JOIN orders ON orders.id = order_id;

-- The status of each invoice today. A refunded amount is not due again.
CREATE VIEW invoice_states AS
SELECT balances.*,
       CASE
           WHEN void THEN 'void'
           WHEN refunded_cents > 0 AND refunded_cents >= received_cents THEN 'refunded'
           WHEN received_cents >= amount_cents THEN 'paid'
           WHEN due_on < (SELECT today FROM calendar) THEN 'overdue'
           ELSE 'open'
       END AS status
FROM balances;
