/** `proofgate proxy`: runs the reverse proxy. */
import { PROXY_SETTINGS } from '../../enforcement/programs/proxy/proxy-settings.ts';
import { command } from '../define/define-command.ts';

export const proxyCommand = command({
  name: 'proxy',
  summary: 'Run the reverse proxy: check every request, and forward what is allowed to the API',
  settings: PROXY_SETTINGS,
  examples: [
    'proofgate proxy --auth-site shop-eu-1 --bundle /etc/proofgate/bundle --bundle-key signer.jwk.json ' +
      '--state-dir /var/lib/proofgate --listen :8443 --tls-cert-file tls.crt --tls-key-file tls.key ' +
      '--upstream http://127.0.0.1:8080 --replay redis://127.0.0.1:6379',
    'proofgate proxy --config proxy.yaml',
  ],
  run: async ({ settings }, context) => {
    const { runProxy } = await import('../../enforcement/programs/proxy/proxy-process.ts');
    await runProxy(settings, context);
  },
});
