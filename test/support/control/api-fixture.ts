/**
 * Fixture that serves the API of Control: real HTTP on loopback, a SQLite store, and the publisher's real checks and keys.
 * Only sign-in is a fake.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RouteOptions } from 'fastify';
import { pino } from 'pino';
import { type ControlApp, type ControlAppOptions, createControlApp } from '../../../src/control/api/app.ts';
import { registerOpenApiRoute } from '../../../src/control/api/openapi.ts';
import { registerConfigurationRoutes } from '../../../src/control/api/routes/configuration-api.ts';
import { registerHealthRoutes } from '../../../src/control/api/routes/health-api.ts';
import type { Role } from '../../../src/control/contract/vocabulary.ts';
import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import { INSTALLATION, type Scope } from '../../../src/control/domain/roles.ts';
import type { Principal } from '../../../src/control/operators/operators.ts';
import { SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { createSiteCheck } from '../../../src/control/publishing/site-check.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';
import { FakeOperators } from '../fakes/control-operators.ts';
import { openMigratedStore } from './migrated-store.ts';

/** 2026-11-21T04:00:00Z */
const START_MS = 1_795_233_600_000;
export const PUBLIC_ORIGIN = 'https://control.shop.example';
/** Token of the only target in these tests. */
export const TARGET_TOKEN = 'fake-target-token';
const TARGET = { targetId: 'tgt_test', siteId: 'x', generation: 0, tokenHash: '', lackedMembers: [] };

export interface Asked {
  readonly token?: string | undefined;
  readonly body?: unknown;
  /** Raw request body, in place of `body`. */
  readonly text?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly ifMatch?: string | number;
  readonly key?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; an empty object without a body. */
  readonly json: JsonObject;
  /** Code of the problem. */
  readonly code: string | undefined;
}

/** Resources that most tests need, created over the API. */
export interface Shop {
  readonly environmentId: string;
  readonly fleetId: string;
  readonly siteId: string;
}

export const SITE_BODY = {
  site_id: 'shop-eu-1',
  display_name: 'Shop, Europe',
  trust_domain: 'shop.example',
  issuer_url: 'https://control.shop.example/sites/shop-eu-1',
  origins: ['https://api.shop.example'],
};

export const ROUTE_DEFINITION = {
  method: 'GET',
  path_template: '/v1/orders/{order_id}',
  audience: 'https://api.shop.example',
  freshness_class: 'bounded',
  max_staleness_seconds: 300,
  resource: 'orders',
};

export const ALLOWED_SOURCES = [
  {
    issuer: SITE_BODY.issuer_url,
    trust_domain: 'shop.example',
    subject_exact: 'client:billing',
    required_key_binding: 'software',
  },
];

export interface ApiWorldOptions {
  /** Default: SQLite in the fixture's directory. */
  readonly openStore?: (nowMs: () => number) => Promise<ControlStore>;
  readonly app?: Partial<ControlAppOptions>;
  /** Runs before any route is registered. */
  readonly prepare?: (app: ControlApp) => void;
  /** Registers further routes. */
  readonly extend?: (app: ControlApp, fixture: ApiFixture) => unknown;
}

export class ApiFixture {
  ms = START_MS;
  readonly nowMs = (): number => this.ms;
  readonly operators = new FakeOperators();
  readonly root = this.operator('root', 'admin', INSTALLATION);
  /** Every route of the app. */
  readonly routes: RouteOptions[] = [];
  /** Log lines. */
  readonly log: string[] = [];
  readonly directory: string;
  readonly #opened: { readonly store: ControlStore; readonly app: ControlApp };

  static async open(options: ApiWorldOptions = {}): Promise<ApiFixture> {
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-api-'));
    const opened: { store?: ControlStore; app?: ControlApp } = {};
    const fixture = new ApiFixture(directory, opened as { store: ControlStore; app: ControlApp });
    const openStore =
      options.openStore ?? ((nowMs) => openMigratedStore({ dataDirectory: directory, nowMs }));
    try {
      opened.store = await openStore(fixture.nowMs);
      opened.app = await serve(fixture, options);
      return fixture;
    } catch (error) {
      await opened.store?.close();
      await rm(directory, { recursive: true });
      throw error;
    }
  }

  private constructor(directory: string, opened: { readonly store: ControlStore; readonly app: ControlApp }) {
    this.directory = directory;
    this.#opened = opened;
  }

  get store(): ControlStore {
    return this.#opened.store;
  }

  get app(): ControlApp {
    return this.#opened.app;
  }

  get port(): number {
    const address = this.app.server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** @returns a token of an operator with one role */
  operator(name: string, role: Role, scope: Scope, via: Principal['via'] = 'access_token'): string {
    return this.operators.add(name, [{ role, scope }], via);
  }

  /** Calls as an operator of the whole installation, unless a token is given; `token: ''` sends no token. */
  call(method: string, path: string, asked: Asked = {}): Promise<Answer> {
    const token = asked.token ?? this.root;
    const text = asked.text ?? (asked.body === undefined ? undefined : JSON.stringify(asked.body));
    const headers = {
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...(text === undefined ? {} : { 'content-type': 'application/json' }),
      ...(asked.ifMatch === undefined ? {} : { 'if-match': tagOf(asked.ifMatch) }),
      ...(asked.key === undefined ? {} : { 'idempotency-key': asked.key }),
      ...asked.headers,
    };
    return send({ port: this.port, method, path, headers }, text);
  }

  /** @throws when the answer has another status */
  async expect(status: number, method: string, path: string, asked: Asked = {}): Promise<Answer> {
    const answer = await this.call(method, path, asked);
    if (answer.status !== status) {
      throw new Error(`${method} ${path}: ${answer.status} instead of ${status}: ${answer.text}`);
    }
    return answer;
  }

  /** Creates an environment, a fleet and a site. @param name distinguishes several */
  async shop(name = 'shop-eu-1'): Promise<Shop> {
    const environment = await this.expect(201, 'POST', '/v1/environments', { body: { name } });
    const environmentId = textIn(environment, 'environment_id');
    const fleet = await this.expect(201, 'POST', `/v1/environments/${environmentId}/fleets`, {
      body: { name },
    });
    const fleetId = textIn(fleet, 'fleet_id');
    const issuer_url = `https://control.shop.example/sites/${name}`;
    const body = { ...SITE_BODY, site_id: name, issuer_url };
    await this.expect(201, 'POST', `/v1/fleets/${fleetId}/sites`, { body });
    return { environmentId, fleetId, siteId: name };
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.store.close();
    await rm(this.directory, { recursive: true });
  }
}

async function serve(
  fixture: ApiFixture,
  { app: options = {}, prepare, extend }: ApiWorldOptions,
): Promise<ControlApp> {
  const app = await createControlApp({
    store: fixture.store,
    operators: fixture.operators,
    targets: {
      authenticate: async (authorization) => {
        if (authorization === `Bearer ${TARGET_TOKEN}`) return TARGET;
        throw new ApiProblem('authentication_required');
      },
    },
    log: pino({ level: 'info' }, { write: (line: string) => void fixture.log.push(line) }),
    origins: [PUBLIC_ORIGIN],
    ...options,
    limits: { ...UNLIMITED, ...options.limits },
  });
  app.addHook('onRoute', (route) => void fixture.routes.push(route));
  prepare?.(app);
  const signingKeys = new SiteSigningKeys(MasterKeys.random());
  registerConfigurationRoutes(app, {
    store: fixture.store,
    nowMs: fixture.nowMs,
    siteCheck: createSiteCheck(),
    createSiteKeys: (tx, siteId, nowMs) => signingKeys.create(tx, siteId, nowMs),
    keyring: signingKeys,
  });
  registerHealthRoutes(app, () => true);
  registerOpenApiRoute(app);
  await extend?.(app, fixture);
  await app.listen({ host: '127.0.0.1', port: 0 });
  return app;
}

const UNLIMITED = {
  workloadRequestsPerSecondPerAddress: 1_000_000,
  enrollmentsPerSecondPerPolicy: 1_000_000,
  requestsPerSecondPerPrincipal: 1_000_000,
  requestsPerSecondPerTarget: 1_000_000,
  failedSignInsPerMinutePerAddress: 1_000_000,
};

function tagOf(version: string | number): string {
  return typeof version === 'number' ? `"${version}"` : version;
}

/** A member of the answer that must be a string. */
export function textIn(answer: Answer, name: string): string {
  const value = answer.json[name];
  if (typeof value !== 'string') throw new Error(`${name} is not text in ${answer.text}`);
  return value;
}

export function itemsOf(answer: Answer): readonly JsonObject[] {
  const { items } = answer.json;
  if (!Array.isArray(items)) throw new Error(`no items in ${answer.text}`);
  return items.filter(isJsonObject);
}

/** Sends a request without a client library, so that nothing repairs, decodes or retries it. */
export function send(
  options: {
    readonly port: number;
    readonly method: string;
    readonly path: string;
    readonly headers: { readonly [name: string]: string };
  },
  text: string | undefined,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', agent: false, ...options }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const answered = Buffer.concat(chunks).toString('utf8');
        const json = parsed(answered);
        const code = typeof json.code === 'string' ? json.code : undefined;
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, text: answered, json, code });
      });
    });
    request.on('error', reject);
    request.end(text);
  });
}

function parsed(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
