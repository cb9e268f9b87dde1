// SPDX-License-Identifier: Apache-2.0
// The page's data. Watts are differences of joules between two looks, as everywhere in the ledger: all that is shown for
// a moment is from the same two. The server has the last hour; the page goes on from there.

const kPollMs = 2000;
const kHistoryMs = 60000;
const kLiveStep = 10;
const kSpan = 3600;

const state = {
  last: null,         // the newest snapshot
  lastSeen: 0,        // when, on the browser's own clock
  look: null,         // {from, to, gpus: Map(uuid -> entry)} of the last two snapshots; null: not comparable
  rates: new Map(),   // process key -> {watts, error}, of the same look
  past: new Map(),    // GPU -> entries from the server
  live: new Map(),    // GPU -> entries of this page, in steps as long as the server's
  owners: new Map(),  // owner key -> {label, namespace}
  historyAt: -Infinity,
  historyTrouble: '',  // why the last hour is not there
  changedAt: Date.now(),
  step: 1,
};
// An entry: {from, to, total, nobody, limit, owner: Map(key -> watts), process: Map, errors: {owner: Map, process: Map}}.
// The server's have neither processes nor errors.

const nobodysJoules = (gpu) => sum(Object.values(gpu.unattributed_joules));

function remember(item) {
  const key = ownerKey(item);
  if (!state.owners.has(key)) state.owners.set(key, {label: ownerLabel(item), namespace: namespaceOf(item)});
  return key;
}

function differences(before, now, list, keyOf) {
  const old = new Map(before[list].map((item) => [keyOf(item), item.energy_joules]));
  const nothing = {total: 0, shared: 0};
  // Who was left out before (--max-series) has not drawn all its joules since then. What it drew is not known: 0.
  const someLeftOut = before.left_out && before.left_out[list];
  return now[list].map((item) => {
    const then = old.get(keyOf(item)) || (someLeftOut ? item.energy_joules : nothing);
    return {item, total: Math.max(0, item.energy_joules.total - then.total),
            shared: Math.max(0, item.energy_joules.shared - then.shared)};
  });
}

// The relative error of shared joules is that of all joules it ever shared.
function rate({item, total, shared}, seconds) {
  const estimated = item.energy_joules.shared;
  const part = estimated > 0 ? (item.energy_standard_error_joules || 0) / estimated : 0;
  return {watts: total / seconds, error: part * shared / seconds};
}

// False: what it uses is not known, and its joules do not move. It is lost, or it says nothing that could be added up.
const isMeasured = (gpu) => gpu.up && (gpu.energy_source !== 'power_integral' || gpu.power_watts !== undefined);

// False: these are new books (the program was restarted), or the server's clock was set.
function comparable(before, now, elapsed) {
  const energy = new Map(before.gpus.map((gpu) => [gpu.uuid, gpu.energy_joules]));
  return now.at > before.at && now.cycle > before.cycle &&
      Math.abs(now.at - before.at - elapsed) < 5 + elapsed / 2 &&
      now.gpus.every((gpu) => gpu.energy_joules >= (energy.get(gpu.uuid) || 0));
}

function lookAt(before, now) {
  const seconds = state.step = now.at - before.at;
  const look = {from: before.at, to: now.at, gpus: new Map()};
  const older = new Map(before.gpus.map((gpu) => [gpu.uuid, gpu]));
  for (const gpu of now.gpus) {
    const then = older.get(gpu.uuid);
    if (!then || !isMeasured(then) || !isMeasured(gpu)) continue;  // what was used while it was lost is not of these seconds
    look.gpus.set(gpu.uuid, {
      from: before.at, to: now.at, total: (gpu.energy_joules - then.energy_joules) / seconds,
      nobody: Math.max(0, nobodysJoules(gpu) - nobodysJoules(then)) / seconds, limit: gpu.power_limit_watts,
      owner: new Map(), process: new Map(), errors: {owner: new Map(), process: new Map()}});
  }
  // The containers of a pod have one key. The correlation of their errors is unknown: at worst they add up.
  const enter = (by, item, key, drawn) => {
    const entry = look.gpus.get(item.gpu_uuid);
    if (!entry) return;
    add(entry[by], key, drawn.watts);
    add(entry.errors[by], key, drawn.error);
  };
  for (const step of differences(before, now, 'owners', accountKey)) {
    enter('owner', step.item, remember(step.item), rate(step, seconds));
  }
  for (const step of differences(before, now, 'processes', processKey)) {
    const drawn = rate(step, seconds);
    enter('process', step.item, processKey(step.item), drawn);
    if (step.item.active && look.gpus.has(step.item.gpu_uuid)) state.rates.set(processKey(step.item), drawn);
  }
  return look;
}

// Two entries that follow each other as one.
function joined(a, b) {
  const [first, second] = [a.to - a.from, b.to - b.from];
  const mean = (x, y) => (x * first + y * second) / (first + second);
  const means = (x, y) => new Map([...new Set([...x.keys(), ...y.keys()])]
    .map((key) => [key, mean(x.get(key) || 0, y.get(key) || 0)]));
  return {...b, from: a.from, total: mean(a.total, b.total), nobody: mean(a.nobody, b.nobody),
          owner: means(a.owner, b.owner), process: means(a.process, b.process)};
}

function learn(now) {
  const [before, seen] = [state.last, performance.now() / 1000];
  const elapsed = seen - state.lastSeen;
  [state.last, state.lastSeen] = [now, seen];
  state.rates.clear();
  for (const process of now.processes) remember(process);
  state.look = before && comparable(before, now, elapsed) ? lookAt(before, now) : null;
  if (!state.look) {
    state.live.clear();
    state.historyAt = -Infinity;
    return;
  }
  for (const [uuid, entry] of state.look.gpus) {
    const list = state.live.get(uuid) || [];
    const last = list[list.length - 1];
    if (last && last.to === entry.from && entry.to - last.from <= kLiveStep) list[list.length - 1] = joined(last, entry);
    else list.push(entry);
    while (list[0].to < now.at - kSpan) list.shift();
    state.live.set(uuid, list);
  }
}

// True: there is something new. Without it the page shows what it has seen itself.
async function readHistory() {
  if (performance.now() - state.historyAt < kHistoryMs) return false;
  state.historyAt = performance.now();
  try {
    const answer = await fetch('api/v1/history', {cache: 'no-store', signal: AbortSignal.timeout(10 * kPollMs)});
    if (!answer.ok) throw new Error('HTTP ' + answer.status);
    learnHistory(await answer.json());
    state.historyTrouble = '';
  } catch (error) {
    state.historyTrouble = error.message;
  }
  return !state.historyTrouble;
}

// Owners of the last hour and of now.
function forgetOwners() {
  const needed = new Set([...state.last.owners, ...state.last.processes].map(ownerKey));
  for (const lists of [state.past, state.live]) {
    for (const entry of [...lists.values()].flat()) for (const key of entry.owner.keys()) needed.add(key);
  }
  for (const key of [...state.owners.keys()]) if (!needed.has(key)) state.owners.delete(key);
}

function learnHistory(history) {
  const keys = history.owners.map(remember);
  state.past = new Map(history.gpus.map(({gpu_uuid: uuid, points}) => [uuid, points.map((point) => {
    const seconds = point.to - point.from;
    return {from: point.from, to: point.to, total: point.energy_joules / seconds,
            nobody: point.unattributed_joules / seconds, limit: point.power_limit_watts,
            owner: new Map(point.owners.map(([place, energy]) => [keys[place], energy / seconds]))};
  })]));
  forgetOwners();
}

// All that is known of a GPU since then, the oldest first. By process only what this page has seen itself.
function entriesOf(uuid, by, since) {
  const live = state.live.get(uuid) || [];
  const past = by === 'owner' ? state.past.get(uuid) || [] : [];
  const end = past.length ? past[past.length - 1].to : -Infinity;
  const rest = live.filter((entry) => entry.to > end).map((entry) => entry.from < end ? {...entry, from: end} : entry);
  return [...past, ...rest].filter((entry) => entry.to > since);
}
