/** Checks data and texts in the documents against what the program reads, writes or publishes. Each check returns the fault. */
import Schema from 'typebox/schema';
import { enrollmentText, POLL_SCHEME, pollText } from '../../../src/protocol/enrollment.ts';
import { importPublicJwk } from '../../../src/protocol/import-public-key.ts';
import { thumbprintOf } from '../../../src/protocol/public-key.ts';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';
import type { Block } from '../../support/docs/blocks.ts';
import { filesOfCheckout, isInCheckout, readText, sourcePaths } from '../../support/docs/markdown.ts';

export type Check =
  | {
      readonly as:
        | 'drawing'
        | 'formula'
        | 'jwk'
        | 'sign-in-address'
        | 'source-fingerprint'
        | 'enrollment-text'
        | 'poll-text'
        | 'poll-authorization'
        | 'transcript-lines'
        | 'audit-gap'
        | 'logrotate';
    }
  | { readonly as: 'api'; readonly operation: string; readonly part: 'request' | 'answer' };

/** @returns undefined when there is no fault */
export function faultOf({ text }: Block, check: Check): string | undefined {
  if (check.as === 'api') return faultOfApiBody(text, check.operation, check.part);
  return FAULTS[check.as](text);
}

const FAULTS: {
  readonly [as in Exclude<Check['as'], 'api'>]: (text: string) => string | undefined;
} = {
  drawing: faultOfDrawing,
  formula: faultOfFormula,
  jwk(text) {
    const { kid, alg, ...jwk } = JSON.parse(text);
    const key = importPublicJwk(jwk);
    if (key === undefined) return 'no public key';
    return kid === thumbprintOf(key.jwk) && alg === key.algorithm ? undefined : 'another kid or alg';
  },
  'sign-in-address'(text) {
    const { pathname, searchParams } = new URL(
      text.replace('<public URL>', 'https://c.example').replace('<port>', '1'),
    );
    const taken = parametersOf(`GET ${pathname}`);
    return [...searchParams.keys()].find((name) => !taken.includes(name));
  },
  'source-fingerprint': (text) => faultOfSource(text, 'src/control/issuers/validate-source.ts'),
  'enrollment-text': (text) => otherNames(text, enrollmentText(STATEMENT).toString()),
  'poll-text': (text) => otherNames(text, pollText('enr_1', 1).toString()),
  'poll-authorization': (text) =>
    text === `Authorization: ${POLL_SCHEME} <time>.<signature>\n` ? undefined : text,
  'transcript-lines'(text) {
    const [, example = ''] =
      /^```text example-transcript\n([\s\S]*?)^```/m.exec(readText('docs/design/protocol.md')) ?? [];
    return otherNames(
      text.replace('header.<name>', 'header'),
      example.replace(/header\.[a-z-]+(?==)/g, 'header'),
    );
  },
  'audit-gap': (text) => faultBySchema(JSON.parse(text), 'docs/reference/schema/audit-gap-event.schema.json'),
  logrotate(text) {
    const words = text.split('\n').map((line) => line.trim().split(' ')[0] ?? '');
    const known = 'daily rotate compress delaycompress missingok postrotate systemctl endscript } '.split(
      ' ',
    );
    return /^\/\S+\.jsonl \{\n/.test(text) ? words.slice(1).find((word) => !known.includes(word)) : 'no file';
  },
};

const STATEMENT = {
  controlUrl: 'https://control.example',
  policyReference: 'epr_1',
  challengeId: 'ch_1',
  challenge: 'c',
  keyThumbprint: 't',
  workloadToken: 'w',
};

/** Compares the names of the lines, in order and each once. */
function otherNames(shown: string, real: string): string | undefined {
  const namesOf = (text: string) => [
    ...new Set(
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.split('=')[0]),
    ),
  ];
  const [ours, theirs] = [namesOf(shown), namesOf(real)];
  return ours.join() === theirs.join() ? undefined : `${ours.join()}, not ${theirs.join()}`;
}

/** Checks that a diagram contains no command, and that the names of the program in it exist. */
function faultOfDrawing(text: string): string | undefined {
  const command = /^\s*(?:\$ |proofgate [a-z]|curl |kubectl |make |helm )/m.exec(text)?.[0];
  const paths = [...text.matchAll(/\b(GET|POST|PUT|DELETE) (\/v1\/[a-z/{}_-]+)/g)];
  const unknownPath = paths.find(
    ([, method, path = '']) => operationOf(`${method} ${path}`) === undefined,
  )?.[0];
  const sources = filesOfCheckout('src/protocol', '.ts').map(readText).join('\n');
  const headers = [...text.matchAll(/\bX-Proofgate-[A-Za-z-]+/g)].map(([name]) => name.toLowerCase());
  const unknownHeader = headers.find(
    (name) => !sources.includes(name) && !sources.includes(name.slice('x-proofgate-'.length)),
  );
  return command ?? unknownPath ?? unknownHeader ?? sourcePaths(text).find((path) => !isInCheckout(path));
}

/** Checks that the code contains the quoted texts of a formula. */
function faultOfFormula(text: string): string | undefined {
  const sources = filesOfCheckout('src', '.ts').map(readText).join('\n');
  const labels = [...text.matchAll(/"([^"]+)"/g)].map(([, label = '']) => label);
  return labels.length === 0
    ? 'names nothing'
    : labels.find((label) => !sources.includes(`'${label}\\n`) && !sources.includes(`\`${label}\\n`));
}

/** Checks that the lines occur in a comment of the code, and in the function below that comment. */
function faultOfSource(text: string, file: string): string | undefined {
  const source = readText(file);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/=.*$/, '='))
    .find((start) => !source.includes(`\`${start}`) && !source.includes(`'${start}'`));
}

function faultBySchema(value: unknown, file: string): string | undefined {
  const [fits, errors] = Schema.Errors(JSON.parse(readText(file)), value);
  return fits ? undefined : JSON.stringify(errors);
}

const openapi: JsonObject = JSON.parse(readText('docs/reference/openapi.json'));

function memberAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce((at: unknown, name) => (isJsonObject(at) ? at[name] : undefined), value);
}

/** @param operation such as `POST /v1/enrollments`; names in braces may differ */
function operationOf(operation: string): unknown {
  const [method = '', path = ''] = operation.split(' ');
  const plain = (one: string) => one.replace(/\{[^}]*\}/g, '{}');
  const found = Object.keys(openapi.paths ?? {}).find((one) => plain(one) === plain(path));
  return found === undefined ? undefined : memberAt(openapi, 'paths', found, method.toLowerCase());
}

function parametersOf(operation: string): readonly unknown[] {
  const parameters = memberAt(operationOf(operation), 'parameters');
  return Array.isArray(parameters) ? parameters.map((one) => memberAt(one, 'name')) : [];
}

/** Checks that the API description has all members shown, and that the body shows all required members. */
function faultOfApiBody(text: string, operation: string, part: 'request' | 'answer'): string | undefined {
  const shown: unknown = JSON.parse(text.replaceAll('{ … }', '{}').replaceAll('[ … ]', '[]'));
  const described = operationOf(operation);
  const message =
    part === 'request' ? memberAt(described, 'requestBody') : memberAt(described, 'responses', '201');
  return faultOfMembers(shown, memberAt(message, 'content', 'application/json', 'schema'), part);
}

function faultOfMembers(shown: unknown, schema: unknown, at: string): string | undefined {
  const resolved = resolve(schema);
  const properties = memberAt(resolved, 'properties');
  if (!isJsonObject(shown) || !isJsonObject(properties))
    return at === 'request' || at === 'answer' ? `no schema: ${at}` : undefined;
  const required = memberAt(resolved, 'required');
  const missing = (Array.isArray(required) ? required : []).find((name) => !(String(name) in shown));
  if (missing !== undefined && Object.keys(shown).length > 0) return `${at} lacks ${String(missing)}`;
  return Object.entries(shown)
    .map(([name, value]) =>
      name in properties ? faultOfMembers(value, properties[name], `${at}.${name}`) : `${at} has no ${name}`,
    )
    .find(Boolean);
}

function resolve(schema: unknown): unknown {
  const reference = memberAt(schema, '$ref');
  const whole = typeof reference === 'string' ? memberAt(openapi, ...reference.split('/').slice(1)) : schema;
  const variants = memberAt(whole, 'anyOf') ?? memberAt(whole, 'oneOf');
  return Array.isArray(variants) ? resolve(variants[0]) : whole;
}
