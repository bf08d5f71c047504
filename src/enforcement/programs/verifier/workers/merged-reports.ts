/** Merges the reports of several processes: metrics, readiness checks, and lines on standard output. */
import type { Readable, Writable } from 'node:stream';
import type { LoadedBundle, ReadinessCheck } from '../../../../process/admin/admin-server.ts';

export interface ProcessState {
  /** Name of the process, such as `worker 2`. */
  readonly process: string;
  /** Undefined until its first report. */
  readonly checks: readonly ReadinessCheck[] | undefined;
}

/** Each check once, with the first problem, the first warning and the highest revision. */
export function mergeChecks(states: readonly ProcessState[]): readonly ReadinessCheck[] {
  const merged = new Map<string, ReadinessCheck>();
  for (const { checks, process } of states) {
    const named = (text: string | undefined) => text && `${process}: ${text}`;
    for (const { bundle, name, problem, routes, warning } of checks ?? []) {
      const before = merged.get(name);
      merged.set(name, {
        name,
        problem: before?.problem ?? named(problem),
        warning: before?.warning ?? named(warning),
        routes: before?.routes ?? routes,
        bundle: higher(before?.bundle, bundle),
      });
    }
  }
  return [...merged.values()];
}

function higher(a: LoadedBundle | undefined, b: LoadedBundle | undefined): LoadedBundle | undefined {
  return a === undefined || (b !== undefined && b.revision > a.revision) ? b : a;
}

interface Family {
  readonly head: readonly string[];
  readonly samples: string[];
}

const COMMENT = /^# (?:HELP|TYPE) (\S+)/;

/**
 * A label on each series names its process. The values are not summed: a sum would fall when a worker restarts, and revisions
 * and ages have no sum.
 * Source: https://github.com/prometheus/docs/blob/main/docs/instrumenting/exposition_formats.md
 * @param texts in the exposition format, which requires that all lines of a metric form one group
 */
export function mergeMetrics(texts: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const text of texts) addText(families, text);
  const lines = [...families.values()].flatMap(({ head, samples }) => [...head, ...samples]);
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function addText(families: Map<string, Family>, text: string): void {
  let head: string[] = [];
  let family: Family | undefined;
  for (const line of text.split('\n')) {
    const name = COMMENT.exec(line)?.[1];
    if (name !== undefined) {
      if (line.startsWith('# HELP')) head = [];
      head.push(line);
      family = families.get(name) ?? { head, samples: [] };
      families.set(name, family);
    } else if (line !== '') {
      family?.samples.push(line);
    }
  }
}

const LINE_FEED = 0x0a;

/**
 * Copies whole lines, so that lines of several workers never mix. Backpressure reaches the workers: while the output is
 * blocked, they are not read, and their sinks report it.
 */
export function relayLines(from: Readable, to: Writable): void {
  let rest: Buffer = Buffer.alloc(0);
  from.on('data', (chunk: Buffer) => {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end === 0) {
      rest = Buffer.concat([rest, chunk]);
      return;
    }
    const lines = Buffer.concat([rest, chunk.subarray(0, end)]);
    rest = Buffer.from(chunk.subarray(end));
    if (to.write(lines)) return;
    from.pause();
    to.once('drain', () => from.resume());
  });
  from.on('end', () => {
    if (rest.byteLength > 0) to.write(Buffer.concat([rest, Buffer.of(LINE_FEED)]));
  });
}
