/** Checks the OpenAPI document: well formed, complete, and identical in docs/reference/openapi.json and the real process. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Compile } from 'typebox/compile';
import { type RunningControl, startControl } from '../../../src/control/program/control-process.ts';
import { CONTROL_SETTINGS } from '../../../src/control/program/control-settings.ts';
import { settingValues } from '../../../src/process/settings/setting-sources.ts';
import { createLogger } from '../../../src/process/telemetry/logger.ts';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';
import { send } from '../../support/control/api-fixture.ts';
import { PERMISSION_TABLE } from '../../support/control/permission-table.ts';

let directory = '';
let control: RunningControl;
let document: JsonObject = {};

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-openapi-'));
  const texts = new Map([
    ['data-dir', [directory]],
    ['listen', ['127.0.0.1:0']],
    ['admin-listen', ['127.0.0.1:0']],
    ['public-url', ['https://control.example']],
  ]);
  const settings = settingValues(CONTROL_SETTINGS, texts);
  control = await startControl(settings, { logger: createLogger('silent') });
  const port = Number(control.address.split(':').at(-1));
  const answer = await send({ port, method: 'GET', path: '/openapi.json', headers: {} }, undefined);
  expect(answer.headers['content-type']).toMatch(/^application\/json/);
  document = answer.json;
});
afterAll(async () => {
  await control.stop();
  await rm(directory, { recursive: true });
});

const member = (value: unknown, name: string): JsonObject => {
  const found = isJsonObject(value) ? value[name] : undefined;
  return isJsonObject(found) ? found : {};
};

interface Operation {
  readonly name: string;
  readonly path: string;
  readonly method: string;
  readonly operation: JsonObject;
}

function operations(): readonly Operation[] {
  return Object.entries(member(document, 'paths')).flatMap(([path, item]) =>
    Object.entries(isJsonObject(item) ? item : {}).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      method,
      operation: isJsonObject(operation) ? operation : {},
    })),
  );
}

function parametersOf({ operation }: Operation): readonly JsonObject[] {
  return Array.isArray(operation.parameters) ? operation.parameters.filter(isJsonObject) : [];
}

/** Resolves a reference. */
function followed(value: unknown): unknown {
  if (!isJsonObject(value) || typeof value.$ref !== 'string') return value;
  return value.$ref
    .split('/')
    .slice(1)
    .reduce<unknown>((at, name) => (isJsonObject(at) ? at[name] : undefined), document);
}

/** Every object in the document, with its path. */
function* objectsIn(
  value: unknown,
  at = '',
): Generator<{ readonly at: string; readonly object: JsonObject }> {
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) yield* objectsIn(entry, `${at}/${index}`);
  } else if (isJsonObject(value)) {
    yield { at, object: value };
    for (const [name, entry] of Object.entries(value)) yield* objectsIn(entry, `${at}/${name}`);
  }
}

test('docs/reference/openapi.json is what is served: else run npm run build and node scripts/openapi.mjs', async () => {
  const kept: unknown = JSON.parse(await readFile('docs/reference/openapi.json', 'utf8'));
  const differing = ['paths', 'components'].flatMap((part) => {
    const [there, served] = [member(kept, part), member(document, part)];
    const names = new Set([...Object.keys(there), ...Object.keys(served)]);
    return [...names].filter((name) => JSON.stringify(there[name]) !== JSON.stringify(served[name]));
  });
  expect(differing).toEqual([]);
  expect(kept).toEqual(document);
});

test('describes every route that the permission table has, and no other', () => {
  const described = operations().map(({ name }) => name.replaceAll(/\{([a-z_]+)\}/g, ':$1'));
  const routes = Object.keys(PERMISSION_TABLE).filter((route) => route !== 'GET /openapi.json');
  expect(described.sort()).toEqual(routes.sort());
});

describe('is a well-formed OpenAPI 3.1 document', () => {
  test('with its fixed members', () => {
    expect(document.openapi).toBe('3.1.0');
    expect(member(document, 'info')).toMatchObject({ title: 'Proofgate Control', version: '1.0.0' });
    expect(Object.keys(document).sort()).toEqual(['components', 'info', 'openapi', 'paths']);
  });

  test('each operation has a name of its own, tags, a summary and answers in words', () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(ids.filter((id) => typeof id !== 'string' || !/^[a-z][A-Za-z]+$/.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { name, operation } of operations()) {
      const { tags, summary } = operation;
      expect([name, Array.isArray(tags) && tags.length === 1, typeof summary]).toEqual([
        name,
        true,
        'string',
      ]);
      const responses = Object.entries(member(operation, 'responses')).map(
        ([status, response]) => [status, followed(response)] as const,
      );
      expect(responses.some(([status]) => /^[23]\d\d$/.test(status))).toBe(true);
      for (const [status, response] of responses) {
        expect([name, status, typeof (isJsonObject(response) && response.description)]).toEqual([
          name,
          status,
          'string',
        ]);
        const types = Object.keys(member(response, 'content'));
        if (/^[45]/.test(status))
          expect([name, status, types]).toEqual([name, status, ['application/problem+json']]);
      }
    }
  });

  test('each parameter of a path is declared, required, and once', () => {
    for (const operation of operations()) {
      const inPath = parametersOf(operation).filter((parameter) => parameter.in === 'path');
      const declared = inPath.map(({ name }) => String(name)).sort();
      const named = [...operation.path.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => String(name)).sort();
      expect([operation.name, declared]).toEqual([operation.name, named]);
      expect(inPath.every(({ required }) => required === true)).toBe(true);
    }
  });

  test('changes of versioned resources say If-Match, creations Idempotency-Key', () => {
    const headersOf = (operation: Operation) =>
      parametersOf(operation)
        .filter((parameter) => parameter.in === 'header')
        .map(({ name }) => name);
    const withEtag = operations().filter(
      ({ operation }) => member(operation, 'responses')['428'] !== undefined,
    );
    expect(withEtag.length).toBeGreaterThan(15);
    for (const operation of withEtag) expect(headersOf(operation)).toContain('if-match');
    const creations = operations().filter(({ operation }) =>
      JSON.stringify(member(operation, 'responses')['409'] ?? '').includes('idempotency_conflict'),
    );
    expect(creations.length).toBeGreaterThanOrEqual(8);
    for (const operation of creations) expect(headersOf(operation)).toContain('idempotency-key');
  });

  test('every reference leads somewhere, and everything named is used', () => {
    const components = member(document, 'components');
    const there = ['schemas', 'responses'].flatMap((kind) =>
      Object.keys(member(components, kind)).map((name) => `#/components/${kind}/${name}`),
    );
    const used = new Set<string>();
    for (const { object } of objectsIn(document)) if (typeof object.$ref === 'string') used.add(object.$ref);
    expect([...used].sort()).toEqual(there.sort());
    expect(used.size).toBeGreaterThan(40);
    for (const name of Object.keys(member(components, 'responses'))) expect(name).toMatch(/^[a-z0-9_.]+$/);
  });

  test('nothing of how it is made is left in it, and security schemes are declared', () => {
    const schemes = Object.keys(member(member(document, 'components'), 'securitySchemes'));
    for (const { object } of objectsIn(document)) {
      expect(Object.keys(object).filter((name) => /^(?:\$id|~|x-)/.test(name))).toEqual([]);
    }
    for (const { name, operation } of operations()) {
      const security = Array.isArray(operation.security) ? operation.security : [];
      const expected = PERMISSION_TABLE[name.replaceAll(/\{([a-z_]+)\}/g, ':$1')]?.kind;
      const isOpen = expected === 'public' || expected === 'workload';
      expect([name, security.length === 0]).toEqual([name, isOpen]);
      for (const requirement of security)
        expect(schemes).toEqual(expect.arrayContaining(Object.keys(requirement)));
    }
  });

  test('schemas are JSON Schema 2020-12 that compiles, and examples fit them', () => {
    const schemas = member(member(document, 'components'), 'schemas');
    for (const [name, schema] of Object.entries(schemas)) {
      const whole = inlined(schema, schemas);
      const compiled = Compile(isJsonObject(whole) ? whole : {});
      expect([name, compiled.Check(Symbol('nothing'))]).toEqual([name, false]);
    }
    let examples = 0;
    for (const { object } of objectsIn(document)) {
      if (object.example === undefined || object.schema === undefined) continue;
      examples += 1;
      const whole = inlined(object.schema, schemas);
      expect(Compile(isJsonObject(whole) ? whole : {}).Check(object.example)).toBe(true);
    }
    expect(examples).toBeGreaterThanOrEqual(5);
  });
});

/** Replaces references with their targets. */
function inlined(value: unknown, schemas: JsonObject): unknown {
  if (Array.isArray(value)) return value.map((entry) => inlined(entry, schemas));
  if (!isJsonObject(value)) return value;
  if (typeof value.$ref === 'string') return inlined(schemas[value.$ref.split('/').at(-1) ?? ''], schemas);
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, inlined(entry, schemas)]));
}
