const ids = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const items = await Promise.all(ids.map((id) => callTool('items:get', { id })));
return items.reduce((sum, item) => sum + item.price * item.stock, 0);
