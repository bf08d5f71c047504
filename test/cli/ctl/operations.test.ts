/** Compares the operations of the API that an operator may call with the verbs of `proofgate ctl`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { KINDS_OF } from '../../../src/cli/ctl/resource-kinds.ts';
import type { ProofgateCommand } from '../../../src/cli/define/define-command.ts';
import { buildProgram } from '../../../src/cli/program.ts';
import { Output } from '../../../src/process/program/output.ts';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';

/** Why an operation has no verb of its own. */
class Without {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}
const declared = new Without('`ctl apply` creates and changes what the site file declares');
const olderPath = new Without('path of Control up to 0.3.0, which has one broker for each issuer');

/** By operation ID: the commands that call it, or why there is none. `ctl apply` also changes what is not named here. */
const VERBS: { readonly [operation: string]: string | readonly string[] | Without } = {
  followChanges: new Without('for consoles; `ctl get` reads what it tells of'),
  getSession: 'whoami',
  listSessions: 'get sessions',
  getOperatorSession: 'get sessions',
  endSession: 'delete sessions',
  endSessions: 'end-sessions',
  disableBootstrapToken: 'disable-bootstrap-token',
  createEnvironment: 'create environment',
  listEnvironments: 'get environments',
  getEnvironment: 'get environments',
  renameEnvironment: 'rename environments',
  deleteEnvironment: 'delete environments',
  createFleet: 'create fleet',
  listFleets: 'get fleets',
  getFleet: 'get fleets',
  renameFleet: 'rename fleets',
  deleteFleet: 'delete fleets',
  declareSite: ['apply', 'preview'],
  createSite: declared,
  listSitesOfFleet: new Without('`get sites` shows the fleet of each site'),
  listSites: 'get sites',
  getSite: 'get sites',
  changeSite: declared,
  deleteSite: 'delete sites',
  raiseSiteFloor: 'raise-floor',
  listSigningKeys: ['get signing-keys', 'signing-keys'],
  listReceiptKeys: 'get receipt-keys',
  rotateSigningKey: 'rotate-signing-key',
  retireSigningKey: 'retire-signing-key',
  listOAuthIssuers: 'get oauth-issuers',
  getOAuthIssuer: 'get oauth-issuers',
  putOAuthIssuer: 'apply',
  deleteOAuthIssuer: 'delete oauth-issuers',
  listBrokers: 'get brokers',
  getBrokerOfTrustDomain: 'get brokers',
  putBrokerOfTrustDomain: 'broker-keys',
  deleteBrokerOfTrustDomain: 'delete brokers',
  getBroker: 'get brokers',
  putBroker: olderPath,
  deleteBroker: 'delete brokers',
  blockCaller: 'block-caller',
  listBlockedCallers: 'get blocked-callers',
  unblockCaller: 'unblock-caller',
  createTarget: declared,
  listTargets: 'get targets',
  getTarget: 'get targets',
  renameTarget: 'rename targets',
  rotateTargetToken: 'rotate-target-token',
  detachTarget: 'detach',
  createClient: declared,
  listClients: 'get clients',
  getClient: 'get clients',
  changeClient: declared,
  deleteClient: 'delete clients',
  listGrants: 'get grants',
  putGrant: declared,
  deleteGrant: declared,
  createRoute: declared,
  listRoutes: 'get routes',
  getRoute: 'get routes',
  replaceRoute: declared,
  deleteRoute: 'delete routes',
  getRouteSources: 'get route-sources',
  putRouteSources: declared,
  deleteRouteSources: declared,
  createRoleGrant: 'create role-grant',
  listRoleGrants: 'get role-grants',
  getRoleGrant: 'get role-grants',
  deleteRoleGrant: 'delete role-grants',
  createAccessToken: 'create access-token',
  listAccessTokens: 'get access-tokens',
  getAccessToken: 'get access-tokens',
  deleteAccessToken: 'delete access-tokens',
  rotateAccessToken: 'rotate-access-token',
  listAuditEvents: 'get audit',
  createSource: declared,
  listSources: 'get sources',
  getSource: 'get sources',
  getSourceKeys: 'get source-keys',
  changeSource: 'rename sources',
  deleteSource: 'delete sources',
  getSourceRevision: 'delete sources',
  changeSourceRevision: 'draft',
  deleteSourceRevision: 'delete sources',
  createSourceRevision: 'draft',
  validateSourceRevision: 'validate',
  suspendSourceRevision: 'suspend',
  resumeSourceRevision: 'resume',
  retireSource: 'retire',
  retireSourceRevision: new Without('`retire` retires every revision of a source'),
  activateSourceRevision: 'activate',
  createEnrollmentPolicy: declared,
  listEnrollmentPolicies: 'get policies',
  getEnrollmentPolicy: 'get policies',
  changeEnrollmentPolicy: 'rename policies',
  deleteEnrollmentPolicy: 'delete policies',
  rebindEnrollmentPolicy: 'rebind',
  deactivateEnrollmentPolicy: 'deactivate',
  reactivateEnrollmentPolicy: 'reactivate',
  getEnrollmentCommand: 'get command',
  getEnrollment: 'get enrollments',
  listEnrollments: 'get enrollments',
  approveEnrollment: 'approve',
  denyEnrollment: 'deny',
  listDerivedKeys: 'get keys',
  getDerivedKey: 'get keys',
  revokeDerivedKey: 'revoke',
  listBlockedSubjects: 'get blocked-subjects',
  blockSubject: 'block',
  unblockSubject: 'unblock',
  getKeyReadiness: 'get readiness',
  getKeyLastUsed: 'get last-used',
  listKeyGrants: new Without('a key has the grants of its client: `get grants`'),
  listKeySigningProfiles: new Without('a key has the signing profiles of its client: `get profiles`'),
  listSigningProfiles: 'get profiles',
  getCallerProfiles: 'get profiles',
  getDecisions: 'get decisions',
  getPropagation: 'get propagation',
  getRevocationReceipt: 'get revocation-receipt',
  getSiteOverview: 'get overview',
  listSiteGrants: 'get grants',
  explainRequest: new Without('`proofgate explain` does the same without Control'),
};

/** Commands that no operation of the table has. */
const OTHER_COMMANDS = ['login', 'logout'];

it('every operation that an operator may call has a verb, or a reason', () => {
  const file = join(import.meta.dirname, '../../../docs/reference/openapi.json');
  const { paths } = JSON.parse(readFileSync(file, 'utf8')) as { paths: JsonObject };
  const operations = Object.values(paths).flatMap((path) => Object.values(path as JsonObject));
  const ofOperators = operations.filter(isJsonObject).filter(({ security }) => {
    return Array.isArray(security) && security.some((each) => isJsonObject(each) && 'operator' in each);
  });
  expect(Object.keys(VERBS).toSorted()).toEqual(
    ofOperators.map((each) => String(each.operationId)).toSorted(),
  );
});

it('every verb of the table is a command, and every command has an operation', async () => {
  const output = new Output(process.stdout, process.stderr, {});
  const program = await buildProgram({ env: {}, output, version: '1.0.0' });
  const ctl = program.commands.find((each) => each.name() === 'ctl');
  const commands = (ctl?.commands ?? []).flatMap((each) =>
    each.name() === 'create' ? membersOf(each as ProofgateCommand) : [each.name()],
  );
  const verbs = Object.values(VERBS).flatMap((verb) => (verb instanceof Without ? [] : verb));
  const used = verbs.map((verb) => (/^(?:get|delete|rename) /.test(verb) ? verb.split(' ')[0] : verb));
  expect([...new Set([...used, ...OTHER_COMMANDS])].toSorted()).toEqual(commands.toSorted());
  const ofKinds = Object.entries(KINDS_OF).flatMap(([verb, kinds]) => kinds.map((kind) => `${verb} ${kind}`));
  expect(new Set(verbs.filter((verb) => /^(?:get|delete|rename) /.test(verb)))).toEqual(new Set(ofKinds));
});

function membersOf(group: ProofgateCommand): readonly string[] {
  return group.commands.map((member) => `${group.name()} ${member.name()}`);
}
