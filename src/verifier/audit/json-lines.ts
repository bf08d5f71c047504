/**
 * Audit events as JSON lines, to a file or standard output.
 * `best_effort` batches writes off the request path and counts what it has to drop; `required` writes each
 * event before the answer is given, so that no answer leaves without its record.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { pino } from 'pino';
import type { AuditMode, AuditSink } from './sink.ts';

export interface JsonLinesOptions {
  /** `-` is standard output. The file is created with mode 0600 and appended to. */
  readonly destination: string;
  readonly mode: AuditMode;
  /** Called for every event that was lost. */
  readonly onDropped: () => void;
}

const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
const BATCH_CHARACTERS = 64 * 1024;
const MAX_WRITE_BYTES = 1024 * 1024;
const FLUSH_INTERVAL_MS = 100;
const FILE_MODE = 0o600;

/** @throws Error of the file system when the destination cannot be opened. */
export function createJsonLinesSink(options: JsonLinesOptions): AuditSink {
  return options.mode === 'required' ? createWriteThroughSink(options) : createBatchingSink(options);
}

function openDestination(destination: string): number {
  return destination === '-' ? 1 : openSync(destination, 'a', FILE_MODE);
}

function createWriteThroughSink({ destination, onDropped }: JsonLinesOptions): AuditSink {
  const descriptor = openDestination(destination);
  let isClosed = false;
  let isTorn = false;
  return {
    record(event) {
      try {
        // A line that was written in part is ended first, so that it spoils no other.
        const line = Buffer.from(`${isTorn ? '\n' : ''}${JSON.stringify(event)}\n`);
        // Once closed, the number may be another file's.
        const written = isClosed ? 0 : writeSync(descriptor, line);
        if (written === line.byteLength) {
          isTorn = false;
          return true;
        }
        isTorn ||= written > 0;
      } catch {
        // Full disk, closed pipe, a reader that is too slow: all the same to the request.
      }
      onDropped();
      return false;
    },
    async close() {
      if (!isClosed && destination !== '-') closeSync(descriptor);
      isClosed = true;
    },
  };
}

/**
 * Lines are put together here: the stream measures all that it holds at each write, which for one line at a
 * time costs more than everything else about the line.
 */
function createBatchingSink({ destination, onDropped }: JsonLinesOptions): AuditSink {
  const stream = pino.destination({
    fd: openDestination(destination),
    sync: false,
    maxLength: MAX_BUFFERED_BYTES,
    maxWrite: MAX_WRITE_BYTES,
  });
  let broken = false;
  let isClosed = false;
  stream.on('drop', (batch: string) => {
    for (let lines = batch.split('\n').length - 1; lines > 0; lines--) onDropped();
  });
  stream.on('error', () => {
    broken = true;
  });
  stream.on('drain', () => {
    broken = false;
  });
  let batch = '';
  const flush = () => {
    if (batch === '') return;
    stream.write(batch);
    batch = '';
  };
  const timer = setInterval(flush, FLUSH_INTERVAL_MS).unref();
  return {
    record(event) {
      if (isClosed) {
        onDropped();
        return false;
      }
      batch += `${JSON.stringify(event)}\n`;
      if (batch.length >= BATCH_CHARACTERS) flush();
      return !broken;
    },
    close() {
      if (isClosed) return Promise.resolve();
      isClosed = true;
      clearInterval(timer);
      flush();
      return new Promise((resolve) => {
        stream.once('close', resolve);
        // What could not be written is lost: closes the descriptor.
        stream.once('error', () => stream.destroy());
        stream.end();
      });
    },
  };
}
