/** The response to one request, as far as the demo uses it. */

export interface Answer {
  /** 0 when nothing was sent: then `reason` is the program's own. */
  readonly status: number;
  /** `X-Proofgate-Reason`, when Proofgate refused. */
  readonly reason: string | undefined;
  /** Of the problem document (RFC 9457). */
  readonly detail: string | undefined;
  /** Of the problem document; names the entry in the audit log. */
  readonly decisionId: string | undefined;
  /** The `X-Proofgate-Subject` that the upstream says it received. */
  readonly subject: string | undefined;
  /** Whether the upstream got anything of the request. */
  readonly reachedUpstream: boolean;
  /** Worth knowing beside the outcome. */
  readonly remark?: string;
}

export interface ReceivedAnswer {
  readonly status: number;
  readonly reason: string | undefined;
  readonly body: string;
}

export function answerOf({ status, reason, body }: ReceivedAnswer, reachedUpstream: boolean): Answer {
  const json = parseJson(body);
  const detail = stringMember(json, 'detail');
  const decisionId = stringMember(json, 'decision_id');
  return { status, reason, detail, decisionId, subject: echoedSubject(json), reachedUpstream };
}

/** The program refused to sign. @param code of its error */
export function notSent(code: string): Answer {
  const nothing = { detail: undefined, decisionId: undefined, subject: undefined };
  return { status: 0, reason: code, ...nothing, reachedUpstream: false };
}

/** Undefined when there is no such member, or it is no text. */
export function stringMember(json: unknown, name: string): string | undefined {
  const value = isRecord(json) ? json[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** The answer as `proofgate request --output json` prints it. */
export function parseRequestOutput(stdout: string): ReceivedAnswer | undefined {
  const json = parseJson(stdout);
  if (!isRecord(json) || typeof json.status !== 'number' || typeof json.body !== 'string') return undefined;
  const headers = Array.isArray(json.headers) ? json.headers.filter(isRecord) : [];
  const reason = headers.find(({ name }) => String(name).toLowerCase() === 'x-proofgate-reason')?.value;
  return { status: json.status, reason: typeof reason === 'string' ? reason : undefined, body: json.body };
}

/** The upstream answers with the headers that it received, as pairs. */
function echoedSubject(json: unknown): string | undefined {
  const lines: readonly unknown[] = isRecord(json) && Array.isArray(json.headers) ? json.headers : [];
  for (const line of lines) {
    if (!Array.isArray(line)) continue;
    const [name, value]: readonly unknown[] = line;
    if (String(name).toLowerCase() === 'x-proofgate-subject' && typeof value === 'string') return value;
  }
  return undefined;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Undefined for what is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
