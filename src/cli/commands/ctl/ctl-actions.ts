/** `proofgate ctl approve|deny|revoke|detach|raise-floor|block|unblock`: an operator's decisions, each one request to Control. */
import { MAX_FLOOR_REVISION } from '../../../bundle/format/bundle-limits.ts';
import { integer, required, text, toggle } from '../../../process/settings/settings.ts';
import type { ControlApi } from '../../ctl/client/control-api.ts';
import { confirm, YES } from '../../ctl/confirmation.ts';
import { ctlCommand } from '../../ctl/ctl-connection.ts';
import { idAndName, idOf, SITE_OF_NAME } from '../../ctl/find-resources.ts';
import { REASON } from '../../ctl/reason.ts';
import { removeBlock } from '../../ctl/remove-block.ts';
import type { CommandLineNode } from '../../define/define-command.ts';

const approve = ctlCommand({
  name: 'approve',
  summary: 'Approve an enrollment that waits: its key is issued',
  positionals: { enrollment: 'its ID' },
  settings: REASON,
  examples: ['approve enr_06cz…'],
  run: (api, { positionals: { enrollment }, settings }) =>
    decide(api, enrollment, 'approve', settings.reason),
});

const deny = ctlCommand({
  name: 'deny',
  summary: 'Deny an enrollment that waits',
  positionals: { enrollment: 'its ID' },
  settings: REASON,
  examples: ["deny enr_06cz… --reason 'not ours'"],
  run: (api, { positionals: { enrollment }, settings }) => decide(api, enrollment, 'deny', settings.reason),
});

async function decide(
  api: ControlApi,
  enrollmentId: string,
  verb: 'approve' | 'deny',
  reason: string | undefined,
) {
  const { body } = await api.act(`/v1/enrollments/{enrollment_id}/${verb}`, {
    path: { enrollment_id: enrollmentId },
    // Without a reason there is no body: an older Control takes none for an approval.
    body: reason === undefined ? undefined : { reason },
  });
  return { lines: [`${enrollmentId} is ${body.state}`], object: body };
}

const revoke = ctlCommand({
  name: 'revoke',
  summary:
    'Revoke a derived key and every living key ID of its public key, for good; refuse the public key of an expired key',
  positionals: { key: 'key ID' },
  settings: {
    ...REASON,
    blockSubject: toggle('--block-subject', 'also refuse new enrollments of its verified subject', false),
    ...YES,
  },
  examples: ["revoke dk_06cz… --reason 'laptop lost' --yes"],
  async run(api, { positionals: { key }, settings: { blockSubject, reason, yes } }, context) {
    await confirm(`revokes ${key} and every key ID of its public key for good`, yes, context);
    const { body } = await api.act('/v1/derived-keys/{key_id}/revoke', {
      path: { key_id: key },
      body: { reason, block_subject: blockSubject || undefined },
    });
    const ids = body.revoked_key_ids ?? [key];
    const lines = ids.map((id) => `${id} is revoked`);
    if (!ids.includes(key)) lines.unshift(`${key} has expired; its public key is refused from now on`);
    return { lines, object: body };
  },
});

const detach = ctlCommand({
  name: 'detach',
  summary: 'Detach a target that is gone, for good: nothing waits for it any more, and its token ends',
  positionals: { target: 'its ID or name' },
  settings: { ...SITE_OF_NAME, ...YES },
  examples: ['detach tgt_06cz… --yes'],
  async run(api, { positionals, settings: { site, yes } }, context) {
    const target = await idOf(api, 'targets', positionals.target, site);
    const named = idAndName(target, positionals.target);
    await confirm(`detaches ${named} and ends its token for good`, yes, context);
    const { body } = await api.act('/v1/targets/{target_id}/detach', { path: { target_id: target } });
    return { lines: [`${target} is ${body.state}`], object: body };
  },
});

const ABOVE = { min: 1, max: MAX_FLOOR_REVISION };

const raiseFloor = ctlCommand({
  name: 'raise-floor',
  summary: 'Raise the revision of a site, for good, so that targets that are ahead accept its bundles again',
  positionals: { site: 'Auth Site' },
  settings: {
    above: required(integer('--above <revision>', 'the highest revision of your verifiers', ABOVE)),
    ...YES,
  },
  examples: ['raise-floor shop-eu-1 --above 2500000 --yes'],
  async run(api, { positionals: { site }, settings: { above, yes } }, context) {
    await confirm(`publishes ${site} above revision ${above} for good`, yes, context);
    const { body } = await api.act('/v1/sites/{site_id}/raise-floor', {
      path: { site_id: site },
      body: { above_revision: above },
    });
    return { lines: [`${site} is published above revision ${above}`], object: body };
  },
});

/** A workload, which need not have a key. */
const SUBJECT = {
  site: required(text('--site <site>', 'Auth Site')),
  issuer: required(text('--issuer <url>', "the workload token's iss, exactly")),
  subject: required(text('--subject <subject>', "the workload token's sub, exactly")),
  ...REASON,
};
const SUBJECT_EXAMPLE =
  '--site shop-eu-1 --issuer https://oidc.example/id/4F2A --subject system:serviceaccount:prod:billing';

const block = ctlCommand({
  name: 'block',
  summary: 'Refuse new enrollments of a subject; its keys stay valid until they expire or are revoked',
  settings: SUBJECT,
  examples: [`block ${SUBJECT_EXAMPLE}`],
  async run(api, { settings: { site, issuer, subject, reason } }) {
    const { body } = await api.create('/v1/sites/{site_id}/blocked-subjects', {
      path: { site_id: site },
      query: { reason },
      body: { issuer, subject },
    });
    return { lines: [`${subject} is blocked`], object: body };
  },
});

const unblock = ctlCommand({
  name: 'unblock',
  summary: 'Let a blocked subject enroll again',
  settings: SUBJECT,
  examples: [`unblock ${SUBJECT_EXAMPLE}`],
  async run(api, { settings: { site, issuer, subject, reason } }) {
    const selected = { path: { site_id: site }, query: { issuer, subject, reason } };
    const remove = () => api.remove('/v1/sites/{site_id}/blocked-subjects', selected);
    await removeBlock(api, site, remove, subject);
    return { lines: [`${subject} may enroll again`], object: { site_id: site, issuer, subject } };
  },
});

/** In the order of the help. */
export const ctlDecisionCommands: readonly CommandLineNode[] = [
  approve,
  deny,
  revoke,
  detach,
  raiseFloor,
  block,
  unblock,
];
