// SPDX-License-Identifier: Apache-2.0
// The table of processes: the largest first, and more on request, so that a phone need not scroll through hundreds.

const rateOf = (process) => state.rates.get(processKey(process)) || {};
function powerText(process) {
  const {watts: power, error} = rateOf(process);
  return isUncertain(power, error) ? 'uncertain' : wattsText(power, error);
}
const columns = [
  {id: 'process', title: 'Process', value: (p) => p.name, wide: true},
  {id: 'pid', title: 'PID', value: (p) => p.pid, number: true},
  {id: 'gpu', title: 'GPU', value: (p) => p.gpu + (p.mig ? (p.mig.gi_id + 1) / 1000 : 0), number: true,
   text: (p) => p.gpu + (p.mig ? ' MIG ' + (p.mig.profile || p.mig.gi_id) : '')},
  {id: 'pod', title: 'Pod or owner', value: (p) => p.pod || ownerLabel(p), wide: true},
  {id: 'namespace', title: 'Namespace', value: (p) => p.namespace},
  {id: 'container', title: 'Container', value: (p) => p.container},
  {id: 'watts', title: 'Power', value: (p) => rateOf(p).watts, number: true, text: powerText},
  {id: 'energy', title: 'Energy', value: (p) => p.energy_joules.total, number: true,
   text: (p) => energyText(p.energy_joules.total, energyError(p))},
  {id: 'share', title: 'GPU share', value: (p) => p.sm_utilization_ratio, number: true,
   text: (p) => percent(p.sm_utilization_ratio)},
  {id: 'memory', title: 'Memory', value: (p) => p.memory_used_bytes, number: true,
   text: (p) => bytes(p.memory_used_bytes)},
  {id: 'idle', title: 'Idle', value: (p) => p.active ? p.idle_seconds : undefined, number: true,
   text: (p) => p.active ? (p.idle ? duration(p.idle_seconds) : '') : 'ended'},
];

let rowsShown = 0;     // 0: as many as a page has
let rows = new Map();  // process key -> row
const rowsOfAPage = () => matchMedia('(max-width: 52rem)').matches ? 15 : 50;

function makeHead() {
  for (const column of columns) {
    const cell = make('th', column.number ? 'n' : '');
    cell.scope = 'col';
    cell.setAttribute('role', 'columnheader');
    const button = makeButton(column.title, () => {
      const down = view.sort === column.id ? view.order === 'up' : !!column.number;
      choose({sort: column.id, order: down ? 'down' : 'up'});
    });
    button.dataset.column = column.id;
    cell.append(button);
    byId('processes').tHead.rows[0].append(cell);
    column.head = cell;
  }
  byId('more').addEventListener('click', () => {
    const first = rowsShown || rowsOfAPage();
    rowsShown = first + rowsOfAPage();
    drawTable();
    // The keyboard goes on where the reader was.
    const row = byId('processes').tBodies[0].rows[first];
    row.tabIndex = -1;
    row.focus({preventScroll: true});
  });
}

// All that the filters let through.
function processesInOrder() {
  const column = columns.find((each) => each.id === view.sort);
  const sign = view.order === 'down' ? -1 : 1;
  const keyed = state.last.processes.filter(isWanted)
    .map((process) => ({process, key: processKey(process), value: column.value(process)}));
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
  for (const column of columns) {
    if (column.id !== view.sort) column.head.removeAttribute('aria-sort');
    else setAttribute(column.head, 'aria-sort', view.order === 'down' ? 'descending' : 'ascending');
  }
  const all = processesInOrder();
  const shown = all.slice(0, rowsShown || rowsOfAPage());
  const body = byId('processes').tBodies[0];
  const kept = new Map();
  shown.forEach(({process, key}, place) => {
    const row = rows.get(key) || makeRow();
    kept.set(key, row);
    row.className = !process.active ? 'gone' : process.idle ? 'idle' : '';
    columns.forEach((column, i) => {
      const value = (column.text || column.value)(process);
      setText(row.cells[i], value === undefined ? '' : String(value));
    });
    if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] || null);
  });
  rows = kept;
  while (body.rows.length > kept.size) body.lastElementChild.remove();
  const total = state.last.processes.length;
  const ended = all.filter(({process}) => !process.active).length;
  setText(byId('count'), (all.length === total ? '' : `${all.length} of `) + `${total} processes` +
    (ended ? `, ${ended} of them ended` : ''));
  const left = all.length - shown.length;
  byId('more').hidden = left <= 0;
  setText(byId('more'), `Show ${Math.min(left, rowsOfAPage())} more of ${left}`);
}
