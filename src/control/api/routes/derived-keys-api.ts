/** Routes of `/v1/sites/{site_id}/derived-keys`, `/v1/derived-keys` and `/v1/sites/{site_id}/blocked-subjects`. */
import Type from 'typebox';
import {
  BLOCKED_SUBJECT,
  BLOCKED_SUBJECT_NAME,
  DERIVED_KEY,
  DERIVED_KEY_FILTER,
  DERIVED_KEY_PATH,
  KEY_REVOCATION,
  KEY_REVOCATION_RESULT,
  NEW_BLOCKED_SUBJECT,
} from '../../../api-contract/derived-keys-contract.ts';
import { nothing, parameters, SITE_PATH } from '../../../api-contract/members-contract.ts';
import { blockedSubjectPlace, type DerivedKeys } from '../../enrollment/keys.ts';
import type { PlaceOf } from '../api-access.ts';
import type { ControlApp } from '../app.ts';
import { pathText, siteInPath } from '../places.ts';
import { registerAction, registerResource } from '../resource-routes.ts';
import { operationOf } from '../versions.ts';

/** `…/derived-keys/:key_id…` */
export const derivedKeyInPath: PlaceOf = async (request, tx) => {
  const key = await tx.keys.find(pathText(request, 'key_id'));
  return key && tx.hierarchy.placeOfSite(key.siteId);
};

const KEY = {
  tags: ['Derived keys'],
  view: DERIVED_KEY,
  permission: 'operate',
  item: { url: '/v1/derived-keys/:key_id', params: DERIVED_KEY_PATH, place: derivedKeyInPath },
} as const;

export function registerDerivedKeyRoutes(app: ControlApp, keys: DerivedKeys): void {
  registerResource(app, {
    ...KEY,
    collection: { url: '/v1/sites/:site_id/derived-keys', params: SITE_PATH, place: siteInPath },
    list: {
      operationId: 'listDerivedKeys',
      summary: 'Derived keys of a site',
      page: 'DerivedKeyPage',
      filter: DERIVED_KEY_FILTER,
      cursorOf: ({ key_id: id }) => id,
      run: ({ site_id: siteId }, page, { client_id: clientId, status }) =>
        keys.ofSite(siteId, { clientId, status }, page),
    },
    get: {
      operationId: 'getDerivedKey',
      summary: 'A derived key',
      // The view changes without a new version when the key expires or a bundle lists it.
      isLive: true,
      run: ({ key_id: id }) => keys.key(id),
    },
  });
  registerAction(app, KEY, {
    verb: 'revoke',
    operationId: 'revokeDerivedKey',
    summary:
      'Revoke the key and every living one with its public key, and refuse that public key; also for an expired key',
    problems: ['key_state_conflict'],
    body: Type.Union([KEY_REVOCATION, nothing]),
    answer: KEY_REVOCATION_RESULT,
    run: (operation, { key_id: id }, revocation) => keys.revoke(id, revocation ?? {}, operation),
  });
  registerBlockedSubjectRoutes(app, keys);
}

function registerBlockedSubjectRoutes(app: ControlApp, keys: DerivedKeys): void {
  const subjects = { url: '/v1/sites/:site_id/blocked-subjects', params: SITE_PATH, place: siteInPath };
  const basics = {
    tags: KEY.tags,
    view: BLOCKED_SUBJECT,
    permission: 'operate',
    collection: subjects,
    item: subjects,
  } as const;
  registerResource(app, {
    ...basics,
    list: {
      operationId: 'listBlockedSubjects',
      summary: 'Subjects that may not enroll',
      page: 'BlockedSubjectPage',
      cursorOf: blockedSubjectPlace,
      run: ({ site_id: siteId }, page) => keys.blockedSubjects(siteId, page),
    },
  });
  registerResource(app, {
    ...basics,
    create: {
      operationId: 'blockSubject',
      summary: 'Refuse new enrollments of a subject, which need not have a key; its living keys stay valid',
      problems: ['already_exists'],
      body: NEW_BLOCKED_SUBJECT,
      location: ({ site_id: siteId, issuer, subject }) => {
        const name = new URLSearchParams({ issuer, subject });
        return `/v1/sites/${encodeURIComponent(siteId)}/blocked-subjects?${name}`;
      },
      run: (operation, { site_id: siteId }, name) => keys.blockSubject(siteId, name, operation),
    },
  });
  app.delete(
    '/v1/sites/:site_id/blocked-subjects',
    {
      config: { access: { kind: 'operator', permission: 'operate', place: siteInPath } },
      schema: {
        operationId: 'unblockSubject',
        summary: 'Let a subject enroll again',
        tags: KEY.tags,
        params: parameters(SITE_PATH),
        querystring: parameters(BLOCKED_SUBJECT_NAME),
        response: { 204: nothing },
      },
    },
    async (request, reply) => {
      const { issuer, subject } = request.query;
      await keys.unblockSubject(request.params.site_id, { issuer, subject }, operationOf(request));
      return reply.code(204).send(null);
    },
  );
}
