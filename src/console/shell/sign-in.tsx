/** Sign-in: through the identity provider, or on Control's own machine with the bootstrap token, which is never stored. */
import { Button, Card, Center, Code, Divider, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, bodyOf, controlUrl } from '../api/client';
import { parseSearch, stringifySearch } from '../api/url-state';
import { Loading } from '../parts/loading';
import { Problem } from '../parts/problem';

export function SignIn() {
  const { data: methods, error } = useQuery({
    queryKey: ['sign-in-methods'],
    queryFn: () => bodyOf(api.GET('/v1/sign-in-methods')),
  });
  return (
    <Center mih="100vh" p="md" component="main">
      <Card withBorder w="100%" maw={440} p="xl">
        <Stack>
          <title>Sign in · Proofgate</title>
          <Title order={1} size="h2">
            Sign in to Proofgate
          </Title>
          {error && <Problem error={error} />}
          {methods === undefined && !error && <Loading height={80} />}
          {methods?.identity_provider && (
            <Button
              component="a"
              href={`${controlUrl}/auth/login?${new URLSearchParams({ return_to: here() })}`}
            >
              Sign in with your identity provider
            </Button>
          )}
          {methods?.identity_provider && methods.bootstrap_token && <Divider label="or" />}
          {methods?.bootstrap_token && <BootstrapSignIn />}
          {methods && !methods.identity_provider && !methods.bootstrap_token && <NoMethod />}
        </Stack>
      </Card>
    </Center>
  );
}

/** Path of the requested page below Control's own path, in the form that Control accepts. */
function here(): string {
  return `${location.pathname.slice(new URL(`${controlUrl}/`).pathname.length - 1)}${stringifySearch(parseSearch(location.search))}`;
}

function NoMethod() {
  return (
    <Text>
      Control has no identity provider. Start it with <Code>--oidc-issuer</Code>, or open the console on the
      machine of Control, at a loopback <Code>--public-url</Code>, to sign in with the bootstrap token.
    </Text>
  );
}

function BootstrapSignIn() {
  const [token, setToken] = useState('');
  const client = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => bodyOf(api.POST('/v1/session/bootstrap', { body: { token } })),
    onSuccess: () => client.invalidateQueries(),
    onSettled: () => setToken(''),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        mutate();
      }}
    >
      <Stack>
        <PasswordInput
          label="Bootstrap token"
          description="From the file bootstrap-token in Control's data directory. It is exchanged for a session of an hour and not kept."
          value={token}
          onChange={({ currentTarget }) => setToken(currentTarget.value)}
          autoComplete="off"
        />
        {error && <Problem error={error} />}
        <Button type="submit" variant="default" loading={isPending} disabled={token === ''}>
          Sign in with the token
        </Button>
      </Stack>
    </form>
  );
}
