// SPDX-License-Identifier: Apache-2.0
// What the table shows, as a file: the same filters and order, all rows, plain numbers. Absent is empty.

function recordOf(process, at) {
  const {watts: power, error} = rateOf(process);
  return {
    at, gpu: process.gpu, gpu_uuid: process.gpu_uuid, mig_uuid: process.mig && process.mig.uuid, pid: process.pid,
    name: process.name, owner: process.owner, owner_text: process.owner_text, namespace: process.namespace,
    pod: process.pod, container: process.container, user_name: process.user_name, active: process.active, power_watts: power,
    power_standard_error_watts: error, energy_joules: process.energy_joules.total,
    energy_standard_error_joules: process.energy_standard_error_joules,
    sm_utilization_ratio: process.sm_utilization_ratio, memory_used_bytes: process.memory_used_bytes,
    memory_peak_bytes: process.memory_peak_bytes, idle_seconds: process.idle_seconds,
  };
}

const records = () => processesInOrder().map(({process}) => recordOf(process, state.last.at));

// As the bill's CSV writes a cell (src/app/bill/csv_cell.cc): on one line, and a name that begins like a formula gets an
// apostrophe before it, because a spreadsheet would run it. White space before the formula does not stop all of them.
const kUnprintable = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const kFormula = /^[ \xa0\u1680\u2000-\u200d\u202f\u205f\u2060\u3000\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]/;

function cell(value) {
  if (value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const text = value.replace(kUnprintable, '');
  const safe = kFormula.test(text) ? "'" + text : text;
  return /[",]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}

function asCsv() {
  const names = Object.keys(recordOf({energy_joules: {}}, 0));
  return [names, ...records().map((record) => names.map((name) => cell(record[name])))]
    .map((line) => line.join(',') + '\r\n').join('');
}

function asJson() {
  const {node, version, at} = state.last;
  const watts = state.look ? {watts_from: state.look.from, watts_to: state.look.to} : {};
  return JSON.stringify({at, node, version, ...watts, view: {...view}, processes: records()}, null, 1) + '\n';
}

function save(text, type, ending) {
  const link = make('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  const when = new Date(1000 * state.last.at).toISOString().slice(0, 19).replace(/[-:]/g, '');
  link.download = ['gpu-ledger', (state.last.node || '').replace(/[^\w.-]/g, '_'), when].filter(Boolean).join('-') + ending;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), kPollMs);
}

function listenToDownloads() {
  byId('csv').addEventListener('click', () => state.last && save(asCsv(), 'text/csv', '.csv'));
  byId('json').addEventListener('click', () => state.last && save(asJson(), 'application/json', '.json'));
}
