// SPDX-License-Identifier: Apache-2.0
// Totals per namespace over all GPUs. With what nobody used they add up to the GPUs' own figures. The errors of owners may
// cancel, or else add up: their plain sum is the most that the error can be. Even if it is as large as the watts, the sum may
// be known well, so it is never called uncertain.

const kNamespaceRows = 12;
let allNamespaces = false;

function namespaceTotals() {
  const totals = new Map();
  const of = (name) => {
    if (!totals.has(name)) totals.set(name, {name, energy: 0, energyError: 0, power: undefined, powerError: 0,
                                               memory: 0, idle: 0, processes: 0});
    return totals.get(name);
  };
  for (const account of [...state.last.owners, ...state.last.closed]) {
    const total = of(namespaceOf(account));
    total.energy += account.energy_joules.total;
    total.energyError += energyError(account) ?? NaN;  // closed accounts have none any more
    if (state.look && state.look.gpus.has(account.gpu_uuid)) total.power = total.power || 0;  // else it is not known
  }
  for (const process of state.last.processes) {
    if (!process.active) continue;
    const total = of(namespaceOf(process));
    total.processes += 1;
    total.memory += process.memory_used_bytes || 0;
    if (process.idle) total.idle += process.memory_used_bytes || 0;
  }
  for (const entry of state.look ? state.look.gpus.values() : []) {
    for (const [key, value] of entry.owner) of(state.owners.get(key).namespace).power += value;
    for (const [key, value] of entry.errors.owner) of(state.owners.get(key).namespace).powerError += value;
  }
  return [...totals.values()].sort((a, b) => (b.power || 0) - (a.power || 0) || b.energy - a.energy || (a.name < b.name ? -1 : 1));
}

function summed(name, rows) {
  const total = (field) => sum(rows.map((row) => row[field]).filter((value) => value !== undefined));
  return {name, energy: total('energy'), energyError: total('energyError'), powerError: total('powerError'),
          power: rows.some((row) => row.power !== undefined) ? total('power') : undefined, memory: total('memory'),
          idle: total('idle'), processes: total('processes')};
}

const kErrorTitle = "At most: the sum of its owners' standard errors.";
const kNoErrorTitle = 'An estimate. The error of owners that ended is not known any more.';

function namespaceRow(row, className) {
  const line = make('tr', className);
  const name = make('th', 'wide');
  name.scope = 'row';
  name.dataset.label = 'Namespace';
  if (row.choice) {
    const button = makeButton(row.name, () => choose({namespace: view.namespace === row.name ? '' : row.name, owner: ''}));
    button.setAttribute('aria-pressed', String(view.namespace === row.name));
    name.append(button);
  } else {
    name.textContent = row.name;
  }
  line.append(name);
  const {energyError: error} = row;
  for (const [label, value, text] of [
    ['Power', row.power, (each) => wattsText(each, row.powerError)],
    ['Energy', row.energy, (each) => energyText(each, Number.isNaN(error) ? undefined : error)],
    ['Memory', row.memory, (each) => each ? bytes(each) : ''], ['Idle memory', row.idle, (each) => each ? bytes(each) : ''],
    ['Processes', row.processes, (each) => each ? String(each) : '']]) {
    const cell = make('td', 'n', text(value));
    cell.dataset.label = label;
    if (value !== undefined) cell.dataset.value = value;
    if (cell.textContent.includes('±')) cell.title = kErrorTitle;
    else if (cell.textContent.includes('~')) cell.title = kNoErrorTitle;
    line.append(cell);
  }
  return line;
}

function drawNamespaces() {
  const body = byId('namespaces').tBodies[0];
  const focused = body.contains(document.activeElement) && document.activeElement.textContent;
  const rows = namespaceTotals();
  const shown = allNamespaces ? rows : rows.slice(0, kNamespaceRows);
  const rest = rows.slice(shown.length);
  const looks = state.look ? [...state.look.gpus.values()] : [];
  // Counted by themselves and not as what is left: a sum that does not add up would show.
  const power = (field) => looks.length ? sum(looks.map((entry) => entry[field])) : undefined;
  const nobody = {name: 'nobody', energy: sum(state.last.gpus.map(nobodysJoules)), energyError: 0, memory: 0, idle: 0,
                  processes: 0, power: power('nobody'), powerError: 0};
  const all = {...summed('all GPUs', rows), energy: sum(state.last.gpus.map((gpu) => gpu.energy_joules)), energyError: 0,
               power: power('total'), powerError: 0};
  body.replaceChildren(...shown.map((row) => namespaceRow({...row, choice: true})),
    ...(rest.length ? [namespaceRow(summed(`${rest.length} other namespaces`, rest))] : []),
    namespaceRow(nobody), namespaceRow(all, 'total'));
  const more = byId('more-namespaces');
  more.hidden = rows.length <= kNamespaceRows;
  setText(more, allNamespaces ? 'Show fewer' : `Show all ${rows.length} namespaces`);
  if (focused) [...body.querySelectorAll('button')].find((button) => button.textContent === focused)?.focus();
}
