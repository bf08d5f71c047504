/** Sends the real process requests that each route may reject, and checks that its OpenAPI operation documents every status. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type RunningControl, startControl } from '../../../src/control/program/control-process.ts';
import { CONTROL_SETTINGS } from '../../../src/control/program/control-settings.ts';
import { settingValues } from '../../../src/process/settings/setting-sources.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';
import { type Answer, SITE_BODY, send, textIn } from '../../support/control/api-fixture.ts';

let directory = '';
let control: RunningControl;
let operations: readonly Operation[] = [];
let token = '';
let targetToken = '';
/** IDs of existing resources, by path parameter. */
const ids = new Map<string, string>();

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly statuses: readonly string[];
}

const port = () => Number(control.address.split(':').at(-1));

function call(method: string, path: string, body?: object): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return send({ port: port(), method, path, headers }, body && JSON.stringify(body));
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-statuses-'));
  const texts = new Map<string, readonly string[]>([
    ['data-dir', [directory]],
    ['listen', ['127.0.0.1:0']],
    ['admin-listen', ['127.0.0.1:0']],
    ['public-url', ['https://control.example']],
    ...['address-rate', 'operator-rate', 'target-rate'].map((rate): [string, string[]] => [rate, ['100000']]),
  ]);
  control = await startControl(settingValues(CONTROL_SETTINGS, texts), { logger: createLogger('silent') });
  token = (await readFile(join(directory, 'bootstrap-token'), 'utf8')).trim();
  operations = operationsOf(JSON.parse(await readFile('docs/reference/openapi.json', 'utf8')));
  await makeResources();
});
afterAll(async () => {
  await control.stop();
  await rm(directory, { recursive: true });
});

function operationsOf({ paths }: JsonObject): readonly Operation[] {
  return Object.entries(isJsonObject(paths) ? paths : {}).flatMap(([path, item]) =>
    Object.entries(isJsonObject(item) ? item : {}).map(([method, operation]) => {
      const { responses } = isJsonObject(operation) ? operation : {};
      return {
        method: method.toUpperCase(),
        path,
        statuses: Object.keys(isJsonObject(responses) ? responses : {}),
      };
    }),
  );
}

async function makeResources(): Promise<void> {
  const make = async (path: string, body: object, id: string) => {
    const made = await call('POST', path, body);
    ids.set(id, textIn(made, id));
    return made;
  };
  await make('/v1/environments', { name: 'e' }, 'environment_id');
  await make(`/v1/environments/${ids.get('environment_id')}/fleets`, { name: 'f' }, 'fleet_id');
  await make(`/v1/fleets/${ids.get('fleet_id')}/sites`, SITE_BODY, 'site_id');
  const site = `/v1/sites/${ids.get('site_id')}`;
  await make(`${site}/clients`, { client_id: 'billing', subject: 'client:billing' }, 'client_id');
  targetToken = textIn(await make(`${site}/targets`, { name: 't' }, 'target_id'), 'token');
}

/** Well-formed values of path parameters that name no resource. */
const SHAPED: ReadonlyMap<string, string> = new Map([
  ['revision', '1'],
  ['file', 'bundle.jws'],
]);

/** One request for each kind of rejection that any route may return. */
const REQUESTS: {
  readonly [what: string]: { readonly text?: string; readonly headers?: object; readonly query?: string };
} = {
  'as it is': {},
  'what is known': { headers: { 'if-none-match': '*' } },
  'an unknown parameter': { query: '?x=1' },
  'an empty object': { text: '{}', headers: { 'content-type': 'application/json' } },
  'no JSON': { text: '{', headers: { 'content-type': 'application/json' } },
  'another media type': { text: 'x', headers: { 'content-type': 'text/plain' } },
  'a large body': { text: ' '.repeat(3 * 1024 * 1024), headers: { 'content-type': 'application/json' } },
  'an outdated version': { headers: { 'if-match': '"7"' } },
  'large header fields': { headers: { 'x-large': 'x'.repeat(40 * 1024) } },
  'no credentials': { headers: { authorization: 'Bearer unknown' } },
};

async function ask({ method, path }: Operation, what: string): Promise<number | undefined> {
  const { text, headers, query = '' } = REQUESTS[what] ?? {};
  const isTarget = path.startsWith('/v1/targets/self/');
  const filled = path.replaceAll(/\{([a-z_]+)\}/g, (_, name) => ids.get(name) ?? SHAPED.get(name) ?? 'x');
  const all = {
    authorization: `Bearer ${isTarget ? targetToken : token}`,
    ...(text === undefined ? {} : { 'content-length': String(text.length) }),
    ...headers,
  };
  const answer = await send({ port: port(), method, path: filled + query, headers: all }, text);
  return answer.status;
}

/** A stream that starts does not end: changes.test.ts. Only these requests start none. */
const STREAM = '/v1/changes';
const NO_STREAM: ReadonlySet<string> = new Set([
  'an unknown parameter',
  'large header fields',
  'no credentials',
]);

/** Routes that end credentials which other requests need. They get only invalid bodies, which they reject. */
const ENDS_CREDENTIALS = /\/(?:bootstrap-token|detach|rotate-token)$/;

describe.each(Object.keys(REQUESTS))('%s', (what) => {
  test('is answered by every route as its operation says', async () => {
    const undocumented: string[] = [];
    for (const operation of operations) {
      if (ENDS_CREDENTIALS.test(operation.path) && REQUESTS[what]?.text === undefined) continue;
      if (operation.path === STREAM && !NO_STREAM.has(what)) continue;
      const status = await ask(operation, what);
      if (!operation.statuses.includes(String(status))) {
        undocumented.push(`${operation.method} ${operation.path}: ${status}`);
      }
    }
    expect(undocumented).toEqual([]);
  });
});
