/** Bundles that block callers: whom an entry denies, and whom it leaves alone. */
import { BROKER_ISSUER, CLIENT_ISSUER, TRUST_DOMAIN } from '../fixtures/bundle-content.ts';
import { AUTOMATION_ISSUER } from '../fixtures/snapshot.ts';
import { OTHER_TEST_KEYS } from '../fixtures/test-keys.ts';
import { BILLING, BROKER, type BundleVariant, type VectorCase } from './vector-case.ts';

const SUBJECT_BLOCKED = 'invalid_request_proof/subject_blocked 401';
const HOLDER_BLOCKED = 'invalid_request_proof/holder_blocked 401';
const { holder, holderEc, stranger } = OTHER_TEST_KEYS;

const BLOCKING: BundleVariant = {
  name: 'site, with blocked callers',
  change: (content) => {
    content.blocked = [
      { issuer: BROKER_ISSUER, subject: `spiffe://${TRUST_DOMAIN}/ns/prod/sa/search` },
      { issuer: BROKER_ISSUER, holder_thumbprint: holder.publicKey.thumbprint },
      { issuer: BROKER_ISSUER, holder_thumbprint: holderEc.publicKey.thumbprint },
      // Each under an issuer that is not the caller's.
      { issuer: BROKER_ISSUER, subject: 'ci:release' },
      { issuer: AUTOMATION_ISSUER, subject: `spiffe://${TRUST_DOMAIN}/ns/prod/sa/billing` },
      { issuer: CLIENT_ISSUER, subject: 'client:reporting' },
    ];
  },
};

const CASES: readonly VectorCase[] = [
  { name: 'the subject', plan: { caller: 'brokerEc', route: 'orders-read' }, outcome: SUBJECT_BLOCKED },
  {
    name: 'the subject, with another holder key',
    plan: { caller: 'brokerEc', route: 'orders-read', holder: stranger },
    outcome: SUBJECT_BLOCKED,
  },
  { name: 'the holder key', plan: { ...BROKER, holder }, outcome: HOLDER_BLOCKED },
  { name: 'a P-256 holder key', plan: { ...BROKER, holder: holderEc }, outcome: HOLDER_BLOCKED },
  {
    name: 'the subject of a derived key',
    plan: { caller: 'reporting', route: 'orders-read' },
    outcome: SUBJECT_BLOCKED,
  },
  {
    name: 'a stranger learns nothing of the list',
    plan: { caller: 'brokerEc', route: 'orders-read' },
    edits: { passportKey: stranger },
    outcome: 'invalid_request_proof/passport_signature 401',
  },
  { name: 'not another holder key of the issuer', plan: BROKER, outcome: 'allowed' },
  {
    name: 'not the same subject of another issuer',
    plan: { caller: 'automation', route: 'orders-read' },
    outcome: 'allowed',
  },
  { name: 'not another client', plan: BILLING, outcome: 'allowed' },
];

export const BLOCKED_CASES: readonly VectorCase[] = CASES.map((entry) => ({
  ...entry,
  name: `blocked: ${entry.name}`,
  bundle: BLOCKING,
}));
