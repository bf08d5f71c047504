/** Settings of Caddy that weaken the check or bypass it. The facts are in docs/operate/forward-auth.md. */

import { PROOF_FIELDS } from '../../../protocol/wire-names.ts';
import type { Rule } from '../gateway/gateway.ts';
import { asksForAllProofs, CONTEXT_HEADERS } from '../gateway/header-names.ts';
import { everyMapping, type View } from '../gateway/view.ts';
import { type Caddy, type Chain, isCheck, isForwarding, isUnknown, type Step } from './configuration.ts';

/** Chains of requests that reach the API. */
const forwarded = ({ chains }: Caddy) => chains.filter((chain) => chain.some(isForwarding));
const checked = (caddy: Caddy) => forwarded(caddy).filter((chain) => checkAt(chain) >= 0);

/** A check that only some requests reach does not count. */
function checkAt(chain: Chain): number {
  return chain.findIndex((step) => isCheck(step) && step.condition === undefined);
}

const before = (chain: Chain) => chain.slice(0, checkAt(chain));
/** The steps after the check, up to the API. */
const behind = (chain: Chain) => chain.slice(checkAt(chain) + 1, chain.findIndex(isForwarding) + 1);

/** Includes handlers that `intercept` runs. */
function everyStep(chains: readonly Chain[]): readonly Step[] {
  return chains.flat().flatMap((step) => [step, ...everyStep(step.onAnswer)]);
}

const viewsOf = (steps: readonly Step[]) => steps.map(({ view }) => view);

/** Names that `headers` writes into requests; removing a header does not count. */
function written(request: View | undefined): readonly string[] {
  return ['set', 'add', 'replace']
    .flatMap((name) => request?.get(name)?.members() ?? [])
    .map(({ name }) => name);
}

/** Whether it writes only values from the verifier's answer, like copy_headers. */
function copiesAnswer({ kind, view }: Step): boolean {
  const request = view.get('request');
  const values = (request?.get('set')?.members() ?? []).flatMap((one) => one.view.items());
  return (
    kind === 'headers' &&
    request?.get('add') === undefined &&
    request?.get('replace') === undefined &&
    values.every(({ text = '' }) => /^\{http\.reverse_proxy\.header\.[^{}]+\}$/.test(text))
  );
}

function removed(request: View | undefined): readonly string[] {
  return (request?.list('delete') ?? []).flatMap(({ text }) => text?.toLowerCase() ?? []);
}

/** Whether the step changes method, target or body, or writes a header. */
function changes({ kind, view }: Step): boolean {
  if (kind === 'rewrite') return true;
  if (kind === 'request_body') return view.get('set') !== undefined;
  return kind === 'headers' && written(view.get('request')).length > 0;
}

/** Headers that a proxy may write about the connection. */
const OF_PROXY = /^(?:host|connection|x-forwarded-(?:for|host|proto|port)|x-real-ip|forwarded|via)$/i;

function changesAsProxy({ view }: Step): boolean {
  const names = written(view.at('headers', 'request'));
  return view.get('rewrite') !== undefined || names.some((name) => !OF_PROXY.test(name));
}

function isRepeated({ view }: Step): boolean {
  const balancing = view.get('load_balancing');
  const isSet = (name: string) =>
    !/^0?$/.test(String(balancing?.get(name)?.text ?? balancing?.get(name)?.number ?? ''));
  return isSet('retries') || isSet('try_duration');
}

/** Whether a connection is reused, or may be HTTP/2, whose streams a server may refuse. */
function reusesConnections({ view }: Step): boolean {
  const transport = view.get('transport');
  const versions = transport?.list('versions').flatMap(({ number, text }) => text ?? String(number));
  return transport?.at('keep_alive', 'enabled')?.flag !== false || versions?.join() !== '1.1';
}

const CREDENTIALS = ['x-proofgate-passport', 'x-proofgate-transcript', 'x-proofgate-signature'];

/** Whether the chain removes a caller's own credentials and context headers. */
function replacesHeaders(chain: Chain): boolean {
  const requests = viewsOf(
    behind(chain).filter(({ condition, kind }) => kind === 'headers' && condition === undefined),
  ).map((one) => one.get('request'));
  const gone = new Set([
    ...requests.flatMap(removed),
    ...behind(chain)
      .filter(isForwarding)
      .flatMap(({ view }) => removed(view.at('headers', 'request'))),
  ]);
  const checkUri = chain[checkAt(chain)]?.view.at('rewrite', 'uri')?.text ?? '';
  const proofs = asksForAllProofs(checkUri) ? PROOF_FIELDS : [];
  return ['authorization', ...CREDENTIALS, ...proofs, ...CONTEXT_HEADERS].every((name) => gone.has(name));
}

function refusesSpaces({ condition, kind }: Step): boolean {
  return (
    kind === 'static_response' &&
    condition !== undefined &&
    everyMapping([condition]).some((one) =>
      /\{http\.request\.orig_uri\}\.matches\(/.test(one.get('expr')?.text ?? ''),
    )
  );
}

function dropsConnection({ condition, kind, view }: Step): boolean {
  return kind === 'headers' && condition === undefined && removed(view.get('request')).includes('connection');
}

const api = (chain: Chain) => chain.filter(isForwarding);
const CACHE = /cache|souin/;

export const CADDY_RULES: readonly Rule<Caddy>[] = [
  {
    id: 'route-unchecked',
    severity: 'error',
    effect: 'forwards requests that no verifier has checked',
    fix: 'forward_auth in front of reverse_proxy, in one `route`, without a matcher of its own',
    find: (caddy) => [
      ...forwarded(caddy)
        .filter((chain) => checkAt(chain) < 0)
        .flatMap((chain) => viewsOf(api(chain))),
      ...viewsOf(everyStep(caddy.chains).flatMap(({ onAnswer }) => onAnswer.flat().filter(isForwarding))),
    ],
  },
  {
    id: 'handler-unknown',
    severity: 'error',
    effect:
      'may forward a request unchecked, or change it: this handler is not known, or behind too many branches',
    fix: 'no handler of a plugin, or --allow handler-unknown after reading what it does',
    find: ({ chains }) => viewsOf(everyStep(chains).filter(isUnknown)),
  },
  {
    id: 'change-before-check',
    severity: 'error',
    effect:
      'checks another request than the caller sent: requests to two services can become alike, and one proof passes for either',
    fix: 'no uri, rewrite, handle_path, method or request_header that writes in front of forward_auth',
    find: (caddy) => checked(caddy).flatMap((chain) => viewsOf(before(chain).filter(changes))),
  },
  {
    id: 'change-behind-check',
    severity: 'error',
    effect: 'changes a request after the check: the API gets another one than was verified',
    fix: 'no uri, rewrite, method or request_header that writes behind forward_auth; header_up for Host and X-Forwarded-… only',
    find: (caddy) =>
      checked(caddy).flatMap((chain) => [
        ...viewsOf(behind(chain).filter((step) => changes(step) && !copiesAnswer(step))),
        ...viewsOf(api(chain).filter(changesAsProxy)),
      ]),
  },
  {
    id: 'upstream-retried',
    severity: 'error',
    effect: 'may send one checked request, or one check, twice',
    fix: 'reverse_proxy with transport http { keepalive off, versions 1.1 }; no lb_retries, lb_try_duration and second reverse_proxy there, nor retries in forward_auth',
    find: (caddy) =>
      checked(caddy).flatMap((chain) => [
        ...viewsOf(chain.filter((step) => isCheck(step) && isRepeated(step))),
        ...viewsOf(api(chain).filter((step) => isRepeated(step) || reusesConnections(step))),
        ...viewsOf(api(chain).slice(1)),
      ]),
  },
  {
    id: 'checked-twice',
    severity: 'error',
    effect: 'asks a second time: the first check used the proof, so every request is denied',
    fix: 'one forward_auth for each request',
    find: (caddy) => checked(caddy).flatMap((chain) => viewsOf(chain.filter(isCheck).slice(1))),
  },
  {
    id: 'headers-not-replaced',
    severity: 'error',
    effect: "lets a caller's passport, proof or own identity headers reach the API",
    fix: 'each name of copy_headers in deploy/caddy/Caddyfile, and request_header -X-Proofgate-Passport, -Transcript and -Signature behind it',
    find: (caddy) =>
      checked(caddy)
        .filter((chain) => !replacesHeaders(chain))
        .flatMap((chain) => viewsOf(chain.slice(checkAt(chain), checkAt(chain) + 1))),
  },
  {
    id: 'connection-kept',
    severity: 'error',
    effect: "removes the headers that a caller's Connection names: also those that the check has added",
    fix: 'request_header -Connection, in front of forward_auth',
    find: (caddy) =>
      checked(caddy)
        .filter((chain) => !before(chain).some(dropsConnection))
        .flatMap((chain) => viewsOf(chain.slice(checkAt(chain), checkAt(chain) + 1))),
  },
  {
    id: 'target-spaces',
    severity: 'error',
    effect: 'asks about a target without the spaces at its end, which the API gets',
    fix: 'respond @target 400 of deploy/caddy/Caddyfile, in front of forward_auth',
    find: (caddy) =>
      checked(caddy)
        .filter((chain) => !before(chain).some(refusesSpaces))
        .flatMap((chain) => viewsOf(chain.slice(checkAt(chain), checkAt(chain) + 1))),
  },
  {
    id: 'answer-cached',
    severity: 'error',
    effect: 'answers without the API, with what it answered to another caller',
    fix: 'no cache where the check is',
    find: (caddy) => checked(caddy).flatMap((chain) => viewsOf(chain.filter(({ kind }) => CACHE.test(kind)))),
  },
  {
    id: 'forwarded-headers-trusted',
    severity: 'error',
    effect: 'takes X-Forwarded headers over from callers in these networks',
    fix: 'no trusted_proxies',
    find: ({ chains, servers }) => [
      ...servers.flatMap((server) => server.get('trusted_proxies') ?? []),
      ...chains.flat().flatMap(({ view }) => view.get('trusted_proxies') ?? []),
    ],
  },
];
