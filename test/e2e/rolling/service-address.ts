/**
 * One address with servers behind it, like a Service with a cluster IP: new connections go to the current servers, and existing
 * connections stay where they are.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface ServiceAddress {
  readonly port: number;
  /** Ports that new connections go to, in turn. */
  behind: readonly number[];
  /** How many there are now to one of them, or to one that was. */
  connectionsTo(port: number): number;
  close(): Promise<void>;
}

export async function openServiceAddress(behind: readonly number[]): Promise<ServiceAddress> {
  const open = new Set<Socket>();
  const portOf = new Map<Socket, number>();
  let turn = 0;
  const server = createServer((socket) => {
    const ports = address.behind;
    const port = ports[turn++ % ports.length] ?? 0;
    const to = connect(port, '127.0.0.1');
    portOf.set(to, port);
    to.on('close', () => portOf.delete(to));
    for (const one of [socket, to]) {
      open.add(one);
      one.setNoDelay(true);
      one.on('error', () => undefined);
      one.on('close', () => open.delete(one));
    }
    socket.on('close', () => to.destroy());
    to.on('close', () => socket.destroy());
    socket.pipe(to).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address: ServiceAddress = {
    port: (server.address() as AddressInfo).port,
    behind,
    connectionsTo: (port) => [...portOf.values()].filter((each) => each === port).length,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
  return address;
}
