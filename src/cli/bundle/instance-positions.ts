/** Reads which bundle each verifier of a site holds: from its high-water mark, or from its `/readyz`. */
import { BundleError } from '../../bundle/format/bundle-error.ts';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import { CliError, faultName } from '../../process/program/errors.ts';
import { isBase64urlOf32Bytes } from '../../protocol/base64url.ts';
import { isJsonObject, type JsonObject, jsonObjects, parseStrictJson } from '../../protocol/strict-json.ts';
import { FileMark } from '../../verifier/loading/state/high-water-mark.ts';

export interface Instance {
  /** State directory or URL. */
  readonly name: string;
  readonly position: ChainPosition;
}

export interface InstanceSources {
  readonly authSite: string;
  readonly stateDirectories: readonly string[];
  readonly readyzUrls: readonly URL[];
}

/**
 * @throws CliError `instance_unreachable`, `instance_without_bundle`, `instance_of_another_site`; BundleError for an
 *   unreadable mark. One instance that cannot be read fails all, because it may hold the highest revision.
 */
export async function readInstances(sources: InstanceSources): Promise<readonly Instance[]> {
  const { authSite, readyzUrls, stateDirectories } = sources;
  const marks = stateDirectories.map((directory) => ofMark(directory, authSite));
  return Promise.all([...marks, ...readyzUrls.map((url) => ofReadyz(url, authSite))]);
}

/** The highest revision that an instance holds. @throws CliError `instances_disagree` */
export function highestOf(instances: readonly [Instance, ...Instance[]]): ChainPosition {
  const highest = instances.reduce((a, b) => (b.position.revision > a.position.revision ? b : a));
  const { head, revision } = highest.position;
  const other = instances.find(({ position }) => position.revision === revision && position.head !== head);
  if (other === undefined) return highest.position;
  const text = `${highest.name} and ${other.name} hold different contents as revision ${revision}`;
  throw new CliError('refused', 'instances_disagree', text);
}

async function ofMark(stateDirectory: string, authSite: string): Promise<Instance> {
  const position = await new FileMark({ stateDirectory, authSite }).position().catch((error: unknown) => {
    if (!(error instanceof BundleError) || error.code !== 'mark_of_another_site') throw error;
    throw anotherSite(stateDirectory, authSite);
  });
  if (position === undefined) throw withoutBundle(stateDirectory, 'it has no high-water mark');
  return { name: stateDirectory, position };
}

async function ofReadyz(url: URL, authSite: string): Promise<Instance> {
  const { auth_site: site, head, revision } = bundleCheckOf(await fetchText(url), url);
  const isRevision = typeof revision === 'number' && Number.isSafeInteger(revision) && revision >= 1;
  if (!isRevision || typeof head !== 'string' || !isBase64urlOf32Bytes(head)) {
    const why =
      'its check `bundle` has no revision: none is loaded, or its version is too old for this command';
    throw withoutBundle(url.href, why);
  }
  if (site !== authSite) throw anotherSite(url.href, authSite);
  return { name: url.href, position: { revision, head } };
}

function withoutBundle(name: string, why: string): CliError {
  return new CliError('refused', 'instance_without_bundle', `${name}: ${why}`);
}

function anotherSite(name: string, authSite: string): CliError {
  return new CliError('refused', 'instance_of_another_site', `${name} does not serve ${authSite}`);
}

/** A verifier that is not ready answers 503 with the same members. */
function bundleCheckOf(text: string, url: URL): JsonObject {
  const value = parsed(text);
  const checks = jsonObjects(isJsonObject(value) ? value.checks : undefined);
  const check = checks.find(({ name }) => name === 'bundle');
  if (check !== undefined) return check;
  throw unreachable(url, 'another program answers there');
}

function parsed(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch {
    return undefined;
  }
}

const TIMEOUT_MS = 5_000;
/** An answer names at most 100 routes. */
const MAX_ANSWER_BYTES = 256 * 1024;

async function fetchText(url: URL): Promise<string> {
  try {
    const { body } = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
    const chunks: Uint8Array[] = [];
    let byteLength = 0;
    for await (const chunk of body ?? []) {
      byteLength += chunk.byteLength;
      if (byteLength > MAX_ANSWER_BYTES) throw unreachable(url, 'the answer is too large');
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  } catch (error) {
    if (error instanceof CliError) throw error;
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw unreachable(url, faultName(cause));
  }
}

function unreachable(url: URL, why: string): CliError {
  return new CliError(
    'unreachable',
    'instance_unreachable',
    `${url.href} does not answer as /readyz (${why})`,
  );
}
