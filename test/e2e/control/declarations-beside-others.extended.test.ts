/**
 * Large declarations at once, on both databases: keys are revoked and another site gets freshness statements meanwhile, and the
 * excess is refused. It compares orders and ages within one run, because machines differ.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { POLL_PATH } from '../../../src/bundle/format/bundle-limits.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { waitFor } from '../../support/wait.ts';

const TIMEOUT_MS = 600_000;
const CLIENTS = 9_000;
const AT_ONCE = 12;
const OTHER_SITE = 'other';

let server: TestPostgresServer | undefined;
afterAll(async () => server?.stop());

describe.each(['sqlite', 'postgres'])('%s', (name) => {
  it(
    'declarations hold up neither revocations nor the statements of another site',
    async () => {
      let databaseUrl: string | undefined;
      if (name === 'postgres') {
        server = await TestPostgresServer.start();
        databaseUrl = await server.createDatabase();
      }
      const stage = await ControlStage.start(databaseUrl === undefined ? {} : { databaseUrl });
      try {
        const token = (await readFile(stage.tokenFile, 'utf8')).trim();
        const put = async (siteId: string, query: string, site: object, headers = {}) => {
          const answer = await fetch(`${stage.controlUrl}/v1/sites/${siteId}/declaration${query}`, {
            ...{ method: 'PUT', body: JSON.stringify(site) },
            headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
          });
          return {
            status: answer.status,
            etag: String(answer.headers.get('etag')),
            text: await answer.text(),
          };
        };
        const base = parse(await readFile(join(stage.directory, 'site.yaml'), 'utf8'));
        const site = (team: string) => ({
          ...base,
          clients: [
            ...base.clients,
            ...Array.from({ length: CLIENTS }, (_, index) => ({
              ...{ client_id: `client-${index}`, subject: `client:${index}`, context: { team } },
            })),
          ],
        });
        const { etag: first } = await put(SITE_ID, '?dry_run=true', site('one'));
        expect((await put(SITE_ID, '', site('one'), { 'if-match': first })).status).toBe(200);
        const other = structuredClone(base);
        Object.assign(other.site, {
          site_id: OTHER_SITE,
          issuer_url: 'https://control.shop.example/sites/other',
        });
        Object.assign(other, { sources: [], enrollment_policies: [], brokers: [], targets: ['gateway'] });
        const { tokens } = JSON.parse((await put(OTHER_SITE, '', other)).text);
        const statedAt = async () => {
          const answer = await fetch(`${stage.controlUrl}${POLL_PATH}`, {
            headers: { authorization: `Bearer ${tokens[0].token}` },
          });
          if (answer.status !== 200) return undefined;
          const { freshness } = (await answer.json()) as { freshness?: string };
          if (freshness === undefined) return undefined;
          const payload = Buffer.from(JSON.parse(freshness).payload, 'base64url').toString();
          return Date.parse(JSON.parse(payload).as_of);
        };
        await waitFor('a statement of the other site', statedAt);
        const keys = [await stage.enroll('billing'), await stage.enroll('billing')];
        const api = await stage.api();

        /** While the declarations run: a key is revoked, and a statement is made that is newer than their start. */
        const beside = async (keyId: string, declarations: readonly Promise<{ status: number }>[]) => {
          let running = declarations.length;
          for (const each of declarations) void each.finally(() => running--);
          const startedAt = Date.now();
          await api.act(`/v1/derived-keys/${keyId}/revoke`, { body: {} });
          const runningAtRevocation = running;
          await waitFor('a newer statement', async () =>
            ((await statedAt()) ?? 0) > startedAt ? true : undefined,
          );
          const runningAtStatement = running;
          const statuses = (await Promise.all(declarations)).map(({ status }) => status);
          return { runningAtRevocation, runningAtStatement, statuses };
        };

        const dryRuns = await beside(
          keys[0]?.keyId ?? '',
          Array.from({ length: AT_ONCE }, () => put(SITE_ID, '?dry_run=true', site('two'))),
        );
        expect(new Set(dryRuns.statuses)).toEqual(new Set([200]));
        expect(dryRuns.runningAtRevocation).toBeGreaterThan(0);

        const { etag } = await put(SITE_ID, '?dry_run=true', site('two'));
        const applies = await beside(
          keys[1]?.keyId ?? '',
          Array.from({ length: AT_ONCE }, () => put(SITE_ID, '', site('two'), { 'if-match': etag })),
        );
        expect(applies.statuses.filter((status) => status === 200)).toHaveLength(1);
        expect(applies.statuses.filter((status) => status === 412)).toHaveLength(AT_ONCE - 1);
        expect(applies.runningAtRevocation).toBeGreaterThan(0);
        const after = await put(SITE_ID, '?dry_run=true', site('two'));
        expect(JSON.parse(after.text).steps).toEqual([]);
        await api.close();
      } finally {
        await stage.stop();
      }
    },
    TIMEOUT_MS,
  );
});
