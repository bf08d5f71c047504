/**
 * A fake Control that only distributes bundles: the contract of `src/bundle/format/distribution-contract.ts` over real HTTP or
 * HTTPS, with properly signed documents, and faults on request. It validates what a target sends against the contract and
 * answers 400 to anything else.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { Compile } from 'typebox/compile';
import {
  linkOf,
  signDelta,
  signFreshness,
  signLink,
  signWholeBundle,
} from '../../../src/bundle/authoring/publishing-documents.ts';
import { makeShards } from '../../../src/bundle/compile/key-shards.ts';
import { ACK_PATH, MAX_STEPS, MEMBERS_HEADER, POLL_PATH } from '../../../src/bundle/format/bundle-limits.ts';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import { SUMMARIES_PATH } from '../../../src/bundle/format/decision-summary.ts';
import {
  ACKNOWLEDGEMENT,
  type Acknowledgement,
  type DistributedBundle,
  type DistributedStep,
  POLL_QUERY,
  type PollAnswer,
  type PollQuery,
} from '../../../src/bundle/format/distribution-contract.ts';
import type { BundleContent, DeltaContent } from '../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { freePort } from '../harness/free-port.ts';

export interface FakeControlOptions {
  readonly authSite: string;
  readonly signer: SigningKey;
  /** Bearer token of the one target. */
  readonly token?: string;
  /** Whole seconds since the epoch. */
  readonly nowSeconds: () => number;
  /** PEM: then it speaks HTTPS. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Default: one that is free. */
  readonly port?: number;
}

/** Replaces the normal answer to the next request of a kind. */
export type Fault =
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Record<string, string> }
  | { readonly kind: 'body'; readonly body: Buffer | string; readonly etag?: string }
  /** Closes the connection without an answer. */
  | { readonly kind: 'reset' }
  /** Acts, and then loses the answer. */
  | { readonly kind: 'lose_answer' };

export type RequestKind = 'poll' | 'ack' | 'file';

interface Whole {
  readonly position: ChainPosition;
  readonly files: ReadonlyMap<string, Buffer>;
}

/** One place in the chain. */
interface Place {
  readonly position: ChainPosition;
  /** The step from the previous place; undefined if only the whole bundle leads here. */
  readonly step: DistributedStep | undefined;
}

const pollQuery = Compile(POLL_QUERY);
const acknowledgement = Compile(ACKNOWLEDGEMENT);

export async function startFakeControl(options: FakeControlOptions): Promise<FakeControl> {
  const control = new FakeControl(options);
  await control.listen(options.port ?? (await freePort()));
  return control;
}

export class FakeControl {
  readonly #options: FakeControlOptions;
  readonly #server: ReturnType<typeof createServer>;
  readonly #sockets = new Set<Socket>();
  #port = 0;
  #places: Place[] = [];
  #wholes: Whole[] = [];
  #freshness: string | undefined;
  #faults: { readonly on: RequestKind; readonly fault: Fault }[] = [];
  readonly #waiting = new Set<() => void>();
  /** Acknowledgements as received. */
  readonly acknowledgements: (Acknowledgement & { readonly atMs: number })[] = [];
  readonly polls: PollQuery[] = [];
  /** Members that each poll and acknowledgement names as known to the target. */
  readonly knownMembers: unknown[] = [];
  /** Names of files that were sent whole. */
  readonly filesSent: string[] = [];
  bytesSent = 0;
  token: string;

  constructor(options: FakeControlOptions) {
    this.#options = options;
    this.token = options.token ?? 'target-token';
    const onRequest: RequestListener = (request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    };
    const { tls } = options;
    this.#server = tls === undefined ? createServer(onRequest) : createTlsServer({ ...tls }, onRequest);
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Also while it is closed. */
  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `${this.#options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.port}`;
  }

  /** The end of the chain. */
  get position(): ChainPosition {
    const place = this.#places.at(-1);
    if (place === undefined) throw new Error('nothing is published yet');
    return place.position;
  }

  /** Position of the newest whole bundle. */
  get wholePosition(): ChainPosition {
    const whole = this.#wholes.at(-1);
    if (whole === undefined) throw new Error('nothing is published yet');
    return whole.position;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#wake();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** The next request of that kind. */
  failNext(on: RequestKind, fault: Fault): void {
    this.#faults.push({ on, fault });
  }

  /** Puts a whole bundle in the place of everything; only the bundle itself leads there. */
  publishWhole(content: Omit<BundleContent, 'revision' | 'previous_head'>, shards = false): ChainPosition {
    return this.#publishWhole(content, shards, false);
  }

  /** Publishes a whole bundle that changes nothing; a link leads to it too. */
  publishLinked(content: Omit<BundleContent, 'revision' | 'previous_head'>, shards = false): ChainPosition {
    return this.#publishWhole(content, shards, true);
  }

  #publishWhole(
    written: Omit<BundleContent, 'revision' | 'previous_head'>,
    inShards: boolean,
    isLinked: boolean,
  ): ChainPosition {
    const { derived_keys: derivedKeys = [], ...others } = written;
    const shards = inShards ? makeShards(derivedKeys) : [];
    const last = this.#places.at(-1)?.position;
    const content: BundleContent = {
      ...others,
      ...(inShards ? { key_shards: shards.map(({ entry }) => entry) } : { derived_keys: derivedKeys }),
      revision: (last?.revision ?? 0) + 1,
      ...(last === undefined ? {} : { previous_head: last.head }),
    };
    const whole = signWholeBundle(content, [this.#options.signer]);
    const link = isLinked ? linkOf(content, whole) : undefined;
    const step = link && signLink(link, [this.#options.signer]);
    const files = new Map([['bundle.jws', whole.document]]);
    for (const { entry, bytes } of shards) files.set(entry.file, bytes);
    this.#wholes.push({ position: whole.position, files });
    this.#add(whole.position, step && asStep('link', whole.position, step.document));
    return whole.position;
  }

  /** @param more members to change; its members about the chain are used, valid or not */
  publishDelta(more: Partial<DeltaContent>, signer = this.#options.signer): ChainPosition {
    const { revision, head } = this.position;
    const content: DeltaContent = {
      auth_site: this.#options.authSite,
      revision: revision + 1,
      previous_head: head,
      issued_at: formatTime(this.#options.nowSeconds()),
      clients_put: [],
      clients_removed: [],
      keys_put: [],
      keys_removed: [],
      ...more,
    };
    const signed = signDelta(content, [signer]);
    this.publishSigned(signed);
    return signed.position;
  }

  /** Publishes a delta signed earlier; it names its predecessor. */
  publishSigned({ document, position }: ReturnType<typeof signDelta>): void {
    this.#add(position, asStep('delta', position, document));
  }

  /** States that the end of the chain is the latest. */
  freshen(asOfSeconds = this.#options.nowSeconds()): void {
    const statement = { auth_site: this.#options.authSite, ...this.position, as_of: formatTime(asOfSeconds) };
    this.#freshness = signFreshness(statement, [this.#options.signer]).toString();
    this.#wake();
  }

  /** The newest statement, as it travels. */
  get freshness(): string | undefined {
    return this.#freshness;
  }

  /** Sends another text in its place, sound or not. */
  sendFreshness(text: string): void {
    this.#freshness = text;
    this.#wake();
  }

  /** How many requests are yet to fail. */
  get faultsLeft(): number {
    return this.#faults.length;
  }

  /** Forgets everything after a place, as a Control does that was restored from a backup. */
  restoreTo({ revision }: ChainPosition): void {
    this.#places = this.#places.filter(({ position }) => position.revision <= revision);
    this.#wholes = this.#wholes.filter(({ position }) => position.revision <= revision);
    this.#freshness = undefined;
    this.#wake();
  }

  /** Continues with revisions above those that targets have reported. */
  skipTo(revision: number): void {
    this.#places.push({ position: { ...this.position, revision }, step: undefined });
  }

  #add(position: ChainPosition, step: DistributedStep | undefined): void {
    this.#places.push({ position, step });
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    if (url.pathname === SUMMARIES_PATH) {
      problem(response, 404);
      return;
    }
    const kind: RequestKind =
      url.pathname === POLL_PATH ? 'poll' : url.pathname === ACK_PATH ? 'ack' : 'file';
    const index = this.#faults.findIndex(({ on }) => on === kind);
    const fault = index === -1 ? undefined : this.#faults.splice(index, 1)[0]?.fault;
    if (fault?.kind === 'reset') {
      request.socket.destroy();
      return;
    }
    if (fault?.kind === 'status') {
      problem(response, fault.status, fault.headers);
      return;
    }
    if (fault?.kind === 'body') {
      response.writeHead(200, fault.etag === undefined ? {} : { etag: fault.etag }).end(fault.body);
      return;
    }
    if (request.headers.authorization !== `Bearer ${this.token}`) {
      problem(response, 401);
      return;
    }
    this.knownMembers.push(request.headers[MEMBERS_HEADER]);
    if (kind === 'ack') await this.#acknowledge(request, response, fault?.kind === 'lose_answer');
    else if (kind === 'poll') await this.#poll(request, url, response);
    else this.#sendFile(url, response);
  }

  async #acknowledge(
    request: IncomingMessage,
    response: ServerResponse,
    losesAnswer: boolean,
  ): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
    if (request.method !== 'POST' || !acknowledgement.Check(body)) {
      problem(response, 400);
      return;
    }
    this.acknowledgements.push({ ...body, atMs: performance.now() });
    if (losesAnswer) request.socket.destroy();
    else response.writeHead(204).end();
  }

  async #poll(request: IncomingMessage, url: URL, response: ServerResponse): Promise<void> {
    const query = readQuery(url);
    if (request.method !== 'GET' || query === undefined) {
      problem(response, 400);
      return;
    }
    this.polls.push(query);
    const deadlineMs = performance.now() + (query.wait_seconds ?? 0) * 1000;
    while (request.headers['if-none-match'] === this.#etag()) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0 || response.destroyed)
        return void response.writeHead(304, { etag: this.#etag() }).end();
      await this.#change(leftMs);
    }
    if (this.#places.length === 0) {
      problem(response, 503);
      return;
    }
    const text = JSON.stringify(this.#answer(query));
    this.bytesSent += text.length;
    response.writeHead(200, { 'content-type': 'application/json', etag: this.#etag() }).end(text);
  }

  /** Resolves on a change or after the time. */
  #change(mostMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, mostMs);
      this.#waiting.add(wake);
    });
  }

  #etag(): string {
    const { revision, head } = this.#places.at(-1)?.position ?? { revision: 0, head: '' };
    const covered = JSON.stringify([revision, head, this.#freshness]);
    return `"${createHash('sha256').update(covered).digest('base64url')}"`;
  }

  #answer({ revision, head, base_revision: baseRevision }: PollQuery): PollAnswer {
    const at = this.#places.findIndex(
      ({ position }) => position.revision === revision && position.head === head,
    );
    const steps = at === -1 ? undefined : this.#stepsAfter(at);
    const newest = this.wholePosition.revision;
    const isOffered = steps === undefined || baseRevision === undefined || baseRevision < newest;
    const cut = steps?.slice(0, MAX_STEPS) ?? [];
    return {
      auth_site: this.#options.authSite,
      ...this.position,
      steps: cut,
      ...(isOffered ? { whole: this.#whole(steps === undefined) } : {}),
      ...(this.#freshness === undefined ? {} : { freshness: this.#freshness }),
    };
  }

  /** Undefined where only a whole bundle leads on. */
  #stepsAfter(at: number): DistributedStep[] | undefined {
    const steps = this.#places.slice(at + 1).map(({ step }) => step);
    const found = steps.filter((step) => step !== undefined);
    return found.length === steps.length ? found : undefined;
  }

  #whole(required: boolean): DistributedBundle {
    const whole = this.#wholes.at(-1);
    if (whole === undefined) throw new Error('nothing is published yet');
    const at = this.#places.findIndex(({ position }) => position.head === whole.position.head);
    return {
      ...whole.position,
      files: [...whole.files].map(([name, bytes]) => ({
        name,
        bytes: bytes.length,
        sha256: createHash('sha256').update(bytes).digest('base64url'),
        path: `/v1/targets/self/bundles/${whole.position.revision}/${name}`,
      })),
      steps: this.#stepsAfter(at) ?? [],
      required,
    };
  }

  #sendFile(url: URL, response: ServerResponse): void {
    const [, revision, name] = /^\/v1\/targets\/self\/bundles\/([0-9]+)\/([^/]+)$/.exec(url.pathname) ?? [];
    const whole = this.#wholes.find(({ position }) => position.revision === Number(revision));
    const bytes = whole?.files.get(name ?? '');
    if (bytes === undefined || name === undefined) {
      problem(response, 404);
      return;
    }
    this.filesSent.push(name);
    this.bytesSent += bytes.length;
    response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(bytes);
  }
}

function readQuery({ searchParams }: URL): PollQuery | undefined {
  const names = ['revision', 'base_revision', 'wait_seconds'];
  const query: unknown = Object.fromEntries(
    [...searchParams].map(([name, value]) => [name, names.includes(name) ? Number(value) : value]),
  );
  if (!pollQuery.Check(query)) return undefined;
  return (query.revision === undefined) === (query.head === undefined) ? query : undefined;
}

function asStep(kind: 'delta' | 'link', { revision }: ChainPosition, document: Buffer): DistributedStep {
  return { kind, revision, document: document.toString() };
}

function problem(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  const body = { type: 'urn:proofgate:problem:unavailable', title: 'fault', status, code: 'unavailable' };
  response
    .writeHead(status, { 'content-type': 'application/problem+json', ...headers })
    .end(JSON.stringify(body));
}
