/** Authorities that some servers read as the site. */
import { denied, MALFORMED, type PublicCase, type Subject } from '../wire/conformance-case.ts';
import { withMoreHeaders } from '../wire/sign-wire-request.ts';

/** @param authority an authority that contains a dot */
export function otherAuthorities(scheme: string, authority: string): readonly string[] {
  return [
    'api.other.example',
    `${authority}.`,
    `${authority}:${scheme === 'http' ? '443' : '80'}`,
    `${authority}:8443`,
    `${authority}:080`,
    `${authority}:65616`,
    `${authority}:`,
    `${authority}:80:80`,
    `admin@${authority}`,
    `api.other.example:pw@${authority}`,
    `${authority}@api.other.example`,
    `${authority}#.other.example`,
    `${authority}/v1`,
    `${authority}\\.other.example`,
    `${authority},api.other.example`,
    `${authority} api.other.example`,
    `${authority}\tx`,
    `.${authority}`,
    `www.${authority}`,
    authority.replace('.', '%2e'),
    `[${authority}]`,
    '192.0.2.1',
    '[::1]',
    `${authority}\xa0`,
    `${authority}\xe9`,
    '*',
  ];
}

const USUAL = { scheme: 'http', authority: 'api.shop.example' };

/** A server with other hosts answers for them. */
const NO_SUCH_HOST: readonly number[] = [404];

const sentAuthority = ({ scheme, authority }: Subject, index: number) =>
  otherAuthorities(scheme, authority)[index] ?? '';

const OTHERS = otherAuthorities(USUAL.scheme, USUAL.authority).map(
  (authority, index): PublicCase => ({
    name: `authority ${JSON.stringify(authority)}`,
    expected: denied('bundle_route_missing', 'origin'),
    rejections: NO_SUCH_HOST,
    appliesTo: (subject) => sentAuthority(subject, index) !== subject.authority,
    make: (subject) => ({ ...subject.sign().request, authority: sentAuthority(subject, index) }),
  }),
);

const HOSTS: readonly PublicCase[] = [
  {
    name: 'no authority',
    protocols: ['HTTP/1.1'],
    expected: MALFORMED,
    make: (subject) => ({ ...subject.sign().request, authority: '' }),
  },
  {
    name: 'no authority over HTTP/2',
    rejections: NO_SUCH_HOST,
    protocols: ['HTTP/2'],
    expected: denied('bundle_route_missing', 'origin'),
    make: (subject) => ({ ...subject.sign().request, authority: '' }),
  },
  {
    name: 'a second Host: another',
    rejections: NO_SUCH_HOST,
    protocols: ['HTTP/1.1'],
    expected: MALFORMED,
    make: (subject) => withMoreHeaders(subject.sign().request, [['host', 'api.other.example']]),
  },
  {
    name: 'a second Host: the same',
    rejections: NO_SUCH_HOST,
    protocols: ['HTTP/1.1'],
    expected: MALFORMED,
    make: (subject) => withMoreHeaders(subject.sign().request, [['host', subject.authority]]),
  },
  {
    name: 'two Hosts, the first another',
    rejections: NO_SUCH_HOST,
    protocols: ['HTTP/1.1'],
    expected: MALFORMED,
    make: (subject) => ({
      ...withMoreHeaders(subject.sign().request, [['Host', subject.authority]]),
      authority: 'api.other.example',
    }),
  },
];

export const AUTHORITY_CASES: readonly PublicCase[] = [...OTHERS, ...HOSTS];
