/**
 * Acts as controllers and kubelet: submits a pod of a template, mounts its volumes in a folder of this machine, and runs its
 * containers as processes. Volumes have the content of the API server, including tokens from TokenRequest.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Container, PodSpec, Volume } from '../support/chart/chart.ts';
import { containersOf } from '../support/chart/chart.ts';
import { makePodFolder, type PodFolder } from '../support/chart/pod-process.ts';
import type { ApiObject, Objects } from './objects.ts';

interface Item {
  readonly key: string;
  readonly path: string;
}

interface FileSource {
  readonly name?: string;
  readonly secretName?: string;
  readonly items?: readonly Item[];
  readonly defaultMode?: number;
}

interface TokenSource {
  /** Absent for the default token, whose audience is the API server. */
  readonly audience?: string;
  readonly expirationSeconds: number;
  readonly path: string;
}

interface ProjectedSource {
  readonly serviceAccountToken?: TokenSource;
  readonly secret?: FileSource;
  readonly configMap?: FileSource;
}

export interface PodTemplate {
  readonly metadata?: Pick<ApiObject['metadata'], 'labels' | 'annotations'>;
  readonly spec: PodSpec;
}

/** Makes a pod without submitting it. */
export function podOf(
  template: PodTemplate,
  name: string,
  namespace: string,
): ApiObject & { readonly spec: PodSpec } {
  const { metadata, spec } = template;
  return { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name, namespace }, spec };
}

/** The pod template of a Deployment or Job. */
export function templateOf({ spec }: ApiObject): PodTemplate {
  const { template } = spec as { readonly template: PodTemplate };
  return template;
}

/** Its arguments are the whole command line except for the program's name. */
export function containerIn(spec: PodSpec, name: string): Container {
  const found = containersOf(spec).find((container) => container.name === name);
  if (found === undefined) throw new Error(`no container ${name}`);
  const { command, args = [] } = found;
  return { ...found, args: [...command.slice(1), ...args] };
}

export class HandRunPod {
  /** The object as stored by the API server. */
  readonly object: ApiObject;
  readonly files: PodFolder;
  readonly #objects: Objects;

  private constructor(object: ApiObject, files: PodFolder, objects: Objects) {
    this.object = object;
    this.files = files;
    this.#objects = objects;
  }

  /**
   * Submits the pod and mounts its volumes. @throws Error when the API server does not admit it, or lacks the source of a
   * volume
   */
  static async submit(objects: Objects, pod: ApiObject, node?: string): Promise<HandRunPod> {
    const made = await objects.mustCreate(pod);
    if (node !== undefined) await bind(objects, made, node);
    return HandRunPod.of(objects, made);
  }

  /** Runs a pod that is already submitted. */
  static async of(objects: Objects, object: ApiObject): Promise<HandRunPod> {
    const pod = new HandRunPod(object, await makePodFolder(), objects);
    try {
      for (const volume of pod.spec.volumes ?? []) {
        for (const place of mountPathsOf(pod.spec, volume.name)) await pod.#mount(volume, place);
      }
      return pod;
    } catch (error) {
      await pod.remove();
      throw error;
    }
  }

  get spec(): PodSpec {
    return this.object.spec as PodSpec;
  }

  container(name: string): Container {
    return containerIn(this.spec, name);
  }

  /** Requests a token bound to this pod, as the kubelet does. */
  async token({ audience, expirationSeconds }: Omit<TokenSource, 'path'>): Promise<string> {
    const { name, namespace = '', uid } = this.object.metadata;
    const account = {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: this.spec.serviceAccountName ?? 'default', namespace },
    };
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid };
    return requestToken(this.#objects, account, {
      audiences: audience === undefined ? [] : [audience],
      expirationSeconds,
      boundObjectRef,
    });
  }

  /** Removes the pod from the API server, and its files. */
  async remove(): Promise<void> {
    await this.files.remove();
    if ((await this.#objects.find(this.object)) !== undefined) await this.#objects.remove(this.object);
  }

  async #mount(volume: Volume, place: string): Promise<void> {
    const source = volume as Volume & {
      readonly secret?: FileSource;
      readonly configMap?: FileSource;
      readonly projected?: { readonly defaultMode: number; readonly sources: readonly ProjectedSource[] };
    };
    await mkdir(this.files.at(place), { recursive: true });
    const projected = source.projected?.sources ?? [{ ...source }];
    const { defaultMode } = source.projected ?? source.secret ?? source.configMap ?? {};
    for (const each of projected) {
      if (each.secret !== undefined) await this.#putFiles('Secret', each.secret, place, defaultMode);
      if (each.configMap !== undefined) await this.#putFiles('ConfigMap', each.configMap, place, defaultMode);
      const wanted = each.serviceAccountToken;
      // Readable by the group of the pod, as with `fsGroup`.
      if (wanted !== undefined)
        await this.files.put(join(place, wanted.path), await this.token(wanted), 0o640);
    }
  }

  async #putFiles(kind: string, source: FileSource, place: string, mode = 0o644): Promise<void> {
    const name = source.secretName ?? source.name ?? '';
    const { namespace = '' } = this.object.metadata;
    const { data = {} } = await this.#objects.read({ apiVersion: 'v1', kind, metadata: { name, namespace } });
    const contents = data as Readonly<Record<string, string>>;
    for (const { key, path } of source.items ??
      Object.keys(contents).map((each) => ({ key: each, path: each }))) {
      const text = contents[key];
      if (text === undefined) throw new Error(`${kind} ${name} has no ${key}`);
      const content = kind === 'Secret' ? Buffer.from(text, 'base64').toString() : text;
      await this.files.put(join(place, path), content, mode);
    }
  }
}

/** Binds the pod to a node, as the scheduler does. */
export async function bind(objects: Objects, pod: ApiObject, node: string): Promise<void> {
  const { name, namespace } = pod.metadata;
  const target = { apiVersion: 'v1', kind: 'Node', name: node };
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace }, target };
  const { status } = await objects.post(pod, 'binding', binding);
  if (status !== 201) throw new Error(`binding of ${name}: ${status}`);
}

function mountPathsOf(spec: PodSpec, volume: string): readonly string[] {
  const mounts = containersOf(spec).flatMap(({ volumeMounts }) => volumeMounts);
  return [...new Set(mounts.filter(({ name }) => name === volume).map(({ mountPath }) => mountPath))];
}

export interface TokenWish {
  readonly audiences: readonly string[];
  readonly expirationSeconds?: number;
  readonly boundObjectRef?: object;
}

/** @throws Error with the status when the API server issues no token */
export async function requestToken(objects: Objects, account: ApiObject, wish: TokenWish): Promise<string> {
  const { status, body } = await askForToken(objects, account, wish);
  if (status !== 201) throw new Error(`no token for ${account.metadata.name}: ${status}`);
  return (body.status as { readonly token: string }).token;
}

/** Returns the answer, whether or not it is a success. */
export function askForToken(objects: Objects, account: ApiObject, wish: TokenWish) {
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: wish };
  return objects.post(account, 'token', request);
}
