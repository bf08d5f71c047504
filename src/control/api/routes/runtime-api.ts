/**
 * Routes of readiness, key-level grants, signing profiles and propagation: `/v1/derived-keys/{key_id}/readiness`,
 * `…/revocation-receipt`, `…/grants`, `…/signing-profiles`, `/v1/sites/{site_id}/signing-profiles`, `…/profiles`, `…/overview`, `…/propagation`.
 * Source: docs/operate/control.md "From key to traffic".
 */
import Type from 'typebox';
import { givenId, identifier, SITE_PATH } from '../../../process/http-service/members-contract.ts';
import {
  CALLER_PROFILES,
  DERIVED_KEY_PATH,
  KEY_GRANTS,
  KEY_READINESS,
  REVOCATION_RECEIPT,
  SIGNING_PROFILE,
  SIGNING_PROFILES,
} from '../../contract/derived-keys-contract.ts';
import { SITE_OVERVIEW } from '../../contract/overview-contract.ts';
import { SITE_PROPAGATION } from '../../contract/targets-contract.ts';
import type { SiteSigningKeys } from '../../publishing/bundle-signing-keys.ts';
import { callerProfiles } from '../../publishing/caller-profiles.ts';
import { sitePropagation } from '../../publishing/propagation.ts';
import { keyReadiness } from '../../publishing/readiness.ts';
import { issueReceipt } from '../../publishing/revocation-receipts.ts';
import { clientSigningProfiles, keyGrants, siteSigningProfiles } from '../../publishing/signing-profiles.ts';
import { siteOverview } from '../../publishing/site-overview.ts';
import { requireRow } from '../../resource/change.ts';
import type { ControlStore } from '../../store/port.ts';
import { siteInPath } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { invalidCursor } from '../pagination.ts';
import { registerRead, registerResource } from '../resource-routes.ts';
import { derivedKeyInPath } from './enrollments-api.ts';

const tags = ['Runtime'];
const KEY = {
  tags,
  item: { url: '/v1/derived-keys/:key_id', params: DERIVED_KEY_PATH, place: derivedKeyInPath },
};
const SITE = { tags, item: { url: '/v1/sites/:site_id', params: SITE_PATH, place: siteInPath } };

export interface RuntimeOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly keyring: SiteSigningKeys;
}

export function registerRuntimeRoutes(app: ControlApp, options: RuntimeOptions): void {
  registerKeyRoutes(app, options);
  registerSiteRoutes(app, options);
}

function registerKeyRoutes(app: ControlApp, options: RuntimeOptions): void {
  const { store, nowMs } = options;
  registerRead(app, KEY, {
    below: '/revocation-receipt',
    operationId: 'getRevocationReceipt',
    summary: 'A signed receipt: from when on no verifier can allow a request of the revoked key',
    problems: ['key_not_revoked'],
    answer: REVOCATION_RECEIPT,
    run: ({ key_id: keyId }) => issueReceipt(keyId, options),
  });
  registerRead(app, KEY, {
    below: '/readiness',
    operationId: 'getKeyReadiness',
    summary: 'The five conditions of runtime readiness, for one target or all attached ones',
    query: { target: Type.Optional(givenId('A target; default: all that are attached.')) },
    answer: KEY_READINESS,
    run: ({ key_id: keyId }, { target }) =>
      store.read(async (tx) => keyReadiness(tx, requireRow(await tx.keys.find(keyId)), target, nowMs())),
  });
  registerRead(app, KEY, {
    below: '/grants',
    operationId: 'listKeyGrants',
    summary: 'Route grants that the key inherits from its client',
    answer: KEY_GRANTS,
    run: ({ key_id: keyId }) =>
      store.read(async (tx) => ({
        items: [...(await keyGrants(tx, requireRow(await tx.keys.find(keyId))))],
      })),
  });
  registerRead(app, KEY, {
    below: '/signing-profiles',
    operationId: 'listKeySigningProfiles',
    summary: "The key's signing profiles",
    answer: SIGNING_PROFILES,
    run: ({ key_id: keyId }) =>
      store.readAside(async (tx) => {
        const { siteId, clientId } = requireRow(await tx.keys.find(keyId));
        return { items: [...(await clientSigningProfiles(tx, siteId, clientId))] };
      }),
  });
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
  registerResource(app, {
    ...SITE,
    view: SIGNING_PROFILE,
    permission: 'read',
    collection: { ...SITE.item, url: `${SITE.item.url}/signing-profiles` },
    list: {
      operationId: 'listSigningProfiles',
      summary: 'Signing profiles of the clients of a site',
      page: 'SigningProfilePage',
      filter: {
        client_id: Type.Optional(identifier('Only of this client.')),
        route_id: Type.Optional(identifier('Only for this route.')),
      },
      cursorOf: ({ client_id, route_id }) => placeOf(client_id, route_id),
      run: ({ site_id: siteId }, { after, limit }, { client_id: clientId, route_id: routeId }) => {
        const selection = { clientId, routeId, after: positionOf(after), limit };
        return store.readAside((tx) => siteSigningProfiles(tx, siteId, selection));
      },
    },
  });
  registerRead(app, SITE, {
    below: '/profiles',
    operationId: 'getCallerProfiles',
    summary: 'The signing profile file of a caller with passports of a broker',
    problems: ['reference_unknown', 'broker_ambiguous'],
    query: {
      issuer: identifier('The broker.'),
      subject: identifier('sub of the passports.'),
      trust_domain: Type.Optional(
        identifier('When the issuer has several brokers and the subject is no SPIFFE ID.'),
      ),
    },
    answer: CALLER_PROFILES,
    run: ({ site_id: siteId }, { issuer, subject, trust_domain: trustDomain }) =>
      store.readAside((tx) => callerProfiles(tx, siteId, { issuer, subject, trustDomain })),
  });
  registerRead(app, SITE, {
    below: '/overview',
    operationId: 'getSiteOverview',
    summary: 'What needs attention at the site',
    answer: SITE_OVERVIEW,
    run: ({ site_id: siteId }) => store.readAside((tx) => siteOverview(tx, siteId, nowMs())),
  });
  registerRead(app, SITE, {
    below: '/propagation',
    operationId: 'getPropagation',
    summary: "Which of the site's publications each target has loaded",
    answer: SITE_PROPAGATION,
    run: ({ site_id: siteId }) => store.readAside((tx) => sitePropagation(tx, siteId, nowMs())),
  });
}
