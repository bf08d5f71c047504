import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  isCanonicalAuthority,
  isCanonicalTarget,
  isScheme,
  normalizeAuthority,
  parseOrigin,
  pathOf,
} from '../../src/protocol/request-target.ts';

interface TargetVectors {
  readonly canonical: readonly string[];
  readonly refused: { readonly [rule: string]: readonly string[] };
  readonly authorities: readonly {
    readonly scheme: string;
    readonly given: string;
    readonly signed: string;
  }[];
  readonly authorities_refused: readonly { readonly scheme: string; readonly authority: string }[];
}

/** Published for implementers in other languages. */
const VECTORS: TargetVectors = JSON.parse(
  readFileSync(new URL('../vectors/targets.json', import.meta.url), 'utf8'),
);

describe('isCanonicalTarget', () => {
  it.each(VECTORS.canonical)('takes %j', (target) => {
    expect(isCanonicalTarget(target)).toBe(true);
  });

  describe.each(Object.entries(VECTORS.refused))('refuses: %s', (_, targets) => {
    it.each(targets)('%j', (target) => {
      expect(isCanonicalTarget(target)).toBe(false);
    });
  });

  it('has a rule for every byte, raw, in path and query', () => {
    const bytes = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code));
    const refusedIn = (prefix: string) => bytes.filter((byte) => !isCanonicalTarget(`${prefix}${byte}`));
    const invisible = bytes.filter((byte) => byte <= ' ' || byte > '~');
    expect(new Set(refusedIn('/a?b=c'))).toEqual(new Set([...invisible, '#']));
    expect(new Set(refusedIn('/a'))).toEqual(new Set([...invisible, '#', ';', '\\', '%']));
  });

  it('has a rule for every escape of one byte, in either case, in the path', () => {
    const escapes = Array.from({ length: 256 }, (_, code) => `%${code.toString(16).padStart(2, '0')}`);
    const accepted = escapes.filter((text) => isCanonicalTarget(`/a${text}`));
    expect(accepted.map((text) => decodeURIComponent(text)).join('')).toBe(' !"#$&\'()*+,:;<=>?@[]^`{|}');
    for (const text of escapes) {
      expect(isCanonicalTarget(`/a${text.toUpperCase()}`)).toBe(accepted.includes(text));
      expect(isCanonicalTarget(`/a?b=${text}`)).toBe(true);
    }
  });

  it('takes escapes of everything that is UTF-8 and no control character, and of nothing else', () => {
    const codePoint = fc.integer({ min: 0x80, max: 0x10ffff });
    fc.assert(
      fc.property(codePoint, (code) => {
        const bytes = [...Buffer.from(String.fromCodePoint(code))];
        const escaped = bytes.map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
        const isSurrogate = code >= 0xd800 && code <= 0xdfff;
        expect(isCanonicalTarget(`/a${escaped}`)).toBe(code >= 0xa0 || isSurrogate);
        expect(isCanonicalTarget(`/a${escaped.slice(0, -3)}`)).toBe(false);
      }),
      { examples: [[0x80], [0x9f], [0xa0], [0x2028], [0xff0f], [0xfffd], [0x10ffff]] },
    );
  });
});

describe('pathOf', () => {
  it.each([
    ['/a', '/a'],
    ['/a?b', '/a'],
    ['/a?', '/a'],
    ['/a?b?c=/d', '/a'],
    ['/?', '/'],
  ])('of %s is %s', (target, path) => {
    expect(pathOf(target)).toBe(path);
  });
});

/** Targets that are often canonical and often nearly so. */
const nearlyCanonical = fc
  .array(
    fc.constantFrom(
      ...[
        'a',
        'B',
        '0',
        '.',
        '..',
        '/',
        '//',
        '-',
        '_',
        '~',
        ':',
        '@',
        '!',
        '$',
        '&',
        "'",
        '(',
        ')',
        '*',
        '+',
        ',',
        '=',
      ],
      ...[
        ';',
        '\\',
        '?',
        '#',
        '%',
        ' ',
        '"',
        '<',
        '>',
        '[',
        ']',
        '^',
        '`',
        '{',
        '|',
        '}',
        '\t',
        '\n',
        '\0',
        'é',
      ],
      ...[
        '%20',
        '%2e',
        '%2E',
        '%2f',
        '%5c',
        '%25',
        '%00',
        '%41',
        '%3a',
        '%3B',
        '%3f',
        '%23',
        '%c3%a9',
        '%C3',
        '%zz',
      ],
    ),
    { maxLength: 8 },
  )
  .map((parts) => `/${parts.join('')}`);

/** Characters that `new URL()` escapes by itself; decoded once they are the same again. */
const ESCAPED_IN_PATH = /["<>^`{}]/g;
const ESCAPED_IN_QUERY = /["<>']/g;

function escapeLikeUrl(target: string): string {
  const escaped = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  const path = pathOf(target);
  // Node 20 leaves ^ as it is, later versions escape it.
  const pathPattern = new URL('http://h/^').pathname === '/^' ? /["<>`{}]/g : ESCAPED_IN_PATH;
  return path.replace(pathPattern, escaped) + target.slice(path.length).replace(ESCAPED_IN_QUERY, escaped);
}

describe('a canonical target', () => {
  it('is what new URL() makes of it, but for escapes of characters that no URL may hold', () => {
    let canonical = 0;
    fc.assert(
      fc.property(nearlyCanonical, (target) => {
        fc.pre(isCanonicalTarget(target));
        canonical += 1;
        expect(new URL(`http://host${target}`).href).toBe(`http://host${escapeLikeUrl(target)}`);
      }),
      { numRuns: 3_000 },
    );
    expect(canonical).toBe(3_000);
  });

  it('keeps its segments when an upstream decodes it: none appears, none goes away', () => {
    fc.assert(
      fc.property(nearlyCanonical, (target) => {
        fc.pre(isCanonicalTarget(target));
        const path = pathOf(target);
        const decoded = decodeURIComponent(path);
        expect(decoded.split('/')).toHaveLength(path.split('/').length);
        expect(decoded.split('/').some((segment) => segment === '.' || segment === '..')).toBe(false);
        expect(decoded).not.toMatch(/[\\%\p{Cc}]|\/\//u);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe('schemes', () => {
  it('are http and https in lower case', () => {
    expect(['http', 'https'].every(isScheme)).toBe(true);
    expect(['', 'HTTPS', 'ws', 'httpss', 'https:', ' http'].some(isScheme)).toBe(false);
  });
});

describe('normalizeAuthority', () => {
  it.each(VECTORS.authorities)('signs $scheme://$given as $signed', ({ scheme, given, signed }) => {
    expect(normalizeAuthority(scheme, given)).toBe(signed);
    expect(parseOrigin(`${scheme}://${signed}`)).toEqual({ scheme, authority: signed });
  });

  it.each(VECTORS.authorities_refused)('takes no origin $scheme://$authority', ({ scheme, authority }) => {
    expect(parseOrigin(`${scheme}://${authority}`)).toBeUndefined();
  });

  it.each([
    ['https', 'api.example', 'api.example'],
    ['https', 'API.Example', 'api.example'],
    ['https', 'api.example:443', 'api.example'],
    ['https', 'API.example:443', 'api.example'],
    ['http', 'api.example:80', 'api.example'],
    ['http', 'api.example:443', 'api.example:443'],
    ['https', 'api.example:80', 'api.example:80'],
    ['https', 'api.example:8443', 'api.example:8443'],
    ['https', 'api.example:0443', 'api.example:0443'],
    ['https', 'api.example:', 'api.example:'],
    ['https', 'api.example.', 'api.example.'],
    ['https', 'user@api.example:443', 'user@api.example'],
    ['https', '[2001:DB8::1]:443', '[2001:db8::1]'],
    ['https', '[2001:db8::443]', '[2001:db8::443]'],
    ['https', '443', '443'],
    ['https', 'api.example:443:443', 'api.example:443'],
    ['HTTPS', 'api.example:443', 'api.example:443'],
    ['', 'API.example', 'api.example'],
  ])('%s, %s: %s', (scheme, authority, expected) => {
    expect(normalizeAuthority(scheme, authority)).toBe(expected);
  });

  it('is at rest after one step for what it makes canonical', () => {
    const part = fc.constantFrom('a', 'B', '1', '.', '-', '_', ':', '80', ':80', ':443', '[', ']', '::', '@');
    fc.assert(
      fc.property(
        fc.constantFrom('http', 'https'),
        fc.array(part, { maxLength: 6 }).map((parts) => parts.join('')),
        (scheme, authority) => {
          const once = normalizeAuthority(scheme, authority);
          if (isScheme(scheme) && isCanonicalAuthority(scheme, once)) {
            expect(normalizeAuthority(scheme, once)).toBe(once);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe('parseOrigin', () => {
  it.each([
    ['https://api.example', 'https', 'api.example'],
    ['http://api.example', 'http', 'api.example'],
    ['https://api.example:8443', 'https', 'api.example:8443'],
    ['http://api.example:443', 'http', 'api.example:443'],
    ['https://a', 'https', 'a'],
    ['https://a_b.example', 'https', 'a_b.example'],
    ['https://xn--bcher-kva.example', 'https', 'xn--bcher-kva.example'],
    ['http://127.0.0.1:8080', 'http', '127.0.0.1:8080'],
    ['https://[2001:db8::1]', 'https', '[2001:db8::1]'],
    ['https://[::ffff:192.0.2.1]:8443', 'https', '[::ffff:192.0.2.1]:8443'],
  ])('reads %s', (text, scheme, authority) => {
    expect(parseOrigin(text)).toEqual({ scheme, authority });
  });

  it.each([
    '',
    'api.example',
    '//api.example',
    'https:api.example',
    'https:/api.example',
    'https://',
    'https://api.example/',
    'https://api.example/a',
    'https://api.example?a',
    'https://api.example#a',
    'https://api.example\n',
    ' https://api.example',
    'https://user@api.example',
    'https://user:password@api.example',
    'https://API.example',
    'https://api.example.',
    'https://api..example',
    'https://.api.example',
    'https://-api.example',
    'https://api-.example',
    'https://api.example:443',
    'http://api.example:80',
    'https://api.example:',
    'https://api.example:0',
    'https://api.example:0443',
    'https://api.example:123456',
    'https://api.example:a',
    'https://api.example,other.example',
    'https://api example',
    'https://%61pi.example',
    'https://bücher.example',
    'https://2001:db8::1',
    'https://[2001:DB8::1]',
    'https://[2001:db8::1%25eth0]',
    'https://[2001:db8::1',
    'https://[]',
    'https://*.example',
    'HTTPS://api.example',
    'ws://api.example',
    `https://${'a'.repeat(513)}`,
  ])('refuses %j', (text) => {
    expect(parseOrigin(text)).toBeUndefined();
  });
});

it('an authority has at most 512 characters', () => {
  expect(isCanonicalAuthority('https', 'a'.repeat(512))).toBe(true);
  expect(isCanonicalAuthority('https', 'a'.repeat(513))).toBe(false);
});

it('a scheme without a default port leaves the end of an authority alone', () => {
  expect(normalizeAuthority('ftp', 'API.undefined')).toBe('api.undefined');
  expect(normalizeAuthority('ws', 'api:80')).toBe('api:80');
});
