/** Rules for settings of Traefik that weaken the check or bypass it. The facts are in docs/operate/forward-auth.md. */

import { PROOF_FIELDS } from '../../../protocol/wire-names.ts';
import type { Rule } from '../gateway/gateway.ts';
import { asksForAllProofs, CONTEXT_HEADERS } from '../gateway/header-names.ts';
import type { View } from '../gateway/view.ts';
import { at, isCheck, member, type Router, type Step, type TraefikConfiguration } from './configuration.ts';
import { DELIVERY_RULES } from './delivery-rules.ts';

type TraefikRule = Rule<TraefikConfiguration>;

const isUnless = (view: View | undefined, wanted: boolean) => view?.flag !== wanted;

/** The bad settings of ForwardAuth: a member, or the check if the member is missing. */
const settingOf = (check: View, name: string) => member(check, name) ?? check;

/** Routers with a matching chain that has the check. */
function checkedRouters(
  { routers }: TraefikConfiguration,
  fits: (chain: readonly Step[], router: Router) => boolean,
): readonly View[] {
  return routers
    .filter((router) => router.chains.some((chain) => chain.some(isCheck) && fits(chain, router)))
    .map(({ view }) => view);
}

const CHECK_RULES: readonly TraefikRule[] = [
  {
    id: 'forward-header-trusted',
    severity: 'error',
    effect: 'leaves X-Forwarded headers of callers in the check: they can name another method and target',
    fix: 'forwardAuth.trustForwardHeader: false',
    find: ({ checks }) =>
      checks
        .filter((check) => isUnless(member(check, 'trustForwardHeader'), false))
        .map((check) => settingOf(check, 'trustForwardHeader')),
  },
  {
    id: 'headers-hidden',
    severity: 'error',
    effect: 'hides headers from the verifier, which then cannot deny those that the API must not get',
    fix: 'remove forwardAuth.authRequestHeaders',
    find: ({ checks }) => checks.flatMap((check) => member(check, 'authRequestHeaders') ?? []),
  },
  {
    id: 'answer-not-copied',
    severity: 'error',
    effect:
      "leaves a caller's passport, proof or X-Proofgate headers for the API, or keeps the verifier's from it",
    fix: 'forwardAuth.authResponseHeadersRegex: (?i)^(authorization|signature|signature-input|dpop|x[^a-z0-9]proofgate[^a-z0-9].*)$',
    find: ({ checks }) =>
      checks
        .filter((check) => !copiesAnswer(check))
        .map((check) => settingOf(check, 'authResponseHeadersRegex')),
  },
  {
    id: 'body-not-forwarded',
    severity: 'warning',
    effect: 'hides bodies from the verifier: only routes with `body: unbound` are allowed',
    fix: 'forwardAuth.forwardBody: true, and --http-body forwarded for the verifier',
    find: ({ checks }) =>
      checks
        .filter((check) => isUnless(member(check, 'forwardBody'), true))
        .map((check) => settingOf(check, 'forwardBody')),
  },
  {
    id: 'body-unlimited',
    severity: 'warning',
    effect: 'keeps bodies of any size in memory',
    fix: 'forwardAuth.maxBodySize: 1048576',
    find: ({ checks }) =>
      checks
        .filter(
          (check) =>
            member(check, 'forwardBody')?.flag === true &&
            !((member(check, 'maxBodySize')?.number ?? -1) >= 0),
        )
        .map((check) => settingOf(check, 'maxBodySize')),
  },
  {
    id: 'verifier-plaintext',
    severity: 'error',
    effect: 'sends passports over a network in plain text, and trusts any server that answers',
    fix: 'forwardAuth.address: https://…, with tls.ca, tls.cert and tls.key; or a verifier on 127.0.0.1',
    find: ({ checks }) => checks.flatMap((check) => (isExposed(check) ? [settingOf(check, 'address')] : [])),
  },
];

/** Headers of callers that are removed in every spelling and set from the verifier's answer. */
const COPIED = [
  'Authorization',
  'X-Proofgate-Passport',
  'X-Proofgate-Transcript',
  'X-Proofgate-Signature',
  ...CONTEXT_HEADERS.map(canonical),
];

function copiesAnswer(check: View): boolean {
  const listed = new Set(
    member(check, 'authResponseHeaders')
      ?.items()
      .map(({ text = '' }) => canonical(text)),
  );
  const pattern = goPattern(member(check, 'authResponseHeadersRegex')?.text ?? '');
  const proofs = asksForAllProofs(member(check, 'address')?.text ?? '') ? PROOF_FIELDS.map(canonical) : [];
  return [...COPIED, ...proofs].every((name) => listed.has(name) || pattern?.test(name) === true);
}

/** The header name in Go's spelling, to which Traefik applies the pattern. */
function canonical(name: string): string {
  return name.toLowerCase().replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase());
}

/** Undefined for an empty one, or one that cannot be read here. */
function goPattern(text: string): RegExp | undefined {
  const isCaseless = text.startsWith('(?i)');
  const source = isCaseless ? text.slice('(?i)'.length) : text;
  try {
    return source === '' ? undefined : new RegExp(source, isCaseless ? 'i' : '');
  } catch {
    return undefined;
  }
}

const LOOPBACK = /^http:\/\/(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])(?::\d+)?(?:\/|$)/i;

function isExposed(check: View): boolean {
  const address = member(check, 'address')?.text ?? '';
  const isVerified = at(check, 'tls', 'insecureSkipVerify')?.flag !== true;
  return !LOOPBACK.test(address) && !(/^https:/i.test(address) && isVerified);
}

const ENTRY_POINT_RULES: readonly TraefikRule[] = [
  {
    id: 'forwarded-headers-insecure',
    severity: 'error',
    effect: 'believes the X-Forwarded headers of every caller',
    fix: 'entryPoints.….forwardedHeaders.insecure: false, and no network /0 in trustedIPs',
    find: ({ entryPoints }) =>
      entryPoints.flatMap((one) => {
        const insecure = at(one, 'forwardedHeaders', 'insecure');
        const everybody = at(one, 'forwardedHeaders', 'trustedIPs')
          ?.items()
          .filter(({ text = '' }) => /\/0$/.test(text));
        return [
          ...(insecure !== undefined && isUnless(insecure, false) ? [insecure] : []),
          ...(everybody ?? []),
        ];
      }),
  },
  {
    id: 'aliases-kept',
    severity: 'error',
    effect:
      'forwards X_Forwarded_Uri, X.Proofgate.Subject and the like, which some APIs read as the names with hyphens',
    fix: 'entryPoints.….http.aliasHeadersStrategy: reject (Traefik 3.7)',
    find: ({ entryPoints }) =>
      entryPoints.flatMap((one) => {
        const strategy = at(one, 'http', 'aliasHeadersStrategy');
        return /^(?:reject|delete)$/.test(strategy?.text ?? '') ? [] : [strategy ?? one];
      }),
  },
  {
    id: 'escaped-slashes',
    severity: 'warning',
    effect: 'forwards encoded slashes and backslashes, which some APIs decode to other paths',
    fix: 'entryPoints.….http.encodedCharacters: { allowEncodedSlash: false, allowEncodedBackSlash: false }',
    find: ({ entryPoints }) =>
      entryPoints.flatMap((one) => {
        const allowed = at(one, 'http', 'encodedCharacters');
        const names = ['allowEncodedSlash', 'allowEncodedBackSlash'];
        return allowed && names.every((name) => member(allowed, name)?.flag === false)
          ? []
          : [allowed ?? one];
      }),
  },
  {
    id: 'path-not-normalized',
    severity: 'warning',
    effect:
      'compares rules of routers with paths that have dot segments: a request may take a router without the check',
    fix: 'entryPoints.….http.sanitizePath: true, or leave it out',
    find: ({ entryPoints }) =>
      entryPoints.flatMap((one) => {
        const sanitize = at(one, 'http', 'sanitizePath');
        return sanitize !== undefined && isUnless(sanitize, true) ? [sanitize] : [];
      }),
  },
  {
    id: 'credentials-logged',
    severity: 'error',
    effect: 'writes passports to the access log',
    fix: 'accessLog.fields.headers.defaultMode: drop, without names for Authorization and X-Proofgate-*',
    find: ({ documents }) =>
      documents.flatMap((view) => loggedCredentials(at(view, 'accessLog', 'fields', 'headers'))),
  },
];

function loggedCredentials(headers: View | undefined): readonly View[] {
  if (headers === undefined) return [];
  const isKept = (view: View | undefined) => view?.text?.toLowerCase() === 'keep';
  const names = member(headers, 'names')?.members() ?? [];
  const credentials = names.filter(
    ({ name, view }) => /^(?:authorization|x-proofgate-.*)$/i.test(name) && isKept(view),
  );
  const mode = member(headers, 'defaultMode');
  return [...(mode !== undefined && isKept(mode) ? [mode] : []), ...credentials.map(({ view }) => view)];
}

const ROUTER_RULES: readonly TraefikRule[] = [
  {
    id: 'route-unchecked',
    severity: 'error',
    effect: 'forwards requests that no verifier has checked',
    fix: 'put the check into entryPoints.….http.middlewares, or into middlewares of the router',
    find: ({ routers }) =>
      routers.filter(({ chains }) => !chains.every((chain) => chain.some(isCheck))).map(({ view }) => view),
  },
  {
    id: 'tcp-router',
    severity: 'error',
    effect: 'forwards bytes that no HTTP middleware sees, past the check',
    fix: 'remove the router from `tcp`, or give it an entry point and an API of its own and allow it here',
    find: ({ documents }) =>
      documents.flatMap(
        (view) =>
          at(view, 'tcp', 'routers')
            ?.members()
            .map((one) => one.view) ?? [],
      ),
  },
  {
    id: 'checked-twice',
    severity: 'error',
    effect: 'asks a second time: the first check used the proof, so every request is denied',
    fix: 'leave the check either to the entry point or to the router',
    find: (traefik) => checkedRouters(traefik, (chain) => chain.filter(isCheck).length > 1),
  },
  {
    id: 'change-before-check',
    severity: 'error',
    effect:
      'checks another request than the caller sent: requests to two services can become alike, and one proof passes for either',
    fix: 'no stripPrefix, replacePath, addPrefix or headers.customRequestHeaders in front of the check: the API serves the paths that callers sign',
    find: (traefik) => checkedRouters(traefik, isChangedBefore),
  },
  {
    id: 'change-behind-check',
    severity: 'error',
    effect: 'changes or repeats a request after the check: the API gets another one than was verified',
    fix: 'remove middlewares that change path, headers or method behind the check, and `retry` everywhere',
    find: (traefik) => checkedRouters(traefik, (chain) => isChanged(chain)),
  },
  {
    id: 'upgrades-allowed',
    severity: 'error',
    effect: 'forwards upgrades, which ForwardAuth hides from the verifier: what follows one is unchecked',
    fix: 'a middleware headers.customRequestHeaders with Upgrade: "" beside the check',
    find: (traefik) => checkedRouters(traefik, (chain) => !chain.some(removesUpgrade)),
  },
  {
    id: 'host-open',
    severity: 'error',
    effect: 'accepts hosts that the verifier takes for its --external-origin',
    fix: 'rule: Host(`HOST`) && Header(`X-Forwarded-Host`, `HOST`)',
    find: (traefik) =>
      checkedRouters(traefik, (_, { view }) => !EXACT_HOST.test(member(view, 'rule')?.text ?? '')),
  },
];

/** Matches a condition that only `&&` joins to the rest of the rule. */
const EXACT_HOST = /^(?:(?!\|\||!).)*Header\(`X-Forwarded-Host`, ?`[^`]+`\)(?:(?!\|\|).)*$/is;

const REWRITING = /^(?:addprefix|replacepath|replacepathregex|stripprefix|stripprefixregex)$/;
const CHANGING = new RegExp(`${REWRITING.source}|^plugin$`);

/** A header that is removed is missing for the verifier as well. */
function isChangedBefore(chain: readonly Step[]): boolean {
  const writesHeader = ({ kind, settings }: Step) =>
    kind === 'headers' &&
    (member(settings, 'customRequestHeaders')?.members() ?? []).some(({ view }) => view.text !== '');
  return chain
    .slice(0, chain.findIndex(isCheck))
    .some((step) => REWRITING.test(step.kind) || writesHeader(step));
}

function isChanged(chain: readonly Step[]): boolean {
  const behind = chain.slice(chain.findIndex(isCheck) + 1);
  const setsHeaders = ({ kind, settings }: Step) =>
    kind === 'headers' && member(settings, 'customRequestHeaders') !== undefined;
  return (
    chain.some(({ kind }) => kind === 'retry') ||
    behind.some((step) => CHANGING.test(step.kind) || (setsHeaders(step) && !removesUpgradeAlone(step)))
  );
}

function removesUpgrade({ kind, settings }: Step): boolean {
  if (kind !== 'headers') return false;
  const header = at(settings, 'customRequestHeaders', 'Upgrade');
  return header?.text === '';
}

function removesUpgradeAlone(step: Step): boolean {
  return removesUpgrade(step) && member(step.settings, 'customRequestHeaders')?.members().length === 1;
}

/** In the order of docs/operate/gateway-lint.md. */
export const TRAEFIK_RULES: readonly TraefikRule[] = [
  ...CHECK_RULES,
  ...ENTRY_POINT_RULES,
  ...ROUTER_RULES,
  ...DELIVERY_RULES,
];
