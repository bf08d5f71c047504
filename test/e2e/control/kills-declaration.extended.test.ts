/**
 * Kills Control at random moments of a declaration, on both databases: the site is as before or as declared, never between.
 * `PROOFGATE_TEST_KILLS` sets the number of kills (`make soak`).
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import {
  type ControlDatabase,
  postgresDatabase,
  sqliteDatabase,
} from '../../support/control/control-database.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';

const KILLS = Number(process.env.PROOFGATE_TEST_KILLS ?? 3);
/** Each kill with its restart, on a machine that does other things too. */
const TIMEOUT_MS = 300_000 + KILLS * 30_000;
/** Enough that a declaration takes a while. */
const MEMBERS = 150;

type Site = ReturnType<typeof parse>;

/** Two declarations of the same site that have little in common. */
function variants(base: Site): { readonly [name: string]: Site } {
  const named = (name: string) => {
    const ids = Array.from({ length: MEMBERS }, (_, index) => `${name}-${index}`);
    const grants = [{ resource: 'orders', access: name === 'one' ? 'read' : 'write' }];
    const [route] = base.routes;
    return {
      ...base,
      site: { ...base.site, display_name: name },
      clients: [...base.clients, ...ids.map((id) => ({ client_id: id, subject: `client:${id}`, grants }))],
      routes: ids.map((id) => ({ ...route, route_id: id, path_template: `/v1/${id}/{id}` })),
      sources: base.sources.map((source: Site) => ({
        ...source,
        on_retire: name === 'one' ? 'keep' : 'revoke',
      })),
      enrollment_policies: base.enrollment_policies.map((policy: Site) => ({
        ...policy,
        max_key_lifetime_seconds: name === 'one' ? 600 : 1200,
      })),
    };
  };
  return { one: named('one'), two: named('two') };
}

class Killer {
  readonly #stage: ControlStage;
  readonly #database: ControlDatabase;
  readonly outcomes = { before: 0, declared: 0, answered: 0 };
  /** How long a declaration takes. */
  #durationMs = 0;

  constructor(stage: ControlStage, database: ControlDatabase) {
    this.#stage = stage;
    this.#database = database;
  }

  async #send(declaration: Site): Promise<Response> {
    const token = (await readFile(this.#stage.tokenFile, 'utf8')).trim();
    const url = `${this.#stage.controlUrl}/v1/sites/${SITE_ID}/declaration?prune=true`;
    const put = (query: string, headers: Record<string, string>) =>
      fetch(`${url}${query}`, {
        method: 'PUT',
        body: JSON.stringify(declaration),
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      });
    const compared = await put('&dry_run=true', {});
    const startedMs = performance.now();
    this.#onSent();
    const answer = await put('', { 'if-match': String(compared.headers.get('etag')) });
    this.#durationMs = performance.now() - startedMs;
    return answer;
  }

  #onSent: () => void = () => {};

  /** Declares without a kill. */
  async declare(declaration: Site): Promise<void> {
    const answer = await this.#send(declaration);
    if (answer.status !== 200) throw new Error(await answer.text());
  }

  /** Kills Control at a random moment of the declaration. @returns whether Control had answered that it is applied */
  async declareAndKill(declaration: Site): Promise<boolean> {
    const sent = new Promise<void>((resolve) => {
      this.#onSent = resolve;
    });
    const durationMs = this.#durationMs;
    const answer = this.#send(declaration).catch(() => undefined);
    await sent;
    await pause(Math.random() * durationMs * 1.2);
    await this.#stage.stopControl('SIGKILL');
    const isAnswered = (await answer)?.status === 200;
    if (isAnswered) this.outcomes.answered += 1;
    this.#durationMs = durationMs;
    return isAnswered;
  }

  /** Everything that the declarations change. */
  async state(): Promise<string> {
    const inSite = `where site_id = '${SITE_ID}'`;
    const rows = await this.#database.query({
      site: `select display_name from site where id = '${SITE_ID}'`,
      client: `select client_id, subject from client ${inSite} order by 1`,
      client_grant: `select client_id, resource, access from client_grant ${inSite} order by 1, 2`,
      route: `select route_id, definition from route ${inSite} order by 1`,
      route_sources: `select route_id, allowed_sources from route_sources ${inSite} order by 1`,
      source: `select display_name, on_retire from source ${inSite} order by 1`,
      enrollment_policy: `select display_name, max_key_lifetime_seconds from enrollment_policy ${inSite} order by 1`,
    });
    return JSON.stringify(rows);
  }

  /** Audit events of created clients, less those of deleted ones: as many as there are clients. */
  async auditedClients(): Promise<readonly [audited: number, stored: number]> {
    const count = (what: string) => `select count(*) as n from ${what}`;
    const { created, deleted, stored } = await this.#database.query<'created' | 'deleted' | 'stored'>({
      created: count("audit_event where kind = 'proofgate.control.client.create'"),
      deleted: count("audit_event where kind = 'proofgate.control.client.delete'"),
      stored: count('client'),
    });
    return [Number(created[0]?.n) - Number(deleted[0]?.n), Number(stored[0]?.n)];
  }
}

let server: TestPostgresServer | undefined;
afterAll(async () => server?.stop());

describe.each(['sqlite', 'postgres'])('%s', (name) => {
  it(
    `killed ${KILLS} times, the site is as before or as declared`,
    async () => {
      let databaseUrl: string | undefined;
      if (name === 'postgres') {
        server = await TestPostgresServer.start();
        databaseUrl = await server.createDatabase();
      }
      const stage = await ControlStage.start(databaseUrl === undefined ? {} : { databaseUrl });
      try {
        const database =
          server === undefined || databaseUrl === undefined
            ? sqliteDatabase(stage.dataDirectory)
            : postgresDatabase(server, databaseUrl);
        const killer = new Killer(stage, database);
        const { one, two } = variants(parse(await readFile(join(stage.directory, 'site.yaml'), 'utf8')));
        const states: string[] = [];
        for (const declaration of [one, two]) {
          await killer.declare(declaration);
          await stage.stopControl();
          states.push(await killer.state());
          await stage.startControl();
        }
        let now = 1;
        for (let kill = 0; kill < KILLS; kill++) {
          const isAnswered = await killer.declareAndKill(now === 1 ? one : two);
          const after = states.indexOf(await killer.state());
          expect(after).not.toBe(-1);
          if (isAnswered) expect(after).not.toBe(now);
          const [audited, stored] = await killer.auditedClients();
          expect(audited).toBe(stored);
          await stage.startControl();
          killer.outcomes[after === now ? 'before' : 'declared'] += 1;
          now = after;
        }
        process.stdout.write(`declarations killed, ${name}: ${JSON.stringify(killer.outcomes)}\n`);
        // Fewer may all come too early, or too late.
        if (KILLS >= 50)
          expect(Math.min(killer.outcomes.before, killer.outcomes.declared)).toBeGreaterThan(0);
      } finally {
        await stage.stop();
      }
    },
    TIMEOUT_MS,
  );
});
