//! The tools of all apps, and which of them exist (`policy` decides).
//!
//! A [`Snapshot`] never changes: a run or a request keeps the one it began with. The catalogue
//! makes a new one whenever an upstream's list changes, and when there are other secrets to redact.

mod broken;
mod entry;
mod listed;
mod owner;
mod policy;
mod quarantine;
mod waiting;

use crate::index::{Index, Segments};
pub use broken::Broken;
use codecall_base::hidden::{is_hiding_name, skeleton};
use codecall_base::redact::{Redactor, SecretRegistry};
use codecall_base::text::truncate;
use codecall_base::tool::{MAX_NAME_BYTES, ToolDefinition, ToolDirectory, ToolFilter, ToolNames};
use codecall_config::ToolPolicy;
use codecall_store::{BoxFuture, StoreError};
use codecall_upstream::Upstream;
pub use entry::Entry;
pub use listed::Listed;
use owner::Owners;
use policy::Policy;
pub use quarantine::{Pending, Watch};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
pub use waiting::mentions;

/// All upstreams and their tools of this moment.
pub struct Catalogue {
    sources: Vec<Source>,
    policy: ToolPolicy,
    watch: Option<Watch>,
    secrets: Arc<SecretRegistry>,
    /// Approvals that are being stored.
    storing: Mutex<Vec<JoinHandle<()>>>,
    /// Names that were reported.
    reported: Mutex<BTreeSet<String>>,
    snapshot: RwLock<Arc<Snapshot>>,
    version: watch::Sender<u64>,
    /// Held by whoever makes a new snapshot: others wait for it rather than go on with the old one.
    refreshing: Mutex<()>,
}

struct Source {
    upstream: Arc<dyn Upstream>,
    filter: ToolFilter,
    /// The upstream's own count of changes, as far as the snapshot knows them.
    seen: Mutex<Option<watch::Receiver<u64>>>,
}

impl Catalogue {
    /// The tools of `upstreams`, each with the filter of its configuration. What is said of a tool
    /// never contains one of the `secrets`.
    #[must_use]
    pub fn new(
        upstreams: Vec<(Arc<dyn Upstream>, ToolFilter)>,
        policy: ToolPolicy,
        secrets: Arc<SecretRegistry>,
    ) -> Self {
        Self::watched(upstreams, policy, secrets, None)
    }

    /// Does the same with a watch, which keeps tools back until they are approved.
    #[must_use]
    pub fn watched(
        upstreams: Vec<(Arc<dyn Upstream>, ToolFilter)>,
        policy: ToolPolicy,
        secrets: Arc<SecretRegistry>,
        watch: Option<Watch>,
    ) -> Self {
        let sources = upstreams.into_iter().map(|(upstream, filter)| {
            let seen = Mutex::new(upstream.tools_changed());
            Source { upstream, filter, seen }
        });
        let sources = sources.collect();
        let catalogue = Self {
            sources,
            policy,
            watch,
            secrets,
            storing: Mutex::default(),
            reported: Mutex::default(),
            snapshot: RwLock::new(Arc::new(Snapshot::default())),
            version: watch::Sender::new(0),
            refreshing: Mutex::default(),
        };
        catalogue.refresh();
        catalogue
    }

    /// The tools of this moment. They contain no secret that was added before.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let snapshot = self.last_snapshot();
        if self.is_redacted(&snapshot) {
            return snapshot;
        }
        self.catch_up();
        self.last_snapshot()
    }

    fn last_snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a snapshot was made with the secrets of this moment.
    fn is_redacted(&self, snapshot: &Snapshot) -> bool {
        snapshot.redactor.is_same(&self.secrets.redactor())
    }

    /// Counts up with every change of the tools: of those that scripts can call, and of the list.
    #[must_use]
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// All upstreams with their filters, for another catalogue of the same tools.
    #[must_use]
    pub fn filtered_upstreams(&self) -> Vec<(Arc<dyn Upstream>, ToolFilter)> {
        self.sources.iter().map(|source| (Arc::clone(&source.upstream), source.filter.clone())).collect()
    }

    /// All upstreams.
    pub fn upstreams(&self) -> impl Iterator<Item = &Arc<dyn Upstream>> {
        self.sources.iter().map(|source| &source.upstream)
    }

    /// Whether who uses this catalogue may know of an upstream whose tools are not known.
    #[must_use]
    pub fn may_name(&self, upstream: &dyn Upstream) -> bool {
        let allowed = self.policy.allowed.as_ref();
        allowed.is_none_or(|allowed| allowed.iter().any(|filter| filter.names_app(upstream.app())))
    }

    /// Ask all upstreams for their tools again.
    pub fn refresh(&self) {
        let _alone = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        self.collect();
    }

    /// Makes a new snapshot.
    fn collect(&self) {
        let before = self.last_snapshot();
        let known: HashMap<&str, &Arc<Entry>> = before.entries().map(|entry| (entry.name.as_str(), entry)).collect();
        let mut indexed: BTreeMap<String, Arc<Entry>> = BTreeMap::new();
        let mut visible: BTreeMap<String, Arc<Entry>> = BTreeMap::new();
        let apps: BTreeSet<String> =
            self.sources.iter().map(|source| source.upstream.app().to_owned()).filter(|app| !app.is_empty()).collect();
        let owners = Arc::new(Owners::new(&apps));
        let redactor = self.secrets.redactor();
        let policy = Policy::new(&self.policy, &redactor);
        let mut pending: BTreeMap<String, Pending> = BTreeMap::new();
        let mut lookalikes = Lookalikes::default();
        for source in &self.sources {
            let mut judge = self.watch.as_ref().and_then(|watch| watch.judge(source.upstream.app()));
            for tool in source.upstream.tools() {
                if is_hiding_name(&tool.name) {
                    self.report(&tool.full_name(), "its name has characters that cannot be seen; it is left out");
                    continue;
                }
                let Some(placed) = policy.place(&source.filter, &tool) else { continue };
                let name = placed.definition.full_name();
                if name.len() > MAX_NAME_BYTES {
                    let beginning = truncate(&name, 64);
                    tracing::warn!(tool = beginning, "its name has more than {MAX_NAME_BYTES} bytes; it is left out");
                    continue;
                }
                if placed.definition.app.is_empty() && !owners.allow("", &name) {
                    tracing::warn!(tool = name, "its name begins with the name of another app; it is left out");
                    continue;
                }
                if indexed.contains_key(&name) || visible.contains_key(&name) || pending.contains_key(&name) {
                    tracing::warn!(tool = name, "a second tool of this name is left out");
                    continue;
                }
                if let Some(waiting) = judge.as_mut().and_then(|judge| judge.pending(&name, &tool)) {
                    pending.insert(name, waiting);
                    continue;
                }
                if placed.is_cleaned {
                    self.report(&name, "its definition has hidden text, such as escape sequences, invisible characters or comments; the text is removed");
                }
                if let Some(other) = lookalikes.add(&placed.definition) {
                    self.report(&name, &format!("its name looks like that of the tool '{other}'"));
                }
                // What has not changed keeps what was made of it: compiled schemas, checked examples.
                let same = known.get(name.as_str()).filter(|entry| {
                    Arc::ptr_eq(&entry.upstream, &source.upstream) && entry.definition == placed.definition
                });
                let made = || Arc::new(Entry::new(placed.definition.clone(), Arc::clone(&source.upstream)));
                let entry = same.map_or_else(made, |entry| Arc::clone(entry));
                if placed.listed {
                    visible.insert(name.clone(), Arc::clone(&entry));
                }
                if placed.indexed {
                    indexed.insert(name, entry);
                }
            }
            if let Some(storing) = judge.and_then(quarantine::Judge::end) {
                self.store(storing);
            }
        }
        for waiting in pending.values().filter(|waiting| waiting.is_known) {
            let state = match (&waiting.approved, waiting.is_revoked) {
                (_, true) => "has lost its approval",
                (Some(_), false) => "has changed",
                (None, false) => "is new",
            };
            self.report(&waiting.name, &format!("it {state} and waits for approval: see 'codecall tools pending'"));
        }
        let offered = if self.policy.has_fronts() {
            let all = indexed.iter().chain(&visible).collect::<BTreeMap<_, _>>().into_values();
            let may_be_listed = |entry: &&Arc<Entry>| entry.definition.visible_in_list_tools != Some(false);
            Listed::new(&policy, &owners, all.filter(may_be_listed).cloned())
        } else {
            Listed::default()
        };
        let listed = Listed::new(&policy, &owners, visible.into_values());
        for name in listed.unnamed() {
            self.report(name, "its name in the list of tools is another's too; it is not listed");
        }
        let mut current = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        let unknown = self.upstreams().filter(|up| !up.are_tools_known()).map(|up| up.app().to_owned()).collect();
        let rows = indexed.into_values().collect();
        // A client does not learn which apps it may not use.
        let apps = if self.policy.allowed.is_some() { BTreeSet::new() } else { apps };
        let mut next = Snapshot::new(rows, apps, unknown, &owners, listed).after(&current);
        next.offered = offered;
        next.redactor = redactor;
        next.pending = pending.into_values().collect();
        let is_same = |(row, other): (&Arc<Entry>, &Arc<Entry>)| Arc::ptr_eq(row, other);
        let differs = !next.listed.is_same(&current.listed)
            || next.rows.len() != current.rows.len()
            || !next.rows.iter().zip(&current.rows).all(is_same);
        *current = Arc::new(next);
        drop(current);
        // A list that is the same is no news: each client would fetch it again.
        if differs {
            self.version.send_modify(|version| *version += 1);
        }
    }

    /// Warns of a tool, once.
    fn report(&self, tool: &str, what: &str) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() < MAX_REPORTED && reported.insert(format!("{tool}: {what}")) {
            tracing::warn!(tool, "{what}");
        }
    }

    /// Stores approvals in the background.
    fn store(&self, storing: BoxFuture<'static, Result<(), StoreError>>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let task = runtime.spawn(async move {
            if let Err(error) = storing.await {
                tracing::warn!("tools that were seen cannot be stored: {error}");
            }
        });
        let mut tasks = self.storing.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// Waits until what was approved without being asked about is stored.
    pub async fn stored(&self) {
        let tasks = std::mem::take(&mut *self.storing.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            let _ = task.await;
        }
    }

    /// Returns the watch over changes of tools; `None` if there is none.
    #[must_use]
    pub fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// Refresh if an upstream or the secrets have changed and nobody has looked yet. Afterwards the snapshot knows
    /// every change that was there before.
    pub fn catch_up(&self) {
        let _alone = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = |source: &Source| {
            let mut seen = source.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.as_mut().is_some_and(|seen| seen.has_changed().unwrap_or(false) && *seen.borrow_and_update() > 0)
        };
        // All are looked at, so that each counts as seen.
        let changes = self.sources.iter().filter(|source| changed(source)).count();
        if changes == 0 && self.is_redacted(&self.last_snapshot()) {
            return;
        }
        self.collect();
    }

    /// Refresh at every change of an upstream or of the secrets, for as long as the catalogue is used elsewhere.
    pub fn follow(self: &Arc<Self>) {
        for changed in self.sources.iter().filter_map(|source| source.upstream.tools_changed()) {
            tokio::spawn(catch_up_at(Arc::downgrade(self), changed));
        }
        tokio::spawn(catch_up_at(Arc::downgrade(self), self.secrets.subscribe()));
        if self.watch.as_ref().is_some_and(|watch| !watch.is_empty()) {
            tokio::spawn(follow_approvals(Arc::downgrade(self)));
        }
    }
}

/// How often approvals are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum number of warnings about tools.
const MAX_REPORTED: usize = 1_000;

/// Refreshes a catalogue when somebody has approved tools, for as long as it is used elsewhere.
async fn follow_approvals(catalogue: Weak<Catalogue>) {
    let mut last_problem = None;
    loop {
        {
            let Some(catalogue) = catalogue.upgrade() else { return };
            let Some(watch) = &catalogue.watch else { return };
            let problem = match watch.refresh().await {
                Ok(true) => {
                    catalogue.refresh();
                    None
                }
                Ok(false) => None,
                Err(error) => Some(error),
            };
            watch.set_read();
            if let Some(error) = problem.as_ref().filter(|_| problem != last_problem) {
                tracing::warn!(
                    "approvals of tools cannot be read: {error}. Tools that are not approved as far as is known wait"
                );
            }
            last_problem = problem;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Names of tools, to find those that look like that of another app's tool.
#[derive(Default)]
struct Lookalikes(HashMap<String, (String, Arc<ToolDefinition>)>);

impl Lookalikes {
    /// Adds a tool. Returns the full name of another app's tool whose different name looks the same.
    fn add(&mut self, tool: &Arc<ToolDefinition>) -> Option<String> {
        match self.0.entry(skeleton(&tool.name)) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert((tool.name.clone(), Arc::clone(tool)));
                None
            }
            std::collections::hash_map::Entry::Occupied(first) => {
                let (name, other) = first.get();
                (*name != tool.name && other.app != tool.app).then(|| other.full_name())
            }
        }
    }
}

async fn catch_up_at<T>(catalogue: Weak<Catalogue>, mut changed: watch::Receiver<T>) {
    while let Some(catalogue) = catalogue.upgrade() {
        catalogue.catch_up();
        drop(catalogue);
        if changed.changed().await.is_err() {
            return;
        }
    }
}

/// Returns the other names that contain the app of a tool, as `names` of the configuration lists them.
fn joined_names(tool: &ToolDefinition) -> impl Iterator<Item = String> {
    let separators: &[char] = if tool.app.is_empty() { &[] } else { &['.', '_'] };
    separators.iter().map(|separator| format!("{}{separator}{}", tool.app, tool.name))
}

/// The tools of one moment, by name.
#[derive(Default)]
pub struct Snapshot {
    rows: Vec<Arc<Entry>>,
    /// The directory for lookups of scripts: the rows, in this order.
    directory: Arc<ToolDirectory>,
    index: OnceLock<Index>,
    /// The segments that were indexed before this snapshot was made.
    indexed: Segments,
    listed: Listed,
    offered: Listed,
    /// The redactor of the definitions.
    redactor: Redactor,
    /// Tools that wait for approval, by full name.
    pending: Vec<Pending>,
}

impl Snapshot {
    /// The tools of apps. Those of the `unknown` apps have never been listed.
    fn new(
        rows: Vec<Arc<Entry>>,
        mut apps: BTreeSet<String>,
        unknown: BTreeSet<String>,
        owners: &Owners,
        listed: Listed,
    ) -> Self {
        let mut names = ToolNames::default();
        // `my_app_list` is a name of `list` of `my_app`, and of `app_list` of `my`: then it is a name of neither.
        let mut joined: HashMap<String, u32> = HashMap::new();
        rows.iter()
            .flat_map(|row| joined_names(&row.definition))
            .for_each(|name| *joined.entry(name).or_default() += 1);
        for row in &rows {
            let ToolDefinition { app, name, .. } = &*row.definition;
            let tool = names.add(row.name.as_str());
            // What an upstream calls its tools is never the name of somebody else's.
            if !name.contains([':', '.']) && owners.allow(app, name) {
                names.add_spelling(tool, name.as_str());
            }
            if !app.is_empty() {
                for spelling in joined_names(&row.definition) {
                    if owners.allow(app, &spelling) || joined.get(&spelling).is_some_and(|tools| *tools > 1) {
                        names.add_spelling(tool, spelling);
                    }
                }
                names.add_member(tool, app, name);
                apps.insert(app.clone());
            }
        }
        names.add_apps(apps);
        names.set_unknown(unknown);
        let descriptions = rows.iter().map(|row| Arc::clone(&row.description)).collect();
        let directory = Arc::new(ToolDirectory::new(names, descriptions).with_meta_tools());
        Self { rows, directory, listed, ..Self::default() }
    }

    /// With what another snapshot has indexed already, and its directory if the tools are the same.
    fn after(mut self, before: &Self) -> Self {
        self.indexed = before.index.get().map_or_else(|| before.indexed.clone(), Index::segments);
        let is_same = |(row, other): (&Arc<Entry>, &Arc<Entry>)| Arc::ptr_eq(row, other);
        if self.directory.names() == before.directory.names() && self.rows.iter().zip(&before.rows).all(is_same) {
            self.directory = Arc::clone(&before.directory);
        }
        self
    }

    /// The tools that are in the list beside the meta-tools. What is not indexed too is reached by
    /// nothing but its name there.
    #[must_use]
    pub fn listed(&self) -> &Listed {
        &self.listed
    }

    /// All tools that may be in a list, for clients to which they are offered as they are; empty where `mode` or `expose`
    /// of the configuration say what is listed.
    #[must_use]
    pub fn offered(&self) -> &Listed {
        &self.offered
    }

    /// Returns the tool of a call by its listed name.
    #[must_use]
    pub fn lookup_listed(&self, name: &str) -> Option<&Arc<Entry>> {
        self.listed.lookup(name).or_else(|| self.offered.lookup(name))
    }

    /// All tools, indexed or listed; some twice.
    fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.rows.iter().chain(self.listed.after(None).map(|(_, entry)| entry))
    }

    /// All indexed tools by full name.
    #[must_use]
    pub fn rows(&self) -> &[Arc<Entry>] {
        &self.rows
    }

    /// All tools that wait for approval, by full name. They are not among the others.
    #[must_use]
    pub fn pending(&self) -> &[Pending] {
        &self.pending
    }

    /// A tool that waits for approval, by any spelling of its name.
    #[must_use]
    pub fn quarantined(&self, name: &str) -> Option<&Pending> {
        let spelled = |name: &str| name.replace([':', '.'], "_");
        let wanted = spelled(name);
        self.pending.iter().find(|tool| spelled(&tool.name) == wanted || tool.own_name() == name)
    }

    /// All apps.
    pub fn apps(&self) -> impl Iterator<Item = &str> {
        self.directory.names().apps()
    }

    /// Returns the directory for lookups of scripts. While no tool changes, later snapshots have the same one.
    #[must_use]
    pub fn directory(&self) -> &Arc<ToolDirectory> {
        &self.directory
    }

    /// Search. The first time it is made, from what has changed since the last one.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.rows, &self.indexed))
    }

    /// Whether a search finds the index made.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.index.get().is_some()
    }

    /// Returns the full names of the tools that a name means: none, one, or those that share it. This reads all tools.
    #[must_use]
    pub fn meant_by(&self, name: &str) -> Vec<&str> {
        let is_meant = |row: &Arc<Entry>| {
            let tool = &row.definition;
            tool.name == name || row.name == name || joined_names(tool).any(|joined| joined == name)
        };
        self.rows.iter().filter(|row| is_meant(row)).map(|row| row.name.as_str()).collect()
    }

    /// A tool by its full name, by `app.tool`, or by its own name where only one has it.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<&Arc<Entry>> {
        self.rows.get(self.directory.names().get(name)?)
    }
}

#[cfg(test)]
pub mod tests;
