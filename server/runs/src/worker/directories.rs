//! The directories of tools that a worker keeps.
//!
//! A directory may be large, so a worker gets each one once and keeps the last few. The server does not ask: it applies
//! the same rule to the same sequence of numbers, and so knows what each worker keeps.

use codecall_base::tool::DirectoryId;

/// Number of directories that a worker keeps: that of the catalogue before and after a change, or that of the catalogue
/// and that of a client.
const CAPACITY: usize = 2;

/// The directories that a worker keeps, in the order of their last use: in the worker the directories themselves, in the
/// server their sizes.
#[derive(Debug)]
pub struct KeptDirectories<T> {
    entries: Vec<(DirectoryId, T)>,
}

impl<T> Default for KeptDirectories<T> {
    fn default() -> Self {
        Self { entries: Vec::with_capacity(CAPACITY) }
    }
}

impl<T> KeptDirectories<T> {
    /// Returns a directory that a run starts with.
    pub fn use_for_run(&mut self, id: DirectoryId) -> Option<&T> {
        let index = self.entries.iter().position(|(other, _)| *other == id)?;
        self.entries[index..].rotate_left(1);
        self.entries.last().map(|(_, directory)| directory)
    }

    /// Drops the directory that was not used for the longest time if there is no room for another one.
    pub fn make_room(&mut self) {
        if self.entries.len() >= CAPACITY {
            self.entries.remove(0);
        }
    }

    /// Adds a directory that is not kept yet.
    pub fn insert(&mut self, id: DirectoryId, directory: T) {
        self.make_room();
        self.entries.push((id, directory));
    }

    /// Whether a directory is kept.
    pub fn contains(&self, id: DirectoryId) -> bool {
        self.entries.iter().any(|(other, _)| *other == id)
    }

    /// Returns what is kept.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, directory)| directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecall_base::tool::ToolDirectory;

    #[test]
    fn a_directory_that_is_used_stays() {
        let ids: Vec<DirectoryId> = (0..6).map(|_| ToolDirectory::default().id()).collect();
        let (mut server, mut worker) = (KeptDirectories::default(), KeptDirectories::default());
        let mut sent = Vec::new();
        // As the two sides do it: what the worker does not keep is sent first.
        for run in [0, 0, 1, 0, 2, 0, 3, 4, 0, 0, 5, 4] {
            let id = ids[run];
            if server.use_for_run(id).is_none() {
                server.insert(id, 0_usize);
                worker.make_room();
                worker.insert(id, run);
                sent.push(run);
            }
            assert_eq!(worker.use_for_run(id), Some(&run));
            for id in &ids {
                assert_eq!(server.contains(*id), worker.contains(*id));
            }
        }
        assert_eq!(sent, [0, 1, 2, 3, 4, 0, 5, 4]);
        assert_eq!(worker.values().collect::<Vec<_>>(), [&5, &4]);
    }
}
