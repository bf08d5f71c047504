/** Resolves the path parameters of a route to the place of its resource, for `config.access.place`. */
import type { FastifyRequest } from 'fastify';
import type { PlaceOf } from './api-access.ts';
import { textOf } from './request-shape.ts';

/** Value of a path parameter. */
export function pathText(request: FastifyRequest, name: string): string {
  return textOf(request.params, name);
}

/** The installation: the place of resources outside every environment. */
export const installation: PlaceOf = async () => ({});

/** `…/environments/:environment_id…` */
export const environmentInPath: PlaceOf = async (request, tx) => {
  const environment = await tx.environments.find(pathText(request, 'environment_id'));
  return environment && { environmentId: environment.id };
};

/** `…/fleets/:fleet_id…` */
export const fleetInPath: PlaceOf = async (request, tx) => {
  const fleet = await tx.fleets.find(pathText(request, 'fleet_id'));
  return fleet && { environmentId: fleet.environmentId, fleetId: fleet.id };
};

/** `…/sites/:site_id…` */
export const siteInPath: PlaceOf = (request, tx) => tx.hierarchy.placeOfSite(pathText(request, 'site_id'));

/** `…/targets/:target_id…` */
export const targetInPath: PlaceOf = async (request, tx) => {
  const target = await tx.targets.find(pathText(request, 'target_id'));
  return target && tx.hierarchy.placeOfSite(target.siteId);
};
