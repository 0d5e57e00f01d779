//! The URIs of skills of an upstream, under the name of its app.
//!
//! `skill://acme/billing/SKILL.md` of the app `mail` is `skill://mail/acme/billing/SKILL.md`. Paths stay as they are, so
//! that relative references between the files of a skill keep their meaning. A URI of another scheme follows a `-`:
//! `git://host/a/SKILL.md` is `skill://mail/-/git/host/a/SKILL.md`.

use rmcp::model::{ReadResourceResult, Resource, ResourceContents, Skill, SkillResources};

/// The scheme of skills.
pub const SCHEME: &str = "skill://";
/// The key in `_meta` of a skill that names the app it comes from.
pub const APP_KEY: &str = "codecall/app";

/// Returns the URI under the name of an app. `None`: the URI has no path.
#[must_use]
pub fn expose(app: &str, uri: &str) -> Option<String> {
    match uri.strip_prefix(SCHEME) {
        Some(path) if !path.starts_with("-/") => Some(format!("{SCHEME}{app}/{path}")),
        _ => {
            let (scheme, path) = uri.split_once("://")?;
            Some(format!("{SCHEME}{app}/-/{scheme}/{path}"))
        }
    }
}

/// Returns the app of a URI, and the URI that its upstream knows.
#[must_use]
pub fn resolve(uri: &str) -> Option<(&str, String)> {
    let (app, path) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let own = match path.strip_prefix("-/") {
        Some(other) => {
            let (scheme, path) = other.split_once('/')?;
            format!("{scheme}://{path}")
        }
        None => format!("{SCHEME}{path}"),
    };
    Some((app, own))
}

/// Returns a skill of an upstream under the name of its app.
///
/// # Errors
/// The skill breaks a rule of SEP-2640: which one, for people.
pub fn expose_skill(app: &str, mut skill: Skill) -> Result<Skill, String> {
    skill.validate().map_err(|error| error.to_string())?;
    let exposed = |uri: &str| expose(app, uri).ok_or_else(|| format!("{uri} has no path"));
    skill.uri = exposed(&skill.uri)?;
    if let SkillResources::Files(files) = &mut skill.resources {
        for file in files {
            file.uri = exposed(&file.uri)?;
        }
    }
    let mut meta = skill.meta.take().unwrap_or_default();
    meta.insert(APP_KEY.to_owned(), app.into());
    skill.meta = Some(meta);
    skill.validate().map_err(|error| error.to_string())?;
    Ok(skill)
}

/// Returns a file of an upstream under the name of its app, with the same bytes.
#[must_use]
pub fn expose_contents(app: &str, mut result: ReadResourceResult) -> ReadResourceResult {
    for contents in &mut result.contents {
        let uri = match contents {
            ResourceContents::TextResourceContents { uri, .. } | ResourceContents::BlobResourceContents { uri, .. } => {
                uri
            }
            _ => continue,
        };
        if let Some(exposed) = expose(app, uri) {
            *uri = exposed;
        }
    }
    result
}

/// Returns an entry of a folder of an upstream under the name of its app.
#[must_use]
pub fn expose_resource(app: &str, mut resource: Resource) -> Option<Resource> {
    resource.uri = expose(app, &resource.uri)?;
    Some(resource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{SkillFrontmatter, SkillResource};

    #[test]
    fn a_uri_leads_back_to_its_upstream() {
        for (own, exposed) in [
            ("skill://acme/billing/SKILL.md", "skill://mail/acme/billing/SKILL.md"),
            ("skill://billing/SKILL.md", "skill://mail/billing/SKILL.md"),
            ("skill://-/billing/SKILL.md", "skill://mail/-/skill/-/billing/SKILL.md"),
            ("git://host/a/SKILL.md", "skill://mail/-/git/host/a/SKILL.md"),
            ("skill://a/refs/../b.md?x#y", "skill://mail/a/refs/../b.md?x#y"),
        ] {
            assert_eq!(expose("mail", own).as_deref(), Some(exposed));
            assert_eq!(resolve(exposed), Some(("mail", own.to_owned())));
        }
        assert_eq!(expose("mail", "urn:x"), None);
        assert_eq!(resolve("skill://mail"), None);
        assert_eq!(resolve("file:///x"), None);
    }

    #[test]
    fn all_files_of_a_skill_move_together_and_name_their_app() {
        let uri = "skill://acme/billing/SKILL.md";
        let files = ["", "refs/guide.md"].map(|path| {
            let uri = if path.is_empty() { uri.to_owned() } else { format!("skill://acme/billing/{path}") };
            SkillResource::from_bytes(uri, b"x")
        });
        let skill = Skill::new(
            uri,
            SkillFrontmatter::new("billing", "Bills").with_field("license", "MIT"),
            SkillResources::Files(files.to_vec()),
        );
        let exposed = expose_skill("mail", skill.clone()).expect("it is valid");
        assert_eq!(exposed.uri, "skill://mail/acme/billing/SKILL.md");
        assert_eq!(exposed.frontmatter, skill.frontmatter);
        assert_eq!(exposed.meta.as_ref().and_then(|meta| meta.get(APP_KEY)), Some(&"mail".into()));
        let SkillResources::Files(moved) = &exposed.resources else { panic!("files") };
        assert_eq!(moved[1].uri, "skill://mail/acme/billing/refs/guide.md");
        assert_eq!(moved[1].digest, files[1].digest);
        let outside = Skill::new(
            uri,
            SkillFrontmatter::new("billing", "Bills"),
            SkillResources::Files(vec![
                SkillResource::from_bytes(uri, b"x"),
                SkillResource::from_bytes("skill://acme/other/x.md", b"x"),
            ]),
        );
        let error = expose_skill("mail", outside).expect_err("a file of another skill");
        assert!(error.contains("skill://acme/other/x.md"), "{error}");
    }
}
