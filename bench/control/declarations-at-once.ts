/**
 * Measures what declarations cost everyone else: 20 dry runs of a viewer, then 20 applies at once of many changed clients, on a
 * site of 100,000. Meanwhile another site's verifier waits for freshness statements, and keys are revoked. Declarations that
 * are rate limited are sent again. Each round ends at a deadline; declarations without an answer by then are dropped.
 */
import { setMaxListeners } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { parse } from 'yaml';
import { POLL_PATH } from '../../src/bundle/format/bundle-limits.ts';
import type { ControlClient } from '../../src/cli/ctl/client/control-client.ts';
import { ControlStage, type ControlStageOptions } from '../../test/support/control/control-fixture.ts';
import { SITE_ID } from '../../test/support/control/site-declaration.ts';
import { TestPostgresServer } from '../../test/support/harness/postgres-server.ts';

export const SITE_CLIENTS = Number(process.env.PROOFGATE_BENCH_CLIENTS ?? 100_000);
export const AT_ONCE = 20;
export const ROUND_SECONDS = Number(process.env.PROOFGATE_BENCH_ROUND_SECONDS ?? 20);
/** A revocation that takes longer is given up: older versions never end some. */
const MOST_TRIED_MS = 60_000;
/** Longest that a revocation may take, and longest that a statement may be late. */
export const MOST_WAIT_MS = 2000;
/** Clients that a part of the site adds: no more than one apply may. */
const PART = 10_000;
const OTHER_SITE = 'other';
const PAUSE_MS = 100;
const QUIET_MS = 5000;

export interface RoundFigures {
  readonly name: string;
  /** Declarations by status; `none` had no answer by the deadline. */
  readonly answers: { readonly [status: string]: number };
  readonly revocations: number;
  /** Milliseconds of the slowest revocation, retries included. */
  readonly slowestRevocationMs: number;
  /** Revocations that were answered with an error first. */
  readonly failedRevocations: number;
  /** Oldest age of the other site's statement, milliseconds. */
  readonly oldestStatementMs: number;
}

export interface DeclarationsAtOnce {
  readonly database: 'SQLite' | 'PostgreSQL';
  readonly rounds: readonly RoundFigures[];
  readonly peakRssMiB: number;
}

/** @param controlRelease file of another version's program, to compare with */
export async function measureDeclarationsAtOnce(
  controlRelease: string | undefined,
): Promise<readonly DeclarationsAtOnce[]> {
  const server = await TestPostgresServer.start();
  try {
    const databaseUrl = await server.createDatabase();
    return [
      await measure('SQLite', { controlRelease }),
      await measure('PostgreSQL', { controlRelease, databaseUrl }),
    ];
  } finally {
    await server.stop();
  }
}

async function measure(
  database: DeclarationsAtOnce['database'],
  options: ControlStageOptions,
): Promise<DeclarationsAtOnce> {
  const stage = await ControlStage.start(options);
  try {
    const campaign = await Campaign.open(stage);
    const rounds: RoundFigures[] = [await campaign.round('nothing else', 0, false)];
    rounds.push(await campaign.round(`${AT_ONCE} dry runs of a viewer, ${PART} changed`, PART, true));
    rounds.push(await campaign.round(`${AT_ONCE} applies, ${PART} changed`, PART, false));
    await campaign.close();
    return { database, rounds, peakRssMiB: await peakRssMiB(stage.control.pid) };
  } finally {
    await stage.stop();
  }
}

class Campaign {
  readonly #stage: ControlStage;
  readonly #api: ControlClient;
  readonly #token: string;
  readonly #targetToken: string;
  readonly #base: { readonly clients: readonly object[] };
  readonly #agent = new Agent({ connections: 64 });
  #change = 0;

  private constructor(
    stage: ControlStage,
    parts: { api: ControlClient; token: string; targetToken: string; base: { clients: readonly object[] } },
  ) {
    this.#stage = stage;
    this.#api = parts.api;
    this.#token = parts.token;
    this.#targetToken = parts.targetToken;
    this.#base = parts.base;
  }

  /** Declares the clients and the other site. */
  static async open(stage: ControlStage): Promise<Campaign> {
    const base = parse(await readFile(join(stage.directory, 'site.yaml'), 'utf8'));
    const api = await stage.api();
    const token = (await readFile(stage.tokenFile, 'utf8')).trim();
    const campaign = new Campaign(stage, { api, token, targetToken: '', base });
    for (let count = PART; count <= SITE_CLIENTS; count += PART) {
      await campaign.#declare(campaign.#site(count - 10, 0), undefined, AbortSignal.timeout(300_000));
    }
    const other = structuredClone(base);
    Object.assign(other.site, {
      site_id: OTHER_SITE,
      issuer_url: 'https://control.shop.example/sites/other',
    });
    Object.assign(other, { sources: [], enrollment_policies: [], brokers: [], targets: ['gateway'] });
    const answer = await campaign.#put(OTHER_SITE, '', other, {}, AbortSignal.timeout(60_000));
    const { tokens } = JSON.parse(answer.text);
    return new Campaign(stage, { api, token, targetToken: String(tokens[0].token), base });
  }

  /** The declared site with so many clients, of which the first have another context. */
  #site(count: number, changed: number): object {
    const clients = Array.from({ length: count }, (_, index) => ({
      client_id: `client-${index}`,
      subject: `client:${index}`,
      context: { team: index < changed ? `team-${this.#change}` : 'team' },
    }));
    return { ...this.#base, clients: [...this.#base.clients, ...clients] };
  }

  async #put(
    siteId: string,
    query: string,
    site: object | string,
    headers: { readonly [name: string]: string },
    signal: AbortSignal,
  ) {
    const answer = await request(`${this.#stage.controlUrl}/v1/sites/${siteId}/declaration${query}`, {
      ...{ method: 'PUT', body: typeof site === 'string' ? site : JSON.stringify(site) },
      ...{ signal, dispatcher: this.#agent, headersTimeout: 0, bodyTimeout: 0 },
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json', ...headers },
    });
    return { status: answer.statusCode, etag: answer.headers.etag, text: await answer.body.text() };
  }

  async #declare(site: object | string, etag: string | undefined, signal: AbortSignal): Promise<number> {
    const tag = etag ?? String((await this.#put(SITE_ID, '?dry_run=true', site, {}, signal)).etag);
    return (await this.#put(SITE_ID, '', site, { 'if-match': tag }, signal)).status;
  }

  async round(name: string, changed: number, dryRun: boolean): Promise<RoundFigures> {
    this.#change += 1;
    const keys = await this.#enrollKeys();
    const body = JSON.stringify(this.#site(SITE_CLIENTS - 10, changed));
    const untilApply = AbortSignal.timeout(120_000);
    const etag =
      changed === 0 || dryRun
        ? undefined
        : String((await this.#put(SITE_ID, '?dry_run=true', body, {}, untilApply)).etag);
    await this.#untilFresh();
    const deadline = AbortSignal.timeout(ROUND_SECONDS * 1000);
    setMaxListeners(0, deadline);
    const over = new AbortController();
    const ages = this.#watchAge(over.signal);
    const revoked = this.#revokeEach(keys, over.signal);
    const answers: Record<string, number> = {};
    const viewer = { authorization: `Bearer ${await this.#viewerToken()}` };
    const one = async () => {
      for (;;) {
        const send = dryRun
          ? this.#put(SITE_ID, '?dry_run=true', body, viewer, deadline).then(({ status }) => status)
          : this.#declare(body, etag, deadline);
        const status = await send.catch(() => 'none');
        answers[status] = (answers[status] ?? 0) + 1;
        if (status !== 429) return;
        await delay(PAUSE_MS * 5);
      }
    };
    if (changed === 0) await delay(QUIET_MS);
    else await Promise.all(Array.from({ length: AT_ONCE }, one));
    over.abort();
    const oldestStatementMs = await ages;
    return { name, answers, oldestStatementMs, ...(await revoked) };
  }

  async #viewerToken(): Promise<string> {
    const scope = { kind: 'site', id: SITE_ID };
    const answer = await request(`${this.#stage.controlUrl}/v1/access-tokens`, {
      ...{ method: 'POST', dispatcher: this.#agent },
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'viewer', role: 'viewer', scope }),
    });
    return String(JSON.parse(await answer.body.text()).token);
  }

  async #enrollKeys(): Promise<readonly string[]> {
    const keys: string[] = [];
    for (let count = 0; count < 8; count++) keys.push((await this.#stage.enroll('billing')).keyId);
    return keys;
  }

  /** Age of the other site's statement; undefined without one. */
  async #age(): Promise<number | undefined> {
    const answer = await request(`${this.#stage.controlUrl}${POLL_PATH}`, {
      ...{ dispatcher: this.#agent, headersTimeout: 0 },
      headers: { authorization: `Bearer ${this.#targetToken}` },
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) return undefined;
    const { freshness } = JSON.parse(text);
    if (typeof freshness !== 'string') return undefined;
    const { as_of: asOf } = JSON.parse(Buffer.from(JSON.parse(freshness).payload, 'base64url').toString());
    return Date.now() - Date.parse(asOf);
  }

  async #untilFresh(): Promise<void> {
    for (let tries = 0; tries < 600; tries++) {
      const age = await this.#age();
      if (age !== undefined && age < 4000) return;
      await delay(PAUSE_MS);
    }
    throw new Error('the other site gets no statements');
  }

  /** Also counts the time of the poll itself: a verifier whose poll is not answered has no newer statement. */
  async #watchAge(over: AbortSignal): Promise<number> {
    let oldest = 0;
    while (!over.aborted) {
      oldest = Math.max(oldest, (await this.#age()) ?? 0);
      await delay(PAUSE_MS);
    }
    return oldest;
  }

  async #revokeEach(keys: readonly string[], over: AbortSignal) {
    let [slowestRevocationMs, failedRevocations, revocations] = [0, 0, 0];
    for (const keyId of keys) {
      if (over.aborted) break;
      const startedMs = performance.now();
      for (;;) {
        const done = await this.#api.act(`/v1/derived-keys/${keyId}/revoke`, { body: {} }).then(
          () => true,
          () => false,
        );
        if (done || performance.now() - startedMs > MOST_TRIED_MS) break;
        failedRevocations += 1;
        await delay(PAUSE_MS);
      }
      revocations += 1;
      slowestRevocationMs = Math.max(slowestRevocationMs, performance.now() - startedMs);
      await delay(500);
    }
    return { slowestRevocationMs, failedRevocations, revocations };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
    await this.#api.close();
  }
}

async function peakRssMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
