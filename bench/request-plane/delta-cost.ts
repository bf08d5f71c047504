/**
 * Measures what a delta costs, and that it costs the same on a large table as on a small one. 30 deltas a second are as many as
 * a site of 100,000 workloads with keys of an hour makes. Each delta adds new keys and removes existing ones, as on such a
 * site. It is opened, checked and applied as the verifier does it. Rounds alternate between the tables, so that a machine whose
 * speed drifts drifts for both.
 */

import { signDelta, signWholeBundle } from '../../src/bundle/authoring/publishing-documents.ts';
import { compileBundle, type LiveSnapshot } from '../../src/bundle/compile/compile.ts';
import { prepareStep } from '../../src/bundle/compile/compile-delta.ts';
import { openStep } from '../../src/bundle/format/open-document.ts';
import type { BundleContent, DerivedKeyContent } from '../../src/bundle/format/schema.ts';
import { TimeSlice } from '../../src/bundle/format/time-slice.ts';
import { importPublicKey } from '../../src/protocol/import-public-key.ts';
import type { PublicKey } from '../../src/protocol/public-key.ts';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import { generateSigningKey, type SigningKey } from '../../src/protocol/signing.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { median } from '../statistics.ts';

const AUTH_SITE = 'bench';
const SIZES = [100, 100_000] as const;
const ROUNDS = 9;
/** Ten seconds' worth. */
const DELTAS_A_ROUND = 300;
/** Keys that a delta puts, and removes. */
const KEYS_A_DELTA = 10;
/** Most that a delta on the large table may cost, as a multiple of one on the small. */
const MOST_RATIO = 2;

export const deltaCost: Part = {
  name: 'delta',
  title: `CPU of a delta by the size of the table: ${KEYS_A_DELTA} keys put, ${KEYS_A_DELTA} removed, one client changed; ${ROUNDS} rounds of ${DELTAS_A_ROUND}`,
  run: async () => report(await measureDeltaCost()),
};

function report({ largeUs, smallUs }: DeltaCost): PartResult {
  return {
    figures: [figure('onto 100 keys', 'µs CPU', smallUs), figure('onto 100,000 keys', 'µs CPU', largeUs)],
    bounds: [{ name: '100,000 keys over 100', value: median(largeUs) / median(smallUs), atMost: MOST_RATIO }],
  };
}

interface DeltaCost {
  /** Microseconds of CPU a delta on tables of {@link SIZES}, one entry a round. */
  readonly smallUs: readonly number[];
  readonly largeUs: readonly number[];
}

async function measureDeltaCost(): Promise<DeltaCost> {
  const signer = newKey();
  const [small, large] = [await newTable(SIZES[0], signer), await newTable(SIZES[1], signer)];
  const cost = { smallUs: [] as number[], largeUs: [] as number[] };
  for (let round = 0; round <= ROUNDS; round++) {
    const [smallRun, largeRun] = [await runRound(small, signer), await runRound(large, signer)];
    // The first warms up.
    if (round === 0) continue;
    cost.smallUs.push(smallRun);
    cost.largeUs.push(largeRun);
  }
  return cost;
}

interface Table {
  snapshot: LiveSnapshot;
  /** The next key to put, and to remove. */
  next: number;
  readonly size: number;
}

/** A few hundred keys under all those names: tables do not care, and are there sooner. */
const KEYS = Array.from({ length: 200 }, () => newKey().publicKey);

async function newTable(size: number, signer: SigningKey): Promise<Table> {
  const keys = Array.from({ length: size }, (_, index) => keyEntry(index));
  const content: BundleContent = {
    format: 'proofgate.bundle/v1',
    auth_site: AUTH_SITE,
    revision: 1,
    issued_at: formatTime(nowSeconds()),
    expires_at: formatTime(nowSeconds() + 7200),
    origins: ['https://api.shop.example'],
    clients: Array.from({ length: 100 }, (_, index) => clientEntry(index)),
    derived_keys: keys,
    routes: [],
    route_sources: [],
  };
  const { position } = signWholeBundle({ ...content, derived_keys: [] }, [signer]);
  const byX = new Map<string, PublicKey>(KEYS.map((key) => [key.jwk.x, key]));
  const importKey = (jwk: { readonly x: string }) => byX.get(jwk.x);
  const snapshot = await compileBundle(content, { file: 'bundle.jws', head: position.head, importKey });
  return { snapshot, next: size, size };
}

/** Making the deltas is not measured. */
async function runRound(table: Table, signer: SigningKey): Promise<number> {
  let { head, revision } = table.snapshot;
  const documents = Array.from({ length: DELTAS_A_ROUND }, () => {
    revision += 1;
    const signed = signDelta(
      {
        auth_site: AUTH_SITE,
        revision,
        previous_head: head,
        issued_at: formatTime(nowSeconds()),
        clients_put: [clientEntry(table.next % 100)],
        clients_removed: [],
        keys_put: numbersFrom(table.next).map((index) => ({
          ...keyEntry(index),
          jwk: newKey().publicKey.jwk,
        })),
        keys_removed: numbersFrom(table.next - table.size).map(keyName),
      },
      [signer],
    );
    table.next += KEYS_A_DELTA;
    head = signed.position.head;
    return signed.document;
  });
  const signers = { keys: [signer.publicKey], threshold: 1 };
  const started = process.cpuUsage();
  for (const bytes of documents) {
    const step = openStep('delta', bytes, { file: 'delta', signers, authSite: AUTH_SITE });
    const options = { importKey: importPublicKey, slice: new TimeSlice() };
    table.snapshot = (await prepareStep(table.snapshot, step, options)).commit();
  }
  const { user, system } = process.cpuUsage(started);
  if (table.snapshot.keys.size !== table.size) throw new Error('void run: the table has another size');
  return (user + system) / DELTAS_A_ROUND;
}

function numbersFrom(first: number): readonly number[] {
  return Array.from({ length: KEYS_A_DELTA }, (_, index) => first + index);
}

function keyEntry(index: number): DerivedKeyContent {
  const key = KEYS[index % KEYS.length];
  if (key === undefined) throw new Error('no key');
  return {
    key_id: keyName(index),
    client_id: clientName(index % 100),
    jwk: key.jwk,
    status: 'active',
    expires_at: formatTime(nowSeconds() + 3600),
    provenance: { verified_subject: `system:serviceaccount:prod:workload-${index}` },
  };
}

function clientEntry(index: number) {
  return {
    client_id: clientName(index),
    issuer: 'https://control.shop.example/sites/bench',
    trust_domain: 'shop.example',
    subject: `client:${index}`,
    grants: [{ resource: 'orders', access: 'read' as const }],
  };
}

function keyName(index: number): string {
  return `dk_${String(index).padStart(26, '0')}`;
}

function clientName(index: number): string {
  return `client-${index}`;
}

function newKey(): SigningKey {
  return generateSigningKey('Ed25519');
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
