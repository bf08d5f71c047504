/** A gateway's chart that depends on proofgate: a writable copy of test/helm/parent beside a copy of the chart. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import {
  CHART,
  HELM,
  NAMESPACE,
  NEWEST_KUBERNETES,
  objectsIn,
  RELEASE,
  type Rendered,
} from '../support/chart/chart.ts';
import { readText } from '../support/docs/markdown.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

export interface ParentChart {
  /** Once for the same arguments. @param file of test/helm/values, for proofgate; @param also overrides it. @throws Error with helm's message */
  render(file: string, also?: object): readonly Rendered[];
  remove(): void;
}

/** Prepares the chart for installation, as `helm dependency update` does. */
export function makeParentChart(): ParentChart {
  const folder = mkdtempSync(join(tmpdir(), 'proofgate-parent-'));
  const chart = join(folder, 'test', 'helm', 'parent');
  cpSync(checkoutPath('test', 'helm', 'parent'), chart, { recursive: true });
  cpSync(CHART, join(folder, 'helm', 'proofgate'), { recursive: true });
  const helm = (args: readonly string[], input = '') => {
    const { status, stderr, stdout } = spawnSync(HELM, args, {
      ...{ input, encoding: 'utf8' },
      // Use neither the repositories nor the cached data of the user who runs the tests.
      env: { HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder },
    });
    if (status !== 0) throw new Error(`helm ${args[0]} ends with ${status}: ${stderr}`);
    return stdout;
  };
  helm(['dependency', 'update', chart]);
  const flags = ['--namespace', NAMESPACE, '--kube-version', NEWEST_KUBERNETES, '--values', '-'];
  const render = (file: string, also: object) => {
    const values: unknown = parse(readText(`test/helm/values/${file}.yaml`));
    const over = join(folder, 'over.yaml');
    writeFileSync(over, stringify({ proofgate: also }));
    const input = stringify({ proofgate: values });
    return objectsIn(helm(['template', RELEASE, chart, ...flags, '--values', over], input));
  };
  const rendered = new Map<string, string>();
  return {
    render: (file, also = {}) => {
      const key = JSON.stringify([file, also]);
      const json = rendered.get(key) ?? JSON.stringify(render(file, also));
      rendered.set(key, json);
      return JSON.parse(json);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
