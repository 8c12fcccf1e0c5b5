// What a mech sees of the map: cells that a level line from its eyes reaches within the range of its sensors.

/**
 * @param {import("./simulation.js").Simulation} simulation
 * @param {import("./moments.js").Mech} mech
 * @returns {Uint8Array} (y, x), 255 in sight, 0 not
 */
export function cellsInSight(simulation, mech) {
  const { battle } = simulation.world;
  const { size, height } = battle;
  const kind = battle.classes[mech.kind];
  const opaque = simulation.field("opaque");
  const cells = new Uint8Array(size * size);
  const eyes = Math.min(height - 1, Math.max(0, Math.floor(mech.z + 0.8 * kind.size[2])));
  const range = Math.max(kind.sight, 14);
  const rays = Math.ceil(2 * Math.PI * range * 1.5);
  for (let ray = 0; ray < rays; ray += 1) {
    const [dx, dy] = [Math.cos((2 * Math.PI * ray) / rays) * 0.5, Math.sin((2 * Math.PI * ray) / rays) * 0.5];
    let [x, y] = [mech.x, mech.y];
    for (let step = 0; step < 2 * range; step += 1) {
      const [cx, cy] = [Math.floor(x), Math.floor(y)];
      if (cx < 0 || cy < 0 || cx >= size || cy >= size) break;
      cells[cy * size + cx] = 255;
      if (step > 1 && (opaque(cy * size + cx) >>> eyes) & 1) break;
      x += dx;
      y += dy;
    }
  }
  return cells;
}

/**
 * The enemies that a mech's pack remembers but that it does not see.
 * @param {import("./simulation.js").Simulation} simulation
 * @param {import("./moments.js").Moment} moment
 * @param {number} selected
 */
export function ghostsOf(simulation, moment, selected) {
  const mech = moment.mechs[selected];
  const count = simulation.mechs;
  const of = (/** @type {string} */ name) => simulation.field("sightings", name);
  const [known, x, y, z, age] = [of("known"), of("x"), of("y"), of("z"), of("age")];
  const { seconds, ticks } = simulation.world.battle;
  const visible = simulation.field("visible");
  const intel = simulation.field("mechs", "intel");
  const rows = simulation.world.arrays.mechs.fields.intel[2];
  const told = new Set(Array.from({ length: rows }, (_, item) => intel(selected, item))); // nothing while it is jammed
  const ghosts = [];
  for (let other = 0; other < count; other += 1) {
    const row = mech.pack * count + other;
    if (!told.has(other) || !known(row) || moment.mechs[other].team === mech.team || visible(selected * count + other) > 0) continue;
    ghosts.push({ mech: other, team: moment.mechs[other].team, x: x(row), y: y(row), z: z(row), age: (age(row) / ticks) * seconds });
  }
  return ghosts;
}
