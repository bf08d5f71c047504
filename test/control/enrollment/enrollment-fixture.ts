/**
 * Enrollment fixture with real parts on one machine: a SQLite store, a cluster's issuer over HTTPS, sources that Control
 * validated and activated, and workloads with keys and tokens.
 */
import { hash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  ChallengeAnswer,
  EnrolledProfile,
  EnrollmentSubmission,
  WorkloadEnrollment,
} from '../../../src/control/contract/enrollment-contract.ts';
import type {
  EnrollmentPolicyCreation,
  EnrollmentPolicyView,
  SourceCreation,
  SourceRevisionView,
} from '../../../src/control/contract/sources-contract.ts';
import { newId } from '../../../src/control/domain/resource-identifiers.ts';
import {
  createEnrollmentPlane,
  type EnrollmentPlane,
  type EnrollmentPlaneOptions,
} from '../../../src/control/enrollment/enrollment-plane.ts';
import { keyReadiness } from '../../../src/control/publishing/readiness.ts';
import { enrolledProfiles } from '../../../src/control/publishing/signing-profiles.ts';
import type { Operation } from '../../../src/control/resource/operation.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import type { RevisionName } from '../../../src/control/sources/source-changes.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import type { RowOf } from '../../../src/control/store/repositories/records.ts';
import type { Transaction } from '../../../src/control/store/transaction.ts';
import { enrollmentText, POLL_SCHEME, pollText } from '../../../src/protocol/enrollment.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import { generateSigningKey, type SigningKey } from '../../../src/protocol/signing.ts';
import { AUDIENCE, IssuerEnvironment } from '../../support/control/issuers-fixture.ts';
import { openMigratedStore } from '../../support/control/migrated-store.ts';
import { clientRow, siteRow, VERSIONED } from '../../support/control/store-rows.ts';
import type { ServiceAccountIssuer, TokenRequest } from '../../support/fakes/service-account-issuer.ts';

export const SITE = 'shop-eu-1';
export const CLIENT = 'billing';
export const SUBJECT = 'system:serviceaccount:prod:billing';
export const CONTROL_URL = 'https://control.shop.example';
export const OTHER_CONTROL_URL = 'https://control.internal.example/proofgate';
export const PROFILE: EnrolledProfile = {
  name: 'orders-read',
  route_id: 'orders-read',
  method: 'GET',
  path_template: '/v1/orders/{order_id}',
  audience: 'https://api.shop.example',
  origins: ['https://api.shop.example'],
  signed_headers: [],
  body: 'bound',
};
/** 2026-11-21T04:00:00Z */
const START_MS = 1_795_233_600_000;

export const BY: Operation = { actor: 'oidc:https://login.example|ada', requestId: 'req_test' };

export interface Workload {
  readonly key: SigningKey;
  readonly policyReference: string;
}

export interface Applied extends Workload {
  readonly challenge: ChallengeAnswer;
}

export type OpenStore = (nowMs: () => number) => Promise<ControlStore>;

/** Dependencies of the fixture. */
interface Ground {
  readonly directory: string;
  readonly open: OpenStore;
  readonly issuers: IssuerEnvironment;
}

export class EnrollmentEnvironment {
  ms = START_MS;
  readonly nowMs = (): number => this.ms;
  readonly masterKeys = MasterKeys.random();
  readonly faults: unknown[] = [];
  readonly #ground: Ground;
  readonly #otherStores: ControlStore[] = [];
  store: ControlStore;
  issuer: ServiceAccountIssuer;
  #plane: EnrollmentPlane;

  private constructor(ground: Ground, store: ControlStore, issuer: ServiceAccountIssuer) {
    this.#ground = ground;
    this.store = store;
    this.issuer = issuer;
    this.#plane = this.#planeOn(store);
  }

  /** @param openStore opens the same database repeatedly; default: SQLite in its own directory */
  static async open(openStore?: OpenStore): Promise<EnrollmentEnvironment> {
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-enrollment-'));
    const issuers = await IssuerEnvironment.start();
    const issuer = await issuers.issuer();
    const open = openStore ?? ((nowMs) => openMigratedStore({ dataDirectory: directory, nowMs }));
    // The clock reads the environment, which does not exist yet.
    let env: EnrollmentEnvironment | undefined;
    const store = await open(() => env?.ms ?? START_MS);
    env = new EnrollmentEnvironment({ directory, open, issuers }, store, issuer);
    await env.addSite(SITE);
    return env;
  }

  /** Restarts as after a kill: only the database remains. */
  async restart(): Promise<void> {
    await this.store.close();
    this.store = await this.#ground.open(this.nowMs);
    this.#plane = this.#planeOn(this.store);
  }

  /** A second Control on the same database; it shares only that and the master key. */
  async anotherInstance(): Promise<EnrollmentPlane> {
    const store = await this.#ground.open(this.nowMs);
    this.#otherStores.push(store);
    return this.#planeOn(store);
  }

  /** A Control on the same store with other master keys. */
  withMasterKeys(masterKeys: MasterKeys): EnrollmentPlane {
    return this.#planeOn(this.store, masterKeys);
  }

  #planeOn(store: ControlStore, masterKeys = this.masterKeys): EnrollmentPlane {
    return createEnrollmentPlane({
      store,
      nowMs: this.nowMs,
      masterKeys,
      fetcher: this.#ground.issuers.fetcher(),
      publicUrls: [`${CONTROL_URL}/`, OTHER_CONTROL_URL],
      ...publishingOf(store, this.nowMs),
      report: (error) => this.faults.push(error),
      enrollImage: 'registry.example/proofgate',
    });
  }

  get plane(): EnrollmentPlane {
    return this.#plane;
  }
  get sources() {
    return this.#plane.sources;
  }
  get cache() {
    return this.#plane.keySets;
  }
  get policies() {
    return this.#plane.policies;
  }
  get decisions() {
    return this.#plane.decisions;
  }
  get keys() {
    return this.#plane.keys;
  }
  get workloads() {
    return this.#plane.workloads;
  }

  async close(): Promise<void> {
    await this.sources.lifecycle.untilIdle();
    for (const store of [this.store, ...this.#otherStores]) await store.close();
    await this.#ground.issuers.close();
    await rm(this.#ground.directory, { recursive: true });
  }

  anotherIssuer(options: Parameters<IssuerEnvironment['issuer']>[0] = {}): Promise<ServiceAccountIssuer> {
    return this.#ground.issuers.issuer(options);
  }

  async addSite(id: string, sourceCapacity = 16): Promise<void> {
    await this.store.writeUnaudited(undefined, async (tx) => {
      const environmentId = newId('environment', this.ms);
      const fleetId = newId('fleet', this.ms);
      await tx.environments.add({ id: environmentId, name: environmentId, ...VERSIONED });
      await tx.fleets.add({ id: fleetId, environmentId, name: 'fleet', ...VERSIONED });
      await tx.sites.add({ ...siteRow(fleetId, id), singleVerifier: 1, sourceCapacity });
      await tx.clients.add(clientRow(id, CLIENT));
      const grant = { siteId: id, clientId: CLIENT, resource: 'orders', access: 'read' } as const;
      await tx.clients.putGrants([{ ...grant, createdAtMs: this.ms }]);
      const { route_id: routeId, method, path_template, audience } = PROFILE;
      const freshness = { freshness_class: 'bounded', max_staleness_seconds: 300, resource: 'orders' };
      const definition = JSON.stringify({ method, path_template, audience, ...freshness });
      await tx.routes.add({ siteId: id, routeId, definition, ...VERSIONED });
      const allowed = {
        issuer: `${CONTROL_URL}/sites/${id}`,
        trust_domain: 'shop.example',
        subject_exact: `client:${CLIENT}`,
        required_key_binding: 'software',
      };
      const allowedSources = JSON.stringify([allowed]);
      await tx.routeSources.add({ siteId: id, routeId, allowedSources, ...VERSIONED });
    });
  }

  sourceCreation(changes: Partial<SourceCreation> = {}): SourceCreation {
    const { issuer, jwksUri: jwks_uri } = this.issuer;
    return { kind: 'oidc_jwks', display_name: 'cluster', issuer, jwks_uri, audience: AUDIENCE, ...changes };
  }

  async draft(changes: Partial<SourceCreation> = {}, siteId = SITE): Promise<RevisionName> {
    const { view } = await this.sources.drafts.create(siteId, this.sourceCreation(changes), BY);
    return { sourceId: view.source_id, revision: 1 };
  }

  get scope(): string {
    return new URL(this.issuer.issuer).host;
  }

  async validated(changes: Partial<SourceCreation> = {}, siteId = SITE): Promise<RevisionName> {
    const name = await this.draft(changes, siteId);
    await this.sources.lifecycle.validate(name, BY);
    return name;
  }

  async publishing(changes: Partial<SourceCreation> = {}, siteId = SITE): Promise<RevisionName> {
    const name = await this.validated(changes, siteId);
    await this.activate(name);
    return name;
  }

  /** Returns when the check has a result. */
  async activate(name: RevisionName, scope = this.scope): Promise<SourceRevisionView> {
    await this.sources.lifecycle.activate(name, scope, BY);
    await this.sources.lifecycle.untilIdle();
    return this.sources.drafts.revision(name);
  }

  async active(changes: Partial<SourceCreation> = {}, siteId = SITE): Promise<RevisionName> {
    const name = await this.publishing(changes, siteId);
    await this.acknowledge(name);
    return name;
  }

  /** Simulates the publisher after every target has acknowledged: replaces the previous revision. */
  async acknowledge({ sourceId, revision }: RevisionName): Promise<void> {
    await this.store.writeUnaudited(undefined, async (tx) => {
      const revisions = await tx.sources.revisions(sourceId);
      if (revisions.find((row) => row.revision === revision)?.state !== 'publishing') return;
      for (const row of revisions) {
        if (row.revision === revision) await tx.sourceRevisions.change(row, { state: 'active' }, this.ms);
        else if (row.state === 'active' || row.state === 'suspended') {
          await tx.sourceRevisions.change(row, { state: 'retired' }, this.ms);
        }
      }
    });
  }

  policyCreation(
    { sourceId, revision }: RevisionName,
    changes: Partial<EnrollmentPolicyCreation> = {},
  ): EnrollmentPolicyCreation {
    return {
      display_name: 'billing in prod',
      source_id: sourceId,
      source_revision: revision,
      client_id: CLIENT,
      approval: 'automatic',
      max_key_lifetime_seconds: 86_400,
      verified_issuer: this.issuer.issuer,
      verified_subject: SUBJECT,
      ...changes,
    };
  }

  async policy(
    name: RevisionName,
    changes: Partial<EnrollmentPolicyCreation> = {},
    siteId = SITE,
  ): Promise<EnrollmentPolicyView> {
    return (await this.policies.create(siteId, this.policyCreation(name, changes), BY)).view;
  }

  workload({ reference }: { readonly reference: string }, key = newKey()): Workload {
    return { key, policyReference: reference };
  }

  token(request: TokenRequest = {}): string {
    return this.issuer.token({ audience: AUDIENCE, nowMs: this.ms, ...request });
  }

  async challenge(workload: Workload): Promise<Applied> {
    const challenge = await this.workloads.challenge({
      policy: workload.policyReference,
      provider: 'oidc_jwks',
      public_key: ed25519Jwk(workload.key),
    });
    return { ...workload, challenge };
  }

  async enroll(workload: Workload, token = this.token()): Promise<WorkloadEnrollment> {
    const applied = await this.challenge(workload);
    return (await this.workloads.submit(submissionOf(applied, token))).enrollment;
  }

  authorization(enrollmentId: string, key: SigningKey, timeSeconds = Math.floor(this.ms / 1000)): string {
    const signature = signMessage('Ed25519', key.privateKey, pollText(enrollmentId, timeSeconds));
    return `${POLL_SCHEME} ${timeSeconds}.${signature.toString('base64url')}`;
  }

  poll(enrollmentId: string, key: SigningKey): Promise<WorkloadEnrollment> {
    return this.workloads.poll(enrollmentId, this.authorization(enrollmentId, key));
  }

  read<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.store.read(work);
  }

  keysOf(siteId = SITE): Promise<readonly RowOf<'derivedKey'>[]> {
    return this.read((tx) => tx.keys.ofSite(siteId, { after: undefined, limit: 10_000 }));
  }

  enrollmentsOf(siteId = SITE): Promise<readonly RowOf<'enrollment'>[]> {
    return this.read((tx) => tx.enrollments.ofSite(siteId, { after: undefined, limit: 10_000 }));
  }

  changesOf(siteId = SITE): Promise<readonly RowOf<'siteChange'>[]> {
    return this.read((tx) => tx.changes.pending(siteId, 10_000));
  }

  async auditKinds(resourceId?: string): Promise<readonly string[]> {
    const filter = resourceId === undefined ? {} : { resourceId };
    const rows = await this.read((tx) =>
      tx.audit.list({ ...filter, reach: { kind: 'everything' }, limit: 1000 }),
    );
    return rows.map(({ kind }) => kind.replace('proofgate.control.', '')).reverse();
  }
}

/** Composes the publishing parts as the process does. */
export function publishingOf(
  store: ControlStore,
  nowMs: () => number,
): Pick<EnrollmentPlaneOptions, 'profilesOfClient' | 'readinessOfKey'> {
  return {
    profilesOfClient: enrolledProfiles,
    readinessOfKey: (keyId) =>
      store.read(async (tx) => {
        const key = await tx.keys.find(keyId);
        if (key === undefined) throw new Error('no such key');
        const { ready, conditions } = await keyReadiness(tx, key, undefined, nowMs());
        return { ready, conditions };
      }),
  };
}

export function newKey(): SigningKey {
  return generateSigningKey('Ed25519');
}

export function ed25519Jwk({ publicKey: { jwk } }: SigningKey) {
  if (jwk.kty !== 'OKP') throw new Error('not an Ed25519 key');
  return { kty: jwk.kty, crv: jwk.crv, x: jwk.x };
}

/** The signed submission of a workload, with any part replaced. */
export function submissionOf(
  { key, policyReference, challenge }: Applied,
  workloadToken: string,
  controlUrl = CONTROL_URL,
): EnrollmentSubmission {
  const text = enrollmentText({
    controlUrl,
    policyReference,
    challengeId: challenge.challenge_id,
    challenge: challenge.challenge,
    keyThumbprint: key.publicKey.thumbprint,
    workloadToken,
  });
  return {
    challenge_id: challenge.challenge_id,
    workload_token: workloadToken,
    signature: signMessage('Ed25519', key.privateKey, text).toString('base64url'),
  };
}

/** The code of the rejection; fails when the promise resolves. */
export async function refusalOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return String(error.code);
    throw error;
  }
  return 'not refused';
}

export const sha256 = (text: string): string => hash('sha256', text, 'base64url');
