/** Makes `receipts.json`: revocation receipts that are valid, and ones with one fault each. */
import {
  endOfUse,
  RECEIPT_ASSUMPTIONS,
  type ReceiptBound,
  type ReceiptFault,
  type RevocationReceipt,
  signReceipt,
} from '../../../src/bundle/format/revocation-receipt.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import { ALL_TEST_KEYS } from '../../support/fixtures/test-keys.ts';

export interface ReceiptVector {
  readonly name: string;
  readonly receipt: string;
  readonly expected: 'effective' | 'pending' | ReceiptFault;
  /** Seconds since the epoch, of an effective one. */
  readonly no_use_from?: number;
}

const [KEY, OTHER_KEY] = [...ALL_TEST_KEYS.values()].filter(
  ({ publicKey }) => publicKey.algorithm === 'Ed25519',
);
if (KEY === undefined || OTHER_KEY === undefined) throw new Error('no Ed25519 keys');
export const RECEIPT_KEY = KEY;

const AT = 1_795_233_600;
const BOUND: ReceiptBound = {
  ...{ expires_until: AT + 2_592_030, bounded_until: AT + 300, realtime_until: AT + 10_000_000_000 },
  ...{ fresh_as_of: AT, skew_seconds: 30, realtime_staleness_seconds: 10, unlimited_until: 0 },
};
const EFFECTIVE: RevocationReceipt = {
  ...{ auth_site: 'shop-eu-1', key_id: 'dk_06cz0000000000000000000000' },
  thumbprint: 'poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U',
  ...{ key_expires_at: AT + 86_400, revoked_at: AT + 1, revision: 8, state: 'effective' },
  ...{ issued_at: AT + 331, no_use_from: AT + 331, bound: BOUND },
  targets: [
    { target_id: 'tgt_1', state: 'attached', acked_revision: 8, acked_at: AT + 2, has_revision: true },
    { target_id: 'tgt_2', state: 'detached', has_revision: false },
  ],
  waiting_for: [],
  assumptions: RECEIPT_ASSUMPTIONS,
};
const PENDING: RevocationReceipt = {
  ...{ ...EFFECTIVE, state: 'pending', issued_at: AT + 330 },
  waiting_for: [{ target_id: 'tgt_1', instance_id: 'q0RfS2mB7cX1yZpLk9TwUA', acked_revision: 7 }],
};

function withBound(bound: Partial<ReceiptBound>): RevocationReceipt {
  const changed = { ...BOUND, ...bound };
  const end = Math.min(endOfUse(changed), EFFECTIVE.key_expires_at + 61);
  return { ...EFFECTIVE, bound: changed, no_use_from: end, issued_at: end };
}

function withoutBound(receipt: RevocationReceipt): RevocationReceipt {
  const { bound: _, revision: __, no_use_from: ___, ...rest } = receipt;
  return rest;
}

export function receiptVectors(): readonly ReceiptVector[] {
  const signed = (receipt: RevocationReceipt) => signReceipt(receipt, RECEIPT_KEY);
  const good = signed(EFFECTIVE);
  const [header = '', payload = '', signature = ''] = good.split('.');
  const valid = (name: string, receipt: RevocationReceipt): ReceiptVector => ({
    ...{ name, receipt: signed(receipt), expected: receipt.state },
    ...(receipt.state === 'effective' &&
      receipt.no_use_from !== undefined && { no_use_from: receipt.no_use_from }),
  });
  const keyEnd = EFFECTIVE.key_expires_at + 61;
  return [
    valid('a bounded route is the last', EFFECTIVE),
    valid('a realtime route is the last', withBound({ bounded_until: 0 })),
    valid('a verifier without a limit is the last', withBound({ unlimited_until: AT + 5000 })),
    valid('the bundle expires first', withBound({ expires_until: AT + 60 })),
    valid('the key itself expired', { ...withoutBound(EFFECTIVE), issued_at: keyEnd, no_use_from: keyEnd }),
    valid('one second before the end', PENDING),
    valid('the revocation is not published', withoutBound(PENDING)),
    {
      name: 'another signature',
      receipt: `${header}.${payload}.${flip(signature)}`,
      expected: 'receipt_signature_invalid',
    },
    {
      name: 'the signature of another receipt',
      receipt: `${signed(PENDING).split('.').slice(0, 2).join('.')}.${signature}`,
      expected: 'receipt_signature_invalid',
    },
    {
      name: 'another key',
      receipt: signReceipt(EFFECTIVE, OTHER_KEY as never),
      expected: 'receipt_key_unknown',
    },
    {
      name: 'typ of a statement',
      receipt: resigned({ typ: 'proofgate-freshness+jws' }, payload),
      expected: 'receipt_type',
    },
    { name: 'another alg', receipt: resigned({ alg: 'none' }, payload), expected: 'receipt_type' },
    {
      name: 'another member in the header',
      receipt: resigned({ crit: ['b64'] }, payload),
      expected: 'receipt_malformed',
    },
    { name: 'a fourth part', receipt: `${good}.`, expected: 'receipt_malformed' },
    { name: 'padded base64url', receipt: `${good}==`, expected: 'receipt_malformed' },
    {
      name: 'effective one second early',
      receipt: signed({ ...EFFECTIVE, issued_at: AT + 330 }),
      expected: 'receipt_inconsistent',
    },
    {
      name: 'an end that does not follow',
      receipt: signed({ ...EFFECTIVE, no_use_from: AT + 300 }),
      expected: 'receipt_inconsistent',
    },
    {
      name: 'effective without an end',
      receipt: signed(withoutBound(EFFECTIVE)),
      expected: 'receipt_inconsistent',
    },
    {
      name: 'an unknown state',
      receipt: signed({ ...EFFECTIVE, state: 'final' as 'effective' }),
      expected: 'receipt_inconsistent',
    },
  ];
}

function flip(text: string): string {
  return `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`;
}

/** Signed with the header's members changed. */
function resigned(change: object, payload: string): string {
  const header = {
    typ: 'proofgate-revocation-receipt+jws',
    alg: 'Ed25519',
    kid: RECEIPT_KEY.publicKey.thumbprint,
  };
  const input = `${Buffer.from(JSON.stringify({ ...header, ...change })).toString('base64url')}.${payload}`;
  const signature = signMessage('Ed25519', RECEIPT_KEY.privateKey, Buffer.from(input));
  return `${input}.${signature.toString('base64url')}`;
}
