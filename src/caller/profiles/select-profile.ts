/** Selects the signing profile that fits a request. */

import { ClientError } from '../../protocol/client-error.ts';
import { foldSegment, type PathTemplate } from '../../protocol/path-template.ts';
import { pathOf } from '../../protocol/request-target.ts';
import type { RouteProfile, SigningProfiles } from '../../protocol/signing-profile.ts';
import type { RequestUrl } from '../request-url.ts';

/** How to find a profile. `only_fit` selects by method and path. */
export type ProfileChoice =
  | { readonly kind: 'only_fit' }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'route_id'; readonly routeId: string };

/**
 * @throws ClientError `profile_not_found`, `profile_ambiguous`, `profile_mismatch`, `origin_not_allowed`
 */
export function selectProfile(
  profiles: readonly RouteProfile[],
  method: string,
  url: RequestUrl,
  choice: ProfileChoice,
): RouteProfile {
  return choice.kind === 'only_fit'
    ? onlyFit(profiles, method, url)
    : checkFit(namedProfile(profiles, choice), method, url);
}

export interface SelectedProfile {
  /** The file of the profile; its coordinates are signed. */
  readonly profiles: SigningProfiles;
  readonly profile: RouteProfile;
}

/**
 * Selects among several files, such as those that a broker serves for several sites. Exactly one may fit.
 * @throws ClientError as {@link selectProfile}
 */
export function selectAmongFiles(
  files: readonly SigningProfiles[],
  method: string,
  url: RequestUrl,
  choice: ProfileChoice,
): SelectedProfile {
  const fits: SelectedProfile[] = [];
  const misfits: ClientError[] = [];
  for (const profiles of files) {
    try {
      fits.push({ profiles, profile: selectProfile(profiles.profiles, method, url, choice) });
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      misfits.push(error);
    }
  }
  const [fit, ...more] = fits;
  if (fit === undefined) throw closestMisfit(misfits);
  if (more.length === 0) return fit;
  const sites = fits.map(({ profiles }) => profiles.coordinates.authSite).join(', ');
  throw new ClientError('profile_ambiguous', `profiles of several sites fit: ${sites}; use a profile file`);
}

/** A wrong origin is a more useful error than a missing profile. */
function closestMisfit(misfits: readonly ClientError[]): ClientError {
  const [closest] = [...misfits].sort(
    (a, b) => Number(a.code === 'profile_not_found') - Number(b.code === 'profile_not_found'),
  );
  return (
    closest ??
    new ClientError(
      'profile_not_found',
      'there is no signing profile for this caller: get one with proofgate ctl get profiles',
    )
  );
}

function onlyFit(profiles: readonly RouteProfile[], method: string, url: RequestUrl): RouteProfile {
  const fits = matchTemplates(profiles, pathOf(url.target)).filter((profile) => profile.method === method);
  if (fits.length === 0) {
    throw new ClientError('profile_not_found', misfitText(profiles, method, pathOf(url.target)));
  }
  const [profile, ...more] = fits.filter(({ origins }) => origins.includes(url.origin));
  if (profile === undefined) throw originNotAllowed(url, fits);
  if (more.length > 0) {
    const names = [profile, ...more].map(({ name }) => name).join(', ');
    throw new ClientError('profile_ambiguous', `several profiles fit, name one of them: ${names}`);
  }
  return profile;
}

function namedProfile(
  profiles: readonly RouteProfile[],
  choice: Exclude<ProfileChoice, { readonly kind: 'only_fit' }>,
): RouteProfile {
  const found = profiles.find((profile) =>
    choice.kind === 'name' ? profile.name === choice.name : profile.routeId === choice.routeId,
  );
  if (found !== undefined) return found;
  const known = listed(profiles.map(({ name }) => name));
  throw new ClientError('profile_not_found', `no profile has this name or route ID: there is ${known}`);
}

/**
 * Describes the nearest misfit: a profile that another one shadows, another method, or a path without its trailing
 * slash.
 */
function misfitText(profiles: readonly RouteProfile[], method: string, path: string): string {
  const shadowed = profiles.find((one) => one.method === method && fits([one], path));
  if (shadowed !== undefined) {
    const others = profiles.filter((one) => fitsOnlyWithout(profiles, one, shadowed, path));
    return `no profile fits: ${nameOf(shadowed)} does not apply to ${path}, because a literal takes precedence over a placeholder: ${listed(others.map(nameOf))}. A route for ${method} with that literal is missing`;
  }
  const fitsPath = matchTemplates(profiles, path);
  if (fitsPath.length > 0)
    return `no profile for ${method} fits this path: there is ${listed(fitsPath.map(nameOf))}`;
  const shorter = path.replace(/\/$/, '');
  const unslashed =
    shorter === path ? [] : matchTemplates(profiles, shorter).filter((one) => one.method === method);
  if (unslashed.length > 0) {
    return `no profile fits a path that ends with a slash: ${listed(unslashed.map(nameOf))} fits ${shorter}`;
  }
  return `no profile fits this method and path: there is ${listed(profiles.map(nameOf))}`;
}

const nameOf = ({ method, template }: RouteProfile): string => `${method} ${template.text}`;

const fits = (profiles: readonly RouteProfile[], path: string): boolean =>
  matchTemplates(profiles, path).length > 0;

/** Whether this profile keeps the shadowed one from matching. */
function fitsOnlyWithout(
  profiles: readonly RouteProfile[],
  one: RouteProfile,
  shadowed: RouteProfile,
  path: string,
): boolean {
  return (
    one !== shadowed && profiles.includes(one) && !matchTemplates([one, shadowed], path).includes(shadowed)
  );
}

const MAX_LISTED = 5;

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED).join(', ');
  return names.length > MAX_LISTED ? `${shown}, and ${names.length - MAX_LISTED} more` : shown || 'none';
}

function checkFit(profile: RouteProfile, method: string, url: RequestUrl): RouteProfile {
  if (profile.method !== method) {
    throw new ClientError('profile_mismatch', `the profile ${profile.name} is for ${profile.method} only`);
  }
  if (matchTemplates([profile], pathOf(url.target)).length === 0) {
    throw new ClientError('profile_mismatch', `the profile ${profile.name} is for ${profile.template.text}`);
  }
  if (!profile.origins.includes(url.origin)) throw originNotAllowed(url, [profile]);
  return profile;
}

function originNotAllowed(url: RequestUrl, profiles: readonly RouteProfile[]): ClientError {
  const allowed = profiles.flatMap(({ origins }) => origins).join(', ');
  return new ClientError('origin_not_allowed', `${url.origin} is not an origin of the profile: ${allowed}`);
}

/**
 * Matches a path to a signer's templates by the verifier's own rule.
 * Source: docs/design/protocol.md "Routes, origins, paths".
 */

interface HasTemplate {
  readonly template: PathTemplate;
}

/**
 * The candidates whose template matches the path by the verifier's rule. It matches segment by segment, prefers a
 * literal to a placeholder, and never backtracks. A value that differs from a sibling literal only in case or escapes
 * matches nothing.
 * @param path canonical path without query
 */
export function matchTemplates<T extends HasTemplate>(candidates: readonly T[], path: string): readonly T[] {
  const values = path.slice(1).split('/');
  let open = candidates;
  for (const [i, value] of values.entries()) {
    const literals = open.filter((candidate) => candidate.template.segments[i]?.kind === 'literal');
    const exact = literals.filter((candidate) => literalAt(candidate, i) === value);
    if (exact.length > 0) {
      open = exact;
      continue;
    }
    const folded = foldSegment(value);
    if (value === '' || literals.some((candidate) => foldSegment(literalAt(candidate, i)) === folded))
      return [];
    const placeholders = open.filter((candidate) => candidate.template.segments[i]?.kind === 'one');
    if (placeholders.length === 0) return isRestValue(values, i) ? restTemplates(open, i) : [];
    open = placeholders;
  }
  return open.filter((candidate) => candidate.template.segments.length === values.length);
}

function restTemplates<T extends HasTemplate>(open: readonly T[], i: number): readonly T[] {
  return open.filter((candidate) => candidate.template.segments[i]?.kind === 'rest');
}

/** `{name*}` matches only segments that are not empty, so a trailing slash does not match. */
function isRestValue(values: readonly string[], from: number): boolean {
  return values.slice(from).every((value) => value !== '');
}

function literalAt(candidate: HasTemplate, i: number): string {
  const segment = candidate.template.segments[i];
  return segment?.kind === 'literal' ? segment.text : '';
}
