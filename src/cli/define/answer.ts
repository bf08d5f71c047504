/** Writes the response to a request: its body as it arrives, or the whole response as one JSON object. */
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { clockAheadSeconds, clockText } from '../../caller/sign/clock-difference.ts';
import type { ResponseHead } from '../../caller/sign/send-request.ts';
import { CliError } from '../../process/program/errors.ts';
import type { JsonMembers, Output } from '../../process/program/output.ts';
import { REASON_HEADER } from '../../protocol/wire-names.ts';

export interface AnswerOptions {
  readonly output: Output;
  /** Whether to write status and headers before the body; JSON always includes them. */
  readonly include: boolean;
  /** When the request was sent, by this clock. */
  readonly sentMs: number;
}

export interface ShownAnswer {
  /** Undefined for a status below 400. */
  readonly failure: { readonly code: string; readonly text: string } | undefined;
}

export async function showAnswer(
  head: ResponseHead,
  body: Readable,
  options: AnswerOptions,
): Promise<ShownAnswer> {
  const { output, include } = options;
  if (output.format !== 'text') {
    output.result([], await jsonAnswer(head, body));
  } else {
    if (include) output.stdout.write(headText(head));
    const endsLine = output.width !== undefined || isTextType(head);
    await pipeline(body, (chunks: AsyncIterable<Buffer>) => writeBody(chunks, output.stdout, endsLine));
  }
  return { failure: failureOf(head, options.sentMs) };
}

const LINE_FEED = 0x0a;

/** Bodies that are not text are written unchanged outside a terminal. */
function isTextType({ headers }: ResponseHead): boolean {
  const type = headers.find(({ name }) => name.toLowerCase() === 'content-type')?.value ?? '';
  return /^(?:text\/|application\/(?:[a-z0-9.+-]+\+)?(?:json|xml)\b)/i.test(type);
}

/** @param endsLine adds a line break where the body ends without one */
async function writeBody(
  chunks: AsyncIterable<Buffer>,
  stdout: Output['stdout'],
  endsLine: boolean,
): Promise<void> {
  let last: number | undefined;
  for await (const chunk of chunks) {
    if (!stdout.write(chunk)) await once(stdout, 'drain');
    last = chunk.at(-1) ?? last;
  }
  if (endsLine && last !== undefined && last !== LINE_FEED) stdout.write('\n');
}

function headText({ statusCode, statusText, headers }: ResponseHead): string {
  const lines = headers.map(({ name, value }) => `${name}: ${value}\n`);
  return `HTTP/1.1 ${`${statusCode} ${statusText}`.trim()}\n${lines.join('')}\n`;
}

/** Maximum size of a body in memory for JSON output. */
const MAX_JSON_BODY_BYTES = 16 * 1024 * 1024;

async function jsonAnswer(head: ResponseHead, body: Readable): Promise<JsonMembers> {
  const bytes = await readWhole(body);
  const text = bytes.toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(bytes);
  return {
    status: head.statusCode,
    headers: head.headers,
    body: isText ? text : bytes.toString('base64'),
    body_encoding: isText ? 'utf-8' : 'base64',
  };
}

async function readWhole(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let byteLength = 0;
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk);
    byteLength += bytes.byteLength;
    if (byteLength > MAX_JSON_BODY_BYTES) {
      throw new CliError(
        'refused',
        'answer_too_large',
        `the answer is larger than ${MAX_JSON_BODY_BYTES} bytes`,
      );
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function failureOf({ statusCode, headers }: ResponseHead, sentMs: number): ShownAnswer['failure'] {
  if (statusCode < 400) return undefined;
  const headerOf = (wanted: string) => headers.find(({ name }) => name.toLowerCase() === wanted)?.value;
  const reason = headerOf(REASON_HEADER);
  if (reason === undefined) return { code: 'http_status', text: `the answer has status ${statusCode}` };
  const aheadSeconds =
    reason === 'invalid_request_proof' ? clockAheadSeconds(headerOf('date'), sentMs, Date.now()) : undefined;
  const clock = aheadSeconds === undefined ? '' : `; ${clockText(aheadSeconds)}`;
  return { code: 'denied', text: `status ${statusCode}, reason ${reason}${clock}` };
}
