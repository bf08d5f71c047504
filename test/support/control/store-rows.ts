/** Makes rows as services would write them; a test sets only the members it needs. */
import { newId } from '../../../src/control/domain/resource-identifiers.ts';
import type { AuditEntry, ControlStore } from '../../../src/control/store/port.ts';
import type { RowOf } from '../../../src/control/store/repositories/records.ts';
import type { Transaction } from '../../../src/control/store/transaction.ts';
import { NOW_MS } from '../../control/store/databases.ts';

export const NOW_SECONDS = NOW_MS / 1000;
export const VERSIONED = { version: 1, createdAtMs: NOW_MS, updatedAtMs: NOW_MS };

/** An audit entry of a kind that no service writes; the store accepts any kind. */
export function entry(verb: string, siteId?: string): AuditEntry {
  const resource = { kind: 'test', id: verb };
  const kind = `proofgate.control.test.${verb}` as AuditEntry['kind'];
  return { kind, actor: 'bootstrap', resource, place: { siteId } };
}

/** A mutation with one generic audit entry. */
export function mutateSite<T>(
  store: ControlStore,
  siteId: string,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return store.mutate({ kind: 'site', siteId }, async (tx) => ({
    result: await work(tx),
    audit: [entry('changed', siteId)],
  }));
}

export interface Ground {
  readonly environmentId: string;
  readonly fleetId: string;
  readonly siteId: string;
}

let sites = 0;

export function siteRow(fleetId: string, id: string): Omit<RowOf<'site'>, 'environmentId' | 'uid'> {
  return {
    id,
    fleetId,
    displayName: id,
    trustDomain: 'shop.example',
    issuerUrl: `https://control.shop.example/sites/${id}`,
    origins: '["https://api.shop.example"]',
    skewSeconds: 5,
    singleVerifier: 0,
    bundleLifetimeSeconds: 86_400,
    sourceCapacity: 16,
    revision: 0,
    head: null,
    baseRevision: 0,
    floorRevision: 0,
    wholeNeeded: 0,
    policyRevision: 0,
    blockedPublished: 0,
    unmatchedUntilSeconds: null,
    observations: 'none',
    acceptedProofs: 'none',
    replayStores: 'one',
    ...VERSIONED,
  };
}

/** Adds a site with its fleet and environment. */
export async function addGround(store: ControlStore): Promise<Ground> {
  sites += 1;
  const environmentId = newId('environment', NOW_MS);
  const fleetId = newId('fleet', NOW_MS);
  const siteId = `site-${sites}`;
  await store.writeUnaudited({ kind: 'installation' }, async (tx) => {
    await tx.environments.add({ id: environmentId, name: environmentId, ...VERSIONED });
    await tx.fleets.add({ id: fleetId, environmentId, name: fleetId, ...VERSIONED });
    await tx.sites.add(siteRow(fleetId, siteId));
  });
  return { environmentId, fleetId, siteId };
}

export const clientRow = (siteId: string, clientId: string): RowOf<'client'> => ({
  siteId,
  clientId,
  subject: `client:${clientId}`,
  context: '{}',
  ...VERSIONED,
});

export const targetRow = (siteId: string, name: string): RowOf<'target'> => ({
  id: newId('target', NOW_MS),
  siteId,
  name,
  state: 'attached',
  tokenHash: newId('target', NOW_MS),
  previousTokenHash: null,
  previousTokenEndsAtMs: null,
  ackedRevision: null,
  ackedHead: null,
  ackedAtMs: null,
  refusedRevision: null,
  refusedCode: null,
  refusedDetail: null,
  refusedAtMs: null,
  lastSeenAtMs: null,
  aheadRevision: null,
  unsignedRevision: null,
  unsignedHead: null,
  unsignedUntilMs: null,
  unlistedRevision: null,
  unlistedUntilMs: null,
  nextUnlistedRevision: null,
  nextUnlistedUntilMs: null,
  freshUntilMs: null,
  aheadSinceMs: null,
  raisedRevisions: 0,
  acceptedProofsLackedAtMs: null,
  blockedLackedAtMs: null,
  enforcementLackedAtMs: null,
  passportHeaderLackedAtMs: null,
  enforcedObservations: null,
  ...VERSIONED,
});

export const sourceRow = (siteId: string): RowOf<'source'> => ({
  id: newId('source', NOW_MS),
  siteId,
  kind: 'oidc_jwks',
  displayName: 'cluster',
  onSuspend: 'keep',
  onRetire: 'keep',
  ...VERSIONED,
});

export const revisionRow = (
  source: Pick<RowOf<'source'>, 'id' | 'siteId'>,
  revision: number,
  state: RowOf<'sourceRevision'>['state'] = 'draft',
): RowOf<'sourceRevision'> => ({
  sourceId: source.id,
  revision,
  siteId: source.siteId,
  state,
  issuer: 'https://issuer.example',
  jwksUri: 'https://issuer.example/keys',
  audience: `audience-${source.id}`,
  discovery: 'checked',
  fingerprint: null,
  detectedScope: null,
  validatedAtMs: null,
  failureCode: null,
  failureDetail: null,
  awaitedRevision: null,
  stateSinceMs: NOW_MS,
  ...VERSIONED,
});

export const policyRow = (
  source: Pick<RowOf<'source'>, 'id' | 'siteId'>,
  clientId: string,
): RowOf<'enrollmentPolicy'> => {
  const id = newId('enrollmentPolicy', NOW_MS);
  return {
    id,
    siteId: source.siteId,
    reference: `reference-${id}`,
    displayName: 'billing',
    sourceId: source.id,
    sourceRevision: 1,
    nextSourceRevision: null,
    clientId,
    approval: 'manual',
    maxKeyLifetimeSeconds: 3600,
    verifiedSubject: 'system:serviceaccount:prod:billing',
    verifiedIssuer: 'https://issuer.example',
    maxKeysPerToken: 5,
    state: 'active',
    ...VERSIONED,
  };
};

export const challengeRow = (siteId: string, policyId: string): RowOf<'challenge'> => ({
  id: newId('challenge', NOW_MS),
  siteId,
  policyId,
  publicJwk: '{}',
  thumbprint: 'thumbprint',
  createdAtMs: NOW_MS,
  expiresAtMs: NOW_MS + 120_000,
  enrollmentId: null,
});

export const enrollmentRow = (
  policy: Pick<RowOf<'enrollmentPolicy'>, 'id' | 'siteId' | 'clientId' | 'sourceId'>,
  overrides: Partial<RowOf<'enrollment'>> = {},
): RowOf<'enrollment'> => {
  const id = newId('enrollment', NOW_MS);
  return {
    id,
    siteId: policy.siteId,
    policyId: policy.id,
    clientId: policy.clientId,
    sourceId: policy.sourceId,
    sourceRevision: 1,
    challengeId: `ch-${id}`,
    submissionHash: 'hash',
    publicJwk: '{}',
    thumbprint: `thumbprint-${id}`,
    state: 'pending_approval',
    tokenHash: 'token-hash',
    tokenExpiresAtSeconds: NOW_SECONDS + 3600,
    tokenKeyThumbprint: null,
    keyExpiresAtSeconds: NOW_SECONDS + 3600,
    verifiedIssuer: 'https://issuer.example',
    verifiedSubject: 'system:serviceaccount:prod:billing',
    provenance: '{}',
    denialCode: null,
    decidedBy: null,
    decidedAtMs: null,
    keyId: null,
    ...VERSIONED,
    ...overrides,
  };
};

let keys = 0;

export const keyRow = (siteId: string, overrides: Partial<RowOf<'derivedKey'>> = {}): RowOf<'derivedKey'> => {
  keys += 1;
  const keyId = newId('derivedKey', NOW_MS + keys);
  return {
    keyId,
    siteId,
    clientId: 'billing',
    policyId: 'ep_1',
    enrollmentId: `enr-${keyId}`,
    sourceId: 'tas_1',
    sourceRevision: 1,
    publicJwk: '{}',
    thumbprint: `thumbprint-${keyId}`,
    status: 'active',
    expiresAtSeconds: NOW_SECONDS + 3600,
    verifiedIssuer: 'https://issuer.example',
    verifiedSubject: 'system:serviceaccount:prod:billing',
    provenance: '{}',
    revokedAtMs: null,
    revokedBy: null,
    revokedReason: null,
    listedRevision: null,
    revokedRevision: null,
    listedEverywhereAtMs: null,
    revokedEverywhereAtMs: null,
    ...VERSIONED,
    ...overrides,
  };
};
