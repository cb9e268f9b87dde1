// SPDX-License-Identifier: Apache-2.0
// Who has a line and a colour of its own. An owner has one colour on all cards, by its name and not by its place.

const kShown = 8;
const kColours = 16;
const kMostColours = 1000;   // that are remembered, of a page that is open for weeks
const colourOf = new Map();  // key -> number

// A reload of the tab keeps them. A browser may forbid that.
function restoreColours() {
  try {
    for (const [key, colour] of JSON.parse(sessionStorage.getItem('colours') || '[]')) {
      if (colour >= 0 && colour < kColours) colourOf.set(key, colour);
    }
  } catch {
    colourOf.clear();
  }
}
function keepColours() {
  try {
    sessionStorage.setItem('colours', JSON.stringify([...colourOf]));
  } catch {
    return;
  }
}

// FNV-1a: the same for every reader and after every reload.
function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; ++i) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

// For a GPU those who used most of it in the span, then those who hold it: [{key, label}].
function shownOn(gpu, entries) {
  const used = new Map();
  const processes = new Map();
  for (const process of state.last.processes) {
    if (process.gpu_uuid !== gpu.uuid) continue;
    processes.set(processKey(process), process);
    const key = view.by === 'owner' ? ownerKey(process) : processKey(process);
    if (process.active) used.set(key, used.get(key) || 0);
  }
  for (const entry of entries) {
    for (const [key, value] of entry[view.by]) used.set(key, (used.get(key) || 0) + value * (entry.to - entry.from));
  }
  // A process that was forgotten has no name any more: it is among the others.
  const owner = (key) => state.owners.get(view.by === 'owner' ? key : ownerKey(processes.get(key)));
  const allowed = (key) => (view.by === 'owner' || processes.has(key)) && passes(owner(key));
  const label = (key) => view.by === 'owner' ? owner(key).label : processLabel(processes.get(key));
  return [...used.keys()].filter(allowed).sort((a, b) => used.get(b) - used.get(a) || (a < b ? -1 : 1)).slice(0, kShown)
    .map((key) => ({key, label: label(key)}));
}

// cards: lists of {key}. A colour stays; two on one card differ as long as there are enough.
function giveColours(cards) {
  const beside = new Map();  // key -> those on the same cards
  for (const card of cards) {
    for (const {key} of card) {
      if (!beside.has(key)) beside.set(key, new Set());
      for (const other of card) if (other.key !== key) beside.get(key).add(other.key);
    }
  }
  const strangers = [...beside.keys()].filter((key) => !colourOf.has(key)).sort();
  for (const key of strangers) {
    const taken = new Set([...beside.get(key)].map((other) => colourOf.get(other)));
    const first = hash(key) % kColours;
    let colour = first;
    do {
      if (!taken.has(colour)) break;
      colour = (colour + 1) % kColours;
    } while (colour !== first);
    colourOf.set(key, colour);
  }
  if (!strangers.length) return;
  for (const key of colourOf.keys()) {
    if (colourOf.size <= kMostColours) break;
    if (!beside.has(key)) colourOf.delete(key);
  }
  keepColours();
}
