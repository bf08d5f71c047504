/** Values of `Retry-After` that no wait may follow: what a proxy, a mistake or an attacker may answer. */
export function hostileRetryAfters(): readonly string[] {
  const inAnHour = new Date(Date.now() + 3_600_000).toUTCString();
  return [
    '300',
    '3600',
    inAnHour,
    'Fri, 31 Dec 9999 23:59:59 GMT',
    '999999999',
    '9'.repeat(40),
    '-1',
    'soon',
  ];
}
