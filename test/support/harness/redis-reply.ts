/** Sends one command to a Redis or a Sentinel on a connection of its own and returns the answer of any type (RESP 2). */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export type RedisReply = string | number | null | readonly RedisReply[];

/** What the server answered in place of a value; the message is the server's own line. */
export class RedisErrorReply extends Error {
  override readonly name = 'RedisErrorReply';
}

/** Errors: `RedisErrorReply`; the socket's own when the server cannot be reached or ends the connection. */
export async function askRedis(port: number, words: readonly string[]): Promise<RedisReply> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    const bulks = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
    socket.write(`*${words.length}\r\n${bulks.join('')}`);
    return await readReply(socket);
  } finally {
    socket.destroy();
  }
}

/** `field:value` lines of an `INFO` or a `CLUSTER INFO`. */
export function infoFields(reply: RedisReply): ReadonlyMap<string, string> {
  const lines = String(reply).split('\r\n');
  return new Map(lines.filter((line) => line.includes(':')).map((line) => splitAtColon(line)));
}

/** A flat list of names and values, as Sentinel describes an instance. */
export function pairFields(reply: RedisReply): ReadonlyMap<string, string> {
  const words = Array.isArray(reply) ? reply.map(String) : [];
  const fields = new Map<string, string>();
  for (let at = 0; at + 1 < words.length; at += 2) fields.set(words[at] ?? '', words[at + 1] ?? '');
  return fields;
}

function splitAtColon(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1)];
}

async function readReply(socket: Socket): Promise<RedisReply> {
  let bytes: Buffer = Buffer.alloc(0);
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk]);
    const parsed = parseReply(bytes, 0);
    if (parsed === undefined) continue;
    if (parsed.value instanceof RedisErrorReply) throw parsed.value;
    return parsed.value;
  }
  throw new Error('the connection ended before the answer');
}

interface Parsed {
  readonly value: RedisReply | RedisErrorReply;
  /** Where the next one begins. */
  readonly end: number;
}

/** Undefined while bytes are missing. */
function parseReply(bytes: Buffer, start: number): Parsed | undefined {
  const lineEnd = bytes.indexOf('\r\n', start);
  if (lineEnd < 0) return undefined;
  const line = bytes.toString('utf8', start + 1, lineEnd);
  const end = lineEnd + 2;
  switch (String.fromCharCode(bytes[start] ?? 0)) {
    case '+':
      return { value: line, end };
    case '-':
      return { value: new RedisErrorReply(line), end };
    case ':':
      return { value: Number(line), end };
    case '$':
      return parseBulk(bytes, end, Number(line));
    case '*':
      return parseArray(bytes, end, Number(line));
    default:
      throw new Error(`no answer of Redis: ${line}`);
  }
}

function parseBulk(bytes: Buffer, start: number, length: number): Parsed | undefined {
  if (length < 0) return { value: null, end: start };
  const end = start + length + 2;
  return end > bytes.length ? undefined : { value: bytes.toString('utf8', start, end - 2), end };
}

function parseArray(bytes: Buffer, start: number, length: number): Parsed | undefined {
  if (length < 0) return { value: null, end: start };
  const values: RedisReply[] = [];
  let end = start;
  for (let count = 0; count < length; count += 1) {
    const element = parseReply(bytes, end);
    if (element === undefined) return undefined;
    values.push(element.value instanceof RedisErrorReply ? element.value.message : element.value);
    end = element.end;
  }
  return { value: values, end };
}
