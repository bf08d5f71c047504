/** `proofgate bundle routes`: proposes routes for the operations of an OpenAPI document, or for paths that a verifier has seen. */
import { basename } from 'node:path';
import { usageError } from '../../../process/program/errors.ts';
import {
  choice,
  optional,
  parsed,
  type SettingValues,
  text,
  withDefault,
} from '../../../process/settings/settings.ts';
import { parsePathTemplate } from '../../../protocol/path-template.ts';
import { parseTime } from '../../../protocol/rfc3339.ts';
import type { ShownApi } from '../../bundle/route-proposal.ts';
import { type CliContext, command } from '../../define/define-command.ts';

const SETTINGS = {
  openapi: optional(text('--openapi <file>', 'OpenAPI 3.0 or 3.1 document, YAML or JSON; - for stdin')),
  observed: optional(
    text(
      '--observed <file>',
      "in place of --openapi: paths without a route, from a verifier's --observe-paths-file",
    ),
  ),
  prefix: optional(
    parsed(
      text('--prefix <path>', 'path before each of the document, in place of that of its servers'),
      prefixOf,
    ),
  ),
  resourceFrom: withDefault(
    choice(
      '--resource-from <source>',
      "what becomes a route's resource: first literal of the path, or first tag",
      ['path', 'tag'],
    ),
    'path',
  ),
  like: optional(
    text(
      '--like <file>',
      'site file or bundle in YAML that the routes are for: its form, the callers of its first route, no route twice',
    ),
  ),
  observeUntil: optional(
    parsed(
      text(
        '--observe-until <time>',
        'routes are observed until then, at most 30 days ahead, and then enforced',
      ),
      timeOf,
    ),
  ),
  allowObserveOut: optional(
    text(
      '--allow-observe-out <file>',
      "with --observe-until: write the verifier's part, for its --config file",
    ),
  ),
};

function timeOf(value: string): string {
  if (parseTime(value) !== undefined) return value;
  throw usageError(
    'bad_value',
    '--observe-until must be a time in UTC with whole seconds, such as 2026-12-05T00:00:00Z',
  );
}

function prefixOf(value: string): string {
  const prefix = value.replace(/\/$/, '');
  const template = parsePathTemplate(prefix === '' ? '/' : prefix);
  if (template.kind === 'template' && !prefix.includes('{')) return prefix;
  throw usageError('bad_value', '--prefix must be a path such as /v1, or / for none');
}

export const bundleRoutesCommand = command({
  name: 'routes',
  summary: 'Propose routes for an OpenAPI document, or for observed paths',
  settings: SETTINGS,
  examples: [
    'proofgate bundle routes --openapi api.yaml --like site.yaml',
    'proofgate bundle routes --openapi api.yaml --prefix /v1 --resource-from tag',
    'proofgate bundle routes --openapi api.yaml --like site.yaml --observe-until 2026-12-12T00:00:00Z --allow-observe-out observe.yaml',
    'proofgate bundle routes --observed paths.json --like site.yaml',
  ],
  run: ({ settings }, context) => showRoutes(settings, context),
});

async function showRoutes(settings: SettingValues<typeof SETTINGS>, { output }: CliContext): Promise<void> {
  const { proposeRoutes } = await import('../../../bundle/authoring/openapi/propose-routes.ts');
  const { examplePattern } = await import('../../../bundle/authoring/openapi/route-pattern.ts');
  const { allowObserveText, proposalLines, proposalMembers } = await import('../../bundle/route-proposal.ts');
  const { allowObserveOut, observeUntil, resourceFrom } = settings;
  if (allowObserveOut !== undefined && observeUntil === undefined)
    throw usageError('flag_required', '--allow-observe-out needs --observe-until');
  const api = await apiOf(settings);
  const origin = api.servers.map((server) => server.origin).find((found) => found !== undefined);
  const pattern = await patternOf(settings.like);
  const proposal = proposeRoutes(api, { resourceFrom, known: pattern?.known ?? [] });
  const shown = {
    api,
    proposal,
    pattern: pattern ?? examplePattern(origin),
    isExample: pattern === undefined,
    observeUntil,
  };
  if (allowObserveOut !== undefined) {
    const { replaceFile } = await import('../../../process/files/output-files.ts');
    await replaceFile({ path: allowObserveOut, content: allowObserveText(shown), mode: 0o644 });
  }
  output.result(proposalLines(shown), proposalMembers(shown));
}

/** @throws CliError `flag_required`, `routes_source_repeated`, and what reading the file throws */
async function apiOf({ observed, openapi, prefix }: SettingValues<typeof SETTINGS>): Promise<ShownApi> {
  if (openapi === undefined && observed === undefined)
    throw usageError('flag_required', 'give --openapi or --observed');
  if (observed === undefined) return readOpenApi(openapi ?? '-', prefix);
  if (openapi !== undefined || prefix !== undefined)
    throw usageError('routes_source_repeated', '--observed takes no --openapi and no --prefix');
  const { readObservedPaths } = await import('../../../verifier/observation/observed-paths-file.ts');
  const { observedApi } = await import('../../bundle/observed-api.ts');
  return observedApi(await readObservedPaths(observed));
}

async function readOpenApi(openapi: string, prefix: string | undefined): Promise<ShownApi> {
  const { MAX_DOCUMENT_BYTES, readApiDocument } = await import(
    '../../../bundle/authoring/openapi/document.ts'
  );
  const { readFileOrInput } = await import('../../../process/files/input-files.ts');
  const file = openapi === '-' ? 'standard input' : basename(openapi);
  const api = readApiDocument(await readFileOrInput(openapi, MAX_DOCUMENT_BYTES), { file, prefix });
  return { ...api, notes: [] };
}

async function patternOf(like: string | undefined) {
  if (like === undefined) return undefined;
  const { readRoutePattern } = await import('../../../bundle/authoring/openapi/route-pattern.ts');
  const { readInputText } = await import('../../../process/files/input-files.ts');
  const { fromLibraryError } = await import('../../errors/library-errors.ts');
  const yamlText = await readInputText(like, MAX_LIKE_BYTES);
  try {
    return readRoutePattern(yamlText, basename(like));
  } catch (error) {
    throw fromLibraryError(error);
  }
}

const MAX_LIKE_BYTES = 64 * 1024 * 1024;
