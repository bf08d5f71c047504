/**
 * Checks that helm, kubectl and egctl accept their command lines in the documents, and that programs accept all lines of the
 * chart's notes.
 */
import { describe, expect, it } from '@jest/globals';
import { describeChart, notesOf, VALUE_FILES } from '../../support/chart/chart.ts';
import { faultOf, faultsIn, linesIn } from './command-lines.ts';
import { isBuilt, whyNotAsked } from './programs.ts';
import { allSpans, type Span, spansIn } from './spans.ts';

const lines = allSpans()
  .flatMap(linesIn)
  .filter(({ program }) => isBuilt(program));
const asked = lines.filter(({ program }) => whyNotAsked(program) === undefined);

describe('documents and files to copy from', () => {
  it('have command lines of helm and kubectl', () => {
    expect(lines.map(({ program }) => program)).toEqual(expect.arrayContaining(['helm', 'kubectl']));
  });

  if (asked.length > 0)
    it.each([...new Set(asked.map(({ place }) => place))])('%s', async (place) => {
      const faults = await Promise.all(asked.filter((line) => line.place === place).map(faultOf));
      expect(faults.filter((fault) => fault !== undefined)).toEqual([]);
    });

  for (const why of new Set(lines.flatMap(({ program }) => whyNotAsked(program) ?? [])))
    it.skip(why, () => {});
});

/** Lines with one fault each. */
const BROKEN = [
  'helm instal NAME CHART',
  'helm install NAME CHART --vlaues FILE',
  'helm install NAME CHART --set verifier.replica=2',
  'helm uninstall --namespace N',
  'kubectl rollout restrt',
  'kubectl rollout status --watch',
  'kubectl get --raw',
  'kubectl delete pod x --namspace y',
  'egctl config envoy-proxies all',
].filter((text) => whyNotAsked(text.split(' ')[0] ?? '') === undefined);

if (BROKEN.length > 0)
  it.each(BROKEN)('`%s` would be noticed', async (text) => {
    expect(await faultsIn(text)).toEqual([expect.any(String)]);
  });

/** Matches `  kubectl …`, or `Try it: helm …`. */
function linesOfNotes(file: string): readonly Span[] {
  return notesOf({ file })
    .split('\n')
    .flatMap((text, index) => {
      const [, command] = /(?:^\s*|: )((?:kubectl|helm|proofgate) .+)$/.exec(text) ?? [];
      return command === undefined ? [] : [{ file: `NOTES of ${file}`, line: index + 1, text: command }];
    });
}

describeChart("the chart's notes", () => {
  const all = VALUE_FILES.flatMap((file) => [
    ...linesOfNotes(file),
    ...spansIn(`NOTES of ${file}`, notesOf({ file })),
  ]);
  const ofNotes = [...new Map(all.flatMap(linesIn).map((line) => [line.words.join(' '), line])).values()];
  const here = ofNotes.filter(({ program }) => whyNotAsked(program) === undefined);

  it('have some', () => {
    expect(ofNotes.map(({ program }) => program)).toEqual(
      expect.arrayContaining(['kubectl', 'helm', 'proofgate']),
    );
  });

  it.each(here.map((line) => [line.place, line] as const))('%s', async (_place, line) => {
    expect(await faultOf(line)).toBeUndefined();
  });
});
