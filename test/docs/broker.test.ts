/** Checks that docs/operate/broker.md has every code, metric and audit field of the broker, and that its examples work. */
import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { Compile } from 'typebox/compile';
import { PASSPORT_REQUEST } from '../../src/broker/broker-contract.ts';
import { createBrokerMetrics } from '../../src/broker/broker-metrics.ts';
import { BROKER_PROBLEMS } from '../../src/broker/broker-problems.ts';
import { parseDenyList } from '../../src/broker/deny-list.ts';
import { parseSoftwareKeys } from '../../src/broker/software-keys.ts';
import { brokerText, credentialSha256 } from '../../src/protocol/broker-text.ts';
import { signHolder } from '../support/broker/broker-callers.ts';
import { testBroker } from '../support/broker/broker-fixture.ts';
import { codesIn, readText, tableNamed } from '../support/docs/markdown.ts';
import { TEST_1, TEST_2 } from '../support/protocol/fixtures.ts';

const page = readText('docs/operate/broker.md');

/** The only code block of a section. */
function blockOf(heading: string): string {
  const section = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return /```[a-z]+\n(.*?)```/s.exec(section)?.[1] ?? '';
}

it('has every problem with its status', () => {
  const described = tableNamed(readText('docs/reference/control.md'), 'broker-problems').flatMap(
    ([status, codes = '']) => codesIn(codes).map((code) => [code, Number(status)] as const),
  );
  const known = Object.entries(BROKER_PROBLEMS).map(([code, [status]]) => [code, status] as const);
  expect(described.toSorted()).toEqual(known.toSorted());
});

it('refuses its attacks with codes that exist, each in a test', () => {
  const [, section = ''] = page.split('\n## Attacks\n');
  const codes = codesIn(section.split('\n## ')[0] ?? '').filter((code) => /^[a-z][a-z_]+_[a-z]+$/.test(code));
  const tests = readText('test/broker/attacks.test.ts');
  expect(codes.length).toBeGreaterThan(15);
  expect(codes.filter((code) => !Object.hasOwn(BROKER_PROBLEMS, code))).toEqual([]);
  expect(codes.filter((code) => !tests.includes(`'${code}'`))).toEqual([]);
});

it('has every metric with its labels', () => {
  const registry = new Registry();
  createBrokerMetrics(registry);
  const known = registry.getMetricsAsArray().map((metric) => {
    const labels: unknown = Reflect.get(metric, 'labelNames');
    return [metric.name, Array.isArray(labels) ? labels.map(String) : []] as const;
  });
  const described = tableNamed(readText('docs/reference/metrics.md'), 'broker-metrics').map(
    ([name = '', type = '']) =>
      [codesIn(name)[0] ?? '', codesIn(type).filter((label) => label !== 'issued')] as const,
  );
  expect(described).toEqual(expect.arrayContaining(known));
});

it('has every field of the audit event', () => {
  const described = tableNamed(readText('docs/reference/audit-events.md'), 'broker-event').flatMap(
    ([fields = '']) => codesIn(fields),
  );
  const schema: { readonly properties: object } = JSON.parse(
    readText('docs/reference/schema/broker-event.schema.json'),
  );
  expect(described.toSorted()).toEqual(Object.keys(schema.properties).toSorted());
});

it('shows the text that the code signs', () => {
  const text = brokerText({
    operation: 'passport',
    brokerUrl: 'https://broker.shop.example',
    challenge: '<from the broker>',
    credentialSha256: '<see below>',
    holderThumbprint: '<RFC 7638 thumbprint of the holder key>',
    audience: 'https://api.shop.example',
  });
  expect(blockOf('Signed text')).toBe(text.toString());
});

it('signs its example with the keys of docs/design/protocol.md', () => {
  const { thumbprint } = TEST_1.publicKey;
  const text = brokerText({
    operation: 'passport',
    brokerUrl: 'https://broker.shop.example',
    challenge: Buffer.from(Array.from({ length: 54 }, (_, i) => i)).toString('base64url'),
    credentialSha256: credentialSha256(thumbprint),
    holderThumbprint: TEST_2.publicKey.thumbprint,
    audience: 'https://api.shop.example',
  });
  const signatures = [TEST_1, TEST_2].map((key) => signHolder(key, text));
  const examples = [...page.matchAll(/^```text example-\S+\n(.*?)^```$/gms)].map(([, example]) => example);
  expect(examples).toEqual([text.toString(), `${signatures.join('\n')}\n`]);
  expect(page).toContain(`The hash is that of \`${thumbprint}\``);
});

describe('its examples', () => {
  it('software keys', () => {
    const keys = parseSoftwareKeys(blockOf('Software keys'));
    expect(keys.find('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k')).toMatchObject({ subject: 'ci:deploy' });
  });

  it('deny list', () => {
    const list = parseDenyList(blockOf('Deny list'));
    expect(list.deniesSubject('spiffe://shop.example/ns/old/x')).toBe(true);
    expect(list.deniesSubject('spiffe://shop.example/ns/prod/sa/orders2')).toBe(false);
  });

  it('request, but for its placeholders', () => {
    const request: unknown = JSON.parse(blockOf('API').replaceAll('…', 'A'));
    const valid = Compile(PASSPORT_REQUEST);
    expect([...valid.Errors(request)]).toEqual([]);
  });
});

it('docs/reference/broker-openapi.json is what the broker serves', async () => {
  const { json } = await (await testBroker()).get('/openapi.json');
  expect(json).toEqual(JSON.parse(readText('docs/reference/broker-openapi.json')));
});
