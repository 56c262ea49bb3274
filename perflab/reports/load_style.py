"""The looks of a load's page: light and dark, wide and narrow, on paper."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #222222; --muted: #5f5f5f;
  --faint: #d9d9d9; --first: #0067a0; --second: #b84d00; --third: #007a5a; --failed: #b80000;
  --good: #e3f3e8; --bad: #fbe3e3; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #e8e8e8; --muted: #a8a8a8;
  --faint: #43474f; --first: #5cb6ee; --second: #ff9d57; --third: #3fcf9f; --failed: #ff7b7b;
  --good: #16331f; --bad: #431c1c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 56rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 .5rem; }
section { margin: 0 0 1.75rem; }
.valid, .invalid { padding: .75rem 1rem; border-left: .4rem solid; }
.valid { background: var(--good); border-color: var(--third); }
.invalid { background: var(--bad); border-color: var(--failed); }
.valid p, .valid ul, .invalid ul { margin: 0; }
ul { padding-left: 1.2rem; overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: .75rem 2rem; margin: 0; }
dt { color: var(--muted); font-size: .85rem; }
dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--faint);
  white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; font-weight: normal; }
td:last-child:not(:nth-child(n+4)) { text-align: left; white-space: normal; }
thead th { color: var(--muted); font-weight: normal; }
pre { padding: .75rem; border: 1px solid var(--faint); white-space: pre-wrap;
  overflow-wrap: anywhere; }
p, figcaption { color: var(--muted); font-size: .9rem; }
figure { margin: 0; }
svg { width: 100%; height: auto; display: block; font-family: system-ui, sans-serif; }
.narrow { display: none; }
@media (max-width: 40rem) { .wide { display: none; } .narrow { display: block; } }
summary { cursor: pointer; color: var(--first); font-size: .9rem; }
details .scroll { max-height: 20rem; overflow: auto; }
:focus-visible { outline: .2rem solid var(--first); outline-offset: .1rem; }
.skip { position: absolute; left: -99rem; }
.skip:focus { position: static; }
@media print { details { display: none; } }
"""
