//! The database in Postgres: a few connections, each of which is opened when the others are in use, and again after it was lost.

use super::clock::{Clock, uptime_us};
use super::schema::{APPLIED, CREATE, NOTE, missing};
use super::{Dialect, Problem, Row, SnapshotRows, Statement, Value};
use crate::{StoreError, now_ms};
use futures_util::TryStreamExt as _;
use rustls_platform_verifier::ConfigVerifierExt as _;
use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, GenericClient, IsolationLevel};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a transaction may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long after a connection that listens was lost, or not opened, it is opened again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of connections. The database writes the commits of several connections to its disk at once.
const MAX_CONNECTIONS: usize = 16;
/// Reads the time, in microseconds since 1970.
const TIME: &str = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
/// The time after which an answer says too little of the time, in microseconds.
const LATE_US: i64 = 200_000;
/// The key of the lock under which the tables are made: `CCst`.
const LOCK: i64 = 0x4343_7374;

/// A Postgres database.
pub struct Postgres {
    config: Config,
    clock: Clock,
    /// One for each connection that may be in use.
    permits: Semaphore,
    /// The sessions that are not in use.
    idle: Mutex<Vec<Session>>,
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
        Ok(Self { config, clock: Clock::new(), permits: Semaphore::new(MAX_CONNECTIONS), idle: Mutex::default() })
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub async fn batch(&self, statements: &[Statement]) -> Result<Vec<Row>, Problem> {
        let _permit = self.permits.acquire().await.map_err(|_| Problem::Closed)?;
        // A connection that was lost since the last use is only found out by using it. The transaction was not committed
        // unless the connection was lost during the commit; statements of the store can be repeated.
        if let Some(idle) = self.idle_session() {
            match self.try_batch(idle, statements).await {
                // The others are lost too.
                Err(Problem::Unreachable(_)) => self.sessions().clear(),
                done => return done,
            }
        }
        self.try_batch(self.connect().await?, statements).await
    }

    fn sessions(&self) -> MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_session(&self) -> Option<Session> {
        let mut idle = self.sessions();
        idle.retain(|session| !session.client.is_closed());
        idle.pop()
    }

    async fn try_batch(&self, mut session: Session, statements: &[Statement]) -> Result<Vec<Row>, Problem> {
        let done = tokio::time::timeout(TIMEOUT, session.batch(statements)).await;
        let done = done.unwrap_or_else(|_| Err(Problem::Unreachable("it does not answer".into())));
        if !matches!(done, Err(Problem::Unreachable(_))) {
            self.sessions().push(session);
        }
        done
    }

    /// Sends the rows of statements, all as they are at one moment, until nobody wants more.
    pub async fn snapshot(&self, statements: &[Statement], to: &SnapshotRows) -> Result<(), Problem> {
        let _permit = self.permits.acquire().await.map_err(|_| Problem::Closed)?;
        let mut session = self.connect().await?;
        let reading =
            session.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let transaction = reading.start().await?;
        for (number, Statement { sql, values }) in statements.iter().enumerate() {
            let statement = transaction.prepare(&Dialect::Postgres.sql(sql)).await?;
            let values = values.iter().map(|value| value as &(dyn ToSql + Sync));
            let mut rows = std::pin::pin!(transaction.query_raw(&statement, values).await?);
            while let Some(found) = rows.try_next().await? {
                if to.send((number, row(&found)?)).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(transaction.commit().await?)
    }

    /// Reads the clock of the server. An answer that is late says nothing.
    pub async fn read_clock(&self) -> Result<(), Problem> {
        let asked = uptime_us();
        let rows = self.batch(&[Statement::new(TIME, [])]).await?;
        let answered = uptime_us();
        if let Some(row) = rows.first().filter(|_| answered - asked <= LATE_US) {
            self.clock.set(row[0].int(), asked, answered);
        }
        Ok(())
    }

    pub async fn vacuum(&self) -> Result<(), Problem> {
        let _permit = self.permits.acquire().await.map_err(|_| Problem::Closed)?;
        let session = self.connect().await?;
        let tables = session.client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'codecall'", &[]).await?;
        for table in tables {
            session.client.batch_execute(&format!("VACUUM codecall.{}", table.get::<_, String>(0))).await?;
        }
        Ok(())
    }

    /// Notifies of the notifications of a channel, until the future is dropped. A lost connection is opened again.
    pub fn listen(&self, channel: String, wake: Arc<Notify>) -> impl Future<Output = ()> + Send + 'static {
        let config = self.config.clone();
        async move {
            loop {
                if let Err(problem) = listen(&config, &channel, &wake).await {
                    tracing::debug!("notifications of the database: {problem}");
                }
                tokio::time::sleep(LISTEN_AGAIN).await;
            }
        }
    }

    async fn connect(&self) -> Result<Session, Problem> {
        let (mut client, connection) = open(&self.config).await?;
        tokio::spawn(async move {
            // A lost connection fails the next use.
            let _ = connection.await;
        });
        client.batch_execute("SET client_min_messages = warning").await?;
        migrate(&mut client).await?;
        let asked = uptime_us();
        let time: i64 = client.query_one(TIME, &[]).await?.get(0);
        self.clock.set(time, asked, uptime_us());
        Ok(Session { client, prepared: HashMap::new() })
    }
}

type Opened = (Client, tokio_postgres::Connection<tokio_postgres::Socket, TlsStream>);
type TlsStream = <MakeRustlsConnect as MakeTlsConnect<tokio_postgres::Socket>>::Stream;

async fn open(config: &Config) -> Result<Opened, Problem> {
    let tls = rustls::ClientConfig::with_platform_verifier()
        .map_err(|error| Problem::Failed(format!("TLS cannot be used: {error}")))?;
    let connecting = config.connect(MakeRustlsConnect::new(tls));
    match tokio::time::timeout(CONNECT_TIMEOUT * 2, connecting).await {
        Ok(connected) => Ok(connected?),
        Err(_) => Err(Problem::Unreachable("it does not answer".into())),
    }
}

/// Notifies of the notifications of a channel until the connection is lost.
async fn listen(config: &Config, channel: &str, wake: &Notify) -> Result<(), Problem> {
    let (client, mut connection) = open(config).await?;
    let (sender, mut received) = tokio::sync::mpsc::channel::<()>(1);
    let receiving = async move {
        while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if matches!(message?, tokio_postgres::AsyncMessage::Notification(_)) {
                // One that waits already stands for all.
                let _ = sender.try_send(());
            }
        }
        Ok::<(), Problem>(())
    };
    let forwarding = async {
        client.batch_execute(&format!("LISTEN \"{channel}\"")).await?;
        // Something may have come before.
        wake.notify_one();
        while received.recv().await.is_some() {
            wake.notify_one();
        }
        Ok::<(), Problem>(())
    };
    tokio::try_join!(receiving, forwarding).map(drop)
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
        // One statement is a transaction of its own.
        if let [statement] = statements {
            return execute(client, prepared, statement).await;
        }
        let transaction = client.transaction().await?;
        let mut last = Vec::new();
        for statement in statements {
            last = execute(&transaction, prepared, statement).await?;
        }
        transaction.commit().await?;
        Ok(last)
    }
}

/// Executes a statement, which is prepared once for a connection. Returns its rows.
async fn execute(
    client: &impl GenericClient,
    prepared: &mut HashMap<String, tokio_postgres::Statement>,
    Statement { sql, values }: &Statement,
) -> Result<Vec<Row>, Problem> {
    let sql = Dialect::Postgres.sql(sql);
    let statement = match prepared.get(&*sql) {
        Some(statement) => statement.clone(),
        None => {
            let statement = client.prepare(&sql).await?;
            prepared.insert(sql.into_owned(), statement.clone());
            statement
        }
    };
    let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
    client.query(&statement, &values).await?.iter().map(row).collect()
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
