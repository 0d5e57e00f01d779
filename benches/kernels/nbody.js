// The planets: floating point numbers in properties.
const bodies = [
  { x: 0, y: 0, z: 0, vx: 0, vy: 0, vz: 0, mass: 39.47841760435743 },
  { x: 4.84143144246472, y: -1.16032004402742, z: -0.10362204447112, vx: 0.60632639299583, vy: 2.81198684491626, vz: -0.02521836165988, mass: 0.03769367487038 },
  { x: 8.34336671824457, y: 4.1247985641243, z: -0.40352341711432, vx: -1.01077434617879, vy: 1.82566237123041, vz: 0.00841576137658, mass: 0.01128632613196 },
  { x: 12.89436956213913, y: -15.11115140169863, z: -0.22330757889265, vx: 1.08279100644153, vy: 0.86871301816961, vz: -0.01083263740136, mass: 0.00172372405705 },
  { x: 15.37969711485091, y: -25.9193146099879, z: 0.17925877295037, vx: 0.97909073224389, vy: 0.5946989986477, vz: -0.03475595555078, mass: 0.00203368686992 },
];
function advance(dt) {
  for (let i = 0; i < bodies.length; i++) {
    const a = bodies[i];
    for (let j = i + 1; j < bodies.length; j++) {
      const b = bodies[j];
      const dx = a.x - b.x;
      const dy = a.y - b.y;
      const dz = a.z - b.z;
      const squared = dx * dx + dy * dy + dz * dz;
      const magnitude = dt / (squared * Math.sqrt(squared));
      a.vx -= dx * b.mass * magnitude;
      a.vy -= dy * b.mass * magnitude;
      a.vz -= dz * b.mass * magnitude;
      b.vx += dx * a.mass * magnitude;
      b.vy += dy * a.mass * magnitude;
      b.vz += dz * a.mass * magnitude;
    }
  }
  for (const body of bodies) {
    body.x += dt * body.vx;
    body.y += dt * body.vy;
    body.z += dt * body.vz;
  }
}
for (let i = 0; i < 10000; i++) advance(0.01);
return bodies.map((body) => body.x.toFixed(9));
