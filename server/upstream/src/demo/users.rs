//! The app `users`: customers and staff.

use super::tool::{DemoTool, Effect, Failure, OrNotFound, default_limit, fail, not_found, string_enum, tool};
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
            &["people"],
            "List users with filtering by status, role and country, a page at a time.",
            list,
        )
        .with_example(
            "The e-mail addresses of all active admins",
            "const { users } = await callTool('users:list', { status: 'active', role: 'admin', limit: 100 });\n\
                 return users.map((user) => user.email);",
        ),
        tool("get", Reads, &["people"], "Get one user by id.", get),
        tool(
            "getProfile",
            Reads,
            &["people", "analytics"],
            "Get a user with the figures of their orders: how many, how much was spent, the last order.",
            get_profile,
        ),
        tool("search", Reads, &["people"], "Search users by a part of the name, e-mail address or city.", search),
        tool("create", Adds, &["people"], "Create a user. The e-mail address must be new (EMAIL_TAKEN).", create)
            .with_example(
                "Create a customer",
                "return await callTool('users:create', {\n  name: 'Nia Mensah',\n  email: 'nia@example.com',\n  \
             city: 'Accra',\n  country: 'GH',\n});",
            ),
        tool("update", Sets, &["people"], "Change some fields of a user; those left out stay as they are.", update),
        tool(
            "delete",
            Destroys,
            &["people"],
            "Delete a user for good. One who has orders cannot be deleted (USER_HAS_ORDERS): set the status to \
             inactive instead.",
            delete,
        ),
    ]
}

string_enum! {
    /// What a user may do.
    pub(super) enum Role { Customer = "customer", Manager = "manager", Admin = "admin" }
}

string_enum! {
    /// Whether a user may log in and buy.
    pub(super) enum UserStatus { Active = "active", Inactive = "inactive", Suspended = "suspended" }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct User {
    /// Such as usr_001.
    pub(super) id: String,
    name: String,
    email: String,
    role: Role,
    pub(super) status: UserStatus,
    city: String,
    /// Two letters, ISO 3166.
    country: String,
    /// When the user joined, UTC.
    created_at: String,
}

impl User {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            email: row.get("email")?,
            role: row.get("role")?,
            status: row.get("status")?,
            city: row.get("city")?,
            country: row.get("country")?,
            created_at: row.get("created_at")?,
        })
    }

    pub(super) fn by_id(db: &Connection, id: &str) -> Result<Self, Failure> {
        db.query_row("SELECT * FROM users WHERE id = ?1", [id], Self::from_row).or_not_found("user", id)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only users of this status.
    status: Option<UserStatus>,
    /// Only users of this role.
    role: Option<Role>,
    /// Only users of this country: two letters.
    country: Option<String>,
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
    users: Vec<User>,
    /// How many users match in all.
    total: u32,
    /// Whether there are more after these.
    has_more: bool,
}

fn list(db: &Connection, List { status, role, country, limit, offset }: List) -> Result<Page, Failure> {
    let mut query = db.prepare(
        "SELECT * FROM users
         WHERE (:status IS NULL OR status = :status)
           AND (:role IS NULL OR role = :role)
           AND (:country IS NULL OR country = upper(:country))
         ORDER BY number",
    )?;
    let matching: Vec<User> = query
        .query_map(named_params! { ":status": status, ":role": role, ":country": country }, User::from_row)?
        .collect::<Result<_, _>>()?;
    let total = matching.len() as u32;
    let users: Vec<User> = matching.into_iter().skip(offset as usize).take(limit as usize).collect();
    let has_more = u64::from(offset) + (users.len() as u64) < u64::from(total);
    Ok(Page { users, total, has_more })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ById {
    /// Id of the user, such as usr_001.
    id: String,
}

fn get(db: &Connection, ById { id }: ById) -> Result<User, Failure> {
    User::by_id(db, &id)
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(flatten)]
    user: User,
    /// How many orders, cancelled ones left out.
    order_count: u32,
    /// What they come to, in cents.
    total_spent_cents: i64,
    /// The latest of them.
    last_order_id: Option<String>,
    /// When it was placed, UTC.
    last_order_at: Option<String>,
}

fn get_profile(db: &Connection, ById { id }: ById) -> Result<Profile, Failure> {
    let user = User::by_id(db, &id)?;
    let profile = db.query_row(
        "SELECT count(*), coalesce(sum(total_cents), 0), max(id), max(created_at)
         FROM order_totals WHERE user_id = ?1 AND status <> 'cancelled'",
        [&id],
        |row| {
            Ok(Profile {
                user,
                order_count: row.get(0)?,
                total_spent_cents: row.get(1)?,
                last_order_id: row.get(2)?,
                last_order_at: row.get(3)?,
            })
        },
    )?;
    Ok(profile)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// What to look for; case does not matter.
    #[schemars(length(min = 2))]
    query: String,
    /// How many at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    users: Vec<User>,
}

fn search(db: &Connection, Search { query, limit }: Search) -> Result<Found, Failure> {
    let mut find = db.prepare(
        "SELECT * FROM users
         WHERE instr(lower(name || ' ' || email || ' ' || city), lower(trim(?1))) > 0
         ORDER BY name LIMIT ?2",
    )?;
    let users = find.query_map((query, limit), User::from_row)?.collect::<Result<_, _>>()?;
    Ok(Found { users })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    #[schemars(length(min = 1, max = 100))]
    name: String,
    #[schemars(email, length(max = 200))]
    email: String,
    /// Customer when left out.
    role: Option<Role>,
    #[schemars(length(min = 1))]
    city: String,
    /// Two letters, ISO 3166.
    #[schemars(regex(pattern = r"^[A-Za-z]{2}$"))]
    country: String,
}

fn create(db: &Connection, input: Create) -> Result<User, Failure> {
    let Create { name, email, role, city, country } = input;
    check_email(db, &email, None)?;
    let created = db.query_row(
        "INSERT INTO users (name, email, role, status, city, country, created_at)
         VALUES (?1, ?2, ?3, 'active', ?4, upper(?5), (SELECT now FROM calendar)) RETURNING *",
        (name, email, role.unwrap_or(Role::Customer), city, country),
        User::from_row,
    )?;
    Ok(created)
}

/// Checks that an e-mail address is plausible and belongs to no other user.
fn check_email(db: &Connection, email: &str, owner: Option<&str>) -> Result<(), Failure> {
    let looks_right = email.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && domain.contains('.'));
    if !looks_right {
        return Err(fail("INVALID_EMAIL", format!("'{email}' is not an e-mail address")));
    }
    let taken = db.query_row("SELECT id FROM users WHERE email = ?1", [email], |row| row.get::<_, String>(0));
    match taken {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
        Ok(id) if owner == Some(&id) => Ok(()),
        Ok(id) => {
            Err(fail("EMAIL_TAKEN", format!("'{email}' belongs to user '{id}'")).with_details(json!({ "userId": id })))
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    /// Id of the user, such as usr_001.
    id: String,
    #[schemars(length(min = 1, max = 100))]
    name: Option<String>,
    #[schemars(email, length(max = 200))]
    email: Option<String>,
    role: Option<Role>,
    status: Option<UserStatus>,
    #[schemars(length(min = 1))]
    city: Option<String>,
    /// Two letters, ISO 3166.
    #[schemars(regex(pattern = r"^[A-Za-z]{2}$"))]
    country: Option<String>,
}

fn update(db: &Connection, input: Update) -> Result<User, Failure> {
    let Update { id, name, email, role, status, city, country } = input;
    if let Some(email) = &email {
        check_email(db, email, Some(&id))?;
    }
    db.query_row(
        "UPDATE users SET name = coalesce(?2, name), email = coalesce(?3, email), role = coalesce(?4, role),
             status = coalesce(?5, status), city = coalesce(?6, city), country = coalesce(upper(?7), country)
         WHERE id = ?1 RETURNING *",
        (&id, name, email, role, status, city, country),
        User::from_row,
    )
    .or_not_found("user", &id)
}

#[derive(Serialize, JsonSchema)]
struct Deleted {
    /// Id of the user that is gone.
    id: String,
    deleted: bool,
}

fn delete(db: &Connection, ById { id }: ById) -> Result<Deleted, Failure> {
    let orders: u32 = db.query_row("SELECT count(*) FROM orders WHERE user_id = ?1", [&id], |row| row.get(0))?;
    if orders > 0 {
        let message = format!("User '{id}' has {orders} orders; set the status to inactive instead");
        return Err(fail("USER_HAS_ORDERS", message).with_details(json!({ "id": id, "orders": orders })));
    }
    match db.execute("DELETE FROM users WHERE id = ?1", [&id])? {
        0 => Err(not_found("user", &id)),
        _ => Ok(Deleted { id, deleted: true }),
    }
}
