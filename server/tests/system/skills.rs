//! Skills: of folders, of script tools, and of another server, listed, read, approved and installed.

use crate::support::*;
use rmcp::model::*;
use rmcp::service::ServiceError;
use serde_json::json;

/// A skill of a folder.
fn skill_text(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: How to {name}\nlicense: MIT\n---\n\n{body}\n")
}

/// Writes a folder of skills with one skill of three files.
fn skills(folder: &Folder, name: &str) -> String {
    folder.file(&format!("{name}/bill/SKILL.md"), skill_text("bill", "See [the guide](refs/guide.md)."));
    folder.file(&format!("{name}/bill/refs/guide.md"), "Guide\r\nwith ünïcode\n");
    folder.file(&format!("{name}/bill/refs/logo.png"), [0x89, 0x50, 0, 0xFF]);
    folder.path(name)
}

/// A configuration with an app of its own and another server as upstream, which has the skills.
fn chain(folder: &Folder, more: &str) -> String {
    let upstream = json!({"skills": [skills(folder, "theirs")], "stateDir": folder.path("their-state")});
    let upstream = folder.file("upstream.json", upstream.to_string());
    let tool = "/*---\ndescription = \"Adds numbers\"\n---*/\n\
                async function execute(params: { a: number, b: number }) { return params.a + params.b }\n";
    folder.file("tools/addNumbers.ts", tool);
    folder.file("own/greet/SKILL.md", skill_text("greet", "Say hello."));
    folder.file(
        "codecall.toml",
        format!(
            "stateDir = {:?}\nstore = {:?}\nscriptTools = {:?}\nskills = [{:?}]\n{more}\n\
             [mcpServers.mail]\ncommand = {PROGRAM:?}\nargs = [\"serve\", \"--config\", {upstream:?}]\n",
            folder.path("state"),
            folder.path("state/codecall.db"),
            folder.path("tools"),
            folder.path("own"),
        ),
    )
}

/// Reads a file by the official client, and returns its bytes.
async fn read(server: &Server, uri: &str) -> Result<Vec<u8>, ServiceError> {
    let params = ReadResourceRequestParams::new(uri);
    let result = server.client.peer().read_resource(params).await?;
    Ok(codecall::skills::install::bytes(&result).expect("one file"))
}

fn code(error: &ServiceError) -> Option<i32> {
    match error {
        ServiceError::McpError(error) => Some(error.code.0),
        _ => None,
    }
}

#[tokio::test]
async fn all_skills_are_listed_and_read_with_their_digests() {
    let folder = Folder::new();
    let config = chain(&folder, "");
    for lifecycle in [rmcp::service::ClientLifecycleMode::Initialize, modern()] {
        let server = Server::start_as(&["--config", &config], lifecycle).await;
        let peer = server.client.peer();
        let capabilities = peer.peer_info().expect("the server is known").capabilities.clone();
        assert!(capabilities.supports_skills() && capabilities.supports_directory_read());
        let list = peer.list_skills(None).await.expect("a list");
        let uris: Vec<&str> = list.skills.iter().map(|skill| skill.uri.as_str()).collect();
        assert_eq!(
            uris,
            [
                "skill://codecall/codecall/SKILL.md",
                "skill://tools/add-numbers/SKILL.md",
                "skill://greet/SKILL.md",
                "skill://mail/codecall/codecall/SKILL.md",
                "skill://mail/bill/SKILL.md",
            ]
        );
        let bill = list.skills.last().expect("a skill");
        assert_eq!(bill.frontmatter.extra["license"], "MIT");
        assert_eq!(bill.meta.as_ref().and_then(|meta| meta.get("codecall/app")), Some(&json!("mail")));
        for skill in &list.skills {
            let SkillResources::Files(files) = &skill.resources else { panic!("a list of files") };
            for file in files {
                let bytes = read(&server, &file.uri).await.expect("it can be read");
                file.verify(&bytes).expect("the bytes of the digest");
            }
            let got = peer.get_skill(GetSkillRequestParams::new(&skill.uri)).await.expect("it is there");
            assert_eq!(got.skill, *skill);
        }
        let directory = |uri: &str| peer.read_resource_directory(ReadResourceDirectoryRequestParams::new(uri));
        let names = |list: ReadResourceDirectoryResult| {
            list.resources.into_iter().map(|entry| (entry.uri, entry.name)).collect::<Vec<_>>()
        };
        let entry = |path: &str, name: &str| (format!("skill://mail/bill/{path}"), name.to_owned());
        assert_eq!(
            names(directory("skill://mail/bill").await.expect("a folder")),
            [entry("SKILL.md", "SKILL.md"), entry("refs", "refs")]
        );
        assert_eq!(
            names(directory("skill://mail/bill/refs").await.expect("a folder")),
            [entry("refs/guide.md", "guide.md"), entry("refs/logo.png", "logo.png")]
        );
        // Of the resources of servers, only skills are exposed.
        let resources = peer.list_all_resources().await.expect("a list");
        assert!(resources.iter().all(|resource| resource.uri.starts_with("skill://")), "{resources:?}");
        for uri in ["skill://nothing/SKILL.md", "skill://mail/nothing/SKILL.md", "skill://mail/../own/greet/SKILL.md"] {
            let refused = peer.get_skill(GetSkillRequestParams::new(uri)).await.expect_err("there is none");
            assert_eq!(code(&refused), Some(-32602), "{uri}: {refused:?}");
        }
        for uri in ["skill://greet/SKILL.md", "skill://mail/bill/nothing", "file:///etc"] {
            assert_eq!(code(&directory(uri).await.expect_err("no folder")), Some(-32602), "{uri}");
        }
        assert!(read(&server, "skill://mail/bill/nothing.md").await.is_err());
        assert!(read(&server, "file:///etc/passwd").await.is_err());
        server.end().await;
    }
}

#[tokio::test]
async fn a_folder_that_changes_is_read_again() {
    let folder = Folder::new();
    folder.file("own/greet/SKILL.md", skill_text("greet", "Say hello."));
    let config = json!({"skills": [folder.path("own")], "stateDir": folder.path("state")});
    let config = folder.file("config.json", config.to_string());
    let server = Server::start(&["--config", &config]).await;
    let names = async || {
        let list = server.client.peer().list_skills(None).await.expect("a list");
        list.skills.into_iter().map(|skill| skill.frontmatter.name).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["codecall", "greet"]);
    folder.file("own/part/SKILL.md", skill_text("part", "Say goodbye."));
    let begin = std::time::Instant::now();
    while names().await.len() < 3 {
        assert!(begin.elapsed() < TIMEOUT, "the new skill is not found");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    server.end().await;
}

#[tokio::test]
async fn without_the_key_there_are_no_skills() {
    let server = Server::start(&["--demo"]).await;
    let capabilities = server.client.peer().peer_info().expect("the server is known").capabilities.clone();
    assert!(!capabilities.supports_skills() && capabilities.resources.is_none());
    server.end().await;
    let missing = codecall(&["skill", "list", "--config", "/nowhere.toml"]).await;
    assert_eq!(missing.code, Some(2), "{missing:?}");
    let folder = Folder::new();
    let config = folder.file("config.json", json!({"skills": ["/nowhere/skills"]}).to_string());
    let missing = codecall(&["skill", "list", "--config", &config]).await;
    assert!(missing.code == Some(2) && missing.stderr.contains("/nowhere/skills"), "{missing:?}");
}

#[tokio::test]
async fn skills_of_a_server_wait_for_approval() {
    let folder = Folder::new();
    let config = chain(&folder, "quarantine = true");
    let bill = "skill://mail/bill/SKILL.md";
    let listed = codecall(&["skill", "list", "--config", &config]).await;
    assert!(listed.code == Some(0) && !listed.stdout.contains(bill), "{listed:?}");
    assert!(listed.stderr.contains(&format!("codecall skill approve {bill}")), "{listed:?}");

    let server = Server::start(&["--config", &config]).await;
    let refused = server.client.peer().get_skill(GetSkillRequestParams::new(bill)).await.expect_err("it waits");
    assert_eq!(code(&refused), Some(-32602), "{refused:?}");
    assert!(read(&server, bill).await.is_err(), "its files wait too");
    assert!(read(&server, "skill://mail/bill/refs/guide.md").await.is_err(), "its files wait too");
    let directory = ReadResourceDirectoryRequestParams::new("skill://mail/bill/refs");
    assert!(server.client.peer().read_resource_directory(directory).await.is_err(), "its folders wait too");
    server.end().await;

    let approved = codecall(&["skill", "approve", bill, "--config", &config]).await;
    assert!(approved.code == Some(0) && approved.stdout.ends_with(&format!("approved: {bill}\n")), "{approved:?}");
    assert!(approved.stdout.contains("sha256:"), "what is approved is shown: {approved:?}");
    let listed = codecall(&["skill", "list", "--config", &config]).await;
    assert!(listed.stdout.contains(bill), "{listed:?}");
    let server = Server::start(&["--config", &config]).await;
    assert!(read(&server, bill).await.is_ok(), "it is approved");
    for uri in
        ["skill://mail/bill/../codecall/codecall/SKILL.md", "skill://mail/bill/%2e%2e/codecall/codecall/SKILL.md"]
    {
        assert!(read(&server, uri).await.is_err(), "the approval of one skill is none of another: {uri}");
    }
    server.end().await;

    // One byte of one file is another set of digests.
    folder.file("theirs/bill/refs/guide.md", "Guide\r\nwith ünïcode!\n");
    let listed = codecall(&["skill", "list", "--config", &config]).await;
    assert!(!listed.stdout.contains(bill) && listed.stderr.contains(bill), "{listed:?}");
    let unknown = codecall(&["skill", "approve", "skill://mail/nothing/SKILL.md", "--config", &config]).await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
}

#[tokio::test]
async fn skills_are_shown_and_installed() {
    let folder = Folder::new();
    let config = chain(&folder, "");
    let shown = codecall(&["skill", "show", "greet", "--config", &config]).await;
    assert!(shown.code == Some(0) && shown.stdout.contains("Say hello."), "{shown:?}");
    let shown = codecall(&["skill", "show", "bill", "refs/guide.md", "--config", &config]).await;
    assert!(shown.stdout.contains("ünïcode"), "{shown:?}");
    let two = codecall(&["skill", "show", "codecall", "--config", &config]).await;
    assert!(two.code == Some(2) && two.stderr.contains("skill://mail/codecall/codecall/SKILL.md"), "{two:?}");

    let target = folder.path("client/skills");
    let install = |more: &'static [&'static str]| {
        let (target, config) = (target.clone(), config.clone());
        async move {
            let words = ["skill", "install", "--to", &target, "--config", &config];
            codecall(&[&words[..], more].concat()).await
        }
    };
    let installed = install(&[]).await;
    assert_eq!(installed.code, Some(1), "two skills have the name codecall: {installed:?}");
    let folder_of = |path: &str| std::fs::read(format!("{target}/{path}"));
    assert_eq!(folder_of("bill/refs/logo.png").expect("a file"), [0x89, 0x50, 0, 0xFF]);
    assert!(folder_of("add-numbers/SKILL.md").is_ok() && folder_of("greet/SKILL.md").is_ok());
    std::fs::write(format!("{target}/bill/SKILL.md"), "mine").expect("a file");
    let kept = install(&[]).await;
    assert!(kept.code == Some(1) && kept.stderr.contains("--force"), "{kept:?}");
    assert_eq!(folder_of("bill/SKILL.md").expect("a file"), b"mine");
    install(&["--force"]).await;
    assert!(folder_of("bill/SKILL.md").expect("a file").starts_with(b"---"));
    let left = std::fs::read_dir(&target).expect("a folder").count();
    assert_eq!(left, 4, "no part of a skill is left");
}
