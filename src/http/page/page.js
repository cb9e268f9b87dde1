// SPDX-License-Identifier: Apache-2.0
// The lists and the updates: api/v1/snapshot is read every two seconds, api/v1/history once a minute.

const kLeastUnusedSeconds = 10;
const kWasteLines = 8;
let allWaste = false;

function listLine(mark, className, text) {
  const line = make('li');
  line.append(make('b', className, mark), make('span', '', text));
  return line;
}

function drawWaste() {
  const lines = state.last.processes.filter((p) => p.active && p.idle && isWanted(p))
    .sort((a, b) => (b.memory_used_bytes || 0) - (a.memory_used_bytes || 0))
    .map((p) => [bytes(p.memory_used_bytes),
      `held by ${processLabel(p)} of ${ownerLabel(p)} on GPU ${p.gpu}, idle for ${duration(p.idle_seconds)}`]);
  for (const given of state.last.allocations || []) {
    if (!(given.idle_seconds >= kLeastUnusedSeconds) || !isWanted(given)) continue;
    const share = given.replica === undefined ? '' : ` (replica ${given.replica})`;
    lines.push([given.mig_uuid ? 'MIG' : 'GPU ' + given.gpu,
      `given to ${ownerLabel(given)}, container ${given.container || '?'}, as ${given.resource}${share}: ` +
      `unused for ${duration(given.idle_seconds)}`]);
  }
  const shown = allWaste ? lines : lines.slice(0, kWasteLines);
  byId('waste').replaceChildren(...(lines.length ? shown.map(([mark, text]) => listLine(mark, 'idle', text))
    : [listLine('none', 'up', view.q || view.namespace || view.owner ? 'no match'
        : 'nobody holds GPU memory or a GPU without working')]));
  byId('more-waste').hidden = lines.length <= kWasteLines;
  setText(byId('more-waste'), allWaste ? 'Show fewer' : `Show all ${lines.length}`);
}

// One that nobody needs may fail.
const fails = (source) => !source.up && source.needed !== false;

function drawSources() {
  byId('sources').replaceChildren(...state.last.sources.map((source) =>
    listLine(source.up ? 'works' : fails(source) ? 'fails' : 'not needed', source.up ? 'up' : fails(source) ? 'down' : '',
             source.source + (source.reason ? ': ' + source.reason : ''))));
}

function drawSummary() {
  const now = state.last;
  // The sum of what the cards say. If none says anything, there is none.
  const known = now.gpus.map(powerOf).filter((power) => power !== undefined);
  const power = known.length ? watts(sum(known)) : '';
  const of = known.length < now.gpus.length ? ` of ${known.length} ${known.length === 1 ? 'GPU' : 'GPUs'}` : '';
  const active = now.processes.filter((process) => process.active).length;
  const failing = now.sources.filter(fails).length;
  const lost = now.gpus.filter((gpu) => !gpu.up).length;
  setText(byId('node'), now.node || '');
  setText(byId('summary'), `${now.gpus.length} GPUs` + (lost ? `, ${lost} lost` : '') +
    (power && ` · ${power}${of}`) + ` · ${active} processes` +
    (now.processes_without_owner ? ` · ${now.processes_without_owner} without a name` : '') +
    (now.left_out ? ` · left out by --max-series: ${now.left_out.processes} processes, ${now.left_out.owners} owners` : '') +
    (failing ? ` · ${failing} ${failing === 1 ? 'source fails' : 'sources fail'}` : ''));
  setText(byId('version'), now.version ? 'gpu-ledger ' + now.version : '');
  byId('simulated').hidden = !now.simulated;
  document.title = (lost ? `${lost} lost · ` : '') + (now.node ? now.node + ' · ' : '') + (power && power + ' · ') + 'gpu-ledger';
}

function redraw() {
  drawChoices();
  if (!state.last) return;
  drawSummary();
  drawGpus();
  drawNamespaces();
  drawWaste();
  drawTable();
  drawSources();
}

function say(trouble) {
  setText(byId('trouble'), trouble);
  byId('trouble').hidden = !trouble;
}

async function readSnapshot() {
  const answer = await fetch('api/v1/snapshot', {cache: 'no-store', signal: AbortSignal.timeout(10 * kPollMs)});
  if (!answer.ok) throw new Error((await answer.text()).trim() || 'HTTP ' + answer.status);
  return answer.json();
}

async function update() {
  let now;
  try {
    now = await readSnapshot();
  } catch (error) {
    return say('gpu-ledger does not answer (' + error.message + '); what you see is old. Trying again.');
  }
  if (!state.last || now.at !== state.last.at) {
    state.changedAt = Date.now();
    learn(now);
    redraw();
    if (await readHistory()) redraw();
  }
  const old = (Date.now() - state.changedAt) / 1000;
  say(old > Math.max(15, 3 * state.step) ? `The numbers are ${duration(old)} old: the driver does not answer.`
    : state.historyTrouble && `The last hour cannot be read (${state.historyTrouble}). Trying again in a minute.`);
}

function poll() {
  update().finally(() => setTimeout(poll, kPollMs));
}

byId('more-waste').addEventListener('click', () => {
  allWaste = !allWaste;
  redraw();
});
byId('more-namespaces').addEventListener('click', () => {
  allNamespaces = !allNamespaces;
  redraw();
});
makeHead();
readAddress();
restoreColours();
listenToChoices();
listenToDownloads();
drawChoices();
poll();
