/** Checks that the shipped configuration is clean, and that removing any part that a rule checks causes a finding. */
import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { exchanged, found, rulesIn } from '../../support/docs/lint-rule-cases.ts';
import { adaptShipped } from '../../support/harness/envoy-config.ts';
import { httpServiceEdits } from '../../support/proxies/envoy-http.ts';

const shipped = readFileSync(new URL('../../../envoy/envoy.yaml', import.meta.url), 'utf8');

it('finds nothing in envoy/envoy.yaml, nor with TLS towards the verifier', () => {
  expect(found(shipped)).toEqual([]);
  const tls = shipped.replaceAll('#+ ', '');
  const remote = exchanged(
    tls,
    'pipe: { path: /run/proofgate/verifier.sock }',
    'socket_address: { address: 10.0.0.7, port_value: 9191 }',
  );
  expect(found(remote)).toEqual([]);
});

it('finds nothing in it with envoy/http-service.yaml, but the time-out that tests need', () => {
  const socketPath = '/run/proofgate/http.sock';
  const config = adaptShipped({
    verifier: { kind: 'unix', path: socketPath },
    upstream: { host: '127.0.0.1', port: 8081 },
    edits: httpServiceEdits(socketPath, 'api.example'),
  });
  expect(rulesIn(config)).toEqual(['check-time-out']);
  expect(rulesIn(config.replace('exact: x-proofgate-subject', 'exact: x-other'))).toContain(
    'http-answer-not-copied',
  );
});

it('finds the routes that its optional blocks open', () => {
  const opened = shipped.replaceAll('#| ', '').replaceAll('#|', '');
  const lines = opened.split('\n');
  expect(found(opened).map(({ rule, line }) => [rule, lines[line - 1]?.trim()])).toEqual([
    ['route-unchecked', 'disabled: true'],
    ['body-streamed', 'check_settings: { disable_request_body_buffering: true }'],
  ]);
});

it.each([
  ['use_remote_address: true', 'remote-address-unused'],
  ['cidr_ranges: [{ address_prefix: 255.255.255.255, prefix_len: 32 }]', 'internal-callers'],
  ['scheme_header_transformation: { scheme_to_overwrite: http }', 'scheme-from-caller'],
  ['normalize_path: true', 'path-not-normalized'],
  ['path_with_escaped_slashes_action: REJECT_REQUEST', 'escaped-slashes'],
  ['headers_with_underscores_action: REJECT_REQUEST', 'underscores-allowed'],
  ['- remove: x-proofgate-auth-site', 'context-headers-kept'],
  ['key_matcher: { safe_regex: { regex: ".*" } }', 'trailers-kept'],
  ['transport_api_version: V3', 'transport-version'],
  ['timeout: 0.5s', 'check-time-out'],
  ['status_on_error: { code: ServiceUnavailable }', 'status-on-error'],
  ['validate_mutations: true', 'mutations-not-validated'],
  ['encode_raw_headers: true', 'headers-merged'],
  ['include_peer_certificate: true', 'peer-certificate'],
  ['pack_as_bytes: true', 'body-not-packed'],
  ['header: { name: x-proofgate-decision-id, present_match: true }', 'decision-not-required'],
  ['response_headers_to_remove: [x-proofgate-reason, x-proofgate-decision-id]', 'denial-headers-kept'],
])('without %s: %s', (passage, rule) => {
  const [before = '', after = ''] = exchanged(shipped, passage, '\0').split('\0');
  const left = /^\s*$/.test(before.slice(before.lastIndexOf('\n') + 1)) ? '# gone' : '';
  expect(rulesIn(`${before}${left}${after}`)).toEqual([rule]);
});
