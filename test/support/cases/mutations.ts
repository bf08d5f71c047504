/**
 * Changes of one thing of a valid request by an observer, by another caller of the site, or by the holder of the
 * passport. None of them may be allowed.
 */
import { formatTranscript, parseTranscript } from '../../../src/protocol/transcript.ts';
import { SIGNATURE_HEADER, TRANSCRIPT_HEADER } from '../../../src/protocol/wire-names.ts';
import { newSigningKey } from '../fixtures/bundle-content.ts';
import { withOtherS } from '../fixtures/signature-spellings.ts';
import {
  type HeaderLine,
  type RequestEdits,
  type RequestPlan,
  type SignedRequest,
  signRequest,
  type TranscriptDraft,
  type WireRequest,
  withHeader,
  withoutHeader,
} from '../fixtures/signed-request.ts';
import type { SiteKeys } from '../fixtures/snapshot.ts';
import { type Random, TEXT_CHANGES, type TextChange } from '../random.ts';
import { partsOf } from './denial-case.ts';
import { PASSPORT_CHANGES, TRANSCRIPT_SPELLINGS } from './mutation-texts.ts';
import { FAULTS } from './one-fault.ts';

export interface Victim {
  readonly plan: RequestPlan;
  readonly request: SignedRequest;
  /** Headers that the proof signs, beside the credentials. */
  readonly signedNames: readonly string[];
}

interface Scene {
  readonly keys: SiteKeys;
  readonly victim: Victim;
  /** A valid request with another caller, target or body. */
  readonly other: Victim;
  readonly random: Random;
}

export interface Mutation {
  readonly kind: string;
  readonly applies?: (victim: Victim) => boolean;
  readonly apply: (scene: Scene) => WireRequest;
}

const AUTHORIZATION = 'authorization';
const CREDENTIALS = [AUTHORIZATION, TRANSCRIPT_HEADER, SIGNATURE_HEADER];
const CHANGES = Object.keys(TEXT_CHANGES) as readonly TextChange[];
const stranger = newSigningKey();
const strangerEc = newSigningKey('ES256');

/** Changes of single bytes in everything that is on the wire. */
const BYTES: readonly Mutation[] = CHANGES.flatMap((change) => {
  const alter = (text: string, random: Random) => TEXT_CHANGES[change](text, random);
  const ofLine = (name: string): Mutation => ({
    kind: `${name}: ${change}`,
    apply: ({ random, victim }) => withHeader(victim.request.wire, name, (value) => alter(value, random)),
  });
  const ofPart = (part: 'method' | 'scheme' | 'authority' | 'target'): Mutation => ({
    kind: `${part}: ${change}`,
    apply: ({ random, victim: { request } }) => ({
      ...request.wire,
      [part]: alter(request.wire[part], random),
    }),
  });
  return [
    ...CREDENTIALS.map(ofLine),
    ...(['method', 'scheme', 'authority', 'target'] as const).map(ofPart),
    {
      kind: `signed header: ${change}`,
      applies: ({ signedNames }) => signedNames.length > 0,
      apply: ({ random, victim: { request, signedNames } }) =>
        withHeader(request.wire, random.pick(signedNames), (value) => alter(value, random)),
    },
    {
      kind: `body: ${change}`,
      applies: ({ plan, request }) => plan.route !== 'uploads' && bodyText(request.wire) !== '',
      apply: ({ random, victim: { request } }) =>
        withBody(request.wire, Buffer.from(alter(bodyText(request.wire), random), 'latin1')),
    },
  ];
});

function bodyText({ body }: WireRequest): string {
  return body.kind === 'exact' ? Buffer.from(body.bytes).toString('latin1') : '';
}

function withBody(request: WireRequest, bytes: Uint8Array): WireRequest {
  return { ...request, body: { kind: 'exact', bytes } };
}

const BODIES: readonly Mutation[] = [
  {
    kind: 'body: where there was none',
    applies: ({ request }) => request.wire.body.kind === 'none',
    apply: ({ random, victim: { request } }) =>
      withBody(request.wire, Buffer.alloc(1 + random.below(40), 0x61)),
  },
  {
    kind: 'body: gone',
    applies: ({ plan, request }) => plan.route !== 'uploads' && bodyText(request.wire) !== '',
    apply: ({ victim: { request } }) => ({ ...request.wire, body: { kind: 'none' } }),
  },
  {
    kind: 'body: unknown',
    applies: ({ plan }) => plan.route !== 'uploads',
    apply: ({ victim: { request } }) => ({ ...request.wire, body: { kind: 'unknown' } }),
  },
];

const LINES: readonly Mutation[] = [
  {
    kind: 'line: repeated',
    apply: ({ random, victim: { request, signedNames } }) => {
      const line = lineOf(request.wire, random.pick([...CREDENTIALS, ...signedNames]));
      return insertLine(request.wire, line, random);
    },
  },
  {
    kind: 'line: repeated with another value',
    apply: ({ other, random, victim: { request, signedNames } }) => {
      const name = random.pick([...CREDENTIALS, ...signedNames]);
      const value = other.request.wire.headers.find((line) => line.name === name)?.value ?? 'other';
      return insertLine(request.wire, { name, value }, random);
    },
  },
  {
    kind: 'line: gone',
    apply: ({ random, victim: { request, signedNames } }) =>
      withoutHeader(request.wire, random.pick([...CREDENTIALS, ...signedNames])),
  },
  {
    kind: 'line: transcript and signature in one another’s place',
    apply: ({ victim: { request } }) => {
      const transcript = lineOf(request.wire, TRANSCRIPT_HEADER).value;
      const signature = lineOf(request.wire, SIGNATURE_HEADER).value;
      const swapped = withHeader(request.wire, TRANSCRIPT_HEADER, () => signature);
      return withHeader(swapped, SIGNATURE_HEADER, () => transcript);
    },
  },
  ...CREDENTIALS.map(
    (name): Mutation => ({
      kind: `${name}: of another request`,
      apply: ({ other, victim: { request } }) =>
        withHeader(request.wire, name, () => lineOf(other.request.wire, name).value),
    }),
  ),
  {
    kind: 'credentials: all of another request',
    apply: ({ other, victim: { request } }) =>
      CREDENTIALS.reduce(
        (wire, name) => withHeader(wire, name, () => lineOf(other.request.wire, name).value),
        request.wire,
      ),
  },
  {
    kind: 'proof: of another request',
    apply: ({ other, victim: { request } }) =>
      [TRANSCRIPT_HEADER, SIGNATURE_HEADER].reduce(
        (wire, name) => withHeader(wire, name, () => lineOf(other.request.wire, name).value),
        request.wire,
      ),
  },
];

function lineOf({ headers }: WireRequest, wanted: string): HeaderLine {
  const line = headers.find(({ name }) => name === wanted);
  if (line === undefined) throw new Error(`no line ${wanted}`);
  return line;
}

function insertLine(request: WireRequest, line: HeaderLine, random: Random): WireRequest {
  const at = random.below(request.headers.length + 1);
  return { ...request, headers: [...request.headers.slice(0, at), line, ...request.headers.slice(at)] };
}

/** Requests signed again, with the victim's `jti`, so that a mistake would consume it. */
function signedAgain(scene: Scene, edits: RequestEdits): WireRequest {
  const { keys, victim } = scene;
  const transcript = (draft: TranscriptDraft) => {
    draft.jti = victim.request.jti;
    edits.transcript?.(draft);
  };
  return signRequest(keys, { ...victim.plan, holder: victim.request.holder }, { ...edits, transcript }).wire;
}

const sameKind = (victim: Victim) =>
  victim.request.holder.publicKey.algorithm === 'Ed25519' ? stranger : strangerEc;
const isBrokered = ({ plan: { caller } }: Victim) => ['broker', 'brokerEc', 'automation'].includes(caller);

const SIGNED_BY_ANOTHER: readonly Mutation[] = [
  {
    kind: 'passport: signed by a stranger',
    apply: (scene) => signedAgain(scene, { passportKey: stranger }),
  },
  {
    kind: 'passport: signed by a stranger with the other algorithm',
    apply: (scene) => signedAgain(scene, { passportKey: strangerEc }),
  },
  {
    kind: 'passport: signed by its holder instead of the broker',
    applies: (victim) => isBrokered(victim) && victim.plan.holder !== undefined,
    apply: (scene) => signedAgain(scene, { passportKey: scene.victim.request.holder }),
  },
  {
    kind: 'proof: signed by a stranger',
    apply: (scene) => signedAgain(scene, { proofKey: sameKind(scene.victim) }),
  },
  {
    kind: 'proof: signed by another caller',
    apply: (scene) => signedAgain(scene, { proofKey: scene.keys.revoked }),
  },
  {
    kind: 'forgery: everything signed by a stranger who holds the passport',
    apply: (scene) =>
      signedAgain(scene, {
        claims: (claims) => void Object.assign(claims, { cnf: { jwk: stranger.publicKey.jwk } }),
        passportKey: stranger,
        proofKey: stranger,
      }),
  },
  {
    kind: 'forgery: everything signed by another caller of the site under its own kid',
    applies: ({ plan }) => plan.caller !== 'reporting',
    apply: (scene) =>
      signedAgain(scene, {
        joseHeader: (header) => void Object.assign(header, { alg: 'ES256', kid: 'dk_reporting' }),
        claims: (claims) => void Object.assign(claims, { cnf: { jwk: scene.keys.reporting.publicKey.jwk } }),
        passportKey: scene.keys.reporting,
        transcript: (draft) => void Object.assign(draft, { keyId: 'dk_reporting' }),
        proofKey: scene.keys.reporting,
      }),
  },
];

const PASSPORTS: readonly Mutation[] = [
  ...Object.entries(PASSPORT_CHANGES).flatMap(([name, change]): readonly Mutation[] => [
    {
      kind: `passport: ${name}`,
      apply: ({ random, victim: { request } }) =>
        withHeader(request.wire, AUTHORIZATION, () => `Passport ${change(request.jws, random)}`),
    },
    {
      kind: `passport: ${name}, with the holder's proof`,
      apply: (scene) => signedAgain(scene, { passport: (jws) => change(jws, scene.random) }),
    },
  ]),
  {
    kind: 'passport: the other ES256 signature',
    applies: ({ plan: { caller } }) => caller === 'brokerEc' || caller === 'reporting',
    apply: ({ victim: { request } }) =>
      withHeader(request.wire, AUTHORIZATION, () => `Passport ${withOtherEs256Signature(request.jws)}`),
  },
  {
    kind: 'passport: a derived key claims something else',
    applies: (victim) => !isBrokered(victim),
    apply: (scene) =>
      signedAgain(scene, {
        claims: (claims) => void Object.assign(claims, scene.random.pick(FALSE_CLAIMS)),
      }),
  },
];

const FALSE_CLAIMS: readonly { readonly [name: string]: unknown }[] = [
  { iss: 'https://broker.shop.example' },
  { sub: 'client:somebody' },
  { sub: 'spiffe://shop.example/ns/prod/sa/billing' },
  { trust_domain: 'other.example' },
  { aud: 'https://other.example' },
  { key_binding: 'attested_workload' },
  { provenance: { image: 'other' } },
  { context: { environment: 'staging' } },
  { cnf: { jwk: stranger.publicKey.jwk } },
  { nbf: 2 ** 40 },
  { exp: 2 ** 40 },
  { iat: 1 },
  { roles: ['admin'] },
];

function withOtherEs256Signature(jws: string): string {
  const at = jws.lastIndexOf('.') + 1;
  return jws.slice(0, at) + withOtherS(jws.slice(at));
}

type TranscriptChange = (draft: TranscriptDraft) => void;

/** The rows of the decision table about what a transcript says, and two changes that fit any transcript. */
const TRANSCRIPT_CHANGES: readonly (readonly [string, TranscriptChange])[] = [
  ...FAULTS.flatMap(({ outcome, request }) =>
    request?.transcript === undefined ? [] : ([[partsOf(outcome).detail ?? '', request.transcript]] as const),
  ),
  [
    'scheme, the other one',
    (draft) => void Object.assign(draft, { scheme: draft.scheme === 'http' ? 'https' : 'http' }),
  ],
  ['header more', (draft) => void draft.headers.unshift({ name: '0-more', value: '1' })],
];

/** The transcript after the change, not signed again. */
function changedText({ transcriptText }: SignedRequest, change: TranscriptChange): string {
  const transcript = parseTranscript(Buffer.from(transcriptText, 'latin1'), AUTHORIZATION);
  if (transcript === undefined) throw new Error('not a transcript');
  const draft = { ...transcript, headers: [...transcript.headers] };
  change(draft);
  return formatTranscript(draft);
}

const TRANSCRIPTS: readonly Mutation[] = [
  ...Object.entries(TRANSCRIPT_SPELLINGS).flatMap(([name, change]): readonly Mutation[] => [
    {
      kind: `transcript: ${name}`,
      apply: ({ random, victim: { request } }) =>
        withTranscript(request.wire, change(request.transcriptText, random)),
    },
    {
      kind: `transcript: ${name}, signed by the holder`,
      apply: (scene) => signedAgain(scene, { transcriptText: (text) => change(text, scene.random) }),
    },
  ]),
  ...TRANSCRIPT_CHANGES.flatMap(([name, change]): readonly Mutation[] => {
    const applies = ({ request }: Victim) => changedText(request, change) !== request.transcriptText;
    return [
      {
        kind: `transcript: another ${name}`,
        applies,
        apply: ({ victim: { request } }) => withTranscript(request.wire, changedText(request, change)),
      },
      {
        kind: `transcript: another ${name}, signed by the holder`,
        applies,
        apply: (scene) => signedAgain(scene, { transcript: change }),
      },
    ];
  }),
];

function withTranscript(request: WireRequest, text: string): WireRequest {
  return withHeader(request, TRANSCRIPT_HEADER, () => Buffer.from(text, 'latin1').toString('base64url'));
}

export const MUTATIONS: readonly Mutation[] = [
  ...BYTES,
  ...BODIES,
  ...LINES,
  ...SIGNED_BY_ANOTHER,
  ...PASSPORTS,
  ...TRANSCRIPTS,
];
