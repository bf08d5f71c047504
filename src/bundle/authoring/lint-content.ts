/**
 * Lints bundle content that is valid but questionable, before it is signed.
 * Source: docs/design/bundle.md "What lint looks for".
 */

import { parseTime } from '../../protocol/rfc3339.ts';
import { compileBundle } from '../compile/compile.ts';
import { compileBlocked } from '../compile/compile-blocked.ts';
import { acceptsDpop } from '../compile/compile-dpop.ts';
import { compileClient, compileIssuers } from '../compile/compile-identities.ts';
import { compileRoutes } from '../compile/compile-routes.ts';
import { Faults, pointer, showValue } from '../format/bundle-error.ts';
import { headOf } from '../format/chain.ts';
import type { BundleContent, RouteContent } from '../format/schema.ts';
import { asContent } from '../format/shape.ts';
import { completeDraft } from './authoring.ts';
import { type Finding, notice, warning } from './findings.ts';
import { lintReachability } from './lint-reachability.ts';
import { lintShadowing } from './lint-shadowing.ts';
import { lintTransit } from './lint-transit.ts';
import { readBundleYaml } from './yaml-source.ts';

const LONG_STALENESS_SECONDS = 3600;
const LONG_LIFETIME_SECONDS = 90 * 24 * 3600;

interface LintYamlOptions {
  readonly yamlText: string;
  /** Name of the YAML file, for errors. */
  readonly fileName: string;
  /** Used as `issued_at`. Whole seconds since the epoch. */
  readonly nowSeconds: number;
}

/**
 * Reads an author's file in the same way as signing, and lints it.
 * @throws BundleError with every fault that prevents signing
 */
export async function lintBundleYaml(options: LintYamlOptions): Promise<readonly Finding[]> {
  const { yamlText, fileName: file, nowSeconds } = options;
  const draft = completeDraft(readBundleYaml(yamlText, file), { file, nowSeconds, previous: undefined });
  const content = asContent('bundle', draft.content, file);
  const head = headOf(undefined, Buffer.from(JSON.stringify(content))) ?? '';
  const shards = new Map(draft.shards.map(({ entry, bytes }) => [entry.file, bytes]));
  await compileBundle(content, {
    file,
    head,
    readShard: async (name) => shards.get(name) ?? Buffer.alloc(0),
    isBeingWritten: true,
  });
  return lintBundle(content);
}

/** @param content valid for {@link compileBundle} */
export function lintBundle(content: BundleContent): readonly Finding[] {
  const faults = new Faults('bundle');
  const routes = compileRoutes(content, new Set(content.origins), faults);
  compileIssuers(content, faults);
  compileBlocked(content, faults);
  for (const [index, client] of (content.clients ?? []).entries()) {
    compileClient(client, pointer('clients', index), faults);
  }
  return [
    ...lintSite(content),
    ...faults.warnings.map(({ path, text }) => warning('subject_not_canonical', path, text)),
    ...content.routes.flatMap((route, index) => lintRoute(route, pointer('routes', index))),
    ...lintShadowing(content, routes),
    ...lintReachability(content),
  ];
}

function lintSite(content: BundleContent): readonly Finding[] {
  const findings: Finding[] = [];
  const lifetimeSeconds = (parseTime(content.expires_at) ?? 0) - (parseTime(content.issued_at) ?? 0);
  if (lifetimeSeconds > LONG_LIFETIME_SECONDS) {
    findings.push(notice('lifetime_long', '/expires_at', 'more than 90 days after issued_at'));
  }
  if (content.unmatched !== undefined) {
    const text = 'requests that no route matches reach the upstream, until';
    findings.push(
      lintObservation('unmatched_observed', '/unmatched', text, content.unmatched_until, content),
    );
  }
  for (const [index, { enforcement, observe_until, route_id }] of content.routes.entries()) {
    if (enforcement === undefined) continue;
    const text = `${showValue(route_id)}: requests without a valid proof reach the upstream, until`;
    const path = pointer('routes', index, 'enforcement');
    findings.push(lintObservation('route_observed', path, text, observe_until, content));
  }
  for (const [index, origin] of content.origins.entries()) {
    if (origin.startsWith('https://')) continue;
    const text = `${showValue(origin)}: passports and proofs cross the network in the clear`;
    findings.push(warning('origin_not_https', pointer('origins', index), text));
  }
  for (const [index, issuer] of (content.issuers ?? []).entries()) {
    if (!issuer.subject_prefixes.includes('')) continue;
    const text = `the keys of ${showValue(issuer.issuer)} may speak for any subject`;
    findings.push(warning('issuer_speaks_for_anyone', pointer('issuers', index, 'subject_prefixes'), text));
  }
  return findings;
}

function lintObservation(
  code: 'route_observed' | 'unmatched_observed',
  path: string,
  text: string,
  until: string | undefined,
  { issued_at: issuedAt }: BundleContent,
): Finding {
  const isOver = (parseTime(until ?? '') ?? 0) <= (parseTime(issuedAt) ?? 0);
  if (isOver) return warning('observation_over', path, `ended ${until ?? ''}: remove it, this is enforced`);
  return warning(code, path, `${text} ${until ?? ''}, where the verifier allows it (--allow-observe)`);
}

function lintRoute(route: RouteContent, path: string): readonly Finding[] {
  const findings: Finding[] = [];
  const name = showValue(route.route_id);
  if (route.body === 'unbound') {
    findings.push(warning('body_unbound', `${path}/body`, `${name}: the proof does not cover the body`));
  }
  if (acceptsDpop(route)) {
    const text = `${name}: a DPoP proof does not cover ${(route.unbound ?? []).join(', ')}`;
    findings.push(warning('dpop_unbound', `${path}/unbound`, text));
  }
  if (route.oauth_revocation !== undefined) {
    const text = `${name}: an access token counts until it expires, whatever was revoked`;
    findings.push(warning('oauth_revocation', `${path}/oauth_revocation`, text));
  }
  if (route.forward_authorization === true) {
    const text = `${name}: the upstream receives the passport`;
    findings.push(warning('forward_authorization', `${path}/forward_authorization`, text));
  }
  if (route.freshness_class !== 'bounded' && route.freshness_class !== 'realtime') {
    const text = `${name}: every request is denied, ${showValue(route.freshness_class)} is not known`;
    findings.push(warning('freshness_class_unknown', `${path}/freshness_class`, text));
  }
  if (route.freshness_class === 'realtime' && route.max_staleness_seconds !== undefined) {
    const seconds = `${route.max_staleness_seconds} s`;
    const text = `${name}: the smaller one counts, this (${seconds}) or the verifier's --realtime-staleness (default 10 s)`;
    findings.push(notice('staleness_of_realtime', `${path}/max_staleness_seconds`, text));
  } else if ((route.max_staleness_seconds ?? 0) > LONG_STALENESS_SECONDS) {
    const text = `${name}: a revocation may take more than an hour`;
    findings.push(notice('staleness_long', `${path}/max_staleness_seconds`, text));
  }
  if (route.method !== route.method.toUpperCase()) {
    const text = `${name}: methods are compared exactly, and ${showValue(route.method)} is not upper case`;
    findings.push(warning('method_not_upper_case', `${path}/method`, text));
  }
  return [...findings, ...lintTransit(route, path)];
}
