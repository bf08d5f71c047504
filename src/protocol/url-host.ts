/** @returns the host to connect to: an IPv6 address without the brackets that it has in a URL */
export function hostOfUrl({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
