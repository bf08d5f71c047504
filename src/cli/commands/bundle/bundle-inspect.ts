/** `proofgate bundle inspect`: shows the bundle in a directory. */
import type {
  BundleSummary,
  FreshnessSummary,
  SignerSummary,
  StepSummary,
} from '../../../bundle/authoring/inspect-directory.ts';
import type { JsonMembers } from '../../../process/program/output.ts';
import { visibleText } from '../../../process/program/visible-text.ts';
import type { SettingValues } from '../../../process/settings/settings.ts';
import { readTrustedSigners, TRUSTED_SIGNERS } from '../../bundle/bundle-flags.ts';
import { type CliContext, command } from '../../define/define-command.ts';

export const bundleInspectCommand = command({
  name: 'inspect',
  summary: 'Show the contents of a signed bundle',
  positionals: { directory: "where the bundle is, or a verifier's state directory" },
  settings: TRUSTED_SIGNERS,
  examples: [
    'proofgate bundle inspect bundle',
    'proofgate bundle inspect bundle --bundle-key signer.jwk.json --output json',
  ],
  run: ({ settings, positionals }, context) => inspect(positionals.directory, settings, context),
});

async function inspect(
  directory: string,
  settings: SettingValues<typeof TRUSTED_SIGNERS>,
  { output }: CliContext,
): Promise<void> {
  const { inspectBundle } = await import('../../../bundle/authoring/inspect-directory.ts');
  const signers = await readTrustedSigners(settings);
  const summary = await inspectBundle({ directory, signers, nowSeconds: Math.floor(Date.now() / 1000) });
  output.result(linesOf(summary).map(visibleText), membersOf(summary));
  const problem = summary.signatureProblem ?? summary.chainProblem;
  if (problem !== undefined) throw problem;
}

function linesOf(summary: BundleSummary): readonly string[] {
  const { counts } = summary;
  return [
    `auth site      ${summary.authSite}`,
    `revision       ${summary.revision}`,
    `head           ${summary.head}`,
    `previous head  ${summary.previousHead ?? '-'}`,
    `whole bundle   ${baseText(summary)}`,
    `issued at      ${summary.issuedAt}`,
    `expires at     ${summary.expiresAt}${summary.isExpired ? ' (expired)' : ''}`,
    `signed by      ${signerText(summary.signers)}`,
    `freshness      ${freshnessText(summary.freshness)}`,
    `verifiers      ${summary.singleVerifier ? 'one' : 'any number'}`,
    `origins        ${summary.origins.join(', ')}`,
    `holds          ${counts.routes} routes, ${counts.issuers} issuers, ${counts.oauthIssuers} OAuth issuers, ${counts.clients} clients, ` +
      `${counts.derivedKeys} derived keys (${counts.revokedKeys} revoked)`,
    ...summary.routes.map(
      ({ routeId, method, pathTemplate, freshnessClass }) =>
        `route          ${routeId}: ${method} ${pathTemplate} (${freshnessClass})`,
    ),
  ];
}

/** The base revision of the chain and the number of its deltas and links. */
function baseText({ base, steps }: BundleSummary): string {
  if (steps.length === 0) return `revision ${base.revision}`;
  const verdicts = new Set(steps.flatMap(({ signers }) => signers.map(({ verdict }) => VERDICTS[verdict])));
  const deltas = steps.filter(({ kind }) => kind === 'delta').length;
  const parts = `${deltas} deltas and ${steps.length - deltas} links`;
  return `revision ${base.revision}, updated by ${parts} (${[...verdicts].join(', ')})`;
}

const VERDICTS: { readonly [V in SignerSummary['verdict']]: string } = {
  valid: 'valid',
  invalid: 'INVALID',
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
    base: { revision: summary.base.revision, head: summary.base.head },
    steps: summary.steps.map(stepMembers),
    chain_problem: summary.chainProblem?.code ?? null,
    signature_problem: summary.signatureProblem?.code ?? null,
    issued_at: summary.issuedAt,
    expires_at: summary.expiresAt,
    expired: summary.isExpired,
    single_verifier: summary.singleVerifier,
    origins: summary.origins,
    signers: summary.signers.map(signerMembers),
    counts: {
      routes: counts.routes,
      issuers: counts.issuers,
      oauth_issuers: counts.oauthIssuers,
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

function stepMembers({ head, kind, revision, signers }: StepSummary): JsonMembers {
  return { kind, revision, head, signers: signers.map(signerMembers) };
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
