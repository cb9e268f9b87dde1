// SPDX-License-Identifier: Apache-2.0
// A card for each GPU: its watts and who uses them, its memory and who holds it. A GPU that is lost comes first.

const cards = new Map();  // GPU -> parts

function makeCard(uuid) {
  const card = make('article', 'gpu');
  const title = make('h3');
  const parts = {card, name: make('span'), power: make('b'), facts: make('p', 'facts'), exact: make('p', 'facts exact'),
                 split: make('p', 'facts split'),
                 troubles: make('ul', 'troubles'), chart: makeChart(), memory: make('p', 'facts'),
                 track: make('div', 'track'), legend: make('ul', 'legend')};
  title.append(parts.name, parts.power);
  title.id = 'gpu-' + uuid;
  card.setAttribute('aria-labelledby', title.id);
  card.append(title, parts.facts, parts.exact, parts.split, parts.troubles, parts.chart.box, parts.memory, parts.track, parts.legend);
  parts.track.setAttribute('role', 'img');
  card.dataset.uuid = uuid;
  return parts;
}

// The context-switch trace; empty if it is off.
function exactTime(gpu) {
  const exact = gpu.exact_time;
  if (!exact) return '';
  if (!exact.trusted) return 'exact time off: ' + exact.reason;
  return 'exact time · ' + exact.switches + ' switches, ' + exact.switch_seconds.toFixed(1) + ' s between processes' +
    (exact.lost_records > 0 ? ' · ' + exact.lost_records + ' records lost' : '');
}

// The error of the split of shared energy; empty before anything was compared.
function splitError(gpu) {
  if (gpu.attribution_error_ratio === undefined) return '';
  const error = gpu.attribution_error_ratio < 0.005 ? 'less than 1 %' : 'about ' + percent(gpu.attribution_error_ratio);
  const count = gpu.attribution_comparisons;
  return `split off by ${error} (${count} ${count === 1 ? 'comparison' : 'comparisons'})`;
}

// Who holds the memory: {of: Map(key -> bytes), idle: Map, others, nobody}. It adds up to what is used.
function memoryOf(gpu, shown) {
  const [of, idle] = [new Map(), new Map()];
  for (const process of state.last.processes) {
    if (process.gpu_uuid !== gpu.uuid || !process.active) continue;
    const key = view.by === 'owner' ? ownerKey(process) : processKey(process);
    add(of, key, process.memory_used_bytes || 0);
    if (process.idle) add(idle, key, process.memory_used_bytes || 0);
  }
  const held = sum([...of.values()]);
  const named = sum(shown.map(({key}) => of.get(key) || 0));
  return {of, idle, others: held - named, nobody: Math.max(0, (gpu.memory_used_bytes || 0) - held)};
}

function drawMemory(parts, gpu, shown, memory) {
  const total = gpu.memory_total_bytes;
  const pieces = [...shown.map(({key, label, colour}) => ({label, colour, size: memory.of.get(key) || 0})),
                  {label: 'others', colour: 'others', size: memory.others},
                  {label: 'driver, or not known', colour: 'nobody', size: memory.nobody}].filter(({size}) => size > 0);
  // Processes that share memory may count it twice.
  const whole = Math.max(total || 0, sum(pieces.map(({size}) => size))) || 1;
  setText(parts.memory, total ? 'Memory ' + bytes(gpu.memory_used_bytes) + ' of ' + bytes(total) : '');
  parts.track.hidden = !total;
  setAttribute(parts.track, 'aria-label',
               'Memory: ' + (pieces.map(({label, size}) => label + ' ' + bytes(size)).join(', ') || 'free'));
  parts.track.replaceChildren(...pieces.map(({label, colour, size}) => {
    const piece = make('i', colour);
    piece.style.width = 100 * size / whole + '%';
    piece.title = label + ' ' + bytes(size);
    piece.dataset.bytes = size;
    return piece;
  }));
}

function legendLine(colour, label, numbers, value) {
  const line = make('li');
  line.append(make('span', 'chip ' + colour), make('span', 'who', label),
              make('span', 'num', numbers.filter(Boolean).join(' · ')));
  if (value !== undefined) line.dataset.watts = value;
  return line;
}

function drawLegend(parts, shown, memory, entry) {
  const share = (value) => entry && entry.total > 0 && percent(value / entry.total);
  const lines = shown.map(({key, label, colour}) => {
    const power = entry ? entry[view.by].get(key) || 0 : undefined;
    const uncertain = entry && isUncertain(power, entry.errors[view.by].get(key));
    const [held, idle] = [memory.of.get(key), memory.idle.get(key)];
    return legendLine(colour, label, [uncertain ? 'uncertain' : watts(power), !uncertain && share(power),
      held !== idle && bytes(held), idle && bytes(idle) + ' idle'], power);
  });
  if (entry) {
    const others = Math.max(0, entry.total - entry.nobody - sum(shown.map(({key}) => entry[view.by].get(key) || 0)));
    if (others > kLeastError || memory.others > 0) {
      lines.push(legendLine('others', view.by === 'owner' ? 'other owners' : 'other processes',
                            [watts(others), share(others), memory.others > 0 && bytes(memory.others)], others));
    }
    lines.push(legendLine('nobody', 'nobody', [watts(entry.nobody), share(entry.nobody)], entry.nobody));
  }
  parts.legend.replaceChildren(...lines);
}

function wordsOf(gpu, entries, entry) {
  if (!entries.length) return `Watts of GPU ${gpu.index}: nothing yet`;
  const seconds = sum(entries.map((each) => each.to - each.from));
  const mean = sum(entries.map((each) => each.total * (each.to - each.from))) / seconds;
  return `Watts of GPU ${gpu.index} by ${view.by} since ${clock(entries[0].from, true)}: ` +
    (entry ? `now ${watts(entry.total)}, ` : '') + `mean ${watts(mean)}, ` +
    `highest ${watts(Math.max(...entries.map((each) => each.total)))}` +
    (gpu.power_limit_watts ? `, limit ${watts(gpu.power_limit_watts)}` : '') + '. The list below has the numbers of now.';
}

// As the list of its owners: the mean between the same two looks. Before the second look only the driver's reading is there.
function powerOf(gpu) {
  const entry = state.look && state.look.gpus.get(gpu.uuid);
  return !gpu.up ? undefined : entry ? entry.total : gpu.power_watts;
}

function drawGpu(gpu, entries, shown) {
  const parts = cards.get(gpu.uuid);
  const entry = state.look && state.look.gpus.get(gpu.uuid);
  parts.card.classList.toggle('lost', !gpu.up);
  setText(parts.name, 'GPU ' + gpu.index + ' · ' + gpu.model);
  setText(parts.power, gpu.up ? watts(powerOf(gpu)) : 'does not answer');
  if (gpu.up && entry) parts.power.dataset.watts = entry.total;
  else delete parts.power.dataset.watts;
  const xids = Object.keys(gpu.xid_errors || {});
  setText(parts.facts, [gpu.power_limit_watts && 'limit ' + watts(gpu.power_limit_watts),
    gpu.idle_power_watts && 'idle floor ' + watts(gpu.idle_power_watts),
    gpu.utilization_ratio !== undefined && percent(gpu.utilization_ratio) + ' busy',
    gpu.temperature_celsius !== undefined && gpu.temperature_celsius + ' °C',
    gpu.mig && gpu.mig.length + ' MIG instances',
    joules(gpu.energy_joules) + ' since start',
    xids.length > 0 && !gpu.health && 'Xid ' + xids.join(', ')].filter(Boolean).join(' · '));
  setText(parts.exact, exactTime(gpu));
  parts.exact.hidden = !gpu.exact_time;
  setText(parts.split, splitError(gpu));
  parts.split.hidden = gpu.attribution_error_ratio === undefined;
  parts.troubles.replaceChildren(...(gpu.health || []).map((trouble) => make('li', '', trouble)));
  parts.troubles.hidden = !gpu.health;
  const memory = memoryOf(gpu, shown);
  drawMemory(parts, gpu, shown, memory);
  drawLegend(parts, shown, memory, entry);
  setAttribute(parts.chart.plot, 'aria-label', `Watts of GPU ${gpu.index} over time; arrow keys read the values`);
  drawChart(parts.chart, entries, shown, wordsOf(gpu, entries, entry));
}

function drawGpus() {
  const since = state.last.at - 60 * Number(view.span);
  const drawn = state.last.gpus.map((gpu) => {
    if (!cards.has(gpu.uuid)) cards.set(gpu.uuid, makeCard(gpu.uuid));
    const entries = entriesOf(gpu.uuid, view.by, since);
    return {gpu, entries, shown: shownOn(gpu, entries)};
  });
  giveColours(drawn.map(({shown}) => shown));
  for (const {gpu, entries, shown} of drawn) {
    drawGpu(gpu, entries, shown.map((each) => ({...each, colour: 'c' + colourOf.get(each.key)})));
  }
  const here = new Set(state.last.gpus.map((gpu) => gpu.uuid));
  for (const uuid of [...cards.keys()]) if (!here.has(uuid)) cards.delete(uuid);
  const order = [...state.last.gpus].sort((a, b) => a.up - b.up || a.index - b.index);
  const nodes = order.map((gpu) => cards.get(gpu.uuid).card);
  const place = byId('gpus');
  if (nodes.length !== place.children.length || nodes.some((node, i) => place.children[i] !== node)) {
    place.replaceChildren(...nodes);
  }
  const lost = state.last.gpus.filter((gpu) => !gpu.up);
  byId('lost').hidden = !lost.length;
  setText(byId('lost'), lost.map((gpu) => `GPU ${gpu.index} (${gpu.model}, ${gpu.uuid}) does not answer. `).join('').trim());
  const look = state.look;
  setText(byId('moment'), look ? `Watts are the mean from ${clock(look.from, true)} to ${clock(look.to, true)}.`
    : `Power is the driver's reading of ${clock(state.last.at, true)}.`);
}
