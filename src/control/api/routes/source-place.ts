/** Where a source lies. */
import type { PlaceOf } from '../access.ts';
import { pathText } from '../places.ts';

/** `…/sources/:source_id…` */
export const sourceInPath: PlaceOf = async (request, tx) => {
  const source = await tx.sources.find(pathText(request, 'source_id'));
  return source && tx.hierarchy.placeOfSite(source.siteId);
};
