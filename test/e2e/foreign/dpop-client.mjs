/**
 * Gets a DPoP-bound access token by client credentials, then reads each URL, with one of three libraries of npm. Reads a job as JSON:
 * `library`, `issuer`, `clientId`, `secret`, `resource`, `algorithm`, `relay` (where connections for URLs go) and `urls`.
 * Prints the last status of each URL as JSON. The library or, where it leaves that to its caller, this program repeats once for a
 * nonce (RFC 9449 section 8).
 */
import { request } from 'node:http';
import { buffer, json } from 'node:stream/consumers';

const job = await json(process.stdin);

/** `fetch`, with connections to the relay in place of the API. */
async function fetchApi(url, init) {
  const target = new URL(url);
  if (target.protocol === 'https:') return fetch(url, init);
  const { headers = {}, method = 'GET' } = init ?? {};
  const lines = headers instanceof Headers ? Object.fromEntries(headers) : headers;
  const answer = await new Promise((resolve, reject) => {
    const options = { ...job.relay, method, path: `${target.pathname}${target.search}`, agent: false };
    request({ ...options, headers: { ...lines, host: target.host } }, resolve)
      .on('error', reject)
      .end();
  });
  return new Response(await buffer(answer), { status: answer.statusCode, headers: answer.headers });
}

const grant = { resource: job.resource };

async function openidClient() {
  const client = await import('openid-client');
  const config = await client.discovery(new URL(job.issuer), job.clientId, job.secret, undefined, {
    [client.customFetch]: fetchApi,
    execute: [client.allowInsecureRequests],
  });
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair(job.algorithm));
  const { access_token: token } = await client.clientCredentialsGrant(config, grant, { DPoP });
  return async (url) => {
    const options = { DPoP };
    const answer = client.fetchProtectedResource(
      config,
      token,
      new URL(url),
      'GET',
      undefined,
      undefined,
      options,
    );
    return (await answer.catch((error) => error)).status;
  };
}

async function oauth4webapi() {
  const oauth = await import('oauth4webapi');
  const issuer = new URL(job.issuer);
  const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer));
  const client = { client_id: job.clientId };
  const DPoP = oauth.DPoP(client, await oauth.generateKeyPair(job.algorithm));
  const authentication = oauth.ClientSecretBasic(job.secret);
  const granted = await oauth.processClientCredentialsResponse(
    server,
    client,
    await oauth.clientCredentialsGrantRequest(server, client, authentication, grant, { DPoP }),
  );
  const options = { DPoP, [oauth.customFetch]: fetchApi, [oauth.allowInsecureRequests]: true };
  const read = (url) =>
    oauth.protectedResourceRequest(granted.access_token, 'GET', new URL(url), undefined, undefined, options);
  return async (url) => {
    const answer = await read(url).catch((error) => {
      return oauth.isDPoPNonceError(error) ? read(url).catch((again) => again) : error;
    });
    return answer.status;
  };
}

async function dpop() {
  const { generateKeyPair, generateProof } = await import('dpop');
  const keyPair = await generateKeyPair(job.algorithm);
  const endpoint = `${job.issuer}/token`;
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: {
      authorization: `Basic ${btoa(`${job.clientId}:${job.secret}`)}`,
      dpop: await generateProof(keyPair, endpoint, 'POST'),
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...grant }),
  });
  const { access_token: token } = await answer.json();
  let nonce;
  const read = async (url) => {
    const proof = await generateProof(keyPair, url, 'GET', nonce, token);
    const response = await fetchApi(url, { headers: { authorization: `DPoP ${token}`, dpop: proof } });
    nonce = response.headers.get('dpop-nonce') ?? nonce;
    return response;
  };
  return async (url) => {
    const response = await read(url);
    const asks = /^DPoP .*error="use_dpop_nonce"/.test(response.headers.get('www-authenticate') ?? '');
    return (asks ? await read(url) : response).status;
  };
}

const read = await { 'openid-client': openidClient, oauth4webapi, dpop }[job.library]();
const statuses = [];
for (const url of job.urls) statuses.push(await read(url));
console.log(JSON.stringify(statuses));
