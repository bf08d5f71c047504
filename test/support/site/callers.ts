/** The callers: the identities that the site's bundle knows, each with its signing keys. */

import type { SigningKey } from '../../../src/protocol/signing.ts';
import type { WireCaller } from '../../../src/tools/conformance/wire/sign-wire-request.ts';
import {
  BROKER_ISSUER,
  BUILD_ISSUER,
  CLIENT_ISSUER,
  type DerivedKeyId,
  type IssuerKeyId,
  newHolder,
  type Site,
  TRUST_DOMAIN,
  WORKLOAD_PREFIX,
} from './site.ts';

export interface Caller extends WireCaller {
  readonly passportKey: SigningKey;
}

const CLIENT_OF: { readonly [K in DerivedKeyId]?: string } = {
  dk_reporting: 'client:reporting',
  dk_plain: 'client:plain',
};

/** A workload with an enrolled key: it signs its own passport. */
export function derivedKeyCaller(site: Site, keyId: DerivedKeyId = 'dk_billing'): Caller {
  const key = site.derivedKeys[keyId];
  return {
    keyId,
    issuer: CLIENT_ISSUER,
    subject: CLIENT_OF[keyId] ?? 'client:billing',
    trustDomain: TRUST_DOMAIN,
    keyBinding: 'software',
    passportKey: key,
    holder: key,
  };
}

/** A workload that the broker attested, with a holder key of its own. */
export function attestedCaller(site: Site, keyId: IssuerKeyId = 'broker-1'): Caller {
  return {
    keyId,
    issuer: BROKER_ISSUER,
    subject: `${WORKLOAD_PREFIX}sa/checkout`,
    trustDomain: TRUST_DOMAIN,
    keyBinding: 'attested_workload',
    passportKey: site.issuerKeys[keyId],
    holder: newHolder(site.secrets),
  };
}

/** A build job with a software key, vouched for by the issuer of builds. */
export function buildCaller(site: Site): Caller {
  return {
    keyId: 'builds-1',
    issuer: BUILD_ISSUER,
    subject: 'build:release',
    trustDomain: TRUST_DOMAIN,
    keyBinding: 'software',
    passportKey: site.issuerKeys['builds-1'],
    holder: newHolder(site.secrets),
  };
}
