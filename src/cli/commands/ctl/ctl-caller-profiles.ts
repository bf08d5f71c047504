/** `proofgate ctl get profiles --subject`: shows or writes the signing profile file of a caller with a broker's passports. */

import { replaceFile } from '../../../process/files/output-files.ts';
import { CliError, usageError } from '../../../process/program/errors.ts';
import type { JsonMembers } from '../../../process/program/output.ts';
import type { ControlApi, Schemas } from '../../ctl/client/control-api.ts';

export interface CallerProfilesInput {
  readonly site: string;
  readonly issuer: string | undefined;
  readonly subject: string;
  readonly trustDomain: string | undefined;
  /** The profile file to write; undefined to show the routes. */
  readonly out: string | undefined;
}

/**
 * @returns the profiles, and the lines to show when a file was written
 * @throws CliError `issuer_required`, `no_profiles`
 */
export async function callerProfiles(
  api: ControlApi,
  { site, issuer, subject, trustDomain, out }: CallerProfilesInput,
): Promise<{
  readonly profiles: Schemas['CallerProfiles']['profiles'];
  readonly written: readonly string[];
  readonly object: JsonMembers;
}> {
  if (issuer === undefined)
    throw usageError('issuer_required', 'name the broker that signs the passports with --issuer');
  const { body } = await api.get('/v1/sites/{site_id}/profiles', {
    path: { site_id: site },
    query: { issuer, subject, trust_domain: trustDomain },
  });
  const { profiles } = body;
  // A file without profiles would replace one that has some.
  if (!Array.isArray(profiles)) {
    throw new CliError('unreachable', 'answer_unexpected', 'Control answered without profiles');
  }
  if (profiles.length === 0) {
    const text = `no route of the site admits ${subject} with passports of ${issuer}: check the routes' allowed_sources`;
    throw new CliError('refused', 'no_profiles', text);
  }
  if (out === undefined) return { profiles, written: [], object: body };
  // Signers and brokers read it; it holds no secret.
  await replaceFile({ path: out, content: `${JSON.stringify(body, undefined, 2)}\n`, mode: 0o644 });
  return {
    profiles,
    written: [`${profiles.length} signing profiles of ${subject} are in ${out}`],
    object: body,
  };
}
