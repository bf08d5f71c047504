/** The subject of a run against a deployment: a key, its signing profile, and the routes that the user names. */

import { matchTemplates, type ProfileChoice, selectProfile } from '../../caller/profiles/select-profile.ts';
import { parseRequestUrl, type RequestUrl } from '../../caller/request-url.ts';
import {
  checkAuthorization,
  type RequestHeader,
  selectSignedHeaders,
} from '../../caller/sign/request-headers.ts';
import { ClientError } from '../../protocol/client-error.ts';
import { parsePassport } from '../../protocol/passport.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { RouteProfile, SigningCoordinates, SigningProfiles } from '../../protocol/signing-profile.ts';
import type { SignedHeader } from '../../protocol/transcript.ts';
import type { Subject } from './wire/conformance-case.ts';
import type { HeaderLine } from './wire/exchange.ts';
import { signDpopRequest, signHttpRequest } from './wire/sign-standard-request.ts';
import {
  signWireRequest,
  type WireCaller,
  type WireChanges,
  type WireTarget,
} from './wire/sign-wire-request.ts';

export interface SubjectOptions {
  readonly profiles: SigningProfiles;
  readonly choice: ProfileChoice;
  readonly holderKey: SigningKey;
  /** Compact JWS from a broker; undefined when the holder key signs its own passports. */
  readonly brokerPassport: string | undefined;
  readonly method: string;
  readonly url: string;
  /** Route whose method has a body. */
  readonly write: { readonly method: string; readonly url: string } | undefined;
  /** Headers of every request. */
  readonly headers: readonly RequestHeader[];
  /** The server's nonce for DPoP proofs, where it gave one. */
  readonly dpopNonce?: () => string | undefined;
}

export interface DeploymentSubject {
  readonly subject: Subject;
  readonly url: RequestUrl;
}

interface Route {
  readonly target: WireTarget;
  readonly profile: RouteProfile;
  readonly signedHeaders: readonly SignedHeader[];
  readonly otherHeaders: readonly HeaderLine[];
}

/** @throws ClientError with a code for unsuitable input; `target_unsuitable` */
export function subjectOfDeployment(options: SubjectOptions): DeploymentSubject {
  const { choice, method, write } = options;
  const url = parseRequestUrl(options.url);
  requireSegment(url);
  const read = routeOf(options, method, url, choice);
  const writeUrl = write && parseRequestUrl(write.url);
  if (writeUrl && writeUrl.origin !== url.origin) {
    throw new ClientError('target_unsuitable', 'target and write target must have the same origin');
  }
  const writing = write && writeUrl && routeOf(options, write.method, writeUrl, { kind: 'only_fit' });
  const caller = callerOf(options);
  const required = () => {
    if (writing === undefined) throw new Error('a case needs the route with a body');
    return writing;
  };
  const subject: Subject = {
    passportHeader: read.profile.passportHeader,
    method,
    scheme: url.scheme,
    authority: url.authority,
    target: url.target,
    isOfRoute: (path) => matchTemplates([read.profile], path).length > 0,
    sign: (changes) => signWireRequest(caller, ...signedAt(read, changes)),
    signWrite: (changes) => signWireRequest(caller, ...signedAt(required(), changes)),
    signHttp: (changes) => signHttpRequest(caller, ...signedAt(read, changes)),
    signHttpWrite: (changes) => signHttpRequest(caller, ...signedAt(required(), changes)),
    signDpop: (changes) => {
      const proof = { nonce: options.dpopNonce?.(), ...changes?.proof };
      return signDpopRequest(caller, ...signedAt(read, { ...changes, proof }));
    },
  };
  return { subject, url };
}

type Changed = Pick<WireChanges, 'signedHeaders' | 'otherHeaders'> & { readonly target?: string };

function signedAt<C extends Changed>(
  { otherHeaders, signedHeaders, target }: Route,
  changes: C | undefined,
): [target: WireTarget, changes: C | Changed] {
  return [
    { ...target, target: changes?.target ?? target.target },
    {
      ...changes,
      signedHeaders: merged(signedHeaders, changes?.signedHeaders ?? []),
      otherHeaders: [...otherHeaders, ...(changes?.otherHeaders ?? [])],
    },
  ];
}

/** Cases change the last segment of the path. */
/** @throws ClientError `target_unsuitable` */
export function requireSegment({ target }: RequestUrl): void {
  if (/^\/(?:[^?]*\/)?[^/?]+(?:\?|$)/.test(target)) return;
  throw new ClientError(
    'target_unsuitable',
    'the path must end with a segment, for example /v1/orders/7: cases change it',
  );
}

function routeOf(
  { headers, profiles }: SubjectOptions,
  method: string,
  url: RequestUrl,
  choice: ProfileChoice,
): Route {
  const profile = selectProfile(profiles.profiles, method, url, choice);
  checkAuthorization(headers, profile.passportHeader);
  const { authority, scheme, target } = url;
  const isSigned = ({ name }: RequestHeader) => profile.signedHeaders.includes(name.toLowerCase());
  return {
    profile,
    signedHeaders: selectSignedHeaders(headers, profile, []),
    otherHeaders: headers
      .filter((header) => !isSigned(header))
      .map(({ name, value }): HeaderLine => [name.toLowerCase(), value]),
    target: {
      authSite: profiles.coordinates.authSite,
      routeId: profile.routeId,
      audience: profile.audience,
      bodyRule: profile.body,
      passportHeader: profile.passportHeader,
      method,
      scheme,
      authority,
      target,
    },
  };
}

function callerOf({ brokerPassport, holderKey, profiles }: SubjectOptions): WireCaller {
  const { coordinates } = profiles;
  const { issuer, keyBinding, subject, trustDomain } = coordinates;
  return {
    keyId: keyIdOf(coordinates, brokerPassport),
    issuer,
    subject,
    trustDomain,
    keyBinding,
    passportKey: brokerPassport?.trim() ?? holderKey,
    holder: holderKey,
  };
}

function keyIdOf({ keyId, keyBinding }: SigningCoordinates, brokerPassport: string | undefined): string {
  if (brokerPassport !== undefined) {
    const passport = parsePassport(brokerPassport.trim());
    if (passport !== undefined) return passport.keyId;
    throw new ClientError('passport_malformed', 'the passport is not one of Proofgate');
  }
  if (keyBinding !== 'software') {
    throw new ClientError('passport_required', `a key may not attest ${keyBinding} for itself`);
  }
  if (keyId !== undefined) return keyId;
  throw new ClientError('key_id_missing', 'the profile file names no key_id, and no passport is given');
}

/** The case's header replaces the route's of the same name. */
function merged(route: readonly SignedHeader[], own: readonly SignedHeader[]): readonly SignedHeader[] {
  const names = new Set(own.map(({ name }) => name));
  return [...route.filter(({ name }) => !names.has(name)), ...own];
}
