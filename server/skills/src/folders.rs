//! Folders of skills.
//!
//! rmcp reads a folder: it follows no link, skips hidden files, and keeps the bytes that its digests describe.

use rmcp::handler::server::skill_catalog::SkillCatalog;
use rmcp::model::{ReadResourceResult, Resource, Skill};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a folder is not looked at again.
const LOOK: Duration = Duration::from_secs(1);

/// The folders of a configuration, in its order. Of two skills with the same path the first one is served.
#[derive(Debug, Default)]
pub struct Folders {
    catalogs: Vec<(PathBuf, SkillCatalog)>,
    looked: Mutex<Option<Instant>>,
}

impl Folders {
    /// Reads the folders. This blocks.
    ///
    /// # Errors
    /// A folder cannot be read: why, for people.
    pub fn open<'a>(folders: impl IntoIterator<Item = &'a Path>) -> Result<Self, String> {
        let mut catalogs = Vec::new();
        for folder in folders {
            let catalog = SkillCatalog::from_dir(folder).map_err(|error| format!("skills: {error}"))?;
            catalogs.push((folder.to_owned(), catalog));
        }
        Ok(Self { catalogs, looked: Mutex::new(Some(Instant::now())) })
    }

    /// Reads the folders again, at most once a second. A folder that cannot be read keeps its skills. This blocks.
    pub fn refresh(&self) {
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.is_some_and(|looked| looked.elapsed() < LOOK) {
                return;
            }
            *looked = Some(Instant::now());
        }
        for (_, catalog) in &self.catalogs {
            if let Err(error) = catalog.reload() {
                tracing::warn!("skills: {error}");
            }
        }
    }

    /// Returns all skills, by folder and path.
    #[must_use]
    pub fn skills(&self) -> Vec<Skill> {
        let mut seen = BTreeSet::new();
        let mut skills = Vec::new();
        for (folder, catalog) in &self.catalogs {
            for skill in catalog.skills() {
                if seen.insert(skill.uri.clone()) {
                    skills.push(skill);
                } else {
                    tracing::warn!("skills: {}: {} is in an earlier folder too", folder.display(), skill.uri);
                }
            }
        }
        skills
    }

    /// Returns the skill of a `SKILL.md`.
    #[must_use]
    pub fn get(&self, uri: &str) -> Option<Skill> {
        self.catalogs.iter().find_map(|(_, catalog)| catalog.get_skill(uri).ok()).map(|result| result.skill)
    }

    /// Returns a file, with the bytes that the digests of its skill describe.
    #[must_use]
    pub fn read(&self, uri: &str) -> Option<ReadResourceResult> {
        self.catalogs.iter().find_map(|(_, catalog)| catalog.read_resource(uri))
    }

    /// Returns the entries of a folder of a skill.
    #[must_use]
    pub fn directory(&self, uri: &str) -> Option<Vec<Resource>> {
        let listings = self.catalogs.iter().map(|(_, catalog)| catalog.read_resource_directory(uri));
        listings.flatten().next().map(|result| result.resources)
    }

    /// Returns the `SKILL.md` of each skill, as a resource.
    #[must_use]
    pub fn resources(&self) -> Vec<Resource> {
        let mut seen = BTreeSet::new();
        let all = self.catalogs.iter().flat_map(|(_, catalog)| catalog.resources());
        all.filter(|resource| seen.insert(resource.uri.clone())).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rmcp::model::{ResourceContents, SkillResources};

    /// A folder that is removed at the end of a test.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("codecall-skills-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).expect("it can be made");
            Self(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    pub(crate) fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    }

    fn skill(name: &str) -> String {
        format!("---\nname: {name}\ndescription: Says {name}\n---\n\nSay {name}.\n")
    }

    #[test]
    fn files_have_the_bytes_of_their_digests() {
        let root = Folder::new("bytes");
        write(root.path(), "hello/SKILL.md", &skill("hello"));
        write(root.path(), "hello/refs/guide.md", "A guide.");
        let folders = Folders::open([root.path()]).expect("it is read");
        // A later change belongs to the next reading.
        write(root.path(), "hello/refs/guide.md", "Another guide.");
        let skills = folders.skills();
        assert_eq!(skills.len(), 1);
        let SkillResources::Files(files) = &skills[0].resources else { panic!("a list of files") };
        assert_eq!(files.len(), 2);
        for file in files {
            let read = folders.read(&file.uri).expect("it is there");
            let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else { panic!("a text") };
            file.verify(text.as_bytes()).expect("the bytes of the digest");
        }
        let listed = folders.directory("skill://hello/refs").expect("a folder");
        assert_eq!(listed.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["guide.md"]);
        assert!(folders.directory("skill://hello/nothing").is_none());
        assert!(folders.get("skill://nothing/SKILL.md").is_none());
    }

    #[test]
    fn the_first_of_two_folders_wins() {
        let (one, two) = (Folder::new("one"), Folder::new("two"));
        write(one.path(), "hello/SKILL.md", &skill("hello"));
        write(two.path(), "hello/SKILL.md", &skill("hello").replace("Say", "Do not say"));
        write(two.path(), "bye/SKILL.md", &skill("bye"));
        let folders = Folders::open([one.path(), two.path()]).expect("they are read");
        assert_eq!(folders.skills().len(), 2);
        assert_eq!(folders.resources().len(), 2);
        let read = folders.read("skill://hello/SKILL.md").expect("it is there");
        let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else { panic!("a text") };
        assert!(text.contains("Say hello."));
    }

    #[test]
    fn hostile_folders_serve_nothing_of_others() {
        let root = Folder::new("hostile");
        let outside = Folder::new("outside");
        write(outside.path(), "secret.txt", "secret");
        write(root.path(), "good/SKILL.md", &skill("good"));
        write(root.path(), "no-front/SKILL.md", "Just text");
        write(root.path(), "other-name/SKILL.md", &skill("good"));
        write(root.path(), "Upper/SKILL.md", &skill("Upper"));
        write(root.path(), "no-description/SKILL.md", "---\nname: no-description\n---\n");
        write(root.path(), "open/SKILL.md", "---\nname: open\ndescription: x\n");
        write(root.path(), "list/SKILL.md", "---\n- a\n- b\n---\n");
        write(root.path(), "hidden/SKILL.md", &skill("hidden"));
        write(root.path(), "hidden/.env", "KEY=1");
        #[cfg(unix)]
        {
            write(root.path(), "link/SKILL.md", &skill("link"));
            std::os::unix::fs::symlink(outside.path().join("secret.txt"), root.path().join("link/secret.txt"))
                .expect("a link");
            std::os::unix::fs::symlink(outside.path(), root.path().join("linked-folder")).expect("a link");
        }
        let folders = Folders::open([root.path()]).expect("it is read");
        let uris: Vec<String> = folders.skills().into_iter().map(|skill| skill.uri).collect();
        assert_eq!(uris, ["skill://good/SKILL.md", "skill://hidden/SKILL.md"]);
        for uri in [
            "skill://link/secret.txt",
            "skill://linked-folder/secret.txt",
            "skill://hidden/.env",
            "skill://good/../hidden/.env",
            "skill://good/%2e%2e/link/secret.txt",
            "skill://good/SKILL.md\0",
            "file:///etc/passwd",
        ] {
            assert!(folders.read(uri).is_none(), "{uri}");
        }
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let error = Folders::open([Path::new("/nowhere/skills")]).expect_err("there is none");
        assert!(error.contains("/nowhere/skills"), "{error}");
    }
}
