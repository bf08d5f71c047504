/** A good request with a DPoP proof, and ways to change what is signed. */
import type { SigningKey } from '../../../../src/protocol/signing.ts';
import { NOW_SECONDS, ORIGIN } from '../../../support/fixtures/bundle-content.ts';
import { signDpop } from '../../../support/protocol/dpop-signer.ts';
import type { Sent } from './attack.ts';
import { FIXED_JTI, keys, passportOf } from './requests.ts';

export interface DpopSigning {
  readonly token?: string;
  readonly key?: SigningKey;
  /** Signs; the header names the key. */
  readonly signer?: SigningKey;
  readonly method?: string;
  readonly target?: string;
  readonly url?: string;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** The token that the proof is for. Default: that of the request. */
  readonly provedToken?: string;
  readonly scheme?: string;
}

export function dpopRequest(signing: DpopSigning = {}): Sent {
  const {
    key = keys.billing,
    method = 'GET',
    scheme = 'DPoP',
    target = '/v1/orders/17',
    token = passportOf('billing', 'orders-read'),
  } = signing;
  const proof = signDpop({
    ...{ key, method, token: signing.provedToken ?? token, issuedAtSeconds: NOW_SECONDS },
    url: signing.url ?? `${ORIGIN}${target.split('?')[0]}`,
    header: signing.header ?? {},
    claims: { jti: FIXED_JTI, ...signing.claims },
    ...(signing.signer && { signer: signing.signer }),
  });
  return {
    method,
    scheme: 'https',
    authority: ORIGIN.slice(8),
    target,
    lines: [
      { name: 'authorization', value: `${scheme} ${token}` },
      { name: 'dpop', value: proof },
    ],
    body: { kind: 'none' },
  };
}
