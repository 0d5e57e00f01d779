//! The file of a database that goes away while it is open.

use super::*;
use std::path::Path;

fn beside(path: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", path.display()))
}

fn move_all(from: &Path, to: &Path) {
    for end in ["", "-wal", "-shm"] {
        std::fs::rename(beside(from, end), beside(to, end)).expect("moved");
    }
}

async fn write(database: &Database, id: usize) -> Result<(), Problem> {
    let sql = "INSERT INTO script_tool_changes (workspace, changes) VALUES ($1, 0)";
    database.query(sql, [id.to_string().as_str().into()]).await.map(drop)
}

async fn count(database: &Database) -> Result<i64, Problem> {
    Ok(database.query("SELECT count(*) FROM script_tool_changes", []).await?[0][0].int())
}

#[tokio::test]
async fn nothing_is_written_to_a_file_that_is_gone() {
    let folder = Folder::new("gone");
    let (path, aside) = (folder.0.join("codecall.db"), folder.0.join("aside.db"));
    let database = folder.database();
    write(&database, 1).await.expect("written");
    move_all(&path, &aside);
    assert_eq!(write(&database, 2).await, Err(Problem::Gone));
    assert_eq!(count(&database).await, Err(Problem::Gone));
    assert_eq!(database.probe().await, Err(Problem::Gone));
    // Another process makes a new one in its place.
    write(&folder.database(), 7).await.expect("written");
    assert_eq!(write(&database, 3).await, Err(Problem::Replaced));
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(&path, end));
    }
    assert_eq!(write(&database, 4).await, Err(Problem::Gone));
    // It comes back.
    move_all(&aside, &path);
    write(&database, 5).await.expect("written");
    assert_eq!((count(&database).await, count(&folder.database()).await), (Ok(2), Ok(2)));
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(write(&database, 6).await, Err(Problem::Gone));
    assert!(!path.exists(), "none is made in its place");
}

/// Batches that are written together.
#[tokio::test(flavor = "multi_thread")]
async fn no_batch_of_many_is_written_to_a_file_that_is_gone() {
    let folder = Folder::new("gone-many");
    let database = folder.database();
    write(&database, 0).await.expect("written");
    let writing = |first: usize| {
        let all = (first..first + 200).map(|id| {
            let database = database.clone();
            tokio::spawn(async move { write(&database, id).await })
        });
        futures_util::future::join_all(all.collect::<Vec<_>>())
    };
    let first = writing(1);
    let path = folder.0.join("codecall.db");
    let removing = async { std::fs::remove_file(&path).expect("removed") };
    let (_, ()) = tokio::join!(first, removing);
    assert!(writing(1_000).await.iter().all(|done| matches!(done, Ok(Err(Problem::Gone)))));
}

#[tokio::test]
async fn what_is_in_a_log_that_is_deleted_is_not_lost() {
    for ends in [&["-wal"][..], &["-shm"], &["-wal", "-shm"]] {
        let folder = Folder::new("log");
        let path = folder.0.join("codecall.db");
        let database = folder.database();
        write(&database, 1).await.expect("written");
        for end in ends {
            std::fs::remove_file(beside(&path, end)).expect("removed");
        }
        database.probe().await.expect("usable");
        write(&database, 2).await.expect("written");
        // As if the process was killed: another one reads what is in the files.
        let other = rusqlite::Connection::open(&path).expect("opened");
        let found: i64 =
            other.query_row("SELECT count(*) FROM script_tool_changes", [], |row| row.get(0)).expect("a number");
        assert_eq!(found, 2, "{ends:?}");
        assert_eq!(database.check().await, Ok(Vec::new()), "{ends:?}");
    }
}

/// Another connection of this process to the same file lets go of no lock of the first one.
#[tokio::test]
async fn a_second_connection_keeps_the_log_of_the_first() {
    let folder = Folder::new("second");
    let database = folder.database();
    write(&database, 1).await.expect("written");
    let second = folder.database();
    assert_eq!(count(&second).await, Ok(1));
    drop(second);
    let path = folder.0.join("codecall.db");
    let script = format!(
        "import sqlite3; c = sqlite3.connect({:?}); c.execute('SELECT 1 FROM runs').fetchall(); c.close()",
        path.display().to_string()
    );
    let Ok(ran) = std::process::Command::new("python3").args(["-c", &script]).status() else { return };
    assert!(ran.success());
    assert!(beside(&path, "-wal").exists(), "the log of an open database");
    write(&database, 2).await.expect("written");
    assert_eq!(count(&folder.database()).await, Ok(2));
}
