//! The rotation of master keys. Data of earlier keys is sealed again with the first one, and a key is removed only when
//! nothing needs it.
//!
//! Messages between replicas are left out: they live for seconds.

use crate::database::{Database, Row, Statement, Value};
use crate::sealed::{KeyRing, Place, SealError};
use crate::{StoreError, state};
use std::collections::BTreeMap;
use std::fmt;

/// Rows that are read at once.
const PAGE: u64 = 200;

/// A column with sealed records.
struct Column {
    /// How people call the records.
    what: &'static str,
    table: &'static str,
    name: &'static str,
    /// The columns of the primary key.
    keys: &'static [&'static str],
    /// The place of a record: its table, and which columns of the key are its owner and its name.
    place: (&'static str, Option<usize>, Option<usize>),
}

/// All columns with records that outlive a process.
const COLUMNS: [Column; 9] = [
    Column {
        what: "secrets",
        table: "secrets",
        name: "sealed",
        keys: &["workspace", "name"],
        place: ("secrets", Some(0), Some(1)),
    },
    Column {
        what: "tokens of MCP servers",
        table: "credentials",
        name: "sealed",
        keys: &["server"],
        place: ("credentials", None, Some(0)),
    },
    Column {
        what: "durable runs",
        table: "journaled_runs",
        name: "header",
        keys: &["id"],
        place: ("journal header", Some(0), None),
    },
    Column {
        what: "outcomes of durable runs",
        table: "journaled_runs",
        name: "outcome",
        keys: &["id"],
        place: ("journal outcome", Some(0), None),
    },
    Column {
        what: "entries of journals",
        table: "journal_entries",
        name: "sealed",
        keys: &["run", "number"],
        place: ("journal entry", Some(0), Some(1)),
    },
    Column {
        what: "long results of durable runs",
        table: "run_results",
        name: "sealed",
        keys: &["run", "piece"],
        place: ("run result", Some(0), Some(1)),
    },
    Column { what: "tasks", table: "tasks", name: "sealed", keys: &["id", "scope"], place: ("task", Some(1), Some(0)) },
    Column {
        what: "cached answers",
        table: "answers",
        name: "sealed",
        keys: &["key"],
        place: ("answers", None, Some(0)),
    },
    Column {
        what: "secrets of replicas",
        table: "replica_secrets",
        name: "sealed",
        keys: &["name"],
        place: ("replica secret", None, Some(0)),
    },
];

/// Numbers of records, by what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    fn add(&mut self, what: &'static str, number: u64) {
        if number > 0 {
            *self.0.entry(what).or_default() += number;
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// As in `2 secrets, 5 durable runs`.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (what, number)) in self.0.iter().enumerate() {
            write!(f, "{}{number} {what}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// The outcome of a rotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotated {
    /// Records that are sealed with the first key now.
    pub sealed: Counts,
    /// Records that cannot be opened.
    pub left: Counts,
    /// Why the last of these cannot be opened.
    pub problem: Option<SealError>,
}

/// Seals again what other keys of the ring have sealed than the first one. What is written meanwhile stays as it is.
///
/// # Errors
/// The database cannot be used. Records before the error are sealed again.
pub async fn seal_again(database: &Database, keys: &KeyRing) -> Result<Rotated, StoreError> {
    let mut rotated = Rotated::default();
    for column in &COLUMNS {
        column.seal_again(database, keys, &mut rotated).await?;
    }
    Ok(rotated)
}

/// Counts the records that a key has sealed, by its id.
///
/// # Errors
/// The database cannot be read.
pub async fn needed(database: &Database, id: &str) -> Result<Counts, StoreError> {
    let Some(id) = state::unhex(id) else { return Ok(Counts::default()) };
    let mut counts = Counts::default();
    for Column { what, table, name, .. } in &COLUMNS {
        let sql = format!("SELECT count(*) FROM {table} WHERE {name} IS NOT NULL AND substr({name}, 2, 4) = $1");
        let rows = database.query(sql, [id.clone().into()]).await.map_err(|problem| database.error(&problem))?;
        let number = rows.first().and_then(|row| u64::try_from(row[0].int()).ok());
        counts.add(what, number.unwrap_or_default());
    }
    Ok(counts)
}

impl Column {
    async fn seal_again(&self, database: &Database, keys: &KeyRing, rotated: &mut Rotated) -> Result<(), StoreError> {
        let failed = |problem| database.error(&problem);
        let mut last: Option<Vec<Value>> = None;
        loop {
            let rows = database.batch(vec![self.page(keys, last.as_deref())]).await.map_err(failed)?;
            let mut updates = Vec::new();
            for row in &rows {
                match self.sealed_again(keys, row) {
                    Ok(update) => updates.push(update),
                    Err(problem) => {
                        rotated.left.add(self.what, 1);
                        rotated.problem = Some(problem);
                    }
                }
            }
            if !updates.is_empty() {
                rotated.sealed.add(self.what, updates.len() as u64);
                database.batch(updates).await.map_err(failed)?;
            }
            match rows.last() {
                Some(row) if rows.len() as u64 == PAGE => last = Some(row[..self.keys.len()].to_vec()),
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// The next records that the first key has not sealed, after those of a primary key.
    fn page(&self, keys: &KeyRing, last: Option<&[Value]>) -> Statement {
        let Self { table, name, keys: columns, .. } = self;
        let columns = columns.join(", ");
        let mut values = vec![Value::Bytes(state::unhex(&keys.id()).unwrap_or_default())];
        let mut after = String::new();
        if let Some(last) = last {
            let places: Vec<String> = (2..last.len() + 2).map(|at| format!("${at}")).collect();
            after = format!(" AND ({columns}) > ({})", places.join(", "));
            values.extend_from_slice(last);
        }
        let sql = format!(
            "SELECT {columns}, {name} FROM {table} WHERE {name} IS NOT NULL AND substr({name}, 2, 4) <> $1{after} \
             ORDER BY {columns} LIMIT {PAGE}"
        );
        Statement::new(sql, values)
    }

    /// Returns the statement that replaces a record.
    fn sealed_again(&self, keys: &KeyRing, row: &Row) -> Result<Statement, SealError> {
        let Self { table, name, keys: columns, place: (place, owner, own_name), .. } = self;
        let text = |at: &Option<usize>| match at.and_then(|at| row.get(at)) {
            Some(Value::Int(number)) => number.to_string(),
            Some(value) => value.text().unwrap_or_default().to_owned(),
            None => String::new(),
        };
        let (owner, own_name) = (text(owner), text(own_name));
        let place = Place { table: place, owner: &owner, name: &own_name };
        let before = row.last().map(Value::bytes).unwrap_or_default();
        let again = keys.seal(place, &keys.open(place, before)?)?;
        let of_key: Vec<String> = columns.iter().zip(2..).map(|(key, at)| format!("{key} = ${at}")).collect();
        let last = columns.len() + 2;
        let sql = format!("UPDATE {table} SET {name} = $1 WHERE {} AND {name} = ${last}", of_key.join(" AND "));
        let values = [Value::Bytes(again)].into_iter().chain(row.iter().cloned());
        Ok(Statement::new(sql, values.collect::<Vec<_>>()))
    }
}
