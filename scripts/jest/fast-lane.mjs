/**
 * The test files of `make test`: for each part of the specification, those that show it. All others are `make test-extended`.
 * Paths are below test/. A folder stands for its own files, without those of the folders in it.
 */
import { readdirSync } from 'node:fs';

/** Files that start no process and no server; `make quick` runs only these. */
export const PURE = [
  'protocol',
  'bundle/compile',
  'bundle/format',
  'control/domain',
  'caller/sign',
  'tools/gateway-lint',
  'verifier/capture',
  'vectors/in-process',
  'vectors/files',
];

export const SHOWN = {
  'Passport and proof (transcript-v1), signatures, canonical forms': ['protocol', 'vectors/files'],
  'Route policies, source sets, bundles': ['bundle/authoring/lint', 'bundle/compile', 'bundle/format'],
  'Request evaluation order, every reason': [
    'verifier/decision/decide',
    'verifier/decision/decide.boundaries',
    'verifier/decision/decide.variants',
    'verifier/decision/source-rules',
    'verifier/decision/call-context',
    'verifier/decision/attacks',
    'verifier/observation/decisions',
    'verifier/envoy-request',
    'vectors/in-process',
  ],
  'Freshness, revision floor, verification without a central server': [
    'e2e/freshness',
    'verifier/loading/bundle-loader',
    'verifier/loading/control-problem',
    'verifier/loading/reset-mark',
    'verifier/loading/signers',
    'enforcement/programs/verifier/graceful-shutdown',
  ],
  'jti unused, consumed atomically, on a real Redis and in memory': [
    'e2e/concurrency',
    'verifier/replay/memory',
    'verifier/redis/replay-scripts',
    'verifier/replay/memory-health',
    'verifier/replay/record-table',
    'verifier/replay/redis',
    'verifier/replay/redis-fences',
  ],
  'Forwarding with context headers, denials with stable reasons: a real Envoy': [
    'e2e/bodies',
    'e2e/denials',
    'e2e/outcomes',
    'enforcement/ext-authz-grpc/check-response',
    'enforcement/ext-authz-grpc/decode-check-request',
    'enforcement/ext-authz-grpc/server',
  ],
  'The other enforcement points': [
    'conformance/middleware',
    'e2e/forward-auth/decisions',
    'enforcement/ext-authz-http',
    'enforcement/middleware/frameworks',
    'enforcement/middleware/header-lines',
    'enforcement/middleware/standard-proofs',
    'enforcement/reverse-proxy/bodies',
    'enforcement/reverse-proxy/request-lines',
    'e2e/proxy/forwarding',
  ],
  'Audit events and captures': [
    'verifier/audit/decision-event',
    'verifier/audit/gap-event',
    'verifier/audit/sink',
    'verifier/capture',
    'verifier/decision/explain/proof-checks',
  ],
  'Trust anchor sources: states and transitions': [
    'control/sources/lifecycle',
    'control/issuers/key-set',
    'control/sources/retire-source',
  ],
  'Enrollment policies, approvals, derived keys': [
    'control/enrollment/submission',
    'control/domain',
    'control/enrollment/decisions',
    'control/enrollment/policies',
    'control/enrollment/rejected-enrollments',
  ],
  'Clients, profiles, environments, fleets, sites': [
    'control/declaration/same-result',
    'e2e/control/ctl-verbs',
    'control/api/caller-profiles',
    'control/api/clients-and-routes',
    'control/api/observations',
    'control/api/protection',
    'control/api/sites',
  ],
  'Operators, roles, secrets': [
    'control/api/permissions',
    'control/operators/operators',
    'control/operators/sign-in',
    'control/secrets/secrets',
  ],
  'Storage: SQLite and PostgreSQL': ['control/store/postgres', 'control/store/repositories'],
  'Publishing bundles': [
    'control/publishing/distribution',
    'control/publishing/publisher',
    'control/publishing/signing-keys',
    'control/publishing/site-content',
  ],
  'Enrollment command-line tool': [
    'caller/enroll/enroll',
    'caller/sign',
    'cli/enroll',
    'cli/help',
    'cli/request',
  ],
  'Keys kept by an agent, requests signed by a signer': [
    'caller/agent/renewal',
    'caller/signer/egress/confused-deputy',
  ],
  'Broker: software keys and SVIDs': [
    'broker/attacks',
    'broker/program/broker-process',
    'broker/challenges',
    'broker/issued-passports',
    'broker/served-proofs',
    'spiffe/x509-svid',
  ],
  'Control in the browser: the first request': ['console/first-steps'],
  'Gateway configurations': ['tools/gateway-lint'],
  'What every program needs': [
    'process/connections',
    'process/files',
    'process/node-internals',
    'process/outbound-fetch',
    'process/settings',
  ],
  'This repository': [
    'docs/blocks',
    'docs/inline',
    'docs/links',
    'docs/commands',
    'lanes',
    'release/versions',
  ],
};

/** @returns paths from the checkout */
export function filesOf(entries) {
  const there = readdirSync('test', { recursive: true, withFileTypes: true })
    .filter(
      (entry) =>
        entry.isFile() && entry.name.endsWith('.test.ts') && !entry.name.endsWith('.extended.test.ts'),
    )
    .map((entry) => `${entry.parentPath}/${entry.name}`);
  const chosen = entries.flatMap((entry) => {
    const files = there.filter(
      (path) => path === `test/${entry}.test.ts` || folderOf(path) === `test/${entry}`,
    );
    if (files.length === 0) throw new Error(`test/${entry}: no test`);
    return files;
  });
  return [...new Set(chosen)].sort();
}

function folderOf(path) {
  return path.slice(0, path.lastIndexOf('/'));
}
