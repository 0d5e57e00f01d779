//! The database in Postgres: one connection, which is opened by the first use and again after it was lost.

use super::schema::{APPLIED, CREATE, NOTE, missing};
use super::{Dialect, Problem, Row, Statement, Value};
use crate::{StoreError, now_ms};
use rustls_platform_verifier::ConfigVerifierExt as _;
use std::collections::HashMap;
use std::error::Error as _;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, Transaction};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a transaction may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The key of the lock under which the tables are made: `CCst`.
const LOCK: i64 = 0x4343_7374;

/// A Postgres database.
pub struct Postgres {
    config: Config,
    session: Mutex<Option<Session>>,
}

struct Session {
    client: Client,
    prepared: HashMap<String, tokio_postgres::Statement>,
}

impl Postgres {
    /// Parses the address. Nothing is connected.
    ///
    /// # Errors
    /// It is malformed.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        // The message of the library may contain a part of the address.
        let parsed = url.parse::<Config>();
        let mut config = parsed.map_err(|_| StoreError("store.url: it is not an address of Postgres".into()))?;
        config.connect_timeout(CONNECT_TIMEOUT).application_name("codecall");
        Ok(Self { config, session: Mutex::default() })
    }

    pub async fn batch(&self, statements: &[Statement]) -> Result<Vec<Row>, Problem> {
        let mut session = self.session.lock().await;
        // A connection that was lost since the last use is only found out by using it. The transaction was not committed
        // unless the connection was lost during the commit; statements of the store can be repeated.
        let had_one = session.is_some();
        match self.try_batch(&mut session, statements).await {
            Err(Problem::Unreachable(_)) if had_one => self.try_batch(&mut session, statements).await,
            done => done,
        }
    }

    async fn try_batch(&self, session: &mut Option<Session>, statements: &[Statement]) -> Result<Vec<Row>, Problem> {
        let open = match session.take().filter(|session| !session.client.is_closed()) {
            Some(open) => open,
            None => self.connect().await?,
        };
        let open = session.insert(open);
        let done = tokio::time::timeout(TIMEOUT, open.batch(statements)).await;
        let done = done.unwrap_or_else(|_| Err(Problem::Unreachable("it does not answer".into())));
        if matches!(done, Err(Problem::Unreachable(_))) {
            *session = None;
        }
        done
    }

    pub async fn vacuum(&self) -> Result<(), Problem> {
        self.batch(&[]).await?;
        let session = self.session.lock().await;
        let client = &session.as_ref().ok_or(Problem::Closed)?.client;
        for table in ["runs", "run_details", "run_tools", "run_texts"] {
            client.batch_execute(&format!("VACUUM codecall.{table}")).await?;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Session, Problem> {
        let tls = rustls::ClientConfig::with_platform_verifier()
            .map_err(|error| Problem::Failed(format!("TLS cannot be used: {error}")))?;
        let connecting = self.config.connect(MakeRustlsConnect::new(tls));
        let (mut client, connection) = match tokio::time::timeout(CONNECT_TIMEOUT * 2, connecting).await {
            Ok(connected) => connected?,
            Err(_) => return Err(Problem::Unreachable("it does not answer".into())),
        };
        tokio::spawn(async move {
            // A lost connection fails the next use.
            let _ = connection.await;
        });
        client.batch_execute("SET client_min_messages = warning").await?;
        migrate(&mut client).await?;
        Ok(Session { client, prepared: HashMap::new() })
    }
}

async fn migrate(client: &mut Client) -> Result<(), Problem> {
    let transaction = client.transaction().await?;
    // Servers that start at the same time do it one after the other.
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    transaction.batch_execute("CREATE SCHEMA IF NOT EXISTS codecall; SET search_path TO codecall").await?;
    transaction.batch_execute(CREATE).await?;
    let applied = transaction.query(APPLIED, &[]).await?;
    let applied: Vec<(i64, String)> = applied.iter().map(|row| (row.get(0), row.get(1))).collect();
    for migration in missing(&applied, Dialect::Postgres)? {
        transaction.batch_execute(&migration.sql).await?;
        transaction.execute(NOTE, &[&migration.version, &migration.digest, &now_ms()]).await?;
    }
    Ok(transaction.commit().await?)
}

impl Session {
    async fn batch(&mut self, statements: &[Statement]) -> Result<Vec<Row>, Problem> {
        let Self { client, prepared } = self;
        let transaction = client.transaction().await?;
        let mut last = Vec::new();
        for Statement { sql, values } in statements {
            let sql = Dialect::Postgres.sql(sql);
            let statement = prepare(&transaction, prepared, &sql).await?;
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
            let rows = transaction.query(&statement, &values).await?;
            last = rows.iter().map(row).collect::<Result<_, _>>()?;
        }
        transaction.commit().await?;
        Ok(last)
    }
}

/// Prepares a statement once for a connection.
async fn prepare(
    transaction: &Transaction<'_>,
    prepared: &mut HashMap<String, tokio_postgres::Statement>,
    sql: &str,
) -> Result<tokio_postgres::Statement, Problem> {
    if let Some(statement) = prepared.get(sql) {
        return Ok(statement.clone());
    }
    let statement = transaction.prepare(sql).await?;
    prepared.insert(sql.to_owned(), statement.clone());
    Ok(statement)
}

fn row(row: &tokio_postgres::Row) -> Result<Row, Problem> {
    let value = |(at, column): (usize, &tokio_postgres::Column)| {
        let value = match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map(Value::Int),
            Type::INT4 => row.try_get::<_, Option<i32>>(at)?.map(|number| Value::Int(number.into())),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map(Value::Bytes),
            _ => row.try_get::<_, Option<String>>(at)?.map(Value::Text),
        };
        Ok(value.unwrap_or(Value::Null))
    };
    row.columns().iter().enumerate().map(value).collect()
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *kind == Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl From<tokio_postgres::Error> for Problem {
    /// The detail of an error of the database contains values, so it is not used.
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) => match error.code().code() {
                "53100" => Self::Full,
                "57P01" | "57P02" | "57P03" | "53300" => Self::Unreachable(error.message().to_owned()),
                "40001" | "40P01" | "55P03" => Self::Busy,
                code => Self::Failed(format!("the database refuses: {} ({code})", error.message())),
            },
            None => {
                let mut text = error.to_string();
                if let Some(source) = error.source() {
                    text.push_str(&format!(": {source}"));
                }
                Self::Unreachable(text)
            }
        }
    }
}
