// SPDX-License-Identifier: Apache-2.0
// A card for each GPU: its watts over the last minutes, its memory, its allocations.

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
  const begin = make('span');
  axis.append(begin, make('span', '', 'now'));
  const parts = {card, begin, name: make('span'), power: make('b'), facts: make('p', 'facts'),
                 exact: make('p', 'facts exact'), troubles: make('ul', 'troubles'), svg, scale, memory: make('p', 'facts'),
                 track: make('div', 'track'), legend: make('ul', 'legend')};
  title.append(parts.name, parts.power);
  card.append(title, parts.facts, parts.exact, parts.troubles, chart, axis, parts.memory, parts.track, parts.legend);
  card.dataset.uuid = uuid;
  return parts;
}

// One path per colour: a rectangle per bar would be thousands of nodes.
function drawChart(parts, list, shown, description) {
  const top = Math.max(10, ...list.map((entry) => entry.total));
  const end = state.last.at;
  // As many whole minutes as there is data for: a new page is not empty.
  const minutes = Math.max(1, Math.ceil((end - (list.length ? list[0].from : end)) / 60));
  const span = Math.min(kWindowSeconds, 60 * minutes);
  const x = (time) => 300 * (1 - (end - time) / span);
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
  setText(parts.begin, span / 60 + ' min ago');
}

function legendLine(colour, label, numbers) {
  const line = make('li');
  line.append(make('span', 'chip ' + colour), make('span', 'who', label),
              make('span', 'num', numbers.filter(Boolean).join(' · ')));
  return line;
}

// The context-switch trace; empty if it is off.
function exactTime(gpu) {
  const exact = gpu.exact_time;
  if (!exact) return '';
  if (!exact.trusted) return 'exact time off: ' + exact.reason;
  return 'exact time · ' + exact.switches + ' switches, ' + exact.switch_seconds.toFixed(1) + ' s between processes' +
    (exact.lost_records > 0 ? ' · ' + exact.lost_records + ' records lost' : '');
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
    xids.length > 0 && !gpu.health && 'Xid ' + xids.join(', ')].filter(Boolean).join(' · '));
  setText(parts.exact, exactTime(gpu));
  parts.exact.hidden = !gpu.exact_time;
  parts.troubles.replaceChildren(...(gpu.health || []).map((trouble) => make('li', '', trouble)));

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
    const unknown = now && isUnknown(power, now.errors[state.by].get(label));
    return legendLine(colour, label, [now && (unknown ? 'not known yet' : watts(power)),
      now && now.total > 0 && !unknown && percent(power / now.total),
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
