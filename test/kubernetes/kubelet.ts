/** A fake node from which the API server reads pod logs, for `kubectl logs` and `helm test --logs`. Tests supply the logs. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { makeCertificates } from '../support/harness/certificates.ts';
import type { ApiObject, Objects } from './objects.ts';

export class Kubelet {
  readonly node: string;
  readonly #logs = new Map<string, string>();
  readonly #stop: () => Promise<void>;

  private constructor(node: string, stop: () => Promise<void>) {
    this.node = node;
    this.#stop = stop;
  }

  /** Resolves when its node is in the cluster. */
  static async start(objects: Objects, node: string): Promise<Kubelet> {
    const certificates = await makeCertificates('localhost', 'spiffe://x/y', ['127.0.0.1']);
    const { cert, key } = certificates.server;
    const server = createServer({ cert, key }, ({ url = '' }, response) => {
      const [, path = ''] = /^\/containerLogs\/([^?]+)/.exec(url) ?? [];
      const log = kubelet.#logs.get(path);
      response.writeHead(log === undefined ? 404 : 200, { 'content-type': 'text/plain' }).end(log);
    });
    const kubelet = new Kubelet(node, async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await certificates.remove();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port: Port } = server.address() as AddressInfo;
    await objects.mustCreate({
      ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: node } },
      status: {
        addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
        daemonEndpoints: { kubeletEndpoint: { Port } },
      },
    });
    return kubelet;
  }

  /** Stores the log of a pod's container. */
  keepLog({ metadata: { name, namespace } }: ApiObject, container: string, log: string): void {
    this.#logs.set(`${namespace}/${name}/${container}`, log);
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}
