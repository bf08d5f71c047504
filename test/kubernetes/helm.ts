/** Runs `helm` against a cluster as a platform engineer does, without reading or writing the user's own settings. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { CACHE, CHART, NAMESPACE, RELEASE } from '../support/chart/chart.ts';
import { readText } from '../support/docs/markdown.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { type Child, startChild } from '../support/harness/child.ts';
import type { Cluster } from './cluster.ts';

export interface ReleaseValues {
  /** Name of a file in test/helm/values. */
  readonly file?: string;
  /** Paths of other values files. */
  readonly files?: readonly string[];
  readonly also?: object;
}

let valueFiles = 0;

export class Helm {
  readonly #cluster: Cluster;
  readonly #release: string;

  constructor(cluster: Cluster, release = RELEASE) {
    this.#cluster = cluster;
    this.#release = release;
  }

  install(values: ReleaseValues): Promise<void> {
    return this.#withChart('install', values);
  }

  upgrade(values: ReleaseValues): Promise<void> {
    return this.#withChart('upgrade', values);
  }

  rollback(revision: number): Promise<void> {
    return this.#run('rollback', this.#release, String(revision));
  }

  uninstall(): Promise<void> {
    return this.#run('uninstall', this.#release);
  }

  /** Runs `helm test` as the chart's README shows. It waits for the test's pod, so stop it when nothing runs the pod. */
  startTest(): Child {
    const [, line = ''] = /^helm (test .*)$/m.exec(readText('helm/proofgate/README.md')) ?? [];
    const [command = '', , ...flags] = line.replace(` --namespace ${NAMESPACE}`, '').split(' ');
    if (!flags.includes('--logs')) throw new Error('README has no line that shows the log of the test');
    return this.#start(command, this.#release, ...flags, '--timeout', '2m');
  }

  async #withChart(command: string, { file, files = [], also = {} }: ReleaseValues): Promise<void> {
    valueFiles += 1;
    const own = join(this.#cluster.folder, `values-${valueFiles}.yaml`);
    await writeFile(own, stringify(also));
    const shared = file === undefined ? [] : [checkoutPath('test', 'helm', 'values', `${file}.yaml`)];
    const values = [...shared, ...files, own].flatMap((path) => ['--values', path]);
    await this.#run(command, this.#release, CHART, ...values);
  }

  /** @throws Error with helm's message when it fails */
  async #run(...args: readonly string[]): Promise<void> {
    const child = this.#start(...args);
    const { code } = await child.exited;
    if (code !== 0) throw new Error(`helm ${args[0]} ends with ${code}: ${child.stderrLines.join('\n')}`);
  }

  #start(...args: readonly string[]): Child {
    const { folder, kubeconfig } = this.#cluster;
    const homes = ['HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME', 'KUBECACHEDIR'];
    return startChild({
      command: `${CACHE}/bin/helm`,
      args: [...args, '--namespace', NAMESPACE],
      env: {
        KUBECONFIG: kubeconfig,
        ...Object.fromEntries(homes.map((name) => [name, join(folder, 'helm')])),
      },
    });
  }
}
