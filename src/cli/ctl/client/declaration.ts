/** Declares a site at Control: compares a site file with it, and applies the differences. */
import { isJsonObject } from '../../../protocol/strict-json.ts';
import { parseStrictYaml, StrictYamlError } from '../../../protocol/strict-yaml.ts';
import type { ControlApi, Schemas } from './control-api.ts';
import { OperatorError } from './operator-error.ts';

export interface SiteFile {
  readonly siteId: string;
  /** Control validates it. */
  readonly declaration: Schemas['SiteDeclaration'];
  readonly fileName: string;
}

/** Control's answer to a declaration, with the ETag of a dry run. */
export type Declared = Schemas['DeclarationResult'] & { readonly etag: string | undefined };

export interface DeclareOptions {
  readonly dryRun: boolean;
  readonly prune: boolean;
  /** Whether a dry run also returns what bundles would contain. */
  readonly contents?: boolean;
  /** For the audit trail. */
  readonly reason?: string | undefined;
  /** ETag of the dry run on which the declaration is based. */
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
  return { siteId, declaration: declaration as unknown as Schemas['SiteDeclaration'], fileName };
}

/** @throws OperatorError `site_file_invalid`, `declaration_unsupported`, `preview_unsupported`, and the codes of Control */
export async function declareSite(
  api: ControlApi,
  { siteId, declaration, fileName }: SiteFile,
  { contents, dryRun, prune, reason, etag }: DeclareOptions,
): Promise<Declared> {
  try {
    const answer = await api.put('/v1/sites/{site_id}/declaration', {
      path: { site_id: siteId },
      query: { dry_run: `${dryRun}`, prune: `${prune}`, reason, contents: contents ? 'true' : undefined },
      body: declaration,
      etag,
      timeoutMs: TIMEOUT_MS,
    });
    return { ...NOTHING, ...answer.body, etag: answer.etag };
  } catch (error) {
    throw error instanceof OperatorError ? await explained(error, api, fileName) : error;
  }
}

/** A Control of another version may leave out a list that it does not know. */
const NOTHING = { steps: [], unnamed: [], warnings: [], activating: [], tokens: [] };

/** Member of a site file for each kind that `--prune` removes. */
const PRUNED = {
  broker: 'brokers',
  client: 'clients',
  enrollment_policy: 'enrollment_policies',
  oauth_issuer: 'oauth_issuers',
  route: 'routes',
  source: 'sources',
} as const;

/** Kinds of which the steps remove more than half. */
export function largeRemovals(
  { declaration }: SiteFile,
  steps: Declared['steps'],
): readonly { readonly kind: string; readonly removed: number; readonly before: number }[] {
  return Object.entries(PRUNED).flatMap(([kind, member]) => {
    const count = (verb: string) => steps.filter((step) => step.verb === verb && step.kind === kind).length;
    const removed = count('remove');
    const kept = (declaration[member]?.length ?? 0) - count('create');
    return removed > kept ? [{ kind, removed, before: removed + kept }] : [];
  });
}

/** Distinguishes faults of the file from faults of the site's state. */
async function explained(error: OperatorError, api: ControlApi, fileName: string): Promise<OperatorError> {
  if (error.code === 'member_fixed') return new OperatorError('usage', error.code, error.message);
  if (error.faults.some(({ pointer }) => pointer.endsWith('/contents'))) {
    const text = 'this Control is older than `ctl preview`: upgrade it first';
    return new OperatorError('refused', 'preview_unsupported', text);
  }
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
  const { paths } = (await api.untyped.get('/openapi.json')).body;
  return isJsonObject(paths) && paths['/v1/sites/{site_id}/declaration'] !== undefined;
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
