/** Recognizes what was pasted for an explanation, and makes the request of the API from it. */

/** The parts of a request that the form shows, as the gateway received them. */
export interface RequestParts {
  readonly method: string;
  /** With scheme and query, exactly as sent: it is not normalized. */
  readonly url: string;
  /** Lines `Name: value`. */
  readonly headers: string;
}

export type Pasted =
  /** A capture, or text that Control will reject. */
  | { readonly kind: 'other' }
  | { readonly kind: 'decision_id'; readonly id: string }
  | { readonly kind: 'event'; readonly event: AuditLine; readonly parts: RequestParts }
  /** What `proofgate sign` printed. `at`: when the proof was made, RFC 3339. */
  | {
      readonly kind: 'signed';
      readonly credentials: Members | undefined;
      readonly parts: RequestParts;
      readonly at: string | undefined;
    };

interface Members {
  readonly [name: string]: unknown;
}

/** A line of a verifier's audit log, which can have any member. */
export interface AuditLine extends Members {
  readonly event: 'proofgate.decision';
  readonly bundle_revision?: unknown;
  readonly method?: unknown;
  readonly outcome?: unknown;
  readonly reason?: unknown;
  readonly time?: unknown;
}

const DECISION_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const HEADER_LINE = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)$/;
const TRANSCRIPT = 'x-proofgate-transcript';
/** Source: `isSignOutput` of src/verifier/explain/sign-output.ts. */
const CREDENTIALS = ['authorization', 'x-proofgate-passport', TRANSCRIPT, 'x-proofgate-signature'];

export function recognize(text: string): Pasted {
  const trimmed = text.trim();
  if (DECISION_ID.test(trimmed)) return { kind: 'decision_id', id: trimmed.toLowerCase() };
  const lines = trimmed.split(/\r?\n/).map((line) => HEADER_LINE.exec(line));
  if (lines.every((line) => line !== null)) {
    return signed(lines.map(([, name = '', value = '']) => [name, value]));
  }
  const value = membersOf(trimmed);
  if (isAuditLine(value)) {
    return { kind: 'event', event: value, parts: { method: textOf(value.method), url: '', headers: '' } };
  }
  const entries = Object.entries(value).map(([name, each]) => [name, textOf(each)] as const);
  const names = entries.map(([name]) => name.toLowerCase());
  const isSigned = names.includes(TRANSCRIPT) && names.every((name) => CREDENTIALS.includes(name));
  return isSigned ? signed(entries) : { kind: 'other' };
}

function isAuditLine(value: Members): value is AuditLine {
  return value.event === 'proofgate.decision';
}

/** Of text that is no JSON object: none. */
function membersOf(text: string): Members {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function signed(lines: readonly (readonly [name: string, value: string])[]): Pasted {
  const names = lines.map(([name]) => name.toLowerCase());
  const line = transcriptLines(lines.find(([name]) => name.toLowerCase() === TRANSCRIPT)?.[1] ?? '');
  const memberOf = (name: string) => line.get(name) ?? '';
  const signedHeaders = [...line].flatMap(([name, value]) =>
    name.startsWith('header.') ? [[name.slice('header.'.length), value] as const] : [],
  );
  const seconds = Number(line.get('issued-at'));
  return {
    kind: 'signed',
    // A line that is there twice, or that `sign` does not print, would get lost in its JSON form.
    credentials:
      new Set(names).size === names.length && names.every((name) => CREDENTIALS.includes(name))
        ? Object.fromEntries(lines)
        : undefined,
    parts: {
      method: memberOf('method'),
      url: line.size === 0 ? '' : `${memberOf('scheme')}://${memberOf('authority')}${memberOf('target')}`,
      headers: [...lines, ...signedHeaders.filter(([name]) => !names.includes(name))]
        .map(([name, value]) => `${name}: ${value}`)
        .join('\n'),
    },
    at:
      seconds > 0 && seconds < 1e11 ? new Date(seconds * 1000).toISOString().replace('.000', '') : undefined,
  };
}

/** Lines by name of a transcript in base64url. Control parses it strictly; this only fills a form. */
function transcriptLines(encoded: string): ReadonlyMap<string, string> {
  try {
    const lines = atob(encoded.replaceAll('-', '+').replaceAll('_', '/')).split('\n');
    return new Map(
      lines
        .filter((line) => line.includes('='))
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  } catch {
    return new Map();
  }
}

const URL_PARTS = /^(https?):\/\/([^/?#\s]+)([/?]\S*)$/;

export function isUrl(url: string): boolean {
  return URL_PARTS.test(url);
}

/** The member `request` of the API. */
export function requestOf(text: string, pasted: Pasted, parts: RequestParts): string {
  if (pasted.kind !== 'event' && pasted.kind !== 'signed') return text;
  const isChanged = JSON.stringify(parts) !== JSON.stringify(pasted.parts);
  if (pasted.kind === 'event' && !isChanged) return text;
  if (pasted.kind === 'signed' && !isChanged && pasted.credentials !== undefined) {
    return JSON.stringify(pasted.credentials);
  }
  const [, scheme, authority, path] = URL_PARTS.exec(parts.url) ?? [];
  return JSON.stringify({
    ...(pasted.kind === 'event' ? { event: pasted.event } : {}),
    ...{ method: parts.method, scheme, authority, path },
    headers: parts.headers.split(/\r?\n/).filter((line) => line.trim() !== ''),
  });
}
