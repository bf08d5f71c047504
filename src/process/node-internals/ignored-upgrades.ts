/**
 * Lets a node:http server ignore some upgrades and accept others. Node.js only checks whether the server has a listener
 * for `upgrade`, and then skips the body of every request that asks for one. Its parser reads `upgrade` of the message
 * after the header lines; if it is not set, the request is parsed like any other. No benchmark justifies this file:
 * Java's HttpClient asks for h2c with every request. When the internals change, such a request arrives as `upgrade`,
 * which callers refuse; test/process/node-internals/ignored-upgrades.test.ts fails then.
 */
import { IncomingMessage, type Server } from 'node:http';

export type IgnoresUpgrade = (rawHeaders: readonly string[]) => boolean;

type MessageClass = typeof IncomingMessage;

/** Messages whose parser has seen an upgrade. */
const ASKING = new WeakSet<IncomingMessage>();
/** Messages whose upgrade is ignored, whatever happens to their header lines later. */
const IGNORED = new WeakSet<IncomingMessage>();
/** Connections of messages with an ignored upgrade. */
const CUT = new WeakSet<object>();

/** Value for the option `IncomingMessage` of a server. */
export function ignoringUpgrades(
  isIgnored: IgnoresUpgrade,
  base: MessageClass = IncomingMessage,
): MessageClass {
  class IgnoringMessage extends base {
    get upgrade(): boolean {
      if (!ASKING.has(this)) return false;
      // A parser that has seen CONNECT reads no further requests.
      if (this.method === 'CONNECT') return true;
      if (!IGNORED.has(this) && isIgnored(this.rawHeaders)) IGNORED.add(this);
      return !IGNORED.has(this);
    }

    set upgrade(asks: boolean | null) {
      if (asks === true) ASKING.add(this);
      // Without a listener Node.js itself ignores the upgrade.
      else ASKING.delete(this);
    }
  }
  return IgnoringMessage;
}

/** The same for an existing server, while Node.js stores the option as it does today. */
export function ignoreUpgradesOf(server: Server, isIgnored: IgnoresUpgrade): void {
  const key = Object.getOwnPropertySymbols(server).find(
    ({ description }) => description === 'IncomingMessage',
  );
  if (key === undefined) return;
  const base: unknown = Reflect.get(server, key);
  if (isMessageClass(base)) Reflect.set(server, key, ignoringUpgrades(isIgnored, base));
}

function isMessageClass(value: unknown): value is MessageClass {
  if (typeof value !== 'function') return false;
  return value === IncomingMessage || value.prototype instanceof IncomingMessage;
}

/**
 * Whether the message's upgrade was ignored. Its connection must close after the answer, because Node.js drops bytes
 * that arrived with the end of the message.
 */
export function hasIgnoredUpgrade(message: IncomingMessage): boolean {
  return IGNORED.has(message);
}

/**
 * Whether the message followed an ignored upgrade on its connection. Its beginning may be missing, so the parsed
 * message may differ from the sent one. Check each message of a server, and destroy the connection.
 */
export function followsIgnoredUpgrade(message: IncomingMessage): boolean {
  if (CUT.has(message.socket)) return true;
  if (IGNORED.has(message)) CUT.add(message.socket);
  return false;
}
