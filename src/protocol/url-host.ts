/** @returns the host to connect to; an IPv6 address without its brackets in the URL */
export function hostOfUrl({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
