//! A queue in which clients take turns: one with many items delays another one by one item at a time.

use super::admission::ClientKey;
use std::collections::VecDeque;

/// The items of clients, in the order of their turns.
pub struct FairQueue<T> {
    /// The clients that have items, the next one first.
    clients: VecDeque<(ClientKey, VecDeque<T>)>,
    len: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { clients: VecDeque::new(), len: 0 }
    }
}

impl<T> FairQueue<T> {
    /// Adds the last item of a client.
    pub fn push(&mut self, client: ClientKey, item: T) {
        self.len += 1;
        match self.clients.iter_mut().find(|(own, _)| *own == client) {
            Some((_, items)) => items.push_back(item),
            None => self.clients.push_back((client, VecDeque::from([item]))),
        }
    }

    /// Takes the first item of the client whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let (client, mut items) = self.clients.pop_front()?;
        let item = items.pop_front()?;
        self.len -= 1;
        if !items.is_empty() {
            self.clients.push_back((client, items));
        }
        Some(item)
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns() {
        let mut queue = FairQueue::default();
        let [one, two] = [1, 2].map(|number| ClientKey([number; 32]));
        for item in ["a", "b", "c", "d"] {
            queue.push(one, item);
        }
        queue.push(two, "x");
        queue.push(two, "y");
        assert_eq!((queue.len(), queue.is_empty()), (6, false));
        let order: Vec<&str> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["a", "x", "b", "y", "c", "d"]);
        assert!(queue.is_empty());
    }
}
