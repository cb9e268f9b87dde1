// SPDX-License-Identifier: Apache-2.0
'use strict';
// The first part of page.js, which is served as one file: books, gpus, table, page. The page's data, and the format of
// numbers and owners. It keeps the last minutes itself: the server has no state per client. Watts are differences of
// joules, as everywhere in the ledger. Names are untrusted: text only.

const kPollMs = 2000;
const kWindowSeconds = 300;
const kColours = 8;
const kLeastUnusedSeconds = 10;

const byId = (id) => document.getElementById(id);
const state = {
  last: null,         // the snapshot before, for differences
  rates: new Map(),   // process key -> {watts, error}
  history: new Map(), // GPU -> [{from, to, total, pod: Map(label -> watts), process: Map, errors: {pod, process}}]
  colours: new Map(), // "GPU by" -> Map(label -> number)
  cards: new Map(),
  rows: new Map(),
  by: 'pod',
  sort: {column: 'watts', down: true},
  changedAt: Date.now(),
  step: 1,
};

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Number formats. Absent is empty, never 0.

function scaled(value, step, units) {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) {
    value /= step;
    ++i;
  }
  return value.toFixed(i === 0 || Math.abs(value) >= 100 ? 0 : 1) + ' ' + units[i];
}
const bytes = (value) => value === undefined ? '' : scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
const joules = (value) => value === undefined ? '' : scaled(value, 1000, ['J', 'kJ', 'MJ', 'GJ', 'TJ']);
const percent = (value) => value === undefined ? '' : (100 * value).toFixed(0) + ' %';
const watts = (value) => value === undefined ? '' : value.toFixed(value < 9.95 ? 1 : 0) + ' W';

// An error as large as the watts means unknown. One too small to show is left out.
const kLeastError = 0.05;
const isUnknown = (power, error) => error > kLeastError && error >= power;

function duration(seconds) {
  if (seconds === undefined) return '';
  const s = Math.floor(seconds);
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + (s % 60) + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}

// Names.

// An allocation has only the pod.
const ownerLabel = (owner) => owner.owner_text || owner.namespace + '/' + owner.pod;
const processLabel = (process) => process.name + ' (' + process.pid + ')';
const processKey = (process) =>
  [process.gpu_uuid, process.mig ? process.mig.uuid : '', process.pid, process.start_time_seconds].join(' ');
// All names of the owner, of any kind.
const ownerKey = (owner) => JSON.stringify(Object.entries(owner).filter(([, value]) => typeof value === 'string'));

// From two snapshots to watts.

function differences(before, after, keyOf) {
  const old = new Map(before.map((item) => [keyOf(item), item.energy_joules]));
  const nothing = {total: 0, shared: 0};
  return after.map((item) => {
    const then = old.get(keyOf(item)) || nothing;
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

function add(map, key, value) {
  if (value > 0) map.set(key, (map.get(key) || 0) + value);
}

// False: no comparison, because these are new books (the program was restarted).
function comparable(before, now) {
  const energy = new Map(before.gpus.map((gpu) => [gpu.uuid, gpu.energy_joules]));
  return now.at > before.at && now.cycle > before.cycle &&
      now.gpus.every((gpu) => gpu.energy_joules >= (energy.get(gpu.uuid) || 0));
}

function learn(now) {
  const before = state.last;
  state.last = now;
  if (!before || !comparable(before, now)) {
    state.rates.clear();
    return;
  }
  const seconds = state.step = now.at - before.at;
  const entries = new Map();
  const energy = new Map(before.gpus.map((gpu) => [gpu.uuid, gpu.energy_joules]));
  for (const gpu of now.gpus) {
    const spent = energy.has(gpu.uuid) ? gpu.energy_joules - energy.get(gpu.uuid) : 0;
    entries.set(gpu.uuid, {from: before.at, to: now.at, pod: new Map(), process: new Map(), total: spent / seconds,
                           errors: {pod: new Map(), process: new Map()}});
  }
  // The containers of a pod have one label. The correlation of their errors is unknown: at worst they add up.
  const enter = (by, item, label, drawn) => {
    const entry = entries.get(item.gpu_uuid);
    if (!entry) return;
    add(entry[by], label, drawn.watts);
    add(entry.errors[by], label, drawn.error);
  };
  for (const step of differences(before.owners, now.owners, ownerKey)) {
    enter('pod', step.item, ownerLabel(step.item), rate(step, seconds));
  }
  state.rates.clear();
  for (const step of differences(before.processes, now.processes, processKey)) {
    const drawn = rate(step, seconds);
    enter('process', step.item, processLabel(step.item), drawn);
    if (step.item.active) state.rates.set(processKey(step.item), drawn);
  }
  for (const [uuid, entry] of entries) {
    const list = state.history.get(uuid) || [];
    list.push(entry);
    while (list[0].to < now.at - kWindowSeconds) list.shift();
    state.history.set(uuid, list);
  }
  for (const uuid of [...state.history.keys()]) if (!entries.has(uuid)) state.history.delete(uuid);
}

// The largest consumers of the window have their own colours and keep them while shown.
function coloured(uuid, list) {
  const sums = new Map();
  for (const entry of list) {
    for (const [label, value] of entry[state.by]) add(sums, label, value * (entry.to - entry.from));
  }
  for (const process of state.last.processes) {
    const label = state.by === 'pod' ? ownerLabel(process) : processLabel(process);
    if (process.gpu_uuid === uuid && process.active && !sums.has(label)) sums.set(label, 0);
  }
  const top = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a)).slice(0, kColours);
  const kept = new Map();
  const known = state.colours.get(uuid + state.by) || new Map();
  for (const label of top) if (known.has(label)) kept.set(label, known.get(label));
  const used = new Set(kept.values());
  for (const label of top) {
    if (kept.has(label)) continue;
    let colour = 0;
    while (used.has(colour)) ++colour;
    used.add(colour);
    kept.set(label, colour);
  }
  state.colours.set(uuid + state.by, kept);
  return top.map((label) => ({label, colour: 'c' + kept.get(label)}));
}
