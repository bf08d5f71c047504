/** Sign-in: through the identity provider, or on this machine with the bootstrap token, which is never stored. */
import { Button, Card, Center, Divider, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, bodyOf, controlUrl } from '../api/client';
import { Problem } from '../parts/problem';

export function SignIn() {
  const destination = `${location.pathname}${location.search}`;
  const login = `${controlUrl}/auth/login?${new URLSearchParams({ return_to: destination })}`;
  return (
    <Center mih="100vh" p="md" component="main">
      <Card withBorder w="100%" maw={420} p="xl">
        <Stack>
          <title>Sign in · Proofgate</title>
          <Title order={1} size="h2">
            Sign in to Proofgate
          </Title>
          <Button component="a" href={login}>
            Sign in with your identity provider
          </Button>
          <Divider label="or, on the machine of Control" />
          <BootstrapSignIn />
        </Stack>
      </Card>
    </Center>
  );
}

function BootstrapSignIn() {
  const [token, setToken] = useState('');
  const client = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => bodyOf(api.POST('/v1/session/bootstrap' as never, { body: { token } } as never)),
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
          description="From the file bootstrap-token in Control's data directory. It is exchanged for a session and not kept."
          value={token}
          onChange={({ currentTarget }) => setToken(currentTarget.value)}
          autoComplete="off"
        />
        {error && <Problem error={error} />}
        <Button type="submit" variant="default" loading={isPending} disabled={token === ''}>
          Sign in with the token
        </Button>
        <Text size="xs" c="dimmed">
          Lost both? Start Control with --reset-bootstrap-token.
        </Text>
      </Stack>
    </form>
  );
}
