/** `/v1/sites/{site_id}/derived-keys`, `/v1/derived-keys` and `/v1/sites/{site_id}/blocked-subjects`. */
import Type from 'typebox';
import { blockedSubjectPlace, type DerivedKeys } from '../../enrollment/keys.ts';
import type { PlaceOf } from '../access.ts';
import type { ControlApp } from '../app.ts';
import {
  BLOCKED_SUBJECT,
  BLOCKED_SUBJECT_NAME,
  DERIVED_KEY,
  DERIVED_KEY_FILTER,
  DERIVED_KEY_PATH,
  KEY_REVOCATION,
  KEY_REVOCATION_RESULT,
  NEW_BLOCKED_SUBJECT,
} from '../contract/derived-keys.ts';
import { nothing, parameters, SITE_PATH } from '../contract/members.ts';
import { PAGE_MEMBERS, PAGE_QUERY, page, pageOf } from '../pagination.ts';
import { pathText, siteInPath } from '../places.ts';
import { IDEMPOTENCY_KEY, operationOf, sendCreated } from '../request-operation.ts';
import { entityTag } from '../versions.ts';

const tags = ['Derived keys'];

/** `…/derived-keys/:key_id…` */
export const derivedKeyInPath: PlaceOf = async (request, tx) => {
  const key = await tx.keys.find(pathText(request, 'key_id'));
  return key && tx.hierarchy.placeOfSite(key.siteId);
};

export function registerDerivedKeyRoutes(app: ControlApp, keys: DerivedKeys): void {
  registerKeyRoutes(app, keys);
  registerBlockedSubjectRoutes(app, keys);
}

function registerKeyRoutes(app: ControlApp, keys: DerivedKeys): void {
  const params = parameters(DERIVED_KEY_PATH);
  app.get(
    '/v1/sites/:site_id/derived-keys',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listDerivedKeys',
        summary: 'Derived keys of a site',
        tags,
        params: parameters(SITE_PATH),
        querystring: parameters({ ...PAGE_MEMBERS, ...DERIVED_KEY_FILTER }),
        response: { 200: pageOf(DERIVED_KEY, 'DerivedKeyPage') },
      },
    },
    (request) => {
      const { client_id: clientId, status } = request.query;
      return page(
        request.query,
        (asked) => keys.ofSite(request.params.site_id, { clientId, status }, asked),
        ({ key_id: id }) => id,
        (key) => key,
      );
    },
  );
  app.get(
    '/v1/derived-keys/:key_id',
    {
      config: { access: { kind: 'operator', permission: 'read', place: derivedKeyInPath } },
      schema: {
        operationId: 'getDerivedKey',
        summary: 'A derived key',
        tags,
        params,
        response: { 200: DERIVED_KEY },
      },
    },
    async (request, reply) => {
      const view = await keys.key(request.params.key_id);
      // A key expires, and is listed, without a new version: the tag never makes a 304.
      reply.header('etag', entityTag(view.version));
      return view;
    },
  );
  app.post(
    '/v1/derived-keys/:key_id/revoke',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: derivedKeyInPath },
        problems: ['key_state_conflict'],
      },
      schema: {
        operationId: 'revokeDerivedKey',
        summary:
          'Revoke the key and every living one with its public key, and refuse that public key; also for an expired key',
        tags,
        params,
        body: Type.Union([KEY_REVOCATION, nothing]),
        response: { 200: KEY_REVOCATION_RESULT },
      },
    },
    (request) => keys.revoke(request.params.key_id, request.body ?? {}, operationOf(request)),
  );
}

function registerBlockedSubjectRoutes(app: ControlApp, keys: DerivedKeys): void {
  app.get(
    '/v1/sites/:site_id/blocked-subjects',
    {
      config: { access: { kind: 'operator', permission: 'read', place: siteInPath } },
      schema: {
        operationId: 'listBlockedSubjects',
        summary: 'Subjects that may not enroll',
        tags,
        params: parameters(SITE_PATH),
        querystring: PAGE_QUERY,
        response: { 200: pageOf(BLOCKED_SUBJECT, 'BlockedSubjectPage') },
      },
    },
    (request) =>
      page(
        request.query,
        (asked) => keys.blockedSubjects(request.params.site_id, asked),
        blockedSubjectPlace,
        (subject) => subject,
      ),
  );
  app.post(
    '/v1/sites/:site_id/blocked-subjects',
    {
      config: {
        access: { kind: 'operator', permission: 'operate', place: siteInPath },
        problems: ['already_exists', 'idempotency_conflict'],
      },
      schema: {
        operationId: 'blockSubject',
        summary: 'Refuse new enrollments of a subject, which need not have a key; its living keys stay valid',
        tags,
        params: parameters(SITE_PATH),
        headers: IDEMPOTENCY_KEY,
        body: NEW_BLOCKED_SUBJECT,
        response: { 201: BLOCKED_SUBJECT },
      },
    },
    async (request, reply) => {
      const { site_id: siteId } = request.params;
      const created = await keys.blockSubject(siteId, request.body, operationOf(request));
      return sendCreated(reply, created, ({ issuer, subject }) => {
        const name = new URLSearchParams({ issuer, subject });
        return `/v1/sites/${encodeURIComponent(siteId)}/blocked-subjects?${name}`;
      });
    },
  );
  app.delete(
    '/v1/sites/:site_id/blocked-subjects',
    {
      config: { access: { kind: 'operator', permission: 'operate', place: siteInPath } },
      schema: {
        operationId: 'unblockSubject',
        summary: 'Let a subject enroll again',
        tags,
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
