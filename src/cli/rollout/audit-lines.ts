/** Lines of audit files, and of standard input, without loading any of them whole. */
import type { Readable } from 'node:stream';
import { CliError, usageError } from '../../process/program/errors.ts';
import { openAuditFile } from '../explain/audit-search.ts';

/** @param paths `-` is standard input @throws CliError `audit_file_damaged`, and those of files */
export async function* auditLines(paths: readonly string[]): AsyncGenerator<string> {
  for (const path of paths) {
    const input: Readable = path === '-' ? process.stdin : await openAuditFile(path);
    try {
      yield* linesOf(input);
    } catch (error) {
      if (error instanceof CliError) throw error;
      throw usageError(
        'audit_file_damaged',
        `${path} cannot be read to its end: leave it out, or restore it`,
      );
    }
  }
}

/** Longer than any event: the rest of such a line is left out, so that memory stays bounded. */
const MAX_LINE_CHARACTERS = 1024 * 1024;

async function* linesOf(input: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const text of input.setEncoding('utf8')) {
    const lines = (rest + text).split('\n');
    rest = (lines.pop() ?? '').slice(0, MAX_LINE_CHARACTERS);
    yield* lines;
  }
  yield rest;
}
