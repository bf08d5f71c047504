/** Checks .github/: workflows with actionlint, the issue forms, and that CODEOWNERS names what exists. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { filesOfCheckout, isInCheckout, readText } from '../support/docs/markdown.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

const ACTIONLINT = checkoutPath('.cache', 'actionlint', 'bin', 'actionlint');
const WORKFLOWS = filesOfCheckout('.github/workflows', '.yml');

/** @returns what actionlint complains about, one complaint a line */
function complaints(workflow: string): string {
  const args = ['-no-color', '-oneline', '-shellcheck=', '-pyflakes=', '-'];
  const { stdout, stderr, status } = spawnSync(ACTIONLINT, args, { input: workflow, encoding: 'utf8' });
  expect([0, 1, stderr]).toContain(status);
  return stdout;
}

(existsSync(ACTIONLINT) ? describe : describe.skip)('a workflow', () => {
  it.each(WORKFLOWS)('has no faults: %s', (file) => {
    expect(complaints(readText(file))).toBe('');
  });

  it.each([
    ['an unknown key', 'timeout-minutes: 120', 'timeout-minute: 120', /unexpected key "timeout-minute"/],
    ['an unknown value of an expression', 'github.ref }}', 'github.reff }}', /"reff" is not defined/],
  ])('with %s is rejected', (_, right, wrong, complaint) => {
    const workflow = readText('.github/workflows/ci.yml');
    expect(workflow).toContain(right);
    expect(complaints(workflow.replace(right, wrong))).toMatch(complaint);
  });
});

describe('the workflows', () => {
  it('run what a contributor runs', () => {
    expect(WORKFLOWS.flatMap((file) => stepsOf(file).map(({ run }) => run))).toContain('.ci/run');
  });

  it('pin every action by its commit', () => {
    const actions = WORKFLOWS.flatMap((file) => stepsOf(file).flatMap(({ uses }) => uses ?? []));
    expect(actions.length).toBeGreaterThan(0);
    expect(actions.filter((action) => !/@[0-9a-f]{40}$/.test(action))).toEqual([]);
  });
});

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

function stepsOf(file: string): readonly Step[] {
  const { jobs }: { jobs: Readonly<Record<string, { steps: readonly Step[] }>> } = parse(readText(file));
  return Object.values(jobs).flatMap(({ steps }) => steps);
}

/** Source: GitHub Docs, "Syntax for GitHub's form schema". */
const INPUT_TYPES = ['checkboxes', 'dropdown', 'input', 'textarea'];

interface FormElement {
  readonly type: string;
  readonly id?: string;
  readonly attributes: {
    readonly label?: string;
    readonly value?: string;
    readonly options?: readonly unknown[];
  };
}

describe.each(
  filesOfCheckout('.github/ISSUE_TEMPLATE', '.yml').filter((file) => !file.endsWith('/config.yml')),
)('%s', (file) => {
  const form: Readonly<Record<string, unknown>> & { readonly body: readonly FormElement[] } = parse(
    readText(file),
  );

  it('is a form as GitHub takes it', () => {
    expect(Object.keys(form)).toEqual(['name', 'description', 'labels', 'body']);
    const inputs = form.body.filter(({ type }) => type !== 'markdown');
    for (const { type, id, attributes } of inputs) {
      expect(INPUT_TYPES).toContain(type);
      expect(id).toMatch(/^[\w-]+$/);
      expect(attributes.label).toMatch(/./);
      expect(attributes.options === undefined).toBe(type === 'input' || type === 'textarea');
    }
    expect(new Set(inputs.map(({ id }) => id)).size).toBe(inputs.length);
  });
});

it('CODEOWNERS names what exists, each with an owner', () => {
  const lines = readText('.github/CODEOWNERS')
    .split('\n')
    .filter((line) => /^[^#]/.test(line));
  const rules = lines.map((line) => line.split(/ +/));
  expect(rules[0]?.[0]).toBe('*');
  expect(
    rules.slice(1).filter(([path = '']) => !path.startsWith('/') || !isInCheckout(path.slice(1))),
  ).toEqual([]);
  expect(rules.filter(([, ...owners]) => !owners.every((owner) => /^@[\w-]+\/[\w-]+$/.test(owner)))).toEqual(
    [],
  );
  expect(rules.filter(({ length }) => length < 2)).toEqual([]);
});
