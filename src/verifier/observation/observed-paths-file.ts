/** The file that `--observe-paths-file` names: the shapes of unmatched paths of one site, as JSON. Source: docs/operate/observe.md. */
import { replaceDurably } from '../../process/files/durable-files.ts';
import { readInputText } from '../../process/files/input-files.ts';
import { CliError, usageError } from '../../process/program/errors.ts';
import { parsePathTemplate } from '../../protocol/path-template.ts';
import { formatMoment, isMoment } from '../../protocol/rfc3339.ts';
import { isJsonObject, readStrictJson } from '../../protocol/strict-json.ts';
import { MAX_SHAPES, type ObservedShape, SHAPE_METHODS } from './observed-paths.ts';

const FORMAT = 'proofgate.observed-paths/v1';
const MAX_BYTES = 1024 * 1024;
const JSON_LIMITS = { maxDepth: 4, maxMembers: 5 * MAX_SHAPES + 10 };

export interface ObservedPathsContent {
  readonly authSite: string;
  readonly shapes: readonly ObservedShape[];
  /** Requests of other methods, and of paths for which there was no room. */
  readonly others: number;
}

/** @throws CliError as `readInputText`, or `observed_paths_invalid` */
export async function readObservedPaths(path: string): Promise<ObservedPathsContent> {
  const read = readStrictJson(await readInputText(path, MAX_BYTES), JSON_LIMITS);
  const content = read.kind === 'read' ? contentOf(read.value) : undefined;
  if (content !== undefined) return content;
  throw usageError(
    'observed_paths_invalid',
    `${path} is not a file that --observe-paths-file wrote: remove it, or name another`,
  );
}

/** As {@link readObservedPaths}; undefined when there is no file. */
export async function readObservedPathsIfAny(path: string): Promise<ObservedPathsContent | undefined> {
  try {
    return await readObservedPaths(path);
  } catch (error) {
    if (error instanceof CliError && error.code === 'file_not_found') return undefined;
    throw error;
  }
}

/** Readable by its owner alone: paths may hold identifiers. @throws Error of the system */
export async function writeObservedPaths(path: string, content: ObservedPathsContent): Promise<void> {
  const { authSite, others, shapes } = content;
  const document = {
    format: FORMAT,
    auth_site: authSite,
    other_requests: others,
    shapes: shapes.map(({ firstSeenMs, lastSeenMs, method, pathTemplate, requests }) => ({
      method,
      path_template: pathTemplate,
      requests,
      first_seen: formatMoment(firstSeenMs),
      last_seen: formatMoment(lastSeenMs),
    })),
  };
  await replaceDurably(path, Buffer.from(`${JSON.stringify(document, undefined, 2)}\n`), 0o600);
}

function contentOf(value: unknown): ObservedPathsContent | undefined {
  if (!isJsonObject(value) || value.format !== FORMAT || !Array.isArray(value.shapes)) return undefined;
  const { auth_site: authSite, other_requests: others } = value;
  if (typeof authSite !== 'string' || !isCount(others) || value.shapes.length > MAX_SHAPES) return undefined;
  const shapes = value.shapes.map(shapeOf);
  const read = shapes.filter((shape) => shape !== undefined);
  return read.length < shapes.length ? undefined : { authSite, others, shapes: read };
}

function shapeOf(value: unknown): ObservedShape | undefined {
  if (!isJsonObject(value)) return undefined;
  const { first_seen: first, last_seen: last, method, path_template: pathTemplate, requests } = value;
  if (typeof method !== 'string' || !SHAPE_METHODS.has(method) || !isCount(requests)) return undefined;
  if (typeof pathTemplate !== 'string' || parsePathTemplate(pathTemplate).kind !== 'template')
    return undefined;
  if (!isMoment(first) || !isMoment(last)) return undefined;
  return { method, pathTemplate, requests, firstSeenMs: Date.parse(first), lastSeenMs: Date.parse(last) };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
