/** Selects the profile of a file that fits a request. */
import { pathOf } from '../protocol/request-target.ts';
import { ClientError } from './client-error.ts';
import { matchTemplates } from './match-templates.ts';
import type { RequestUrl } from './request-url.ts';
import type { RouteProfile } from './signing-profile.ts';

/** How to find a profile; `only_fit`: by method and path. */
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

function onlyFit(profiles: readonly RouteProfile[], method: string, url: RequestUrl): RouteProfile {
  const fits = matchTemplates(profiles, pathOf(url.target)).filter((profile) => profile.method === method);
  if (fits.length === 0) throw new ClientError('profile_not_found', 'no profile fits this method and path');
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
  throw new ClientError('profile_not_found', 'the file holds no profile of this name or route ID');
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
