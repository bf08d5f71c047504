/**
 * Acts as the controllers, scheduler and kubelet of a session's cluster, which has none. Sets the desired replicas of a
 * Deployment; a pod without a controller gets a node, succeeds and has a log. Runs until stopped.
 * Usage: node cluster-hands.mjs SERVER TOKEN, with the server's CA in NODE_EXTRA_CA_CERTS and a certificate in tls.crt,
 * tls.key
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const [, , server, token] = process.argv;
const NODE = 'node-1';
const LOG = 'HTTP/1.1 200\n';
const AGAIN_MS = 200;

async function call(method, path, body) {
  const kind = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  const answer = await fetch(`${server}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': kind },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const said = await answer.json();
  // The object was deleted or changed meanwhile; the next round reads it again.
  if (!answer.ok && ![404, 409].includes(answer.status))
    throw new Error(`${method} ${path}: ${said.message}`);
  return said;
}

async function completeDeployments() {
  const { items } = await call('GET', '/apis/apps/v1/deployments');
  for (const { metadata, spec, status } of items) {
    if (status.observedGeneration === metadata.generation) continue;
    const replicas = spec.replicas ?? 1;
    const counts = {
      replicas,
      readyReplicas: replicas,
      availableReplicas: replicas,
      updatedReplicas: replicas,
    };
    const path = `/apis/apps/v1/namespaces/${metadata.namespace}/deployments/${metadata.name}/status`;
    await call('PATCH', path, { status: { observedGeneration: metadata.generation, ...counts } });
  }
}

async function endPods() {
  const { items } = await call('GET', '/api/v1/pods?fieldSelector=status.phase%3DPending');
  for (const { metadata, spec } of items) {
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`;
    if (spec.nodeName === undefined) {
      const target = { apiVersion: 'v1', kind: 'Node', name: NODE };
      await call('POST', `${path}/binding`, { apiVersion: 'v1', kind: 'Binding', metadata, target });
    }
    await call('PATCH', `${path}/status`, { status: { phase: 'Succeeded' } });
  }
}

const kubelet = createServer({ cert: readFileSync('tls.crt'), key: readFileSync('tls.key') }, (_, response) =>
  response.writeHead(200, { 'content-type': 'text/plain' }).end(LOG),
);
await new Promise((resolve) => kubelet.listen(0, '127.0.0.1', resolve));
await call('POST', '/api/v1/nodes', {
  ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } },
  status: {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubelet.address().port } },
  },
});
for (;;) {
  await completeDeployments();
  await endPods();
  await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
}
