// SPDX-License-Identifier: Apache-2.0
// The lists and the updates: api/v1/snapshot is read every two seconds.

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

function draw(now) {
  const power = now.gpus.reduce((sum, gpu) => sum + (gpu.up && gpu.power_watts || 0), 0);
  const active = now.processes.filter((process) => process.active).length;
  const failing = now.sources.filter((source) => !source.up).length;
  setText(byId('node'), now.node || '');
  setText(byId('summary'), `${now.gpus.length} GPUs · ${watts(power)} · ${active} processes` +
    (now.processes_without_owner ? ` · ${now.processes_without_owner} without a name` : '') +
    (failing ? ` · ${failing} ${failing === 1 ? 'source fails' : 'sources fail'}` : ''));
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
