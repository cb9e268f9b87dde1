// SPDX-License-Identifier: Apache-2.0
#include "app/bill/html_parts.h"

namespace gpuledger::app {

const char* const kBillStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #ffffff; --line: #d0d7de; --band: #f6f8fa;
  --alone: #0b5cad; --shared: #c4670a; --nobody: #8c959f; --bad: #b00020; --bad-paper: #fff0f0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa4ae; --paper: #10151b; --line: #3b444d; --band: #1a2129;
    --alone: #6cb2ff; --shared: #f0a04b; --nobody: #8c959f; --bad: #ff8a8a; --bad-paper: #3a1518; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; color: var(--ink); background: var(--paper);
  font: 15px/1.45 system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
h1 { font-size: 1.7rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .5rem; }
.when { color: var(--soft); margin: .2rem 0 1rem; }
.figures { display: flex; flex-wrap: wrap; gap: .6rem 2.2rem; margin: 0 0 1rem; padding: 0; }
.figures div { margin: 0; }
.figures dt { color: var(--soft); font-size: .85rem; }
.figures dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
.incomplete { border: 3px solid var(--bad); background: var(--bad-paper); padding: .8rem 1rem; margin: 0 0 1.2rem; }
.incomplete strong { color: var(--bad); font-size: 1.2rem; }
.incomplete ul { margin: .4rem 0 0; padding-left: 1.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; min-width: 9rem; }
td { white-space: nowrap; }
thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; font-size: .85rem; }
thead small { display: block; font-weight: normal; color: var(--soft); }
tbody th { font-weight: normal; }
tbody tr:nth-child(even) { background: var(--band); }
tbody tr.nobody th { font-style: italic; }
tfoot th, tfoot td { border-top: 2px solid var(--ink); border-bottom: 0; font-weight: 700; }
.error { color: var(--soft); font-size: .85em; }
svg { width: 100%; max-width: 56rem; height: auto; display: block; }
svg text { fill: var(--ink); font: 13px system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
svg .value { fill: var(--soft); }
svg .alone { fill: var(--alone); }
svg .shared { fill: url(#hatch); stroke: var(--shared); }
svg .hatch { stroke: var(--shared); stroke-width: 3; }
svg .nobody { fill: none; stroke: var(--nobody); stroke-dasharray: 4 2; }
svg .axis { stroke: var(--line); }
.remark { max-width: 60rem; }
footer { margin-top: 1.5rem; color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line);
  padding-top: .6rem; overflow-wrap: anywhere; }
@page { size: A4 landscape; margin: 12mm; }
@media print {
  :root { color-scheme: light; --ink: #000000; --soft: #444444; --paper: #ffffff; --line: #bbbbbb; --band: #f2f2f2;
    --alone: #0b5cad; --shared: #c4670a; --nobody: #666666; --bad: #b00020; --bad-paper: #ffffff; }
  body { max-width: none; padding: 0; font-size: 9pt; line-height: 1.3; }
  .wide { overflow: visible; }
  th, td { padding: .15rem .35rem; }
  thead { display: table-header-group; }
  tfoot { display: table-row-group; }
  tr, .incomplete, .figures, figure { break-inside: avoid; }
  h2 { break-after: avoid; }
  .alone, .shared, .nobody, tr { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";

}  // namespace gpuledger::app
