/** Collects the credentials of a captured request, because they can also occur elsewhere, as in a query or a header. */
import type { CheckRequest } from '../../enforcement/ext-authz-grpc/messages.ts';
import {
  AUTHORIZATION_HEADER,
  PASSPORT_SCHEME,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from '../../protocol/wire-names.ts';
import type { Explanation } from '../../verifier/decision/explain/explain.ts';

const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  AUTHORIZATION_HEADER,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
  'cookie',
  'proxy-authorization',
]);
/** Minimum length: shorter parts occur in other texts by chance. */
const SHORTEST_PIECE = 6;

export function credentialsOf(check: CheckRequest, { credentials }: Explanation): readonly string[] {
  const http = check.attributes?.request?.http;
  const merged = Object.entries(http?.headers ?? {});
  const raw = (http?.header_map?.headers ?? []).map(({ key, raw_value, value }): [string, string] => [
    key ?? '',
    raw_value === undefined ? (value ?? '') : Buffer.from(raw_value).toString('latin1'),
  ]);
  const values = [...merged, ...raw]
    .filter(([name]) => CREDENTIAL_HEADERS.has(name.toLowerCase()))
    .flatMap(([, value]) => piecesOf(value));
  const jti = credentials?.proof.transcript.jti;
  return [...new Set([...values, ...(jti === undefined ? [] : [jti])])];
}

/** Splits `Scheme a.b.c` and `name=value; name=value`: each part, and the whole. */
function piecesOf(value: string): readonly string[] {
  return [value, ...value.split(/[\s.,;=]+/)].filter(
    (piece) => piece.length >= SHORTEST_PIECE && piece !== PASSPORT_SCHEME,
  );
}
