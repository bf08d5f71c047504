/** Requests that differ from the signed ones. */
import type { Transcript } from '../../../protocol/transcript.ts';
import { PASSPORT_HEADER } from '../../../protocol/wire-names.ts';
import type { PublicFault, Subject, SubjectChanges } from '../wire/conformance-case.ts';
import type { WireRequest } from '../wire/exchange.ts';
import { withHeader, withMoreHeaders } from '../wire/sign-wire-request.ts';

type Fault = PublicFault<'request_binding_mismatch'>;

const tenant = { name: 'x-tenant', value: 'north' };
const order = Buffer.from('{"item":1,"count":2}');

/** A request that is signed with one wrong line. */
function wrongLine(detail: Fault['detail'], line: Partial<Transcript>): Fault {
  return {
    what: 'signed otherwise',
    detail,
    make: (subject) => subject.sign({ transcript: line }).request,
  };
}

/** A request that is signed correctly and then changed. */
function changed(
  detail: Fault['detail'],
  what: string,
  changes: SubjectChanges,
  change: (request: WireRequest, subject: Subject) => WireRequest,
): Fault {
  return { what, detail, make: (subject) => change(subject.sign(changes).request, subject) };
}

function changedBody(what: string, signed: Buffer | undefined, sent: Uint8Array | string): Fault {
  return {
    what,
    detail: 'content-sha256',
    needs: 'write_route',
    make: (subject) => ({ ...subject.signWrite({ body: signed }).request, body: sent }),
  };
}

/** A request that is signed with the query and sent with another. */
function changedQuery(what: string, signed: string, sent: string): Fault {
  return {
    what,
    detail: 'target',
    make: (subject) => {
      const path = pathOnly(subject);
      return { ...subject.sign({ target: `${path}${signed}` }).request, target: `${path}${sent}` };
    },
  };
}

const pathOnly = ({ target }: Subject) => target.split('?')[0] ?? '';

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(5) ^ 1, 5);
  return copy;
}

const LINES: readonly Fault[] = [
  wrongLine('auth-site', { authSite: 'another-auth-site' }),
  wrongLine('key-id', { keyId: 'another-key' }),
  wrongLine('passport-sha256', { passportSha256: Buffer.alloc(32).toString('base64url') }),
  wrongLine('issuer', { issuer: 'https://issuer.other.example' }),
  wrongLine('subject', { subject: 'another-subject' }),
  wrongLine('audience', { audience: 'https://other.audience.example' }),
  wrongLine('route-id', { routeId: 'another-route' }),
  wrongLine('method', { method: 'ANOTHER' }),
  {
    what: 'signed otherwise',
    detail: 'scheme',
    make: (subject) =>
      subject.sign({ transcript: { scheme: subject.scheme === 'http' ? 'https' : 'http' } }).request,
  },
  wrongLine('authority', { authority: 'api.other.example' }),
  wrongLine('target', { target: '/another/target' }),
  {
    what: 'signed otherwise',
    detail: 'content-sha256',
    needs: 'write_route',
    make: (subject) => subject.signWrite({ transcript: { contentSha256: '-' } }).request,
  },
  wrongLine('header.x-tenant', { headers: [tenant] }),
];

const QUERIES: readonly Fault[] = [
  changedQuery('a changed query', '?limit=1', '?limit=1000'),
  changedQuery('an added query', '', '?admin=1'),
  changedQuery('an empty query added', '', '?'),
  changedQuery('a query taken away', '?limit=1', ''),
  changedQuery('a query in another order', '?a=1&b=2', '?b=2&a=1'),
  changedQuery('an escape in the query, decoded', '?q=%2F', '?q=/'),
  changedQuery('an escape in the query, in other capitals', '?q=%2F', '?q=%2f'),
  changedQuery('a character of the query, escaped', '?q=a!b', '?q=a%21b'),
  changedQuery('a trailing & in the query', '?q=1', '?q=1&'),
  changedQuery('a second ? in the query', '?q=1', '??q=1'),
  changedQuery('a + in the query for a %20', '?q=a%20b', '?q=a+b'),
];

const BODIES: readonly Fault[] = [
  changedBody('one bit of the body changed', order, flipped(order)),
  changedBody('one byte appended to the body', order, Buffer.concat([order, Buffer.from('\n')])),
  changedBody('one byte of the body taken away', order, order.subarray(0, -1)),
  changedBody('CR LF for LF in the body', Buffer.from('a\nb'), 'a\r\nb'),
  changedBody('bytes of the body that are not UTF-8', Buffer.of(0x61, 0xff), Buffer.of(0x61, 0xfe)),
  changedBody('the body taken away', order, ''),
  changedBody('a body added to an empty POST', undefined, order),
  changed('content-sha256', 'a body added to a GET', {}, (request) => ({ ...request, body: order })),
  changed('content-sha256', 'a chunked body added to a GET', {}, (request) => ({
    ...request,
    body: order,
    framing: 'open',
  })),
];

const HEADERS: readonly Fault[] = [
  changed('header.x-tenant', 'a signed header changed', { signedHeaders: [tenant] }, (request) =>
    withHeader(request, tenant.name, 'south'),
  ),
  changed('header.x-tenant', 'a signed header taken away', { signedHeaders: [tenant] }, (request) =>
    withHeader(request, tenant.name),
  ),
  changed('header.x-tenant', 'a signed header emptied', { signedHeaders: [tenant] }, (request) =>
    withHeader(request, tenant.name, ''),
  ),
  changed('header.x-tenant', 'a signed header repeated', { signedHeaders: [tenant] }, (request) =>
    withMoreHeaders(request, [[tenant.name, 'south']]),
  ),
  changed(
    'header.x-tenant',
    'a signed header repeated with the same value',
    { signedHeaders: [tenant] },
    (request) => withMoreHeaders(request, [[tenant.name, tenant.value]]),
  ),
  changed('header.x-tenant', 'a signed header under a name with _', { signedHeaders: [tenant] }, (request) =>
    withMoreHeaders(withHeader(request, tenant.name), [['x_tenant', tenant.value]]),
  ),
  changed('header.x-tenant', 'a signed header joined with another', { signedHeaders: [tenant] }, (request) =>
    withHeader(request, tenant.name, 'north, south'),
  ),
];

const token = { name: 'authorization', value: 'Bearer 1' };
/** The application's `Authorization`, on a route with `passport_header`. */
const changedToken = (what: string, change: (request: WireRequest) => WireRequest): Fault => ({
  ...changed('header.authorization', `a signed Authorization ${what}`, { signedHeaders: [token] }, change),
  passportIn: PASSPORT_HEADER,
});

const TOKENS: readonly Fault[] = [
  changedToken('changed', (request) => withHeader(request, token.name, 'Bearer 2')),
  changedToken('taken away', (request) => withHeader(request, token.name)),
  changedToken('repeated', (request) => withMoreHeaders(request, [[token.name, token.value]])),
];

export const BINDING_FAULTS: readonly Fault[] = [...LINES, ...QUERIES, ...BODIES, ...HEADERS, ...TOKENS];
