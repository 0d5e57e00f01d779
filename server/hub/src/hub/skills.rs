//! Skills: those of folders, of script tools, of this server, and of upstreams under the names of their apps.

use super::Hub;
use codecall_base::client::Client;
use codecall_base::hidden::is_hiding;
use codecall_skills::{TextSkill, install, namespace};
use codecall_store::StoreError;
use codecall_tools::catalogue::Pending;
use codecall_upstream::{ResourcesAndPrompts, SkillList};
use futures_util::future::join_all;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, ReadResourceResult, Resource, Skill};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A skill in a list, with its origin.
#[derive(Clone, Debug)]
pub struct ListedSkill {
    /// The skill, as clients see it.
    pub skill: Skill,
    /// The app that it comes from; `None`: it is one of a folder, or that of this server.
    pub app: Option<String>,
}

/// A skill that is not served.
#[derive(Clone, Debug)]
pub enum UnreadSkill {
    /// It breaks a rule: the reason.
    Invalid { app: String, uri: String, reason: String },
    /// It waits for the approval of a person.
    Pending(Pending),
}

/// All skills.
#[derive(Clone, Debug, Default)]
pub struct SkillListing {
    /// The skills that are served.
    pub skills: Vec<ListedSkill>,
    /// The skills that are not served.
    pub unread: Vec<UnreadSkill>,
    /// How long the list may be kept, in milliseconds. `None`: an upstream, or a folder, says nothing of it.
    pub ttl_ms: Option<u64>,
    /// Whether only this client may keep it.
    pub is_private: bool,
}

impl Hub {
    /// Returns all skills. An upstream that does not answer has none.
    pub async fn list_skills(&self) -> SkillListing {
        self.refresh_skill_folders().await;
        let own = self.text_skills().into_iter().map(|text| text.skill).chain(self.skills.skills());
        let app_of = |skill: &Skill| Some(skill.uri.strip_prefix(namespace::SCHEME)?.split_once('/')?.0.to_owned());
        let is_script = |app: &String| self.script_tools.as_ref().is_some_and(|tools| tools.app_id() == app);
        let mut listing = SkillListing::default();
        for skill in own {
            let app = app_of(&skill).filter(is_script);
            listing.add(ListedSkill { skill, app });
        }
        let asked = self.serving_skills().map(|(app, upstream)| async move { (app, upstream.list_skills().await) });
        for (app, answer) in join_all(asked).await {
            match answer {
                Ok(SkillList { skills, ttl_ms, is_private }) => {
                    if !skills.is_empty() {
                        listing.ttl_ms = listing.ttl_ms.into_iter().chain(ttl_ms).min();
                        listing.is_private |= is_private;
                    }
                    for skill in skills {
                        self.add_skill(app, skill, &mut listing).await;
                    }
                }
                Err(error) => tracing::warn!(app, "its skills cannot be listed: {}", error.message),
            }
        }
        listing
    }

    /// Adds a skill of an upstream to a list.
    async fn add_skill(&self, app: &str, skill: Skill, listing: &mut SkillListing) {
        let own_uri = skill.uri.clone();
        match self.judged_skill(app, skill).await {
            Ok(skill) => listing.add(ListedSkill { skill, app: Some(app.to_owned()) }),
            Err(unread) => {
                if let UnreadSkill::Invalid { reason, .. } = &unread {
                    tracing::warn!(app, "its skill {own_uri} is left out: {reason}");
                }
                listing.unread.push(unread);
            }
        }
    }

    /// Returns a skill of an upstream as clients see it, unless it breaks a rule or waits for approval.
    async fn judged_skill(&self, app: &str, skill: Skill) -> Result<Skill, UnreadSkill> {
        let uri = skill.uri.clone();
        let invalid = |reason: String| UnreadSkill::Invalid { app: app.to_owned(), uri: uri.clone(), reason };
        let skill = namespace::expose_skill(app, skill).map_err(invalid)?;
        if is_hiding(&skill.frontmatter.description) {
            return Err(invalid("its description has hidden text".into()));
        }
        if self.has_secret(&skill) {
            return Err(invalid("it contains a secret of the configuration".into()));
        }
        let Some(watch) = self.catalogue.watch() else { return Ok(skill) };
        watch.read().await;
        let definition = json!({"frontmatter": skill.frontmatter, "resources": skill.resources});
        match watch.judge_item(app, &format!("skill {uri}"), &skill.uri, &definition).await {
            Ok(None) => Ok(skill),
            Ok(Some(pending)) => Err(UnreadSkill::Pending(pending)),
            Err(error) => Err(invalid(format!("its approval cannot be read: {error}"))),
        }
    }

    /// Returns a skill by the URI of its `SKILL.md`, also one that its upstream does not list.
    ///
    /// # Errors
    /// There is none, or it is not served: -32602 (invalid params).
    pub async fn get_skill(&self, uri: &str) -> Result<Skill, ErrorData> {
        self.refresh_skill_folders().await;
        let text = self.text_skills().into_iter().map(|text| text.skill).find(|skill| skill.uri == uri);
        if let Some(skill) = text.or_else(|| self.skills.get(uri)) {
            return Ok(skill);
        }
        let unknown = || ErrorData::invalid_params(format!("There is no skill '{uri}'"), None);
        let (app, own_uri, upstream) = self.skill_owner(uri).ok_or_else(unknown)?;
        let skill = upstream.get_skill(&own_uri).await.map_err(|error| match error.code {
            ErrorCode::METHOD_NOT_FOUND => unknown(),
            _ => self.redacted_error(error),
        })?;
        if skill.uri != own_uri {
            let message = format!("App '{app}' answered with another skill, '{}'", skill.uri);
            return Err(ErrorData::internal_error(message, None));
        }
        self.judged_skill(app, skill).await.map_err(|unread| {
            let message = match unread {
                UnreadSkill::Invalid { reason, .. } => format!("Skill '{uri}' is not served: {reason}"),
                UnreadSkill::Pending(_) => {
                    format!("Skill '{uri}' waits for the approval of a person: run 'codecall skill approve {uri}'")
                }
            };
            ErrorData::invalid_params(message, None)
        })
    }

    /// Reads a file of a skill. Its server can ask the client until `cancel` is cancelled. `None`: no skill has the file.
    ///
    /// # Errors
    /// The upstream cannot read it, or its skill is not served.
    pub async fn read_skill_file(
        &self,
        uri: &str,
        client: &Client,
        cancel: &CancellationToken,
    ) -> Option<Result<ReadResourceResult, ErrorData>> {
        let text = self.text_skills().into_iter().find(|text| text.skill.uri == uri).map(|text| text.read());
        if let Some(read) = text.or_else(|| self.skills.read(uri)) {
            return Some(Ok(read));
        }
        let (app, own_uri, upstream) = self.skill_owner(uri)?;
        if let Err(error) = self.check_skill_of(app, upstream, &own_uri).await {
            return Some(Err(error));
        }
        let client = self.pipeline.client_of(client, app, &format!("Skill file '{uri}'"), cancel.child_token());
        let Some(answer) = cancel.run_until_cancelled(upstream.read_resource(&own_uri, client)).await else {
            return Some(Err(ErrorData::internal_error("the request was cancelled", None)));
        };
        Some(match answer {
            // A file whose secrets were removed would not have the digest that its host checks.
            Ok(result) if self.has_secret(&result) => {
                Err(ErrorData::internal_error(format!("'{uri}' contains a secret of the configuration"), None))
            }
            Ok(result) => Ok(namespace::expose_contents(app, result)),
            Err(error) => Err(self.redacted_error(error)),
        })
    }

    /// Lists the entries of a folder of a skill.
    ///
    /// # Errors
    /// It is no folder: -32602 (invalid params).
    pub async fn read_skill_directory(&self, uri: &str) -> Result<Vec<Resource>, ErrorData> {
        if let Some(entries) = self.skills.directory(uri) {
            return Ok(entries);
        }
        let own = self.text_skills().into_iter().find(|text| text.skill.uri.strip_suffix("/SKILL.md") == Some(uri));
        if let Some(text) = own {
            return Ok(vec![text.resource()]);
        }
        let unknown = || ErrorData::invalid_params(format!("'{uri}' is no folder of a skill"), None);
        let (app, own_uri, upstream) = self.skill_owner(uri).ok_or_else(unknown)?;
        self.check_skill_of(app, upstream, &own_uri).await?;
        let entries = upstream.read_directory(&own_uri).await.map_err(|error| match error.code {
            ErrorCode::METHOD_NOT_FOUND => unknown(),
            _ => self.redacted_error(error),
        })?;
        Ok(entries.into_iter().filter_map(|entry| namespace::expose_resource(app, entry)).collect())
    }

    /// Returns the `SKILL.md` of each skill of this server, as resources.
    pub async fn skill_resources(&self) -> Vec<Resource> {
        self.refresh_skill_folders().await;
        let texts = self.text_skills();
        let mut seen = BTreeSet::new();
        let all = texts.iter().map(TextSkill::resource).chain(self.skills.resources());
        all.filter(|resource| seen.insert(resource.uri.clone())).collect()
    }

    /// Approves skills that wait for it.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn approve_skills(&self, skills: &[&Pending]) -> Result<(), StoreError> {
        match self.catalogue.watch() {
            Some(watch) => watch.approve(skills).await,
            None => Ok(()),
        }
    }

    /// Refuses a file or folder of an upstream whose skill is not served. A file of no listed skill may be read: its
    /// upstream says whether there is one.
    async fn check_skill_of(&self, app: &str, upstream: &dyn ResourcesAndPrompts, uri: &str) -> Result<(), ErrorData> {
        if self.catalogue.watch().is_none() {
            return Ok(());
        }
        let listed = upstream.list_skills().await.map_err(|error| self.redacted_error(error))?.skills;
        // An address with `..` would name a file of another skill.
        let is_owner = |skill: &Skill| {
            skill.uri.strip_suffix("/SKILL.md") == Some(uri) || install::relative_path(skill, uri).is_ok()
        };
        let owner = listed.into_iter().find(is_owner);
        let Some(owner) = owner else {
            let message = format!("'{uri}' of app '{app}' belongs to no skill that a person could approve");
            return Err(ErrorData::invalid_params(message, None));
        };
        match self.judged_skill(app, owner).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ErrorData::invalid_params(format!("The skill of '{uri}' waits for approval"), None)),
        }
    }

    /// The skills of script tools that the client may use, and that of this server.
    fn text_skills(&self) -> Vec<TextSkill> {
        let mut seen = BTreeSet::new();
        let snapshot = self.catalogue.snapshot();
        let scripts = snapshot.rows().iter().filter(|row| row.definition.source == "script");
        let texts = scripts.filter_map(|row| TextSkill::of_tool(&row.definition));
        std::iter::once(TextSkill::of_server())
            .chain(texts)
            .filter(|text| seen.insert(text.skill.uri.clone()))
            .collect()
    }

    /// Returns the app of a URI, the URI that its upstream knows, and the upstream.
    fn skill_owner<'a>(&'a self, uri: &'a str) -> Option<(&'a str, String, &'a dyn ResourcesAndPrompts)> {
        let (app, own) = namespace::resolve(uri)?;
        let upstream = self.serving_skills().find(|(name, _)| *name == app)?.1;
        Some((app, own, upstream))
    }

    fn serving_skills(&self) -> impl Iterator<Item = (&str, &dyn ResourcesAndPrompts)> {
        let upstreams = self.catalogue.upstreams().filter(|upstream| self.catalogue.may_name(upstream.as_ref()));
        upstreams.filter_map(|upstream| Some((upstream.app(), upstream.resources_and_prompts()?)))
    }

    async fn refresh_skill_folders(&self) {
        let folders = Arc::clone(&self.skills);
        let _ = tokio::task::spawn_blocking(move || folders.refresh()).await;
    }

    /// Whether a value contains a secret of the configuration.
    fn has_secret(&self, value: &impl Serialize) -> bool {
        let secrets = self.secrets().redactor();
        let Ok(value) = serde_json::to_value(value) else { return false };
        let mut redacted = value.clone();
        secrets.redact_value(&mut redacted);
        redacted != value
    }

    fn redacted_error(&self, mut error: ErrorData) -> ErrorData {
        error.message = self.pipeline.masked_text(&error.message).into();
        error
    }
}

impl SkillListing {
    /// Adds a skill, unless there is one with its URI.
    fn add(&mut self, listed: ListedSkill) {
        if self.skills.iter().any(|other| other.skill.uri == listed.skill.uri) {
            tracing::warn!("a second skill with the address {} is left out", listed.skill.uri);
            return;
        }
        self.skills.push(listed);
    }
}
