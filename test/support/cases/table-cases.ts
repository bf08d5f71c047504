/** Every row of the decision table that a request can cause, by the holder of a derived key and with a broker's passport. */
import type { Fault, TableCaller } from './fault.ts';
import { applyToContent } from './faulty-site.ts';
import { faultsOf } from './one-fault.ts';
import type { VectorCase } from './vector-case.ts';

const CALLERS: readonly (readonly [TableCaller, string])[] = [
  ['billing', 'a derived key'],
  ['broker', "a broker's passport"],
];

export const TABLE_CASES: readonly VectorCase[] = CALLERS.flatMap(([caller, words]) => [
  { name: `table, ${words}: nothing wrong`, plan: { caller, route: 'everything' }, outcome: 'allowed' },
  // replay.json covers the answers of the replay store.
  ...faultsOf(caller)
    .filter(({ replay }) => replay === undefined)
    .map((fault): VectorCase => caseOf(caller, words, fault)),
]);

function caseOf(caller: TableCaller, words: string, fault: Fault): VectorCase {
  const { content, outcome, request } = fault;
  const bundle = content && {
    name: `site, ${outcome.replace(/ \d+$/, '').replaceAll('_', ' ').replace('/', ', ')}`,
    change: (site: Parameters<typeof content>[0]) => void applyToContent(site, [fault]),
  };
  return {
    name: `table, ${words}: ${outcome.replace(/ \d+$/, '')}`,
    plan: { caller, route: 'everything' },
    ...(request === undefined ? {} : { edits: request }),
    ...(fault.noBundle === true ? { bundle: 'none' } : bundle === undefined ? {} : { bundle }),
    outcome,
  };
}
