/** Starts the console in the browser. */
import '@mantine/core/styles.css';
import './styles.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queries, sessionQuery, useSignedIn } from './api/session';
import { Loading } from './parts/loading';
import { Problem } from './parts/problem';
import { router } from './shell/router';
import { SignIn } from './shell/sign-in';
import { cssVariablesResolver, theme } from './shell/theme';
import { acceptTextOnly } from './shell/trusted-types';

acceptTextOnly();

/** How long the page stays blank before it shows that it is loading, because rendering twice takes longer. */
const MAX_BLANK_MS = 300;

/** The Content-Security-Policy allows the styles that Mantine adds by this nonce. */
const nonce = document.querySelector('meta[name="csp-nonce"]')?.getAttribute('content') ?? '';
// react-remove-scroll, with which Mantine's dialogues stop the page from scrolling, reads the nonce from here.
Object.assign(globalThis, { __webpack_nonce__: nonce });

function Console() {
  const { session, error } = useSignedIn();
  if (session) return <RouterProvider router={router} />;
  if (session === null) return <SignIn />;
  return error ? <Problem error={error} /> : <Loading height={320} />;
}

const ready = Promise.allSettled([router.load(), queries.prefetchQuery(sessionQuery)]);
await Promise.race([ready, new Promise((resolve) => setTimeout(resolve, MAX_BLANK_MS))]);

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no #root');
createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariablesResolver}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        <Console />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
