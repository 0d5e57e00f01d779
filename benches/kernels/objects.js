// Objects are made, read, written and given a new property.
let sum = 0;
for (let i = 0; i < 300000; i++) {
  const point = { x: i, y: i + 1, name: 'x' };
  point.x = point.x + point.y;
  point.z = i;
  sum += point.x + point.z;
}
const chain = { inner: { deep: { value: 1 } }, count: 0 };
for (let i = 0; i < 500000; i++) chain.count = chain.count + chain.inner.deep.value;
return [sum, chain.count];
