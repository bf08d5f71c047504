/** Ways to change a signed document by somebody who knows what it looks like, and has no key that is pinned. */
import { DOCUMENTS, type DocumentType, signDocument } from '../../../../src/bundle/format/documents.ts';
import type { Corrupt, Random, ToCorrupt } from '../../../support/bundle/byte-corruptions.ts';
import { newSigningKey } from '../../../support/fixtures/bundle-content.ts';

const TYPES = Object.values(DOCUMENTS).map(({ type }) => type);

interface Signature {
  protected: string;
  signature: string;
}
interface Envelope {
  payload: string;
  signatures: Signature[];
}

const stranger = newSigningKey();

const read = (bytes: Buffer): Envelope => JSON.parse(bytes.toString('utf8'));
const write = (envelope: unknown): Buffer => Buffer.from(`${JSON.stringify(envelope)}\n`);
const decoded = (text: string): Buffer => Buffer.from(text, 'base64url');

/** A change of the document as its JSON has it. */
function edit(change: (envelope: Envelope, random: Random, from: ToCorrupt) => unknown): Corrupt {
  return (from, random) => {
    const envelope = read(from.bytes);
    return write(change(envelope, random, from) ?? envelope);
  };
}

/** A change of one base64url text somewhere in it. */
function editText(change: (text: string, random: Random) => string): Corrupt {
  return edit((envelope, random) => {
    const entry = random.pick(envelope.signatures);
    const place = random.int(3);
    if (place === 0) envelope.payload = change(envelope.payload, random);
    else if (place === 1) entry.protected = change(entry.protected, random);
    else entry.signature = change(entry.signature, random);
  });
}

/** A change of the text, for what JSON.stringify would not write. */
function editJson(change: (text: string, random: Random, from: ToCorrupt) => string): Corrupt {
  return (from, random) => Buffer.from(change(from.bytes.toString('utf8'), random, from));
}

const otherSigned = ({ others }: ToCorrupt, random: Random): Envelope =>
  read(random.pick(others.filter((bytes) => bytes.includes('"signatures"'))));

/** Changes that a strict parser rejects or that invalidate a signature, whatever the rest contains. */
const REFUSED: { readonly [kind: string]: Corrupt } = {
  payload_of_another: edit((envelope, random, from) => {
    envelope.payload = otherSigned(from, random).payload;
  }),
  signatures_of_another: edit((envelope, random, from) => {
    envelope.signatures = otherSigned(from, random).signatures;
  }),
  payload_edited: edit((envelope, random) => {
    const payload = decoded(envelope.payload);
    payload[random.int(payload.length)] = 0x30 + random.int(10);
    const text = payload.toString('base64url');
    envelope.payload = text === envelope.payload ? `${text}AAAA` : text;
  }),
  signed_by_stranger: edit((envelope) =>
    read(signDocument(typeOf(envelope), decoded(envelope.payload), [stranger])),
  ),
  signed_by_stranger_in_anothers_name: edit((envelope) => {
    const forged = read(signDocument(typeOf(envelope), decoded(envelope.payload), [stranger]));
    const [signature] = forged.signatures;
    envelope.signatures = envelope.signatures.map((entry) => ({
      ...entry,
      signature: signature?.signature ?? '',
    }));
  }),
  edited_and_signed_by_stranger: edit((envelope) => {
    const payload = Buffer.from(decoded(envelope.payload).toString().replace('"revision":', '"revision":1'));
    const forged = read(signDocument(typeOf(envelope), payload, [stranger]));
    return { ...forged, signatures: [...forged.signatures, ...envelope.signatures] };
  }),
  headers_exchanged: edit((envelope) => {
    const headers = envelope.signatures.map((entry) => entry.protected);
    const turned = [...headers.slice(1), headers[0] ?? ''];
    if (turned.length === 1) turned[0] = headerWith(turned[0] ?? '', { kid: stranger.publicKey.thumbprint });
    envelope.signatures.forEach((entry, index) => {
      entry.protected = turned[index] ?? '';
    });
  }),
  algorithm_changed: edit((envelope) => {
    envelope.signatures.forEach((entry) => {
      const { alg } = JSON.parse(decoded(entry.protected).toString());
      entry.protected = headerWith(entry.protected, { alg: alg === 'ES256' ? 'Ed25519' : 'ES256' });
    });
  }),
  type_changed: edit((envelope, random) => {
    const typ = random.pick(TYPES.filter((type) => type !== typeOf(envelope)));
    envelope.signatures.forEach((entry) => {
      entry.protected = headerWith(entry.protected, { typ });
    });
  }),
  too_few_signatures: edit((envelope, random) => {
    envelope.signatures = [random.pick(envelope.signatures)];
    // A freshness statement has but one signer.
    if (typeOf(envelope) === DOCUMENTS.freshness.type) envelope.signatures = [];
  }),
  one_signature_several_times: edit((envelope, random) => {
    const entry = random.pick(envelope.signatures);
    envelope.signatures = [entry, entry, entry];
    if (typeOf(envelope) === DOCUMENTS.freshness.type) envelope.payload = envelope.payload.slice(4);
  }),
  member_named_twice: editJson((text, random, from) => {
    const other = otherSigned(from, random);
    return random.pick([
      text.replace('{"payload":', `{"payload":"${other.payload}","payload":`),
      text.replace(',"signatures":', `,"payload":"${other.payload}","signatures":`),
      text.replace(',"signatures":', `,"signatures":${JSON.stringify(other.signatures)},"signatures":`),
      text.replace('"protected":', `"protected":"${other.signatures[0]?.protected}","protected":`),
      text.replace('"payload":', '"\\u0070ayload":"e30","payload":'),
    ]);
  }),
  member_added: edit((envelope, random) => {
    const header = { kid: stranger.publicKey.thumbprint };
    const [first, ...others] = envelope.signatures;
    return random.pick<unknown>([
      { ...envelope, header },
      { ...envelope, jwk: stranger.publicKey.jwk },
      { ...envelope, signatures: [{ ...first, header }, ...others] },
    ]);
  }),
  flattened: edit(({ payload, signatures: [first] }) => ({ payload, ...first })),
  in_a_list: edit((envelope) => [envelope]),
  /** The last character of 64 bytes has four unused bits: they decode to the same bytes. */
  base64url_not_canonical: edit((envelope, random) => {
    const entry = random.pick(envelope.signatures);
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const last = alphabet.indexOf(entry.signature.at(-1) ?? '');
    const other = alphabet[(last & 0x30) | ((last + 1 + random.int(15)) & 0x0f)] ?? '';
    const variant = entry.signature.slice(0, -1) + other;
    if (!decoded(variant).equals(decoded(entry.signature))) throw new Error('no variant of the same bytes');
    entry.signature = variant;
  }),
  base64url_padded: editText((text) => text + '='.repeat(4 - (text.length % 4))),
  base64url_with_white_space: editText((text, random) => {
    const at = 1 + random.int(text.length - 1);
    return text.slice(0, at) + random.pick(['\n', ' ', '\t', '\r\n']) + text.slice(at);
  }),
  base64_alphabet: edit((envelope) => {
    const entry = envelope.signatures.find(({ signature }) => /[-_]/.test(signature));
    if (entry === undefined) envelope.payload = `+${envelope.payload}`;
    else entry.signature = entry.signature.replaceAll('-', '+').replaceAll('_', '/');
  }),
  /** RFC 8032 section 5.1.7: S must be below the group's order. */
  ed25519_malleated: edit((envelope) => {
    envelope.signatures = envelope.signatures.map((entry) =>
      isEd25519(entry) ? { ...entry, signature: withOrderAdded(entry.signature) } : entry,
    );
  }),
  byte_order_mark: editJson((text) => `\ufeff${text}`),
};

/** Changes that keep payload, protected headers and enough signatures. */
const HARMLESS: { readonly [kind: string]: Corrupt } = {
  signatures_reordered: edit((envelope, random) => {
    envelope.signatures = random.shuffled(envelope.signatures);
  }),
  signature_to_spare_removed: edit((envelope, random) => {
    if (envelope.signatures.length > 1) envelope.signatures.splice(random.int(envelope.signatures.length), 1);
  }),
  strangers_signature_added: edit((envelope) => {
    const { signatures } = read(signDocument(typeOf(envelope), decoded(envelope.payload), [stranger]));
    envelope.signatures.push(...signatures);
  }),
  /** (r, n - s) holds where (r, s) does: another signature over the same. */
  es256_malleated: edit((envelope) => {
    envelope.signatures = envelope.signatures.map((entry) =>
      isEd25519(entry) ? entry : { ...entry, signature: withOtherS(entry.signature) },
    );
  }),
  members_reordered: edit(({ payload, signatures }) => ({ signatures, payload })),
  white_space_added: editJson((text, random) =>
    text.replaceAll(/(?<=[{,[])(?=["{])/g, () => random.pick(['', ' ', '\n', '\t\r\n'])),
  ),
  name_escaped: editJson((text) => text.replace('"signatures"', '"\\u0073ignatures"')),
};

export const ENVELOPE_CORRUPTIONS = { ...REFUSED, ...HARMLESS };
export const NEVER_TAKEN: ReadonlySet<string> = new Set(Object.keys(REFUSED));
export const ALWAYS_TAKEN: ReadonlySet<string> = new Set(Object.keys(HARMLESS));

function typeOf({ signatures: [first] }: Envelope): DocumentType {
  const { typ } = JSON.parse(decoded(first?.protected ?? '').toString());
  const found = TYPES.find((type) => type === typ);
  if (found === undefined) throw new Error('no type');
  return found;
}

function headerWith(text: string, more: object): string {
  const header = { ...JSON.parse(decoded(text).toString()), ...more };
  return Buffer.from(JSON.stringify(header)).toString('base64url');
}

function isEd25519(entry: Signature): boolean {
  return JSON.parse(decoded(entry.protected).toString()).alg === 'Ed25519';
}

const ED25519_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

function withOrderAdded(text: string): string {
  const signature = decoded(text);
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + ED25519_ORDER;
  const raised = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse();
  return Buffer.concat([signature.subarray(0, 32), raised]).toString('base64url');
}

function withOtherS(text: string): string {
  const signature = decoded(text);
  const s = P256_ORDER - BigInt(`0x${signature.subarray(32).toString('hex')}`);
  const other = Buffer.from(s.toString(16).padStart(64, '0'), 'hex');
  return Buffer.concat([signature.subarray(0, 32), other]).toString('base64url');
}
