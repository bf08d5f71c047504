/** Control's API with declarations over one database, whose whole content can be compared. The issuer is a fake. */

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import LibsqlDatabase from 'libsql';
import { parse } from 'yaml';
import { registerDeclarationRoute } from '../../../src/control/api/routes/declaration-api.ts';
import type { SiteDeclaration } from '../../../src/control/contract/declaration-contract.ts';
import { compareIn } from '../../../src/control/declaration/comparison.ts';
import { Declarations } from '../../../src/control/declaration/declarations.ts';
import type { SourceValidation } from '../../../src/control/issuers/validate-source.ts';
import { SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { createSiteCheck } from '../../../src/control/publishing/site-check.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import { SourceLifecycle } from '../../../src/control/sources/source-lifecycle.ts';
import type { ControlStore, Transaction } from '../../../src/control/store/port.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { isJsonObject } from '../../../src/protocol/strict-json.ts';
import { type Answer, ApiFixture, type Asked } from '../../support/control/api-fixture.ts';
import { createMigratedDatabase, openMigratedStore } from '../../support/control/migrated-store.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';

type Mutable<T> = T extends object ? { -readonly [M in keyof T]: Mutable<T[M]> } : T;
export type Declaration = Mutable<SiteDeclaration>;

const SITE: Declaration = parse(readFileSync('bundles/site.yaml', 'utf8'));

/** `bundles/site.yaml`, changed. */
export function declared(change: (site: Declaration) => void = () => {}): Declaration {
  const site = structuredClone(SITE);
  change(site);
  return site;
}

export const SITE_ID = declared().site.site_id;
const PATH = `/v1/sites/${SITE_ID}/declaration`;

interface Database {
  open(nowMs: () => number): Promise<ControlStore>;
  /** All rows of all tables, by table. The store must be closed. */
  dump(): Promise<Dump>;
}

/** A hash of each table's rows. */
export type Dump = { readonly [table: string]: string };

export interface DatabaseServer {
  readonly name: string;
  start(): Promise<void>;
  fresh(): Promise<Database>;
  stop(): Promise<void>;
}

export function databaseServers(): readonly DatabaseServer[] {
  return [sqlite(), postgres()];
}

function sqlite(): DatabaseServer {
  const directories: string[] = [];
  return {
    name: 'sqlite',
    start: async () => {},
    async fresh() {
      const dataDirectory = await mkdtemp(join(tmpdir(), 'proofgate-declaration-'));
      directories.push(dataDirectory);
      return {
        open: (nowMs) => openMigratedStore({ dataDirectory, nowMs }),
        async dump() {
          const database = new LibsqlDatabase(join(dataDirectory, 'control.sqlite'));
          const rows = (text: string) => database.prepare(text).all([]) as { readonly name: string }[];
          const named = rows("select name from sqlite_schema where type = 'table' order by name");
          const dump = named.map(({ name }) => [name, hashOf(rows(`select * from "${name}"`))]);
          database.close();
          return Object.fromEntries(dump);
        },
      };
    },
    async stop() {
      for (const directory of directories) await rm(directory, { recursive: true, force: true });
    },
  };
}

const hashOf = (rows: unknown) => hash('sha256', JSON.stringify(rows));

const RELATIONS =
  "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = $1 order by relname";

function postgres(): DatabaseServer {
  let server: TestPostgresServer;
  return {
    name: 'postgres',
    async start() {
      server = await TestPostgresServer.start();
    },
    async fresh() {
      const url = await createMigratedDatabase(server);
      const content = async (kind: 'r' | 'S', columns: string) => {
        const rows: [string, string][] = [];
        for (const { relname } of await server.query(url, RELATIONS, [kind])) {
          const text = `select ${columns} as row from "${relname}" t order by 1`;
          rows.push([String(relname), hashOf(await server.query(url, text))]);
        }
        return rows;
      };
      return {
        open: (nowMs) => openPostgresStore({ url, nowMs }),
        // Sequences too: a rollback does not put them back.
        dump: async () =>
          Object.fromEntries([...(await content('r', 't::text')), ...(await content('S', 'last_value'))]),
      };
    },
    stop: () => server.stop(),
  };
}

export class DeclarationFixture {
  readonly #database: Database;
  #api: ApiFixture | undefined;
  #lifecycle: SourceLifecycle | undefined;
  /** What the issuers answer from now on. */
  validation: SourceValidation['kind'] = 'valid';

  private constructor(database: Database) {
    this.#database = database;
  }

  static async open(server: DatabaseServer): Promise<DeclarationFixture> {
    const fixture = new DeclarationFixture(await server.fresh());
    await fixture.#open();
    return fixture;
  }

  async #open(): Promise<void> {
    const signingKeys = new SiteSigningKeys(MasterKeys.random());
    this.#api = await ApiFixture.open({
      openStore: (nowMs) => this.#database.open(nowMs),
      extend: (app, { store, nowMs }) => {
        this.#lifecycle = new SourceLifecycle({
          ...{ store, nowMs },
          validate: async (coordinates) => this.#validate(coordinates.issuer),
          report: (error) => {
            throw error;
          },
        });
        const comparer = compareIn({ read: (work) => store.readAside(work) });
        const deps = { store, comparer, nowMs, siteCheck: createSiteCheck(), lifecycle: this.#lifecycle };
        registerDeclarationRoute(
          app,
          new Declarations({ ...deps, createSiteKeys: (tx, id, now) => signingKeys.create(tx, id, now) }),
        );
      },
    });
  }

  #validate(issuer: string): SourceValidation {
    if (this.validation === 'invalid') return { kind: 'invalid', code: 'http_status', detail: 'status 500' };
    const detectedScope = issuer.replace('https://', '');
    return { kind: 'valid', fingerprint: 'f', detectedScope, keys: [], jwks: '{}', fetchedAtMs: this.api.ms };
  }

  get api(): ApiFixture {
    if (this.#api === undefined) throw new Error('not open');
    return this.#api;
  }

  get lifecycle(): SourceLifecycle {
    if (this.#lifecycle === undefined) throw new Error('not open');
    return this.#lifecycle;
  }

  /** Waits for activations in the background. */
  settled(): Promise<void> {
    return this.lifecycle.untilIdle();
  }

  read<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.api.store.read(work);
  }

  /** All rows of all tables, between two transactions. */
  async dump(): Promise<Dump> {
    await this.settled();
    await this.#api?.close();
    const text = await this.#database.dump();
    await this.#open();
    return text;
  }

  put(declaration: Declaration, query = '', asked: Asked = {}): Promise<Answer> {
    return this.api.call('PUT', `${PATH}${query}`, { body: declaration, ...asked });
  }

  /** Compares. @returns the answer of the dry run, with its ETag */
  async compare(
    declaration: Declaration,
    query = '',
    asked: Asked = {},
  ): Promise<Answer & { readonly etag: string }> {
    const answer = await this.put(declaration, `?dry_run=true${query}`, asked);
    return { ...answer, etag: String(answer.headers.etag) };
  }

  /** Compares and applies. */
  async apply(declaration: Declaration, query = ''): Promise<Answer> {
    const { etag } = await this.compare(declaration, `&${query}`);
    return this.put(declaration, `?${query}`, { ifMatch: etag });
  }

  async close(): Promise<void> {
    await this.settled();
    await this.#api?.close();
  }
}

export function stepsOf({ json, text }: Answer): readonly string[] {
  if (!Array.isArray(json.steps)) throw new Error(text);
  return json.steps.filter(isJsonObject).map(({ verb, kind, name }) => `${verb} ${kind} ${name}`);
}
