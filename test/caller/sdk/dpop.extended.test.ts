/** The SDKs with DPoP against the reverse proxy, through a relay that counts: one retry for a nonce, never a loop. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Agent, buildConnector, request } from 'undici';
import { Signer } from '../../../src/caller/sdk/index.ts';
import { NONCED, WRITE } from '../../e2e/dpop/dpop-requests.ts';
import { startRecordedProxy } from '../../e2e/proxy/proxy-fixture.ts';
import { NonceRelay } from '../../support/caller/nonce-relay.ts';
import {
  GO_ENV,
  MISSING_GO,
  MISSING_JAVA,
  MISSING_PYTHON,
  PYTHON_ENV,
  runJava,
} from '../../support/caller/sdk-drivers.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { waitFor } from '../../support/wait.ts';
import { ORIGIN, writeBillingKey } from './billing-key.ts';

const fixture = useSite('suite');
const READ_URL = `${ORIGIN}/v1/nonced/4711`;
const WRITE_URL = `${ORIGIN}/v1/dpop?dry=1`;
const BODY = '{"item":"book"}';
const folder = mkdtempSync(join(tmpdir(), 'pg-sdk-dpop-'));
let keyFile = '';
let relay: NonceRelay;
let agent: Agent;
let signer: Signer;
beforeAll(async () => {
  const moreRoutes = [NONCED, { ...WRITE, dpop_nonce: 'required' as const }];
  const bundleDirectory = await fixture.site.makeBundle({ moreRoutes });
  const proxy = await startRecordedProxy(fixture.site, { bundleDirectory });
  fixture.stops.push(() => proxy.stop());
  relay = await NonceRelay.start(proxy.address);
  fixture.stops.push(() => relay.stop());
  keyFile = writeBillingKey(fixture.site, folder, { keyId: 'dk_billing', routes: moreRoutes });
  const connect = buildConnector({});
  // The requests are for the site's own origin.
  agent = new Agent({
    connect: (options, callback) =>
      connect({ ...options, hostname: relay.address.host, port: `${relay.address.port}` }, callback),
  });
  await openSigner();
  // A replay store that has just started refuses proofs of its past.
  await waitFor('an allowed request', async () => (await byFetch(READ_URL)) === 200 || undefined);
});
beforeEach(async () => {
  relay.alwaysAsks = false;
  relay.take();
  await openSigner();
});
afterAll(async () => {
  await agent.close();
  rmSync(folder, { recursive: true });
});

async function openSigner() {
  signer = await Signer.open({ keyFile, proof: 'dpop' });
}

const statuses = () => relay.take().map(({ status }) => status);

async function byFetch(url: string, options: object = {}): Promise<number> {
  // Undici's own types and those of Node.js differ.
  const init: object = { dispatcher: agent, ...options };
  const answer = await signer.fetch(url, init);
  await answer.arrayBuffer();
  return answer.status;
}

async function byInterceptor(url: string, options: object = {}): Promise<number> {
  const dispatcher = agent.compose(signer.interceptor());
  const { body, statusCode } = await request(url, { dispatcher, ...options });
  await body.dump();
  return statusCode;
}

async function* chunks() {
  yield Buffer.from(BODY);
}

describe.each([
  ['fetch', byFetch],
  ['the interceptor', byInterceptor],
] as const)('Node.js: %s', (_, send) => {
  it('signs once more for a nonce, keeps it, and takes a newer one of any answer', async () => {
    expect([await send(READ_URL), statuses()]).toEqual([200, [401, 200]]);
    relay.nextNonces.push('stale');
    expect([await send(READ_URL), statuses()]).toEqual([200, [200]]);
    expect(await send(READ_URL)).toBe(200);
    const [denied, allowed, ...others] = relay.take();
    expect([denied?.nonce, denied?.status, allowed?.status, others]).toEqual(['stale', 401, 200, []]);
    expect(allowed?.nonce).toBe(denied?.given);
  });

  it('sends the body again', async () => {
    expect(await send(WRITE_URL, { method: 'POST', body: BODY, headers: { 'x-tenant': 'acme' } })).toBe(200);
    expect(relay.take().map(({ body, status }) => [status, body])).toEqual([
      [401, BODY],
      [200, BODY],
    ]);
  });

  it('says so when a body is gone, and succeeds with the nonce that it kept', async () => {
    const init = () => ({ method: 'POST', body: chunks(), duplex: 'half', headers: { 'x-tenant': 'acme' } });
    await expect(send(WRITE_URL, init())).rejects.toMatchObject({ code: 'body_not_replayable' });
    expect(statuses()).toEqual([401]);
    expect([await send(WRITE_URL, init()), statuses()]).toEqual([200, [200]]);
  });

  it('returns the denial of a server that always asks', async () => {
    relay.alwaysAsks = true;
    expect([await send(READ_URL), statuses()]).toEqual([401, [401, 401]]);
  });
});

it('Node.js: sign takes the nonce that another client got', async () => {
  const send = async (dpopNonce?: string) => {
    const headers = await signer.sign({ url: READ_URL, ...(dpopNonce && { dpopNonce }) });
    const { body, headers: answered, statusCode } = await request(READ_URL, { dispatcher: agent, headers });
    await body.dump();
    return [statusCode, answered['dpop-nonce']] as const;
  };
  const [status, nonce] = await send();
  expect(status).toBe(401);
  expect(await send(String(nonce))).toEqual([200, undefined]);
});

/** Each word is a request: GET, POST with a body, STREAM with a body that can be sent once. Prints statuses and codes of errors. */
const PYTHON = `
import asyncio, sys
import httpx, requests
import proofgate

client, key_file, read, write, *words = sys.argv[1:]
auth = proofgate.Auth(key_file, proof="dpop")
headers = {"x-tenant": "acme"}

def stream():
    yield b"part"

async def async_stream():
    yield b"part"

def of(word, gone):
    if word == "GET":
        return "GET", read, {}
    return "POST", write, {"body": b'{"item":"book"}' if word == "POST" else gone(), "headers": headers}

def send_httpx(word):
    with httpx.Client(auth=auth) as http:
        method, url, options = of(word, stream)
        return http.request(method, url, content=options.get("body"), headers=options.get("headers"))

def send_async(word):
    async def send():
        async with httpx.AsyncClient(auth=auth) as http:
            method, url, options = of(word, async_stream)
            return await http.request(method, url, content=options.get("body"), headers=options.get("headers"))
    return asyncio.run(send())

def send_requests(word):
    method, url, options = of(word, stream)
    return requests.request(method, url, data=options.get("body"), headers=options.get("headers"), auth=auth)

send = {"httpx": send_httpx, "async": send_async, "requests": send_requests}[client]
for word in words:
    try:
        print(send(word).status_code)
    except proofgate.SigningError as error:
        print(error.code)
`;

const GO = `
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"proofgate.example/proofgate"
)

func main() {
	signer, err := proofgate.Open(proofgate.Options{KeyFile: os.Args[1], Proof: proofgate.DPoP})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: &proofgate.Transport{Signer: signer}}
	for _, word := range os.Args[4:] {
		method, url, body := "POST", os.Args[3], io.Reader(strings.NewReader(\`{"item":"book"}\`))
		switch word {
		case "GET":
			method, url, body = "GET", os.Args[2], nil
		case "STREAM":
			body = io.MultiReader(body)
		}
		request, _ := http.NewRequest(method, url, body)
		request.Header.Set("X-Tenant", "acme")
		response, err := client.Do(request)
		var failure *proofgate.SigningError
		if errors.As(err, &failure) {
			fmt.Println(failure.Code)
			continue
		}
		if err != nil {
			panic(err)
		}
		response.Body.Close()
		fmt.Println(response.StatusCode)
	}
}
`;

/** Compiles the program once. */
const goProgram = (() => {
  let built: Promise<string> | undefined;
  return () => (built ??= buildGo());
})();

async function buildGo(): Promise<string> {
  const sdk = checkoutPath('sdk', 'go');
  const program = mkdtempSync(join(folder, 'go'));
  const module = 'proofgate.example/proofgate';
  writeFileSync(
    join(program, 'go.mod'),
    `module m\n\ngo 1.21\n\nrequire ${module} v0.0.0\n\nreplace ${module} => ${sdk}\n`,
  );
  writeFileSync(join(program, 'main.go'), GO);
  await promisify(execFile)('go', ['build', '-o', 'program', '.'], { cwd: program, env: GO_ENV });
  return join(program, 'program');
}

type Run = (words: readonly string[]) => Promise<readonly string[]>;

const PROGRAMS: readonly (readonly [name: string, missing: string | undefined, run: Run])[] = [
  ...['httpx', 'async', 'requests'].map(
    (client) =>
      [`Python: ${client}`, MISSING_PYTHON, (words: readonly string[]) => python(client, words)] as const,
  ),
  ['Go', MISSING_GO, go],
  ...['java.net.http', 'OkHttp', 'Spring'].map(
    (client) => [`Java: ${client}`, MISSING_JAVA, (words: readonly string[]) => java(client, words)] as const,
  ),
];

const proxied = () => {
  const proxy = `http://${relay.address.host}:${relay.address.port}`;
  return { HTTP_PROXY: proxy, http_proxy: proxy, NO_PROXY: '', no_proxy: '' };
};

async function python(client: string, words: readonly string[]) {
  const args = ['-c', PYTHON, client, keyFile, READ_URL, WRITE_URL, ...words];
  const { stdout } = await promisify(execFile)('python3', args, { env: { ...PYTHON_ENV, ...proxied() } });
  return stdout.trim().split('\n');
}

async function go(words: readonly string[]) {
  const args = [keyFile, READ_URL, WRITE_URL, ...words];
  const { stdout } = await promisify(execFile)(await goProgram(), args, { env: { ...GO_ENV, ...proxied() } });
  return stdout.trim().split('\n');
}

async function java(client: string, words: readonly string[]) {
  const { port } = relay.address;
  const program = ['example.proofgate.DpopCalls', client, keyFile, `${port}`, READ_URL, WRITE_URL];
  const { stdout } = await runJava([...program, ...words]);
  return stdout.trim().split('\n');
}

describe.each(PROGRAMS)('%s', (name, missing, run) => {
  const itRuns = missing === undefined ? it : it.skip;

  itRuns('signs once more for a nonce, keeps it, and takes a newer one of any answer', async () => {
    relay.nextNonces.push(undefined, 'stale');
    expect(await run(['GET', 'GET', 'GET'])).toEqual(['200', '200', '200']);
    const relayed = relay.take();
    expect(relayed.map(({ status }) => status)).toEqual([401, 200, 200, 401, 200]);
    expect(relayed[1]?.nonce).toBe(relayed[0]?.given);
    expect(relayed[3]?.nonce).toBe('stale');
    expect(relayed[4]?.nonce).toBe(relayed[3]?.given);
  });

  itRuns('sends the body again', async () => {
    expect(await run(['POST'])).toEqual(['200']);
    expect(relay.take().map(({ body, status }) => [status, body])).toEqual([
      [401, BODY],
      [200, BODY],
    ]);
  });

  // Spring keeps every body for its interceptors.
  (name === 'Java: Spring' ? it.skip : itRuns)(
    'says so when a body is gone, and succeeds with the nonce that it kept',
    async () => {
      expect(await run(['STREAM', 'STREAM'])).toEqual(['body_not_replayable', '200']);
      expect(statuses()).toEqual([401, 200]);
    },
  );

  itRuns('returns the denial of a server that always asks', async () => {
    relay.alwaysAsks = true;
    expect([await run(['GET']), statuses()]).toEqual([['401'], [401, 401]]);
  });
});
