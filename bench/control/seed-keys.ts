/**
 * Puts live keys into the database of a stopped Control. Each key gets the rows that an enrollment leaves: the enrollment, the
 * key and two events of the audit trail, copied from one real enrollment. Public keys, names and hashes are unique to each key.
 * All times lie within the last ten minutes, so that no key expires during the measurement.
 */
import { hash, randomBytes } from 'node:crypto';
import { newId } from '../../src/control/domain/resource-identifiers.ts';
import { derivedKeyView, enrollmentView } from '../../src/control/keys/enrollment-views.ts';
import type { AuditEntry, ControlStore, Transaction } from '../../src/control/store/port.ts';
import type { RowOf } from '../../src/control/store/repositories/records.ts';
import { openSqliteStore } from '../../src/control/store/sqlite.ts';
import { thumbprintOf } from '../../src/protocol/public-key.ts';
import { generateSigningKey } from '../../src/protocol/signing.ts';

const AT_ONCE = 1000;
const SPREAD_MS = 600_000;

interface Pattern {
  readonly key: RowOf<'derivedKey'>;
  readonly enrollment: RowOf<'enrollment'>;
  readonly place: AuditEntry['place'];
}

/**
 * Also asks for a whole bundle, which will list them.
 * @param keyId of a real enrollment
 * @returns revision of the site before that bundle
 */
export async function seedKeys(dataDirectory: string, keyId: string, count: number): Promise<number> {
  const store = await openSqliteStore({ dataDirectory, nowMs: Date.now });
  try {
    const pattern = await store.read((tx) => readPattern(tx, keyId));
    const { siteId } = pattern.key;
    const startMs = Date.now() - SPREAD_MS;
    for (let done = 0; done < count; done += AT_ONCE) {
      const part = Array.from({ length: Math.min(AT_ONCE, count - done) }, (_, index) =>
        enrolledLike(pattern, startMs + Math.floor(((done + index) / count) * SPREAD_MS)),
      );
      await addAll(store, part, pattern.place);
    }
    return await store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
      await tx.changes.record(siteId, { kind: 'policy' }, Date.now());
      return (await tx.sites.find(siteId))?.revision ?? 0;
    });
  } finally {
    await store.close();
  }
}

async function readPattern(tx: Transaction, keyId: string): Promise<Pattern> {
  const key = await tx.keys.find(keyId);
  const enrollment = key && (await tx.enrollments.find(key.enrollmentId));
  const place = key && (await tx.hierarchy.placeOfSite(key.siteId));
  if (key === undefined || enrollment === undefined || place === undefined)
    throw new Error('no enrollment to copy');
  return { key, enrollment, place };
}

interface Enrolled {
  readonly key: RowOf<'derivedKey'>;
  readonly enrollment: RowOf<'enrollment'>;
}

/** Backdates an enrollment, so that every target has had it for a while. */
function enrolledLike({ key, enrollment }: Pattern, atMs: number): Enrolled {
  const jwk = generateSigningKey('Ed25519').publicKey.jwk;
  const keyId = newId('derivedKey', atMs);
  const enrollmentId = newId('enrollment', atMs);
  const expiresAtSeconds = Math.floor(atMs / 1000) + 3600;
  const own = { publicJwk: JSON.stringify(jwk), thumbprint: thumbprintOf(jwk) };
  const moments = { createdAtMs: atMs, updatedAtMs: atMs };
  return {
    key: {
      ...key,
      ...own,
      ...moments,
      keyId,
      enrollmentId,
      expiresAtSeconds,
      listedRevision: 1,
      listedEverywhereAtMs: atMs,
    },
    enrollment: {
      ...enrollment,
      ...own,
      ...moments,
      id: enrollmentId,
      keyId,
      challengeId: newId('challenge', atMs),
      submissionHash: someHash(),
      tokenHash: someHash(),
      tokenExpiresAtSeconds: expiresAtSeconds,
      keyExpiresAtSeconds: expiresAtSeconds,
      decidedAtMs: atMs,
    },
  };
}

function someHash(): string {
  return hash('sha256', randomBytes(32), 'base64url');
}

async function addAll(
  store: ControlStore,
  rows: readonly Enrolled[],
  place: Pattern['place'],
): Promise<void> {
  await store.writeUnaudited(undefined, async (tx) => {
    for (const { key, enrollment } of rows) {
      await tx.keys.add(key);
      await tx.enrollments.add(enrollment);
      const { createdAtMs: atMs, verifiedIssuer, verifiedSubject } = key;
      const common = { actor: `workload:${verifiedIssuer}|${verifiedSubject}`, place };
      const [submitted, issued] = [enrollmentView(enrollment), derivedKeyView(key, atMs)];
      const ofEnrollment = { kind: 'enrollment', id: enrollment.id } as const;
      const ofKey = { kind: 'derived_key', id: key.keyId } as const;
      await tx.audit.append(
        { ...common, kind: 'proofgate.control.enrollment.submit', resource: ofEnrollment, after: submitted },
        atMs,
      );
      await tx.audit.append(
        { ...common, kind: 'proofgate.control.derived_key.issue', resource: ofKey, after: issued },
        atMs,
      );
    }
  });
}
