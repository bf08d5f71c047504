/** The real verifier accepts the passports that the broker issues, with the class that their proof gives. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { CallerProof } from '../../src/broker/broker-contract.ts';
import type { Snapshot } from '../../src/bundle/compile/snapshot.ts';
import { type SigningKey, signingKeyOf } from '../../src/protocol/signing.ts';
import {
  jwtSvidProof,
  signedForm,
  softwareKeyProof,
  softwareKeysYaml,
} from '../support/broker/broker-callers.ts';
import { newAuthority, passportKey, testBroker, VALID } from '../support/broker/broker-fixture.ts';
import { BROKER_ISSUER, newSigningKey, TRUST_DOMAIN } from '../support/fixtures/bundle-content.ts';
import { type RequestEdits, signRequest } from '../support/fixtures/signed-request.ts';
import { compileSite, KEY_ID, newSiteKeys, type RouteId, siteContent } from '../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const authority = newAuthority();
const registered = newSigningKey('ES256');
const brokerKey = passportKey(keys.broker, KEY_ID.broker);
const SUBJECT = `spiffe://${TRUST_DOMAIN}/ns/prod/sa/billing`;
let site: Snapshot;

beforeAll(async () => {
  const content = siteContent(keys);
  content.issuers?.[0]?.subject_prefixes.push('ci:');
  for (const { route_id, allowed_sources } of content.route_sources) {
    const required = route_id === 'attested' ? ('attested_workload' as const) : ('software' as const);
    allowed_sources.push({
      issuer: BROKER_ISSUER,
      trust_domain: TRUST_DOMAIN,
      subject_prefix: 'ci:',
      required_key_binding: required,
    });
  }
  site = await compileSite(content);
});

/** What a verifier decides on a request that carries the passport. */
function decided(passport: string, holder: SigningKey, route: RouteId): string {
  const claims = JSON.parse(Buffer.from(passport.split('.')[1] ?? '', 'base64url').toString());
  const edits: RequestEdits = {
    claims: (draft) => void Object.assign(draft, claims),
    passport: () => passport,
  };
  const request = signRequest(keys, { caller: 'broker', route, holder }, edits);
  return outcomeOf(checkNow(createTestVerifier({ snapshot: site }).verifier, request.facts));
}

async function outcomes(proof: CallerProof, holder: SigningKey, mtls?: Parameters<typeof testBroker>[0]) {
  const broker = await testBroker({
    authorities: [authority],
    keys: [brokerKey],
    softwareKeys: softwareKeysYaml(registered),
    ...mtls,
  });
  const { status, json } = await broker.passport(proof);
  expect({ status, json }).toMatchObject({ status: 200 });
  const passport = String(json.passport);
  return {
    keyBinding: json.key_binding,
    subject: json.subject,
    prices: decided(passport, holder, 'prices'),
    attested: decided(passport, holder, 'attested'),
  };
}

/** Any broker with the same challenge key makes them. */
async function challenge(): Promise<string> {
  return (await testBroker()).challenge();
}

const ATTESTED = {
  keyBinding: 'attested_workload',
  subject: SUBJECT,
  prices: 'allowed',
  attested: 'allowed',
};

describe('a passport for', () => {
  it('a registered software key is of the software class', async () => {
    const proof = softwareKeyProof(await challenge(), registered);
    expect(await outcomes(proof, registered)).toEqual({
      keyBinding: 'software',
      subject: 'ci:deploy',
      prices: 'allowed',
      attested: 'insufficient_key_binding 403',
    });
  });

  it('a fresh key that a registered key vouches for names the fresh key', async () => {
    const fresh = newSigningKey();
    const proof = softwareKeyProof(await challenge(), registered, fresh);
    expect(await outcomes(proof, fresh)).toMatchObject({ keyBinding: 'software', prices: 'allowed' });
  });

  it.each(['P-256', 'P-384', 'Ed25519', 'RSA-2048'] as const)(
    'a signed form with an SVID of %s is attested',
    async (key) => {
      const holder = newSigningKey();
      const svid = authority.issueSvid('/ns/prod/sa/billing', { ...VALID, key });
      expect(await outcomes(signedForm(await challenge(), svid, holder), holder)).toEqual(ATTESTED);
    },
  );

  it('a JWT-SVID is attested', async () => {
    const holder = newSigningKey('ES256');
    const proof = await jwtSvidProof(await challenge(), authority, SUBJECT, holder);
    expect(await outcomes(proof, holder)).toEqual(ATTESTED);
  });

  it.each(['P-256', 'Ed25519'] as const)(
    'the client certificate of the connection, %s, is attested and names its key',
    async (key) => {
      const svid = authority.issueSvid('/ns/prod/sa/billing', { ...VALID, key });
      const holder = signingKeyOf(svid.privateKey);
      const connection = () => ({
        kind: 'tls' as const,
        clientCertificates: svid.chainDer,
        isResumed: false,
      });
      expect(await outcomes({ kind: 'mtls' }, holder, { connection })).toEqual(ATTESTED);
    },
  );
});
