/**
 * Rules about changes that the HTTP connection manager makes before the check: path, headers, scheme, the caller's
 * address.
 */
import { allChains } from '../gateway/chains.ts';
import { clientPolicies } from '../gateway/envoy-gateway.ts';
import type { Gateway, Rule } from '../gateway/gateway.ts';
import { isOn, isSingleHosts, mayBeOn, specsOf, unless, where } from '../gateway/gateway-queries.ts';
import { type Condition, refusesUpgrades } from '../gateway/rbac.ts';
import { everyMapping, type View } from '../gateway/view.ts';

/** Istio's setting for paths, if there is one. */
function istioPaths({ meshes }: Gateway, ...bad: readonly (string | number)[]): readonly View[] {
  return where(meshes, 'path_normalization.normalization', (setting) => setting.isOneOf(...bad));
}

const SLASHES_KEY = ['http_connection_manager', 'path_with_escaped_slashes_action_enabled'] as const;

/** Runtime values below 100 % in any layer, with the key as one name or as nested names. */
function slashesLetThrough({ documents }: Gateway): readonly View[] {
  const [first, second] = SLASHES_KEY;
  return everyMapping(documents)
    .flatMap((view) => view.named(`${first}.${second}`) ?? view.named(first)?.named(second) ?? [])
    .filter((share) => {
      const isOfHundred = share.get('denominator')?.isOneOf('HUNDRED', 0) ?? true;
      return !(isOfHundred && (share.get('numerator') ?? share).number === 100);
    });
}

/** Excludes disabled entries. */
function upgrades(holders: readonly View[], name: string): readonly View[] {
  return holders
    .flatMap((view) => view.list(name))
    .filter((upgrade) => upgrade.get('enabled')?.flag !== false);
}

/** Managers and route parts, except those that only chains with a filter against upgrades use. */
function openHolders(gateway: Gateway, isExempt: Condition): readonly View[] {
  const chains = allChains(gateway);
  const closed = chains.filter((chain) => refusesUpgrades(chain, gateway.overrides, isExempt));
  const partsOf = (all: typeof chains) =>
    new Set(
      [...all.map(({ manager }) => manager), ...everyMapping(all.flatMap(({ routes }) => routes))].map(
        ({ identity }) => identity,
      ),
    );
  const inClosed = partsOf(closed);
  const inOpen = partsOf(chains.filter((chain) => !closed.includes(chain)));
  return [...gateway.managers, ...gateway.routeParts].filter(
    ({ identity }) => !inClosed.has(identity) || inOpen.has(identity),
  );
}

/** @param isExempt conditions of requests that may ask for an upgrade */
export function allowedUpgrades(gateway: Gateway, isExempt: Condition = () => false): readonly View[] {
  return [
    ...upgrades(openHolders(gateway, isExempt), 'upgrade_configs'),
    ...where(gateway.routeParts, 'match.connect_matcher'),
  ];
}

export const CONNECTION_RULES: readonly Rule[] = [
  {
    id: 'path-not-normalized',
    severity: 'error',
    effect: 'leaves `..` and needless escapes in paths, which verifier and API may read differently',
    fix: 'normalize_path: true (Istio: pathNormalization: { normalization: BASE })',
    find: (gateway) => [
      ...unless(gateway.managers, 'normalize_path', isOn),
      ...istioPaths(gateway, 'NONE', 1),
    ],
  },
  {
    id: 'escaped-slashes',
    severity: 'error',
    effect: 'lets %2F and %5C through, which some APIs read as slashes and the verifier does not',
    fix: 'path_with_escaped_slashes_action: REJECT_REQUEST, and no runtime key for it (Envoy Gateway: escapedSlashesAction: RejectRequest)',
    find: (gateway) => [
      ...unless(gateway.managers, 'path_with_escaped_slashes_action', (action) =>
        action.isOneOf('REJECT_REQUEST', 2),
      ),
      ...unless(clientPolicies(gateway), 'path.escaped_slashes_action', (action) =>
        action.isOneOf('RejectRequest'),
      ),
      ...istioPaths(gateway, 'DECODE_AND_MERGE_SLASHES', 4),
      ...slashesLetThrough(gateway),
    ],
  },
  {
    id: 'slashes-merged',
    severity: 'warning',
    effect: 'replaces several slashes by one: the verifier denies requests that were signed with several',
    fix: 'merge_slashes: false (Istio: normalization: BASE; Envoy Gateway: disableMergeSlashes: true)',
    find: (gateway) => [
      ...where(gateway.managers, 'merge_slashes', mayBeOn),
      ...unless(clientPolicies(gateway), 'path.disable_merge_slashes', isOn),
      ...istioPaths(gateway, 'MERGE_SLASHES', 3, 'DECODE_AND_MERGE_SLASHES', 4),
    ],
  },
  {
    id: 'underscores-allowed',
    severity: 'error',
    effect: 'lets x_proofgate_subject through, which CGI, WSGI and PHP read as X-Proofgate-Subject',
    fix: 'headers_with_underscores_action: REJECT_REQUEST (Envoy Gateway: withUnderscoresAction: RejectRequest)',
    find: (gateway) => [
      ...unless(gateway.managers, 'common_http_protocol_options.headers_with_underscores_action', (action) =>
        action.isOneOf('REJECT_REQUEST', 1, 'DROP_HEADER', 2),
      ),
      ...where(
        clientPolicies(gateway),
        'headers.with_underscores_action',
        (action) => !action.isOneOf('RejectRequest', 'DropHeader'),
      ),
    ],
  },
  {
    id: 'scheme-from-caller',
    severity: 'warning',
    effect: 'trusts the scheme that an HTTP/2 caller states; it is signed and must be the real one',
    fix: 'scheme_header_transformation: { scheme_to_overwrite: https }, or http where callers use that',
    find: ({ managers }) =>
      unless(managers, 'scheme_header_transformation.scheme_to_overwrite', ({ text }) =>
        /^https?$/.test(text ?? ''),
      ),
  },
  {
    id: 'remote-address-unused',
    severity: 'error',
    effect:
      "takes the caller's address from X-Forwarded-For and obeys its X-Envoy-… headers (time-outs, retries)",
    fix: 'use_remote_address: true',
    find: ({ managers }) => unless(managers, 'use_remote_address', isOn),
  },
  {
    id: 'internal-callers',
    severity: 'warning',
    effect: 'treats private addresses, or a range, as internal and obeys their X-Envoy-… headers',
    fix: 'internal_address_config: { cidr_ranges: [{ address_prefix: 255.255.255.255, prefix_len: 32 }] }',
    find: ({ managers }) => unless(managers, 'internal_address_config', isSingleHosts),
  },
  {
    id: 'client-certificate-header',
    severity: 'warning',
    effect: 'passes on a header in which a caller claims a certificate (X-Forwarded-Client-Cert)',
    fix: 'forward_client_cert_details: SANITIZE or SANITIZE_SET (Envoy Gateway: mode: Sanitize)',
    find: (gateway) => [
      ...where(
        gateway.managers,
        'forward_client_cert_details',
        (details) => !details.isOneOf('SANITIZE', 0, 'SANITIZE_SET', 3),
      ),
      ...where(
        clientPolicies(gateway),
        'headers.x_forwarded_client_cert.mode',
        (mode) => !mode.isOneOf('Sanitize', 'SanitizeSet'),
      ),
    ],
  },
  {
    id: 'upgrades-allowed',
    severity: 'error',
    effect: 'opens connections that carry data which is in no Check',
    fix: 'no upgrade_configs, no connect_matcher, or rbac that refuses the header upgrade (Envoy Gateway: no httpUpgrade; it allows WebSockets by itself)',
    find: (gateway) => [
      ...allowedUpgrades(gateway),
      ...upgrades(specsOf(gateway, 'BackendTrafficPolicy'), 'http_upgrade'),
    ],
  },
];
