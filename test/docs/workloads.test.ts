/** Checks that docs/operate/workloads.md and docs/operate/workload.yaml match the command line. */
import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { createAgentMetrics, createPassportMetrics } from '../../src/caller/agent/agent-metrics.ts';
import { AGENT_SETTINGS, agentPlanOf } from '../../src/caller/agent/agent-settings.ts';
import { ENROLL_SETTINGS, planOf } from '../../src/caller/enroll/enroll-settings.ts';
import { CA_FILE, KEY_FILE, TOKEN_FILE } from '../../src/control/enrollment/enroll-command-line.ts';
import { collectTexts, settingValues } from '../../src/process/settings/setting-sources.ts';
import type { Setting } from '../../src/process/settings/settings.ts';
import { documentedWorkloads } from '../support/docs/documented-workloads.ts';
import {
  codesIn,
  filesOfCheckout,
  readText,
  sectionOf,
  tableNamed,
  tableRows,
} from '../support/docs/markdown.ts';

const document = readText('docs/operate/workloads.md');
const settings: readonly Setting<unknown>[] = Object.values(AGENT_SETTINGS);

describe('docs/reference/command-line.md on agent', () => {
  const section = sectionOf(readText('docs/reference/command-line.md'), '`agent`');
  const rows = tableRows(section).filter(([cell]) => cell?.startsWith('`--'));

  it('has every flag, and no other', () => {
    const described = rows.map(([cell = '']) => /^`--([a-z-]+)/.exec(cell)?.[1]);
    expect(described).toEqual(expect.arrayContaining(settings.map(({ flag }) => flag)));
    expect(described.length).toBe(settings.length);
  });

  it.each(settings.map(({ flag, description, absent }) => [flag, description, absent] as const))(
    'has the default of --%s',
    (flag, description, absent) => {
      const row = rows.find(([cell]) => new RegExp(`^\`--${flag}[ \`]`).test(cell ?? ''));
      const byDefault = /\(default: ([\w./:-]+)\)/.exec(description)?.[1] ?? '';
      expect(row?.[1]).toContain(absent.kind === 'required' ? 'required' : byDefault);
    },
  );
});

describe('docs/operate/workloads.md', () => {
  it('has every metric of the agent', async () => {
    const registries = [createAgentMetrics(() => 0), createPassportMetrics(() => 0)];
    const names = registries.flatMap(({ registry }) => registry.getMetricsAsArray().map(({ name }) => name));
    const own = [...new Set(names)];
    const described = tableNamed(readText('docs/reference/metrics.md'), 'agent-metrics').map(
      ([cell]) => codesIn(cell)[0],
    );
    expect(described.toSorted()).toEqual(own.filter((name) => name.startsWith('proofgate_')).toSorted());
  });

  it('has every event of the log', () => {
    const logged = filesOfCheckout('src/caller/agent', '.ts').flatMap((file) =>
      [...readText(file).matchAll(/\bevent: '([a-z_]+)'(?:,| })/g)].map(([, event]) => event),
    );
    const described = tableNamed(readText('docs/reference/log.md'), 'agent-log').flatMap(([cell]) =>
      codesIn(cell),
    );
    expect(described.filter((code) => code !== 'event').toSorted()).toEqual([...new Set(logged)].toSorted());
  });

  it('has every cause to enroll', () => {
    const [, union = ''] = /type RenewalCause = ([^;]+);/.exec(readText('src/caller/agent/renewal.ts')) ?? [];
    const known = [...union.matchAll(/'([a-z_]+)'/g)].map(([, cause]) => cause);
    const described = tableNamed(document, 'renewal-causes').flatMap(([cell]) => codesIn(cell));
    expect(described).toEqual(expect.arrayContaining(known));
  });
});

interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly subPath?: string;
}

interface Container {
  readonly name: string;
  readonly command?: readonly string[];
  readonly restartPolicy?: string;
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
  readonly volumeMounts: readonly Mount[];
  readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string; readonly port: string } };
}

interface Pod {
  readonly automountServiceAccountToken: boolean;
  readonly securityContext: { readonly runAsUser: number; readonly fsGroup: number };
  readonly initContainers: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes: readonly {
    readonly name: string;
    readonly emptyDir?: { readonly medium: string };
    readonly configMap?: { readonly name: string };
    readonly projected?: {
      readonly sources: readonly {
        readonly serviceAccountToken: { readonly expirationSeconds: number; readonly path: string };
      }[];
    };
  }[];
}

function podsIn(text: string) {
  return parseAllDocuments(text).map((each) => {
    expect(each.errors).toEqual([]);
    const { kind, spec } = each.toJS() as { kind: string; spec: { template: { spec: Pod } } };
    return { kind, pod: spec.template.spec };
  });
}
const pods = podsIn(readText('docs/operate/workload.yaml'));
/** With the options for a private CA of Control. */
const marked = podsIn(documentedWorkloads({ isCaPrivate: true }));

/** Parses the command line as the program does. */
async function textsOf(command: readonly string[], declared: readonly Setting<unknown>[]) {
  const flags = new Map<string, string[]>();
  for (const arg of command.slice(2)) {
    const [, flag = '', value = ''] = /^--([a-z-]+)=(.+)$/.exec(arg) ?? [];
    expect(declared.map((setting) => setting.flag)).toContain(flag);
    flags.set(flag, [value]);
  }
  return collectTexts(declared, { flags, env: {} });
}

it('docs/operate/workload.yaml is the same for a private CA but for the CA', () => {
  const without = marked.map(({ kind, pod }) => {
    const [enroller] = pod.initContainers;
    const own = {
      ...enroller,
      command: enroller?.command?.filter((word) => !word.startsWith('--control-ca-file=')),
      volumeMounts: enroller?.volumeMounts.filter(({ mountPath }) => !CA_FILE.startsWith(`${mountPath}/`)),
    };
    const volumes = pod.volumes.filter(({ configMap }) => configMap === undefined);
    return { kind, pod: { ...pod, initContainers: [own], volumes } };
  });
  expect(without).toEqual(pods);
});

it.each(marked.map(({ kind, pod }) => [kind, pod] as const))(
  'docs/operate/workload.yaml, with a private CA: the %s trusts the one of its ConfigMap',
  async (_kind, pod) => {
    const [enroller] = pod.initContainers;
    const command = enroller?.command ?? [];
    const declared = command[1] === 'agent' ? settings : Object.values(ENROLL_SETTINGS);
    expect([...(await textsOf(command, declared)).values()].flat()).toContain(CA_FILE);
    const mount = enroller?.volumeMounts.find(({ mountPath }) => CA_FILE.startsWith(`${mountPath}/`));
    expect(mount?.readOnly).toBe(true);
    expect(pod.volumes.find(({ name }) => name === mount?.name)?.configMap).toEqual({
      name: 'proofgate-control-ca',
    });
  },
);

describe.each(pods.map(({ kind, pod }) => [kind, pod] as const))(
  'docs/operate/workload.yaml: the %s',
  (kind, pod) => {
    const [signer] = pod.containers;
    const [enroller] = pod.initContainers;
    const volume = (name: string) => pod.volumes.find((each) => each.name === name);
    const mountOf = (container: Container | undefined, file: string) =>
      container?.volumeMounts.find(({ mountPath }) => file.startsWith(`${mountPath}/`));

    it('has a command line that the program takes', async () => {
      const command = enroller?.command ?? [];
      const isAgent = command[1] === 'agent';
      expect([command[0], isAgent]).toEqual(['proofgate', kind === 'Deployment']);
      const plan = isAgent
        ? agentPlanOf(settingValues(AGENT_SETTINGS, await textsOf(command, settings)))
        : planOf(settingValues(ENROLL_SETTINGS, await textsOf(command, Object.values(ENROLL_SETTINGS))));
      expect(plan).toMatchObject({ tokenFile: TOKEN_FILE, keyChoice: { kind: 'make', file: KEY_FILE } });
    });

    it('projects a token where it is looked for, and nowhere else', () => {
      const mount = mountOf(enroller, TOKEN_FILE);
      const [source] = volume(mount?.name ?? '')?.projected?.sources ?? [];
      expect(`${mount?.mountPath}/${source?.serviceAccountToken.path}`).toBe(TOKEN_FILE);
      expect([mount?.readOnly, source?.serviceAccountToken.expirationSeconds]).toEqual([true, 3600]);
      expect(mountOf(signer, TOKEN_FILE)).toBeUndefined();
      expect(pod.automountServiceAccountToken).toBe(false);
    });

    it('keeps the key in memory, whole, for one user', () => {
      const own = mountOf(enroller, KEY_FILE);
      const read = mountOf(signer, KEY_FILE);
      expect([own?.readOnly, read?.readOnly, read?.subPath]).toEqual([undefined, true, undefined]);
      expect(own?.name).toBe(read?.name);
      expect(volume(own?.name ?? '')?.emptyDir?.medium).toBe('Memory');
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001, fsGroup: 10_001 });
      for (const { securityContext } of [...pod.initContainers, ...pod.containers]) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
    });
  },
);

it('the agent of docs/operate/workload.yaml is asked where it answers', async () => {
  const agent = pods[0]?.pod.initContainers[0];
  const texts = await textsOf(agent?.command ?? [], settings);
  const { adminListen } = agentPlanOf(settingValues(AGENT_SETTINGS, texts));
  const [port] = agent?.ports ?? [];
  expect([port?.containerPort, adminListen.host]).toEqual([adminListen.port, '::']);
  expect(agent?.restartPolicy).toBe('Always');
  const probes = [agent?.startupProbe, agent?.readinessProbe, agent?.livenessProbe];
  expect(probes.map((probe) => [probe?.httpGet.path, probe?.httpGet.port])).toEqual([
    ['/readyz', port?.name],
    ['/readyz', port?.name],
    ['/livez', port?.name],
  ]);
});
