/** What the HTTP connection manager makes of a request before the check: path, headers, scheme, who is calling. */
import { clientPolicies } from '../client-policies.ts';
import type { Chain, Gateway, Rule } from '../gateway.ts';
import { refusesUpgrades } from '../rbac.ts';
import { isOn, mayBeOn, ofKind, unless, viewsOf, where } from '../settings.ts';
import { everyMapping, type View } from '../view.ts';

/** Istio's word on paths, where there is one. */
function istioPaths({ meshes }: Gateway, ...bad: readonly (string | number)[]): readonly View[] {
  return where(meshes, ['path_normalization', 'normalization'], (setting) => setting.isOneOf(...bad));
}

const pathNotNormalized: Rule = {
  id: 'path-not-normalized',
  severity: 'error',
  effect: 'leaves `..` and needless escapes in paths, which verifier and API may read differently',
  fix: 'normalize_path: true (Istio: pathNormalization: { normalization: BASE })',
  find: (gateway) => [
    ...unless(gateway.managers, ['normalize_path'], isOn),
    ...istioPaths(gateway, 'NONE', 1),
  ],
};

const escapedSlashes: Rule = {
  id: 'escaped-slashes',
  severity: 'error',
  effect: 'lets %2F and %5C through, which some APIs read as slashes and the verifier does not',
  fix: 'path_with_escaped_slashes_action: REJECT_REQUEST, and no runtime key for it (Envoy Gateway: escapedSlashesAction: RejectRequest)',
  find: (gateway) => [
    ...unless(gateway.managers, ['path_with_escaped_slashes_action'], (action) =>
      action.isOneOf('REJECT_REQUEST', 2),
    ),
    ...unless(clientPolicies(gateway), ['path', 'escaped_slashes_action'], (action) =>
      action.isOneOf('RejectRequest'),
    ),
    ...istioPaths(gateway, 'DECODE_AND_MERGE_SLASHES', 4),
    ...runtimeValues(gateway, 'http_connection_manager', 'path_with_escaped_slashes_action_enabled').filter(
      (share) => !isEverything(share),
    ),
  ],
};

/** In whatever layer: the key as one name, or the parts of it one below the other. */
function runtimeValues({ documents }: Gateway, first: string, second: string): readonly View[] {
  return everyMapping(documents).flatMap(
    (view) => view.named(`${first}.${second}`) ?? view.named(first)?.named(second) ?? [],
  );
}

/** A percentage, alone or as a fraction. */
function isEverything(share: View): boolean {
  const isOfHundred = share.get('denominator')?.isOneOf('HUNDRED', 0) ?? true;
  return isOfHundred && (share.get('numerator') ?? share).number === 100;
}

const slashesMerged: Rule = {
  id: 'slashes-merged',
  severity: 'warning',
  effect: 'makes one slash of several: who signed the path as it was is refused',
  fix: 'merge_slashes: false (Istio: normalization: BASE; Envoy Gateway: disableMergeSlashes: true)',
  find: (gateway) => [
    ...where(viewsOf(gateway.managers), ['merge_slashes'], mayBeOn),
    ...unless(clientPolicies(gateway), ['path', 'disable_merge_slashes'], isOn),
    ...istioPaths(gateway, 'MERGE_SLASHES', 3, 'DECODE_AND_MERGE_SLASHES', 4),
  ],
};

const underscoresAllowed: Rule = {
  id: 'underscores-allowed',
  severity: 'error',
  effect: 'lets x_proofgate_subject through, which CGI, WSGI and PHP read as X-Proofgate-Subject',
  fix: 'headers_with_underscores_action: REJECT_REQUEST (Envoy Gateway: withUnderscoresAction: RejectRequest)',
  find: (gateway) => [
    ...unless(
      gateway.managers,
      ['common_http_protocol_options', 'headers_with_underscores_action'],
      (action) => action.isOneOf('REJECT_REQUEST', 1, 'DROP_HEADER', 2),
    ),
    ...where(
      viewsOf(clientPolicies(gateway)),
      ['headers', 'with_underscores_action'],
      (action) => !action.isOneOf('RejectRequest', 'DropHeader'),
    ),
  ],
};

const schemeFromCaller: Rule = {
  id: 'scheme-from-caller',
  severity: 'warning',
  effect: 'believes the scheme that an HTTP/2 caller states, which is signed and must be the real one',
  fix: 'scheme_header_transformation: { scheme_to_overwrite: https }, or http where callers use that',
  find: ({ managers }) =>
    unless(managers, ['scheme_header_transformation', 'scheme_to_overwrite'], ({ text }) =>
      /^https?$/.test(text ?? ''),
    ),
};

const remoteAddress: Rule = {
  id: 'remote-address-unused',
  severity: 'error',
  effect:
    'takes X-Forwarded-For for the caller and obeys its X-Envoy-… headers, which steer time-outs and retries',
  fix: 'use_remote_address: true',
  find: ({ managers }) => unless(managers, ['use_remote_address'], isOn),
};

const internalCallers: Rule = {
  id: 'internal-callers',
  severity: 'warning',
  effect: 'takes private addresses, or a range, for internal, and obeys their X-Envoy-… headers',
  fix: 'internal_address_config: { cidr_ranges: [{ address_prefix: 255.255.255.255, prefix_len: 32 }] }',
  find: ({ managers }) =>
    unless(managers, ['internal_address_config'], (config) => {
      // Without one that holds an address Envoy takes what is private.
      const ranges = config.list('cidr_ranges');
      return ranges.length > 0 && ranges.every(isSingleHost);
    }),
};

/** The operator's word on one host; wider ones hold callers. */
function isSingleHost(range: View): boolean {
  const bits = range.get('address_prefix')?.text?.includes(':') === true ? 128 : 32;
  return (range.get('prefix_len')?.number ?? 0) >= bits;
}

const clientCertificateHeader: Rule = {
  id: 'client-certificate-header',
  severity: 'warning',
  effect: 'passes on a header in which a caller claims a certificate (X-Forwarded-Client-Cert)',
  fix: 'forward_client_cert_details: SANITIZE or SANITIZE_SET (Envoy Gateway: mode: Sanitize)',
  find: (gateway) => [
    ...where(
      viewsOf(gateway.managers),
      ['forward_client_cert_details'],
      (details) => !details.isOneOf('SANITIZE', 0, 'SANITIZE_SET', 3),
    ),
    ...where(
      viewsOf(clientPolicies(gateway)),
      ['headers', 'x_forwarded_client_cert', 'mode'],
      (mode) => !mode.isOneOf('Sanitize', 'SanitizeSet'),
    ),
  ],
};

/** Managers and routes have them; entries that are switched off do not count. */
function upgrades(holders: readonly View[], name: string): readonly View[] {
  return holders
    .flatMap((view) => view.list(name))
    .filter((upgrade) => upgrade.get('enabled')?.flag !== false);
}

/** Those without a filter that refuses what asks for an upgrade. */
function openManagers(gateway: Gateway): readonly View[] {
  const closed = new Set(closedChains(gateway).map(({ manager }) => manager.identity));
  return viewsOf(gateway.managers).filter((manager) => !closed.has(manager.identity));
}

/** Parts of routes that are used by others as well, or by nobody that is seen. */
function openRouteParts(gateway: Gateway): readonly View[] {
  const closed = closedChains(gateway);
  const others = gateway.listeners.flatMap(({ chains }) => chains).filter((chain) => !closed.includes(chain));
  const isIn = (chains: readonly Chain[]) => {
    const parts = new Set(everyMapping(chains.flatMap(({ routes }) => routes)).map((view) => view.identity));
    return ({ identity }: View) => parts.has(identity);
  };
  const isClosed = isIn(closed);
  const isOpen = isIn(others);
  return gateway.routeParts.filter((part) => !isClosed(part) || isOpen(part));
}

function closedChains({ listeners, overrides }: Gateway): readonly Chain[] {
  return listeners.flatMap(({ chains }) => chains).filter((chain) => refusesUpgrades(chain, overrides));
}

const upgradesAllowed: Rule = {
  id: 'upgrades-allowed',
  severity: 'error',
  effect: 'opens connections over which anything follows that no Check has seen',
  fix: 'no upgrade_configs, no connect_matcher, or rbac that refuses the header upgrade (Envoy Gateway: no httpUpgrade; it allows WebSockets by itself)',
  find: (gateway) => [
    ...upgrades([...openManagers(gateway), ...openRouteParts(gateway)], 'upgrade_configs'),
    ...where(gateway.routeParts, ['match', 'connect_matcher'], () => true),
    ...upgrades(
      ofKind(gateway, 'BackendTrafficPolicy').map(({ spec }) => spec),
      'http_upgrade',
    ),
  ],
};

export const CONNECTION_RULES: readonly Rule[] = [
  pathNotNormalized,
  escapedSlashes,
  slashesMerged,
  underscoresAllowed,
  schemeFromCaller,
  remoteAddress,
  internalCallers,
  clientCertificateHeader,
  upgradesAllowed,
];
