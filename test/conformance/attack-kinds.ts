/**
 * Kinds of attack that once succeeded somewhere. For each enforcement point and program: the tests that show that it resists,
 * or why the attack cannot occur there. The table in docs/reference/conformance.md is generated from it.
 */

export const ATTACKED_POINTS = [
  'gRPC',
  'HTTP profiles',
  'proxy',
  'Express',
  'Fastify',
  'Hono',
  'node:http',
  'signer',
  'broker',
  'Control',
] as const;
export type AttackedPoint = (typeof ATTACKED_POINTS)[number];

/** Below `test/`, or a test of an SDK. */
export type Cell = { readonly tests: readonly string[] } | { readonly because: string };

export interface AttackKind {
  readonly name: string;
  readonly cells: { readonly [P in AttackedPoint]: Cell };
}

const holds = (...tests: readonly string[]): Cell => ({ tests });
const cannot = (because: string): Cell => ({ because });

const MIDDLEWARE = ['Express', 'Fastify', 'Hono', 'node:http'] as const;
type MiddlewarePoint = (typeof MIDDLEWARE)[number];

function atMiddleware(cell: Cell): { readonly [P in MiddlewarePoint]: Cell } {
  return { Express: cell, Fastify: cell, Hono: cell, 'node:http': cell };
}

const FORWARDS_NOTHING = cannot('it forwards no requests');
const NO_HTTP2 = cannot('it speaks HTTP/1.1 only');
const NO_TARGET_HEADER = cannot('the check does not get the target in a header');

export const ATTACK_KINDS: readonly AttackKind[] = [
  {
    name: 'The check reads less of a request than its parser acted on',
    cells: {
      gRPC: cannot('the decoder reads every line of a Check, and denies more than 1,000'),
      'HTTP profiles': holds(
        'enforcement/ext-authz-http/server.test.ts',
        'conformance/filler-lines.extended.test.ts',
      ),
      proxy: holds('conformance/filler-lines.extended.test.ts', 'wire-fuzz/reverse-proxy.extended.test.ts'),
      ...atMiddleware(
        holds(
          'conformance/filler-lines.test.ts',
          'conformance/filler-lines.extended.test.ts',
          'enforcement/middleware/header-lines.test.ts',
          'wire-fuzz/middleware.extended.test.ts',
        ),
      ),
      signer: holds('e2e/servers/header-lines.test.ts', 'wire-fuzz/programs.extended.test.ts'),
      broker: holds('e2e/servers/header-lines.test.ts', 'wire-fuzz/programs.extended.test.ts'),
      Control: holds('e2e/servers/header-lines.test.ts', 'wire-fuzz/programs.extended.test.ts'),
    },
  },
  {
    name: 'One proof is delivered twice',
    cells: {
      gRPC: holds('e2e/one-delivery/envoy.extended.test.ts'),
      'HTTP profiles': holds('e2e/one-delivery/forward-auth.extended.test.ts'),
      proxy: holds('e2e/one-delivery/proxy.test.ts'),
      ...atMiddleware(FORWARDS_NOTHING),
      signer: holds('caller/signer/egress/one-proof.test.ts', 'process/http-proxy/one-delivery.test.ts'),
      broker: FORWARDS_NOTHING,
      Control: FORWARDS_NOTHING,
    },
  },
  {
    name: 'A request ends the process',
    cells: {
      gRPC: holds('wire-fuzz/envoy-grpc.extended.test.ts'),
      'HTTP profiles': holds('e2e/disturbed-clients.test.ts', 'wire-fuzz/nginx.extended.test.ts'),
      proxy: holds(
        'e2e/disturbed-clients.test.ts',
        'process/http-proxy/forward.test.ts',
        'wire-fuzz/reverse-proxy.extended.test.ts',
      ),
      ...atMiddleware(holds('enforcement/middleware/disturbances.test.ts')),
      signer: holds('e2e/servers/disturbances.test.ts', 'wire-fuzz/programs.extended.test.ts'),
      broker: holds('e2e/servers/disturbances.test.ts', 'wire-fuzz/programs.extended.test.ts'),
      Control: holds('e2e/servers/disturbances.test.ts', 'wire-fuzz/programs.extended.test.ts'),
    },
  },
  {
    name: 'A request behind a GOAWAY corrupts memory',
    cells: {
      gRPC: holds('process/node-internals/http2-closing.test.ts', 'smuggling/envoy-grpc.extended.test.ts'),
      'HTTP profiles': NO_HTTP2,
      proxy: holds('process/node-internals/http2-closing.test.ts', 'smuggling/reverse-proxy.test.ts'),
      ...atMiddleware(cannot('it protects no HTTP/2 server')),
      signer: holds('process/node-internals/http2-closing.test.ts'),
      broker: NO_HTTP2,
      Control: NO_HTTP2,
    },
  },
  {
    name: 'A message that is broken off looks whole',
    cells: {
      gRPC: cannot('a Check that is not whole is not decoded'),
      'HTTP profiles': FORWARDS_NOTHING,
      proxy: holds(
        'process/node-internals/http2-closing.test.ts',
        'enforcement/reverse-proxy/responses.test.ts',
      ),
      ...atMiddleware(FORWARDS_NOTHING),
      signer: holds(
        'process/http-proxy/http2-upstream-exchange.test.ts',
        'process/node-internals/http2-closing.test.ts',
        'caller/signer/egress/http2-upstream.test.ts',
      ),
      broker: FORWARDS_NOTHING,
      Control: FORWARDS_NOTHING,
    },
  },
  {
    name: 'Bodies in chunks of one byte take memory without a bound',
    cells: {
      gRPC: cannot('only the gateway connects, and the size of a message is bounded before it is decoded'),
      'HTTP profiles': holds('e2e/one-byte-chunks.extended.test.ts'),
      proxy: holds('e2e/one-byte-chunks.extended.test.ts', 'e2e/proxy/load.extended.test.ts'),
      // The guard receives the body before any framework does; the flood runs at two of the four.
      ...atMiddleware(
        holds('enforcement/shares-of-callers.test.ts', 'process/node-internals/small-chunks.test.ts'),
      ),
      Fastify: holds('e2e/one-byte-chunks.extended.test.ts'),
      'node:http': holds('e2e/one-byte-chunks.extended.test.ts'),
      signer: holds('e2e/one-byte-chunks.extended.test.ts'),
      broker: holds('e2e/one-byte-chunks.extended.test.ts'),
      Control: holds('e2e/one-byte-chunks.extended.test.ts'),
    },
  },
  {
    name: 'One caller takes the room of all for bodies',
    cells: {
      gRPC: cannot('it keeps no bodies between messages'),
      'HTTP profiles': holds('enforcement/shares-of-callers.test.ts'),
      proxy: holds('enforcement/reverse-proxy/bodies.test.ts'),
      ...atMiddleware(holds('enforcement/shares-of-callers.test.ts')),
      signer: cannot('its callers are the programs of one owner'),
      broker: holds('process/http-service/request-bodies.test.ts'),
      Control: holds('process/http-service/request-bodies.test.ts'),
    },
  },
  {
    name: 'A `Retry-After` outlasts staleness, key or passport',
    cells: {
      gRPC: holds('verifier/loading/retry-after.test.ts'),
      'HTTP profiles': holds('verifier/loading/retry-after.test.ts'),
      proxy: holds('verifier/loading/retry-after.test.ts'),
      ...atMiddleware(holds('verifier/loading/retry-after.test.ts')),
      signer: holds('caller/agent/keeper.test.ts', 'caller/broker/passport-keeper.test.ts'),
      broker: cannot('no `Retry-After` delays what it renews'),
      Control: cannot('no `Retry-After` delays what it renews'),
    },
  },
  {
    name: '`/readyz` answers 200 while every request is refused',
    cells: {
      gRPC: holds(
        'verifier/assembly/audit-readiness.test.ts',
        'verifier/assembly/verifier-readiness.test.ts',
      ),
      'HTTP profiles': holds(
        'verifier/assembly/audit-readiness.test.ts',
        'verifier/assembly/verifier-readiness.test.ts',
      ),
      proxy: holds(
        'verifier/assembly/audit-readiness.test.ts',
        'verifier/assembly/verifier-readiness.test.ts',
      ),
      ...atMiddleware(holds('verifier/assembly/audit-readiness.test.ts')),
      signer: holds('caller/signer/program/signer-process.test.ts'),
      broker: holds('broker/program/broker-refuses-all.test.ts'),
      Control: holds(
        'control/program/control-readiness.test.ts',
        'control/program/control-full-disk.extended.test.ts',
      ),
    },
  },
  {
    name: 'The API takes a header of the caller for one of ours',
    cells: {
      gRPC: holds('conformance/envoy-grpc.test.ts'),
      'HTTP profiles': holds('conformance/nginx.extended.test.ts', 'conformance/caddy.extended.test.ts'),
      proxy: holds('conformance/reverse-proxy.extended.test.ts'),
      ...atMiddleware(
        holds('enforcement/middleware/header-views.test.ts', 'conformance/middleware.extended.test.ts'),
      ),
      signer: holds('caller/sdk/caller-headers.test.ts'),
      broker: FORWARDS_NOTHING,
      Control: FORWARDS_NOTHING,
    },
  },
  {
    name: 'The target changes on its way to the check',
    cells: {
      gRPC: NO_TARGET_HEADER,
      'HTTP profiles': holds(
        'e2e/forward-auth/target-bytes.test.ts',
        'e2e/forward-auth/target-bytes.extended.test.ts',
      ),
      proxy: NO_TARGET_HEADER,
      ...atMiddleware(NO_TARGET_HEADER),
      signer: NO_TARGET_HEADER,
      broker: NO_TARGET_HEADER,
      Control: NO_TARGET_HEADER,
    },
  },
  {
    name: 'The work of one caller delays revocations and freshness statements',
    cells: {
      gRPC: cannot('it distributes neither'),
      'HTTP profiles': cannot('it distributes neither'),
      proxy: cannot('it distributes neither'),
      ...atMiddleware(cannot('it distributes neither')),
      signer: cannot('it distributes neither'),
      broker: cannot('it distributes neither'),
      Control: holds(
        'control/declaration/bounds.test.ts',
        'control/store/transactions.test.ts',
        'e2e/control/declarations-beside-others.extended.test.ts',
      ),
    },
  },
];

/** The table, and below it the numbered reasons. */
export function attackTable(): readonly string[] {
  const reasons = [
    ...new Set(
      ATTACK_KINDS.flatMap(({ cells }) => Object.values(cells)).flatMap((cell) =>
        'because' in cell ? [cell.because] : [],
      ),
    ),
  ];
  const shown = (cell: Cell) => ('because' in cell ? `(${reasons.indexOf(cell.because) + 1})` : 'holds');
  return [
    `| kind of attack | ${ATTACKED_POINTS.join(' | ')} |`,
    `|---|${ATTACKED_POINTS.map(() => '---|').join('')}`,
    ...ATTACK_KINDS.map(
      ({ cells, name }) => `| ${name} | ${ATTACKED_POINTS.map((point) => shown(cells[point])).join(' | ')} |`,
    ),
    '',
    'It cannot occur, because',
    '',
    ...reasons.map((reason, index) => `${index + 1}. ${reason}`),
  ];
}
