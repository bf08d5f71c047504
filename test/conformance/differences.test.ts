/** docs/reference/conformance.md has the differences that the recorded results show; `make conformance` writes them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { PUBLIC_CASES } from '../../src/tools/conformance/public-cases.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { ATTACK_KINDS, attackTable } from './attack-kinds.ts';
import { type CoreResults, deniedMoreTable, formatTable, kindOf, summaryTable } from './differences.ts';
import { forwardedTable } from './forwarded-headers.ts';
import { POINTS } from './points.ts';
import {
  forwardedResultsOf,
  type NamedResults,
  outcomesOf,
  readCoreResults,
  readResults,
  WRITES_RESULTS,
} from './results.ts';

const core: CoreResults = readCoreResults();
const recorded = (fileOf: (point: string) => string) =>
  POINTS.flatMap(({ name }): readonly NamedResults[] => {
    const results = readResults(fileOf(name));
    return results === undefined ? [] : [{ point: name, results }];
  });
const points = recorded((name) => name);

const TABLES = {
  summary: summaryTable(core, points),
  formats: formatTable(core, points),
  'denied more': deniedMoreTable(core, points),
  attacks: attackTable(),
  forwarded: forwardedTable(recorded(forwardedResultsOf)),
} as const;

function withTables(page: string, tables: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(tables).reduce((text, [name, lines]) => {
    const [begin, end] = [`<!-- table: ${name} -->`, `<!-- end: ${name} -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from === -1 || to < from) throw new Error(`the page has no place for the table ${name}`);
    return `${text.slice(0, from)}${begin}\n\n${lines.join('\n')}\n\n${text.slice(to)}`;
  }, page);
}

it('docs/reference/conformance.md has the tables of the recorded results', () => {
  const path = checkoutPath('docs/reference/conformance.md');
  const page = readFileSync(path, 'utf8');
  if (WRITES_RESULTS) writeFileSync(path, withTables(page, TABLES));
  else expect(page).toBe(withTables(page, TABLES));
});

it('names tests that exist for each kind of attack', () => {
  const cells = ATTACK_KINDS.flatMap(({ cells: each }) => Object.values(each));
  const named = cells.flatMap((cell) => ('tests' in cell ? cell.tests : []));
  expect(named.filter((path) => !existsSync(checkoutPath('test', path)))).toEqual([]);
  expect(cells.filter((cell) => 'tests' in cell && cell.tests.length === 0)).toEqual([]);
});

it('has a row for each header of other proxies at each point', () => {
  const measured = recorded(forwardedResultsOf);
  expect(measured.map(({ point }) => point)).toEqual(points.map(({ point }) => point));
  expect(new Set(measured.map(({ results }) => Object.keys(results).join())).size).toBe(1);
});

it.each(points)('$point has every case that its protocols allow', ({ point, results }) => {
  const driver = POINTS.find(({ name }) => name === point);
  const missing = Object.keys(core).filter((name) => !Object.hasOwn(results, name));
  if (driver?.protocols.length === 2) expect(missing).toEqual([]);
  expect(Object.keys(results).length - missing.length).toBeGreaterThan(250);
});

it('has no point that fails `proofgate conformance`, which does not see what a lenient parser forwards', () => {
  const mayPass = new Set(PUBLIC_CASES.filter((one) => one.mayPass === true).map(({ name }) => name));
  const passed = points.flatMap(({ results }) =>
    Object.entries(results)
      .filter(([name, result]) => core[name] === 'malformed' && outcomesOf(result).includes('allowed'))
      .map(([name]) => name),
  );
  expect(passed.filter((name) => !mayPass.has(name))).toEqual([]);
});

it.each([
  ['jti_replay', 'allowed', 'against'],
  ['malformed', 'allowed', 'repaired'],
  ['malformed', '400', 'same'],
  ['allowed', '400', 'more'],
  ['allowed', 'allowed', 'same'],
  ['jti_replay', '403 jti_replay', 'same'],
  ['jti_replay', '401 jti_replay', 'otherwise'],
  ['bundle_route_missing/no_match', '403 bundle_route_missing/origin', 'otherwise'],
  ['bundle_route_missing/no_match', '400', 'parser'],
  ['invalid_request_proof/audience', '403 invalid_request_proof/audience', 'same'],
])('compares %s with %s: %s', (decision, outcome, kind) => {
  expect(kindOf(decision, outcome)).toBe(kind);
});

it('has at least ten cases of each format at each point', () => {
  const cells = TABLES.formats.slice(2).flatMap((line) => line.split(' | ').slice(1));
  expect(cells.filter((text) => !(Number(/of (\d+)/.exec(text)?.[1]) >= 10))).toEqual([]);
});

it('shows no point that allows what the core denies', () => {
  expect(TABLES.summary.slice(2).filter((line) => !line.endsWith('| 0 |'))).toEqual([]);
});
