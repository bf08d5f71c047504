/** The shell commands that start a target's verifier, with the keys that it pins. */
import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, bodyOf, controlUrl, type Schemas } from '../api/client';
import { shellWord } from '../api/ctl-command';
import { useSite } from '../api/session';
import { CopyText } from './command';
import { Loading } from './loading';
import { Problem } from './problem';

export function signingKeysQuery(siteId: string) {
  return {
    queryKey: ['site', siteId, 'signing-keys'],
    queryFn: () =>
      bodyOf(api.GET('/v1/sites/{site_id}/signing-keys', { params: { path: { site_id: siteId } } })),
  };
}

/** @param token written to the file that the verifier reads; undefined when the file already exists */
export function VerifierStart({ token }: { readonly token?: string | undefined }) {
  const site = useSite();
  const { data, error } = useQuery(signingKeysQuery(site.site_id));
  if (data === undefined) return error ? <Problem error={error} /> : <Loading height={160} />;
  return (
    <Stack gap="xs">
      <Text size="sm">
        Run this where the verifier runs, beside the gateway. It pins the keys that sign the bundles
        {site.single_verifier
          ? ', and keeps used proofs in memory.'
          : '. Replace redis://127.0.0.1:6379 by the Redis that remembers used proofs for all verifiers of the site.'}
      </Text>
      <CopyText text={verifierScript(site, data.items, token)} label="Copy commands" />
      <Text size="sm">
        The gateway asks it at 127.0.0.1:9191 for each request, by gRPC (ext_authz). The file envoy/envoy.yaml
        in the package is a configuration of Envoy to begin with; set that address in it.
      </Text>
    </Stack>
  );
}

function verifierScript(
  { site_id, single_verifier }: Schemas['Site'],
  keys: readonly Schemas['SigningKey'][],
  token: string | undefined,
): string {
  const pins = keys
    .filter(({ state }) => state !== 'retired')
    .map(({ purpose, jwk, signing_key_id }) => ({
      purpose,
      file: `pins/${signing_key_id}.jwk.json`,
      text: JSON.stringify(jwk),
    }));
  return [
    'umask 077; mkdir -p pins state',
    ...(token === undefined ? [] : [`printf '%s\\n' ${shellWord(token)} > target.token`]),
    ...pins.map(({ file, text }) => `printf '%s\\n' ${shellWord(text)} > ${file}`),
    [
      `proofgate verifier --auth-site ${shellWord(site_id)} --control-url ${shellWord(controlUrl)}`,
      '--control-token-file target.token --state-dir state',
      ...pins.map(({ purpose, file }) => `--${purpose}-key ${file}`),
      `--replay ${single_verifier ? 'memory' : 'redis://127.0.0.1:6379'}`,
    ].join(' \\\n  '),
  ].join('\n');
}
