/** Rules about the gateway's connection to the verifier, and about access to the gateway's own interface. */
import { isLocalAddress, isLoopback } from '../gateway/exposure.ts';
import type { Rule } from '../gateway/gateway.ts';
import { grpcServices, specsOf, where } from '../gateway/gateway-queries.ts';
import {
  clusterNames,
  isVerified,
  plainBackends,
  plainDestinations,
  remoteClusters,
  tlsContexts,
  unverifiedBackends,
  unverifiedDestinations,
} from '../gateway/verifier-locations.ts';
import { everyMapping, type View } from '../gateway/view.ts';

function plainGoogle(service: View): readonly View[] {
  const uri = service.get('target_uri');
  const host = uri?.text?.replace(/^(?:dns|ipv4|ipv6):(?:\/\/\/?)?/, '').replace(/:\d+$/, '') ?? '';
  const isLocalTarget = uri?.text?.startsWith('unix:') === true || isLoopback(host);
  const isSafe = isLocalTarget || service.at('channel_credentials', 'ssl_credentials') !== undefined;
  return isSafe ? [] : [uri ?? service];
}

const CREDENTIAL = /%REQ\([^)]*(?:authorization|x-proofgate-(?:passport|transcript|signature))\b/i;

export const VERIFIER_RULES: readonly Rule[] = [
  {
    id: 'verifier-plaintext',
    severity: 'error',
    effect: 'sends passports in the clear to a verifier elsewhere, and trusts any server that answers',
    fix: 'a Unix socket, loopback, or TLS with certificates on both sides (Gateway API: BackendTLSPolicy)',
    find: (gateway) => [
      ...remoteClusters(gateway)
        .filter((cluster) => tlsContexts(cluster) === undefined)
        .map((cluster) => cluster.get('load_assignment') ?? cluster),
      ...where(grpcServices(gateway), 'google_grpc').flatMap(plainGoogle),
      ...plainBackends(gateway),
      ...plainDestinations(gateway),
    ],
  },
  {
    id: 'verifier-unverified',
    severity: 'error',
    effect: 'accepts any certificate, or any of an authority: its owner could decide which requests pass',
    fix: 'validation_context with trusted_ca and match_typed_subject_alt_names (Envoy Gateway: no insecureSkipVerify; Istio: subjectAltNames)',
    find: (gateway) => [
      ...remoteClusters(gateway)
        .flatMap((cluster) => tlsContexts(cluster) ?? [])
        .filter((context) => !isVerified(context))
        .map((context) => context.get('common_tls_context') ?? context),
      ...unverifiedBackends(gateway),
      ...unverifiedDestinations(gateway),
    ],
  },
  {
    id: 'admin-exposed',
    severity: 'error',
    effect: 'lets other machines stop Envoy, change runtime keys and read its configuration',
    fix: 'admin on 127.0.0.1 or a Unix socket',
    find: ({ admins }) => where(admins, 'address', (address) => !isLocalAddress(address)),
  },
  {
    id: 'credentials-logged',
    severity: 'warning',
    effect: 'writes passports or proofs to the log, where its readers can take them',
    fix: 'no Authorization, x-proofgate-passport, x-proofgate-transcript or x-proofgate-signature in access logs',
    find: (gateway) => {
      const telemetry = where(specsOf(gateway, 'EnvoyProxy'), 'telemetry');
      const holders = [...gateway.managers, ...gateway.listeners.map(({ view }) => view), ...telemetry];
      const logs = where(holders, 'access_log');
      const texts = everyMapping(logs.flatMap((log) => [log, ...log.items()]))
        .flatMap((view) => view.members())
        .map(({ view }) => view);
      return [...texts, ...where(gateway.meshes, 'access_log_format')].filter(({ text }) =>
        CREDENTIAL.test(text ?? ''),
      );
    },
  },
  {
    id: 'not-in-file',
    severity: 'warning',
    effect: 'refers to configuration that is not in this file and was not linted',
    fix: "lint what the running Envoy has: its admin interface's /config_dump",
    find: (gateway) => {
      const known = new Set(gateway.clusters.map((cluster) => cluster.get('name')?.text));
      const missing = gateway.listeners.length === 0 ? [] : clusterNames(gateway);
      return [...gateway.unseen, ...missing.filter(({ text }) => !known.has(text))];
    },
  },
];
