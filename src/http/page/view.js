// SPDX-License-Identifier: Apache-2.0
// What the reader chose to see: kept in the address, so that a reload, a bookmark and a colleague see the same.

const kDefaults = {by: 'owner', span: '60', sort: 'watts', order: 'down', q: '', namespace: '', owner: ''};
const kChoices = {by: ['owner', 'process'], span: ['5', '15', '60'], order: ['down', 'up']};
const view = {...kDefaults};

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const [name, usual] of Object.entries(kDefaults)) {
    const word = words.get(name);
    const allowed = name === 'sort' ? columns.map((column) => column.id) : kChoices[name];
    view[name] = word !== null && (!allowed || allowed.includes(word)) ? word.slice(0, 300) : usual;
  }
}

function writeAddress() {
  const words = Object.entries(view).filter(([name, word]) => word !== kDefaults[name]);
  const hash = words.length ? '#' + new URLSearchParams(words) : '';
  if (hash !== location.hash) history.replaceState(null, '', location.pathname + location.search + hash);
}

// An owner as the filters see it: {label, namespace}.
const passes = ({label, namespace}) =>
  (!view.namespace || namespace === view.namespace) && (!view.owner || label === view.owner);

// A process or an allocation: the filters, and every word of the search.
function isWanted(item) {
  if (!passes({label: ownerLabel(item), namespace: namespaceOf(item)})) return false;
  const words = view.q.toLowerCase().split(/\s+/).filter(Boolean);
  const text = [item.name, item.pid, ownerLabel(item), item.namespace, item.container, item.user, item.user_name,
                item.resource, 'GPU ' + item.gpu].filter((part) => part !== undefined).join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}

// Only if they changed: a list that is open must not close.
function setOptions(select, all, names, chosen) {
  const wanted = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
  const now = [...select.options].slice(1).map((option) => option.value);
  if (!select.options.length || now.length !== wanted.length || now.some((name, i) => name !== wanted[i])) {
    select.replaceChildren(...[['', all], ...wanted.map((name) => [name, name])].map(([value, text]) => {
      const option = make('option', '', text);
      option.value = value;
      return option;
    }));
  }
  if (select.value !== chosen) select.value = chosen;
}

function drawChoices() {
  for (const by of kChoices.by) byId('by-' + by).setAttribute('aria-pressed', String(view.by === by));
  byId('span').value = view.span;
  if (byId('search').value !== view.q) byId('search').value = view.q;
  if (!state.last) return;
  const items = [...state.last.processes, ...state.last.owners];
  const sorted = (names) => [...new Set(names)].sort();
  setOptions(byId('namespace'), 'all namespaces', sorted(items.map(namespaceOf)), view.namespace);
  const owners = items.filter((item) => !view.namespace || namespaceOf(item) === view.namespace);
  setOptions(byId('owner'), 'all owners', sorted(owners.map(ownerLabel)), view.owner);
  byId('clear').hidden = !view.q && !view.namespace && !view.owner;
}

function choose(changes) {
  Object.assign(view, changes);
  writeAddress();
  rowsShown = 0;
  redraw();
}

function listenToChoices() {
  for (const by of kChoices.by) byId('by-' + by).addEventListener('click', () => choose({by}));
  byId('span').addEventListener('change', () => choose({span: byId('span').value}));
  byId('search').addEventListener('input', () => choose({q: byId('search').value}));
  byId('namespace').addEventListener('change', () => choose({namespace: byId('namespace').value, owner: ''}));
  byId('owner').addEventListener('change', () => choose({owner: byId('owner').value}));
  byId('clear').addEventListener('click', () => {
    choose({q: '', namespace: '', owner: ''});
    byId('search').focus();
  });
  addEventListener('hashchange', () => {
    readAddress();
    redraw();
  });
}
