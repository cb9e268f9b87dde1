// SPDX-License-Identifier: Apache-2.0
// The watts of a GPU over time: who used them, above each other, with axes, the power limit and the values under the
// pointer or the arrow keys.

const kWidth = 600;
const kHeight = 100;

function svgNode(tag, attributes) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function makeChart() {
  const box = make('figure', 'chart');
  const plot = make('div', 'plot');
  plot.tabIndex = 0;
  plot.setAttribute('role', 'slider');
  plot.setAttribute('aria-valuemin', '0');
  const svg = svgNode('svg', {viewBox: `0 0 ${kWidth} ${kHeight}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'});
  const chart = {box, plot, svg, cursor: make('i', 'cursor'), tip: make('div', 'tip'), labels: make('div', 'labels'),
                 words: make('figcaption', 'unseen'), at: null, data: null};
  chart.labels.setAttribute('aria-hidden', 'true');
  chart.cursor.hidden = chart.tip.hidden = true;
  plot.append(svg, chart.cursor, chart.tip);
  box.append(plot, chart.labels, chart.words);
  const follow = (event) => {
    const place = plot.getBoundingClientRect();
    const {begin, end} = chart.data;
    pointAt(chart, begin + (end - begin) * (event.clientX - place.left) / place.width);
  };
  plot.addEventListener('pointerdown', follow);
  plot.addEventListener('pointermove', follow);
  // A finger leaves at once, and would see nothing: its values stay until it touches something else.
  plot.addEventListener('pointerleave', (event) => event.pointerType === 'mouse' && pointAt(chart, null));
  plot.addEventListener('blur', () => pointAt(chart, null));
  plot.addEventListener('keydown', (event) => {
    const {entries} = chart.data;
    if (event.key === 'Escape') return pointAt(chart, null);
    const last = entries.length - 1;
    const here = chart.at === null ? last + 1 : entryAt(chart);
    const to = {ArrowLeft: here - 1, ArrowDown: here - 1, ArrowRight: here + 1, ArrowUp: here + 1, Home: 0, End: last,
                PageUp: here + 10, PageDown: here - 10}[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    const entry = entries[Math.min(last, Math.max(0, to))];
    pointAt(chart, (entry.from + entry.to) / 2);
  });
  return chart;
}

// -1: nothing was known then.
const entryAt = (chart) => chart.data.entries.findIndex((entry) => entry.from <= chart.at && chart.at <= entry.to);

// What an entry adds up to: those with a name, all others, nobody.
function partsOf(entry, shown) {
  const named = shown.map(({key, label, colour}) => ({label, colour, value: entry[view.by].get(key) || 0}));
  const others = Math.max(0, entry.total - entry.nobody - sum(named.map((part) => part.value)));
  return [...named, {label: 'others', colour: 'others', value: others},
          {label: 'nobody', colour: 'nobody', value: entry.nobody}];
}

function pointAt(chart, time) {
  chart.at = time;
  const {entries, shown, begin, end} = chart.data;
  const place = time === null ? -1 : entryAt(chart);
  chart.cursor.hidden = chart.tip.hidden = place < 0;
  chart.plot.setAttribute('aria-valuemax', String(Math.max(0, entries.length - 1)));
  chart.plot.setAttribute('aria-valuenow', String(place < 0 ? Math.max(0, entries.length - 1) : place));
  if (place < 0) return chart.plot.setAttribute('aria-valuetext', chart.data.words);
  const entry = entries[place];
  const left = 100 * ((entry.from + entry.to) / 2 - begin) / (end - begin);
  chart.cursor.style.left = left + '%';
  chart.tip.classList.toggle('left', left > 50);
  const parts = partsOf(entry, shown).filter((part) => part.value >= kLeastError);
  const title = `${clock(entry.from, true)} to ${clock(entry.to, true)}: ${watts(entry.total)}`;
  chart.tip.replaceChildren(make('b', '', title), ...parts.map((part) => {
    const line = make('div');
    line.append(make('span', 'chip ' + part.colour), make('span', 'who', part.label), make('span', '', watts(part.value)));
    return line;
  }));
  chart.plot.setAttribute('aria-valuetext', title + parts.map((part) => `, ${part.label} ${watts(part.value)}`).join(''));
}

// Round numbers, at most so many.
function ticks(from, to, most, steps) {
  const step = steps.find((each) => (to - from) / each <= most) || steps[steps.length - 1];
  const list = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) list.push(at);
  return list;
}
const kWattSteps = [1, 2, 5].flatMap((digit) => [1, 10, 100, 1000].map((ten) => digit * ten)).sort((a, b) => a - b);
const kTimeSteps = [10, 30, 60, 120, 300, 600, 900, 1200];

function drawLabels(chart, {begin, end, top, limit}) {
  const list = [];
  const put = (className, text, side, share) => {
    const label = make('span', className, text);
    label.style[side] = 100 * share + '%';
    list.push(label);
  };
  for (const value of ticks(0, top, 4, kWattSteps)) put('y', value + ' W', 'bottom', value / top);
  if (limit) put('y limit', 'limit', 'bottom', limit / top);
  const zone = 60 * new Date(1000 * end).getTimezoneOffset();  // round numbers of the reader's clock
  for (const time of ticks(begin - zone, end - zone, 5, kTimeSteps)) {
    const share = (time + zone - begin) / (end - begin);
    if (share < 0.88) put('x', clock(time + zone, end - begin < 300), 'left', share);
  }
  put('x last', 'now', 'left', 1);
  chart.labels.replaceChildren(...list);
}

// One path per colour: a rectangle per bar would be thousands of nodes.
function drawChart(chart, entries, shown, words) {
  const end = state.last.at;
  // As many whole minutes as there is data for: a new page is not empty.
  const minutes = Math.ceil((end - (entries.length ? entries[0].from : end)) / 60);
  const begin = end - 60 * Math.min(Number(view.span), Math.max(1, minutes));
  const limit = entries.length ? entries[entries.length - 1].limit : undefined;
  const top = Math.max(10, limit ? 1.08 * limit : 0, ...entries.map((entry) => 1.04 * entry.total));
  chart.data = {entries, shown, begin, end, words};
  const x = (time) => Math.max(0, kWidth * (time - begin) / (end - begin));
  const paths = new Map([...shown.map(({colour}) => colour), 'others', 'nobody'].map((colour) => [colour, '']));
  for (const entry of entries) {
    const [left, right] = [x(entry.from), x(entry.to)];
    let below = 0;
    for (const {colour, value} of partsOf(entry, shown)) {
      const height = kHeight * value / top;
      if (!(height > 0)) continue;
      below += height;
      const [x0, y0, w, h] = [left, kHeight - below, right - left, height].map((number) => number.toFixed(2));
      paths.set(colour, paths.get(colour) + `M${x0} ${y0}h${w}v${h}h-${w}z`);
    }
  }
  const across = (value) => `M0 ${(kHeight * (1 - value / top)).toFixed(2)}h${kWidth}`;
  const lines = [svgNode('path', {class: 'grid', d: ticks(0, top, 4, kWattSteps).map(across).join('')})];
  if (limit) lines.push(svgNode('path', {class: 'limit', d: across(limit)}));
  chart.svg.replaceChildren(...[...paths].map(([colour, d]) => svgNode('path', {class: colour, d})), ...lines);
  setText(chart.words, words);
  drawLabels(chart, {begin, end, top, limit});
  pointAt(chart, chart.at);
}
