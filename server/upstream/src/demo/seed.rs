//! The initial data of the demo shop: the same in every process.

use rusqlite::{Connection, params};

/// Fills an empty database.
pub(super) fn seed(db: &Connection) -> rusqlite::Result<()> {
    let mut random = Random(0x5EED);
    users(db, &mut random)?;
    products(db, &mut random)?;
    orders(db, &mut random)
}

const USERS: i64 = 60;
const ORDERS: i64 = 250;

const FIRST_NAMES: [&str; 20] = [
    "Ada", "Bruno", "Chloe", "Diego", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Keiko", "Liam", "Mira",
    "Noah", "Olga", "Pablo", "Quinn", "Rosa", "Samir", "Tove",
];
const LAST_NAMES: [&str; 20] = [
    "Almeida", "Becker", "Costa", "Dubois", "Eriksen", "Fischer", "Garcia", "Haddad", "Ivanova", "Jansen", "Kaya",
    "Lindgren", "Moreau", "Novak", "Okafor", "Petrov", "Rossi", "Sato", "Tanaka", "Weber",
];
const CITIES: [(&str, &str); 10] = [
    ("Lisbon", "PT"),
    ("Berlin", "DE"),
    ("Paris", "FR"),
    ("Oslo", "NO"),
    ("Istanbul", "TR"),
    ("Madrid", "ES"),
    ("Milan", "IT"),
    ("Amsterdam", "NL"),
    ("Munich", "DE"),
    ("Lyon", "FR"),
];

fn users(db: &Connection, random: &mut Random) -> rusqlite::Result<()> {
    let mut insert = db.prepare(
        "INSERT INTO users (name, email, role, status, city, country, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, strftime('%Y-%m-%dT%H:%M:%SZ', '2024-01-08', ?7))",
    )?;
    for index in 0..USERS {
        // Three rounds over the first names, each with other last names, so no name occurs twice.
        let at = usize::try_from(index).unwrap_or_default();
        let first = FIRST_NAMES[at % 20];
        let last = LAST_NAMES[(at * 7 + at / 20) % 20];
        let role = match index {
            0 | 29 => "admin",
            _ if index % 9 == 4 => "manager",
            _ => "customer",
        };
        let status = match random.below(20) {
            _ if role != "customer" => "active",
            0..=2 => "inactive",
            3 => "suspended",
            _ => "active",
        };
        let (city, country) = random.pick(&CITIES);
        let joined = format!("+{} minutes", index * 17_000 + random.below(16_000));
        let email = format!("{}.{}@example.com", first.to_lowercase(), last.to_lowercase());
        insert.execute(params![format!("{first} {last}"), email, role, status, city, country, joined])?;
    }
    Ok(())
}

/// Stem of the SKU, name, category, price of the simplest model in cents, supplier.
const LINES: [(&str, &str, &str, i64, &str); 16] = [
    ("KEY", "Keyboard", "peripherals", 5_900, "Tastwerk"),
    ("MOU", "Mouse", "peripherals", 2_900, "Tastwerk"),
    ("CAM", "Webcam", "peripherals", 6_400, "Lumen Optics"),
    ("HDS", "Headset", "audio", 7_900, "Nordklang"),
    ("SPK", "Speaker", "audio", 11_500, "Nordklang"),
    ("MIC", "Microphone", "audio", 8_900, "Nordklang"),
    ("MON", "Monitor", "displays", 21_900, "Lumen Optics"),
    ("ARM", "Monitor Arm", "displays", 6_900, "Steelbird"),
    ("DSK", "Desk", "furniture", 32_900, "Steelbird"),
    ("CHR", "Chair", "furniture", 24_900, "Steelbird"),
    ("LMP", "Desk Lamp", "furniture", 4_500, "Lumen Optics"),
    ("DOC", "Docking Station", "connectivity", 12_900, "Portside"),
    ("HUB", "USB Hub", "connectivity", 3_400, "Portside"),
    ("CBL", "Charging Cable", "connectivity", 1_200, "Portside"),
    ("BAG", "Backpack", "travel", 8_400, "Wanderline"),
    ("SLV", "Laptop Sleeve", "travel", 2_700, "Wanderline"),
];
/// Name, price in percent of the simplest model.
const MODELS: [(&str, i64); 5] = [("Basic", 100), ("Compact", 115), ("Classic", 130), ("Plus", 160), ("Pro", 220)];

fn products(db: &Connection, random: &mut Random) -> rusqlite::Result<()> {
    let mut insert = db.prepare("INSERT INTO products VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    let mut arrived = db.prepare(
        "INSERT INTO movements (sku, change, reason, at) VALUES (?1, ?2, 'opening stock', '2026-01-01T08:00:00Z')",
    )?;
    for (stem, name, category, price, supplier) in LINES {
        for (number, (model, percent)) in (1..).zip(MODELS) {
            let sku = format!("{stem}-{number:02}");
            let reorder_level = 5 + random.below(4) * 5;
            // One product in eight is low in stock; one of these is out of stock.
            let stock = match random.below(40) {
                0 => 0,
                1..=4 => random.below(reorder_level),
                _ => reorder_level + 4 + random.below(90),
            };
            insert.execute(params![
                sku,
                format!("{model} {name}"),
                category,
                price * percent / 100,
                stock,
                reorder_level,
                supplier
            ])?;
            arrived.execute(params![sku, stock])?;
        }
    }
    Ok(())
}

/// Minutes from 1 January 2026 to the shop's current day.
const MINUTES: i64 = 180 * 24 * 60;

fn orders(db: &Connection, random: &mut Random) -> rusqlite::Result<()> {
    let mut order = db.prepare(
        "INSERT INTO orders (user_id, status, created_at, updated_at)
         VALUES (printf('usr_%03d', ?1), ?2, strftime('%Y-%m-%dT%H:%M:%SZ', '2026-01-01', ?3),
                 min(strftime('%Y-%m-%dT%H:%M:%SZ', '2026-01-01', ?3, ?4), (SELECT now FROM calendar)))
         RETURNING id",
    )?;
    let mut line = db.prepare(
        "INSERT OR IGNORE INTO order_lines
         SELECT ?1, sku, ?3, price_cents FROM products LIMIT 1 OFFSET ?2",
    )?;
    for index in 0..ORDERS {
        // The shop grows: the gaps between orders halve over the period.
        let minute = MINUTES * index * (3 * ORDERS - index) / (2 * ORDERS * ORDERS) + random.below(300);
        let age_days = (MINUTES - minute) / (24 * 60);
        // A few customers order a lot: the smallest of three random numbers.
        let user = 1 + random.below(USERS).min(random.below(USERS)).min(random.below(USERS));
        let status = match random.below(20) {
            0 => "cancelled",
            _ if age_days > 21 => "delivered",
            1..=8 if age_days > 7 => "delivered",
            9..=15 if age_days > 2 => "shipped",
            16 | 17 => "paid",
            _ => "pending",
        };
        let touched = format!("+{} minutes", 60 + random.below(5_000));
        let id: String =
            order.query_row(params![user, status, format!("+{minute} minutes"), touched], |row| row.get(0))?;
        for _ in 0..=random.below(4) {
            line.execute(params![id, random.below(80), 1 + random.below(4) * random.below(3)])?;
        }
        bill(db, random, &id, status)?;
    }
    Ok(())
}

/// Creates the invoice of an order and its payments.
fn bill(db: &Connection, random: &mut Random, order: &str, status: &str) -> rusqlite::Result<()> {
    let terms = format!("+{} days", [14, 14, 30][usize::try_from(random.below(3)).unwrap_or_default()]);
    let (invoice, amount, created): (String, i64, String) = db.query_row(
        "INSERT INTO invoices (order_id, amount_cents, issued_on, due_on, void)
         SELECT id, total_cents, date(created_at), date(created_at, ?2), status = 'cancelled'
         FROM order_totals WHERE id = ?1
         RETURNING id, amount_cents, issued_on",
        params![order, terms],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let paid = match status {
        "paid" => amount,
        // Payment after delivery: most customers have paid, some in part, some not at all.
        "shipped" | "delivered" => match random.below(16) {
            0 => 0,
            1 => amount / 2,
            _ => amount,
        },
        _ => 0,
    };
    let method = random.pick(&["card", "card", "transfer", "cash"]);
    let mut pay = db.prepare(
        "INSERT INTO payments (invoice_id, amount_cents, method, note, at)
         VALUES (?1, ?2, ?3, ?4, min(strftime('%Y-%m-%dT%H:%M:%SZ', ?5, ?6), (SELECT now FROM calendar)))",
    )?;
    let days = random.below(12);
    if paid > 0 {
        pay.execute(params![invoice, paid, method, None::<&str>, created, format!("+{days} days")])?;
    }
    if status == "delivered" && paid == amount && random.below(18) == 0 {
        let note = random.pick(&["damaged in transit", "returned", "goodwill"]);
        pay.execute(params![invoice, -paid, method, note, created, format!("+{} days", days + 6)])?;
    }
    Ok(())
}

/// A generator of random numbers with a fixed seed: splitmix64.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to `limit - 1`.
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        i64::try_from(bits % limit.unsigned_abs().max(1)).unwrap_or_default()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as i64)).unwrap_or_default()]
    }
}
