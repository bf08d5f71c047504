/** Settings that allow observations at this enforcement point. Source: docs/operate/observe.md. */
import { MAX_OBSERVATION_SECONDS } from '../../bundle/format/bundle-limits.ts';
import { usageError } from '../../process/program/errors.ts';
import { list, optional, parsed, type SettingValues, text } from '../../process/settings/settings.ts';
import { formatTime, parseTime } from '../../protocol/rfc3339.ts';
import type { ObservedPathsSetup } from '../../verifier/assembly/open-verifier.ts';
import type { AllowedObservations } from '../../verifier/observation/observations.ts';
import { readObservedPathsIfAny } from '../../verifier/observation/observed-paths-file.ts';

export interface AllowedRoute {
  readonly routeId: string;
  readonly untilSeconds: number;
}

export const OBSERVATION_SETTINGS = {
  allowObserve: list(
    parsed(
      text(
        '--allow-observe <route=time>',
        'let denied requests of this route pass without identity until then, if the bundle also says observe',
      ),
      parseAllowedRoute,
    ),
    '\n',
  ),
  allowObserveUnmatched: optional(
    parsed(
      text(
        '--allow-observe-unmatched <time>',
        'let requests that no route matches pass without identity until then, if the bundle also says observe',
      ),
      parseEnd,
    ),
  ),
  observePathsFile: optional(
    text(
      '--observe-paths-file <file>',
      'keep the shapes of paths that no route matches in this file, for bundle routes --observed',
    ),
  ),
};

/** @throws CliError `observe_too_long`, `observe_repeated` */
export function planObservations(
  { allowObserve = [], allowObserveUnmatched }: Partial<SettingValues<typeof OBSERVATION_SETTINGS>>,
  nowSeconds: number,
): AllowedObservations {
  const routes = new Map<string, number>();
  for (const { routeId, untilSeconds } of allowObserve) {
    if (routes.has(routeId)) {
      throw usageError('observe_repeated', `--allow-observe names route ${routeId} twice: give it one end`);
    }
    routes.set(routeId, untilSeconds);
  }
  const ends = [...routes.values(), ...(allowObserveUnmatched === undefined ? [] : [allowObserveUnmatched])];
  const latestSeconds = nowSeconds + MAX_OBSERVATION_SECONDS;
  if (!ends.every((end) => end <= latestSeconds)) {
    throw usageError(
      'observe_too_long',
      `--allow-observe and --allow-observe-unmatched may end at most 30 days from now, by ${formatTime(latestSeconds)}`,
    );
  }
  return { routes, unmatchedUntil: allowObserveUnmatched };
}

/** @throws CliError `observed_paths_invalid`, `observed_paths_of_another_site`: the file would be replaced */
export async function planObservedPaths(
  file: string | undefined,
  authSite: string,
): Promise<ObservedPathsSetup | undefined> {
  if (file === undefined) return undefined;
  const kept = await readObservedPathsIfAny(file);
  if (kept === undefined || kept.authSite === authSite) return { file, kept };
  throw usageError(
    'observed_paths_of_another_site',
    `--observe-paths-file: ${file} is of site ${kept.authSite}: name another file`,
  );
}

/** A route's ID may have an equals sign, a time has none. */
function parseAllowedRoute(value: string, flag: string): AllowedRoute {
  const at = value.lastIndexOf('=');
  if (at < 1) throw badEnd(flag, 'ROUTE=TIME, such as orders-read=2026-12-05T00:00:00Z');
  return { routeId: value.slice(0, at), untilSeconds: parseEnd(value.slice(at + 1), flag) };
}

function parseEnd(value: string, flag: string): number {
  const seconds = parseTime(value);
  if (seconds === undefined)
    throw badEnd(flag, 'a time in UTC with whole seconds, such as 2026-12-05T00:00:00Z');
  return seconds;
}

function badEnd(flag: string, wanted: string) {
  return usageError('bad_observe', `--${flag} must be ${wanted}`);
}
