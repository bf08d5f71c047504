/** Checks that the image has what pods use: programs on its path, its user, and no argument that needs a shell. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { NODE, PROGRAM_LINK, USER } from '../../scripts/image/contents.mjs';
import {
  type Container,
  containersOf,
  describeChart,
  podsOf,
  type Rendered,
  render,
  VALUE_FILES,
} from '../support/chart/chart.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

/** Names of the programs on the image's path. */
const PROGRAMS = [NODE, PROGRAM_LINK.path].map((path) => path.slice('usr/local/bin/'.length));

function expectRunnable({ args, command, name }: Container): void {
  expect({ name, program: command[0] }).toEqual({ name, program: expect.stringMatching(/^[a-z]+$/) });
  expect(PROGRAMS).toContain(command[0]);
  // No shell expands variables.
  expect([...command.slice(1), ...(args ?? [])].filter((arg) => /^\$\(?[A-Z]/.test(arg))).toEqual([]);
}

describeChart('the chart', () => {
  it.each(VALUE_FILES)('with %s runs what the image has', (file) => {
    const all = podsOf(render({ file })).flatMap(({ spec }) => containersOf(spec));
    // `extraContainers` have images of others.
    const containers = all.filter(({ image }) => /\/?proofgate[:@]/.test(image));
    for (const container of containers) expectRunnable(container);
    expect(containers.length).toBeGreaterThan(0);
  });

  it('runs it as the user of the image', () => {
    const values = readFileSync(checkoutPath('helm', 'proofgate', 'values.yaml'), 'utf8');
    const ids = [...values.matchAll(/^\s+(?:runAsUser|runAsGroup|fsGroup): (\d+)$/gm)].map(([, id]) =>
      Number(id),
    );
    expect(ids.length).toBeGreaterThan(6);
    expect(new Set(ids)).toEqual(new Set([USER.id]));
  });
});

describe('docs/operate/workload.yaml', () => {
  const documents = parseAllDocuments(readFileSync(checkoutPath('docs/operate/workload.yaml'), 'utf8'));
  const ofUs = documents
    .map((document): Rendered => document.toJS())
    .flatMap(({ spec }) => (spec?.template === undefined ? [] : containersOf(spec.template.spec)))
    .filter(({ image }) => /(?:^|\/)proofgate[:@]/.test(image));

  it('runs what the image has', () => {
    expect(ofUs.length).toBeGreaterThan(0);
    for (const container of ofUs) {
      const [program] = container.command ?? [PROGRAMS[1] ?? ''];
      expect(PROGRAMS).toContain(program);
    }
  });
});
