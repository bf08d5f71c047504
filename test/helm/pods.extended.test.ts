/** Checks the requirements on every pod of the chart, and that its volumes, mounts, paths, ports and probes match. */
import { describe, expect, it } from '@jest/globals';
import {
  type Container,
  containersOf,
  describeChart,
  type PodSpec,
  podsOf,
  type Rendered,
  render,
  renderText,
  VALUE_FILES,
} from '../support/chart/chart.ts';

const PROVIDED =
  /^\/(?:etc\/proofgate|etc\/collector|run\/proofgate|var\/lib\/proofgate|var\/spool\/proofgate|var\/log\/proofgate|var\/run\/secrets|spiffe-workload-api)\//;

describeChart('of', () => {
  const pods = VALUE_FILES.flatMap((file) =>
    podsOf(render({ file })).map(({ of, spec }) => [`${file}: ${of}`, spec, of] as const),
  );

  describe.each(pods)('%s', (_name, spec, of) => {
    const containers = containersOf(spec).map((container) => [container.name, container] as const);
    const isOurs = !of.startsWith('ConfigMap ');

    it('volumes are mounted, and what is mounted is there, once each', () => {
      const volumes = spec.volumes.map(({ name }) => name);
      const mounted = containers.flatMap(([, { volumeMounts }]) => volumeMounts.map(({ name }) => name));
      expect(new Set(volumes).size).toBe(volumes.length);
      expect(volumes.toSorted()).toEqual([...new Set(mounted)].toSorted());
      for (const [, { volumeMounts }] of containers) {
        const places = volumeMounts.map(({ mountPath }) => mountPath);
        expect(new Set(places).size).toBe(places.length);
      }
    });

    it.each(containers)(
      '%s meets the restricted standard, and writes to volumes alone',
      (_container, { securityContext }) => {
        expect(securityContext).toMatchObject({
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
          readOnlyRootFilesystem: true,
          runAsNonRoot: true,
          seccompProfile: { type: 'RuntimeDefault' },
        });
      },
    );

    it.each(containers)('%s finds each path of its arguments in a volume', (_container, container) => {
      for (const path of pathsOf(container)) {
        expect({
          path,
          mounted: container.volumeMounts.some(
            // A folder of volumes: the broker's key directory.
            ({ mountPath }) => isBelow(path, mountPath) || isBelow(mountPath, path),
          ),
        }).toEqual({
          path,
          mounted: true,
        });
      }
    });

    it.each(containers)('%s says what it needs of the machine', (_container, { resources }) => {
      expect(resources).toMatchObject({ requests: { cpu: expect.anything(), memory: expect.anything() } });
      expect(resources).toMatchObject({ limits: { memory: expect.anything() } });
    });

    it('no pod gets a token of the API server, or variables of Services', () => {
      if (!isOurs) return;
      expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      expect(spec.securityContext).toMatchObject({
        fsGroupChangePolicy: 'OnRootMismatch',
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
    });

    it('probes ask the admin listener, which is on all addresses', () => {
      for (const container of containersOf(spec).filter(
        ({ readinessProbe }) => readinessProbe !== undefined,
      )) {
        const port = Number(/:(\d+)$/.exec(flagOf(container, 'admin-listen'))?.[1]);
        expect(flagOf(container, 'admin-listen')).toMatch(/^(?:0\.0\.0\.0|\[::\]):/);
        const { livenessProbe, readinessProbe, startupProbe } = container;
        const asked = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet);
        expect(asked.map((get) => get?.path)).toEqual(['/livez', '/livez', '/readyz']);
        expect(asked.map((get) => portOf(container, get?.port))).toEqual([port, port, port]);
      }
    });

    it('there is time to drain', () => {
      if (of.startsWith('Deployment ')) expect(graceLeft(spec)).toBeGreaterThan(2_000);
    });
  });
});

/** Maximum shutdown time of a program after SIGTERM: draining, then the last records (docs/operate/enforcement.md "Audit events"). */
const DRAIN_MS = 10_000 + 5_000;

function graceLeft(spec: PodSpec): number {
  const waits = spec.containers.map(({ lifecycle }) =>
    Number(/"seconds":(\d+)/.exec(JSON.stringify(lifecycle ?? {}))?.[1] ?? 0),
  );
  return (spec.terminationGracePeriodSeconds ?? 30) * 1000 - Math.max(...waits) * 1000 - DRAIN_MS;
}

function flagOf({ args }: Container, flag: string): string {
  return args.find((arg) => arg.startsWith(`--${flag}=`))?.slice(flag.length + 3) ?? '';
}

function portOf({ ports = [] }: Container, port: string | number | undefined): number | undefined {
  return typeof port === 'number' ? port : ports.find(({ name }) => name === port)?.containerPort;
}

/** Paths in flags, in addresses (`--listen=unix:/run/proofgate/verifier.sock`) and after names (`--spiffe-bundle=shop.example=/…`). */
function pathsOf({ args }: Container): readonly string[] {
  return args
    .map((arg) => arg.replace(/^--[a-z-]+=(?:unix:(?:\/\/)?|[a-z.]+=)?/, ''))
    .filter((value) => PROVIDED.test(`${value}/`));
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

describeChart('rendered', () => {
  it.each(VALUE_FILES)('%s holds no secret and no Secret, and names its namespace everywhere', (file) => {
    const objects = render({ file });
    expect(objects.filter(({ kind }) => kind === 'Secret')).toEqual([]);
    expect(objects.filter(({ metadata }) => metadata.namespace !== 'gateway')).toEqual([]);
    expect(renderText({ file })).not.toMatch(
      /PRIVATE KEY|"d":|rediss?[a-z-]*:\/\/[^/\s@]*:[^/\s]*@|pg[abst]_[A-Za-z0-9_-]{20}/,
    );
  });

  it.each(VALUE_FILES)('%s: what selects pods selects those of its own Deployment alone', (file) => {
    const objects = render({ file });
    // A PodMonitor selects pods of other charts, by their labels.
    for (const object of objects.filter(({ kind }) => kind !== 'PodMonitor')) {
      for (const labels of selectorsOf(object)) {
        const component = labels['app.kubernetes.io/component'] ?? '';
        expect(Object.keys(labels)).toEqual(
          expect.arrayContaining(['app.kubernetes.io/name', 'app.kubernetes.io/instance']),
        );
        expect(['verifier', 'proxy', 'control', 'broker']).toContain(component);
      }
    }
  });
});

function selectorsOf({ kind, spec }: Rendered): readonly Readonly<Record<string, string>>[] {
  const member: unknown =
    { Service: spec?.selector, NetworkPolicy: spec?.podSelector }[kind] ?? spec?.selector;
  if (typeof member !== 'object' || member === null) return [];
  return ['matchLabels' in member ? member.matchLabels : member] as Readonly<Record<string, string>>[];
}
