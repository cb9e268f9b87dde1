'use strict';
// Reads api/v1/snapshot every two seconds and keeps the last minutes itself: the server knows nothing of who watches.
// Watts are differences of joules, as everywhere else in the ledger. Names come from strangers: text only.

const kPollMs = 2000;
const kWindowSeconds = 300;
const kColours = 8;
const kLeastUnusedSeconds = 10;

const byId = (id) => document.getElementById(id);
const state = {
  last: null,         // the snapshot before, for differences
  rates: new Map(),   // process key -> {watts, error}
  history: new Map(), // GPU -> [{from, to, pod: Map(label -> watts), process: Map, rest}]
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

// Forms of numbers. Absent is empty, never 0.

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

function duration(seconds) {
  if (seconds === undefined) return '';
  const s = Math.floor(seconds);
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + (s % 60) + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}

// Who is who.

function ownerLabel(owner) {
  if (owner.pod) return (owner.namespace ? owner.namespace + '/' : '') + owner.pod;
  if (owner.owner === 'pod') return 'pod ' + (owner.pod_uid || '');
  if (owner.job) return 'Slurm job ' + owner.job + (owner.step ? '.' + owner.step : '');
  if (owner.owner === 'container') {
    return (owner.runtime || 'container') + ' ' + (owner.container || (owner.container_id || '').slice(0, 12));
  }
  return owner.unit || (owner.user ? 'host, uid ' + owner.user : 'host');
}
const processLabel = (process) => process.name + ' (' + process.pid + ')';
const processKey = (process) =>
  [process.gpu_uuid, process.mig ? process.mig.uuid : '', process.pid, process.start_time_seconds].join(' ');
const ownerKey = (owner) => JSON.stringify([owner.gpu_uuid, owner.owner, owner.namespace, owner.pod, owner.pod_uid,
  owner.container, owner.container_id, owner.job, owner.step, owner.unit, owner.user]);

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

function add(map, key, value) {
  if (value > 0) map.set(key, (map.get(key) || 0) + value);
}

// False: nothing to compare, for these are other books than before (the program was started again).
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
    entries.set(gpu.uuid, {from: before.at, to: now.at, pod: new Map(), process: new Map(), total: spent / seconds});
  }
  for (const {item, total} of differences(before.owners, now.owners, ownerKey)) {
    const entry = entries.get(item.gpu_uuid);
    if (entry) add(entry.pod, ownerLabel(item), total / seconds);
  }
  state.rates.clear();
  for (const {item, total, shared} of differences(before.processes, now.processes, processKey)) {
    const entry = entries.get(item.gpu_uuid);
    if (entry) add(entry.process, processLabel(item), total / seconds);
    const estimated = item.energy_joules.shared;
    const part = estimated > 0 ? (item.energy_standard_error_joules || 0) / estimated : 0;
    if (item.active) state.rates.set(processKey(item), {watts: total / seconds, error: part * shared / seconds});
  }
  for (const [uuid, entry] of entries) {
    const list = state.history.get(uuid) || [];
    list.push(entry);
    while (list[0].to < now.at - kWindowSeconds) list.shift();
    state.history.set(uuid, list);
  }
  for (const uuid of [...state.history.keys()]) if (!entries.has(uuid)) state.history.delete(uuid);
}

// The most expensive of the window have colours of their own and keep them while they are shown.
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

// The GPUs.

function makeCard(uuid) {
  const card = make('article', 'gpu');
  const title = make('h3');
  const chart = make('div', 'chart');
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 300 100');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  const scale = make('span');
  chart.append(svg, scale);
  const axis = make('p', 'axis');
  axis.append(make('span', '', '5 min ago'), make('span', '', 'now'));
  const parts = {card, name: make('span'), power: make('b'), facts: make('p', 'facts'), svg, scale,
                 memory: make('p', 'facts'), track: make('div', 'track'), legend: make('ul', 'legend')};
  title.append(parts.name, parts.power);
  card.append(title, parts.facts, chart, axis, parts.memory, parts.track, parts.legend);
  card.dataset.uuid = uuid;
  return parts;
}

// One path for each colour, however many bars: a rectangle each would be thousands of nodes.
function drawChart(parts, list, shown, description) {
  const top = Math.max(10, ...list.map((entry) => entry.total));
  const end = state.last.at;
  const x = (time) => 300 * (1 - (end - time) / kWindowSeconds);
  const paths = new Map([...shown.map(({colour}) => [colour, '']), ['rest', '']]);
  for (const entry of list) {
    const left = Math.max(0, x(entry.from));
    const width = (x(entry.to) - left) * 0.92;
    let below = 0;
    const bar = (colour, value) => {
      if (!(value > 0)) return;
      const height = 96 * value / top;
      below += height;
      const [x0, y0, w, h] = [left, 100 - below, width, height].map((number) => number.toFixed(2));
      paths.set(colour, paths.get(colour) + `M${x0} ${y0}h${w}v${h}h-${w}z`);
    };
    for (const {label, colour} of shown) bar(colour, entry[state.by].get(label));
    bar('rest', Math.max(0, entry.total - below * top / 96));
  }
  parts.svg.replaceChildren(...[...paths].map(([colour, d]) => {
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    path.setAttribute('class', colour);
    path.setAttribute('d', d);
    return path;
  }));
  parts.svg.setAttribute('aria-label', description);
  setText(parts.scale, watts(top));
}

function legendLine(colour, label, numbers) {
  const line = make('li');
  line.append(make('span', 'chip ' + colour), make('span', 'who', label),
              make('span', 'num', numbers.filter(Boolean).join(' · ')));
  return line;
}

function drawGpu(gpu) {
  if (!state.cards.has(gpu.uuid)) state.cards.set(gpu.uuid, makeCard(gpu.uuid));
  const parts = state.cards.get(gpu.uuid);
  const list = state.history.get(gpu.uuid) || [];
  const now = list[list.length - 1];
  const shown = coloured(gpu.uuid, list);
  parts.card.classList.toggle('gone', !gpu.up);
  setText(parts.name, 'GPU ' + gpu.index + ' · ' + gpu.model);
  setText(parts.power, gpu.up ? watts(gpu.power_watts) : 'does not answer');
  const xids = Object.keys(gpu.xid_errors || {});
  setText(parts.facts, [gpu.power_limit_watts && 'limit ' + watts(gpu.power_limit_watts),
    gpu.idle_power_watts && 'idle floor ' + watts(gpu.idle_power_watts),
    gpu.utilization_ratio !== undefined && percent(gpu.utilization_ratio) + ' busy',
    gpu.temperature_celsius !== undefined && gpu.temperature_celsius + ' °C',
    gpu.mig && gpu.mig.length + ' MIG instances',
    joules(gpu.energy_joules) + ' since start',
    xids.length > 0 && 'Xid ' + xids.join(', ')].filter(Boolean).join(' · '));

  const memory = new Map();
  const idle = new Map();
  for (const process of state.last.processes) {
    if (process.gpu_uuid !== gpu.uuid || !process.active) continue;
    const label = state.by === 'pod' ? ownerLabel(process) : processLabel(process);
    add(memory, label, process.memory_used_bytes || 0);
    if (process.idle) add(idle, label, process.memory_used_bytes || 0);
  }
  const total = gpu.memory_total_bytes;
  setText(parts.memory, total ? 'Memory ' + bytes(gpu.memory_used_bytes) + ' of ' + bytes(total) : '');
  parts.track.hidden = !total;
  parts.track.replaceChildren(...shown.map(({label, colour}) => {
    const piece = make('i', colour);
    piece.style.width = 100 * (memory.get(label) || 0) / (total || 1) + '%';
    piece.title = label;
    return piece;
  }));
  const lines = shown.map(({label, colour}) => {
    const power = now && now[state.by].get(label) || 0;
    return legendLine(colour, label, [now && watts(power), now && now.total > 0 && percent(power / now.total),
      memory.get(label) !== idle.get(label) && bytes(memory.get(label)),
      idle.has(label) && bytes(idle.get(label)) + ' idle']);
  });
  if (now) {
    const named = shown.reduce((sum, {label}) => sum + (now[state.by].get(label) || 0), 0);
    lines.push(legendLine('rest', 'nobody, or others', [watts(Math.max(0, now.total - named))]));
  }
  parts.legend.replaceChildren(...lines);
  drawChart(parts, list, shown,
    `Watts of GPU ${gpu.index} over the last minutes by ${state.by}; the list below has the numbers of now`);
}

// The table.

const rateOf = (process) => state.rates.get(processKey(process)) || {};
const columns = [
  {id: 'process', title: 'Process', value: (p) => p.name, wide: true},
  {id: 'pid', title: 'PID', value: (p) => p.pid, number: true},
  {id: 'gpu', title: 'GPU', value: (p) => p.gpu + (p.mig ? (p.mig.gi_id + 1) / 1000 : 0), number: true,
   text: (p) => p.gpu + (p.mig ? ' MIG ' + (p.mig.profile || p.mig.gi_id) : '')},
  {id: 'pod', title: 'Pod or owner', value: (p) => p.pod || ownerLabel(p), wide: true},
  {id: 'namespace', title: 'Namespace', value: (p) => p.namespace},
  {id: 'container', title: 'Container', value: (p) => p.container},
  {id: 'watts', title: 'Power', value: (p) => rateOf(p).watts, number: true,
   text: (p) => watts(rateOf(p).watts) + (rateOf(p).error > 0.05 ? ' ± ' + rateOf(p).error.toFixed(1) : '')},
  {id: 'energy', title: 'Energy', value: (p) => p.energy_joules.total, number: true,
   text: (p) => joules(p.energy_joules.total)},
  {id: 'share', title: 'GPU share', value: (p) => p.sm_utilization_ratio, number: true,
   text: (p) => percent(p.sm_utilization_ratio)},
  {id: 'memory', title: 'Memory', value: (p) => p.memory_used_bytes, number: true,
   text: (p) => bytes(p.memory_used_bytes)},
  {id: 'idle', title: 'Idle', value: (p) => p.active ? p.idle_seconds : undefined, number: true,
   text: (p) => p.active ? (p.idle ? duration(p.idle_seconds) : '') : 'ended'},
];

function makeHead() {
  for (const column of columns) {
    const cell = make('th', column.number ? 'n' : '');
    cell.scope = 'col';
    cell.setAttribute('role', 'columnheader');
    const button = make('button', '', column.title);
    button.type = 'button';
    button.dataset.column = column.id;
    button.addEventListener('click', () => {
      const same = state.sort.column === column.id;
      state.sort = {column: column.id, down: same ? !state.sort.down : !!column.number};
      drawTable();
    });
    cell.append(button);
    byId('processes').tHead.rows[0].append(cell);
    column.head = cell;
  }
}

function inOrder(processes) {
  const column = columns.find((each) => each.id === state.sort.column);
  const sign = state.sort.down ? -1 : 1;
  const keyed = processes.map((process) => ({process, key: processKey(process), value: column.value(process)}));
  return keyed.sort((a, b) => {
    const absent = (a.value === undefined) - (b.value === undefined);
    if (absent) return absent;
    if (a.value !== b.value) return sign * (a.value < b.value ? -1 : 1);
    return a.key < b.key ? -1 : 1;
  });
}

function makeRow() {
  const row = make('tr');
  row.setAttribute('role', 'row');
  for (const column of columns) {
    const cell = make('td', (column.number ? 'n' : '') + (column.wide ? ' wide' : ''));
    cell.setAttribute('role', 'cell');
    cell.dataset.label = column.title;
    row.append(cell);
  }
  return row;
}

function drawTable() {
  if (!state.last) return;
  for (const column of columns) {
    const order = state.sort.down ? 'descending' : 'ascending';
    if (column.id === state.sort.column) column.head.setAttribute('aria-sort', order);
    else column.head.removeAttribute('aria-sort');
  }
  const body = byId('processes').tBodies[0];
  const rows = new Map();
  inOrder(state.last.processes).forEach(({process, key}, place) => {
    const row = state.rows.get(key) || makeRow();
    rows.set(key, row);
    row.className = !process.active ? 'gone' : process.idle ? 'idle' : '';
    columns.forEach((column, i) => {
      const value = (column.text || column.value)(process);
      setText(row.cells[i], value === undefined ? '' : String(value));
    });
    if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] || null);
  });
  state.rows = rows;
  while (body.rows.length > rows.size) body.lastElementChild.remove();
}

// The rest of the page.

function listLine(mark, className, text) {
  const line = make('li');
  line.append(make('b', className, mark), make('span', '', text));
  return line;
}

function drawWaste(now) {
  const lines = now.processes.filter((p) => p.active && p.idle)
    .sort((a, b) => (b.memory_used_bytes || 0) - (a.memory_used_bytes || 0))
    .map((p) => listLine(bytes(p.memory_used_bytes), 'idle',
      `held by ${processLabel(p)} of ${ownerLabel(p)} on GPU ${p.gpu}, idle for ${duration(p.idle_seconds)}`));
  for (const given of now.allocations || []) {
    if (!(given.idle_seconds >= kLeastUnusedSeconds)) continue;
    const share = given.replica === undefined ? '' : ` (replica ${given.replica})`;
    lines.push(listLine(given.mig_uuid ? 'MIG' : 'GPU ' + given.gpu, 'idle',
      `given to ${ownerLabel(given)}, container ${given.container || '?'}, as ${given.resource}${share}: ` +
      `unused for ${duration(given.idle_seconds)}`));
  }
  if (!lines.length) lines.push(listLine('none', 'up', 'nobody holds GPU memory or a GPU without working'));
  byId('waste').replaceChildren(...lines);
}

function drawSources(now) {
  byId('sources').replaceChildren(...now.sources.map((source) =>
    listLine(source.up ? 'works' : 'fails', source.up ? 'up' : 'down',
             source.source + (source.reason ? ': ' + source.reason : ''))));
}

function drawGpus() {
  if (!state.last) return;
  for (const gpu of state.last.gpus) drawGpu(gpu);
  const here = new Set(state.last.gpus.map((gpu) => gpu.uuid));
  for (const uuid of [...state.cards.keys()]) if (!here.has(uuid)) state.cards.delete(uuid);
  const cards = state.last.gpus.map((gpu) => state.cards.get(gpu.uuid).card);
  const place = byId('gpus');
  const same = cards.length === place.children.length && cards.every((card, i) => place.children[i] === card);
  if (!same) place.replaceChildren(...cards);
}

function draw(now) {
  const power = now.gpus.reduce((sum, gpu) => sum + (gpu.up && gpu.power_watts || 0), 0);
  const active = now.processes.filter((process) => process.active).length;
  const failing = now.sources.filter((source) => !source.up).length;
  setText(byId('node'), now.node || '');
  setText(byId('summary'), `${now.gpus.length} GPUs · ${watts(power)} · ${active} processes` +
    (now.processes_without_owner ? ` · ${now.processes_without_owner} without a name` : '') +
    (failing ? ` · ${failing} sources fail` : ''));
  setText(byId('version'), now.version ? 'gpu-ledger ' + now.version : '');
  byId('simulated').hidden = !now.simulated;
  document.title = (now.node ? now.node + ' · ' : '') + watts(power) + ' · gpu-ledger';
  drawGpus();
  drawWaste(now);
  drawTable();
  drawSources(now);
}

function say(trouble) {
  setText(byId('trouble'), trouble);
  byId('trouble').hidden = !trouble;
}

async function poll() {
  try {
    const answer = await fetch('api/v1/snapshot', {cache: 'no-store', signal: AbortSignal.timeout(10 * kPollMs)});
    if (!answer.ok) throw new Error((await answer.text()).trim() || 'HTTP ' + answer.status);
    const now = await answer.json();
    if (!state.last || now.at !== state.last.at) {
      state.changedAt = Date.now();
      learn(now);
      draw(now);
    }
    const old = (Date.now() - state.changedAt) / 1000;
    say(old > Math.max(15, 3 * state.step) ? `The numbers are ${duration(old)} old: the driver does not answer.` : '');
  } catch (error) {
    say('gpu-ledger does not answer (' + error.message + '); what you see is old. Trying again.');
  }
  setTimeout(poll, kPollMs);
}

for (const by of ['pod', 'process']) {
  byId('by-' + by).addEventListener('click', () => {
    state.by = by;
    for (const each of ['pod', 'process']) byId('by-' + each).setAttribute('aria-pressed', String(each === by));
    drawGpus();
  });
}
makeHead();
poll();
