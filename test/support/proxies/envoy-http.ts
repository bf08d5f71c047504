/** Envoy that asks over HTTP: envoy/envoy.yaml with the parts of envoy/http-service.yaml. */
import { readFileSync } from 'node:fs';
import { isSeq, parse, parseDocument } from 'yaml';
import { checkoutPath } from '../harness/checkout.ts';
import { startEnvoy } from '../harness/envoy.ts';
import {
  type ConfigEdit,
  type ConfigPath,
  closeAtOnce,
  patient,
  shipped,
  shippedText,
} from '../harness/envoy-config.ts';
import { clientsAt, type ForwardProxy, type ProxyKind, type ProxyParts } from './proxy.ts';

export const envoyHttp = (version: string): ProxyKind => ({
  name: `Envoy ${version}`,
  profile: 'envoy',
  bodyMode: 'forwarded',
  // Every lane installs its Envoys.
  unavailable: () => undefined,
  start: (parts) => startEnvoyHttp(version, parts),
});

interface HttpServiceFile {
  readonly request_mutation: unknown;
  readonly reply_mapper: unknown;
  readonly ext_authz: { readonly http_service: { readonly server_uri: object } };
  readonly domains: readonly string[];
  readonly cluster: object;
}

/** @param edits applied last */
export async function startEnvoyHttp(
  version: string,
  { authority, socketPath, upstream }: ProxyParts,
  edits: readonly ConfigEdit[] = [],
): Promise<ForwardProxy> {
  const envoy = await startEnvoy(version, {
    verifier: { kind: 'unix', path: socketPath },
    upstream,
    edits: [...httpServiceEdits(socketPath, authority), closeAtOnce, ...edits],
  });
  return {
    ...clientsAt(envoy.port),
    logs: async () => [...envoy.accessLog, ...envoy.stderrLines].join('\n'),
    stop: () => envoy.stop(),
  };
}

/** What envoy/http-service.yaml changes, with time-outs for busy machines. */
export function httpServiceEdits(socketPath: string, authority: string): readonly ConfigEdit[] {
  const text = readFileSync(checkoutPath('envoy', 'http-service.yaml'), 'utf8');
  const adapted = text
    .replaceAll('/run/proofgate/http.sock', socketPath)
    .replaceAll('api.example', authority)
    // On a busy test machine the verifier may be slower than it may be in service.
    .replace('timeout: 0.5s', 'timeout: 8s')
    .replace('connect_timeout: 0.25s', 'connect_timeout: 8s');
  const parts: HttpServiceFile = parse(adapted);
  return [
    {
      path: endOf([...shipped.headerMutation, 'mutations', 'request_mutations']),
      value: parts.request_mutation,
    },
    {
      path: endOf([...shipped.connectionManager, 'local_reply_config', 'mappers']),
      value: parts.reply_mapper,
    },
    { path: shipped.extAuthz, value: parts.ext_authz },
    { path: [...shipped.virtualHost, 'domains'], value: parts.domains },
    { path: shipped.verifierCluster, value: parts.cluster },
    ...patient.filter(({ path }) => path.at(-2) !== 'grpc_service'),
  ];
}

/** The place after a list's last member. */
function endOf(list: ConfigPath): ConfigPath {
  const members = parseDocument(shippedText()).getIn(list);
  if (!isSeq(members)) throw new Error(`envoy.yaml has no list ${list.join('.')}`);
  return [...list, members.items.length];
}
