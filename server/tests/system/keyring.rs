//! The master key in the keyring of the system, with a real one: GNOME Keyring on a session bus of the test.

use crate::support::*;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

const VALUE: &str = "s3cret-Value/with+more&than=six";

/// A bus with a keyring. What the keyring keeps is in a folder, so that another session may have it.
struct Session {
    address: String,
    home: String,
    /// The bus and the keyring; both end with the session.
    _programs: [Child; 2],
}

impl Session {
    /// Starts one. The keyring is unlocked with a password; without one it stays locked.
    async fn start(home: &str, password: Option<&str>) -> Self {
        let mut bus = Command::new("dbus-daemon")
            .args(["--session", "--print-address", "--nofork", "--nopidfile"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("a bus");
        let mut lines = BufReader::new(bus.stdout.take().expect("its output")).lines();
        let address = lines.next_line().await.expect("readable").expect("an address");
        std::fs::create_dir_all(home).expect("a folder");
        let mut keyring = Command::new("gnome-keyring-daemon");
        keyring.args(["--foreground", "--components=secrets"]).args(password.map(|_| "--unlock"));
        keyring.env("DBUS_SESSION_BUS_ADDRESS", &address).env("HOME", home).env("XDG_RUNTIME_DIR", home);
        keyring.env_remove("XDG_DATA_HOME").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut keyring = keyring.kill_on_drop(true).spawn().expect("a keyring");
        let mut input = keyring.stdin.take().expect("its input");
        input.write_all(password.unwrap_or_default().as_bytes()).await.expect("written");
        drop(input);
        let session = Self { address, home: home.to_owned(), _programs: [bus, keyring] };
        for _ in 0..200 {
            let asks = ["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus"];
            let question = ["org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"];
            let mut command = Command::new("dbus-send");
            command.args(asks).args(question).env("DBUS_SESSION_BUS_ADDRESS", &session.address);
            if finish(&mut command, "").await.stdout.contains("boolean true") {
                return session;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the keyring does not answer");
    }

    /// Returns the entry of the keyring.
    async fn entry(&self) -> String {
        let mut command = Command::new("secret-tool");
        command.args(["lookup", "service", "codecall", "username", "master key"]);
        finish(command.env("DBUS_SESSION_BUS_ADDRESS", &self.address).env("HOME", &self.home), "").await.stdout
    }
}

/// Runs a command with its master key in the keyring of a bus.
async fn with_keyring(address: &str, folder: &Folder, words: &[&str], input: &str) -> Finished {
    let mut command = Command::new(PROGRAM);
    command.args(words).env("CODECALL_STORE_KEYRING", "true").env("DBUS_SESSION_BUS_ADDRESS", address);
    command.env("CODECALL_STATE_DIR", folder.path("state")).env_remove("CODECALL_STORE");
    finish(&mut command, input).await
}

#[tokio::test]
async fn the_master_key_is_in_the_keyring() {
    let folder = Folder::new();
    let session = Session::start(&folder.path("home"), Some("password")).await;
    let set = with_keyring(&session.address, &folder, &["secret", "set", "API_KEY"], VALUE).await;
    assert!(set.code == Some(0) && set.stderr.contains("made a master key: the keyring of the system"), "{set:?}");
    assert!(!Path::new(&folder.path("state/master.key")).exists(), "no key in a file");
    let first = session.entry().await;
    assert_eq!(first.trim().len(), 44, "a key in base64");

    // The value is decrypted.
    let config = folder.file("a.toml", "[http]\ntoken = \"${secret:API_KEY}\"\n");
    let check = ["config", "check", config.as_str()];
    let checked = with_keyring(&session.address, &folder, &check, "").await;
    assert_eq!(checked.code, Some(0), "{checked:?}");

    // A new key comes before the first one, which can still decrypt.
    let rotated = with_keyring(&session.address, &folder, &["secret", "rotate"], "").await;
    assert!(rotated.stderr.contains("1 secrets are encrypted"), "{rotated:?}");
    let both = session.entry().await;
    assert!(both.lines().count() == 2 && both.lines().nth(1) == Some(first.trim()), "two keys");
    assert_eq!(with_keyring(&session.address, &folder, &check, "").await.code, Some(0));

    // The keyring outlives its session.
    drop(session);
    let session = Session::start(&folder.path("home"), Some("password")).await;
    assert_eq!(with_keyring(&session.address, &folder, &check, "").await.code, Some(0));

    // Without a keyring, or with another one, nothing is lost and no other key is made.
    let gone = with_keyring("unix:path=/nonexistent", &folder, &["secret", "set", "OTHER"], VALUE).await;
    assert!(gone.code == Some(2) && gone.stderr.contains("the keyring of the system"), "{gone:?}");
    assert!(gone.stderr.contains("CODECALL_MASTER_KEY_FILE"), "{gone:?}");
    let other = Session::start(&folder.path("other"), Some("password")).await;
    let refused = with_keyring(&other.address, &folder, &["secret", "set", "OTHER"], VALUE).await;
    assert!(refused.code == Some(2) && refused.stderr.contains("which this server does not have"), "{refused:?}");
    assert_eq!(other.entry().await, "");
    assert_eq!(with_keyring(&session.address, &folder, &check, "").await.code, Some(0));
}

/// From a file to the keyring.
#[tokio::test]
async fn a_key_moves_into_the_keyring() {
    let folder = Folder::new();
    let session = Session::start(&folder.path("home"), Some("password")).await;
    let mut set = Command::new(PROGRAM);
    set.args(["secret", "set", "API_KEY"]).env("CODECALL_STATE_DIR", folder.path("state")).env_remove("CODECALL_STORE");
    assert_eq!(finish(&mut set, VALUE).await.code, Some(0));
    let config = folder.file("a.toml", "[http]\ntoken = \"${secret:API_KEY}\"\n");
    let check = ["config", "check", config.as_str()];
    let refused = with_keyring(&session.address, &folder, &check, "").await;
    assert!(refused.code == Some(2) && refused.stderr.contains("there is no master key"), "{refused:?}");
    let file = folder.path("state/master.key");
    let moved = with_keyring(&session.address, &folder, &["secret", "key", "--import", &file], "").await;
    assert!(moved.code == Some(0) && moved.stderr.contains("are in the keyring of the system"), "{moved:?}");
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(with_keyring(&session.address, &folder, &check, "").await.code, Some(0));
}

/// Nobody is there who could unlock it: the command says so.
#[tokio::test]
async fn a_locked_keyring_is_refused() {
    let folder = Folder::new();
    let session = Session::start(&folder.path("home"), Some("password")).await;
    let set = with_keyring(&session.address, &folder, &["secret", "set", "API_KEY"], VALUE).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    drop(session);
    let locked = Session::start(&folder.path("home"), None).await;
    let refused = with_keyring(&locked.address, &folder, &["secret", "set", "OTHER"], VALUE).await;
    assert!(refused.code == Some(2) && refused.stderr.contains("the keyring of the system"), "{refused:?}");
}
