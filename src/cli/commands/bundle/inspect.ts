/** `proofgate bundle inspect`: what is in a directory. */
import type { BundleSummary, FreshnessSummary, SignerSummary } from '../../../bundle/inspect.ts';
import { readBundleKeys, TRUSTED_KEYS } from '../../bundle/flags.ts';
import { type CliContext, defineCommand, type ProofgateCommand } from '../../define-command.ts';
import type { JsonMembers } from '../../output.ts';
import type { SettingValues } from '../../settings.ts';

export function registerBundleInspect(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'inspect',
    summary: 'Show what a signed bundle says',
    positionals: { directory: 'where the bundle is' },
    settings: TRUSTED_KEYS,
    examples: [
      'proofgate bundle inspect bundle',
      'proofgate bundle inspect bundle --bundle-key signer.jwk.json --output json',
    ],
    run: ({ settings, positionals }) => inspect(positionals.directory, settings, context),
  });
}

async function inspect(
  directory: string,
  settings: SettingValues<typeof TRUSTED_KEYS>,
  { output }: CliContext,
): Promise<void> {
  const { inspectBundle } = await import('../../../bundle/inspect.ts');
  const { fromBundleError } = await import('../../bundle/errors.ts');
  const keys = await readBundleKeys(settings.bundleKeys);
  try {
    const summary = await inspectBundle({ directory, keys, nowSeconds: Math.floor(Date.now() / 1000) });
    output.result(linesOf(summary), membersOf(summary));
  } catch (error) {
    throw fromBundleError(error);
  }
}

function linesOf(summary: BundleSummary): readonly string[] {
  const { counts } = summary;
  return [
    `auth site      ${summary.authSite}`,
    `revision       ${summary.revision}`,
    `head           ${summary.head}`,
    `previous head  ${summary.previousHead ?? '-'}`,
    `issued at      ${summary.issuedAt}`,
    `expires at     ${summary.expiresAt}${summary.isExpired ? ' (expired)' : ''}`,
    `signed by      ${signerText(summary.signers)}`,
    `freshness      ${freshnessText(summary.freshness)}`,
    `verifiers      ${summary.singleVerifier ? 'one' : 'any number'}`,
    `origins        ${summary.origins.join(', ')}`,
    `holds          ${counts.routes} routes, ${counts.issuers} issuers, ${counts.clients} clients, ` +
      `${counts.derivedKeys} derived keys (${counts.revokedKeys} revoked)`,
    ...summary.routes.map(
      ({ routeId, method, pathTemplate, freshnessClass }) =>
        `route          ${routeId}: ${method} ${pathTemplate} (${freshnessClass})`,
    ),
  ];
}

const VERDICTS: { readonly [V in SignerSummary['verdict']]: string } = {
  holds: 'holds',
  does_not_hold: 'DOES NOT HOLD',
  unknown: 'not checked',
};

function signerText(signers: readonly SignerSummary[]): string {
  return signers
    .map(({ keyId, algorithm, verdict }) => `${keyId} (${algorithm}, ${VERDICTS[verdict]})`)
    .join(', ');
}

function freshnessText(freshness: FreshnessSummary | undefined): string {
  if (freshness === undefined) return '-';
  const { asOf, ageSeconds, fitsBundle, revision, signers } = freshness;
  const subject = fitsBundle ? 'this bundle' : `another bundle, revision ${revision},`;
  return `${subject} as of ${asOf}, ${ageSeconds} s ago, signed by ${signerText(signers)}`;
}

function membersOf(summary: BundleSummary): JsonMembers {
  const { counts, freshness } = summary;
  return {
    auth_site: summary.authSite,
    revision: summary.revision,
    head: summary.head,
    previous_head: summary.previousHead ?? null,
    issued_at: summary.issuedAt,
    expires_at: summary.expiresAt,
    expired: summary.isExpired,
    single_verifier: summary.singleVerifier,
    origins: summary.origins,
    signers: summary.signers.map(signerMembers),
    counts: {
      routes: counts.routes,
      issuers: counts.issuers,
      clients: counts.clients,
      derived_keys: counts.derivedKeys,
      revoked_keys: counts.revokedKeys,
    },
    freshness: freshness === undefined ? null : freshnessMembers(freshness),
    routes: summary.routes.map(({ routeId, method, pathTemplate, freshnessClass }) => ({
      route_id: routeId,
      method,
      path_template: pathTemplate,
      freshness_class: freshnessClass,
    })),
  };
}

function freshnessMembers({
  revision,
  asOf,
  ageSeconds,
  fitsBundle,
  signers,
}: FreshnessSummary): JsonMembers {
  return {
    revision,
    as_of: asOf,
    age_seconds: ageSeconds,
    fits_bundle: fitsBundle,
    signers: signers.map(signerMembers),
  };
}

function signerMembers({ keyId, algorithm, verdict }: SignerSummary): JsonMembers {
  return { kid: keyId, alg: algorithm, verdict };
}
