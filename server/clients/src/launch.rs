//! How clients start CodeCall: by its path, or by the package manager that runs it from its cache.

use std::path::Path;

/// Programs that run a package from a cache, whose files do not stay: folders of these caches, and what runs the package
/// again.
const LAUNCHERS: &[(&[&str], &[&str])] =
    &[(&["_npx"], &["npx", "-y", PACKAGE]), (&["archive-v", "builds-v", "environments-v"], &["uvx", PACKAGE])];

/// The name of the packages of the program.
const PACKAGE: &str = "codecall";

/// The words that start the program of this path again, without arguments.
#[must_use]
pub fn command(program: &Path) -> Vec<String> {
    let is_cache = |folder: &str| {
        let folder = folder.trim_end_matches(|letter: char| letter.is_ascii_digit());
        LAUNCHERS.iter().position(|(folders, _)| folders.contains(&folder))
    };
    let folders = program.components().filter_map(|part| part.as_os_str().to_str());
    let Some((_, words)) = folders.filter_map(is_cache).next().and_then(|found| LAUNCHERS.get(found)) else {
        return vec![program.display().to_string()];
    };
    // There `npx` is a script, which clients cannot start without a shell.
    let shell: &[&str] = if cfg!(windows) && words[0] == "npx" { &["cmd", "/c"] } else { &[] };
    shell.iter().chain(*words).map(|&word| word.to_owned()).collect()
}

/// Whether an entry of a client starts CodeCall.
#[must_use]
pub fn is_codecall<'a>(command: &str, arguments: impl IntoIterator<Item = &'a str>) -> bool {
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let program = program.strip_suffix(".exe").or_else(|| program.strip_suffix(".cmd")).unwrap_or(program);
    match program {
        PACKAGE => true,
        // The first argument that is no option is the package.
        "npx" | "uvx" | "bunx" | "pipx" | "cmd" => arguments
            .into_iter()
            .find(|word| !word.starts_with(['-', '/']) && !matches!(*word, "npx" | "npx.cmd" | "run"))
            .is_some_and(|package| package.split(['@', '=']).next() == Some(PACKAGE)),
        _ => false,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_a_cache_is_started_by_its_package_manager() {
        for (program, words) in [
            ("/usr/bin/codecall", "/usr/bin/codecall"),
            (
                "/home/me/.local/share/uv/tools/codecall/bin/codecall",
                "/home/me/.local/share/uv/tools/codecall/bin/codecall",
            ),
            ("/home/me/.cache/uv/archive-v0/mWx3/bin/codecall", "uvx codecall"),
            ("/tmp/cache/environments-v2/8ab/bin/codecall", "uvx codecall"),
            ("/home/me/.npm/_npx/fe3/node_modules/@codecall/linux-x64/bin/codecall", "npx -y codecall"),
            (
                "/usr/lib/node_modules/@codecall/linux-x64/bin/codecall",
                "/usr/lib/node_modules/@codecall/linux-x64/bin/codecall",
            ),
        ] {
            assert_eq!(command(Path::new(program)).join(" "), words, "{program}");
        }
    }

    #[test]
    fn entries_that_start_codecall_are_known() {
        for (line, is) in [
            ("codecall serve", true),
            ("C:\\tools\\codecall.exe serve", true),
            ("npx -y codecall serve", true),
            ("npx -y codecall@0.1.0 serve", true),
            ("cmd /c npx -y codecall serve", true),
            ("uvx codecall==0.1.0 serve", true),
            ("npx -y other codecall", false),
            ("uvx codecall-other", false),
            ("node codecall", false),
        ] {
            let mut words = line.split(' ');
            let program = words.next().unwrap_or_default();
            assert_eq!(is_codecall(program, words), is, "{line}");
        }
    }
}
