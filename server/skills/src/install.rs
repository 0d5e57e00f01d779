//! The files of a skill for a folder on disk.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use rmcp::model::{ReadResourceResult, ResourceContents, SKILL_MD, Skill};
use std::path::PathBuf;

/// Returns where a file of a skill stands below the folder of the skill.
///
/// # Errors
/// The path leaves the folder, is hidden, or is no path on every system: why, for people.
pub fn relative_path(skill: &Skill, uri: &str) -> Result<PathBuf, String> {
    let root = skill.uri.strip_suffix(SKILL_MD).ok_or_else(|| format!("'{}' is no SKILL.md", skill.uri))?;
    let path = uri.strip_prefix(root).ok_or_else(|| format!("'{uri}' is outside of its skill"))?;
    let mut out = PathBuf::new();
    for part in path.split('/') {
        let name = percent_decode_str(part).decode_utf8().map_err(|_| format!("'{uri}' is not UTF-8"))?;
        let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '/' | '\\' | ':' | '?' | '#');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            return Err(format!("'{uri}' has no path that can be written"));
        }
        out.push(&*name);
    }
    Ok(out)
}

/// Returns the bytes of a file.
///
/// # Errors
/// The answer is not one file, or its base64 is invalid.
pub fn bytes(result: &ReadResourceResult) -> Result<Vec<u8>, String> {
    match result.contents.as_slice() {
        [ResourceContents::TextResourceContents { text, .. }] => Ok(text.clone().into_bytes()),
        [ResourceContents::BlobResourceContents { blob, .. }] => {
            STANDARD.decode(blob).map_err(|error| format!("its base64 is invalid: {error}"))
        }
        other => Err(format!("{} contents instead of one", other.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{SkillFrontmatter, SkillResources};

    #[test]
    fn files_stay_in_the_folder_of_their_skill() {
        let skill =
            Skill::new("skill://mail/bills/SKILL.md", SkillFrontmatter::new("bills", "x"), SkillResources::Dynamic);
        let path = |uri: &str| relative_path(&skill, uri).ok();
        assert_eq!(path("skill://mail/bills/SKILL.md"), Some("SKILL.md".into()));
        assert_eq!(path("skill://mail/bills/refs/a%20b.md"), Some("refs/a b.md".into()));
        for uri in [
            "skill://mail/other/SKILL.md",
            "skill://mail/bills/../x",
            "skill://mail/bills/%2e%2e/x",
            "skill://mail/bills/a/%2Fetc/passwd",
            "skill://mail/bills/a%5C..%5Cb",
            "skill://mail/bills/C:/x",
            "skill://mail/bills/a%00b",
            "skill://mail/bills/.git/hooks/x",
            "skill://mail/bills/",
            "skill://mail/bills//x",
            "skill://mail/bills/%FF",
            "file:///etc/passwd",
        ] {
            assert_eq!(path(uri), None, "{uri}");
        }
    }

    #[test]
    fn bytes_are_those_of_one_file() {
        let read = |contents| bytes(&ReadResourceResult::new(contents));
        assert_eq!(read(vec![ResourceContents::text("a\0b", "x:y")]), Ok(b"a\0b".to_vec()));
        assert_eq!(read(vec![ResourceContents::blob("AAH/", "x:y")]), Ok(vec![0, 1, 255]));
        assert!(read(vec![ResourceContents::blob("not base64", "x:y")]).is_err());
        assert!(read(Vec::new()).is_err());
    }
}
