/** Formats the passports of a key that the agent keeps with a broker, for `status`, without secrets. */
import { type BrokerState, signingProfilesOf } from '../../caller/broker/broker-state.ts';
import { formatMoment } from '../../protocol/rfc3339.ts';
import { fromNow, line, type StatusDescription } from './enroll-status.ts';

/** @throws ClientError `profile_invalid` */
export function describePassports(
  state: BrokerState,
  { keyFile, nowMs }: { readonly keyFile: string; readonly nowMs: number },
): StatusDescription {
  const { brokerUrl, keyThumbprint, passports, profileDocuments, svid } = state;
  const until = (momentMs: number) => `${formatMoment(momentMs)} (${fromNow(momentMs, nowMs)})`;
  const statusOf = (endMs: number) => (nowMs < endMs ? 'valid' : 'expired');
  const endMs = Math.min(...passports.map(({ expiresAtMs }) => expiresAtMs));
  const files = signingProfilesOf(profileDocuments, keyFile);
  const names = files.flatMap(({ profiles }) => profiles.map(({ name }) => name));
  return {
    lines: [
      line('status', statusOf(endMs)),
      line('subject', [...new Set(passports.map(({ subject }) => subject))].join(', ')),
      line('fingerprint', keyThumbprint),
      ...passports.map(({ audience, expiresAtMs }) =>
        line('passport', `${audience}, ends ${until(expiresAtMs)}`),
      ),
      ...(svid === undefined ? [] : [line('svid', `${svid.spiffeId}, ends ${until(svid.expiresAtMs)}`)]),
      line('broker', brokerUrl),
      line('profiles', names.join(', ') || 'none'),
    ],
    object: {
      key_file: keyFile,
      fingerprint: keyThumbprint,
      broker_url: brokerUrl,
      status: statusOf(endMs),
      svid: svid ? { spiffe_id: svid.spiffeId, expires_at: formatMoment(svid.expiresAtMs) } : null,
      passports: passports.map(({ audience, expiresAtMs, subject }) => ({
        audience,
        subject,
        status: statusOf(expiresAtMs),
        expires_at: formatMoment(expiresAtMs),
      })),
      signing_profiles: names,
    },
  };
}
