/** No text that Control takes for people holds characters that cannot be seen; rows that hold them keep working. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, test } from '@jest/globals';
import { newId } from '../../../src/control/domain/resource-identifiers.ts';
import { ApiFixture, itemsOf, textIn } from '../../support/control/api-fixture.ts';
import { VERSIONED } from '../../support/control/store-rows.ts';
import { databaseKinds, NOW_MS } from '../store/databases.ts';

/** One of each range: soft hyphen, joiners, fillers, selectors, marks and overrides of direction, isolates, tags. */
const INVISIBLE = [
  ...[0xad, 0x34f, 0x61c, 0x115f, 0x17b4, 0x180e, 0x200b, 0x200d, 0x200e, 0x200f, 0x202a, 0x202e],
  ...[0x2060, 0x2066, 0x2069, 0x206f, 0x3164, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0x1d173, 0xe0001, 0xe0100],
].map((codePoint) => String.fromCodePoint(codePoint));

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly pattern?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly [member: string]: unknown;
}

const document = JSON.parse(readFileSync('docs/reference/openapi.json', 'utf8'));

/** Every schema of a text below a schema, with its place. */
function textsOf(
  schema: Schema,
  place: string,
  seen: ReadonlySet<string>,
): readonly (readonly [string, Schema])[] {
  const { $ref } = schema;
  if ($ref !== undefined) {
    if (seen.has($ref)) return [];
    const target = $ref
      .slice(2)
      .split('/')
      .reduce((at, step) => at[step], document);
    return textsOf(target, place, new Set([...seen, $ref]));
  }
  if (schema.type === 'string') return [[place, schema]];
  return Object.entries(schema).flatMap(([name, below]) =>
    typeof below === 'object' && below !== null && name !== 'examples' && name !== 'example'
      ? textsOf(below as Schema, `${place}/${name}`, seen)
      : [],
  );
}

function accepts({ pattern, ...schema }: Schema, text: string): boolean {
  if (schema.format !== undefined || schema.enum !== undefined || schema.const !== undefined) return false;
  const length = [...text].length;
  if (length < (schema.minLength ?? 0) || length > (schema.maxLength ?? length)) return false;
  return pattern === undefined || new RegExp(pattern, 'u').test(text);
}

/**
 * Texts that nothing is named by: secrets, captured requests, what workloads submit and targets report, the audience that
 * tokens of an issuer have; URLs, origins and names of headers, which the service parses.
 */
const NO_NAMES =
  /^(explain|createEnrollmentChallenge|exchangeSignInCode|submitEnrollment)|\/(audience|confirmation|detail|issuer|jwks_uri|origins\/items|signed_headers\/items|token|url)$/;

it('every text of a request that may hold letters beyond ASCII refuses invisible characters', () => {
  const operations = Object.values(document.paths).flatMap((path) =>
    Object.values(path as Record<string, { operationId?: string; requestBody?: Schema }>),
  );
  const texts = operations.flatMap(({ operationId = '', requestBody }) =>
    requestBody === undefined ? [] : textsOf(requestBody, operationId, new Set()),
  );
  const names = texts.filter(
    ([place, schema]) =>
      !NO_NAMES.test(place) &&
      ['é', 'group:é', 'https://é'].some(
        (text) => accepts(schema, text) || accepts(schema, `https://api.${text}`),
      ),
  );
  expect(names.length).toBeGreaterThan(15);
  const taken = names.flatMap(([place, schema]) =>
    INVISIBLE.filter((character) =>
      [`p${character}`, `group:p${character}`].some((text) => accepts(schema, text)),
    ).map((character) => `${place}: U+${character.codePointAt(0)?.toString(16)}`),
  );
  expect(taken).toEqual([]);
});

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({ openStore: (nowMs) => open({ nowMs }) });
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  test('an environment gets no such name, and the fault says why', async () => {
    for (const character of INVISIBLE) {
      const refused = await fixture.expect(400, 'POST', '/v1/environments', {
        body: { name: `p${character}` },
      });
      expect(refused.json).toMatchObject({
        code: 'request_malformed',
        errors: [{ pointer: '/body/name', reason: expect.stringContaining('zero-width') }],
      });
    }
    await fixture.expect(201, 'POST', '/v1/environments', { body: { name: 'Büro 東京 नमस्ते 🙂' } });
  });

  test('one that has it since before is read, listed and renamed', async () => {
    const id = newId('environment', NOW_MS);
    const name = 'p\u200b';
    await fixture.store.writeUnaudited({ kind: 'installation' }, (tx) =>
      tx.environments.add({ id, name, ...VERSIONED }),
    );
    const url = `/v1/environments/${id}`;
    const found = await fixture.expect(200, 'GET', url);
    expect(textIn(found, 'name')).toBe(name);
    expect(itemsOf(await fixture.expect(200, 'GET', '/v1/environments'))).toContainEqual(
      expect.objectContaining({ name }),
    );
    const ifMatch = found.json.version as number;
    const renamed = await fixture.expect(200, 'PATCH', url, { body: { name: 'production' }, ifMatch });
    expect(textIn(renamed, 'name')).toBe('production');
  });
});
