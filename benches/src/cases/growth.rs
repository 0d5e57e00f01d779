//! Cases in several sizes, each ten times the one before.

use super::{Case, orders, users};
use std::fmt::Write as _;

/// A case in several sizes.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// The unit of the sizes.
    pub unit: &'static str,
    /// The sizes.
    pub sizes: Vec<usize>,
    /// The case of each size.
    pub cases: Vec<Case>,
}

/// Returns all families.
#[must_use]
pub fn families() -> Vec<Family> {
    let sizes = |from: usize, count: u32| (0..count).map(|power| from * 10_usize.pow(power)).collect::<Vec<_>>();
    let family = |name, unit, sizes: Vec<usize>, case: fn(usize) -> Case| {
        let cases = sizes.iter().map(|size| Case { name: format!("{name} {size}"), ..case(*size) }).collect();
        Family { name, unit, sizes, cases }
    };
    let mut source = family("source", "bytes of source", sizes(2, 3), source);
    source.sizes = source.cases.iter().map(|case| case.script.len()).collect();
    vec![
        source,
        family("filter", "rows", sizes(1, 5), filter),
        family("join", "rows on each side", sizes(1, 5), join),
        family("sequence", "calls, one after the other", sizes(1, 4), sequence),
        family("parallel", "calls at once", sizes(1, 4), parallel),
        family("garbage", "objects, strings, closures and cycles each", sizes(1_000, 4), garbage),
    ]
}

/// Returns a script of functions as models write them, which are compiled but not called.
fn source(functions: usize) -> Case {
    let mut text = String::new();
    for i in 0..functions {
        let _ = write!(
            text,
            "function summary{i}(orders, {{ limit = 10, min = 0 }} = {{}}) {{
  const kept = orders.filter((order) => order.status !== 'cancelled' && order.amount >= min);
  const groups = {{}};
  for (const order of kept) {{
    const group = (groups[order.userId] ??= {{ count: 0, cents: 0 }});
    group.count += 1;
    group.cents += order.amount * 100 + (order.tax ?? 0);
  }}
  return Object.entries(groups)
    .sort(([, a], [, b]) => b.cents - a.cents)
    .slice(0, limit)
    .map(([user, {{ count, cents }}]) => `${{user}}: ${{count}} orders, ${{(cents / 100).toFixed(2)}} EUR`);
}}
"
        );
    }
    Case::new("source", "", text + "return 1;")
}

fn filter(rows: usize) -> Case {
    let script = "
const users = await callTool('users:list', {});
return users.filter((user) => user.active && user.score > 20).map((user) => user.name);";
    Case::new("filter", "", script).with_tool("users:list", users(rows))
}

fn join(rows: usize) -> Case {
    let script = "
const [users, orders] = await Promise.all([callTool('users:list', {}), callTool('orders:list', {})]);
const byId = new Map(users.map((user) => [user.id, user]));
return orders.filter((order) => byId.get(order.userId)?.active).map((order) => ({ id: order.id, total: order.amount }));";
    let case = Case::new("join", "", script);
    case.with_tool("users:list", users(rows)).with_tool("orders:list", orders(rows))
}

/// Returns a script with sequential tool calls.
#[must_use]
pub fn sequence(calls: usize) -> Case {
    let script = format!(
        "
let sum = 0;
for (let id = 0; id < {calls}; id++) sum += (await callTool('items:get', {{ id }})).stock;
return sum;"
    );
    Case::new("sequence", "", script).with_tool("items:get", r#"{"id":7,"stock":12}"#.into())
}

fn parallel(calls: usize) -> Case {
    let script = format!(
        "
const ids = Array.from({{ length: {calls} }}, (_, id) => id);
const items = await Promise.all(ids.map((id) => callTool('items:get', {{ id }})));
return items.reduce((sum, item) => sum + item.stock, 0);"
    );
    Case::new("parallel", "", script).with_tool("items:get", r#"{"id":7,"stock":12}"#.into())
}

fn garbage(turns: usize) -> Case {
    let script = format!(
        "
let sum = 0;
for (let i = 0; i < {turns}; i++) {{
  const point = {{ x: i, y: [i] }};
  const text = 'number ' + i;
  const read = () => point.x + text.length;
  const cycle = {{ read }};
  cycle.self = cycle;
  sum += cycle.self.read();
}}
return sum;"
    );
    Case::new("garbage", "", script)
}
