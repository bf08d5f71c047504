/**
 * A broker on loopback with everything real but its clock: certificates and tokens of throw-away authorities, and callers that
 * sign as docs/operate/broker.md says.
 */
import { createServer, type RequestListener, type Server } from 'node:http';
import { afterAll } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { createBrokerApp } from '../../../src/broker/api/broker-app.ts';
import type { BrokerApp } from '../../../src/broker/api/broker-http.ts';
import type { BrokerChallenge, CallerProof } from '../../../src/broker/broker-contract.ts';
import { createBrokerMetrics } from '../../../src/broker/broker-metrics.ts';
import {
  type BrokerPorts,
  type BrokerSettings,
  type Connection,
  DEFAULT_BROKER_LIMITS,
  type PassportSigningKey,
} from '../../../src/broker/broker-ports.ts';
import { parseDenyList } from '../../../src/broker/deny-list.ts';
import { parseSoftwareKeys } from '../../../src/broker/software-keys.ts';
import type { BrokerEvent } from '../../../src/process/telemetry/broker-event.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';
import type { TrustBundles } from '../../../src/spiffe/trust-bundles.ts';
import { bundlesOf, SpiffeAuthority } from '../fakes/spiffe-authority.ts';
import { BROKER_ISSUER, NOW_SECONDS, newSigningKey, TRUST_DOMAIN } from '../fixtures/bundle-content.ts';

export const NOW_MS = NOW_SECONDS * 1000;
export const HOUR_MS = 3_600_000;
/** Validity of certificates around the broker's clock. */
export const VALID = { notBeforeMs: NOW_MS - HOUR_MS, notAfterMs: NOW_MS + HOUR_MS };
export const BROKER_URL = 'https://broker.shop.example:9196';

export function newAuthority(trustDomain = TRUST_DOMAIN): SpiffeAuthority {
  return SpiffeAuthority.create(trustDomain, VALID);
}

/** Signs in memory; a set of them is a port. */
export function passportKey(key: SigningKey, keyId: string, trustDomain = TRUST_DOMAIN): PassportSigningKey {
  const { publicKey, privateKey } = key;
  const sign = async (bytes: Uint8Array) => signMessage(publicKey.algorithm, privateKey, bytes);
  return { keyId, trustDomain, publicKey, sign };
}

export interface TestBrokerOptions {
  readonly settings?: Partial<BrokerSettings>;
  readonly ports?: Partial<BrokerPorts>;
  readonly keys?: readonly PassportSigningKey[];
  readonly authorities?: readonly SpiffeAuthority[];
  readonly bundles?: TrustBundles;
  /** YAML of `--software-keys` and `--deny-file`. */
  readonly softwareKeys?: string;
  readonly denyList?: string;
  /** The connection of every request. */
  readonly connection?: () => Connection;
  readonly createServer?: (handler: RequestListener) => Server;
}

export interface Answer {
  readonly status: number;
  readonly json: JsonObject;
  readonly code: string | undefined;
  readonly retryAfter: string | undefined;
}

export interface TestBroker {
  /** `http://127.0.0.1:…` */
  readonly url: string;
  readonly app: BrokerApp;
  readonly clock: { nowMs: number };
  readonly events: BrokerEvent[];
  readonly registry: Registry;
  post(path: string, body?: unknown): Promise<Answer>;
  get(path: string): Promise<Answer>;
  /** A new challenge. */
  challenge(): Promise<string>;
  passport(proof: CallerProof, audience?: string): Promise<Answer>;
}

export async function testBroker(options: TestBrokerOptions = {}): Promise<TestBroker> {
  const clock = { nowMs: NOW_MS };
  const events: BrokerEvent[] = [];
  const registry = new Registry();
  const keys = options.keys ?? [passportKey(newSigningKey(), 'broker-1')];
  const app = await createBrokerApp({
    settings: {
      publicUrl: BROKER_URL,
      issuer: BROKER_ISSUER,
      passportTtlSeconds: 300,
      acceptsJwtSvids: true,
      servesProofs: false,
      limits: {
        ...DEFAULT_BROKER_LIMITS,
        requestsPerSecondPerAddress: 100_000,
        requestsPerSecondPerIdentity: 1000,
      },
      ...options.settings,
    },
    ports: {
      signingKeys: {
        current: (trustDomain) => keys.find((key) => key.trustDomain === trustDomain),
        published: () => keys,
        trustDomains: () => [...new Set(keys.map(({ trustDomain }) => trustDomain))],
      },
      trustBundles: options.bundles ?? bundlesOf(...(options.authorities ?? [])),
      softwareKeys: parseSoftwareKeys(options.softwareKeys ?? 'keys: []'),
      denyList: parseDenyList(options.denyList ?? '{}'),
      signingProfiles: { fitting: () => [] },
      challengeKeys: () => [CHALLENGE_KEY],
      connectionOf: options.connection ?? (() => ({ kind: 'plain' })),
      audit: { record: (event) => events.push(event) > 0 },
      metrics: createBrokerMetrics(registry),
      nowMs: () => clock.nowMs,
      ...options.ports,
    },
    log: pino({ level: 'silent' }),
    createServer: options.createServer ?? ((handler) => createServer(handler)),
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  open.push(app);
  const ask = async (method: 'GET' | 'POST', path: string, payload?: unknown): Promise<Answer> => {
    const answer = await fetch(`${url}${path}`, {
      method,
      ...(payload === undefined ? {} : jsonBody(payload)),
    });
    const parsed: unknown = await answer.json();
    const json = isJsonObject(parsed) ? parsed : {};
    return {
      status: answer.status,
      json,
      code: typeof json.code === 'string' ? json.code : undefined,
      retryAfter: answer.headers.get('retry-after') ?? undefined,
    };
  };
  const post = (path: string, body?: unknown) => ask('POST', path, body);
  return {
    app,
    url,
    clock,
    events,
    registry,
    post,
    get: (path) => ask('GET', path),
    async challenge() {
      const { json } = await post('/v1/challenges');
      return (json as BrokerChallenge).challenge;
    },
    passport: (proof, audience = AUDIENCE) => post('/v1/passports', { audience, proof }),
  };
}

function jsonBody(payload: unknown) {
  // A text is sent as it is.
  const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
  return { body, headers: { 'content-type': 'application/json' } };
}

const open: BrokerApp[] = [];
afterAll(async () => {
  await Promise.all(open.map((app) => app.close()));
});

export const CHALLENGE_KEY = Buffer.alloc(32, 7);
export const AUDIENCE = 'https://api.shop.example';
