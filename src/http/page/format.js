// SPDX-License-Identifier: Apache-2.0
'use strict';
// The first part of page.js, which is served as one file; src/http/CMakeLists.txt has the order. Nodes, numbers and
// names. Names are untrusted: text only.

const byId = (id) => document.getElementById(id);

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function makeButton(text, act) {
  const button = make('button', '', text);
  button.type = 'button';
  button.addEventListener('click', act);
  return button;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// Number formats. Absent is empty, never 0.

function scaled(value, step, units) {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) {
    value /= step;
    ++i;
  }
  return value.toFixed(i === 0 || Math.abs(value) >= 100 ? 0 : 1) + ' ' + units[i];
}
const bytes = (value) => value === undefined ? '' : scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
const kJoules = ['J', 'kJ', 'MJ', 'GJ', 'TJ'];
const joules = (value) => value === undefined ? '' : scaled(value, 1000, kJoules);
const percent = (value) => value === undefined ? '' : (100 * value).toFixed(0) + ' %';
const watts = (value) => value === undefined ? '' : value.toFixed(value < 9.95 ? 1 : 0) + ' W';

// An error as large as the watts: they say nothing. One too small to show is left out.
const kLeastError = 0.05;
const isUncertain = (power, error) => error > kLeastError && error >= power;
const wattsText = (power, error) => watts(power) + (error > kLeastError ? ' ± ' + watts(error).slice(0, -2) : '');

// Joules with their standard error in the same unit. undefined: the error is not known any more.
function energyText(value, error) {
  const text = joules(value);
  if (error === undefined) return '~' + text;
  const [number, unit] = text.split(' ');
  const shown = (error / 1000 ** kJoules.indexOf(unit)).toFixed(number.includes('.') ? 1 : 0);
  return text + (Number(shown) > 0 ? ' ± ' + shown : '');
}
// One that was never shared has none.
const energyError = (item) => item.energy_standard_error_joules ?? (item.energy_joules.shared > 0 ? undefined : 0);

function duration(seconds) {
  if (seconds === undefined) return '';
  const s = Math.floor(seconds);
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + (s % 60) + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}

// The server's time, in the reader's time zone.
function clock(seconds, precise) {
  const form = {hour: '2-digit', minute: '2-digit', hourCycle: 'h23', ...(precise && {second: '2-digit'})};
  return new Date(1000 * seconds).toLocaleTimeString('en-GB', form);
}

// Names.

// An allocation has only the pod.
const ownerLabel = (item) => item.owner_text || item.namespace + '/' + item.pod;
// The containers of a pod are one owner. The same in the snapshot and in the history.
const ownerKey = (item) => [item.owner, item.namespace || '', ownerLabel(item)].join('\n');
const processLabel = (process) => process.name + ' (' + process.pid + ')';
// A process whose owner became known later has an account for each.
const processKey = (process) =>
  [process.gpu_uuid, process.mig ? process.mig.uuid : '', process.pid, process.start_time_seconds,
   process.container || '', ownerKey(process)].join(' ');
// An account: all names of the owner, of any kind. The user of its processes may become known later: it is the same account.
const accountKey = (item) => JSON.stringify(Object.entries(item)
  .filter(([name, value]) => typeof value === 'string' && name !== 'uid' && name !== 'user_name'));

// Owners without a namespace are under their kind, in brackets: no namespace has such a name.
const kKinds = {@OWNER_KINDS@};
const namespaceOf = (item) => item.namespace || '(' + (kKinds[item.owner] || item.owner) + ')';

const sum = (list) => list.reduce((total, value) => total + value, 0);
function add(map, key, value) {
  if (value > 0) map.set(key, (map.get(key) || 0) + value);
}
