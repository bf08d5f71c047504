/** IDs of Control's resources for completion, read with the settings of the unfinished command line. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Environment } from '../../process/program/output.ts';
import { collectTexts, settingValues } from '../../process/settings/setting-sources.ts';
import type { ControlApi } from '../ctl/client/control-api.ts';
import { CTL_SETTINGS, withControl } from '../ctl/ctl-connection.ts';
import { listOf } from '../ctl/find-resources.ts';
import { kindOf } from '../ctl/resource-kinds.ts';
import type { FetchIds, UnfinishedLine } from './candidates.ts';

/** Maximum wait after the Tab key. */
const TIMEOUT_MS = 3_000;
/** Maximum number of sites to read without `--site`. */
const MAX_SITES = 20;

export function idsFromControl(env: Environment): FetchIds {
  return (kind, line) =>
    Promise.race([readIds(kind, line, env).catch(() => []), delay(TIMEOUT_MS, [], { ref: false })]);
}

async function readIds(
  kindName: string,
  { command, flags }: UnfinishedLine,
  env: Environment,
): Promise<readonly string[]> {
  const named = kindOf(kindName);
  const kind = named?.parent === undefined ? named : kindOf(named.parent);
  const member = kind?.columns[0];
  if (kind === undefined || member === undefined) return [];
  const texts = await collectTexts(command.settings, { flags, env });
  return withControl(settingValues(CTL_SETTINGS, texts), { env }, async (api) => {
    const sites = kind.needsSite === 'never' ? [undefined] : (texts.get('site') ?? (await siteIds(api)));
    const lists = await Promise.all(sites.map((site) => listOf(api, kind.name, { site })));
    return [...new Set(lists.flatMap((items) => items.map((item) => String(item[member]))))];
  });
}

async function siteIds(api: ControlApi): Promise<readonly string[]> {
  const sites = await api.list('/v1/sites');
  return sites.slice(0, MAX_SITES).map(({ site_id }) => site_id);
}
