/** `proofgate bundle routes`: proposes routes for the operations of an OpenAPI document. */
import { basename } from 'node:path';
import { usageError } from '../../../process/program/errors.ts';
import {
  choice,
  optional,
  parsed,
  required,
  type SettingValues,
  text,
  withDefault,
} from '../../../process/settings/settings.ts';
import { parsePathTemplate } from '../../../protocol/path-template.ts';
import { type CliContext, command } from '../../define/define-command.ts';

const SETTINGS = {
  openapi: required(text('--openapi <file>', 'OpenAPI 3.0 or 3.1 document, YAML or JSON; - for stdin')),
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
};

function prefixOf(value: string): string {
  const prefix = value.replace(/\/$/, '');
  const template = parsePathTemplate(prefix === '' ? '/' : prefix);
  if (template.kind === 'template' && !prefix.includes('{')) return prefix;
  throw usageError('bad_value', '--prefix must be a path such as /v1, or / for none');
}

export const bundleRoutesCommand = command({
  name: 'routes',
  summary: 'Propose routes for the operations of an OpenAPI document',
  settings: SETTINGS,
  examples: [
    'proofgate bundle routes --openapi api.yaml --like site.yaml',
    'proofgate bundle routes --openapi api.yaml --prefix /v1 --resource-from tag',
  ],
  run: ({ settings }, context) => showRoutes(settings, context),
});

async function showRoutes(settings: SettingValues<typeof SETTINGS>, { output }: CliContext): Promise<void> {
  const { MAX_DOCUMENT_BYTES, readApiDocument } = await import(
    '../../../bundle/authoring/openapi/document.ts'
  );
  const { proposeRoutes } = await import('../../../bundle/authoring/openapi/propose-routes.ts');
  const { examplePattern } = await import('../../../bundle/authoring/openapi/route-pattern.ts');
  const { readFileOrInput } = await import('../../../process/files/input-files.ts');
  const { proposalLines, proposalMembers } = await import('../../bundle/route-proposal.ts');
  const { openapi, prefix, resourceFrom } = settings;
  const file = openapi === '-' ? 'standard input' : basename(openapi);
  const api = readApiDocument(await readFileOrInput(openapi, MAX_DOCUMENT_BYTES), { file, prefix });
  const origin = api.servers.map((server) => server.origin).find((found) => found !== undefined);
  const pattern = await patternOf(settings.like);
  const proposal = proposeRoutes(api, { resourceFrom, known: pattern?.known ?? [] });
  const shown = {
    api,
    proposal,
    pattern: pattern ?? examplePattern(origin),
    isExample: pattern === undefined,
  };
  output.result(proposalLines(shown), proposalMembers(shown));
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
