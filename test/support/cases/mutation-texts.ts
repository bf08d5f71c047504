/** Other spellings of passports and transcripts. */
import type { Random } from '../random.ts';

type JwsChange = (jws: string, random: Random) => string;

const encode = (text: string) => Buffer.from(text, 'latin1').toString('base64url');
const decode = (part: string) => Buffer.from(part, 'base64url').toString('latin1');

const ofPart =
  (index: 0 | 1, change: (text: string, random: Random) => string): JwsChange =>
  (jws, random) =>
    jws
      .split('.')
      .map((part, at) => (at === index ? encode(change(decode(part), random)) : part))
      .join('.');
const ofClaims = (change: (text: string, random: Random) => string) => ofPart(1, change);
const ofHeader = (change: (text: string, random: Random) => string) => ofPart(0, change);
const withMember = (text: string, member: string) => `${text.slice(0, -1)},${member}}`;
const put = (text: string, change: object) => JSON.stringify({ ...JSON.parse(text), ...change });

/** None of these is signed again. */
export const PASSPORT_CHANGES: { readonly [name: string]: JwsChange } = {
  'white space in the claims': ofClaims((text, random) =>
    text.replace(random.pick(['{', ':', ',']), (mark) => mark + random.pick([' ', '\n', '\t', '\r'])),
  ),
  'claims in another order': ofClaims((text) =>
    JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).reverse())),
  ),
  'an escaped character in the claims': ofClaims((text) => text.replace('"iss"', '"\\u0069ss"')),
  'a claim twice': ofClaims((text, random) =>
    withMember(text, random.pick(['"sub":"client:billing"', '"exp":9999999999', '"iss":"x"'])),
  ),
  'an unknown claim': ofClaims((text) => withMember(text, '"admin":"true"')),
  'a number spelled otherwise': ofClaims((text, random) =>
    text.replace(/"exp":(\d+)/, (_, digits) => `"exp":${random.pick([`${digits}.0`, `${digits}e0`])}`),
  ),
  'another claim': ofClaims((text, random) =>
    put(
      text,
      random.pick([{ sub: 'client:admin' }, { exp: 2 ** 40 }, { aud: 'x' }, { jti: 'another-passport' }]),
    ),
  ),
  'alg none': ofHeader((text) => put(text, { alg: 'none' })),
  'another alg': ofHeader((text) =>
    put(text, { alg: JSON.parse(text).alg === 'ES256' ? 'Ed25519' : 'ES256' }),
  ),
  'another typ': ofHeader((text, random) =>
    put(text, { typ: random.pick(['JWT', 'at+jwt', 'proofgate-bundle+jws']) }),
  ),
  'another kid': ofHeader((text, random) => {
    const kids = ['broker-ed', 'broker-ec', 'automation-1', 'dk_billing', 'dk_reporting', '../x'];
    return put(text, { kid: random.pick(kids.filter((kid) => kid !== JSON.parse(text).kid)) });
  }),
  'a key in the header': ofHeader((text) =>
    put(text, { jwk: { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) } }),
  ),
  'a critical extension': ofHeader((text) => put(text, { crit: ['b64'], b64: false })),
  'a fourth part': (jws) => `${jws}.`,
  'no signature': (jws) => jws.replace(/[^.]+$/, ''),
  'a signature of zeros': (jws) => jws.replace(/[^.]+$/, encode('\0'.repeat(64))),
  'the parts of a JSON serialization': (jws) => {
    const [header, payload, signature] = jws.split('.');
    return JSON.stringify({ protected: header, payload, signature });
  },
};

export const TRANSCRIPT_SPELLINGS: { readonly [name: string]: (text: string, random: Random) => string } = {
  'CRLF line ends': (text) => text.replaceAll('\n', '\r\n'),
  'no last line end': (text) => text.slice(0, -1),
  'an empty line at the end': (text) => `${text}\n`,
  'a line more': (text) => `${text}role=admin\n`,
  'a header line more': (text) => `${text}header.x-more=1\n`,
  'a line twice': (text, random) => {
    const lines = text.split('\n').slice(0, -1);
    const at = random.below(lines.length);
    return `${[...lines.slice(0, at + 1), ...lines.slice(at)].join('\n')}\n`;
  },
  'a line less': (text, random) => {
    const lines = text.split('\n').slice(0, -1);
    return `${lines.toSpliced(random.below(lines.length), 1).join('\n')}\n`;
  },
  'two lines in the other order': (text, random) => {
    const lines = text.split('\n').slice(0, -1);
    const at = random.below(lines.length - 1);
    return `${[...lines.slice(0, at), lines[at + 1], lines[at], ...lines.slice(at + 2)].join('\n')}\n`;
  },
  'a space at the end of a line': (text, random) => {
    const lines = text.split('\n').slice(0, -1);
    const at = random.below(lines.length);
    return `${lines.with(at, `${lines[at]} `).join('\n')}\n`;
  },
  'names in capitals': (text) => text.replace('method=', 'Method='),
  'another version': (text) => text.replace('transcript-v1', 'transcript-v2'),
  'a leading zero': (text) => text.replace('issued-at=', 'issued-at=0'),
  'a plus sign': (text) => text.replace('expires-at=', 'expires-at=+'),
  'a byte order mark': (text) => `\xef\xbb\xbf${text}`,
};
