/**
 * Routes of readiness, key-level grants, signing profiles and propagation: `/v1/derived-keys/{key_id}/readiness`,
 * `…/grants`, `…/signing-profiles`, `/v1/sites/{site_id}/signing-profiles`, `/v1/sites/{site_id}/propagation`.
 * Source: docs/control.md "From key to traffic".
 */
import Type from 'typebox';
import {
  DERIVED_KEY_PATH,
  KEY_GRANTS,
  KEY_READINESS,
  SIGNING_PROFILE,
  SIGNING_PROFILES,
} from '../../../api-contract/derived-keys-contract.ts';
import { givenId, identifier, parameters, SITE_PATH } from '../../../api-contract/members-contract.ts';
import { SITE_PROPAGATION } from '../../../api-contract/targets-contract.ts';
import { sitePropagation } from '../../publishing/propagation.ts';
import { keyReadiness } from '../../publishing/readiness.ts';
import { clientSigningProfiles, keyGrants, siteSigningProfiles } from '../../publishing/signing-profiles.ts';
import { found } from '../../resource/change.ts';
import type { ControlStore } from '../../store/port.ts';
import { siteInPath } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { invalidCursor, PAGE_MEMBERS, page, pageOf } from '../pagination.ts';
import { derivedKeyInPath } from './enrollments-api.ts';

const tags = ['Runtime'];

export interface RuntimeOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
}

const ofKey = { access: { kind: 'operator', permission: 'read', place: derivedKeyInPath } } as const;
const ofSite = { access: { kind: 'operator', permission: 'read', place: siteInPath } } as const;

export function registerRuntimeRoutes(app: ControlApp, options: RuntimeOptions): void {
  registerKeyRoutes(app, options);
  registerSiteRoutes(app, options);
}

function registerKeyRoutes(app: ControlApp, { store, nowMs }: RuntimeOptions): void {
  const params = parameters(DERIVED_KEY_PATH);
  app.get(
    '/v1/derived-keys/:key_id/readiness',
    {
      config: ofKey,
      schema: {
        operationId: 'getKeyReadiness',
        summary: 'The five conditions of runtime readiness, for one target or all attached ones',
        tags,
        params,
        querystring: parameters({
          target: Type.Optional(givenId('A target; default: all that are attached.')),
        }),
        response: { 200: KEY_READINESS },
      },
    },
    ({ params: { key_id: keyId }, query: { target } }) =>
      store.read(async (tx) => keyReadiness(tx, found(await tx.keys.find(keyId)), target, nowMs())),
  );
  app.get(
    '/v1/derived-keys/:key_id/grants',
    {
      config: ofKey,
      schema: {
        operationId: 'listKeyGrants',
        summary: 'Route grants that the key inherits from its client',
        tags,
        params,
        response: { 200: KEY_GRANTS },
      },
    },
    ({ params: { key_id: keyId } }) =>
      store.read(async (tx) => ({ items: [...(await keyGrants(tx, found(await tx.keys.find(keyId))))] })),
  );
  app.get(
    '/v1/derived-keys/:key_id/signing-profiles',
    {
      config: ofKey,
      schema: {
        operationId: 'listKeySigningProfiles',
        summary: "The key's signing profiles",
        tags,
        params,
        response: { 200: SIGNING_PROFILES },
      },
    },
    ({ params: { key_id: keyId } }) =>
      store.read(async (tx) => {
        const { siteId, clientId } = found(await tx.keys.find(keyId));
        return { items: [...(await clientSigningProfiles(tx, siteId, clientId))] };
      }),
  );
}

/** List position of a signing profile: length of the client's name, a colon, then client and route. */
const PLACE = /^([1-9][0-9]{0,2}):([!-~]+)$/;

function placeOf(clientId: string, routeId: string): string {
  return `${clientId.length}:${clientId}${routeId}`;
}

function positionOf(place: string | undefined) {
  if (place === undefined) return undefined;
  const [, length, names = ''] = PLACE.exec(place) ?? [];
  if (length === undefined || names.length < Number(length)) throw invalidCursor();
  return { clientId: names.slice(0, Number(length)), routeId: names.slice(Number(length)) };
}

function registerSiteRoutes(app: ControlApp, { store, nowMs }: RuntimeOptions): void {
  const params = parameters(SITE_PATH);
  app.get(
    '/v1/sites/:site_id/signing-profiles',
    {
      config: ofSite,
      schema: {
        operationId: 'listSigningProfiles',
        summary: 'Signing profiles of the clients of a site',
        tags,
        params,
        querystring: parameters({
          ...PAGE_MEMBERS,
          client_id: Type.Optional(identifier('Only of this client.')),
        }),
        response: { 200: pageOf(SIGNING_PROFILE, 'SigningProfilePage') },
      },
    },
    ({ params: { site_id: siteId }, query }) =>
      page(
        query,
        ({ after, limit }) => {
          const asked = { clientId: query.client_id, after: positionOf(after), limit };
          return store.read((tx) => siteSigningProfiles(tx, siteId, asked));
        },
        ({ client_id, route_id }) => placeOf(client_id, route_id),
        (profile) => profile,
      ),
  );
  app.get(
    '/v1/sites/:site_id/propagation',
    {
      config: ofSite,
      schema: {
        operationId: 'getPropagation',
        summary: "Where the site's publications have come",
        tags,
        params,
        response: { 200: SITE_PROPAGATION },
      },
    },
    ({ params: { site_id: siteId } }) => store.read((tx) => sitePropagation(tx, siteId, nowMs())),
  );
}
