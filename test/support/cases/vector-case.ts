/** A case of the tests' corpus, with the extra data that a published vector may need. */

import { signSameEachTime } from '../fixtures/deterministic.ts';
import type { RequestEdits, RequestPlan } from '../fixtures/signed-request.ts';
import type { SiteContent } from '../fixtures/snapshot.ts';
import { TEST_SITE_KEYS } from '../fixtures/test-keys.ts';
import type { Case } from './request-cases.ts';

export interface VectorCase extends Case {
  /** The verifier's clock; default: the moment at which the corpus signs. */
  readonly clockSeconds?: number;
  /** Default 10. */
  readonly realtimeStalenessSeconds?: number;
  /** A bundle other than `site`. */
  readonly bundle?: BundleVariant | 'none';
  /** Inbound names beside the credentials' that upstream must not receive. */
  readonly alsoRemoved?: readonly string[];
}

export interface BundleVariant {
  readonly name: string;
  /** How it differs from `site`. */
  readonly change: (content: SiteContent) => void;
}

export const BILLING: RequestPlan = { caller: 'billing', route: 'orders-read' };
export const BROKER: RequestPlan = { caller: 'broker', route: 'orders-read' };

/** The passport's two texts before they are encoded and signed by the caller's own key. */
export function passportTexts(
  plan: RequestPlan,
  change: (texts: { readonly header: string; readonly claims: string }) => {
    header?: string;
    claims?: string;
  },
): RequestEdits {
  return {
    passport: (jws) => {
      const [header = '', claims = ''] = jws
        .split('.')
        .map((part) => Buffer.from(part, 'base64url').toString('latin1'));
      const texts = { header, claims, ...change({ header, claims }) };
      const encoded = (text: string) => Buffer.from(text, 'latin1').toString('base64url');
      const input = `${encoded(texts.header)}.${encoded(texts.claims)}`;
      const signature = signSameEachTime(TEST_SITE_KEYS[plan.caller], Buffer.from(input));
      return `${input}.${signature.toString('base64url')}`;
    },
  };
}

/** @throws where there is nothing to replace: the case would test something else. */
export function replaced(text: string, from: string | RegExp, to: string): string {
  const result = text.replace(from, to);
  if (result === text) throw new Error(`nothing to replace: ${String(from)}`);
  return result;
}
