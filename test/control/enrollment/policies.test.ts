/** Tests enrollment policies: their bindings, their content, and the workloads that they admit. */

import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import type { EnrolledProfile } from '../../../src/control/contract/enrollment-contract.ts';
import {
  CA_FILE,
  enrollmentCommand,
  KEY_FILE,
  quoteForShell,
  TOKEN_FILE,
} from '../../../src/control/enrollment/enroll-command-line.ts';
import type { RevisionName } from '../../../src/control/sources/source-changes.ts';
import {
  BY,
  CONTROL_URL,
  EnrollmentEnvironment,
  refusalOf,
  SITE,
  SUBJECT,
  submissionOf,
} from './enrollment-fixture.ts';

const PROFILE: EnrolledProfile = {
  name: 'orders-read',
  route_id: 'orders-read',
  method: 'GET',
  path_template: '/v1/orders/{id}',
  audience: 'https://api.shop.example',
  origins: [],
  signed_headers: [],
  body: 'unbound',
};

let env: EnrollmentEnvironment;
let source: RevisionName;

beforeAll(async () => {
  env = await EnrollmentEnvironment.open();
  source = await env.active();
});
afterAll(() => env.close());

/** Creates a source whose revision 2 is active and has retired revision 1. */
async function superseded(audience: string): Promise<{ first: RevisionName; second: RevisionName }> {
  const first = await env.active({ audience });
  return { first, second: await supersede(first) };
}

async function supersede(first: RevisionName): Promise<RevisionName> {
  const { view } = await env.sources.drafts.addRevision(first.sourceId, {}, BY);
  const second = { ...first, revision: view.revision };
  await env.sources.lifecycle.validate(second, BY);
  await env.activate(second);
  await env.acknowledge(second);
  return second;
}

describe('creation', () => {
  test('binds one active revision, one identity, one client', async () => {
    const view = await env.policy(source);
    expect(view).toMatchObject({
      ...env.policyCreation(source),
      state: 'active',
      max_keys_per_token: 5,
      version: 1,
    });
    expect(view).not.toHaveProperty('refuses_with');
    expect(view.reference).toMatch(/^epr_[A-Za-z0-9_-]{27}$/);
    expect(await env.auditKinds(view.policy_id)).toEqual(['enrollment_policy.create']);
  });

  test('refuses_with subject_blocked while its one subject is blocked', async () => {
    const name = await env.active({ audience: 'blocked' });
    const verified_subject = `${SUBJECT}-blocked`;
    const { policy_id: id, verified_issuer: issuer } = await env.policy(name, { verified_subject });
    const blocked = { siteId: SITE, issuer, subject: verified_subject, blockedAtMs: 1, blockedBy: BY.actor };
    await env.store.writeUnaudited(undefined, (tx) => tx.keys.blockSubject(blocked));
    expect(await env.policies.get(id)).toMatchObject({
      state: 'active',
      refuses_with: 'subject_blocked',
    });
  });

  test('source_not_active: on anything but an active revision', async () => {
    const names = {
      draft: await env.draft(),
      validated: await env.validated(),
      publishing: await env.publishing({ audience: 'publishing' }),
      suspended: await env.active({ audience: 'suspended' }),
      retired: await env.active({ audience: 'retired' }),
    };
    await env.sources.lifecycle.suspend(names.suspended, BY);
    await env.sources.lifecycle.retire(names.retired, BY);
    for (const [state, name] of Object.entries(names)) {
      expect([state, await refusalOf(env.policy(name))]).toEqual([state, 'source_not_active']);
    }
  });

  test('policy_revision_outdated: on a revision that another one replaced', async () => {
    const { first, second } = await superseded('superseded');
    expect(await refusalOf(env.policy(first))).toBe('policy_revision_outdated');
    expect((await env.policy(second)).source_revision).toBe(2);
  });

  test('reference_unknown: revision, source or client of another site or of none', async () => {
    await env.addSite('other');
    const elsewhere = await env.active({ audience: 'other' }, 'other');
    const unknown = [
      env.policy({ ...source, revision: 9 }),
      env.policy({ sourceId: 'tas_none', revision: 1 }),
      env.policy(elsewhere),
      env.policy(source, { client_id: 'unknown' }),
    ];
    for (const attempt of unknown) expect(await refusalOf(attempt)).toBe('reference_unknown');
  });

  test('policy_issuer_mismatch: the verified issuer is exactly the revision’s', async () => {
    for (const verified_issuer of [`${env.issuer.issuer}/`, env.issuer.issuer.toUpperCase(), 'https://x']) {
      expect(await refusalOf(env.policy(source, { verified_issuer }))).toBe('policy_issuer_mismatch');
    }
  });

  test('verified_subject_invalid: what looks like a service account is one', async () => {
    const wrong = [
      'system:serviceaccount:prod',
      'system:serviceaccount:prod:*',
      'system:serviceaccount:*:billing',
      'system:serviceaccount:Prod:billing',
      'system:serviceaccount:prod:billing:x',
      'system:serviceaccount::billing',
      'system:serviceaccount:prod:-billing',
      'System:ServiceAccount:prod:billing',
      `system:serviceaccount:prod:${'a'.repeat(64)}`,
    ];
    for (const verified_subject of wrong) {
      const code = await refusalOf(env.policy(source, { verified_subject }));
      expect([verified_subject, code]).toEqual([verified_subject, 'verified_subject_invalid']);
    }
    for (const verified_subject of ['system:serviceaccount:prod:a.b-c', 'repo:shop/api:ref:main']) {
      expect((await env.policy(source, { verified_subject })).verified_subject).toBe(verified_subject);
    }
  });

  test('the same Idempotency-Key makes one policy, with one reference', async () => {
    const idempotency = { key: 'policy', requestHash: 'abc' };
    const creation = env.policyCreation(source);
    const first = await env.policies.create(SITE, creation, { ...BY, idempotency });
    const again = await env.policies.create(SITE, creation, { ...BY, idempotency });
    expect(again).toMatchObject({ replayed: true, view: first.view });
    const other = { ...BY, idempotency: { ...idempotency, requestHash: 'xyz' } };
    expect(await refusalOf(env.policies.create(SITE, creation, other))).toBe('idempotency_conflict');
  });
});

describe('changes', () => {
  test('terms can be changed by who read the newest version', async () => {
    const { policy_id: id } = await env.policy(source);
    const change = {
      display_name: 'x',
      approval: 'manual',
      max_key_lifetime_seconds: 60,
      max_keys_per_token: 1,
    } as const;
    expect(await env.policies.change(id, change, 1, BY)).toMatchObject({ ...change, version: 2 });
    expect(await refusalOf(env.policies.change(id, change, 1, BY))).toBe('precondition_failed');
  });

  test('policy_revision_outdated at enrollment until it is bound to the active revision', async () => {
    const first = await env.active({ audience: 'rebound' });
    const policy = await env.policy(first);
    const applied = await env.challenge(env.workload(policy));
    const token = env.token({ audience: 'rebound' });
    const second = await supersede(first);
    const before = await env.keysOf();
    expect(await env.policies.get(policy.policy_id)).toMatchObject({
      refuses_with: 'policy_revision_outdated',
    });
    expect(await refusalOf(env.challenge(env.workload(policy)))).toBe('policy_revision_outdated');
    expect(await refusalOf(env.workloads.submit(submissionOf(applied, token)))).toBe(
      'policy_revision_outdated',
    );
    expect(await env.keysOf()).toEqual(before);
    const binding = { source_revision: second.revision };
    expect(await refusalOf(env.policies.change(policy.policy_id, { source_revision: 7 }, 1, BY))).toBe(
      'reference_unknown',
    );
    await env.policies.change(policy.policy_id, binding, 1, BY);
    expect((await env.workloads.submit(submissionOf(applied, token))).enrollment.state).toBe('issued');
  });

  test('policy_issuer_mismatch at every step while its revision has another issuer', async () => {
    const audience = 'another-issuer';
    const name = await env.active({ audience });
    const policy = await env.policy(name, { approval: 'manual' });
    const waiting = await env.enroll(env.workload(policy), env.token({ audience }));
    const open = await env.challenge(env.workload(policy));
    const cluster = await env.anotherIssuer();
    await env.store.writeUnaudited(undefined, async (tx) => {
      const { issuer, jwksUri } = cluster;
      const row = await tx.sourceRevisions.find(name.sourceId, name.revision);
      if (row !== undefined) await tx.sourceRevisions.change(row, { issuer, jwksUri }, env.ms);
    });
    expect(await env.policies.get(policy.policy_id)).toMatchObject({
      state: 'active',
      refuses_with: 'policy_issuer_mismatch',
    });
    const token = cluster.token({ audience, nowMs: env.ms, claims: { iss: env.issuer.issuer } });
    const before = await env.enrollmentsOf();
    const codes = [
      await refusalOf(env.challenge(env.workload(policy))),
      await refusalOf(env.workloads.submit(submissionOf(open, token))),
      await refusalOf(env.decisions.approve(waiting.enrollment_id, {}, BY)),
    ];
    expect(codes).toEqual(Array(3).fill('policy_issuer_mismatch'));
    expect(await env.enrollmentsOf()).toEqual(before);
  });

  test('deactivate, reactivate, delete: policy_not_active in between and after; keys live on', async () => {
    const policy = await env.policy(source);
    const workload = env.workload(policy);
    const { derived_key: key } = await env.enroll(workload);
    const open = await env.challenge(env.workload(policy));
    const refusesEverybody = async () => {
      const before = await env.keysOf();
      expect(await refusalOf(env.challenge(workload))).toBe('policy_not_active');
      expect(await refusalOf(env.workloads.submit(submissionOf(open, env.token())))).toBe(
        'policy_not_active',
      );
      expect(await env.keysOf()).toEqual(before);
    };
    expect(await env.policies.deactivate(policy.policy_id, BY)).toMatchObject({ state: 'deactivated' });
    await refusesEverybody();
    expect(await refusalOf(env.policies.deactivate(policy.policy_id, BY))).toBe('policy_state_conflict');
    expect(await env.policies.reactivate(policy.policy_id, BY)).toMatchObject({ state: 'active' });
    expect((await env.enroll(workload)).state).toBe('issued');
    await env.policies.delete(policy.policy_id, 3, BY);
    await refusesEverybody();
    for (const event of ['deactivate', 'reactivate'] as const) {
      expect(await refusalOf(env.policies[event](policy.policy_id, BY))).toBe('policy_state_conflict');
    }
    expect(await refusalOf(env.policies.change(policy.policy_id, {}, 4, BY))).toBe('policy_state_conflict');
    const listed = await env.policies.ofSite(SITE, { after: undefined, limit: 200 });
    expect(listed.map(({ policy_id: id }) => id)).not.toContain(policy.policy_id);
    expect((await env.keys.key(key?.key_id ?? '')).status).toBe('active');
  });
});

describe('the Enrollment Command Generator', () => {
  test('the command carries the Control base URL and the reference, verbatim', async () => {
    const { policy_id: id, reference } = await env.policy(source);
    const view = await env.plane.commandOf(id);
    expect(view).toMatchObject({ policy_id: id, reference, control_url: CONTROL_URL });
    expect(view.command).toBe(
      `proofgate enroll --control-url=${CONTROL_URL} --policy=${reference} --private-key-out=${KEY_FILE} --proof-file=${TOKEN_FILE}`,
    );
  });

  test('the snippet projects a token of the source’s audience, and shares the key in memory', async () => {
    const { policy_id: id, reference } = await env.policy(source, { max_key_lifetime_seconds: 7200 });
    const { init_container: text } = await env.plane.commandOf(id);
    const spec = parse(text);
    expect(spec.serviceAccountName).toBe('billing');
    const [container] = spec.initContainers;
    expect(container).toMatchObject({ image: 'registry.example/proofgate' });
    expect(container.securityContext.seccompProfile).toEqual({ type: 'RuntimeDefault' });
    expect(container.command).toContain(`--policy=${reference}`);
    const mounts = Object.fromEntries(
      container.volumeMounts.map((mount: { name: string; mountPath: string }) => [
        mount.name,
        mount.mountPath,
      ]),
    );
    const [token, key] = spec.volumes;
    expect(token.projected.sources[0].serviceAccountToken).toEqual({
      audience: 'proofgate-shop',
      expirationSeconds: 7200,
      path: 'token',
    });
    expect(`${mounts[token.name]}/token`).toBe(TOKEN_FILE);
    expect(key.emptyDir).toEqual({ medium: 'Memory' });
    expect(KEY_FILE.startsWith(`${mounts[key.name]}/`)).toBe(true);
  });

  test('the agent’s are the same, for as long as the pod runs', async () => {
    const { policy_id: id } = await env.policy(source);
    const view = await env.plane.commandOf(id);
    expect(view.agent_command).toBe(view.command.replace('proofgate enroll ', 'proofgate agent '));
    const [once, kept] = [parse(view.init_container), parse(view.native_sidecar)];
    expect({ ...kept, initContainers: [] }).toEqual({ ...once, initContainers: [] });
    const [sidecar] = kept.initContainers;
    const { name: _name, command: _command, ...shared } = once.initContainers[0];
    expect(sidecar).toMatchObject({ ...shared, name: 'proofgate-agent', restartPolicy: 'Always' });
    const [port] = sidecar.ports;
    expect(sidecar.command).toEqual([
      ...view.agent_command.split(' '),
      `--admin-listen=[::]:${port.containerPort}`,
    ]);
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
      expect(sidecar[probe].httpGet.port).toBe(port.name);
    }
  });

  test.each([
    [['https://api.shop.example'], ['--upstream=https://api.shop.example']],
    [
      ['https://b.example:8443', 'https://a.example', 'https://a.example'],
      ['--route=/a.example=https://a.example', '--route=/b.example_8443=https://b.example:8443'],
    ],
  ])('the signer’s keep a key and send requests to %j', async (origins, upstreams) => {
    const { policy_id: id } = await env.policy(source);
    const profilesOfClient = async () => origins.map((origin) => ({ ...PROFILE, origins: [origin] }));
    const { store } = env;
    const options = { store, controlUrl: CONTROL_URL, image: 'i', caConfigMap: undefined, profilesOfClient };
    const view = await enrollmentCommand(options, id);
    expect(view.signer_command).toBe(
      [
        view.agent_command.replace('proofgate agent ', 'proofgate signer '),
        '--listen=127.0.0.1:8081',
        ...upstreams,
      ].join(' '),
    );
    const [agent, signer] = [view.native_sidecar, view.signer_sidecar ?? ''].map((text) => parse(text));
    expect(signer.initContainers[0]).toEqual({
      ...agent.initContainers[0],
      name: 'proofgate-signer',
      command: [...(view.signer_command ?? '').split(' '), '--admin-listen=[::]:9195'],
    });
  });

  test('there are none of the signer’s while the client may call no route', async () => {
    const { policy_id: id } = await env.policy(source);
    const { store } = env;
    const options = { store, controlUrl: CONTROL_URL, image: 'i', caConfigMap: undefined };
    const view = await enrollmentCommand({ ...options, profilesOfClient: async () => [] }, id);
    expect(view).not.toHaveProperty('signer_command');
    expect(view).not.toHaveProperty('signer_sidecar');
  });

  test('with a private CA of Control, commands trust the one that the workload’s ConfigMap holds', async () => {
    const { policy_id: id } = await env.policy(source);
    const plain = await env.plane.commandOf(id);
    const { store } = env;
    const options = { store, controlUrl: CONTROL_URL, image: 'i', profilesOfClient: async () => [] };
    const named = { ...options, caConfigMap: 'proofgate-control-ca' };
    const view = await enrollmentCommand(named, id);
    expect(view.command).toBe(`${plain.command} --control-ca-file=${CA_FILE}`);
    for (const [text, without] of [
      [view.init_container, plain.init_container],
      [view.native_sidecar, plain.native_sidecar],
    ] as const) {
      const { initContainers, volumes } = parse(text);
      expect(initContainers[0].command).toContain(`--control-ca-file=${CA_FILE}`);
      const { name, mountPath } = initContainers[0].volumeMounts.at(-1);
      expect([`${mountPath}/ca.crt`, volumes.at(-1)]).toEqual([
        CA_FILE,
        { name, configMap: { name: 'proofgate-control-ca' } },
      ]);
      expect(parse(without).volumes).toEqual(volumes.slice(0, -1));
    }
  });

  test('a token is projected for no less than Kubernetes allows, and an audience is quoted whatever it holds', async () => {
    const audience = '"x": [y] #z';
    const name = await env.active({ audience: audience.replaceAll(' ', '_') });
    const { policy_id: id } = await env.policy(name, { max_key_lifetime_seconds: 60 });
    const spec = parse((await env.plane.commandOf(id)).init_container);
    expect(spec.volumes[0].projected.sources[0].serviceAccountToken).toMatchObject({
      audience: audience.replaceAll(' ', '_'),
      expirationSeconds: 600,
    });
  });

  test.each([
    ['on', '0b1'],
    ['no', '1_000'],
    ['1e3', 'yes'],
  ])('names stay names in YAML 1.1, which kubectl reads: %s, %s', async (account, audience) => {
    const name = await env.active({ audience });
    const verified_subject = `system:serviceaccount:shop:${account}`;
    const { policy_id: id } = await env.policy(name, { verified_subject });
    const { init_container: once, native_sidecar: kept } = await env.plane.commandOf(id);
    for (const text of [once, kept]) {
      const { serviceAccountName, volumes } = parse(text, { version: '1.1' });
      const projected = volumes[0].projected.sources[0].serviceAccountToken.audience;
      expect([serviceAccountName, projected]).toEqual([account, audience]);
    }
  });

  test('policy_not_active for an inactive policy', async () => {
    const { policy_id: id } = await env.policy(source);
    await env.policies.deactivate(id, BY);
    expect(await refusalOf(env.plane.commandOf(id))).toBe('policy_not_active');
  });

  test('a shell reads back every word as it was', () => {
    const words = [
      "it's",
      'a b',
      '$(id)',
      '`id`',
      '"x"',
      '\\',
      '',
      '!',
      '*',
      '~',
      "'",
      'a\nb',
      '-n',
      'https://x/y?z=1&w',
    ];
    for (const word of words) {
      const { stdout } = spawnSync('sh', ['-c', `printf '%s' ${quoteForShell(word)}`]);
      expect(stdout.toString()).toBe(word);
    }
  });
});
