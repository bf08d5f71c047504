/**
 * Signs a browser in to the demo's console: an address on this machine that exchanges the bootstrap token for a session, as the
 * console's sign-in page does, and leads on to the console with the session's cookie. Browsers share a host's cookies between
 * its ports (RFC 6265 section 8.5).
 */
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Parts } from './parts.ts';

/** @returns the address to open in a browser @throws SetupError */
export async function startConsoleSignIn(
  parts: Parts,
  controlUrl: string,
  tokenFile: string,
): Promise<string> {
  const server = await parts.start({
    name: 'sign-in to the console',
    start: () => listen(controlUrl, tokenFile),
    stop: (started) => {
      started.closeAllConnections();
      return new Promise((resolve) => started.close(resolve));
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

async function listen(controlUrl: string, tokenFile: string): Promise<Server> {
  const server = createServer((_request, response) => {
    void sessionCookies(controlUrl, tokenFile)
      .then((cookies) => {
        response.writeHead(303, { 'set-cookie': [...cookies], location: `${controlUrl}/console/` }).end();
      })
      .catch((error: unknown) => response.writeHead(502).end(`Control did not sign in: ${String(error)}\n`));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

async function sessionCookies(controlUrl: string, tokenFile: string): Promise<readonly string[]> {
  const answer = await fetch(`${controlUrl}/v1/session/bootstrap`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: controlUrl },
    body: JSON.stringify({ token: (await readFile(tokenFile, 'utf8')).trim() }),
  });
  if (answer.status !== 204) throw new Error(`status ${answer.status}`);
  return answer.headers.getSetCookie();
}
