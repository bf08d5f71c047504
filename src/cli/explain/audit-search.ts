/** Finds a decision's audit event in an audit file and in the rotated files beside it, without loading any of them whole. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { CliError, usageError } from '../../process/program/errors.ts';
import { DECISION_EVENT_NAME } from '../../process/telemetry/decision-event.ts';
import { isJsonObject, parseStrictJson } from '../../protocol/strict-json.ts';
import { MAX_LINE_BYTES, openAuditFile } from '../audit/audit-lines.ts';

const LF = 0x0a;

/**
 * @returns the event's line
 * @throws CliError `decision_not_found`, `audit_file_damaged`, and those of files
 */
export async function findDecision(auditFile: string, decisionId: string): Promise<string> {
  const rotated = await rotatedFiles(auditFile);
  let damaged: string | undefined;
  for (const path of [auditFile, ...rotated]) {
    const found = await searchFile(path, decisionId, path === auditFile && rotated.length > 0);
    if (found.line !== undefined) return found.line;
    if (found.isDamaged) damaged ??= path;
  }
  if (damaged !== undefined) {
    throw usageError('audit_file_damaged', `${damaged} is damaged, and no other file has this decision`);
  }
  const files = rotated.length === 0 ? auditFile : `${auditFile} and ${rotated.length} rotated files`;
  throw usageError('decision_not_found', `no decision with this ID in ${files}`);
}

/**
 * Files with the names that logrotate gives, the newest first: `audit.jsonl.1`, `audit.jsonl-20261121.gz`,
 * `audit-20261121.jsonl`.
 */
async function rotatedFiles(auditFile: string): Promise<readonly string[]> {
  const [folder, name, extension] = [dirname(auditFile), basename(auditFile), extname(auditFile)];
  const stem = basename(auditFile, extension);
  const isRotated = (other: string) => {
    if (other.startsWith(`${name}.`) || other.startsWith(`${name}-`)) return true;
    const plain = other.replace(/\.gz$/, '');
    return extension !== '' && plain !== name && plain.startsWith(`${stem}-`) && plain.endsWith(extension);
  };
  const names = await readdir(folder).catch(() => []);
  const files = names.filter(isRotated).map(async (other) => {
    const path = join(folder, other);
    const stats = await stat(path).catch(() => undefined);
    return stats?.isFile() ? [{ path, changedMs: stats.mtimeMs }] : [];
  });
  return (await Promise.all(files))
    .flat()
    .sort((a, b) => b.changedMs - a.changedMs)
    .map(({ path }) => path);
}

interface Found {
  readonly line: string | undefined;
  /** Whether a line with the ID is no event, or the file cannot be read to its end. */
  readonly isDamaged: boolean;
}

/** @param mayBeMissing between its rotation and the next event the file does not exist */
async function searchFile(path: string, decisionId: string, mayBeMissing: boolean): Promise<Found> {
  let isDamaged = false;
  try {
    for await (const line of linesWith(await openAuditFile(path), Buffer.from(decisionId))) {
      const kind = kindOf(line, decisionId);
      if (kind === 'event') return { line, isDamaged: false };
      if (kind === 'damaged') isDamaged = true;
    }
  } catch (error) {
    if (!(error instanceof CliError)) isDamaged = true;
    else if (!mayBeMissing || error.code !== 'file_not_found') throw error;
  }
  return { line: undefined, isDamaged };
}

function kindOf(line: string, decisionId: string): 'event' | 'damaged' | 'other' {
  try {
    const value = parseStrictJson(line);
    const isEvent = isJsonObject(value) && value.event === DECISION_EVENT_NAME;
    return isEvent && value.decision_id === decisionId ? 'event' : 'other';
  } catch {
    return 'damaged';
  }
}

async function* linesWith(chunks: Readable, text: Buffer): AsyncGenerator<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, Buffer.from(chunk)]);
    const end = bytes.lastIndexOf(LF) + 1;
    yield* linesIn(bytes.subarray(0, end), text);
    rest = bytes.subarray(end);
    if (rest.byteLength > MAX_LINE_BYTES) rest = Buffer.alloc(0);
  }
  yield* linesIn(rest, text);
}

/** @param bytes whole lines; the last may have no line break */
function* linesIn(bytes: Buffer, text: Buffer): Generator<string> {
  for (let at = bytes.indexOf(text); at !== -1; ) {
    const start = bytes.lastIndexOf(LF, at) + 1;
    const lineBreak = bytes.indexOf(LF, at);
    const end = lineBreak === -1 ? bytes.byteLength : lineBreak;
    yield bytes.subarray(start, end).toString('utf8');
    at = bytes.indexOf(text, end);
  }
}
