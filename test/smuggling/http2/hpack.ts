/** Header blocks that decoders may read differently (RFC 7541), and entries of the static table behind the signed lines. */
import { type Http2Case, named } from '../../support/hostile/cases.ts';
import { READ, SIGNS_READ } from './requests.ts';

const about = (name: string) => ({
  name: `HPACK: ${name}`,
  family: 'hpack',
  success:
    'the upstream receives a header, method or target that was not verified, or the point stops serving',
});

/** Every entry of the static table as one more header: `:path: /`, `:status: 200`, an empty `transfer-encoding`. */
const staticEntries = Array.from({ length: 61 }, (_, index) => index + 1).flatMap(
  (entry): readonly Http2Case[] => {
    const hex = (0x80 | entry).toString(16);
    return [
      {
        ...about(`static entry ${entry} behind`),
        signs: SIGNS_READ,
        frames: [{ kind: 'headers', lines: READ, hpackAfter: hex, endStream: true }],
      },
      ...(entry <= 14
        ? [
            {
              ...about(`static entry ${entry} before`),
              signs: SIGNS_READ,
              frames: [{ kind: 'headers', lines: READ, hpackBefore: hex, endStream: true }],
            } as const,
          ]
        : []),
    ];
  },
);

const FRAGMENTS = named({
  'index 0': '80',
  'index behind the tables': 'fe',
  'index of many bytes': 'ffffffffff0f',
  'index that overflows': 'ffffffffffffffffffff7f',
  'name index 0 with an empty name': '000000',
  'name index behind the tables': '0f7f0161',
  'table size update in the middle': '20',
  'table size update too large': '3fe1ffff03',
  'table size update that overflows': '3fffffffffffff7f',
  'string without an end': '000161057878',
  'string length of 2^31': '0001617f81ffffff07',
  'string length that overflows': '0001617fffffffffffffffffff7f',
  'Huffman string that is padded with zeros': '0001618100',
  'Huffman string with EOS': '00016184ffffffff',
  'Huffman string with too much padding': '000161831fffff',
  'Huffman string that decodes to CRLF': '00016188fffffffffffffcff',
  'Huffman name in capitals': '0082d7ab0161',
  'literal that is indexed, then used': '4001610162be',
  'literal that is indexed, then used twice': '400161016201be01be',
  'used before it is indexed': 'be4001610162',
  'one byte alone': '40',
});

const fragments = FRAGMENTS.flatMap(([name, hex]): readonly Http2Case[] => [
  {
    ...about(`${name}, behind`),
    signs: SIGNS_READ,
    frames: [{ kind: 'headers', lines: READ, hpackAfter: hex, endStream: true }],
  },
  {
    ...about(`${name}, before`),
    signs: SIGNS_READ,
    frames: [{ kind: 'headers', lines: READ, hpackBefore: hex, endStream: true }],
  },
]);

const blocks: readonly Http2Case[] = [
  {
    ...about('all lines indexed, a second stream uses them'),
    signs: [{ route: 'readOrder' }],
    frames: [
      { kind: 'headers', lines: READ, coding: 'indexed', endStream: true },
      { kind: 'headers', lines: [], hpackBefore: 'c4c3c2c1c0bfbe', stream: 3, endStream: true },
    ],
  },
  {
    ...about('lines never indexed'),
    signs: SIGNS_READ,
    frames: [{ kind: 'headers', lines: READ, coding: 'never_indexed', endStream: true }],
  },
  {
    ...about('a block of nothing'),
    signs: SIGNS_READ,
    frames: [{ kind: 'headers', lines: [], endStream: true }],
  },
  {
    ...about('a header 4,000 times by index'),
    signs: SIGNS_READ,
    frames: [{ kind: 'headers', lines: READ, hpackAfter: `4001610162${'be'.repeat(4000)}`, endStream: true }],
  },
  {
    ...about('a long header 1,000 times by index (bomb)'),
    signs: SIGNS_READ,
    frames: [
      {
        kind: 'headers',
        lines: READ,
        hpackAfter: `4001617fa10f${'62'.repeat(2000)}${'be'.repeat(1000)}`,
        endStream: true,
      },
    ],
  },
  {
    ...about('table size 0, then indexed lines'),
    signs: SIGNS_READ,
    frames: [
      { kind: 'headers', lines: READ, hpackBefore: '20', hpackAfter: '4001610162be', endStream: true },
    ],
  },
];

export const HPACK: readonly Http2Case[] = [...staticEntries, ...fragments, ...blocks];
