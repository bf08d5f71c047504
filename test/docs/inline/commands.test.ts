/**
 * Checks that programs accept the command lines in sentences and tables; the extended test checks those of helm, kubectl and
 * egctl.
 */
import { describe, expect, it } from '@jest/globals';
import { faultOf, faultsIn, linesIn } from './command-lines.ts';
import { isBuilt, whyNotAsked } from './programs.ts';
import { faultOfLine } from './proofgate.ts';
import { allSpans } from './spans.ts';

const lines = allSpans().flatMap(linesIn);
const others = lines.filter(({ program }) => !isBuilt(program));
const asked = others.filter(({ program }) => whyNotAsked(program) === undefined);

describe('documents and files to copy from', () => {
  it('have command lines of ours, of make, helm and kubectl', () => {
    expect(lines.length).toBeGreaterThan(150);
    const programs = lines.map(({ program }) => program);
    expect(programs).toEqual(expect.arrayContaining(['proofgate', 'make', 'npm', 'helm', 'kubectl']));
  });

  it.each([...new Map(asked.map((line) => [line.place, line])).keys()])('%s', async (place) => {
    const faults = await Promise.all(asked.filter((line) => line.place === place).map(faultOf));
    expect(faults.filter((fault) => fault !== undefined)).toEqual([]);
  });

  for (const why of new Set(others.flatMap(({ program }) => whyNotAsked(program) ?? [])))
    it.skip(why, () => {});
});

/** Lines with one fault each. */
const BROKEN = [
  'proofgate bundle freshn',
  'proofgate bundle freshen --evry 3s',
  'bundle diff OLD',
  'bundle diff OLD NEW MORE',
  'ctl aprove',
  'revoke KEY --because TEXT',
  'status --keys FILE',
  'make bnech',
  'make bench PART=check',
  'make bench PARTS="check denial"',
  'make fuzz TARGETS="path bundel"',
  'npm run --silent jst -- test/docs',
  'npm run --silent jest -- test/nowhere',
  'npm install --package-lock-onyl',
  'openssl pkey -pubuot',
  'cosign verify',
  ...['ssh -L 8250 a', 'pg_dump --fromat=custom'].filter(
    (text) => whyNotAsked(text.split(' ')[0] ?? '') === undefined,
  ),
];
it.each(BROKEN)('`%s` would be noticed', async (text) => {
  expect(await faultsIn(text)).toEqual([expect.any(String)]);
});

it('a `proofgate` that stands alone is no fault', async () => {
  expect(await faultOfLine([])).toBeUndefined();
});
