/**
 * A DPoP proof names no Auth Site, only a URL. Where two sites have an origin in common, verifiers of both would accept it once
 * each, so that such a route needs nonces, which do name the site.
 * Source: docs/design/protocol.md "DPoP".
 */
import { type NewRoute, ROUTE_DEFINITION, type RouteDefinition } from '../contract/routes-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { CheckOne } from '../resource/change.ts';
import type { Transaction } from '../store/transaction.ts';
import { storedDefinition } from './stored-definition.ts';

const readDefinition = storedDefinition(ROUTE_DEFINITION);

type NamedRoute = Pick<NewRoute, 'route_id' | 'definition'>;

/** @throws ApiProblem `definition_invalid`: a route takes DPoP proofs without nonces on an origin that another site has too */
export async function rejectSharedByRoutes(
  tx: Transaction,
  siteId: string,
  origins: readonly string[],
  routes: readonly NamedRoute[],
  check: CheckOne,
): Promise<void> {
  if (!routes.some(({ definition }) => needsOneSite(definition))) return;
  await tx.holdOrigins();
  const taken = new Set((await tx.hierarchy.otherSites(siteId)).flatMap((site) => site.origins));
  for (const { definition, route_id: routeId } of routes) {
    const shared = needsOneSite(definition)
      ? (definition.origins ?? origins).find((origin) => taken.has(origin))
      : undefined;
    if (shared === undefined) continue;
    const reason = `another Auth Site has ${shared} too, and a DPoP proof names no site: set dpop_nonce to required`;
    check(`route ${routeId}`, () => {
      throw invalid('/body/definition/dpop_nonce', reason);
    });
  }
}

/** @throws ApiProblem `definition_invalid`: as {@link rejectSharedByRoutes}, whichever of the sites has the route */
export async function rejectSharedOrigins(
  tx: Transaction,
  siteId: string,
  origins: readonly string[],
): Promise<void> {
  await tx.holdOrigins();
  const others = await tx.hierarchy.otherSites(siteId);
  const sharing = others.filter((other) => other.origins.some((origin) => origins.includes(origin)));
  for (const { id, origins: ofOther } of sharing) {
    const shared = new Set(ofOther.filter((origin) => origins.includes(origin)));
    const definitions = await tx.hierarchy.routesWith([id, siteId], '"dpop"');
    const index = definitions
      .map(readDefinition)
      .filter(needsOneSite)
      .flatMap((definition) => definition.origins ?? [...shared])
      .map((origin) => (shared.has(origin) ? origins.indexOf(origin) : -1))
      .find((found) => found >= 0);
    if (index === undefined) continue;
    const reason =
      'another Auth Site has it too, and a route there or here takes DPoP proofs, which name no site, without dpop_nonce';
    throw invalid(`/body/origins/${index}`, reason);
  }
}

function needsOneSite({ accepted_proofs: formats = [], dpop_nonce: nonce }: RouteDefinition): boolean {
  return formats.includes('dpop') && nonce !== 'required';
}

function invalid(pointer: string, reason: string): ApiProblem {
  return new ApiProblem('definition_invalid', undefined, { faults: [{ pointer, reason }] });
}
