/** Reads and writes objects of the API server by their kinds, and lists all objects. */
import { Agent } from 'node:https';
import type { ApiAnswer } from '../support/control/control-program.ts';
import type { Cluster } from './cluster.ts';

/** An object as read from the server or to be created. */
export interface ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly generation?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [member: string]: unknown;
}

export type ObjectName = Pick<ApiObject, 'apiVersion' | 'kind'> & {
  readonly metadata: Pick<ApiObject['metadata'], 'name' | 'namespace'>;
};

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

const rootOf = (groupVersion: string) =>
  groupVersion.includes('/') ? `/apis/${groupVersion}` : `/api/${groupVersion}`;

export class Objects {
  readonly #cluster: Cluster;
  readonly #resources = new Map<string, readonly Resource[]>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Rejects unknown members. With `dryRun` the server validates the object and stores nothing. */
  async create(object: ApiObject, { dryRun = false } = {}): Promise<ApiAnswer> {
    const path = await this.#collection(object);
    const query = `?fieldValidation=Strict${dryRun ? '&dryRun=All' : ''}`;
    return this.#cluster.call({ method: 'POST', path: `${path}${query}`, body: object });
  }

  /** @throws Error with the server's message when it rejects the object or warns */
  async mustCreate(object: ApiObject): Promise<ApiObject> {
    const { status, body, headers } = await this.create(object);
    if (status !== 201 || headers.warning !== undefined) {
      throw new Error(
        `${object.kind} ${object.metadata.name}: ${status} ${JSON.stringify(body)} ${headers.warning}`,
      );
    }
    return asObject(body);
  }

  /** @throws Error when the object does not exist */
  async read(name: ObjectName): Promise<ApiObject> {
    const found = await this.find(name);
    if (found === undefined) throw new Error(`there is no ${name.kind} ${name.metadata.name}`);
    return found;
  }

  async find(name: ObjectName): Promise<ApiObject | undefined> {
    const { status, body } = await this.#cluster.call({ path: await this.#pathOf(name) });
    return status === 200 ? asObject(body) : undefined;
  }

  /** Deletes without a grace period, because there is no kubelet to wait for. */
  async remove(name: ObjectName): Promise<void> {
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 };
    const path = await this.#pathOf(name);
    const { status } = await this.#cluster.call({ method: 'DELETE', path, body: options });
    if (status >= 300) throw new Error(`${name.kind} ${name.metadata.name} was not deleted: ${status}`);
  }

  /** @param part subresource, such as `token` of a ServiceAccount */
  async post(name: ObjectName, part: string, body: object): Promise<ApiAnswer> {
    return this.#cluster.call({ method: 'POST', path: `${await this.#pathOf(name)}/${part}`, body });
  }

  /** Sets the phase as a kubelet does. */
  setPhase(pod: ObjectName, phase: 'Succeeded' | 'Failed'): Promise<void> {
    return this.setStatus(pod, { phase });
  }

  /** Sets the status as a controller does. */
  async setStatus(name: ObjectName, status: object): Promise<void> {
    const answer = await this.#cluster.call({
      method: 'PATCH',
      path: `${await this.#pathOf(name)}/status`,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { status },
    });
    if (answer.status !== 200) {
      throw new Error(`status of ${name.metadata.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
    }
  }

  /**
   * Every object of every group, once, by its UID: `Deployment gateway/rel-proofgate-control`. Excludes Events: the API server
   * writes some itself about addresses of Services, and they expire.
   */
  async all(): Promise<ReadonlyMap<string, string>> {
    const agent = new Agent({ keepAlive: true, maxSockets: 8 });
    try {
      const lists = (await this.#groupVersions()).map((groupVersion) => this.#allOf(groupVersion, agent));
      return new Map((await Promise.all(lists)).flat());
    } finally {
      agent.destroy();
    }
  }

  async #allOf(groupVersion: string, agent: Agent): Promise<readonly (readonly [string, string])[]> {
    const listed = (await this.#listed(groupVersion, agent)).filter(
      ({ name, kind, verbs }) => !name.includes('/') && verbs.includes('list') && kind !== 'Event',
    );
    const lists = listed.map(async ({ name, kind }) => {
      const path = `${rootOf(groupVersion)}/${name}`;
      const { status, body } = await this.#cluster.call({ path, agent });
      if (status !== 200) throw new Error(`list of ${groupVersion} ${name}: ${status}`);
      return itemsOf(body).map(({ metadata }) => {
        const { uid = '', namespace, name: own } = metadata;
        return [uid, `${kind} ${namespace === undefined ? '' : `${namespace}/`}${own}`] as const;
      });
    });
    return (await Promise.all(lists)).flat();
  }

  async #groupVersions(): Promise<readonly string[]> {
    const { body } = await this.#cluster.call({ path: '/apis' });
    const groups = body.groups as readonly { readonly versions: readonly { groupVersion: string }[] }[];
    return ['v1', ...groups.flatMap(({ versions }) => versions.map(({ groupVersion }) => groupVersion))];
  }

  async #listed(groupVersion: string, agent?: Agent): Promise<readonly Resource[]> {
    const { status, body } = await this.#cluster.call({
      path: rootOf(groupVersion),
      ...(agent === undefined ? {} : { agent }),
    });
    if (status !== 200) throw new Error(`${groupVersion} is not served: ${status}`);
    return body.resources as readonly Resource[];
  }

  async #pathOf(name: ObjectName): Promise<string> {
    return `${await this.#collection(name)}/${name.metadata.name}`;
  }

  async #collection({ apiVersion, kind, metadata }: ObjectName): Promise<string> {
    const known = this.#resources.get(apiVersion) ?? (await this.#listed(apiVersion));
    this.#resources.set(apiVersion, known);
    const resource = known.find((each) => each.kind === kind && !each.name.includes('/'));
    if (resource === undefined) throw new Error(`${apiVersion} has no ${kind}`);
    const namespace = resource.namespaced ? `/namespaces/${metadata.namespace}` : '';
    return `${rootOf(apiVersion)}${namespace}/${resource.name}`;
  }
}

function asObject(body: ApiAnswer['body']): ApiObject {
  return body as unknown as ApiObject;
}

function itemsOf(body: ApiAnswer['body']): readonly Pick<ApiObject, 'metadata'>[] {
  return (body.items ?? []) as readonly Pick<ApiObject, 'metadata'>[];
}
