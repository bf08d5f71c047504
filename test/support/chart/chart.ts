/** Renders the chart with helm. Tests of the chart skip when scripts/install-helm-tools.sh found no Go. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from '@jest/globals';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { checkoutPath } from '../harness/checkout.ts';
import { IS_EXTENDED } from '../lane.ts';

export const CHART = checkoutPath('helm', 'proofgate');
export const CACHE = checkoutPath('.cache', 'helm');
export const HELM = `${CACHE}/bin/helm`;

export const RELEASE = 'rel';
export const NAMESPACE = 'gateway';
export const NEWEST_KUBERNETES = '1.36.0';

/** For extended tests; a skipped test states the reason in its name, and `make helm-tools` prints more. */
export function describeChart(name: string, tests: () => void): void {
  if (!IS_EXTENDED) throw new Error('make test builds no helm: name this file *.extended.test.ts');
  if (existsSync(`${CACHE}/installed`)) describe(name, tests);
  // Does not run `tests`: they render with helm while they are defined.
  else it.skip(`${name} (helm is not there: make helm-tools)`, () => {});
}

/** Files of test/helm/values, without their extension. */
export const VALUE_FILES: readonly string[] = readdirSync(checkoutPath('test', 'helm', 'values')).map(
  (name) => name.replace(/\.yaml$/, ''),
);

interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
}

interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string | number };
  readonly exec?: { readonly command: readonly string[] };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string; readonly valueFrom?: object }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly restartPolicy?: string;
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly lifecycle?: object;
  readonly resources?: { readonly limits?: object; readonly requests?: object };
  readonly securityContext?: object;
  readonly volumeMounts: readonly Mount[];
}

export interface Volume {
  readonly name: string;
  readonly [kind: string]: unknown;
}

export interface PodSpec {
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly enableServiceLinks?: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext?: object;
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes: readonly Volume[];
}

/** Any object; the members depend on its kind. */
export interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly automountServiceAccountToken?: boolean;
  readonly spec: {
    readonly replicas?: number;
    readonly strategy?: object;
    readonly template: {
      readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
      readonly spec: PodSpec;
    };
    readonly [member: string]: unknown;
  };
}

/** A values file of test/helm/values, and other values that override it. */
export interface Values {
  readonly file?: string;
  readonly also?: object;
  readonly kubernetes?: string;
}

function helm(
  command: readonly string[],
  { file, also = {} }: Values,
  chart = CHART,
): SpawnSyncReturns<string> {
  const files =
    file === undefined ? [] : ['--values', checkoutPath('test', 'helm', 'values', `${file}.yaml`)];
  const args = [...command, chart, '--namespace', NAMESPACE, ...files, '--values', '-'];
  return spawnSync(HELM, args, { input: stringify(also), encoding: 'utf8' });
}

function kubeVersion({ kubernetes = NEWEST_KUBERNETES }: Values): readonly string[] {
  return ['--kube-version', kubernetes];
}

const rendered = new Map<string, string>();

/** Rendered once for the same values. @throws Error with helm's message */
export function renderText(values: Values): string {
  const key = JSON.stringify(values);
  const text = rendered.get(key) ?? renderAnew(values);
  rendered.set(key, text);
  return text;
}

function renderAnew(values: Values): string {
  const { status, stderr, stdout } = helm(['template', RELEASE, ...kubeVersion(values)], values);
  if (status !== 0) throw new Error(`helm template ends with ${status}: ${stderr}`);
  return stdout;
}

/** As JSON: parsing it again, so that callers do not share objects, is much faster than parsing YAML. */
const parsed = new Map<string, string>();

export function render(values: Values): readonly Rendered[] {
  const key = JSON.stringify(values);
  const json = parsed.get(key) ?? JSON.stringify(objectsIn(renderText(values)));
  parsed.set(key, json);
  return JSON.parse(json);
}

export function objectsIn(text: string): readonly Rendered[] {
  return parseAllDocuments(text).flatMap((document) => document.toJS() ?? []);
}

/** The message of helm when it rejects the values; undefined when it renders. */
export function refusalOf(values: Values): string | undefined {
  const { status, stderr } = helm(['template', RELEASE, ...kubeVersion(values)], values);
  return status === 0 ? undefined : stderr;
}

/** Findings of `helm lint`; empty without a finding. */
export function lintFindings(values: Values): string {
  const { status, stderr, stdout } = helm(['lint', '--strict', ...kubeVersion(values)], values);
  return status === 0 ? '' : stdout + stderr;
}

const notes = new Map<string, string>();

/** The notes that `helm install` prints, rendered once for the same values. */
export function notesOf(values: Values): string {
  const key = JSON.stringify(values);
  const text = notes.get(key) ?? renderNotes(values);
  notes.set(key, text);
  return text;
}

/** Installing needs a cluster, so a copy of the chart renders them. */
function renderNotes(values: Values): string {
  const folder = mkdtempSync(join(tmpdir(), 'proofgate-notes-'));
  try {
    cpSync(CHART, folder, { recursive: true });
    writeFileSync(join(folder, 'templates', 'notes.yaml'), NOTES_AS_OBJECT);
    const { status, stderr, stdout } = helm(['template', RELEASE, ...kubeVersion(values)], values, folder);
    if (status !== 0) throw new Error(`helm template ends with ${status}: ${stderr}`);
    return objectOf(objectsIn(stdout), 'ConfigMap', 'notes').data?.text ?? '';
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const NOTES_AS_OBJECT = `apiVersion: v1
kind: ConfigMap
metadata: { name: notes }
data:
  text: {{ include "proofgate.notes" . | toJson }}
`;

export function objectOf(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found;
}

export interface RenderedPod {
  readonly of: string;
  readonly spec: PodSpec;
}

/** Every pod of the objects: pods of Deployments and tests, and the gateway's pod with the sidecar. */
export function podsOf(objects: readonly Rendered[]): readonly RenderedPod[] {
  return objects.flatMap((object) => {
    const of = `${object.kind} ${object.metadata.name}`;
    if (object.kind === 'Deployment') return [{ of, spec: object.spec.template.spec }];
    if (object.kind === 'Pod') {
      const spec: unknown = object.spec;
      return [{ of, spec: spec as PodSpec }];
    }
    const patch = object.data?.['pod.yaml'];
    return patch === undefined ? [] : [{ of, spec: { containers: [], ...parse(patch).spec } }];
  });
}

export function containersOf(spec: PodSpec): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}
