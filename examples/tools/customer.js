/*---
description = "A customer with the number of open orders. Errors say what went wrong, and whether to try again"
tools = ["users:get", "orders:list"]

[annotations]
readOnlyHint = true

[parameters]
required = ["id"]

[parameters.properties.id]
type = "string"
pattern = "^usr_\\d+$"
description = "The id of the customer, such as usr_003"

[result]
type = "object"
required = ["name", "openOrders"]

[result.properties.name]
type = "string"

[result.properties.openOrders]
type = ["integer", "null"]

[[examples]]
description = "A customer with one open order"
params = { id = "usr_003" }
data = { name = "Grace", openOrders = 1 }

[[examples.answers]]
tool = "users:get"
output = { id = "usr_003", name = "Grace" }

[[examples.answers]]
tool = "orders:list"
output = { orders = [{ id = "ord_1" }] }

[[examples]]
description = "Nobody has this id"
params = { id = "usr_999" }
error = "There is no customer usr_999; users:list has all of them"

[[examples.answers]]
tool = "users:get"
error = { message = "User usr_999 not found", code = "NOT_FOUND" }

[[examples]]
description = "The orders are not available: the customer is shown without them"
params = { id = "usr_003" }

[[examples.answers]]
tool = "users:get"
output = { id = "usr_003", name = "Grace" }

[[examples.answers]]
tool = "orders:list"
error = { message = "Database is locked" }
---*/

async function execute(params, config) {
  const { id } = params;
  let user;
  try {
    user = await callTool('users:get', { id });
  } catch (error) {
    if (error.code === 'NOT_FOUND') {
      return { success: false, error: `There is no customer ${id}; users:list has all of them` };
    }
    return { success: false, error: `The customer cannot be read now (${error.message}); try again later` };
  }
  let openOrders = null;
  try {
    const { orders } = await callTool('orders:list', { userId: id, status: 'pending', limit: 100 });
    openOrders = orders.length;
  } catch (error) {
    console.warn(`the orders of ${id} are missing: ${error.message}`);
  }
  return { success: true, data: { name: user.name, openOrders } };
}
