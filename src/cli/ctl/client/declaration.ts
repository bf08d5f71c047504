/** Declares a site at Control: compares a site file with it, and applies the differences. */
import { isJsonObject, type JsonObject, jsonObjects } from '../../../protocol/strict-json.ts';
import { parseStrictYaml, StrictYamlError } from '../../../protocol/strict-yaml.ts';
import type { ActivatingSource } from './await-active.ts';
import type { ControlApi, Resource } from './control-api.ts';
import { OperatorError } from './operator-error.ts';
import { sitePath, withReason } from './paths.ts';

export interface SiteFile {
  readonly siteId: string;
  /** Control validates it. */
  readonly declaration: JsonObject;
  readonly fileName: string;
}

export interface Step {
  readonly verb: string;
  readonly kind: string;
  readonly name: string;
  /** The changes, one line each. */
  readonly changes: readonly string[];
}

/** Control's answer to a declaration. */
export interface Declared {
  readonly steps: readonly Step[];
  /** What the file does not name, and what therefore stays. */
  readonly unnamed: readonly { readonly kind: string; readonly name: string }[];
  readonly warnings: readonly {
    readonly code: string;
    readonly message: string;
    readonly deniedSeconds?: number;
  }[];
  readonly activating: readonly ActivatingSource[];
  /** Secrets. */
  readonly tokens: readonly { readonly targetId: string; readonly name: string; readonly token: string }[];
  /** Of a dry run. */
  readonly etag: string | undefined;
}

export interface DeclareOptions {
  readonly dryRun: boolean;
  readonly prune: boolean;
  /** For the audit trail. */
  readonly reason?: string | undefined;
  /** Of the dry run that the declaration is based on. */
  readonly etag?: string | undefined;
}

/** A site of 100,000 members takes Control a while. */
const TIMEOUT_MS = 300_000;

/** Reads YAML or JSON. @throws OperatorError `site_file_invalid`, naming file and place */
export function readSiteFile(text: string, fileName: string): SiteFile {
  const declaration = readYaml(text, fileName);
  if (!isJsonObject(declaration)) throw invalid(fileName, 'the file must be an object');
  const { site } = declaration;
  const siteId = isJsonObject(site) ? site.site_id : undefined;
  if (typeof siteId !== 'string' || siteId === '') throw invalid(fileName, '/site/site_id: missing');
  return { siteId, declaration, fileName };
}

/** @throws OperatorError `site_file_invalid`, `declaration_unsupported`, and the codes of Control */
export async function declareSite(
  api: ControlApi,
  { siteId, declaration, fileName }: SiteFile,
  { dryRun, prune, reason, etag }: DeclareOptions,
): Promise<Declared> {
  const query = new URLSearchParams({ dry_run: String(dryRun), prune: String(prune) });
  const path = withReason(`${sitePath(siteId)}/declaration?${query}`, reason);
  try {
    return readAnswer(await api.put(path, declaration, etag, TIMEOUT_MS));
  } catch (error) {
    throw error instanceof OperatorError ? await explained(error, api, fileName) : error;
  }
}

/** Member of a site file for each kind that `--prune` removes. */
const PRUNED = {
  broker: 'brokers',
  client: 'clients',
  enrollment_policy: 'enrollment_policies',
  route: 'routes',
  source: 'sources',
} as const;

/** Kinds of which the steps remove more than half. */
export function largeRemovals(
  { declaration }: SiteFile,
  steps: readonly Step[],
): readonly { readonly kind: string; readonly removed: number; readonly before: number }[] {
  return Object.entries(PRUNED).flatMap(([kind, member]) => {
    const count = (verb: string) => steps.filter((step) => step.verb === verb && step.kind === kind).length;
    const removed = count('remove');
    const kept = jsonObjects(declaration[member]).length - count('create');
    return removed > kept ? [{ kind, removed, before: removed + kept }] : [];
  });
}

/** Tells faults of the file from those of the state of the site. */
async function explained(error: OperatorError, api: ControlApi, fileName: string): Promise<OperatorError> {
  if (error.code === 'member_fixed') return new OperatorError('usage', error.code, error.message);
  if (error.code === 'request_malformed') {
    const faults = error.faults.map(({ pointer, reason }) => `${pointer.replace(/^\/body/, '')}: ${reason}`);
    return invalid(fileName, faults.length === 0 ? error.message : faults.join('; '));
  }
  if (error.code === 'precondition_failed') {
    const text = 'the site was changed after it was compared, so nothing was applied: apply again';
    return new OperatorError(error.kind, error.code, text);
  }
  if (error.code !== 'not_found' || (await takesDeclarations(api))) return error;
  const text = 'this Control is older than `ctl apply`: upgrade it, or use the proofgate of its version';
  return new OperatorError('refused', 'declaration_unsupported', text);
}

async function takesDeclarations(api: ControlApi): Promise<boolean> {
  const { paths } = (await api.get('/openapi.json')).body;
  return isJsonObject(paths) && paths['/v1/sites/{site_id}/declaration'] !== undefined;
}

function readAnswer({ body, etag }: Resource): Declared {
  const objects = (member: string) => jsonObjects(body[member]);
  return {
    steps: objects('steps').map(({ verb, kind, name, changes }) => ({
      verb: String(verb),
      kind: String(kind),
      name: String(name),
      changes: Array.isArray(changes) ? changes.map(String) : [],
    })),
    unnamed: objects('unnamed').map(({ kind, name }) => ({ kind: String(kind), name: String(name) })),
    warnings: objects('warnings').map(({ code, message, denied_seconds: seconds }) => ({
      code: String(code),
      message: String(message),
      ...(typeof seconds === 'number' ? { deniedSeconds: seconds } : {}),
    })),
    activating: objects('activating').map(({ source_id: id, revision, name }) => ({
      sourceId: String(id),
      revision: Number(revision),
      name: String(name),
    })),
    tokens: objects('tokens').map(({ target_id: id, name, token }) => ({
      targetId: String(id),
      name: String(name),
      token: String(token),
    })),
    etag,
  };
}

function readYaml(text: string, fileName: string): unknown {
  try {
    return parseStrictYaml(text);
  } catch (error) {
    throw error instanceof StrictYamlError ? invalid(fileName, error.message) : error;
  }
}

function invalid(fileName: string, problem: string): OperatorError {
  return new OperatorError('usage', 'site_file_invalid', `${fileName}: ${problem}`);
}
