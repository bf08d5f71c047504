/** The frame of every page: site, navigation, signed-in operator, and connection to Control. */
import { ActionIcon, Alert, Burger, Button, Group, Text, useMantineColorScheme } from '@mantine/core';
import { useDisclosure, useWindowEvent } from '@mantine/hooks';
import { useMutation } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useParams } from '@tanstack/react-router';
import { Suspense, useRef } from 'react';
import { api, bodyOf } from '../api/client';
import { useLiveChanges } from '../api/live';
import { may } from '../api/permissions';
import { endSession, useSession } from '../api/session';
import { SiteBanners } from '../parts/banners';
import { IconSun } from '../parts/icons';
import { Loading } from '../parts/loading';
import { UntrustedText } from '../parts/values';
import { INSTALLATION_PAGES, SITE_PAGES } from './page-table';

export function Frame() {
  const [opened, { toggle, close }] = useDisclosure(false);
  const burger = useRef<HTMLButtonElement>(null);
  const connected = useLiveChanges();
  const { siteId } = useParams({ strict: false });
  useWindowEvent('keydown', ({ key }) => {
    if (key !== 'Escape' || !opened) return;
    close();
    burger.current?.focus();
  });
  return (
    <div className="frame">
      <header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger
              ref={burger}
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label="Navigation"
              aria-expanded={opened}
              aria-controls="pages"
            />
            <Text component={Link} to="/" fw={700} c="inherit" td="none">
              Proofgate
            </Text>
          </Group>
          <Account />
        </Group>
      </header>
      <nav id="pages" aria-label="Pages" data-opened={opened}>
        <Navigation onChoice={close} />
      </nav>
      <main>
        {connected === false && (
          <Alert color="yellow" mb="md" role="status" title="No connection to Control">
            What you see may be outdated. The console connects again by itself.
          </Alert>
        )}
        {siteId !== undefined && <SiteBanners siteId={siteId} />}
        <Suspense fallback={<Loading height={320} />}>
          <Outlet />
        </Suspense>
      </main>
    </div>
  );
}

function Navigation({ onChoice }: { readonly onChoice: () => void }) {
  const { siteId } = useParams({ strict: false });
  const { pathname } = useLocation();
  const session = useSession();
  const link = (to: string, label: string) => (
    <Link
      key={to}
      to={to}
      data-active={pathname === to || (to !== '/' && pathname.startsWith(`${to}/`))}
      onClick={onChoice}
    >
      {label}
    </Link>
  );
  return (
    <>
      {INSTALLATION_PAGES.filter(
        ({ permission }) => permission === undefined || may(session, permission, {}),
      ).map(({ path, title }) => link(path, title))}
      {siteId !== undefined && (
        <>
          <Text size="xs" c="dimmed" px="sm" pt="md" className="break">
            Site <UntrustedText value={siteId} />
          </Text>
          {SITE_PAGES.map(({ path, title }) => link(`/sites/${encodeURIComponent(siteId)}${path}`, title))}
        </>
      )}
    </>
  );
}

function Account() {
  const { display_name: name } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const next = { auto: 'light', light: 'dark', dark: 'auto' } as const;
  const { mutate: signOut, error } = useMutation({
    mutationFn: () => bodyOf(api.POST('/auth/logout')),
    onSuccess: endSession,
  });
  return (
    <Group gap="xs" wrap="nowrap">
      <ActionIcon
        variant="subtle"
        color="gray"
        onClick={() => setColorScheme(next[colorScheme])}
        aria-label={`Colours: ${colorScheme}. Change to ${next[colorScheme]}`}
      >
        <IconSun />
      </ActionIcon>
      <Text size="sm" truncate maw={160} visibleFrom="xs">
        <UntrustedText value={name} />
      </Text>
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => signOut()}
        {...(error ? { color: 'red', variant: 'filled' } : {})}
      >
        {error ? 'Still signed in: sign out again' : 'Sign out'}
      </Button>
    </Group>
  );
}
