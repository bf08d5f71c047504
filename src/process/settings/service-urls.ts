/** Rules for the URL of a service that a program calls with secrets. */
import { isLoopback } from '../../protocol/loopback.ts';

export function isBareHttpUrl({ hash, password, protocol, username }: URL): boolean {
  return /^https?:$/.test(protocol) && username === '' && password === '' && hash === '';
}

/** Tokens and audit events are confidential, so plain HTTP is for loopback unless `--allow-plain-http` is given. */
export function mayCarrySecrets({ hostname, protocol }: URL, allowPlainHttp: boolean): boolean {
  return protocol === 'https:' || isLoopback(hostname) || allowPlainHttp;
}
