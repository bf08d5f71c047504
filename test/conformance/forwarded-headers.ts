/**
 * Headers with which proxies tell an API about the caller's connection, and what becomes of a caller's own at each point. The
 * verifier reads none of them; an API that does must know which of them a proxy of its own wrote.
 */
import { type HeaderLine, headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import type { EnforcementPoint } from '../support/points/enforcement-point.ts';
import { exchange } from '../support/points/exchange.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import type { Protocol } from '../support/site/gateway.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import type { Site } from '../support/site/site.ts';
import { type NamedResults, outcomesOf, type PointResults, resultOf } from './results.ts';

/** What a caller claims, by name. */
const CLAIMS: readonly HeaderLine[] = [
  ['forwarded', 'for=192.0.2.66;host=api.other.example;proto=https'],
  ['x-forwarded-client-cert', 'By=spiffe://other.example/a'],
  ['x-forwarded-for', '192.0.2.66'],
  ['x-forwarded-host', 'api.other.example'],
  ['x-forwarded-method', 'DELETE'],
  ['x-forwarded-port', '8443'],
  ['x-forwarded-prefix', '/other'],
  ['x-forwarded-proto', 'https'],
  ['x-forwarded-scheme', 'https'],
  ['x-forwarded-server', 'api.other.example'],
  ['x-forwarded-ssl', 'on'],
  ['x-forwarded-uri', '/v1/other'],
  ['x-real-ip', '192.0.2.66'],
  ['via', '1.1 other.example'],
];

/** What the API gets: the caller's value, that and the proxy's, the proxy's, or none. `denied`: no request at all. */
type Fate = 'passes' | 'appended' | 'replaced' | 'removed' | 'denied';

async function fateOf(
  point: EnforcementPoint,
  { line, protocol, site }: { readonly line: HeaderLine; readonly protocol: Protocol; readonly site: Site },
): Promise<Fate> {
  const plan = { caller: derivedKeyCaller(site), route: ROUTES.readOrder, otherHeaders: [line] };
  const { arrived } = await exchange(point, protocol, signedRequest(site, plan));
  const [request] = arrived;
  if (request === undefined) return 'denied';
  const [name, claim] = line;
  const values = headerValues(request.headers, name);
  if (values.length === 0) return 'removed';
  if (values.join() === claim) return 'passes';
  return values.some((value) => value.includes(claim)) ? 'appended' : 'replaced';
}

export async function forwardedHeaders(
  point: EnforcementPoint,
  protocols: readonly Protocol[],
  site: Site,
): Promise<PointResults> {
  const results: Record<string, PointResults[string]> = {};
  for (const line of CLAIMS) {
    const fates = new Map<Protocol, string>();
    for (const protocol of protocols) fates.set(protocol, await fateOf(point, { line, protocol, site }));
    results[line[0]] = resultOf(fates);
  }
  return results;
}

/** Of docs/operate/enforcement-points.md. Points that treat all headers alike share a column. */
export function forwardedTable(points: readonly NamedResults[]): readonly string[] {
  const columns = new Map<string, { readonly names: string[]; readonly results: PointResults }>();
  for (const { point, results } of points) {
    const key = JSON.stringify(results);
    const column = columns.get(key) ?? { names: [], results };
    columns.set(key, { ...column, names: [...column.names, point] });
  }
  const shown = [...columns.values()];
  return [
    `| a caller's header | ${shown.map(({ names }) => names.join(', ')).join(' | ')} |`,
    `|---|${shown.map(() => '---|').join('')}`,
    ...CLAIMS.map(([name]) => {
      const cells = shown.map(({ results }) => outcomesOf(results[name] ?? 'n/a').join(', '));
      return `| \`${name}\` | ${cells.join(' | ')} |`;
    }),
  ];
}
