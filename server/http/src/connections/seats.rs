//! Seats: who has which of the connections, and who has to make room for others.
//!
//! A request takes a seat of its connection when its sender is known: a client with a token, or nobody in particular
//! from an address. Seats are shared by clients, and those of a client by addresses. If all are taken, a request can
//! evict the oldest one of the clients that have most. Its own client must not have more than others then. Requests
//! whose body comes slowly go first, also for others of the same client and address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// How long a body may take before its request goes first when seats are needed.
const SLOW_BODY: Duration = Duration::from_secs(1);

/// The address of a peer: of IPv6 the part that a network has, as each of its machines has many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

impl Address {
    /// Returns the address of a peer.
    pub fn of(peer: SocketAddr) -> Self {
        match peer.ip().to_canonical() {
            IpAddr::V4(ip) => Self(ip.into()),
            IpAddr::V6(ip) => {
                let network = ip.to_bits() & !u128::from(u64::MAX);
                Self(Ipv6Addr::from_bits(network).into())
            }
        }
    }
}

/// A client with a token or a login; `None`: nobody in particular.
pub type Client = Option<[u8; 32]>;

/// The seats of a server.
pub struct Seats {
    max: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<u64, Connection>,
    next: u64,
    taken: usize,
}

struct Connection {
    address: Address,
    task: AbortHandle,
    /// Since when it has its active request, or none.
    since: Instant,
    /// Whether the body of its request is still to come.
    is_receiving: bool,
    /// The client of its active request, if that needs a seat.
    holder: Option<Client>,
}

impl Seats {
    /// Creates so many seats.
    pub fn new(max: usize) -> Self {
        Self { max, table: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.lock().open.len()
    }

    /// Adds a connection, whose task `start` starts.
    pub fn add(self: &Arc<Self>, address: Address, start: impl FnOnce(Seat) -> AbortHandle) {
        // It is added before the task can end.
        let mut table = self.lock();
        table.next += 1;
        let number = table.next;
        let task = start(Seat { seats: Arc::clone(self), number, address });
        let connection = Connection { address, task, since: Instant::now(), is_receiving: false, holder: None };
        table.open.insert(number, connection);
    }

    /// Evicts a connection without a seat: of the address that has most of them, the one that is idle for the longest
    /// time, if that is at least `min_idle`. Returns whether there was one.
    pub fn evict_idle(&self, min_idle: Duration) -> bool {
        let mut table = self.lock();
        let now = Instant::now();
        let is_idle = |connection: &Connection| {
            connection.holder.is_none() && now.saturating_duration_since(connection.since) >= min_idle
        };
        let mut counts: HashMap<Address, usize> = HashMap::new();
        let idle = table.open.iter().filter(|(_, connection)| is_idle(connection));
        let idle: Vec<(u64, Address, Instant)> =
            idle.map(|(number, connection)| (*number, connection.address, connection.since)).collect();
        idle.iter().for_each(|(_, address, _)| *counts.entry(*address).or_default() += 1);
        let evicted = idle.into_iter().max_by_key(|(number, address, since)| {
            (counts[address], std::cmp::Reverse(*since), std::cmp::Reverse(*number))
        });
        if let Some((number, ..)) = evicted {
            table.evict(number);
        }
        evicted.is_some()
    }
}

impl Table {
    /// Closes a connection.
    fn evict(&mut self, number: u64) {
        if let Some(connection) = self.remove(number) {
            connection.task.abort();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Connection> {
        let connection = self.open.remove(&number)?;
        self.taken -= usize::from(connection.holder.is_some());
        Some(connection)
    }

    /// Evicts a request for one of a client from an address. Returns whether there was one.
    fn make_room(&mut self, client: Client, address: Address) -> bool {
        let mut clients: HashMap<Client, usize> = HashMap::new();
        let mut addresses: HashMap<(Client, Address), usize> = HashMap::new();
        for connection in self.open.values() {
            if let Some(holder) = connection.holder {
                *clients.entry(holder).or_default() += 1;
                *addresses.entry((holder, connection.address)).or_default() += 1;
            }
        }
        let own = clients.get(&client).copied().unwrap_or_default();
        let largest = clients.iter().max_by_key(|(_, count)| **count).map(|(client, count)| (*client, *count));
        // Whoever is evicted has at least as many left as the new one.
        let from = largest.filter(|(_, count)| *count > own + 1).map_or(client, |(largest, _)| largest);
        let of_client = addresses.iter().filter(|((client, _), _)| *client == from);
        let Some(((_, largest), count)) = of_client.max_by_key(|(_, count)| **count) else { return false };
        let own = addresses.get(&(client, address)).copied().unwrap_or_default();
        let has_more = from != client || *count > own + 1;
        let holder = (from, if has_more { *largest } else { address });
        let now = Instant::now();
        let is_slow = |connection: &Connection| {
            connection.is_receiving && now.saturating_duration_since(connection.since) >= SLOW_BODY
        };
        let held = self.open.iter().filter(|(_, connection)| {
            connection.holder == Some(holder.0) && connection.address == holder.1 && (has_more || is_slow(connection))
        });
        let evicted = held.min_by_key(|(number, connection)| (!is_slow(connection), connection.since, **number));
        let Some(number) = evicted.map(|(number, _)| *number) else { return false };
        self.evict(number);
        true
    }
}

/// The seat of a connection, taken or not. An extension of its requests.
#[derive(Clone)]
pub struct Seat {
    seats: Arc<Seats>,
    number: u64,
    address: Address,
}

impl Seat {
    /// Returns the address of the peer.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Takes the seat for the active request, which is one of `client`. Returns whether there is one.
    pub fn take(&self, client: Client) -> bool {
        let mut table = self.seats.lock();
        match table.open.get_mut(&self.number) {
            // It was evicted.
            None => return false,
            // The same request, about whose sender more is known now.
            Some(connection) if connection.holder.is_some() => {
                connection.holder = Some(client);
                return true;
            }
            Some(_) => {}
        }
        if table.taken >= self.seats.max && !table.make_room(client, self.address) {
            return false;
        }
        if let Some(connection) = table.open.get_mut(&self.number) {
            connection.holder = Some(client);
            table.taken += 1;
        }
        true
    }

    /// Sets whether the body of the active request is still to come.
    pub fn set_receiving(&self, is_receiving: bool) {
        if let Some(connection) = self.seats.lock().open.get_mut(&self.number) {
            connection.is_receiving = is_receiving;
        }
    }

    /// Removes the connection when it is dropped.
    pub fn closed_when_dropped(self) -> impl Send {
        Closing(self)
    }

    fn change(&self, holder: Option<Client>) {
        let mut table = self.seats.lock();
        let Some(connection) = table.open.get_mut(&self.number) else { return };
        connection.since = Instant::now();
        let before = std::mem::replace(&mut connection.holder, holder);
        table.taken -= usize::from(before.is_some());
    }
}

struct Closing(Seat);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.seats.lock().remove(self.0.number);
    }
}

/// A request of a connection, which gives the seat back when it is dropped.
pub struct ActiveRequest(Seat);

impl ActiveRequest {
    /// Begins a request.
    pub fn new(seat: &Seat) -> Self {
        seat.change(None);
        Self(seat.clone())
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.change(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Client = Some([1; 32]);
    const BOB: Client = Some([2; 32]);

    /// Opens a connection and begins a request. Returns its seat if it gets one.
    fn request(seats: &Arc<Seats>, client: Client, peer: &str) -> Option<(Seat, ActiveRequest)> {
        let mut opened = None;
        let address = Address::of(SocketAddr::new(peer.parse().expect("an address"), 1));
        seats.add(address, |seat| {
            opened = Some(seat);
            tokio::spawn(std::future::pending::<()>()).abort_handle()
        });
        let seat = opened?;
        let active = ActiveRequest::new(&seat);
        seat.take(client).then_some((seat, active))
    }

    fn counts(seats: &Seats, holders: &[(Client, &str)]) -> Vec<usize> {
        let table = seats.lock();
        let count = |(client, peer): &(Client, &str)| {
            let address = Address::of(SocketAddr::new(peer.parse().expect("an address"), 1));
            let held = table.open.values();
            held.filter(|connection| connection.holder == Some(*client) && connection.address == address).count()
        };
        holders.iter().map(count).collect()
    }

    #[tokio::test]
    async fn those_who_hold_most_make_room() {
        let seats = Arc::new(Seats::new(6));
        let mut kept = Vec::new();
        let one = "192.0.2.1";
        let mut ask = |client: Client, peer: &str| request(&seats, client, peer).map(|held| kept.push(held)).is_some();
        assert!((0..6).all(|_| ask(None, one)));
        assert!(!ask(None, one), "a client alone keeps its requests");
        assert!((0..2).all(|_| ask(None, "192.0.2.2")), "addresses share");
        assert!((0..3).all(|_| ask(ALICE, one)), "a token comes before all addresses without one");
        assert!(!ask(ALICE, one));
        assert_eq!(counts(&seats, &[(ALICE, one)]), [3]);
        assert!((0..2).all(|_| ask(BOB, one)));
        assert_eq!(counts(&seats, &[(None, one), (None, "192.0.2.2"), (ALICE, one), (BOB, one)]), [1, 1, 2, 2]);
        assert!(!ask(BOB, one) && !ask(ALICE, one) && !ask(None, one));
        assert!(ask(ALICE, "192.0.2.9"), "addresses of a token share too");
        assert_eq!(counts(&seats, &[(ALICE, one), (ALICE, "192.0.2.9")]), [1, 1]);
        // What was evicted does not count, and gives nothing back.
        drop(kept);
        assert!(seats.lock().taken == 0 && counts(&seats, &[(ALICE, one)]) == [0]);
    }

    #[tokio::test]
    async fn slow_bodies_make_room_for_the_same_client() {
        let seats = Arc::new(Seats::new(2));
        let [first, second] = [(); 2].map(|()| request(&seats, ALICE, "192.0.2.1").expect("a seat"));
        second.0.set_receiving(true);
        assert!(request(&seats, ALICE, "192.0.2.1").is_none(), "it has just begun");
        tokio::time::sleep(SLOW_BODY).await;
        let third = request(&seats, ALICE, "192.0.2.1").expect("a seat");
        assert!(!second.0.take(ALICE) && first.0.take(ALICE) && third.0.take(ALICE));
        assert!(request(&seats, ALICE, "192.0.2.1").is_none());
    }

    #[test]
    fn machines_have_one_address() {
        let of = |ip: &str| Address::of(SocketAddr::new(ip.parse().expect("an address"), 1));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::4"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
    }
}
