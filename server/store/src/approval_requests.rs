//! Calls of tools that wait for the decision of a person.
//!
//! A request shows all of its input, masked. The input of the call is in the journal of its run, or comes again with
//! the call. The request has a digest of it, which decisions refer to. A decision is used once.

use crate::database::{Database, Problem, Row, Statement, Value};
use crate::{BoxFuture, StoreError};
use codecall_base::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Maximum length of a reason, in bytes.
const MAX_REASON_BYTES: usize = 1_000;
/// Maximum number of requests in a list.
const MAX_LISTED: u64 = 1_000;

/// Length of a page of an input, in bytes. Lists show the first page of each.
pub const PAGE_BYTES: usize = 4_096;
/// Length from which on the member of an input is long, in bytes: it can hide what follows it.
const LONG_BYTES: usize = 1_024;

/// Where a request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Nobody has decided.
    #[default]
    Waiting,
    /// A person allows the call.
    Approved,
    /// A person does not allow it.
    Denied,
    /// Nobody has decided in time.
    Expired,
    /// The script no longer waits for the call.
    Withdrawn,
}

impl ApprovalState {
    const ALL: [Self; 5] = [Self::Waiting, Self::Approved, Self::Denied, Self::Expired, Self::Withdrawn];

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }

    fn parse(text: &str) -> Self {
        Self::ALL.into_iter().find(|state| state.as_str() == text).unwrap_or(Self::Withdrawn)
    }
}

/// A call that waits for a decision, or has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// Its id: 12 hexadecimal digits.
    pub id: String,
    /// The call that it is about: the call of a run, or a call of this input by this client.
    #[serde(skip)]
    pub subject: String,
    /// The run whose script makes the call; `None`: no script does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The tool.
    pub tool: String,
    /// The input as people see it: JSON text, masked. In lists its first page.
    pub input: String,
    /// The size of the whole `input`, in bytes.
    pub input_bytes: u64,
    /// The long members of the input, as [`long_members`] names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_members: Option<String>,
    /// The SHA-256 digest of the input that is sent: of its JSON text without spaces, with sorted members.
    pub input_digest: String,
    /// The client that makes the call, as it names itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The scope of an approval beyond this call; `None`: it holds for this call only.
    #[serde(skip)]
    pub scope: Option<String>,
    /// Whether an approval holds for further calls of this tool by this client.
    pub once: bool,
    /// When it was asked, in milliseconds since 1970.
    pub asked_ms: i64,
    /// When it expires.
    pub expires_ms: i64,
    /// Where it stands.
    pub state: ApprovalState,
    /// Whether a call was made, or has failed, with the decision.
    pub used: bool,
    /// When it was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_ms: Option<i64>,
    /// The person who has decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Why, in the words of that person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ApprovalRequest {
    /// Whether `input` is all of it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.input.len() as u64 >= self.input_bytes
    }
}

/// Names the long members of an input, the longest first, with their sizes in bytes: what follows a long one is easily not
/// seen. `None`: there is none.
#[must_use]
pub fn long_members(input: &str) -> Option<String> {
    if input.len() <= LONG_BYTES {
        return None;
    }
    let Ok(Json::Object(members)) = serde_json::from_str::<Json>(input) else { return None };
    let sizes = members.iter().map(|(name, value)| (value.to_string().len(), name));
    let mut long: Vec<(usize, &String)> = sizes.filter(|(bytes, _)| *bytes > LONG_BYTES).collect();
    long.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    let named: Vec<String> = long.iter().map(|(bytes, name)| format!("{name:?} ({bytes} bytes)")).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Divides a text into pages, of which none cuts a character.
#[must_use]
pub fn pages(text: &str) -> Vec<&str> {
    let mut pages = Vec::new();
    let mut rest = text;
    while rest.len() > PAGE_BYTES {
        let (page, more) = rest.split_at(codecall_base::text::truncate(rest, PAGE_BYTES).len());
        pages.push(page);
        rest = more;
    }
    pages.push(rest);
    pages
}

/// The decision of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The digest of the input that the person has seen, or its beginning: the decision holds for no other one. `None`: that
    /// of the request.
    pub digest: Option<String>,
    /// Whether the call is allowed.
    pub is_approved: bool,
    /// The person who decides, and by which way.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
}

impl Decision {
    /// Masks secrets in what a person has said. It is stored, and the agent sees the reason.
    #[must_use]
    pub fn without_secrets(mut self, secrets: &Redactor) -> Self {
        secrets.redact_string(&mut self.by);
        self.reason.iter_mut().for_each(|reason| secrets.redact_string(reason));
        self
    }
}

/// The outcome of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It holds.
    Done(ApprovalRequest),
    /// There was one before, or the request has expired: the request as it is.
    TooLate(ApprovalRequest),
    /// The request has another input than the decision is about: the request as it is.
    OtherInput(ApprovalRequest),
    /// There is no request of this id.
    Unknown,
}

/// Calls that wait for a decision.
pub trait ApprovalRequests: Send + Sync {
    /// Returns the time by which requests expire, in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Adds a request.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the number of requests that wait.
    fn waiting(&self) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Returns the request of a call whose decision was not used yet.
    fn of_subject<'a>(&'a self, subject: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRequest>, StoreError>>;

    /// Whether a person has approved what has this scope.
    fn is_granted<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Uses a decision. Returns whether it was not used before: only then the call goes on with it.
    fn use_decision<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns a request, by its id or an unambiguous beginning of it.
    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRequest>, StoreError>>;

    /// Returns the requests in a state, or all, the latest first: 1,000 at most, with the first page of the input of each.
    fn list(&self, state: Option<ApprovalState>, limit: u64)
    -> BoxFuture<'_, Result<Vec<ApprovalRequest>, StoreError>>;

    /// Returns the requests of a run, the earliest first, with the first page of the input of each.
    fn of_run<'a>(&'a self, run: &'a str) -> BoxFuture<'a, Result<Vec<ApprovalRequest>, StoreError>>;

    /// Decides a request that waits.
    fn decide<'a>(&'a self, id: &'a str, decision: &'a Decision) -> BoxFuture<'a, Result<Decided, StoreError>>;

    /// Withdraws a request that waits, unless its run is in the store and has not ended: another process may go on with it.
    fn withdraw<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Ends the requests whose time is over. Deletes those that were ended before a time in milliseconds since 1970, apart
    /// from approvals that hold for further calls. Returns how many have expired.
    fn expire(&self, ended_before_ms: i64) -> BoxFuture<'_, Result<usize, StoreError>>;
}

/// Requests in a database.
#[derive(Clone, Debug)]
pub struct SqlApprovalRequests(pub Database);

/// Deletes requests that have ended, apart from approvals that hold for further calls.
pub(crate) const DELETE: &str = "DELETE FROM approval_requests WHERE state IN ('approved', 'denied', 'expired', 'withdrawn') \
    AND expires < $1 AND (scope IS NULL OR state <> 'approved') \
    AND NOT EXISTS (SELECT 1 FROM journaled_runs r WHERE r.id = approval_requests.run)";
/// Ends requests whose time is over.
pub(crate) const EXPIRE: &str =
    "UPDATE approval_requests SET state = 'expired' WHERE state = 'waiting' AND expires <= $1 RETURNING id";

/// Finds an approval that holds for further calls. It names the states that it does not have, or SQLite would go
/// through all requests
/// that were approved.
pub(crate) const GRANTED: &str = "SELECT id FROM approval_requests WHERE scope = $1 AND state NOT IN ('waiting', 'denied', 'expired', 'withdrawn') LIMIT 1";

const COLUMNS: &str = "id, subject, run, tool, input, digest, client, scope, asked, expires, state, used, decided, decided_by, reason, \
    CAST(octet_length(input) AS BIGINT), long_members";
/// The columns with the first page of the input. A character has up to four bytes.
const COLUMNS_LISTED: &str = "id, subject, run, tool, substr(input, 1, 4096), digest, client, scope, asked, expires, state, used, decided, decided_by, reason, \
    CAST(octet_length(input) AS BIGINT), long_members";

impl SqlApprovalRequests {
    async fn query(&self, sql: String, values: impl Into<Vec<Value>>) -> Result<Vec<Row>, StoreError> {
        let rows = self.0.query(sql, values).await;
        rows.map_err(|problem: Problem| self.0.error(&problem))
    }
}

impl ApprovalRequests for SqlApprovalRequests {
    fn now_ms(&self) -> i64 {
        self.0.now_ms()
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let sql = "INSERT INTO approval_requests (id, subject, run, tool, input, digest, client, scope, asked, expires, state, used, long_members) \
                       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'waiting', 0, $11)";
            let values = [
                request.id.as_str().into(),
                request.subject.as_str().into(),
                request.run.as_deref().into(),
                request.tool.as_str().into(),
                request.input.as_str().into(),
                request.input_digest.as_str().into(),
                request.client.as_deref().into(),
                request.scope.as_deref().into(),
                request.asked_ms.into(),
                request.expires_ms.into(),
                request.long_members.as_deref().into(),
            ];
            self.query(sql.to_owned(), values).await.map(drop)
        })
    }

    fn waiting(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let sql = "SELECT count(*) FROM approval_requests WHERE state = 'waiting'";
            let rows = self.query(sql.to_owned(), []).await?;
            Ok(rows.first().and_then(|row| u64::try_from(row[0].int()).ok()).unwrap_or_default())
        })
    }

    fn of_subject<'a>(&'a self, subject: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRequest>, StoreError>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT {COLUMNS} FROM approval_requests WHERE subject = $1 AND used = 0 AND state <> 'withdrawn' \
                 ORDER BY asked, id LIMIT 1"
            );
            Ok(self.query(sql, [subject.into()]).await?.first().map(request))
        })
    }

    fn is_granted<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { Ok(!self.query(GRANTED.to_owned(), [scope.into()]).await?.is_empty()) })
    }

    fn use_decision<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            // Where a connection is lost, the statement may be repeated although it has had its effect.
            let mut random = [0; 8];
            getrandom::fill(&mut random).map_err(|_| StoreError("the system has no random numbers".into()))?;
            let use_number = (i64::from_le_bytes(random) & i64::MAX).max(1);
            let sql = "UPDATE approval_requests SET used = $1 \
                       WHERE id = $2 AND (used = 0 OR used = $3) AND state <> 'waiting' RETURNING id";
            let values = [use_number.into(), id.into(), use_number.into()];
            Ok(!self.query(sql.to_owned(), values).await?.is_empty())
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRequest>, StoreError>> {
        Box::pin(async move {
            // The next text after all that begin with `id`.
            let end = format!("{id}\u{7f}");
            let sql = format!("SELECT {COLUMNS} FROM approval_requests WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 2");
            match self.query(sql, [id.into(), end.as_str().into()]).await?.as_slice() {
                [row] => Ok(Some(request(row))),
                [row, _] if row[0].text() == Some(id) => Ok(Some(request(row))),
                [] => Ok(None),
                _ => Err(StoreError(format!("several approvals have an id that begins with {id}"))),
            }
        })
    }

    fn list(
        &self,
        state: Option<ApprovalState>,
        limit: u64,
    ) -> BoxFuture<'_, Result<Vec<ApprovalRequest>, StoreError>> {
        Box::pin(async move {
            let limit = limit.min(MAX_LISTED);
            let rows = match state {
                Some(state) => {
                    let sql = format!(
                        "SELECT {COLUMNS_LISTED} FROM approval_requests WHERE state = $1 ORDER BY asked DESC, id DESC LIMIT $2"
                    );
                    self.query(sql, [state.as_str().into(), limit.into()]).await?
                }
                None => {
                    let sql =
                        format!("SELECT {COLUMNS_LISTED} FROM approval_requests ORDER BY asked DESC, id DESC LIMIT $1");
                    self.query(sql, [limit.into()]).await?
                }
            };
            Ok(rows.iter().map(listed).collect())
        })
    }

    fn of_run<'a>(&'a self, run: &'a str) -> BoxFuture<'a, Result<Vec<ApprovalRequest>, StoreError>> {
        Box::pin(async move {
            let sql = format!("SELECT {COLUMNS_LISTED} FROM approval_requests WHERE run = $1 ORDER BY asked, id");
            Ok(self.query(sql, [run.into()]).await?.iter().map(listed).collect())
        })
    }

    fn decide<'a>(&'a self, id: &'a str, decision: &'a Decision) -> BoxFuture<'a, Result<Decided, StoreError>> {
        Box::pin(async move {
            let Some(found) = self.get(id).await? else { return Ok(Decided::Unknown) };
            let is_of_it =
                |digest: &String| !digest.is_empty() && found.input_digest.starts_with(&digest.to_ascii_lowercase());
            if !decision.digest.as_ref().is_none_or(is_of_it) {
                return Ok(Decided::OtherInput(found));
            }
            let state = if decision.is_approved { ApprovalState::Approved } else { ApprovalState::Denied };
            let reason = decision.reason.as_deref().map(|text| codecall_base::text::truncate(text, MAX_REASON_BYTES));
            let now = self.0.now_ms();
            let sql = format!(
                "UPDATE approval_requests SET state = $1, decided = $2, decided_by = $3, reason = $4 \
                 WHERE id = $5 AND state = 'waiting' AND expires > $6 RETURNING {COLUMNS}"
            );
            let values = [
                state.as_str().into(),
                now.into(),
                decision.by.as_str().into(),
                reason.into(),
                found.id.as_str().into(),
                now.into(),
            ];
            match self.query(sql, values).await?.first() {
                Some(row) => Ok(Decided::Done(request(row))),
                None => Ok(self.get(&found.id).await?.map_or(Decided::Unknown, Decided::TooLate)),
            }
        })
    }

    fn withdraw<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let sql = "UPDATE approval_requests SET state = 'withdrawn' WHERE id = $1 AND state = 'waiting' AND NOT EXISTS \
                       (SELECT 1 FROM journaled_runs r WHERE r.id = approval_requests.run AND r.state <> 'ended')";
            self.query(sql.to_owned(), [id.into()]).await.map(drop)
        })
    }

    fn expire(&self, ended_before_ms: i64) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            let statements = vec![
                Statement::new(DELETE, [ended_before_ms.into()]),
                Statement::new(EXPIRE, [self.0.now_ms().into()]),
            ];
            let rows = self.0.batch(statements).await;
            rows.map(|rows| rows.len()).map_err(|problem: Problem| self.0.error(&problem))
        })
    }
}

/// Reads a row of [`COLUMNS_LISTED`].
fn listed(row: &Row) -> ApprovalRequest {
    let mut request = request(row);
    let page = codecall_base::text::truncate(&request.input, PAGE_BYTES).len();
    request.input.truncate(page);
    request
}

/// Reads a row of [`COLUMNS`].
fn request(row: &Row) -> ApprovalRequest {
    let text = |at: usize| row[at].text().unwrap_or_default().to_owned();
    let optional = |at: usize| row[at].text().map(str::to_owned);
    let scope = optional(7);
    ApprovalRequest {
        id: text(0),
        subject: text(1),
        run: optional(2),
        tool: text(3),
        input: text(4),
        input_bytes: u64::try_from(row[15].int()).unwrap_or_default(),
        input_digest: text(5),
        long_members: optional(16),
        client: optional(6),
        once: scope.is_some(),
        scope,
        asked_ms: row[8].int(),
        expires_ms: row[9].int(),
        state: ApprovalState::parse(row[10].text().unwrap_or_default()),
        used: row[11].int() != 0,
        decided_ms: matches!(row[12], Value::Int(_)).then(|| row[12].int()),
        decided_by: optional(13),
        reason: optional(14),
    }
}
