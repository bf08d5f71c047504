/**
 * The table of claims: how each code block of the documents, and each file to copy, is tested. `claims.test.ts` fails for a block
 * without a row and for a row without a block. A new document needs rows here. Rows of a heading are in the order of its blocks.
 *
 *     pasted(session)          shell: pasted, with the session's other blocks, into one real shell (../sessions/)
 *     copied(session, path)    data: saved as this file of the session, and used by a pasted block
 *     shown(session, command)  output: of the session's command, or of the pasted block before it
 *     loaded(check)            data or text: checked with what the program reads, writes and publishes (checks.ts)
 *     manifest                 Kubernetes objects: validated against its schemas and those of custom resources (manifests.extended.test.ts)
 *     held(test)               checked by a separate test
 *     followed                 shell: pasted, in the document's order, into one shell with a real API server (test/kubernetes/release-suite.ts)
 *     saved(path)              data: saved as this file of that shell
 *     drawing                  a diagram: contains no commands, and its names exist (checks.ts)
 */
import { EGRESS_SET, MANIFEST_SETS } from '../../support/docs/manifest-sets.ts';
import type { SessionName } from '../sessions/sessions.ts';
import type { Check } from './checks.ts';

export type Claim =
  | { readonly kind: 'pasted'; readonly session: SessionName }
  | { readonly kind: 'copied'; readonly session: SessionName; readonly path: string }
  | { readonly kind: 'shown'; readonly session: SessionName; readonly command?: string }
  | { readonly kind: 'loaded'; readonly check: Check }
  | { readonly kind: 'manifest' }
  | { readonly kind: 'held'; readonly by: string }
  | { readonly kind: 'followed' }
  | { readonly kind: 'saved'; readonly path: string };

const pasted = (session: SessionName): Claim => ({ kind: 'pasted', session });
const copied = (session: SessionName, path: string): Claim => ({ kind: 'copied', session, path });
const shown = (session: SessionName, command?: string): Claim =>
  command === undefined ? { kind: 'shown', session } : { kind: 'shown', session, command };
const loaded = (check: Check): Claim => ({ kind: 'loaded', check });
const held = (by: string): Claim => ({ kind: 'held', by });
const manifest: Claim = { kind: 'manifest' };
const followed: Claim = { kind: 'followed' };
const saved = (path: string): Claim => ({ kind: 'saved', path });
const drawing = loaded({ as: 'drawing' });
const api = (operation: string, part: 'request' | 'answer'): Claim => loaded({ as: 'api', operation, part });

const times = (count: number, claim: Claim): readonly Claim[] => Array.from({ length: count }, () => claim);

export interface Claims {
  /** By heading. */
  readonly [section: string]: readonly Claim[];
}

export const CLAIMS: { readonly [file: string]: Claims } = {
  'README.md': {
    'How a request passes': [drawing],
    'Try it': [pasted('make'), shown('demo', 'node .build/demo/main.js')],
    Install: [pasted('make')],
    'Sign a request': [pasted('site')],
  },
  'SECURITY.md': { 'Parties and trust': [drawing, drawing] },
  'docs/design/architecture.md': { Layout: [drawing] },
  'docs/design/enrollment.md': {
    Enrollment: [
      drawing,
      api('POST /v1/enrollments/challenges', 'request'),
      api('POST /v1/enrollments/challenges', 'answer'),
      api('POST /v1/enrollments', 'request'),
      loaded({ as: 'enrollment-text' }),
      api('POST /v1/enrollments', 'answer'),
      loaded({ as: 'poll-authorization' }),
      loaded({ as: 'poll-text' }),
    ],
    'An example': times(7, held('test/docs/control.test.ts')),
  },
  'docs/design/bundle.md': {
    'Signed documents': [shown('bundles', 'cat bundle/bundle.jws')],
    'Revision and head': [loaded({ as: 'formula' })],
    'The state directory': [shown('site', 'list /var/lib/proofgate')],
  },
  'docs/operate/broker.md': {
    API: [held('test/docs/broker.test.ts')],
    'Signed text': [held('test/docs/broker.test.ts')],
    'Example of a signed text': times(2, held('test/docs/broker.test.ts')),
    'Software keys': [held('test/docs/broker.test.ts')],
    'Deny list': [held('test/docs/broker.test.ts')],
  },
  'docs/operate/signer.md': {
    'Signing API': times(2, held('test/caller/signer/program/signer-process.test.ts')),
  },
  'docs/operate/cli.md': {
    Keys: [loaded({ as: 'jwk' })],
    'Signing profiles': [copied('signing', 'profile.yaml')],
    Enrolling: [pasted('site')],
    agent: [pasted('site')],
    'sign and request': [pasted('signing')],
    'Passports from a broker': [held('test/caller/agent/broker-agent.test.ts')],
    Bundles: [pasted('bundles')],
    verifier: [pasted('verifier'), copied('verifier', 'verifier.yaml')],
  },
  'docs/operate/control.md': {
    'Running Control': [pasted('control'), pasted('control')],
    'The bootstrap token': [pasted('site')],
    'Signing in for a command line': [loaded({ as: 'sign-in-address' })],
    'From a token to a request': [drawing],
    Keys: [loaded({ as: 'source-fingerprint' })],
    "A cluster's own issuer": [manifest],
    'Break-glass': times(2, pasted('break-glass')),
  },
  'docs/operate/ctl.md': { ctl: [pasted('site')] },
  'docs/operate/dpop.md': { '2. The site': [held('test/docs/dpop.test.ts')] },
  'docs/operate/enforcement.md': {
    TLS: [pasted('verifier')],
    'What the sidecar answers': [shown('signing', 'denied')],
    'Health and readiness': [shown('verifier', 'not_ready')],
    'Audit events': [loaded({ as: 'audit-gap' }), loaded({ as: 'logrotate' })],
  },
  'docs/operate/http-message-signatures.md': {
    Python: [held('test/caller/foreign-signers.extended.test.ts')],
    'Node.js': [held('test/caller/foreign-signers.extended.test.ts')],
    'Any language: openssl and curl': [held('test/caller/foreign-signers.extended.test.ts')],
  },
  'docs/operate/explain.md': {
    'explain: why a request was allowed or denied': [pasted('signing'), shown('signing', 'explain_tampered')],
    'The input': [copied('signing', 'capture-as-documented.json')],
  },
  'docs/operate/observe.md': {
    'Read the report': [held('test/cli/rollout/rollout-status.test.ts')],
  },
  'docs/operate/gateway-lint.md': {
    'Gateway configuration: proofgate envoy lint': [pasted('gateway'), shown('gateway', 'opened')],
    Findings: [copied('gateway', 'excepted.yaml')],
  },
  'docs/operate/gateways.md': {
    'Gateways: Envoy, Istio, Envoy Gateway, Gateway API': [held('test/gateways/documents.test.ts')],
    Istio: [pasted('cluster')],
    "The chart's sidecar by Istio's injection": times(2, pasted('cluster')),
    'Envoy Gateway': [pasted('cluster'), held('test/gateways/documents.test.ts'), pasted('cluster')],
    'From kubernetes.md to one of these': [
      ...times(2, pasted('cluster')),
      copied('cluster', 'orders-policy.yaml'),
      ...times(3, pasted('cluster')),
    ],
  },
  'docs/operate/image.md': { 'Building it': [pasted('image')] },
  'docs/tutorials/kubernetes.md': {
    '1. Image and commands': [followed],
    '2. Namespaces': [saved('namespaces.yaml'), followed],
    '3. Certificates': [followed],
    'With cert-manager': [saved('envoy-certificate.yaml'), followed, followed, saved('cert-manager.yaml')],
    '4. Control': [saved('values.yaml'), followed, followed],
    '5. The first operator': [followed, followed],
    '6. The cluster as a source': [followed, saved('issuer-discovery.yaml'), saved('site.yaml'), followed],
    '7. The verifier': [followed, saved('verifier.yaml'), followed, followed],
    '8. The gateway': [saved('gateway.yaml'), ...times(4, followed)],
    '9. A workload that signs': [saved('first-request.yaml'), followed],
    '10. The signed request': [followed],
    'Taking it away': [followed],
  },
  'docs/design/protocol.md': {
    'Request headers': [drawing],
    Transcript: [loaded({ as: 'transcript-lines' })],
    Replay: [loaded({ as: 'formula' })],
    'Worked example': times(14, held('test/protocol/protocol-page.test.ts')),
  },
  'packages/middleware/README.md': {
    '@proofgate/middleware': [held('test/enforcement/middleware/package.extended.test.ts')],
  },
  'sdk/node/README.md': {
    '@proofgate/client': [held('test/caller/sdk/node/package.extended.test.ts')],
  },
  'sdk/python/README.md': { proofgate: [held('test/caller/sdk/packages.extended.test.ts')] },
  'sdk/go/README.md': { proofgate: [held('test/caller/sdk/packages.extended.test.ts')] },
  'sdk/java/README.md': { proofgate: [held('test/caller/sdk/packages.extended.test.ts')] },
  'docs/tutorials/signing.md': {
    'Node.js': [held('test/caller/sdk/node/package.extended.test.ts')],
    Python: [held('test/caller/sdk/packages.extended.test.ts')],
    Go: [held('test/caller/sdk/packages.extended.test.ts')],
    Java: [held('test/caller/sdk/packages.extended.test.ts')],
    WebSockets: [held('test/caller/sdk/node/websocket.test.ts')],
    'Try it on your machine': [held('test/tools/dev/dev.test.ts')],
  },
  'docs/operate/middleware.md': {
    'Middleware for Node.js': [held('test/enforcement/middleware/package.extended.test.ts')],
  },
  'docs/operate/release.md': {
    Releases: [pasted('release')],
    'Making one': [pasted('release')],
    'Checking one': times(2, pasted('release')),
  },
  'docs/operate/spiffe.md': {
    '1. Register the broker and the workload': [pasted('spiffe')],
    '2. Name the broker at the site': [pasted('spiffe')],
    '3. Start the broker': [pasted('spiffe')],
    '4. Pin its keys': [pasted('spiffe')],
    '5. Send a request': [pasted('spiffe')],
    'In Kubernetes': [copied('cluster', 'broker.yaml'), pasted('cluster')],
  },
  'docs/tutorials/sign-a-bundle.md': {
    '1. Create keys': [pasted('without-control')],
    '2. Write and sign the bundle': [pasted('without-control')],
    '3. Run the verifier and Envoy': [pasted('without-control')],
    '4. Sign requests': [pasted('without-control')],
  },
  'docs/tutorials/rollout.md': {
    '1. The API as it is': [pasted('rollout')],
    '2. Declare routes that are observed': [pasted('rollout')],
    '3. Put the gateway in front': [pasted('rollout')],
    '4. Let callers sign': [pasted('rollout')],
    '5. Read the report': [pasted('rollout'), shown('rollout'), pasted('rollout')],
    '6. Close the gaps': [pasted('rollout')],
    '7. Enforce': [pasted('rollout')],
    '8. Switch it off again': [pasted('rollout')],
  },
  'docs/tutorials/enroll-with-control.md': {
    '1. Start Control': [pasted('with-control')],
    '2. Declare a site': [pasted('with-control')],
    '3. Start the verifier and Envoy': [pasted('with-control')],
    '4. Enroll and send a request': [pasted('with-control')],
    '5. Revoke the key': [pasted('with-control')],
  },
  'docs/tutorials/api-without-gateway.md': {
    '1. Create keys and a certificate': [pasted('without-gateway')],
    '2. Say who may do what': [pasted('without-gateway')],
    '3. Start an API and the proxy': [pasted('without-gateway')],
    '4. Send requests': times(2, pasted('without-gateway')),
  },
  'docs/operate/workloads.md': {
    Files: [shown('site', 'cat "$SESSION/agent-files"')],
    'With a broker': [held('test/caller/agent/broker-agent.test.ts')],
    Metrics: [manifest],
  },
  'helm/proofgate/README.md': {
    'The chart proofgate': [pasted('cluster'), copied('cluster', 'values.yaml')],
    Quickstart: times(2, pasted('cluster')),
    'A signed request': [copied('cluster', 'test.yaml'), ...times(2, pasted('cluster'))],
  },
};

/** The test of each file to copy, in addition to the schemas of Kubernetes objects. */
export const MANIFEST_CLAIMS: { readonly [file: string]: string } = {
  'docs/operate/alerts.yaml': 'test/docs/alerts.test.ts',
  'docs/operate/workload.yaml': 'test/docs/workloads.test.ts',
  'envoy/http-service.yaml': 'test/support/proxies/envoy-http.ts',
  'envoy/egress.yaml': 'test/e2e/signer/egress-envoy.test.ts',
  'envoy/envoy.yaml': 'test/e2e/envoy-facts-shipped.test.ts',
  'bundles/example.yaml': 'test/bundle/format/published.test.ts',
  'bundles/minimal.yaml': 'test/docs/sessions',
  'bundles/site.yaml': 'test/docs/sessions',
  ...Object.fromEntries(
    [...MANIFEST_SETS, EGRESS_SET].flatMap(({ files }) =>
      files.map((file) => [`envoy/${file}`, 'test/support/docs/manifest-sets.ts']),
    ),
  ),
};
